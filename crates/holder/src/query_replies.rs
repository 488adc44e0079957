//! The server's replies to terminal queries: each query is answered once, and only for the program that asked.
//!
//! A query before the newest prompt came from a program that is gone, and the line editor would take the reply for keys,
//! so that reply is dropped. So is one to a line editor that has been given a line since: the program of that line would
//! read it. If the tty would echo a reply, it waits for the program to disable echo, or for the next
//! prompt.

use std::collections::VecDeque;

use journal::Offset;

/// If the tty would echo a query reply, the reply waits this long for the program to disable echo. Not all programs do.
const ECHO_PATIENCE_US: u64 = 100_000;
/// How often the tty's echo flag is polled for that; no event reports it.
const RETRY_US: u64 = 1_000;
/// Query replies that may be queued.
const REPLIES_MAX: usize = 256;

#[derive(Debug)]
struct Reply {
    /// The offset where the query ended.
    query: Offset,
    /// The deadline of the wait.
    until: u64,
    bytes: Vec<u8>,
}

/// The outcome for the oldest reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Write(Vec<u8>),
    Drop,
}

#[derive(Debug, Default)]
pub(crate) struct QueryReplies {
    /// Queries up to here are answered.
    answered: Offset,
    /// The value of `answered` in the newest record.
    recorded: Offset,
    queue: VecDeque<Reply>,
    /// A program that sent its query before this offset does not read the reply any more.
    wanted_from: Offset,
}

impl QueryReplies {
    /// Queues the reply of the first server that answers this query.
    pub(crate) fn accept(&mut self, query: Offset, bytes: Vec<u8>, now: u64) {
        if query > self.answered {
            self.answered = query;
            self.queue.push_back(Reply { query, until: now + ECHO_PATIENCE_US, bytes });
        }
    }

    /// Drops the replies to queries before this offset, at which the shell's prompt or the output of a line begins.
    pub(crate) fn drop_before(&mut self, at: Offset) {
        self.wanted_from = at;
    }

    /// Queries up to this offset are answered.
    pub(crate) fn answered(&self) -> Offset {
        self.answered
    }

    /// The same, if it is not on record yet.
    pub(crate) fn unrecorded(&self) -> Option<Offset> {
        Some(self.answered).filter(|answered| *answered > self.recorded)
    }

    pub(crate) fn recorded(&mut self, query: Offset) {
        self.recorded = query;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the oldest reply, unless it waits for the program to disable echo.
    pub(crate) fn next(&mut self, is_echoed: bool, now: u64) -> Option<Next> {
        let first = self.queue.front()?;
        let is_wanted = first.query > self.wanted_from;
        if is_wanted && is_echoed && now < first.until && self.queue.len() < REPLIES_MAX {
            return None;
        }
        self.queue.pop_front().map(|reply| if is_wanted { Next::Write(reply.bytes) } else { Next::Drop })
    }

    /// When to try again.
    pub(crate) fn next_at(&self, now: u64) -> Option<u64> {
        self.queue.front().map(|_| now + RETRY_US)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_answered_once() {
        let mut replies = QueryReplies::default();
        replies.accept(Offset(5), b"a".to_vec(), 0);
        replies.accept(Offset(5), b"b".to_vec(), 0);
        replies.accept(Offset(4), b"c".to_vec(), 0);
        assert_eq!(replies.next(false, 0), Some(Next::Write(b"a".to_vec())));
        assert_eq!((replies.next(false, 0), replies.unrecorded()), (None, Some(Offset(5))));
        replies.recorded(Offset(5));
        assert_eq!(replies.unrecorded(), None);
    }

    #[test]
    fn a_reply_that_would_be_echoed_waits_and_one_from_before_the_prompt_is_dropped() {
        let mut replies = QueryReplies::default();
        replies.accept(Offset(5), b"a".to_vec(), 0);
        replies.accept(Offset(9), b"b".to_vec(), 0);
        assert_eq!((replies.next(true, 1), replies.next_at(1)), (None, Some(1 + RETRY_US)));
        replies.drop_before(Offset(5));
        assert_eq!(replies.next(true, 2), Some(Next::Drop));
        assert_eq!(replies.next(true, ECHO_PATIENCE_US - 1), None);
        assert_eq!(replies.next(true, ECHO_PATIENCE_US), Some(Next::Write(b"b".to_vec())));
    }

    #[test]
    fn no_more_replies_wait_than_the_bound() {
        let mut replies = QueryReplies::default();
        for n in 1..=REPLIES_MAX as u64 {
            replies.accept(Offset(n), Vec::new(), 0);
        }
        assert_eq!(replies.next(true, 0), Some(Next::Write(Vec::new())));
        assert_eq!(replies.next(true, 0), None);
    }
}
