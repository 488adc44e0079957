//! The processes at a terminal: the scope of an observation, by the relations of the processes.

/// A process among the others of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Its session (setsid(2)).
    pub session: u32,
    /// Its controlling terminal.
    pub terminal: Terminal,
    /// The foreground process group of that.
    pub foreground: Option<u32>,
    /// It is stopped by a signal.
    pub is_stopped: bool,
}

/// A controlling terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// The process has none.
    None,
    /// A pseudoterminal, by its number.
    Pseudo(u32),
    /// Another device.
    Other,
}

/// The job of the foreground group of the session's terminal, of all processes below the observer. Parents come before
/// their children, there and in the result.
#[must_use]
pub fn members(all: impl IntoIterator<Item = Member>, group: u32, shell: u32) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::new();
    for process in all {
        // A child in a session of its own (`su -c`, `setsid -w`) is outside of job control and reads the terminal all the
        // same.
        let is_outside = process.session != shell && members.iter().any(|parent| parent.pid == process.parent);
        if process.group == group || is_outside {
            members.push(process);
        }
    }
    members
}

/// Whether the job is stopped: each process that waits for no other one of it is, for a parent that waits for a stopped
/// child is stopped with it. `None` for a job without processes.
#[must_use]
pub fn all_are_stopped(members: &[Member]) -> Option<bool> {
    let is_last = |process: &&Member| !members.iter().any(|child| child.parent == process.pid);
    (!members.is_empty()).then(|| members.iter().filter(is_last).all(|process| process.is_stopped))
}

/// The members that have this terminal. A process with another controlling terminal reads that one, also by the name
/// /dev/tty.
#[must_use]
pub fn at_terminal(members: &[Member], terminal: Terminal) -> Vec<u32> {
    let is_here = |process: &&Member| process.terminal == terminal || process.terminal == Terminal::None;
    members.iter().filter(is_here).map(|process| process.pid).collect()
}

/// The descendant of this process to which it has given a terminal of its own (script(1), sudo(8), `su --pty`): the first
/// one that leads a session on another pseudoterminal.
#[must_use]
pub fn nested(members: &[Member], outer: u32) -> Option<Member> {
    let terminal = members.iter().find(|process| process.pid == outer)?.terminal;
    let mut family = vec![outer];
    members.iter().copied().find(|process| {
        let is_below = family.contains(&process.parent);
        if is_below {
            family.push(process.pid);
        }
        let is_pseudo = matches!(process.terminal, Terminal::Pseudo(_));
        is_below && is_pseudo && process.terminal != terminal && process.session == process.pid
    })
}

/// The job on the terminal that this process leads a session on; `None` if the terminal has no foreground.
#[must_use]
pub fn nested_job(members: &[Member], inner: Member) -> Option<Vec<u32>> {
    let group = inner.foreground?;
    let is_there = |process: &&Member| process.terminal == inner.terminal && process.group == group;
    Some(members.iter().filter(is_there).map(|process| process.pid).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
