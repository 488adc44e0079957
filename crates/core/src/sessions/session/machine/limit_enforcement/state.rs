//! A session's limits, their use, and the next step against the processes that exceeded one.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use crate::action::{Limit, Limits};
use crate::host::{ControlGroup, Counts, Host, Identity, Process};
use crate::limits;
use crate::machine_pause::was_paused;
use crate::sessions::shared::Shared;
use crate::sessions::{processes, resource_limits};

/// Interval between checks of a session with limits while a command runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The time between SIGINT, which goes through the holder, and SIGTERM. If SIGTERM ended the child before the interrupt
/// arrived, the interrupt would reach the shell's next prompt and clear the next command's line.
const INTERRUPT_ALONE: Duration = Duration::from_millis(50);
/// Interval between checks while no command runs: background jobs use resources, too.
const LOOK_WHEN_IDLE: Duration = Duration::from_secs(5);

/// A session's limits and their use.
#[derive(Debug)]
pub(crate) struct LimitEnforcer {
    pub(crate) limits: Limits,
    group: Option<Box<dyn ControlGroup>>,
    /// The cgroup's counters at the last check.
    counts: Counts,
    /// The running command, its start time, and the offset where its output begins.
    pub(crate) command: Option<(u32, Instant, u64)>,
    /// CPU time in microseconds that was used when the newest command began.
    cpu_from_us: u64,
    /// The next step against the processes that exceeded a limit, the limit, and the time of the step.
    pub(crate) ending: Option<(Step, Limit, Instant)>,
    /// The processes that got SIGTERM, and when the remaining ones get SIGKILL, even if their command has ended by
    /// then.
    pub(crate) to_kill: Option<(HashSet<Identity>, Instant)>,
    /// Processes and process groups that existed when the last command ended (background jobs): the next command's
    /// limits do not cover them.
    earlier: HashSet<Identity>,
    earlier_groups: HashSet<u32>,
    /// Events from before this server were not taken into account yet.
    pub(crate) is_fresh: bool,
    pub(crate) look_at: Option<Instant>,
    checked_at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Terminate,
    Kill,
    EndSession,
}

impl LimitEnforcer {
    /// `None` for a session without a limit to check here.
    pub(crate) fn of(shared: &Shared, now: Instant) -> Option<Box<Self>> {
        let limits = shared.meta.limits;
        // These limits are enforced elsewhere.
        let Limits { open_files, output_rate, inactivity, max_age, .. } = limits;
        let is_watched = limits != Limits { open_files, output_rate, inactivity, max_age, ..Limits::default() };
        let group = resource_limits::group(&*shared.backends.host, &shared.spec);
        is_watched.then(|| {
            let limit_enforcer = Self {
                limits,
                group,
                counts: Counts::default(),
                command: None,
                cpu_from_us: 0,
                ending: None,
                to_kill: None,
                earlier: HashSet::new(),
                earlier_groups: HashSet::new(),
                is_fresh: true,
                look_at: Some(now),
                checked_at: now,
            };
            Box::new(limit_enforcer)
        })
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        let ending = self.ending.map(|(.., at)| at);
        let kill = self.to_kill.as_ref().map(|(_, at)| *at);
        [self.look_at, self.deadline(), ending, kill].into_iter().flatten().min()
    }

