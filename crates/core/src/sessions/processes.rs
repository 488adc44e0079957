//! The processes of a session: their tree and their resource usage.
//!
//! They are read only on request. A percentage is a mean since a request that is at least a second old, or else since the
//! process started.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use journal::Masks;

use super::timeline::{micros, time};
use crate::action::{ProcessState, ProcessView, Usage};
use crate::host::{Host, Identity, Process, descendants};

/// Characters of a command line in a list; /proc has the whole one.
const COMMAND_LINE_CHARS_MAX: usize = 1_000;

/// Above this number of sessions, a search takes milliseconds.
const TREES_AT_ONCE: usize = 16;
/// The number of sessions with kept measurements. Without one, a percentage is a mean since the holder's start.
const LOOKS_KEPT: usize = 10_000;

/// A percentage is a mean over this time at least: the kernel counts in hundredths of a second.
const WINDOW: Duration = Duration::from_secs(1);
/// A measurement that comes sooner after another one is not kept.
const STEP: Duration = Duration::from_millis(100);

/// CPU time at earlier requests, the oldest first.
#[derive(Debug, Default)]
struct Looks(VecDeque<(Instant, u64)>);

impl Looks {
    /// The percentage since the newest request that is a window old; `None` before there is one.
    fn percent(&mut self, now: Instant, used_us: u64) -> Option<f64> {
        let is_old = |look: &(Instant, u64)| now.saturating_duration_since(look.0) >= WINDOW;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
        let oldest = self.0.front().copied().filter(is_old);
        if self.0.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= STEP) {
            self.0.push_back((now, used_us));
        }
        oldest.map(|(at, before)| percent(used_us.saturating_sub(before), (now - at).as_secs_f64()))
    }
}

/// The CPU time of whole sessions at earlier requests, by holder.
#[derive(Debug, Default)]
pub(crate) struct Census(HashMap<u32, Looks>);

/// The processes of these sessions, each list beginning with the holder. For many sessions this takes milliseconds, so
/// it runs on the blocking pool.
pub(crate) async fn look(host: &Arc<dyn Host>, holders: Vec<u32>) -> Vec<Vec<Process>> {
    if holders.len() <= TREES_AT_ONCE {
        return host.process_trees(&holders);
    }
    let host = Arc::clone(host);
    tokio::task::spawn_blocking(move || host.process_trees(&holders)).await.unwrap_or_default()
}

impl Census {
    /// The resource usage of a session's processes without the holder, which is the first of `all`.
    pub(crate) fn usage(&mut self, holder: u32, all: &[Process], since_boot_us: u64) -> Usage {
        let (total, below) = (used_us(all), all.get(1..).unwrap_or_default());
        if self.0.len() >= LOOKS_KEPT {
            self.0.clear();
        }
        let of_window = self.0.entry(holder).or_default().percent(Instant::now(), total);
        let since_start = || all.first().map_or(0.0, |holder| percent(total, age_seconds(holder, since_boot_us)));
        let cpu_percent = of_window.unwrap_or_else(since_start);
        let below: Vec<_> = below.iter().filter(|it| !it.is_first_of_sandbox(holder)).collect();
        let memory: u64 = below.iter().map(|it| it.memory_bytes).sum();
        Usage { cpu_percent, memory_mb: megabytes(memory), processes: u32::try_from(below.len()).unwrap_or(u32::MAX) }
    }
}

/// The CPU time of each process of a session at earlier lists.
#[derive(Debug, Default)]
pub(crate) struct Meter(HashMap<Identity, Looks>);

impl Meter {
    /// Every process, parents before children.
    pub(crate) fn list(
        &mut self,
        host: &dyn Host,
        holder_pid: u32,
        shell_pid: u32,
        is_sandbox: bool,
        masks: &Masks,
    ) -> Vec<ProcessView> {
        let all = descendants(host, holder_pid);
        let pids: HashSet<u32> = all.iter().map(Process::pid).collect();
        let (now, since_boot_us) = (Instant::now(), host.since_boot_us());
        let boot_us = micros(sys::time::wall()).saturating_sub(since_boot_us);
        let foreground = all.iter().find(|it| it.pid() == shell_pid).and_then(|shell| shell.foreground_group);
        let mut before = std::mem::take(&mut self.0);
        let mut view = |it: &Process| {
            let mut looks = before.remove(&it.identity).unwrap_or_default();
            let of_window = looks.percent(now, it.cpu_us);
            self.0.insert(it.identity, looks);
            let cpu_percent = of_window.unwrap_or_else(|| percent(it.cpu_us, age_seconds(it, since_boot_us)));
            // Half a secret is not recognized.
            let mut command_line = masks.text(host.command_line(it.pid()));
            if let Some((end, _)) = command_line.char_indices().nth(COMMAND_LINE_CHARS_MAX) {
                command_line.truncate(end);
            }
            ProcessView {
                pid: it.pid(),
                sandbox_pid: is_sandbox.then(|| host.innermost_pid(it.pid())).flatten(),
                // The holder and the first process of a sandbox do not belong to the session's processes.
                parent: Some(it.parent).filter(|parent| pids.contains(parent)),
                group: it.group,
                session: it.session,
                name: masks.text(it.name.clone()),
                command_line,
                state: it.state,
                cpu_percent,
                cpu_time: Duration::from_micros(it.cpu_us),
                memory_mb: megabytes(it.memory_bytes),
                started_at: time(boot_us + it.started_us),
                is_foreground: foreground == Some(it.group),
            }
        };
        all.iter().map(&mut view).collect()
    }
}

