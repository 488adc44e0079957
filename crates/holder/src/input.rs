//! Input requests in the order of arrival: each waits until it may be typed, and then in the input queue until the program
//! has read it.
//!
//! ```text
//! waiting ──the terminal hides it, or it is not a secret──► on record, in the input queue ──read──► answered
//!   └──it is still shown after SECRET_PATIENCE──► refused, nothing of it typed
//! ```
//! A repeated request joins the first one, wherever that is, and gets the same answer.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use sys::pty::Modes;
use wire::{Key, Status, is_same_name};

use crate::connections::Caller;
use crate::input_queue::{InputDone, InputQueue};

/// How long a secret waits for the program to turn echo off: programs print their question first.
const SECRET_PATIENCE_US: u64 = 100_000;
/// Poll interval for the echo flag; no event reports it.
const SECRET_RETRY_US: u64 = 1_000;
/// How many requests may wait, and how many of one key may wait for one answer; a server has no reason for more.
const WAITING_MAX: usize = 1024;
/// The bytes that all waiting requests may hold.
const WAITING_BYTES_MAX: usize = 2 << 20;

/// An input request that is not in the input queue yet.
#[derive(Debug)]
pub(crate) struct InputRequest {
    /// The callers of the first request, and of later ones with the same idempotency key.
    pub(crate) from: Vec<Caller>,
    pub(crate) key: Key,
    pub(crate) is_secret: bool,
    pub(crate) patience_us: u64,
    pub(crate) bytes: Vec<u8>,
    /// The command that this line hands over.
    pub(crate) command: Option<Line>,
    /// The deadline of a secret's wait; set when it becomes the first in the queue.
    pub(crate) until: Option<u64>,
}

/// A command that is typed as a line, where no private key hands it over.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) is_inside: bool,
    pub(crate) nonce: u64,
    pub(crate) text: Vec<u8>,
}

/// The outcome for a new request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It waits behind the earlier requests.
    Waits,
    /// The same request came before; both get one answer.
    Joined,
    /// The answer.
    Refused(Status, u64),
}

/// The outcome for the first waiting request.
#[derive(Debug)]
pub(crate) enum Next {
    /// It may be typed now.
    Typed(InputRequest),
    /// It is a secret that the terminal would show.
    WouldShow(InputRequest),
}

#[derive(Debug, Default)]
pub(crate) struct Input {
    waiting: VecDeque<InputRequest>,
    queue: InputQueue,
}

impl Input {
    pub(crate) fn admit(&mut self, request: InputRequest) -> Admission {
        let Some(from) = request.from.first().copied() else { return Admission::Joined };
        let earlier = match self.queue.same(&request.key) {
            Some(queued) => Some((queued.key, &mut queued.from)),
            None => {
                let same = self.waiting.iter_mut().find(|r| is_same_name(&r.key, &request.key));
                same.map(|r| (r.key, &mut r.from))
            }
        };
        match earlier {
            Some((key, _)) if key != request.key => return Admission::Refused(Status::KeyReused, 0),
            Some((_, callers)) if callers.len() < WAITING_MAX => {
                callers.push(from);
                return Admission::Joined;
            }
            Some(_) => return Admission::Refused(Status::Failed, again()),
            None => {}
        }
        let bytes: usize = self.waiting.iter().map(|r| r.bytes.len()).sum();
        if self.waiting.len() >= WAITING_MAX || bytes + request.bytes.len() > WAITING_BYTES_MAX {
            return Admission::Refused(Status::Stalled, 0);
        }
        self.waiting.push_back(request);
        Admission::Waits
    }

    /// Takes the first waiting request if its turn has come. `is_shown` is asked only for a secret: whether typed bytes
    /// become visible now. After the shell's exit every request is taken at once.
    pub(crate) fn next(&mut self, has_exited: bool, is_shown: impl FnOnce() -> bool, now: u64) -> Option<Next> {
        let first = self.waiting.front_mut()?;
        if !first.is_secret || has_exited {
            return self.waiting.pop_front().map(Next::Typed);
        }
        // The program can ask for the secret only after it has read the input queued before it.
        if !self.queue.is_empty() {
            return None;
        }
        if !is_shown() {
            return self.waiting.pop_front().map(Next::Typed);
        }
        let until = *first.until.get_or_insert(now + SECRET_PATIENCE_US);
        if now < until {
            return None;
        }
        self.waiting.pop_front().map(Next::WouldShow)
    }

