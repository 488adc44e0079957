//! Moves output from the terminal into the journal: no faster than the throttle allows, not at all while the disk is full,
//! and with the least memory while the session is quiet.

use std::os::fd::BorrowedFd;

use journal::{Offset, Record, TroubleKind};
use rustix::io::Errno;

use crate::output_pump::{Pump, Turn, Until};
use crate::output_throttle::Throttle;
use crate::records::{MARKER_SOUGHT_BYTES, Records};

/// Retry interval while the disk is full.
const FULL_RETRY_US: u64 = 200_000;
/// Retry interval for a hung-up terminal: a daemon may open it again.
const HUNG_UP_RETRY_US: u64 = 200_000;
/// Output read after the shell's exit: more than a terminal holds (tty_buffer.c, n_tty.c). Anything beyond it is
/// written by a process that outlived the shell.
const LAST_BYTES_MAX: u64 = 1 << 20;
/// The most that a PTY buffers before its writer blocks (pty.c, n_tty.c), with a margin.
const HELD_BYTES_MAX: usize = 16 << 10;
/// The end of every mark that the scripts in shell-integration/ print.
const BEL: u8 = 0x07;
/// After this long without output the pump shrinks its pipe or buffer.
const QUIET_US: u64 = 2_000_000;

#[derive(Debug)]
pub(crate) struct Output {
    pump: Pump,
    throttle: Throttle,
    /// The command for which throttled output was last recorded.
    recorded_for: Option<u32>,
    /// The command whose output is being moved. Output that is moved on the way to an end marker still belongs to the
    /// ended command.
    command: u32,
    /// The journal's end at the beginning of this turn.
    turn_from: Offset,
    /// When to try the terminal again after the disk was full or the terminal hung up.
    retry_at: Option<u64>,
    is_full: bool,
    has_more: bool,
    quiet_at: Option<u64>,
    /// There was no output for a while: return the memory that the last turns used.
    gives_back: bool,
}

impl Output {
    /// `rate` is in bytes per second; 0 means unlimited.
    pub(crate) fn new(may_splice: bool, rate: u64, now: u64) -> Self {
        Self {
            pump: Pump::new(may_splice),
            throttle: Throttle::new(rate, now),
            recorded_for: None,
            command: 0,
            turn_from: Offset::ZERO,
            retry_at: None,
            is_full: false,
            has_more: false,
            quiet_at: None,
            gives_back: false,
        }
    }

    /// Moves the output of one turn; true if there was any. `command` is the running one.
    pub(crate) fn turn(
        &mut self,
        leader: BorrowedFd<'_>,
        records: &mut Records,
        command: u32,
        until: Until,
        now: u64,
    ) -> bool {
        self.turn_from = records.end();
        if self.retry_at.is_some_and(|at| at > now) {
            return false;
        }
        self.retry_at = None;
        if self.throttle.awaited().is_none() {
            self.command = command;
        }
        let most = self.throttle.allowance(now);
        let has_more = most > 0 && self.pump_once(leader, records, now, most, until) == Turn::More;
        self.has_more = has_more && self.throttle.held_until().is_none();
        if let Some(errno) = self.pump.refused.take() {
            records.trouble(TroubleKind::SPLICE_REFUSED, errno.raw_os_error(), b"copying instead");
        }
        let has_moved = records.end() > self.turn_from;
        if has_moved {
            self.quiet_at = Some(now + QUIET_US);
        }
        has_moved
    }

    /// Frees what output needed, if there was none for a while.
    pub(crate) fn rest_if_due(&mut self, now: u64) {
        if self.quiet_at.is_some_and(|at| at <= now) {
            self.quiet_at = None;
            self.pump.rest();
            self.gives_back = true;
        }
    }

