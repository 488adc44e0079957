//! The first table: what the processes that have the terminal do.
//!
//! The rules stand in their order, and the first that applies decides. Where a job has given a terminal to a descendant,
//! the job on that terminal is judged first, by the same rules.

use crate::observation::{EventLoop, Job, LoopLimit, Modes, NESTED_MAX, Observation, Process, Shell, Wait};

/// A time limit below this is one of a program that has other work, such as a spinner.
const SOON_MS: u64 = 10_000;
/// One from here on is a runtime's own, such as V8's 8 s until it frees memory. A program with other work wakes up more often.
const SELDOM_MS: u64 = 4_000;
/// A program that polls with a short time limit counts as one without after this much silence.
const SILENT_MS: u32 = 1_200;
/// An event loop that no other descriptor can wake counts as a reader after this much silence: one of its own threads may
/// be about to wake it.
const SETTLED_MS: u32 = 300;

/// The activity of the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Not known, for lack of permission.
    Unknown,
    /// The shell's line editor waits for a key.
    Editor,
    /// The shell itself reads a line, as `read` does.
    ShellReads,
    /// A program or the shell computes, sleeps, or waits for something else.
    Busy,
    /// A program waits for the terminal, and nothing else can wake it.
    Reads,
    /// A program waits for the terminal among others.
    Polls,
    /// The same, and its job has a listening socket.
    PollsAndListens,
    /// The job that has the terminal is stopped by a signal, and no shell takes the terminal back.
    Stopped,
    /// A program waits for the terminal among others, and wakes up by itself soon.
    PollsForATime,
}

impl Activity {
    /// Every activity.
    pub const ALL: [Self; 9] = [
        Self::Unknown,
        Self::Editor,
        Self::ShellReads,
        Self::Busy,
        Self::Reads,
        Self::Polls,
        Self::PollsAndListens,
        Self::Stopped,
        Self::PollsForATime,
    ];

    /// Whether the shell's own process waits for input.
    #[must_use]
    pub fn is_a_waiting_shell(self) -> bool {
        matches!(self, Self::Editor | Self::ShellReads)
    }

    /// Whether the foreground may want input, or goes on only with a signal.
    #[must_use]
    pub fn waits(self) -> bool {
        !matches!(self, Self::Busy | Self::Unknown)
    }

    /// Whether nothing but input, a signal or a time limit of its own changes it.
    #[must_use]
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Reads | Self::ShellReads | Self::Editor)
    }
}

/// The meaning of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// The activity.
    pub activity: Activity,
    /// The process that decided, 0 when none did.
    pub pid: u32,
    /// The modes of the terminal of the job that decided.
    pub modes: Modes,
    /// The name of the rule that decided.
    pub rule: &'static str,
}

/// A fact that may decide and was not examined yet. A number is that of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The leader of the foreground group.
    Leader,
    /// The other processes of the job.
    Others,
    /// Whether the job's deciding process has given a terminal to a descendant, and the job there.
    Nested(usize),
    /// Whether the job listens.
    Listening(usize),
    /// The event loop of the job's deciding process.
    EventLoop(usize),
}

/// How a process holds on to the terminal, weakest first: of several processes the strongest decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hold {
    Hidden,
    Elsewhere,
    PollsSoon,
    Polls,
    PollsAlone,
    Reads,
}

impl Hold {
    fn of_thread(wait: Wait) -> Self {
        match wait {
            Wait::Hidden => Self::Hidden,
            Wait::Elsewhere | Wait::ForItself => Self::Elsewhere,
            Wait::Reads { .. } => Self::Reads,
            Wait::Polls { limit_ms: Some(limit), .. } if limit < SOON_MS => Self::PollsSoon,
            Wait::Polls { others: 0, .. } => Self::PollsAlone,
            Wait::Polls { .. } => Self::Polls,
        }
    }

    fn of_threads(process: &Process) -> Self {
        let first = Self::of_thread(process.first);
        if first != Self::Elsewhere {
            return first;
        }
        // While the first thread does something other than wait for the others, the program works and merely listens
        // besides.
        let at_most = if process.first == Wait::ForItself { Self::Reads } else { Self::PollsSoon };
        let others = process.others.iter().map(|wait| Self::of_thread(*wait));
        others.max().unwrap_or(first).clamp(first, at_most)
    }

