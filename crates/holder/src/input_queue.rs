//! Writes input to the terminal so that all of it arrives, or reports how many bytes did.
//!
//! In canonical mode the kernel keeps at most 4,096 bytes of a line and silently drops the rest (termios(3), n_tty.c).
//! A longer line is therefore written in pieces, and each piece is pushed to the reader with the end-of-file character,
//! which after other characters does not end the input.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use sys::pty::Modes;

use wire::{Key, Status, is_same_name};

/// How much of one line is written at once; the kernel's own limit is 4,095 bytes and a newline.
const PIECE_BYTES: usize = 3_500;
/// How many bytes may wait for a program to read.
const WAITING_BYTES_MAX: usize = 2 << 20;

/// One queued request.
#[derive(Debug)]
pub(crate) struct QueuedInput {
    /// Clients and sequence numbers of the requests.
    pub(crate) from: Vec<(u64, u32)>,
    pub(crate) key: Key,
    /// The command that this line hands over, 0 for none.
    command: u32,
    is_secret: bool,
    bytes: Vec<u8>,
    written: usize,
    patience_us: u64,
    gives_up_at: u64,
}

/// All queued input, in order.
#[derive(Debug, Default)]
pub(crate) struct InputQueue {
    queue: VecDeque<QueuedInput>,
    waiting: usize,
    /// How many bytes of the current canonical line the kernel holds.
    line: usize,
    /// A piece was written and its end-of-file character was not.
    push_pending: bool,
}

/// A finished request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InputDone {
    pub(crate) from: Vec<(u64, u32)>,
    pub(crate) key: Key,
    pub(crate) status: Status,
    /// Of a command its number, and if its line was not written in full also the number of bytes written; else only
    /// those.
    pub(crate) value: u64,
    pub(crate) is_command: bool,
}

impl QueuedInput {
    fn over(self, status: Status) -> InputDone {
        let is_command = self.command != 0;
        let value = match (is_command, status) {
            (true, Status::Ok) => u64::from(self.command),
            (true, _) => wire::in_part(self.command, self.written),
            (false, _) => self.written as u64,
        };
        InputDone { from: self.from, key: self.key, status, value, is_command }
    }
}

impl InputQueue {
    /// Whether the queue has room and the terminal can take these bytes.
    pub(crate) fn takes(&self, bytes: &[u8], modes: Option<Modes>) -> Result<(), (Status, u64)> {
        if self.waiting + bytes.len() > WAITING_BYTES_MAX {
            return Err((Status::Stalled, 0));
        }
        if modes.is_some_and(|m| m.canonical && cannot_be_split(bytes, &m)) {
            return Err((Status::LineTooLong, PIECE_BYTES as u64));
        }
        Ok(())
    }

    pub(crate) fn push(
        &mut self,
        from: Vec<(u64, u32)>,
        key: Key,
        bytes: Vec<u8>,
        (command, is_secret): (u32, bool),
        patience_us: u64,
        now: u64,
    ) {
        self.waiting += bytes.len();
        let gives_up_at = now + patience_us;
        self.queue.push_back(QueuedInput {
            from,
            key,
            command,
            is_secret,
            bytes,
            written: 0,
            patience_us,
            gives_up_at,
        });
    }

    /// The queued request with the same caller's key.
    pub(crate) fn same(&mut self, key: &Key) -> Option<&mut QueuedInput> {
        self.queue.iter_mut().find(|typing| is_same_name(&typing.key, key))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// When the first request times out.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.queue.front().map(|t| t.gives_up_at)
    }

    /// Drops all queued input; the line that the kernel held is gone, too.
    pub(crate) fn give_up(&mut self) -> Vec<InputDone> {
        (self.waiting, self.line, self.push_pending) = (0, 0, false);
        self.queue.drain(..).map(|typing| typing.over(Status::Stalled)).collect()
    }

    /// Writes as much as the terminal takes now; returns the finished requests.
    pub(crate) fn turn(&mut self, leader: BorrowedFd<'_>, now: u64) -> Vec<InputDone> {
        let mut over = Vec::new();
        while let Some(typing) = self.queue.front_mut() {
            // The program that had read a part of the secret may be gone, and the next one may echo the rest.
            let is_left = typing.written < typing.bytes.len();
            let is_shown = typing.is_secret && is_left && sys::pty::modes(leader).is_ok_and(|m| m.echo);
            let result = match is_shown {
                true => Err(Errno::CANCELED),
                false => write_some(leader, typing, &mut self.line, &mut self.push_pending),
            };
            let (status, done) = match result {
                Err(Errno::CANCELED) => (Status::Stalled, true),
                Ok(0) if typing.written >= typing.bytes.len() => (Status::Ok, true),
                Ok(0) | Err(Errno::AGAIN | Errno::INTR) => (Status::Stalled, now >= typing.gives_up_at),
                Ok(_) => {
                    typing.gives_up_at = now + typing.patience_us;
                    continue;
                }
                Err(_) => (Status::Ended, true),
            };
            if !done {
                break;
            }
            self.waiting -= typing.bytes.len();
            if let Some(t) = self.queue.pop_front() {
                over.push(t.over(status));
            }
        }
        over
    }
}

/// Writes one piece; `Ok(0)` when everything is written.
fn write_some(
    leader: BorrowedFd<'_>,
    typing: &mut QueuedInput,
    line: &mut usize,
    push_pending: &mut bool,
) -> Result<usize, Errno> {
    let rest = typing.bytes.get(typing.written..).unwrap_or_default();
    let modes = sys::pty::modes(leader).ok().filter(|m| m.canonical);
    let Some(modes) = modes else {
        (*line, *push_pending) = (0, false);
        if rest.is_empty() {
            return Ok(0);
        }
        let n = rustix::io::write(leader, rest)?;
        typing.written += n;
        return Ok(n);
    };
    if *push_pending {
        rustix::io::write(leader, &[modes.eof])?;
        (*line, *push_pending) = (0, false);
    }
    if rest.is_empty() {
        return Ok(0);
    }
    let end = rest.iter().position(|b| *b == b'\n' || *b == b'\r').map_or(rest.len(), |i| i + 1);
    let room = PIECE_BYTES.saturating_sub(*line).max(1);
    let piece = rest.get(..end.min(room)).unwrap_or(rest);
    let n = rustix::io::write(leader, piece)?;
    typing.written += n;
    let ended_line = matches!(piece.get(n.wrapping_sub(1)), Some(b'\n' | b'\r'));
    *line = if ended_line { 0 } else { *line + n };
    *push_pending = *line >= PIECE_BYTES && modes.eof != 0;
    Ok(n)
}

/// A long line with editing characters could be empty when a piece of it is pushed, and an empty push means end of
/// file.
fn cannot_be_split(bytes: &[u8], modes: &Modes) -> bool {
    bytes.split(|b| *b == b'\n' || *b == b'\r').any(|line| {
        line.len() > PIECE_BYTES
            && (modes.eof == 0 || line.iter().any(|b| *b != 0 && (*b == modes.eof || modes.specials.contains(b))))
    })
}
