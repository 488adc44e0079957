//! The processes of a session: their tree and their resource usage.
//!
//! Read from `/proc` only on request; percentages are means since the previous request, or since the process started.

use super::registry::{Found, Registry};
use super::session::Request;
use crate::action::{ActionError, SignalView};
use crate::ids::SessionId;
use crate::principal::Principal;
use std::collections::HashMap;
use std::time::{Instant, SystemTime};

use sys::process::Stat;

use super::timeline::{micros, time};
use crate::action::{ProcessState, ProcessView, Usage};

/// Linux counts CPU time for /proc in hundredths of a second on every architecture (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;
const US_PER_TICK: u64 = 10_000;
/// How many processes of one session are read.
const TREE_MAX: usize = 10_000;
/// Characters of a command line in a list; /proc has the whole one.
const COMMAND_LINE_CHARS_MAX: usize = 1_000;

/// The unique identity of a process: its id, and its start time in clock ticks since boot.
pub(crate) type Identity = (u32, u64);

/// Above this number of sessions, one scan of all processes replaces a search per session.
const TREES_MAX: usize = 16;
/// For how many sessions the previous measurement is kept; without one, a percentage is since the holder's start.
const LOOKS_KEPT: usize = 10_000;

/// The CPU time of whole sessions at the previous request, by holder.
#[derive(Debug, Default)]
pub(crate) struct Census(HashMap<u32, (Instant, u64)>);

/// The processes of these sessions, each list beginning with the holder. For many sessions this takes milliseconds, so
/// it runs on the blocking pool.
pub(crate) async fn look(holders: Vec<u32>) -> Vec<Vec<Stat>> {
    if holders.len() <= TREES_MAX {
        return holders.into_iter().map(whole_tree).collect();
    }
    let look = move || {
        let everyone = families();
        holders.into_iter().map(|holder| below(holder, &everyone)).collect()
    };
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

impl Census {
    /// The resource usage of a session's processes without the holder, which is the first of `all`.
    pub(crate) fn usage(&mut self, holder: u32, all: &[Stat]) -> Usage {
        let (total, stats) = (ticks(all), all.get(1..).unwrap_or_default());
        if self.0.len() >= LOOKS_KEPT {
            self.0.clear();
        }
        let cpu_percent = match self.0.insert(holder, (Instant::now(), total)) {
            Some((at, before)) => percent(total.saturating_sub(before), at.elapsed().as_secs_f64().max(0.001)),
            None => all.first().map_or(0.0, |holder| percent(total, age_seconds(holder))),
        };
        let pages: u64 = stats.iter().map(|s| s.rss_pages).sum();
        Usage { cpu_percent, memory_mb: megabytes(pages), processes: u32::try_from(stats.len()).unwrap_or(u32::MAX) }
    }
}

/// The CPU time of each process of a session at the previous list.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    at: Option<Instant>,
    each: HashMap<Identity, u64>,
}

impl Meter {
    /// Every process, parents before children.
    pub(crate) fn list(&mut self, holder_pid: u32, shell_pid: u32) -> Vec<ProcessView> {
        let stats = tree(holder_pid);
        let elapsed = self.elapsed();
        let boot_us = micros(SystemTime::now()).saturating_sub(sys::time::since_boot_us());
        let foreground = stats.iter().find(|s| s.pid == shell_pid).and_then(|s| s.foreground_group);
        let view = |stat: &Stat| {
            let cpu_percent = match self.each.get(&(stat.pid, stat.start_ticks)) {
                Some(before) => percent(stat.cpu_ticks.saturating_sub(*before), elapsed),
                None => percent(stat.cpu_ticks, age_seconds(stat)),
            };
            let command_line = sys::process::command_line(stat.pid);
            ProcessView {
                pid: stat.pid,
                // The holder does not belong to the session's processes.
                parent: Some(stat.ppid).filter(|parent| *parent != holder_pid),
                group: stat.pgrp,
                session: stat.session,
                name: stat.comm.clone(),
                command_line: command_line.chars().take(COMMAND_LINE_CHARS_MAX).collect(),
                state: state(stat.state),
                cpu_percent,
                cpu_time: std::time::Duration::from_micros(stat.cpu_ticks * US_PER_TICK),
                memory_mb: megabytes(stat.rss_pages),
                started_at: time(boot_us + stat.start_ticks * US_PER_TICK),
                is_foreground: foreground == Some(stat.pgrp),
            }
        };
        let views = stats.iter().map(view).collect();
        self.each = stats.iter().map(|s| ((s.pid, s.start_ticks), s.cpu_ticks)).collect();
        self.at = Some(Instant::now());
        views
    }

