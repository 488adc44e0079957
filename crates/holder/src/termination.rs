//! Ends a session: the shell and every descendant, daemons included.
//!
//! ```text
//! asked:        CONT + first signal ── grace ──► TERM ── grace ──► KILL until nothing is left
//!               (HUP: after 100 ms once more, to a shell that is still there and has no children)
//! shell exited: CONT + HUP ── 100 ms ──► KILL until nothing is left   (or nothing at all when descendants are kept)
//! ```
//! Bash loses a HUP that arrives just before readline reads a key: it notes the signal and acts on it at the next one
//! (107 of 3,000 shells that were hung up within 0.6 ms of a command's end; the second HUP ended all of them).
//!
//! The holder is the subreaper (prctl(2), PR_SET_CHILD_SUBREAPER), so a daemon that left its session is still found.
//! A sweep of `/proc` can miss a process whose parent exits during it; it is a child of the holder by then. Therefore the
//! session is over only when waitid(2) says that the holder has no child.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use sys::process::{self, Stat};
use sys::signal;

/// How long background processes have to exit after their shell is gone.
const AFTER_EXIT_US: u64 = 100_000;
/// How long a shell has to exit on SIGHUP before it gets another one.
const REPEAT_HUP_US: u64 = 100_000;
/// Interval between SIGKILLs.
const KILL_EVERY_US: u64 = 10_000;
/// After this long of SIGKILL without effect (a process in uninterruptible sleep) the holder gives up and reports it.
const KILLING_MAX_US: u64 = 5_000_000;
/// How many processes one sweep finds; the next sweep finds the others.
const SWEEP_MAX: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// SIGHUP once more, to this shell.
    RepeatHup(u32),
    Term,
    Kill,
}

/// A session that is being ended.
#[derive(Debug)]
pub(crate) struct Termination {
    step: Step,
    next_at: u64,
    grace_us: u64,
    killing_since: Option<u64>,
    /// How many processes there were when the termination began.
    pub(crate) found: u64,
    whom: Scope,
}

/// The processes that a termination covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every descendant.
    All,
    /// The shell's own session (setsid(2)); a process that has left it is a daemon that is meant to stay.
    Session(u32),
}

/// The result of one step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Waiting,
    /// Nothing is left.
    Over,
    /// So many processes could not be killed; the holder leaves them.
    GivenUp(u64),
}

impl Termination {
    /// A client asked for termination.
    pub(crate) fn asked(signo: i32, grace_us: u64, shell: u32, whom: Scope, now: u64) -> Self {
        let all = living_of(whom);
        if signo != signal::KILL {
            signal_all(&all, signal::CONT);
            signal_all(&all, signo);
        }
        let (step, wait) = match signo {
            signal::KILL => (Step::Kill, 0),
            signal::HUP if grace_us > REPEAT_HUP_US => (Step::RepeatHup(shell), REPEAT_HUP_US),
            _ => (Step::Term, grace_us),
        };
        Self { step, next_at: now + wait, grace_us, killing_since: None, found: all.len() as u64, whom }
    }

    /// The shell exited by itself; its remaining descendants are ended.
    pub(crate) fn after_exit(now: u64) -> Self {
        let all = living();
        signal_all(&all, signal::CONT);
        signal_all(&all, signal::HUP);
        let (step, grace_us) = (Step::Kill, AFTER_EXIT_US);
        Self { step, next_at: now + grace_us, grace_us, killing_since: None, found: all.len() as u64, whom: Scope::All }
    }

    /// The shell is gone: skip the long grace periods.
    pub(crate) fn shell_is_gone(&mut self, now: u64) {
        if self.killing_since.is_none() {
            self.step = Step::Kill;
            self.next_at = self.next_at.min(now + AFTER_EXIT_US);
        }
    }

    /// Straight to KILL.
    pub(crate) fn hurry(&mut self, now: u64) {
        self.step = Step::Kill;
        self.next_at = now;
    }

    pub(crate) fn next_at(&self) -> u64 {
        self.next_at
    }

