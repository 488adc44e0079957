//! Decides when to sample the foreground: often while something changes, never while nothing can.
//!
//! The kernel reports no event when a process begins to read the terminal. So this samples soon after every activity,
//! then ever more slowly, and never at a prompt. The crate `foreground` decides what a sample means.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use foreground::{Activity, LineReader, Observation};
use wire::State;

use crate::foreground_observer::{Observer, modes};

/// Delay of the first sample after activity.
const FIRST_US: u64 = 1_000;
/// Delay of the first sample of a command that was just started.
const START_US: u64 = 3_000;
/// Delay of the first sample of a shell that is on its way to its prompt, after its newest output: most are there sooner, and the
/// prompt says more. A start-up file or a hook may ask something.
const STARTING_US: u64 = 20_000;
/// Delay of the second sample, which confirms that a process waits for input.
const CONFIRM_US: u64 = 2_000;
/// The same for a stopped process: a shell with job control takes the terminal back at once.
const STOPPED_US: u64 = 50_000;
/// After input that was not echoed, no process counts as waiting for this long, unless output comes.
const DOUBT_US: u64 = 50_000;
/// The same where the terminal echoes: only an overloaded machine takes that long.
const ECHOED_DOUBT_US: u64 = 1_000_000;
/// The same after a signal: one thread of a program may go on reading while another handles the signal.
const SIGNALLED_DOUBT_US: u64 = 500_000;
/// The longest delay while a program runs, and so the latest that a change is noticed.
const RUNNING_US: u64 = 40_000;
/// The longest delay while a process waits for input: only a timeout of its own could change that.
const WAITING_US: u64 = 1_000_000;
/// Samples may use at most one part in this many of the time.
const COST_SHARE: u64 = 25;
/// The same for a sample beside output: a program that writes all the time mostly wants what it wanted before.
const COST_SHARE_BESIDE_OUTPUT: u64 = 50;
/// How much of that time may be used in advance while output comes, so that a process that begins to wait after a pause
/// is noticed at once.
const AHEAD_US: u64 = 50_000;
/// The same when no output came for [`START_US`], and to confirm: a process may have begun to wait.
const AHEAD_IN_SILENCE_US: u64 = 200_000;

/// One sample of the foreground.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) facts: Observation,
    /// The state that these facts are by this program's rules; a server may have others.
    pub(crate) state: State,
    /// The state is another one, or something has happened since it was sent.
    pub(crate) is_new: bool,
}

#[derive(Debug)]
pub(crate) struct Sampler {
    observer: Observer,
    next_at: Option<u64>,
    delay_us: u64,
    last: Option<State>,
    /// The silence of the facts that were sent last.
    last_quiet_ms: u32,
    /// The newest sample, if nothing changed since: a waiting state is reported only when it was seen twice.
    candidate: Option<State>,
    /// Input was written, and the kernel may not have delivered it to its reader yet.
    is_typed: bool,
    /// A program has been given input and may pass it on; until this time, or until output comes, no process counts as
    /// waiting.
    doubted_until: u64,
    /// When output came last.
    wrote_at: u64,
    /// When the cost of all samples so far is paid for.
    paid_at: u64,
}

