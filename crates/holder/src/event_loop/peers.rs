//! Admission of connections: only the holder's own user, from outside of its session. Connections are few, so a silent
//! one is closed for the next.

use super::*;

/// How many connections are served at once: one of a server, the others for status queries.
pub(super) const CLIENTS_MAX: usize = 8;
/// A server sends its Hello at once, so a connection that was silent for this long is closed for the next one.
const SILENT_US: u64 = 100_000;

impl Holder {
    /// Whether another connection may be accepted now, counting one that may be closed for it.
    pub(super) fn has_place(&self, now: u64) -> bool {
        self.clients.len() < CLIENTS_MAX || self.place_at().is_some_and(|at| at <= now)
    }

    /// When one of the connections may be closed for the next; `None` if none may, or if there is room.
    pub(super) fn place_at(&self) -> Option<u64> {
        let is_full = self.clients.len() >= CLIENTS_MAX;
        self.longest_silent().filter(|_| is_full).map(|client| client.heard_at + SILENT_US)
    }

    /// The attached server is never closed for another connection.
    fn longest_silent(&self) -> Option<&Connection> {
        self.clients.iter().filter(|client| !client.is_attached).min_by_key(|client| client.heard_at)
    }

    /// Accepts waiting connections: at most CLIENTS_MAX per turn, because a turn is bounded.
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

/// Whether the peer runs as our user or root and is no descendant of this holder: a program in the terminal must not
/// answer, type or take the session over in a server's name. A server in another session, or one that has this holder
/// among its children, is no descendant.
fn may_speak(stream: &UnixStream) -> bool {
    let Ok(peer) = socket::peer(stream) else { return false };
    if peer.uid != 0 && peer.uid != rustix::process::geteuid().as_raw() {
        return false;
    }
    // Zero stands for a process outside of this PID namespace; every descendant is inside.
    peer.pid == 0 || sys::process::is_descendant(peer.pid, std::process::id()) == Some(false)
}