    /// Performs the step that is due. Checks first whether any process is left, because most often none is.
    pub(crate) fn turn(&mut self, now: u64) -> Progress {
        let all = living_of(self.whom);
        if all.is_empty() {
            if self.is_nothing_left() {
                return Progress::Over;
            }
            end_sandbox();
        }
        if now < self.next_at {
            return Progress::Waiting;
        }
        match self.step {
            Step::RepeatHup(shell) => {
                // A shell that runs a handler of HUP gets no second one, as far as its programs show.
                if all == [shell] {
                    signal_all(&all, signal::HUP);
                }
                self.step = Step::Term;
                self.next_at = now + self.grace_us - REPEAT_HUP_US;
            }
            Step::Term => {
                signal_all(&all, signal::TERM);
                self.step = Step::Kill;
                self.next_at = now + self.grace_us;
            }
            Step::Kill => {
                let since = *self.killing_since.get_or_insert(now);
                if now - since > KILLING_MAX_US {
                    return Progress::GivenUp(all.len() as u64);
                }
                // With its first process, the whole namespace ends at once.
                end_sandbox();
                signal_all(&all, signal::KILL);
                self.next_at = now + KILL_EVERY_US;
            }
        }
        Progress::Waiting
    }

    /// Checks what a sweep has found: nothing. Daemons that stay are children too, so without them a second sweep must do.
    fn is_nothing_left(&self) -> bool {
        match self.whom {
            Scope::All => !has_child() && container_has_ended(),
            Scope::Session(_) => living_of(self.whom).is_empty(),
        }
    }
}

/// Whether this process has a child, also one that has exited and was not reaped.
fn has_child() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(waitid(WaitId::All, options), Err(Errno::CHILD))
}

/// Every descendant of this holder that is not a zombie, without the first process of a sandbox.
pub(crate) fn living() -> Vec<u32> {
    let holder = std::process::id();
    let lives = |pid: &u32| process::stat(*pid).is_some_and(|s| s.state != b'Z' && !is_first_of_sandbox(&s, holder));
    process::descendants(holder, SWEEP_MAX).into_iter().filter(lives).collect()
}

/// The number of those processes, and the names and numbers of the first of them.
pub(crate) fn named_living() -> (u32, String) {
    /// A person reads no more of them.
    const NAMED_MAX: usize = 4;
    let all = living();
    let named = all.iter().filter_map(|pid| process::stat(*pid)).take(NAMED_MAX);
    let names: Vec<String> = named.map(|process| format!("{} ({})", process.comm, process.pid)).collect();
    (u32::try_from(all.len()).unwrap_or(u32::MAX), names.join(", "))
}

/// Only a fork of the holder is in its session (setsid(2)): every shell has a session of its own.
fn is_first_of_sandbox(process: &Stat, holder: u32) -> bool {
    process.session == holder
}

/// Whether the container has ended, if there is one: standard output is a pidfd of its first process then, which becomes readable
/// (pidfd_open(2)), and is /dev/null otherwise, which is always readable.
fn container_has_ended() -> bool {
    let stdout = rustix::stdio::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) != Ok(0)
}

/// Kills the first process of the session's sandbox or container, if it has one, and with it all others there (pid_namespaces(7)).
fn end_sandbox() {
    // It is not a pidfd where there is no container (EBADF).
    let _ = rustix::process::pidfd_send_signal(rustix::stdio::stdout(), rustix::process::Signal::KILL);
    let (holder, mut children) = (std::process::id(), Vec::new());
    process::children(holder, &mut children);
    let is_first = |pid: &u32| process::stat(*pid).is_some_and(|s| is_first_of_sandbox(&s, holder));
    children.retain(is_first);
    signal_all(&children, signal::KILL);
}

fn living_of(whom: Scope) -> Vec<u32> {
    let mut all = living();
    if let Scope::Session(session) = whom {
        all.retain(|pid| process::stat(*pid).is_some_and(|s| s.session == session));
    }
    all
}

pub(crate) fn signal_all(pids: &[u32], signo: i32) {
    for pid in pids {
        if let Ok(pid) = i32::try_from(*pid) {
            // A process that is gone in the meantime counts as signalled.
            let _ = signal::send(pid, signo);
        }
    }
}