    /// A program with a connection may relay what one of its threads reads, as `docker exec -it` and `podman run -it`
    /// always do, and that thread shows nothing about the program at the other end.
    fn of(process: &Process) -> Self {
        match Self::of_threads(process) {
            Self::Reads if process.has_connection => Self::Polls,
            hold => hold,
        }
    }

    fn waits(self) -> bool {
        self >= Self::PollsSoon
    }

    fn polls(self) -> bool {
        self.waits() && self != Self::Reads
    }
}

/// Whether a shell without our keys waits for a command line, and not for the input of its `read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineReader {
    /// It does not read, or reads one byte at a time: `read` must not take input behind its line.
    No,
    /// Its editor selects, and so may its `read` (ksh93); or the kernel does not permit to examine it.
    Perhaps,
    /// It reads as much as there is, or its own editor has the terminal.
    Yes,
}

/// Whether this shell waits for a command line, on a terminal in these modes.
#[must_use]
pub fn reads_lines(shell: &Process, modes: Modes) -> LineReader {
    let is_raw = !modes.canonical;
    match (shell.first, Hold::of_thread(shell.first)) {
        (Wait::Reads { bytes }, _) if is_raw || bytes > 1 => LineReader::Yes,
        (Wait::Polls { call: crate::PollCall::Select, .. }, _) if is_raw => LineReader::Perhaps,
        (_, hold) if hold.polls() && is_raw => LineReader::Yes,
        (Wait::Hidden, _) => LineReader::Perhaps,
        _ => LineReader::No,
    }
}

impl Process {
    /// Whether it may be read from: it waits for the terminal, or may not be examined.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        Hold::of_threads(self) != Hold::Elsewhere
    }

    /// Whether the kernel shows that it waits for the terminal.
    #[must_use]
    pub fn is_seen_to_wait(&self) -> bool {
        Hold::of_threads(self).waits()
    }
}

/// The shell at its own terminal.
struct ShellSight<'a> {
    shell: &'a Shell,
    modes: Modes,
    hold: Hold,
}

/// A job at its terminal.
struct JobSight<'a> {
    job: &'a Job,
    process: Option<&'a Process>,
    hold: Hold,
    quiet_ms: u32,
}

