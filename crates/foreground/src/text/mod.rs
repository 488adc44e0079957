//! The facts as text, a line for each: the payload of a holder's frame, and what the tests have recorded.
//!
//! Observers outlive the version that started them, so words and lines are only added, and a reader passes over those
//! that it does not know.

use std::fmt;
use std::str::FromStr;

use crate::observation::{EventLoop, Job, LoopLimit, Modes, Observation, PollCall, Process, Shell, Wait};

/// A text that does not begin with the facts that every observation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

/// How many lines are read: an observation has a few processes of each of its terminals.
const LINES_MAX: usize = 1_024;

impl fmt::Display for Observation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "foreground group {} quiet {} modes{}", self.group, self.quiet_ms, self.modes)?;
        if let Some(Shell { takes_lines, is_stopped, process }) = &self.shell {
            let lines = if *takes_lines { " takes-lines" } else { "" };
            let stopped = if *is_stopped { " stopped" } else { "" };
            write!(f, "shell {}{lines}{stopped}\n{process}", process.pid)?;
        }
        self.rivals.iter().try_for_each(|pid| writeln!(f, "rival {pid}"))?;
        if let Some(pid) = self.stopped {
            writeln!(f, "stopped {pid}")?;
        }
        self.jobs.iter().try_for_each(|job| write!(f, "{job}"))
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "job modes{}", self.modes)?;
        for process in &self.processes {
            let connection = if process.has_connection { " has-connection" } else { "" };
            write!(f, "process {}{connection}\n{process}", process.pid)?;
        }
        for (word, is) in [("whole", self.is_whole), ("others", self.has_others)] {
            if is {
                writeln!(f, "{word}")?;
            }
        }
        for (word, fact) in [("listens", self.listens), ("nested", self.has_nested)] {
            if let Some(is) = fact {
                writeln!(f, "{word} {}", if is { "yes" } else { "no" })?;
            }
        }
        if let Some(EventLoop { limit, working_threads, children, foreign }) = self.event_loop {
            let limit = match limit {
                LoopLimit::Short => "short",
                LoopLimit::Long => "long",
                LoopLimit::Endless => "endless",
            };
            writeln!(f, "event-loop {limit} threads {working_threads} children {children} foreign {foreign}")?;
        }
        Ok(())
    }
}

/// The lines about the threads; that about the process says what it is to the terminal.
impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "first {}", self.first)?;
        self.others.iter().try_for_each(|wait| writeln!(f, "other {wait}"))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden => f.write_str("hidden"),
            Self::Elsewhere => f.write_str("elsewhere"),
            Self::ForItself => f.write_str("for-itself"),
            Self::Reads { bytes } => write!(f, "reads {bytes}"),
            Self::Polls { call, terminal, others, limit_ms } => {
                let call = match call {
                    PollCall::Poll => "poll",
                    PollCall::Select => "select",
                    PollCall::Epoll => "epoll",
                };
                write!(f, "{call} terminal {terminal} others {others}")?;
                limit_ms.map_or(Ok(()), |limit| write!(f, " limit {limit}"))
            }
        }
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { canonical, echo, isig, maps_cr, maps_nl } = *self;
        let modes = [("icanon", canonical), ("echo", echo), ("isig", isig), ("icrnl", maps_cr), ("inlcr", maps_nl)];
        modes.iter().filter(|(_, is_on)| *is_on).try_for_each(|(name, _)| write!(f, " {name}"))
    }
}

/// The words of a line.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn of(line: &'a str) -> Self {
        Self(line.split_ascii_whitespace().collect())
    }

    fn at(&self, place: usize) -> &'a str {
        self.0.get(place).copied().unwrap_or_default()
    }

    fn has(&self, word: &str) -> bool {
        self.0.contains(&word)
    }

    /// The number behind this word.
    fn number<N: FromStr>(&self, word: &str) -> Option<N> {
        let at = self.0.iter().position(|w| *w == word)?;
        self.at(at + 1).parse().ok()
    }

    fn modes(&self) -> Modes {
        Modes {
            canonical: self.has("icanon"),
            echo: self.has("echo"),
            isig: self.has("isig"),
            maps_cr: self.has("icrnl"),
            maps_nl: self.has("inlcr"),
        }
    }

    /// The wait of a thread; an unknown call does not concern the terminal.
    fn wait(&self) -> Wait {
        let call = match self.at(1) {
            "hidden" => return Wait::Hidden,
            "for-itself" => return Wait::ForItself,
            "reads" => return Wait::Reads { bytes: self.number("reads").unwrap_or(0) },
            "poll" => PollCall::Poll,
            "select" => PollCall::Select,
            "epoll" => PollCall::Epoll,
            _ => return Wait::Elsewhere,
        };
        let (terminal, others) = (self.number("terminal").unwrap_or(1), self.number("others").unwrap_or(0));
        Wait::Polls { call, terminal, others, limit_ms: self.number("limit") }
    }
}

impl FromStr for Observation {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let mut seen = Self::default();
        let mut lines = text.lines().take(LINES_MAX).map(Words::of);
        let first = lines.next().filter(|words| words.at(0) == "foreground").ok_or(Unreadable)?;
        seen.group = first.number("group").ok_or(Unreadable)?;
        seen.quiet_ms = first.number("quiet").ok_or(Unreadable)?;
        seen.modes = first.modes();
        lines.for_each(|words| seen.add(&words));
        Ok(seen)
    }
}

impl Observation {
    fn add(&mut self, words: &Words<'_>) {
        let of = |pid| Process { pid, ..Process::default() };
        match words.at(0) {
            "shell" => {
                let (takes_lines, is_stopped) = (words.has("takes-lines"), words.has("stopped"));
                self.shell = words.number("shell").map(of).map(|process| Shell { takes_lines, is_stopped, process });
            }
            "rival" => self.rivals.extend(words.number::<u32>("rival")),
            "stopped" => self.stopped = words.number("stopped"),
            "job" => self.jobs.push(Job { modes: words.modes(), ..Job::default() }),
            "first" | "other" => {
                let in_job = self.jobs.last_mut().and_then(|job| job.processes.last_mut());
                if let Some(process) = in_job.or(self.shell.as_mut().map(|shell| &mut shell.process)) {
                    match words.at(0) {
                        "first" => process.first = words.wait(),
                        _ => process.others.push(words.wait()),
                    }
                }
            }
            word => {
                let Some(job) = self.jobs.last_mut() else { return };
                let is = words.at(1) == "yes";
                match word {
                    "process" => {
                        let has_connection = words.has("has-connection");
                        let process = words.number("process").map(of);
                        job.processes.extend(process.map(|process| Process { has_connection, ..process }));
                    }
                    "whole" => job.is_whole = true,
                    "others" => job.has_others = true,
                    "listens" => job.listens = Some(is),
                    "nested" => job.has_nested = Some(is),
                    "event-loop" => {
                        job.event_loop = Some(EventLoop {
                            limit: match words.at(1) {
                                "endless" => LoopLimit::Endless,
                                "long" => LoopLimit::Long,
                                _ => LoopLimit::Short,
                            },
                            working_threads: words.number("threads").unwrap_or(0),
                            children: words.number("children").unwrap_or(0),
                            foreign: words.number("foreign").unwrap_or(0),
                        });
                    }
                    _ => {}
                }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