    /// The deadline of the running command.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let (_, since, _) = self.command?;
        self.limits.command_time.filter(|_| self.ending.is_none()).map(|time| since + time)
    }

    /// Begins the running command's time again if the machine was paused at its deadline: the command could not run.
    pub(crate) fn note_time(&mut self, now: Instant) {
        // The deadline of a command from before this server may have passed before the first check.
        let checked_at = std::mem::replace(&mut self.checked_at, now);
        if self.deadline().is_some_and(|at| was_paused(at.max(checked_at), now))
            && let Some((_, since, _)) = &mut self.command
        {
            *since = now;
        }
    }

    /// Records the present processes other than the shell, which existed before the next command.
    pub(crate) fn note_earlier<'a>(&mut self, all: impl Iterator<Item = &'a Process>) {
        (self.earlier, self.earlier_groups) = all.map(|it| (it.identity, it.group)).unzip();
    }

    /// For each process (parents before children): whether it existed before the command, or descends from such a
    /// process.
    fn are_earlier(&self, all: &[Process]) -> Vec<bool> {
        let mut spared = HashSet::new();
        let is_earlier = |s: &Process| {
            let is_earlier = self.earlier.contains(&s.identity)
                || self.earlier_groups.contains(&s.group)
                || spared.contains(&s.parent);
            if is_earlier {
                spared.insert(s.pid());
            }
            is_earlier
        };
        all.iter().map(is_earlier).collect()
    }

    /// The processes, of these, that a limit covers: for a command's limit not those that ran before the command, nor
    /// their children.
    pub(crate) fn covered(&self, all: &[Process], limit: Limit) -> HashSet<Identity> {
        let is_covered = |(_, is_earlier): &(&Process, bool)| !is_earlier || limit == Limit::CpuSeconds;
        all.iter().zip(self.are_earlier(all)).filter(is_covered).map(|(s, _)| s.identity).collect()
    }

    /// Takes over from an earlier server. A cgroup counts from its creation; the kills and refusals on record were
    /// published already.
    pub(crate) fn take_over(&mut self, oom_kills: u64, forks_refused: u64) {
        (self.counts.oom_kills, self.counts.forks_refused) = (oom_kills, forks_refused);
    }

    /// The kernel's kills for memory and its refusals of processes since the last check. The holder may have recorded some
    /// of the kills; `told` is the number of all kills on record.
    pub(crate) fn news(&mut self, told: u64) -> (u64, u64) {
        let Some(group) = &self.group else { return (0, 0) };
        let before = std::mem::replace(&mut self.counts, group.counts());
        let killed = self.counts.oom_kills.saturating_sub(before.oom_kills.max(told));
        (killed, self.counts.forks_refused.saturating_sub(before.forks_refused))
    }

    /// CPU time in microseconds of all processes that ever ran below this holder.
    fn cpu_us(&self, host: &dyn Host, holder_pid: u32) -> u64 {
        let in_group = self.group.as_ref().and_then(|group| group.counts().cpu_us);
        in_group.unwrap_or_else(|| processes::cpu_us(host, holder_pid))
    }

    /// CPU time that was used until now does not count.
    pub(crate) fn count_cpu_from_here(&mut self, host: &dyn Host, holder_pid: u32) {
        self.cpu_from_us = self.cpu_us(host, holder_pid);
    }

    /// Whether the CPU time is used up, and nothing is being ended yet.
    pub(crate) fn is_cpu_used_up(&self, host: &dyn Host, holder_pid: u32) -> bool {
        let most = self.limits.cpu.filter(|_| self.ending.is_none());
        let used = || self.cpu_us(host, holder_pid).saturating_sub(self.cpu_from_us);
        most.is_some_and(|most| Duration::from_micros(used()) > most)
    }

    /// Sets the time of the next check.
    pub(crate) fn look_again(&mut self, now: Instant, has_command: bool) {
        let is_sampled = self.group.is_some() || self.limits.cpu.is_some() || self.ending.is_some();
        let pace = if has_command || self.ending.is_some() { LOOK_EVERY } else { LOOK_WHEN_IDLE };
        self.look_at = is_sampled.then(|| now + pace);
    }

    /// The foreground gets SIGINT for this limit; begins to end the processes that it covers.
    pub(crate) fn begin_ending(&mut self, limit: Limit, covered: HashSet<Identity>, now: Instant) {
        self.look_at = Some(now + LOOK_EVERY);
        let at = now + INTERRUPT_ALONE;
        self.to_kill = Some((covered, at + limits::TERMINATE_GRACE));
        self.ending = Some((Step::Terminate, limit, at));
    }
}