    fn elapsed(&self) -> f64 {
        self.at.map_or(f64::INFINITY, |at| at.elapsed().as_secs_f64().max(0.001))
    }
}

/// The age of a process; the kernel has its start in hundredths of a second.
fn age_seconds(stat: &Stat) -> f64 {
    (sys::time::since_boot_us().saturating_sub(stat.start_ticks * US_PER_TICK) as f64 / 1e6).max(0.01)
}

/// CPU time in microseconds of all processes that ever ran below this holder.
pub(crate) fn cpu_us(holder_pid: u32) -> u64 {
    ticks(&whole_tree(holder_pid)) * US_PER_TICK
}

/// Every process below the holder, parents before children.
pub(crate) fn tree(holder_pid: u32) -> Vec<Stat> {
    let mut all = whole_tree(holder_pid);
    all.drain(..all.len().min(1));
    all
}

/// The same, beginning with the holder.
fn whole_tree(holder_pid: u32) -> Vec<Stat> {
    if holder_pid == 0 { Vec::new() } else { sys::process::tree(holder_pid, TREE_MAX) }
}

/// All processes of the machine, by parent.
fn families() -> HashMap<u32, Vec<Stat>> {
    let mut families: HashMap<u32, Vec<Stat>> = HashMap::new();
    for stat in sys::process::all().into_iter().filter_map(sys::process::stat) {
        families.entry(stat.ppid).or_default().push(stat);
    }
    families
}

/// The holder and all of its descendants.
fn below(holder: u32, families: &HashMap<u32, Vec<Stat>>) -> Vec<Stat> {
    let mut found: Vec<Stat> = sys::process::stat(holder).into_iter().collect();
    let mut next = 0;
    while next < found.len() && found.len() < TREE_MAX {
        found.extend(families.get(&found[next].pid).cloned().unwrap_or_default());
        next += 1;
    }
    found
}

/// A reaped child counts in its parent; orphans count in the holder, whose own time is not the session's.
fn ticks(all: &[Stat]) -> u64 {
    let own = all.first().map_or(0, |holder| holder.cpu_ticks);
    all.iter().map(|s| s.cpu_ticks + s.reaped_ticks).sum::<u64>() - own
}

fn percent(ticks: u64, seconds: f64) -> f64 {
    ticks as f64 / TICKS_PER_SECOND / seconds * 100.0
}

fn megabytes(pages: u64) -> f64 {
    pages as f64 * rustix::param::page_size() as f64 / f64::from(1 << 20)
}

/// The present state of a process that was seen before.
pub(crate) fn state_of(identity: Identity) -> ProcessState {
    let stat = sys::process::stat(identity.0).filter(|s| s.start_ticks == identity.1);
    stat.map_or(ProcessState::Ended, |s| state(s.state))
}

/// The letters of `/proc/<pid>/stat` (proc(5)).
fn state(letter: u8) -> ProcessState {
    match letter {
        b'R' => ProcessState::Running,
        b'T' | b't' => ProcessState::Stopped,
        b'D' => ProcessState::Blocked,
        b'Z' | b'X' => ProcessState::Ended,
        _ => ProcessState::Sleeping,
    }
}

impl Registry {
    /// An ended session has no processes.
    pub(super) async fn processes(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Vec<ProcessView>, ActionError> {
        match self.find(principal, session).await? {
            Found::Live(handle) => handle.ask(Request::Processes).await,
            Found::Unreachable(unreachable) => Err(unreachable.error()),
            Found::EndedSession(_) => Ok(Vec::new()),
        }
    }

    pub(super) async fn signals(
        &self,
        principal: &Principal,
        session: &SessionId,
    ) -> Result<Vec<SignalView>, ActionError> {
        match self.find(principal, session).await? {
            Found::Live(handle) => handle.ask(Request::Signals).await,
            Found::Unreachable(unreachable) => Err(unreachable.error()),
            Found::EndedSession(past) => Ok(super::views::signal_views(&past.timeline)),
        }
    }
}
