//! Who may speak to the holder: its user, from outside of its session. Places are few, and whoever is silent gives its own up.

use super::*;

/// How many connections are served at once; one is a server's, the others are looks.
pub(super) const CLIENTS_MAX: usize = 8;
/// A server greets at once, so a connection that has been silent for this long gives its place to the next.
const SILENT_US: u64 = 100_000;

impl Holder {
    /// Whether one more may come in now; when one has to go for it, that one may.
    pub(super) fn has_place(&self, now: u64) -> bool {
        self.clients.len() < CLIENTS_MAX || self.place_at().is_some_and(|at| at <= now)
    }

    /// When one of the connections gives its place up for the next; `None` where none does, or there are places.
    pub(super) fn place_at(&self) -> Option<u64> {
        let is_full = self.clients.len() >= CLIENTS_MAX;
        self.longest_silent().filter(|_| is_full).map(|client| client.heard_at + SILENT_US)
    }

    /// The server that the session belongs to keeps its place.
    fn longest_silent(&self) -> Option<&Connection> {
        self.clients.iter().filter(|client| !client.is_attached).min_by_key(|client| client.heard_at)
    }

    /// Lets in who waits at the socket. As many as there are places in one turn, for a turn is bounded.
    pub(super) fn accept_connections(&mut self, now: u64) {
        for _ in 0..CLIENTS_MAX {
            if !self.has_place(now) {
                return;
            }
            let Ok((stream, _)) = self.listener.accept() else { return };
            if !may_speak(&stream) {
                continue;
            }
            let Ok(client) = Connection::new(self.next_client, stream, false, now) else { continue };
            if self.clients.len() >= CLIENTS_MAX {
                let gone = self.longest_silent().map(|client| client.id);
                self.clients.retain(|client| Some(client.id) != gone);
            }
            self.next_client += 1;
            self.clients.push(client);
        }
    }
}

/// Whether it is our user or root, and no program of this session: what runs in the terminal must not answer, type or take
/// the session over in a server's name. A server that runs in another session, or has a session's holder among its own
/// children, is none of our descendants.
fn may_speak(stream: &UnixStream) -> bool {
    let Ok(peer) = socket::peer(stream) else { return false };
    if peer.uid != 0 && peer.uid != rustix::process::geteuid().as_raw() {
        return false;
    }
    // Zero stands for a process that is not to be seen from here, and every descendant is.
    peer.pid == 0 || sys::process::is_descendant(peer.pid, std::process::id()) == Some(false)
}
