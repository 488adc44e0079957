//! Looks at what the kernel knows about the foreground, often while things move and not at all while nothing can.
//!
//! There is no event for "a process began to read the terminal", so this samples: soon after every sign of life, then
//! ever more slowly, and never at a prompt.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use sys::process::{self, AtLine, Blocked};

use crate::wire::{Foreground, State};

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
/// How many processes of a group are looked at.
const MEMBERS_MAX: usize = 256;

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
    /// Input is on its way to whoever reads; until this time, or until output comes, nobody is believed to wait.
    doubted_until: u64,
}

impl Sampler {
    pub(crate) fn new(tty: &CStr, takes_lines: bool) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let tty = Path::new(std::ffi::OsStr::from_bytes(tty.to_bytes())).to_owned();
        Self { tty, takes_lines, next_at: None, delay_us: FIRST_US, last: None, candidate: None, doubted_until: 0 }
    }

    /// The follower's path.
    pub(crate) fn tty(&self) -> &Path {
        &self.tty
    }

    /// Something moved: look soon.
    pub(crate) fn stir(&mut self, now: u64) {
        self.delay_us = FIRST_US;
        self.candidate = None;
        // Under a flood the look is not put off for ever: a due one stays due.
        let soon = now + FIRST_US;
        self.next_at = Some(self.next_at.filter(|at| *at <= now + START_US).unwrap_or(soon));
    }

    /// The shell is at its prompt: there is nothing to look for.
    pub(crate) fn rest(&mut self) {
        self.next_at = None;
        self.last = None;
    }

    /// A command was just started: most are over before anything could be asked.
    pub(crate) fn start_over(&mut self, now: u64) {
        self.forget();
        self.delay_us = FIRST_US;
        self.next_at = Some(now + START_US);
    }

    /// Output came: whoever writes has read what was typed, or the terminal has echoed it. Whether somebody who polls
    /// wants something is told by what was written last, so it is told again; so is an editor, which may have painted
    /// after it was seen to wait.
    pub(crate) fn wrote(&mut self) {
        self.doubted_until = 0;
        if self.last.is_some_and(|s| matches!(s.foreground, Foreground::Polls | Foreground::Editor)) {
            self.forget();
        }
    }

    /// Something was typed. The line discipline takes it later, on a kernel worker, and nothing tells when; an echo does.
    pub(crate) fn typed(&mut self, now: u64, is_echoed: bool) {
        self.forget();
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
    fn forget(&mut self) {
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
        let state = self.sample(leader, shell);
        let cost = sys::time::monotonic_us().saturating_sub(now);
        let slowest = match state.map(|s| s.foreground) {
            Some(Foreground::Reads | Foreground::ShellReads | Foreground::Editor) => WAITING_US,
            _ => RUNNING_US,
        };
        self.delay_us = (self.delay_us * 2).min(slowest).max(cost * COST_SHARE);
        self.next_at = Some(now + self.delay_us);
        if state == self.last {
            return None;
        }
        let somebody_waits = state.is_some_and(|s| !matches!(s.foreground, Foreground::Busy | Foreground::Unknown));
        let is_stopped = state.is_some_and(|s| s.foreground == Foreground::Stopped);
        if somebody_waits && !is_stopped && (now < self.doubted_until || sys::pty::unread(&self.tty) > 0) {
            // What was typed has not been read: the reader is about to wake up, however long that takes.
            self.candidate = None;
            self.delay_us = FIRST_US;
            self.next_at = Some(now + CONFIRM_US);
            return None;
        }
        if somebody_waits && state != self.candidate {
            // What was written just before the read may still be on its way through the line discipline, and what was
            // just typed may not have woken the reader: both are seen within the next looks.
            self.candidate = state;
            self.delay_us = FIRST_US;
            self.next_at = Some(now + if is_stopped { STOPPED_US } else { CONFIRM_US });
            return None;
        }
        self.last = state;
        state
    }

    /// The state right now, whatever the schedule says.
    pub(crate) fn sample(&self, leader: BorrowedFd<'_>, shell: u32) -> Option<State> {
        let modes = sys::pty::modes(leader).ok()?;
        let group = sys::pty::foreground_group(leader);
        let (foreground, pid) =
            if group == shell { self.shell_itself(shell, &modes) } else { self.group_members(group, shell) };
        Some(State { foreground, canonical: modes.canonical, echo: modes.echo, isig: modes.isig, group, pid })
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
    fn shell_itself(&self, shell: u32, modes: &sys::pty::Modes) -> (Foreground, u32) {
        let is_cooked = modes.canonical || modes.maps_cr;
        let is_zle = !modes.canonical && modes.maps_cr && modes.maps_nl;
        let foreground = match process::blocked(shell, &self.tty) {
            _ if process::is_stopped(shell) => Foreground::Stopped,
            Blocked::Polls | Blocked::Reads if self.takes_lines => {
                match process::at_line(shell, &self.tty, !modes.canonical) {
                    AtLine::Yes => Foreground::Editor,
                    AtLine::No | AtLine::Perhaps => Foreground::ShellReads,
                }
            }
            Blocked::Polls | Blocked::Reads if is_zle => Foreground::Editor,
            Blocked::Polls if !is_cooked => Foreground::Editor,
            Blocked::Polls | Blocked::Reads => Foreground::ShellReads,
            // What it runs without job control (`set +m`) is of its own group.
            Blocked::Elsewhere => return self.group_members(shell, shell),
            Blocked::Unknown => Foreground::Unknown,
        };
        (foreground, shell)
    }

    /// A job holds the terminal: a pipeline is looked at whole.
    fn group_members(&self, group: u32, shell: u32) -> (Foreground, u32) {
        // Who passes keys on reads them all the time, and what is at the other end may be at work.
        let blocked = |pid| match process::blocked(pid, &self.tty) {
            Blocked::Reads if process::may_relay(pid) => Blocked::Polls,
            blocked => blocked,
        };
        // The leader decides most often, and alone.
        if blocked(group) == Blocked::Reads {
            return (Foreground::Reads, group);
        }
        let mut stats: Vec<process::Stat> = Vec::new();
        let all = process::descendants(std::process::id(), MEMBERS_MAX).into_iter().filter_map(process::stat);
        for s in all.filter(|s| s.state != b'Z') {
            // A child in a session of its own (`su -c`, `setsid -w`) is subject to no job control and reads all the
            // same. Parents come before their children.
            if s.pgrp == group || s.session != shell && stats.iter().any(|parent| parent.pid == s.ppid) {
                stats.push(s);
            }
        }
        // A parent that waits for a stopped child goes on no more than the child does.
        let mut works = stats.iter().filter(|s| !stats.iter().any(|child| child.ppid == s.pid));
        let is_stopped = if stats.is_empty() { process::is_stopped(shell) } else { works.all(|s| s.state == b'T') };
        if is_stopped {
            return (Foreground::Stopped, stats.first().map_or(shell, |s| s.pid));
        }
        let members: Vec<u32> = stats.iter().map(|s| s.pid).collect();
        let looked: Vec<(Blocked, u32)> = members.iter().map(|pid| (blocked(*pid), *pid)).collect();
        match looked.iter().max() {
            Some((Blocked::Reads, pid)) => (Foreground::Reads, *pid),
            Some((Blocked::Polls, pid)) => {
                let listens = members.iter().any(|m| process::listens(*m));
                (if listens { Foreground::PollsAndListens } else { Foreground::Polls }, *pid)
            }
            Some((Blocked::Elsewhere, _)) => (Foreground::Busy, 0),
            Some((Blocked::Unknown, pid)) => (Foreground::Unknown, *pid),
            None => (Foreground::Busy, 0),
        }
    }
}