    /// Whether any request waits to be typed.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether any bytes wait for a program to read them.
    pub(crate) fn is_writing(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether the input queue has room and the terminal can take these bytes.
    pub(crate) fn takes(&self, bytes: &[u8], modes: Option<Modes>) -> Result<(), (Status, u64)> {
        self.queue.takes(bytes, modes)
    }

    /// Moves a request into the input queue. `command` is the number of the command that it hands over, or 0.
    pub(crate) fn push(&mut self, request: InputRequest, command: u32, now: u64) {
        let InputRequest { from, key, is_secret, patience_us, bytes, .. } = request;
        self.queue.push(from, key, bytes, (command, is_secret), patience_us, now);
    }

    /// Writes as much as the terminal takes now; returns the finished requests.
    pub(crate) fn write(&mut self, leader: BorrowedFd<'_>, now: u64) -> Vec<InputDone> {
        self.queue.turn(leader, now)
    }

    /// Drops the input queue; returns its requests.
    pub(crate) fn give_up(&mut self) -> Vec<InputDone> {
        self.queue.give_up()
    }

    /// When a request times out, or when to check again whether a waiting one may be typed.
    pub(crate) fn next_at(&self, now: u64) -> Option<u64> {
        let retry_at = self.waiting.front().filter(|_| self.queue.is_empty()).map(|_| now + SECRET_RETRY_US);
        self.queue.next_at().into_iter().chain(retry_at).min()
    }
}

/// EAGAIN: too many requests wait for the same answer.
fn again() -> u64 {
    rustix::io::Errno::AGAIN.raw_os_error().unsigned_abs().into()
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use super::*;

    fn request(seq: u32, key: u8, is_secret: bool) -> InputRequest {
        let (from, key) = (vec![(1, seq)], [key; 16]);
        InputRequest { from, key, is_secret, patience_us: 9, bytes: b"x".to_vec(), command: None, until: None }
    }

    #[test]
    fn a_repeated_request_joins_the_first_one_wherever_it_waits() {
        let mut input = Input::default();
        assert_eq!(input.admit(request(1, 7, false)), Admission::Waits);
        assert_eq!(input.admit(request(2, 7, false)), Admission::Joined);
        let Some(Next::Typed(first)) = input.next(false, || true, 0) else { panic!("it is no secret") };
        assert_eq!(first.from, [(1, 1), (1, 2)]);
        input.push(first, 0, 0);
        assert_eq!(input.admit(request(3, 7, false)), Admission::Joined);
        let other_body = InputRequest {
            key: [[7; 8], [8; 8]].as_flattened().try_into().unwrap_or_default(),
            ..request(4, 7, false)
        };
        assert_eq!(input.admit(other_body), Admission::Refused(Status::KeyReused, 0));
        let from: Vec<_> = input.give_up().into_iter().flat_map(|done| done.from).collect();
        assert_eq!(from, [(1, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn a_secret_waits_until_the_terminal_hides_it_or_its_wait_expires() {
        let mut input = Input::default();
        input.admit(request(1, 1, true));
        assert!(input.next(false, || true, 10).is_none());
        assert_eq!(input.next_at(10), Some(10 + SECRET_RETRY_US));
        assert!(matches!(input.next(false, || false, 20), Some(Next::Typed(_))));
        input.admit(request(2, 2, true));
        assert!(input.next(false, || true, 30).is_none());
        assert!(input.next(false, || true, 29 + SECRET_PATIENCE_US).is_none());
        assert!(matches!(input.next(false, || true, 30 + SECRET_PATIENCE_US), Some(Next::WouldShow(_))));
    }

    #[test]
    fn a_secret_waits_for_the_input_before_it_unless_the_shell_has_exited() {
        let mut input = Input::default();
        input.push(request(1, 1, false), 0, 0);
        input.admit(request(2, 2, true));
        assert!(input.next(false, || false, 0).is_none());
        assert!(matches!(input.next(true, || true, 0), Some(Next::Typed(_))));
    }

    #[test]
    fn requests_wait_up_to_a_bound() {
        let mut input = Input::default();
        for seq in 0..WAITING_MAX {
            let request = InputRequest { key: wire::NO_KEY, ..request(seq as u32, 0, true) };
            assert_eq!(input.admit(request), Admission::Waits);
        }
        assert_eq!(input.admit(request(0, 1, true)), Admission::Refused(Status::Stalled, 0));
    }
}
