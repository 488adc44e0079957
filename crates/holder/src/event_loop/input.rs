//! Input requests: typed in the order of arrival, once per idempotency key, recorded before they are written, and a
//! secret only while the terminal does not echo.
//!
//! ```text
//! asked ──the terminal hides it, or it is no secret──► on record, at the keyboard ──read──► answered
//!   └──it is still shown after SECRET_PATIENCE──► refused, nothing of it typed
//! ```
//! A repeated request joins the first one, wherever that is, and gets the same answer.

use super::*;
use crate::foreground_sampler::is_editing;

/// How long a secret waits for the program to turn echo off: programs print their question first.
const SECRET_PATIENCE_US: u64 = 100_000;
/// Poll interval for the echo flag; no event reports it.
const SECRET_RETRY_US: u64 = 1_000;
/// How many requests may wait, and how many of one key may wait for one answer; a server has no reason for more.
const ASKED_MAX: usize = 1024;
/// The bytes that all waiting requests may hold.
const ASKED_BYTES_MAX: usize = 2 << 20;

/// An input request that is not in the input queue yet.
pub(super) struct InputRequest {
    /// Clients and sequence numbers: of the first request, and of later ones with the same idempotency key.
    pub(super) from: Vec<(u64, u32)>,
    pub(super) key: Key,
    pub(super) is_secret: bool,
    pub(super) patience_us: u64,
    pub(super) bytes: Vec<u8>,
    /// The command that this line hands over.
    pub(super) command: Option<Line>,
    /// The deadline of a secret's wait; set when it becomes the first in the queue.
    pub(super) until: Option<u64>,
}

/// A command that is typed as a line, where no private key hands it over.
pub(super) struct Line {
    /// Its number, or 0 for the next one.
    pub(super) id: u32,
    pub(super) is_inside: bool,
    pub(super) nonce: u64,
    pub(super) text: Vec<u8>,
}

impl Holder {
    pub(super) fn queue_input(&mut self, asked: InputRequest, now: u64) {
        let Some(from) = asked.from.first().copied() else { return };
        if let Some((status, value)) = self.prompt.earlier(&asked.key) {
            return self.answer_untyped(&[from], status, value, now);
        }
        let has_room = |callers: &Vec<(u64, u32)>| callers.len() < ASKED_MAX;
        let earlier = match self.keyboard.same(&asked.key) {
            Some(typing) => Some((typing.key, &mut typing.from)),
            None => self.asked.iter_mut().find(|a| is_same_name(&a.key, &asked.key)).map(|a| (a.key, &mut a.from)),
        };
        match earlier {
            Some((key, _)) if key != asked.key => return self.answer_untyped(&[from], Status::KeyReused, 0, now),
            Some((_, callers)) if has_room(callers) => return callers.push(from),
            Some(_) => return self.answer_untyped(&[from], Status::Failed, again(), now),
            None => {}
        }
        let waiting: usize = self.asked.iter().map(|a| a.bytes.len()).sum();
        if self.asked.len() >= ASKED_MAX || waiting + asked.bytes.len() > ASKED_BYTES_MAX {
            return self.answer_untyped(&[from], Status::Stalled, 0, now);
        }
        self.asked.push_back(asked);
        self.start_input(now);
    }

    /// Moves every request that may be typed now into the input queue, in order.
    pub(super) fn start_input(&mut self, now: u64) {
        if self.exit.is_none() && !self.asked.is_empty() && self.awaits_beginning(now) {
            return;
        }
        while let Some(first) = self.asked.front() {
            if first.is_secret && self.exit.is_none() {
                // The program can ask for the secret only after it has read the input queued before it.
                if !self.keyboard.is_empty() {
                    return;
                }
                if self.shows_what_is_typed() {
                    let until = first.until.unwrap_or(now + SECRET_PATIENCE_US);
                    if now < until {
                        if let Some(first) = self.asked.front_mut() {
                            first.until = Some(until);
                        }
                        return;
                    }
                    if let Some(refused) = self.asked.pop_front() {
                        self.answer_untyped(&refused.from, Status::WouldEcho, 0, now);
                    }
                    continue;
                }
            }
            if let Some(asked) = self.asked.pop_front() {
                self.take(asked, now);
            }
        }
    }

    /// Whether a command that was handed over has not begun and the shell's line editor still has the terminal: its modes
    /// map no carriage return to a newline, so the command would read a line without an end.
    fn awaits_beginning(&mut self, now: u64) -> bool {
        let Some((nonce, from)) = self.prompt.awaited_marker(now) else { return false };
        let bytes = self.journal.end().since(from);
        if bytes > MARKER_SOUGHT_BYTES as u64 || self.newest_place_of(nonce.to_string().as_bytes(), bytes).is_some() {
            self.prompt.has_begun();
            return false;
        }
        pty::foreground_group(self.leader.as_fd()) == self.shell_pid
            && pty::modes(self.leader.as_fd()).is_ok_and(|modes| is_editing(&modes))
    }