impl Sampler {
    pub(crate) fn new(tty: &CStr, takes_lines: bool) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let tty = PathBuf::from(std::ffi::OsStr::from_bytes(tty.to_bytes()));
        Self {
            observer: Observer::new(tty, takes_lines),
            next_at: None,
            delay_us: FIRST_US,
            last: None,
            last_quiet_ms: 0,
            candidate: None,
            is_typed: false,
            doubted_until: 0,
            wrote_at: 0,
            paid_at: 0,
        }
    }

    /// Something changed: sample soon.
    pub(crate) fn schedule_sample(&mut self, now: u64) {
        self.delay_us = FIRST_US;
        self.candidate = None;
        // Under a flood the sample is not postponed for ever: a due one stays due.
        let soon = now + FIRST_US;
        let at = self.next_at.filter(|at| *at <= now + START_US).unwrap_or(soon);
        // In case no more output comes.
        let in_silence = self.payable(now + START_US, AHEAD_IN_SILENCE_US);
        self.next_at = Some(self.payable(at, AHEAD_US).min(in_silence));
    }

    /// The shell starts, or runs hooks before its next prompt: sample only if that does not come soon.
    pub(crate) fn schedule_before_prompt(&mut self, now: u64) {
        self.delay_us = FIRST_US;
        self.candidate = None;
        self.next_at = Some(self.payable(now + STARTING_US, AHEAD_IN_SILENCE_US));
    }

    /// That time, or the first at which the CPU budget allows a sample, `ahead_us` of it in advance.
    fn payable(&self, at: u64, ahead_us: u64) -> u64 {
        at.max(self.paid_at.saturating_sub(ahead_us))
    }

    /// The shell is at its prompt: sample no more.
    pub(crate) fn suspend(&mut self) {
        self.next_at = None;
        self.last = None;
    }

    /// A command was just started; most commands end before the first sample.
    pub(crate) fn start_over(&mut self, now: u64) {
        self.forget();
        self.delay_us = FIRST_US;
        self.next_at = Some(self.payable(now + START_US, AHEAD_IN_SILENCE_US));
    }

    /// Output came: its writer has read the input, or the terminal has echoed it. A program that waits is reported again, for
    /// the server takes a report from before the newest output for one about what ran then.
    pub(crate) fn wrote(&mut self, now: u64) {
        (self.doubted_until, self.wrote_at) = (0, now);
        if self.last.is_some_and(|s| s.foreground.waits()) {
            self.forget();
        }
    }

    /// Input was written: the next sample first waits until the kernel has woken the reader of this terminal. A program
    /// that passes the input on to another one (ssh(1), script(1)) shows by an echo that it has.
    pub(crate) fn typed(&mut self, now: u64, is_echoed: bool) {
        self.forget();
        self.is_typed = true;
        self.doubted_until = now + if is_echoed { ECHOED_DOUBT_US } else { DOUBT_US };
    }

    /// The foreground was signalled, so earlier samples are out of date. The signal itself is delivered at once.
    pub(crate) fn signalled(&mut self, now: u64) {
        self.forget();
        self.doubted_until = now + SIGNALLED_DOUBT_US;
    }

    /// No sample before then.
    pub(crate) fn put_off(&mut self, until: u64) {
        self.next_at = self.next_at.map(|at| at.max(until));
    }

    /// The next sample is reported, whatever it shows.
    pub(crate) fn forget(&mut self) {
        self.last = None;
        self.candidate = None;
    }

    pub(crate) fn next_at(&self) -> Option<u64> {
        self.next_at
    }

    /// Samples if it is time; returns the sample if its state changed, or if the same facts lasted for one silence more.
    pub(crate) fn sample_if_due(&mut self, now: u64, leader: BorrowedFd<'_>, shell: u32) -> Option<Sample> {
        if self.next_at.is_none_or(|at| at > now) {
            return None;
        }
        let before = sys::time::processor_us();
        if std::mem::take(&mut self.is_typed) {
            sys::pty::unread(leader);
        }
        let sample = self.sample(leader, shell);
        let state = sample.as_ref().map(|sample| sample.state);
        // CPU time and not wall time: on a busy machine the next sample would come too late.
        let cost = sys::time::processor_us().saturating_sub(before);
        let slowest = if state.is_some_and(|s| s.foreground.is_settled()) { WAITING_US } else { RUNNING_US };
        let share = if now < self.wrote_at + START_US { COST_SHARE_BESIDE_OUTPUT } else { COST_SHARE };
        self.delay_us = (self.delay_us * 2).min(slowest).max(cost * share);
        self.paid_at = self.paid_at.max(now) + cost * share;
        self.next_at = Some(self.payable(now + self.delay_us, AHEAD_US));
        if state == self.last {
            let lasts = |sample: &Sample| {
                sample.facts.quiet_ms > self.last_quiet_ms && foreground::depends_on_silence(&sample.facts)
            };
            let sample = sample.filter(lasts)?;
            self.last_quiet_ms = sample.facts.quiet_ms;
            return Some(Sample { is_new: false, ..sample });
        }
        let waits = state.is_some_and(|s| s.foreground.waits());
        let is_stopped = state.is_some_and(|s| s.foreground == Activity::Stopped);
        if waits && !is_stopped && (now < self.doubted_until || sys::pty::unread(leader) > 0) {
            // The input is still unread: the reader is about to wake up, however long that takes.
            self.candidate = None;
            self.delay_us = FIRST_US;
            self.next_at = Some(self.payable(now + CONFIRM_US, AHEAD_IN_SILENCE_US));
            return None;
        }
        if waits && state != self.candidate {
            // Output written just before the read may still be in the line discipline, and new input may not have woken
            // the reader yet: the next samples show both.
            self.candidate = state;
            self.delay_us = FIRST_US;
            let confirmed_at = now + if is_stopped { STOPPED_US } else { CONFIRM_US };
            self.next_at = Some(self.payable(confirmed_at, AHEAD_IN_SILENCE_US));
            return None;
        }
        self.last = state;
        self.last_quiet_ms = sample.as_ref().map_or(0, |sample| sample.facts.quiet_ms);
        sample
    }

    /// A sample right now, outside of the schedule.
    pub(crate) fn sample(&self, leader: BorrowedFd<'_>, shell: u32) -> Option<Sample> {
        let quiet_us = sys::time::monotonic_us().saturating_sub(self.wrote_at);
        let facts = self.observer.observe(leader, shell, quiet_us)?;
        Some(Sample { state: State::of(&facts), facts, is_new: true })
    }

    /// The processes that may take keys from this shell, which has the terminal.
    pub(crate) fn rivals(&self, shell: u32) -> Vec<u32> {
        self.observer.rivals(shell)
    }

    /// Whether the shell has the terminal, has read all input, and waits for more.
    pub(crate) fn waits_for_keys(&self, leader: BorrowedFd<'_>, shell: u32) -> bool {
        self.is_free(leader, shell) && self.observer.shell_process(shell).may_wait()
    }

    /// Whether the kernel shows that the shell, which has the terminal, has read all input and waits for more.
    pub(crate) fn is_seen_to_read(&self, leader: BorrowedFd<'_>, shell: u32) -> bool {
        self.is_free(leader, shell) && self.observer.shell_process(shell).is_seen_to_wait()
    }

    fn is_free(&self, leader: BorrowedFd<'_>, shell: u32) -> bool {
        sys::pty::foreground_group(leader) == shell && sys::pty::unread(leader) == 0
    }

    /// Whether a shell that takes lines reads input now; one that has just painted its prompt counts as reading.
    pub(crate) fn is_at_line(&self, leader: BorrowedFd<'_>, shell: u32) -> bool {
        let Ok(now) = sys::pty::modes(leader) else { return false };
        let reads = || foreground::reads_lines(&self.observer.shell_process(shell), modes(&now));
        self.is_free(leader, shell) && reads() != LineReader::No
    }
}
