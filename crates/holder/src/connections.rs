//! The connections to the holder: only of its own user, from outside of its session. Connections are few, so a silent one
//! is closed for the next.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::{socket, time};
use wire::{FromHolder, ShownBy, Status, ToHolder};

use crate::connection::Connection;

/// How many connections are served at once: one of a server, the others for status queries.
pub(crate) const CONNECTIONS_MAX: usize = 8;
/// A server sends its Hello at once, so a connection that was silent for this long is closed for the next one.
const SILENT_US: u64 = 100_000;
/// How long shutdown waits for the last frames to be sent.
const FAREWELL_US: u64 = 300_000;

/// The address of an answer: the connection's id, and the sequence number of the request.
pub(crate) type Caller = (u64, u32);

#[derive(Debug)]
pub(crate) struct Connections {
    listener: UnixListener,
    list: Vec<Connection>,
    next_id: u64,
}

impl Connections {
    /// The first connection is that of the server that started this holder.
    pub(crate) fn new(listener: UnixListener, server: Connection) -> Self {
        Self { listener, list: vec![server], next_id: 1 }
    }

    pub(crate) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The descriptors to poll, each with its events.
    pub(crate) fn polled(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.list.iter().map(|c| {
            let unsent = if c.has_unsent() && !c.is_held() { PollFlags::OUT } else { PollFlags::empty() };
            (c.fd(), PollFlags::IN | unsent)
        })
    }

    /// Whether another connection may be accepted now, counting one that may be closed for it.
    pub(crate) fn has_place(&self, now: u64) -> bool {
        self.list.len() < CONNECTIONS_MAX || self.place_at().is_some_and(|at| at <= now)
    }

    /// When one of the connections may be closed for the next; `None` if none may, or if there is room.
    pub(crate) fn place_at(&self) -> Option<u64> {
        let is_full = self.list.len() >= CONNECTIONS_MAX;
        self.longest_silent().filter(|_| is_full).map(|c| c.last_frame_at() + SILENT_US)
    }

    /// The attached server is never closed for another connection.
    fn longest_silent(&self) -> Option<&Connection> {
        self.list.iter().filter(|c| !c.is_attached()).min_by_key(|c| c.last_frame_at())
    }

    /// Accepts waiting connections: at most CONNECTIONS_MAX per turn, because a turn is bounded.
    pub(crate) fn accept(&mut self, now: u64) {
        for _ in 0..CONNECTIONS_MAX {
            if !self.has_place(now) {
                return;
            }
            let Ok((stream, _)) = self.listener.accept() else { return };
            if may_speak(&stream) {
                self.add(stream, now);
            }
        }
    }

    /// Adds a connection, in the place of the longest silent one if there is no room.
    fn add(&mut self, stream: UnixStream, now: u64) {
        let Ok(connection) = Connection::new(self.next_id, stream, false, now) else { return };
        if self.list.len() >= CONNECTIONS_MAX {
            let gone = self.longest_silent().map(|c| c.id);
            self.list.retain(|c| Some(c.id) != gone);
        }
        self.next_id += 1;
        self.list.push(connection);
    }

    /// The requests on the connections that poll(2) reported, in their order.
    pub(crate) fn receive(&mut self, ready: &[bool], now: u64) -> Vec<(u64, ToHolder)> {
        let mut requests = Vec::new();
        for (connection, _) in self.list.iter_mut().zip(ready).filter(|(_, is_ready)| **is_ready) {
            requests.extend(connection.receive(now).into_iter().map(|frame| (connection.id, frame)));
        }
        requests
    }

    /// Detaches every other server: the connection `id` takes the session over.
    pub(crate) fn displace_others(&mut self, id: u64) {
        for other in self.list.iter_mut().filter(|c| c.is_attached() && c.id != id) {
            other.displace();
        }
    }

    /// Answers a Hello.
    pub(crate) fn greet(&mut self, id: u64, attaches: bool, hello: &FromHolder) {
        if let Some(connection) = self.list.iter_mut().find(|c| c.id == id) {
            if attaches {
                connection.attach();
            }
            connection.send(hello);
        }
    }

    /// Sends a frame to the attached server.
    pub(crate) fn send_attached(&mut self, frame: &FromHolder) {
        self.list.iter_mut().filter(|c| c.is_attached()).for_each(|c| c.send(frame));
    }

    /// Queues a frame to the attached server, to be sent together with the next one.
    pub(crate) fn hold_attached(&mut self, frame: &FromHolder) {
        self.list.iter_mut().filter(|c| c.is_attached()).for_each(|c| c.hold(frame));
    }

    pub(crate) fn answer(&mut self, caller: Caller, status: Status, value: u64) {
        self.answer_typed(caller, status, value, ShownBy::Unknown);
    }

