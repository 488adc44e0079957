//! Classifies a foreground job: all processes of a pipeline, and also the job behind a program that runs it on a
//! terminal of its own and passes the keys on (script(1), sudo(8), `su --pty`).

use std::path::{Path, PathBuf};

use sys::process::{self, Blocked, Stat};
use sys::pty::Modes;

use wire::Foreground;

/// How many processes of a job are sampled.
const MEMBERS_MAX: usize = 256;
/// How many nested terminals are followed.
const BEHIND_MAX: usize = 4;
/// Major number of the followers' devices (devices.txt of the kernel's documentation).
const FOLLOWERS_MAJOR: u32 = 136;

/// The result of a sample.
#[derive(Debug)]
pub(crate) struct JobState {
    pub(crate) foreground: Foreground,
    /// The process that is in this state.
    pub(crate) pid: u32,
    /// The modes of the nested terminal, if the job reads that one.
    pub(crate) modes: Option<Modes>,
}

impl JobState {
    fn of(foreground: Foreground, pid: u32) -> Self {
        Self { foreground, pid, modes: None }
    }
}

/// Classifies the job `group` on the shell's terminal `tty`.
pub(crate) fn classify(tty: &Path, group: u32, shell: u32) -> JobState {
    // Most often the group leader alone decides.
    if blocked(group, tty) == Blocked::Reads {
        return JobState::of(Foreground::Reads, group);
    }
    let mut members: Vec<Stat> = Vec::new();
    let all = process::descendants(std::process::id(), MEMBERS_MAX).into_iter().filter_map(process::stat);
    for s in all.filter(|s| s.state != b'Z') {
        // A child in a session of its own (`su -c`, `setsid -w`) is outside of job control and reads the terminal all
        // the same. Parents come before their children in the list.
        if s.pgrp == group || s.session != shell && members.iter().any(|parent| parent.pid == s.ppid) {
            members.push(s);
        }
    }
    // A parent that waits for a stopped child is stopped with it.
    let mut works = members.iter().filter(|s| !members.iter().any(|child| child.ppid == s.pid));
    let is_stopped = if members.is_empty() { process::is_stopped(shell) } else { works.all(|s| s.state == b'T') };
    if is_stopped {
        return JobState::of(Foreground::Stopped, members.first().map_or(shell, |s| s.pid));
    }
    // A process with another controlling terminal reads that one, also by the name /dev/tty.
    let ours = process::stat(shell).map_or(0, |s| s.tty);
    let here: Vec<Stat> = members.iter().filter(|s| s.tty == ours || s.tty == 0).cloned().collect();
    seen(tty, &here, &members, BEHIND_MAX)
}

/// Classifies these processes at their terminal, and those behind it.
fn seen(tty: &Path, members: &[Stat], all: &[Stat], behind: usize) -> JobState {
    let blocked_at = members.iter().map(|s| (blocked(s.pid, tty), s));
    let Some((blocked, who)) = blocked_at.max_by_key(|(blocked, _)| *blocked) else {
        return JobState::of(Foreground::Busy, 0);
    };
    let foreground = match blocked {
        Blocked::Reads | Blocked::PollsAlone => Foreground::Reads,
        Blocked::Polls | Blocked::PollsForATime => {
            if let Some(seen) = seen_behind(who, all, behind) {
                return seen;
            }
            match blocked {
                _ if members.iter().any(|s| process::listens(s.pid)) => Foreground::PollsAndListens,
                Blocked::Polls => Foreground::Polls,
                _ => Foreground::PollsForATime,
            }
        }
        Blocked::Elsewhere => return JobState::of(Foreground::Busy, 0),
        Blocked::Unknown => Foreground::Unknown,
    };
    JobState::of(foreground, who.pid)
}

/// Classifies the job on the terminal that this program has given to one of its descendants; `None` if there is no such
/// terminal or it cannot be read.
fn seen_behind(who: &Stat, all: &[Stat], behind: usize) -> Option<JobState> {
    let behind = behind.checked_sub(1)?;
    let mut family = vec![who.pid];
    let mut inner = None;
    for s in all {
        if family.contains(&s.ppid) {
            family.push(s.pid);
            inner = inner
                .or_else(|| Some(s).filter(|s| s.tty != who.tty && s.session == s.pid && follower(s.tty).is_some()));
        }
    }
    let inner = inner?;
    let tty = follower(inner.tty)?;
    // The process may have a /dev of its own, in which this path is another terminal than here.
    let there = PathBuf::from(format!("/proc/{}/root{}", inner.pid, tty.display()));
    let modes = sys::pty::modes_at(&there).ok()?;
    // After this call, input that was passed on has woken its reader.
    sys::pty::unread(&there);
    let group = inner.foreground_group?;
    let members: Vec<Stat> = all.iter().filter(|s| s.tty == inner.tty && s.pgrp == group).cloned().collect();
    let seen = seen(&tty, &members, all, behind);
    (seen.foreground != Foreground::Unknown).then(|| JobState { modes: seen.modes.or(Some(modes)), ..seen })
}

/// A program that relays keys to a connection always reads them, while the other end may be busy.
fn blocked(pid: u32, tty: &Path) -> Blocked {
    match process::blocked(pid, tty) {
        Blocked::Reads if process::may_relay(pid) => Blocked::Polls,
        blocked => blocked,
    }
}

/// The path of a follower by its device number (`tty_nr` of proc(5)).
fn follower(tty: u32) -> Option<PathBuf> {
    let (major, minor) = ((tty >> 8) & 0xfff, (tty & 0xff) | ((tty >> 12) & 0xf_ff00));
    (major == FOLLOWERS_MAJOR).then(|| PathBuf::from(format!("/dev/pts/{minor}")))
}