/// The age of a process.
fn age_seconds(process: &Process, since_boot_us: u64) -> f64 {
    (since_boot_us.saturating_sub(process.started_us) as f64 / 1e6).max(0.01)
}

/// CPU time in microseconds of all processes that ever ran below this holder.
pub(crate) fn cpu_us(host: &dyn Host, holder_pid: u32) -> u64 {
    used_us(&host.process_trees(&[holder_pid]).pop().unwrap_or_default())
}

/// A reaped child counts in its parent; orphans count in the holder, which is the first and whose own time is not the
/// session's.
fn used_us(all: &[Process]) -> u64 {
    let own = all.first().map_or(0, |holder| holder.cpu_us);
    all.iter().map(|it| it.cpu_us + it.reaped_cpu_us).sum::<u64>() - own
}

fn percent(cpu_us: u64, seconds: f64) -> f64 {
    cpu_us as f64 / 1e6 / seconds * 100.0
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// The present state of a process that was seen before.
pub(crate) fn state_of(host: &dyn Host, identity: Identity) -> ProcessState {
    let process = host.process(identity.0).filter(|it| it.identity == identity);
    process.map_or(ProcessState::Ended, |it| it.state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{self, FakeHost};

    const SECOND: u64 = 1_000_000;

    fn process(pid: u32, parent: u32, cpu_us: u64) -> Process {
        Process { cpu_us, memory_bytes: 1 << 20, ..host::process(pid, parent) }
    }

    #[test]
    // promise: limit-8
    fn a_list_has_the_processes_below_the_holder_and_their_load() {
        let (host, mut meter) = (FakeHost::default(), Meter::default());
        let shell = Process { foreground_group: Some(3), name: "bash".to_owned(), ..process(2, 1, SECOND) };
        let other = process(9, 8, SECOND);
        host.runs(&[process(1, 0, 7 * SECOND), shell.clone(), process(3, 2, 2 * SECOND), other], 4 * SECOND);
        let told: Vec<_> = meter
            .list(&host, 1, 2, false, &Masks::default())
            .into_iter()
            .map(|p| (p.pid, p.parent, p.is_foreground))
            .collect();
        assert_eq!(told, [(2, None, false), (3, Some(2), true)]);
        let again: Vec<_> =
            meter.list(&host, 1, 2, false, &Masks::default()).into_iter().map(|p| p.cpu_percent).collect();
        assert_eq!(again, [25.0, 50.0], "since the start, for the other list is no second old");
    }

    #[test]
    // promise: limit-8
    fn a_percentage_is_a_mean_over_a_second_or_more_however_often_it_is_read() {
        let (start, mut looks) = (Instant::now(), Looks::default());
        let mut at = |ms: u64, used_ms: u64| looks.percent(start + Duration::from_millis(ms), used_ms * 1_000);
        assert_eq!([at(0, 0), at(20, 10), at(999, 490)], [None, None, None]);
        assert_eq!(at(1_000, 500), Some(50.0), "since the first, although there was another a millisecond ago");
        assert_eq!(at(1_999, 990), Some(50.0), "since the one at 999 ms");
        assert_eq!(at(10_000, 990), Some(0.0), "since the last one");
    }

    #[test]
    fn the_usage_of_a_session_counts_reaped_processes_and_not_the_holder() {
        let holder = Process { reaped_cpu_us: SECOND, ..process(1, 0, 50 * SECOND) };
        let all = [holder, process(2, 1, SECOND), process(3, 2, 2 * SECOND)];
        let usage = Census::default().usage(1, &all, 8 * SECOND);
        assert_eq!((usage.cpu_percent, usage.memory_mb, usage.processes), (50.0, 2.0, 2));
    }

    #[test]
    // promise: access-15
    fn the_first_process_of_a_sandbox_is_not_listed_and_the_use_of_those_that_it_reaped_counts() {
        let first = Process { session: 1, reaped_cpu_us: SECOND, ..process(4, 1, 0) };
        let all = [process(1, 0, 0), process(2, 1, SECOND), first, process(5, 4, 0)];
        let usage = Census::default().usage(1, &all, 8 * SECOND);
        assert_eq!((usage.cpu_percent, usage.memory_mb, usage.processes), (25.0, 2.0, 2));
        let host = FakeHost::default();
        host.runs(&all, 4 * SECOND);
        let told = Meter::default().list(&host, 1, 2, true, &Masks::default());
        let told: Vec<_> = told.into_iter().map(|p| (p.pid, p.sandbox_pid, p.parent)).collect();
        assert_eq!(told, [(2, Some(2), None), (5, Some(5), None)]);
    }

    #[test]
    fn a_process_with_the_pid_of_one_that_has_ended_is_another() {
        let host = FakeHost::default();
        host.runs(&[process(2, 1, 0)], 0);
        assert_eq!(state_of(&host, (2, 0)), ProcessState::Ended);
        assert_ne!(state_of(&host, (2, 1)), ProcessState::Ended);
    }
}