    /// When to check again whether a waiting request may be typed.
    pub(super) fn input_retry_at(&self, now: u64) -> Option<u64> {
        self.asked.front().filter(|_| self.keyboard.is_empty()).map(|_| now + SECRET_RETRY_US)
    }

    /// Whether typed bytes become visible: the kernel echoes them, or the shell's line editor does.
    fn shows_what_is_typed(&self) -> bool {
        let modes = pty::modes(self.leader.as_fd());
        modes.is_ok_and(|m| m.echo || self.shell_edits() && !m.canonical)
    }

    /// Whether the shell is at its prompt, where its line editor echoes input. While a line typed there has not ended,
    /// the shell is not at its prompt: the program it runs may ask for a secret, also through the shell's own line
    /// editor.
    fn shell_edits(&self) -> bool {
        self.prompt.shell == Phase::Ready && pty::foreground_group(self.leader.as_fd()) == self.shell_pid
    }

    fn take(&mut self, asked: InputRequest, now: u64) {
        let InputRequest { from, key, is_secret, patience_us, bytes, mut command, .. } = asked;
        if self.exit.is_some() {
            return self.answer_all(&from, Status::Ended, 0);
        }
        let modes = pty::modes(self.leader.as_fd()).ok();
        if let Err((status, value)) = self.keyboard.takes(&bytes, modes) {
            return self.answer_untyped(&from, status, value, now);
        }
        // Without echo the input counts as a secret, unless the shell's own line editor echoes it. Input queued behind
        // other input counts as a secret too: which program will read it is not known yet.
        let is_hidden = || modes.is_none_or(|m| !m.echo && (m.canonical || !self.shell_edits()));
        let is_hidden = is_secret || !self.keyboard.is_empty() || is_hidden();
        if let Some(line) = &mut command {
            line.id = self.prompt.number(line.id);
        }
        if let Err(e) = self.put_on_record(key, &bytes, is_hidden, command.as_ref()) {
            let errno = e.raw_os_error().unwrap_or(0).unsigned_abs();
            return self.answer_untyped(&from, Status::Failed, errno.into(), now);
        }
        self.prompt.typed(&bytes);
        if bytes.last() == Some(&0x03) {
            self.prompt.interrupted(now);
        }
        self.typed_at = now;
        self.idle_until = 0;
        let command = command.map_or(0, |line| line.id);
        self.keyboard.push(from, key, bytes, (command, is_secret), patience_us, now);
        self.write_input(now);
    }

    fn put_on_record(&mut self, key: Key, bytes: &[u8], is_secret: bool, command: Option<&Line>) -> io::Result<()> {
        let end = self.journal.end();
        // The key belongs to the command's record; the record of the bytes that hand it over has none.
        let key = match command {
            Some(Line { id, is_inside, nonce, text }) => {
                let line = Record::Typed { id: *id, is_inside: *is_inside, nonce: *nonce, key, text };
                self.events.record(time::wall_us(), end, &line)?;
                NO_KEY
            }
            None => key,
        };
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let bytes = if is_secret { &[] } else { bytes };
        self.events.record(time::wall_us(), end, &Record::Input { key, len, is_secret, bytes }).map(drop)
    }

    pub(super) fn write_input(&mut self, now: u64) {
        if self.keyboard.is_empty() {
            return;
        }
        for typed in self.keyboard.turn(self.leader.as_fd(), now) {
            // The program that waited has input now, so an earlier foreground sample is out of date.
            self.sampler.typed(now, pty::modes(self.leader.as_fd()).is_ok_and(|m| m.echo));
            self.is_typed(&typed, now);
        }
        self.schedule_look(now);
    }

    /// Drops the queued input together with unread terminal input; tells each sender how many bytes were written.
    pub(super) fn drop_queued_input(&mut self, now: u64) {
        for typed in self.keyboard.give_up() {
            self.is_typed(&typed, now);
        }
    }

    fn is_typed(&mut self, typed: &InputDone, now: u64) {
        self.prompt.remember(typed.key, typed.status, typed.value);
        if typed.is_command {
            // The command's record is published before the answer that names it.
            self.announce_by = Some(now);
            self.publish(now);
        }
        self.answer_all(&typed.from, typed.status, typed.value);
    }

    /// Answers a request of which nothing was typed. A server that sent input discards the foreground state it knew, so
    /// the state is sent again.
    fn answer_untyped(&mut self, from: &[(u64, u32)], status: Status, value: u64, now: u64) {
        self.sampler.forget();
        self.schedule_look(now);
        self.answer_all(from, status, value);
    }

    pub(super) fn answer_all(&mut self, from: &[(u64, u32)], status: Status, value: u64) {
        for from in from {
            self.answer(*from, status, value);
        }
    }
}

/// EAGAIN: too many requests wait for the same answer.
fn again() -> u64 {
    rustix::io::Errno::AGAIN.raw_os_error().unsigned_abs().into()
}
