//! A session's limits, their use, and the next step against the processes that exceeded one.

use std::collections::HashSet;

use tokio::time::Instant;

use crate::action::{Limit, Limits};
use crate::host::{ControlGroup, Counts, Identity, Process};
use crate::sessions::shared::Shared;

/// A session's limits and their use.
#[derive(Debug)]
pub(crate) struct LimitEnforcer {
    pub(crate) limits: Limits,
    pub(crate) group: Option<Box<dyn ControlGroup>>,
    /// The cgroup's counters at the last check.
    pub(crate) counts: Counts,
    /// The running command, its start time, and the offset where its output begins.
    pub(crate) command: Option<(u32, Instant, u64)>,
    /// CPU time in microseconds that was used when the newest command began.
    pub(crate) cpu_from_us: u64,
    /// The next step against the processes that exceeded a limit, the limit, and the time of the step.
    pub(crate) ending: Option<(Step, Limit, Instant)>,
    /// The processes that got SIGTERM, and when the remaining ones get SIGKILL, even if their command has ended by
    /// then.
    pub(crate) to_kill: Option<(HashSet<Identity>, Instant)>,
    /// Processes and process groups that existed when the last command ended (background jobs): the next command's
    /// limits do not cover them.
    pub(crate) earlier: HashSet<Identity>,
    pub(crate) earlier_groups: HashSet<u32>,
    /// Events from before this server were not taken into account yet.
    pub(crate) is_fresh: bool,
    pub(crate) look_at: Option<Instant>,
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
        let group = crate::sessions::cgroup_plan::group(&*shared.backends.host, &shared.spec);
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

    /// Records the present processes other than the shell, which existed before the next command.
    pub(crate) fn note_earlier<'a>(&mut self, all: impl Iterator<Item = &'a Process>) {
        (self.earlier, self.earlier_groups) = all.map(|it| (it.identity, it.group)).unzip();
    }

    /// For each process (parents before children): whether it existed before the command, or descends from such a
    /// process.
    pub(crate) fn are_earlier(&self, all: &[Process]) -> Vec<bool> {
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
}