    /// One turn of the pump; records when the disk becomes full and when it has room again.
    fn pump_once(
        &mut self,
        leader: BorrowedFd<'_>,
        records: &mut Records,
        now: u64,
        most: usize,
        until: Until,
    ) -> Turn {
        let before = records.end();
        let turn = match self.pump.turn(leader, records.journal(), most, until) {
            Turn::Cut => match records.give_up_journal() {
                Ok(()) => Turn::More,
                Err(e) => Turn::Full(Errno::from_io_error(&e).unwrap_or(Errno::IO)),
            },
            turn => turn,
        };
        self.count_throttled(records, before, now);
        match turn {
            Turn::Full(errno) => {
                self.retry_at = Some(now + FULL_RETRY_US);
                if !self.is_full {
                    self.is_full = true;
                    let words = b"the journal cannot grow; the program waits";
                    records.trouble(TroubleKind::DISK_FULL, errno.raw_os_error(), words);
                }
            }
            Turn::Drained | Turn::More | Turn::Cut | Turn::HungUp if self.is_full => {
                self.is_full = false;
                records.trouble(TroubleKind::RECOVERED, 0, b"there is room again; nothing was lost");
            }
            Turn::HungUp => self.retry_at = Some(now + HUNG_UP_RETRY_US),
            Turn::Drained | Turn::More | Turn::Cut => {}
        }
        turn
    }

    /// Counts the bytes moved since `before`. A delay is recorded once per command, and once between two commands.
    fn count_throttled(&mut self, records: &mut Records, before: Offset, now: u64) {
        let command = self.command;
        let was_held = self.throttle.passed(records.end().since(before), now);
        if was_held && self.recorded_for.replace(command) != Some(command) {
            records.note(&Record::Limited { limit: wire::OUTPUT_RATE, command, count: 1 });
        }
        let has_come = |nonce: &[u8]| records.newest_place_of(nonce, MARKER_SOUGHT_BYTES as u64).is_some();
        if self.throttle.awaited().is_some_and(has_come) {
            self.throttle.arrived();
        }
    }

    /// Moves everything that the terminal holds; false if the journal cannot take all of it now.
    pub(crate) fn drain(&mut self, leader: BorrowedFd<'_>, records: &mut Records, now: u64) -> bool {
        let enough = records.end().plus(LAST_BYTES_MAX);
        while self.pump_once(leader, records, now, usize::MAX, Until::Empty) == Turn::More && records.end() < enough {}
        !self.is_full
    }

    /// Moves what is left in the terminal, also what the throttle holds back; true if there was any.
    pub(crate) fn pass_held(&mut self, leader: BorrowedFd<'_>, records: &mut Records, now: u64) -> bool {
        let before = records.end();
        if self.retry_at.is_none() {
            self.pump_once(leader, records, now, HELD_BYTES_MAX, Until::Empty);
        }
        records.end() > before
    }

    /// The marker with this nonce is on its way: output before it passes the throttle.
    pub(crate) fn await_marker(&mut self, nonce: &[u8]) {
        self.throttle.await_marker(nonce, LAST_BYTES_MAX);
    }

    /// A record could not be appended: try again when the disk may have room.
    pub(crate) fn retry_later(&mut self, now: u64) {
        self.retry_at.get_or_insert(now + FULL_RETRY_US);
    }

    /// The offset of this nonce in the output that was moved last.
    pub(crate) fn place_of(&self, nonce: &[u8], records: &Records) -> Option<Offset> {
        match self.moved(records) {
            Some(moved) => records.place_in(moved, nonce),
            None => records.newest_place_of(nonce, records.end().since(self.turn_from)),
        }
    }

    /// Whether a mark of the shell may end in the output that was moved last: all of them end with BEL.
    pub(crate) fn may_end_a_mark(&self, records: &Records) -> bool {
        self.moved(records).is_none_or(|moved| moved.contains(&BEL))
    }

    /// The output that was moved last, if all of it is still in memory.
    fn moved(&self, records: &Records) -> Option<&[u8]> {
        let newest = self.pump.newest();
        let moved = usize::try_from(records.end().since(self.turn_from)).ok()?;
        newest.get(newest.len().checked_sub(moved)?..)
    }

    pub(crate) fn disk_is_full(&self) -> bool {
        self.is_full
    }