struct ShellRule {
    name: &'static str,
    applies: fn(&ShellSight<'_>) -> bool,
    activity: Activity,
}

struct JobRule {
    name: &'static str,
    applies: fn(&JobSight<'_>) -> bool,
    activity: Activity,
}

/// A shell that has the terminal: readline and fish select with every translation off, zsh reads with both on. The `read`
/// builtin reads, or selects if it has a time limit, and our key would be its input. Where no rule applies, a program that
/// the shell runs without job control (`set +m`) is in its group.
const SHELL_RULES: [ShellRule; 7] = [
    ShellRule { name: "shell is stopped", applies: |s| s.shell.is_stopped, activity: Activity::Stopped },
    ShellRule {
        name: "shell without keys waits for a line",
        applies: |s| s.shell.takes_lines && s.hold.waits() && reads_lines(&s.shell.process, s.modes) == LineReader::Yes,
        activity: Activity::Editor,
    },
    ShellRule {
        name: "shell without keys reads",
        applies: |s| s.shell.takes_lines && s.hold.waits(),
        activity: Activity::ShellReads,
    },
    ShellRule {
        name: "editor of zsh waits",
        applies: |s| s.hold.waits() && s.modes.are_an_editors() && s.modes.maps_cr,
        activity: Activity::Editor,
    },
    ShellRule {
        name: "editor polls",
        applies: |s| s.hold.polls() && !s.modes.canonical && !s.modes.maps_cr,
        activity: Activity::Editor,
    },
    ShellRule { name: "shell reads", applies: |s| s.hold.waits(), activity: Activity::ShellReads },
    ShellRule { name: "shell is hidden", applies: |s| s.hold == Hold::Hidden, activity: Activity::Unknown },
];

/// The name of the rule about [`Observation::stopped`], which comes before those about the job.
const STOPPED: &str = "job is stopped";

/// A job. Line editors and event loops wait in poll, select or epoll; so do spinners and development servers.
const JOB_RULES: [JobRule; 12] = [
    JobRule { name: "reads", applies: |j| j.hold == Hold::Reads, activity: Activity::Reads },
    JobRule { name: "polls the terminal alone", applies: |j| j.hold == Hold::PollsAlone, activity: Activity::Reads },
    JobRule {
        name: "listens",
        applies: |j| j.hold.polls() && j.job.listens == Some(true),
        activity: Activity::PollsAndListens,
    },
    JobRule {
        name: "nothing else but its own clock wakes it",
        applies: |j| {
            may_have_a_clock(j.job, j.hold, j.quiet_ms) && j.job.event_loop.is_some_and(EventLoop::has_a_clock)
        },
        activity: Activity::Reads,
    },
    JobRule {
        name: "wakes up soon, and is silent",
        applies: |j| j.hold == Hold::PollsSoon && j.quiet_ms >= SILENT_MS,
        activity: Activity::Polls,
    },
    JobRule {
        name: "reads while its first thread works",
        applies: |j| j.hold == Hold::PollsSoon && j.process.is_some_and(|p| !matches!(p.first, Wait::Polls { .. })),
        activity: Activity::PollsForATime,
    },
    JobRule { name: "wakes up soon", applies: |j| j.hold == Hold::PollsSoon, activity: Activity::PollsForATime },
    JobRule {
        name: "nothing else wakes it",
        applies: |j| is_settled(j.hold, j.quiet_ms) && j.job.event_loop.is_some_and(EventLoop::is_alone),
        activity: Activity::Reads,
    },
    JobRule {
        name: "reads, and may relay it",
        applies: |j| j.hold == Hold::Polls && j.process.is_some_and(|p| Hold::of_threads(p) == Hold::Reads),
        activity: Activity::Polls,
    },
    JobRule { name: "polls", applies: |j| j.hold == Hold::Polls, activity: Activity::Polls },
    JobRule {
        name: "is hidden",
        applies: |j| j.hold == Hold::Hidden && j.process.is_some(),
        activity: Activity::Unknown,
    },
    JobRule { name: "works", applies: |_| true, activity: Activity::Busy },
];

/// The names of all rules.
pub fn activity_rules() -> impl Iterator<Item = &'static str> {
    SHELL_RULES.iter().map(|rule| rule.name).chain([STOPPED]).chain(JOB_RULES.iter().map(|rule| rule.name))
}

/// The state of the foreground, and the rule that decides.
#[must_use]
pub fn activity(seen: &Observation) -> Reading {
    if let Some(reading) = of_shell(seen) {
        return reading;
    }
    if let Some(pid) = seen.stopped {
        return Reading { activity: Activity::Stopped, pid, modes: seen.modes, rule: STOPPED };
    }
    of_jobs(&seen.jobs, seen.quiet_ms).unwrap_or(Reading {
        activity: Activity::Busy,
        pid: 0,
        modes: seen.modes,
        rule: "works",
    })
}

fn of_shell(seen: &Observation) -> Option<Reading> {
    let shell = seen.shell.as_ref()?;
    let sight = ShellSight { shell, modes: seen.modes, hold: Hold::of_threads(&shell.process) };
    let rule = SHELL_RULES.iter().find(|rule| (rule.applies)(&sight))?;
    Some(Reading { activity: rule.activity, pid: shell.process.pid, modes: seen.modes, rule: rule.name })
}

/// The first of these jobs, or the one on the terminal behind it.
fn of_jobs(jobs: &[Job], quiet_ms: u32) -> Option<Reading> {
    let (job, nested) = jobs.split_first()?;
    let (process, hold) = job.deciding();
    if hold.may_pass_on() && job.has_nested == Some(true) {
        // A job that may not be examined says nothing.
        let there = of_jobs(nested, quiet_ms).filter(|reading| reading.activity != Activity::Unknown);
        if there.is_some() {
            return there;
        }
    }
    let sight = JobSight { job, process, hold, quiet_ms };
    let rule = JOB_RULES.iter().find(|rule| (rule.applies)(&sight))?;
    let pid = process.filter(|_| rule.activity != Activity::Busy).map_or(0, |process| process.pid);
    Some(Reading { activity: rule.activity, pid, modes: job.modes, rule: rule.name })
}

/// The next fact to examine, if one is missing that may decide.
#[must_use]
pub fn missing(seen: &Observation) -> Option<Missing> {
    if of_shell(seen).is_some() || seen.stopped.is_some() {
        return None;
    }
    match seen.jobs.first() {
        None => Some(Missing::Leader),
        // Most often the leader alone decides.
        Some(job) if !job.is_whole && job.deciding().1 != Hold::Reads => Some(Missing::Others),
        Some(_) => missing_of_jobs(&seen.jobs, 0, seen.quiet_ms),
    }
}

fn missing_of_jobs(jobs: &[Job], at: usize, quiet_ms: u32) -> Option<Missing> {
    let job = jobs.get(at)?;
    let hold = job.deciding().1;
    if !hold.may_pass_on() {
        return None;
    }
    match job.has_nested {
        None if at < NESTED_MAX => return Some(Missing::Nested(at)),
        Some(true) => {
            let fact = missing_of_jobs(jobs, at + 1, quiet_ms);
            let there = of_jobs(jobs.get(at + 1..).unwrap_or_default(), quiet_ms);
            if fact.is_some() || there.is_some_and(|reading| reading.activity != Activity::Unknown) {
                return fact;
            }
        }
        None | Some(false) => {}
    }
    match job.listens {
        None => Some(Missing::Listening(at)),
        Some(false) if job.event_loop.is_none() => {
            let matters = is_settled(hold, quiet_ms) || may_have_a_clock(job, hold, quiet_ms);
            matters.then_some(Missing::EventLoop(at))
        }
        Some(_) => None,
    }
}

/// Whether the same facts may mean something else after a longer silence.
#[must_use]
pub fn depends_on_silence(seen: &Observation) -> bool {
    of_shell(seen).is_none() && seen.stopped.is_none() && seen.jobs.iter().any(|job| job.deciding().1.may_pass_on())
}

fn is_settled(hold: Hold, quiet_ms: u32) -> bool {
    hold == Hold::Polls && quiet_ms >= SETTLED_MS
}

/// A program that reads keys and is silent may be woken by a clock of its own that has nothing to do with what it shows.
fn may_have_a_clock(job: &Job, hold: Hold, quiet_ms: u32) -> bool {
    let first = job.deciding_process().map(|process| process.first);
    let is_seldom = matches!(first, Some(Wait::Polls { limit_ms: Some(SELDOM_MS..), .. }));
    hold.may_pass_on() && !job.modes.canonical && quiet_ms >= if is_seldom { SETTLED_MS } else { SILENT_MS }
}

impl Hold {
    /// A program that polls, and not the terminal alone, may pass the keys on to a terminal of its own.
    fn may_pass_on(self) -> bool {
        matches!(self, Self::Polls | Self::PollsSoon)
    }
}

impl Job {
    /// The process that holds on to the terminal most, the last one of several.
    fn deciding(&self) -> (Option<&Process>, Hold) {
        let strongest = self.processes.iter().map(|process| (Some(process), Hold::of(process)));
        let others = self.has_others.then_some((None, Hold::Elsewhere));
        others.into_iter().chain(strongest).max_by_key(|(_, hold)| *hold).unwrap_or((None, Hold::Elsewhere))
    }

    /// The process that decides what this job does, if one does.
    #[must_use]
    pub fn deciding_process(&self) -> Option<&Process> {
        self.deciding().0
    }
}

impl EventLoop {
    /// Only the terminal and the process itself can wake it: it has no child and no working thread, and watches no file, no
    /// connection and no clock.
    fn is_alone(self) -> bool {
        self == Self { limit: LoopLimit::Endless, ..Self::default() }
    }

    /// Like [`Self::is_alone`], but a clock may wake it.
    fn has_a_clock(self) -> bool {
        self == Self { limit: LoopLimit::Long, ..Self::default() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