    /// Answers a request that has typed, and says how that is shown.
    pub(crate) fn answer_typed(&mut self, (id, seq): Caller, status: Status, value: u64, shown_by: ShownBy) {
        if let Some(connection) = self.list.iter_mut().find(|c| c.id == id) {
            connection.send(&FromHolder::Done { seq, status, value, shown_by });
        }
    }

    pub(crate) fn answer_all(&mut self, callers: &[Caller], status: Status, value: u64) {
        for caller in callers {
            self.answer(*caller, status, value);
        }
    }

    /// Queues answers, to be sent together with the next frame.
    pub(crate) fn hold_answers(&mut self, callers: &[Caller], status: Status, value: u64) {
        for (id, seq) in callers {
            if let Some(connection) = self.list.iter_mut().find(|c| c.id == *id) {
                connection.hold(&FromHolder::Done { seq: *seq, status, value, shown_by: ShownBy::Unknown });
            }
        }
    }

    /// Sends queued frames and drops closed connections. With `may_wait`, held frames stay queued.
    pub(crate) fn flush(&mut self, may_wait: bool) {
        for connection in self.list.iter_mut().filter(|c| !(may_wait && c.is_held())) {
            connection.flush();
        }
        self.list.retain(|c| !c.is_over());
    }

    /// Sends every queued frame, as long as the peers read within FAREWELL_US.
    pub(crate) fn finish(&mut self) {
        let until = time::monotonic_us() + FAREWELL_US;
        while self.list.iter().any(Connection::has_unsent) && time::monotonic_us() < until {
            let mut fds: Vec<PollFd<'_>> =
                self.list.iter().map(|c| PollFd::from_borrowed_fd(c.fd(), PollFlags::OUT)).collect();
            let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let _ = poll(&mut fds, Some(&wait));
            self.flush(false);
        }
    }
}

/// Whether the peer runs as our user or root and is not a descendant of this holder: a program in the terminal must not
/// answer, type or take the session over in a server's name. A server in another session, or one that has this holder
/// among its children, is not a descendant.
fn may_speak(stream: &UnixStream) -> bool {
    let Ok(peer) = socket::peer(stream) else { return false };
    if peer.uid != 0 && peer.uid != rustix::process::geteuid().as_raw() {
        return false;
    }
    // Zero means a process outside of this PID namespace; every descendant is inside.
    peer.pid == 0 || sys::process::is_descendant(peer.pid, std::process::id()) == Some(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests {
    use std::io::Read;

    use wire::Frames;

    use super::*;

    /// A holder's connections with one attached server, and that server's end.
    fn attached() -> (tempfile::TempDir, Connections, UnixStream) {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let server = Connection::new(0, ours, true, 0).unwrap();
        (folder, Connections::new(listener, server), theirs)
    }

    fn received(stream: &mut UnixStream) -> Vec<FromHolder> {
        let (mut frames, mut buffer) = (Frames::default(), [0; 4096]);
        let n = stream.read(&mut buffer).unwrap_or(0);
        frames.push(&buffer[..n]);
        std::iter::from_fn(|| frames.next_frame().unwrap().and_then(FromHolder::decode)).collect()
    }

    #[test]
    fn a_silent_connection_is_closed_for_the_next_and_the_attached_one_never() {
        let (_folder, mut connections, _server) = attached();
        for now in 1..CONNECTIONS_MAX as u64 {
            assert!(connections.has_place(0));
            connections.add(UnixStream::pair().unwrap().0, now);
        }
        assert_eq!((connections.len(), connections.place_at()), (CONNECTIONS_MAX, Some(1 + SILENT_US)));
        assert!(!connections.has_place(SILENT_US), "none was silent for long enough");
        assert!(connections.has_place(1 + SILENT_US));
        connections.add(UnixStream::pair().unwrap().0, 1 + SILENT_US);
        let ids: Vec<u64> = connections.list.iter().map(|c| c.id).collect();
        assert_eq!(ids, [0, 2, 3, 4, 5, 6, 7, 8], "the attached one stays, the longest silent one has gone");
    }

    #[test]
    fn held_frames_leave_together_with_the_next_one() {
        let (_folder, mut connections, mut server) = attached();
        connections.hold_answers(&[(0, 5)], Status::Ok, 1);
        connections.flush(true);
        assert_eq!(received(&mut server), []);
        connections.answer((0, 6), Status::Busy, 2);
        let done = |seq, status, value| FromHolder::Done { seq, status, value, shown_by: ShownBy::Unknown };
        assert_eq!(received(&mut server), [done(5, Status::Ok, 1), done(6, Status::Busy, 2)]);
    }

    #[test]
    fn a_displaced_server_gets_the_frame_that_says_so_and_is_closed() {
        let (_folder, mut connections, mut server) = attached();
        connections.displace_others(9);
        connections.send_attached(&FromHolder::Displaced);
        assert_eq!(received(&mut server), [FromHolder::Displaced], "the second one was for attached servers");
        connections.flush(false);
        assert_eq!(connections.len(), 0);
    }
}