    /// When output that passed the throttle in advance is made up for; `None` if there is none.
    pub(crate) fn blocked_until(&self) -> Option<u64> {
        self.throttle.blocked_until()
    }

    /// Whether the terminal is worth polling for output.
    pub(crate) fn is_polled(&self) -> bool {
        self.retry_at.is_none() && self.throttle.held_until().is_none()
    }

    /// When to try again after a full disk or a hang-up.
    pub(crate) fn retry_at(&self) -> Option<u64> {
        self.retry_at
    }

    /// Whether output waits that poll(2) need not report: the turn was too long, or the journal was cut.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// When the next turn is due without an event.
    pub(crate) fn next_at(&self, now: u64) -> Option<u64> {
        let timers = [self.retry_at, self.throttle.held_until(), self.quiet_at, self.has_more.then_some(now)];
        timers.into_iter().flatten().min()
    }

    /// Whether unused memory is to be returned now; true once per pause.
    pub(crate) fn take_gives_back(&mut self) -> bool {
        std::mem::take(&mut self.gives_back)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn output_that_a_throttle_holds_back_stays_in_the_terminal_and_is_recorded_once_per_command() {
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), 0).unwrap();
        let pty = sys::pty::Pty::open(80, 24).unwrap();
        let mut output = Output::new(true, 10, 0);
        rustix::io::write(&pty.follower, &[b'x'; 40]).unwrap();
        assert!(output.turn(pty.leader.as_fd(), &mut records, 1, Until::Pause, 0));
        assert_eq!((records.end(), output.is_polled(), output.has_more), (Offset(10), false, false));
        let before = records.tail().unwrap().events;
        for _ in 0..2 {
            let at = output.next_at(0).unwrap();
            output.turn(pty.leader.as_fd(), &mut records, 1, Until::Pause, at);
        }
        let once = records.tail().unwrap().events;
        assert!(once > before && records.end() > Offset(10));
        output.pass_held(pty.leader.as_fd(), &mut records, 0);
        assert_eq!((records.end(), records.tail().unwrap().events), (Offset(40), once));
    }

    #[test]
    // promise: end-2
    fn output_without_a_marks_end_is_known_by_its_bytes_and_a_flood_may_contain_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), 0).unwrap();
        let pty = sys::pty::Pty::open(80, 24).unwrap();
        let mut output = Output::new(true, 0, 0);
        let mut may_end_a_mark = |printed: &[u8], until| {
            rustix::io::write(&pty.follower, printed).unwrap();
            assert!(output.turn(pty.leader.as_fd(), &mut records, 0, until, 0));
            output.may_end_a_mark(&records)
        };
        for (printed, may_end) in [("$ ", false), ("\x1b]7337;D;", false), ("5\x07", true), ("x", false)] {
            assert_eq!(may_end_a_mark(printed.as_bytes(), Until::Pause), may_end, "{printed:?}");
        }
        // Of what is longer, or read until nothing is left, nothing is in memory.
        assert!(may_end_a_mark(&[b'x'; 2000], Until::Pause) && may_end_a_mark(b"x", Until::Empty));
    }

    #[test]
    fn memory_is_given_back_once_when_a_session_becomes_quiet() {
        let folder = tempfile::tempdir().unwrap();
        let mut records = Records::create(folder.path(), 0).unwrap();
        let pty = sys::pty::Pty::open(80, 24).unwrap();
        let mut output = Output::new(true, 0, 0);
        rustix::io::write(&pty.follower, b"x").unwrap();
        assert!(output.turn(pty.leader.as_fd(), &mut records, 0, Until::Pause, 0));
        assert_eq!(output.next_at(1), Some(QUIET_US));
        output.rest_if_due(QUIET_US - 1);
        assert!(!output.take_gives_back());
        output.rest_if_due(QUIET_US);
        assert!(output.take_gives_back());
        output.rest_if_due(QUIET_US + 1);
        assert!(!output.take_gives_back());
    }
}
