//! A follower of the events of all sessions.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use api::{Event, EventKind};

use crate::{PATIENCE, Server};

/// A follower.
pub struct Follower {
    lines: BufReader<TcpStream>,
    /// The newest id.
    pub last: String,
}

impl Follower {
    /// Connects, and has read the place where it begins.
    pub fn open(server: &Server, token: &str, last: Option<&str>) -> Self {
        let mut wire = TcpStream::connect(server.address()).expect("it listens");
        wire.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!("GET /events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n{last}\r\n");
        wire.write_all(head.as_bytes()).expect("it listens");
        let mut follower = Self { lines: BufReader::new(wire), last: String::new() };
        while follower.last.is_empty() {
            assert!(follower.line().is_some(), "it begins with a place");
        }
        follower
    }

    /// A line, sizes of chunks and all; none at the end.
    pub fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let n = self.lines.read_line(&mut line).expect("something comes in time");
        if let Some(id) = line.strip_prefix("id: ") {
            self.last = id.trim_end().to_owned();
        }
        (n > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event.
    pub fn next_event(&mut self) -> Event {
        loop {
            let line = self.line().expect("the stream goes on");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("an event");
            }
        }
    }

    /// The kinds of the next events.
    pub fn kinds(&mut self, count: usize) -> Vec<EventKind> {
        (0..count).map(|_| self.next_event().event).collect()
    }
}
