//! Looks at what the kernel knows about the foreground, often while things move and not at all while nothing can.
//!
//! There is no event for "a process began to read the terminal", so this samples: soon after every sign of life, then
//! ever more slowly, and never at a prompt.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use journal::Offset;
use sys::process::{self, AtLine, Blocked};
use sys::pty::Modes;

use crate::foreground_job;
use wire::{Foreground, State};

/// The first look after a sign of life.
const FIRST_US: u64 = 1_000;
/// The first look at a command that was just started.
const START_US: u64 = 3_000;
/// The second look that confirms that somebody waits.
const CONFIRM_US: u64 = 2_000;
/// The same for somebody who is stopped: a shell with job control takes the terminal back at once.
const STOPPED_US: u64 = 50_000;
/// For how long after typing without an echo nobody is believed to wait, unless output comes.
const DOUBT_US: u64 = 50_000;
/// The same where the terminal echoes: an overloaded machine may need this long, any other never does.
const ECHOED_DOUBT_US: u64 = 1_000_000;
/// The same after a signal: a program whose one thread reads on while another one handles it.
const SIGNALLED_DOUBT_US: u64 = 500_000;
/// The slowest pace while something runs: an answer is at most this late.
const RUNNING_US: u64 = 40_000;
/// The slowest pace while somebody waits for input: only a time-out of its own could change that.
const WAITING_US: u64 = 1_000_000;
/// A look may cost at most one part in this many of the time.
const COST_SHARE: u64 = 25;
/// So much of that time may be used ahead while output comes: whoever begins to wait after a pause is seen at once.
const AHEAD_US: u64 = 50_000;
/// The same when none came for [`START_US`], and to confirm: somebody may have begun to wait.
const AHEAD_IN_SILENCE_US: u64 = 200_000;
/// For how long one that wakes up by itself has to have written nothing to be believed to wait.
const SILENT_US: u64 = 1_200_000;
/// The same for an event loop that nothing else can wake: a thread of its own may be about to.
const SETTLED_US: u64 = 300_000;

#[derive(Debug)]
pub(crate) struct Sampler {
    tty: PathBuf,
    /// The shell is one that is typed at: without a line editor, or with one that has no keys of ours.
    takes_lines: bool,
    next_at: Option<u64>,
    delay_us: u64,
    last: Option<State>,
    /// What the last look saw, if nothing moved since: a state in which somebody waits is told when it was seen twice.
    candidate: Option<State>,
    /// Something was typed, and the kernel may not have brought it to its reader yet.
    is_typed: bool,
    /// A program has been given input and may pass it on; until this time, or until output comes, none is believed to wait.
    doubted_until: u64,
    /// When there was output last.
    wrote_at: u64,
    /// When all looks so far are paid for.
    paid_at: u64,
}

