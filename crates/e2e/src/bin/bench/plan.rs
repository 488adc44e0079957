//! The plan of a run: the binaries, and how much time there is.

use e2e::{Binary, Home, Server, Start};

use crate::rounds::Who;

/// The binaries and the size of a run.
#[derive(Debug)]
pub struct Plan {
    /// The binary under test.
    pub ours: Binary,
    /// Another one, to compare with.
    pub other: Option<Binary>,
    /// Few rounds.
    pub is_quick: bool,
    /// The number of sessions that was asked for.
    pub sessions: Option<usize>,
}

impl Plan {
    /// The number of rounds, of which a quick run has half.
    pub fn rounds(&self, full: usize) -> usize {
        if self.is_quick { full / 2 } else { full }
    }

    /// A server of each binary that has done nothing yet.
    pub fn subjects(&self) -> Vec<Subject> {
        let named = [(Who::Ours, Some(&self.ours)), (Who::Other, self.other.as_ref())];
        let start = |(who, binary): (Who, Option<&Binary>)| {
            let server = Server::start_with(binary?.clone(), Home::make(), Start::default());
            Some(Subject { who, server })
        };
        named.into_iter().filter_map(start).collect()
    }
}

/// A running server that is measured.
#[derive(Debug)]
pub struct Subject {
    /// The owner of the binary.
    pub who: Who,
    /// The server.
    pub server: Server,
}