impl Sampler {
    pub(crate) fn new(tty: &CStr, takes_lines: bool) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let tty = Path::new(std::ffi::OsStr::from_bytes(tty.to_bytes())).to_owned();
        Self {
            tty,
            takes_lines,
            next_at: None,
            delay_us: FIRST_US,
            last: None,
            candidate: None,
            is_typed: false,
            doubted_until: 0,
            wrote_at: 0,
            paid_at: 0,
        }
    }

    /// The follower's path.
    pub(crate) fn tty(&self) -> &Path {
        &self.tty
    }

    /// Something moved: look soon.
    pub(crate) fn schedule_look(&mut self, now: u64) {
        self.delay_us = FIRST_US;
        self.candidate = None;
        // Under a flood the look is not put off for ever: a due one stays due.
        let soon = now + FIRST_US;
        let at = self.next_at.filter(|at| *at <= now + START_US).unwrap_or(soon);
        // If nothing more comes.
        let in_silence = self.payable(now + START_US, AHEAD_IN_SILENCE_US);
        self.next_at = Some(self.payable(at, AHEAD_US).min(in_silence));
    }

    /// Then, or as soon as there is something to pay for a look, so much of it ahead.
    fn payable(&self, at: u64, ahead_us: u64) -> u64 {
        at.max(self.paid_at.saturating_sub(ahead_us))
    }

    /// The shell is at its prompt: there is nothing to look for.
    pub(crate) fn suspend(&mut self) {
        self.next_at = None;
        self.last = None;
    }

    /// A command was just started: most are over before anything could be asked.
    pub(crate) fn start_over(&mut self, now: u64) {
        self.forget();
        self.delay_us = FIRST_US;
        self.next_at = Some(self.payable(now + START_US, AHEAD_IN_SILENCE_US));
    }

    /// Output came: whoever writes has read what was typed, or the terminal has echoed it. Whether somebody who polls
    /// wants something is told by what was written last, so it is told again; so is an editor, which may have painted
    /// after it was seen to wait.
    pub(crate) fn wrote(&mut self, now: u64) {
        (self.doubted_until, self.wrote_at) = (0, now);
        let looks = |f| matches!(f, Foreground::Polls | Foreground::PollsForATime | Foreground::Editor);
        if self.last.is_some_and(|s| looks(s.foreground)) {
            self.forget();
        }
    }

    /// Something was typed: the next look first waits until the kernel has woken the reader of this terminal. A program that
    /// passes it on to another one (ssh(1), script(1)) shows by an echo that it has.
    pub(crate) fn typed(&mut self, now: u64, is_echoed: bool) {
        self.forget();
        self.is_typed = true;
        self.doubted_until = now + if is_echoed { ECHOED_DOUBT_US } else { DOUBT_US };
    }

    /// The foreground was signalled: what was seen before says nothing any more. The signal itself is there at once.
    pub(crate) fn signalled(&mut self, now: u64) {
        self.forget();
        self.doubted_until = now + SIGNALLED_DOUBT_US;
    }

    /// No look before then.
    pub(crate) fn put_off(&mut self, until: u64) {
        self.next_at = self.next_at.map(|at| at.max(until));
    }

    /// The next look is told whatever it sees.
    pub(crate) fn forget(&mut self) {
        self.last = None;
        self.candidate = None;
    }

    pub(crate) fn next_at(&self) -> Option<u64> {
        self.next_at
    }

    /// Looks if it is time to; gives the state when it changed.
    pub(crate) fn look(&mut self, now: u64, leader: BorrowedFd<'_>, shell: u32) -> Option<State> {
        if self.next_at.is_none_or(|at| at > now) {
            return None;
        }
        let before = sys::time::processor_us();
        if std::mem::take(&mut self.is_typed) {
            sys::pty::unread(&self.tty);
        }
        let state = self.sample(leader, shell);
        // For how long others had the processor meanwhile is no cost: on a busy machine the next look would be too late.
        let cost = sys::time::processor_us().saturating_sub(before);
        let slowest = match state.map(|s| s.foreground) {
            Some(Foreground::Reads | Foreground::ShellReads | Foreground::Editor) => WAITING_US,
            _ => RUNNING_US,
        };
        self.delay_us = (self.delay_us * 2).min(slowest).max(cost * COST_SHARE);
        self.paid_at = self.paid_at.max(now) + cost * COST_SHARE;
        self.next_at = Some(self.payable(now + self.delay_us, AHEAD_US));
        if state == self.last {
            return None;
        }
        let somebody_waits = state.is_some_and(|s| !matches!(s.foreground, Foreground::Busy | Foreground::Unknown));
        let is_stopped = state.is_some_and(|s| s.foreground == Foreground::Stopped);
        if somebody_waits && !is_stopped && (now < self.doubted_until || sys::pty::unread(&self.tty) > 0) {
            // What was typed has not been read: the reader is about to wake up, however long that takes.
            self.candidate = None;
            self.delay_us = FIRST_US;
            self.next_at = Some(self.payable(now + CONFIRM_US, AHEAD_IN_SILENCE_US));
            return None;
        }
        if somebody_waits && state != self.candidate {
            // What was written just before the read may still be on its way through the line discipline, and what was
            // just typed may not have woken the reader: both are seen within the next looks.
            self.candidate = state;
            self.delay_us = FIRST_US;
            let confirmed_at = now + if is_stopped { STOPPED_US } else { CONFIRM_US };
            self.next_at = Some(self.payable(confirmed_at, AHEAD_IN_SILENCE_US));
            return None;
        }
        self.last = state;
        state
    }

    /// The state right now, whatever the schedule says.
    pub(crate) fn sample(&self, leader: BorrowedFd<'_>, shell: u32) -> Option<State> {
        let modes = sys::pty::modes(leader).ok()?;
        let group = sys::pty::foreground_group(leader);
        let seen = if group == shell { self.shell_itself(shell, &modes) } else { None };
        let foreground_job::JobState { foreground, pid, modes: behind } =
            seen.unwrap_or_else(|| foreground_job::look(&self.tty, group, shell));
        let quiet_us = sys::time::monotonic_us().saturating_sub(self.wrote_at);
        let foreground = match foreground {
            Foreground::PollsForATime if quiet_us >= SILENT_US => Foreground::Polls,
            Foreground::Polls if quiet_us >= SETTLED_US && process::waits_for_nothing_else(pid, &self.tty) => {
                Foreground::Reads
            }
            other => other,
        };
        let Modes { canonical, echo, .. } = behind.unwrap_or(modes);
        Some(State { foreground, canonical, echo, isig: modes.isig, group, pid, answered: Offset::ZERO })
    }

    /// Whether the shell has the terminal, has read all that was typed, and waits for more.
    pub(crate) fn waits_for_keys(&self, leader: BorrowedFd<'_>, shell: u32) -> bool {
        self.is_free(leader, shell) && process::blocked(shell, &self.tty) != Blocked::Elsewhere
    }

    fn is_free(&self, leader: BorrowedFd<'_>, shell: u32) -> bool {
        sys::pty::foreground_group(leader) == shell && sys::pty::unread(&self.tty) == 0
    }

    /// Whether what is typed now is read by a shell that takes lines; one that has just drawn its prompt is believed.
    pub(crate) fn is_at_line(&self, leader: BorrowedFd<'_>, shell: u32) -> bool {
        let Ok(modes) = sys::pty::modes(leader) else { return false };
        self.is_free(leader, shell) && process::at_line(shell, &self.tty, !modes.canonical) != AtLine::No
    }

    /// The shell holds the terminal: readline and fish select with every translation off, zsh reads with both on. The
    /// `read` builtin reads, or selects when it has a time limit, and then a key of ours would be its input.
    /// What it runs without job control (`set +m`) is of its own group, and is looked at as a job.
    fn shell_itself(&self, shell: u32, modes: &Modes) -> Option<foreground_job::JobState> {
        let is_cooked = modes.canonical || modes.maps_cr;
        let is_zle = !modes.canonical && modes.maps_cr && modes.maps_nl;
        let blocked = process::blocked(shell, &self.tty);
        let waits = blocked.polls() || blocked == Blocked::Reads;
        let foreground = match blocked {
            _ if process::is_stopped(shell) => Foreground::Stopped,
            _ if waits && self.takes_lines => match process::at_line(shell, &self.tty, !modes.canonical) {
                AtLine::Yes => Foreground::Editor,
                AtLine::No | AtLine::Perhaps => Foreground::ShellReads,
            },
            _ if waits && is_zle || blocked.polls() && !is_cooked => Foreground::Editor,
            _ if waits => Foreground::ShellReads,
            Blocked::Unknown => Foreground::Unknown,
            _ => return None,
        };
        Some(foreground_job::JobState { foreground, pid: shell, modes: None })
    }
}
