//! What the session does when it runs into one of its limits: it says so, and ends what went beyond.
//!
//! ```text
//! time, CPU or output is used up: INT to the foreground, TERM to what is meant ── grace ──► INT, KILL ── grace ──► the session ends
//! memory, processes:              the kernel has killed or refused already; it is counted and said
//! ```
//! What the limit of a command's time or output means is what that command started; CPU time is everybody's but the
//! shell's.

use std::collections::HashSet;
use std::time::Duration;

use super::super::ledger::Hit;
use super::super::processes;
use super::*;
use crate::action::{Limit, LimitHit, Limits, ProcessState};

/// How often a session that may use only so much is looked at while a command runs.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// And while none does: jobs in the background use something too.
const LOOK_WHEN_IDLE: Duration = Duration::from_secs(5);

/// A session's limits, and how far it is from them.
#[derive(Debug)]
pub(crate) struct Stops {
    limits: Limits,
    group: Option<sys::cgroup::Group>,
    /// What the group had counted when it was looked at last.
    counts: sys::cgroup::Counts,
    /// The command that is measured, since when, and where its output began.
    command: Option<(u32, Instant, u64)>,
    /// Microseconds that had been used when the newest command began.
    cpu_from_us: u64,
    /// How far the ending of what went beyond is, what it is for, and when it goes on.
    ending: Option<(Step, Limit, Instant)>,
    /// What was there when the last command had ended: jobs in the background, which are not the next command's.
    earlier: HashSet<Identity>,
    look_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Kill,
    EndSession,
}

impl Stops {
    /// `None` for a session that nothing has to be looked after.
    pub(crate) fn of(shared: &Shared) -> Option<Box<Self>> {
        let limits = shared.meta.limits;
        let Limits { open_files, inactivity, max_age, .. } = limits;
        let is_watched = limits != Limits { open_files, inactivity, max_age, ..Limits::default() };
        let group = super::super::bounds::group(&shared.spec);
        let counts = group.as_ref().map(sys::cgroup::Group::counts).unwrap_or_default();
        is_watched.then(|| {
            let stops = Self {
                limits,
                group,
                counts,
                command: None,
                cpu_from_us: 0,
                ending: None,
                earlier: HashSet::new(),
                look_at: Some(Instant::now()),
            };
            Box::new(stops)
        })
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        let ending = self.ending.map(|(.., at)| at);
        [self.look_at, self.deadline(), ending].into_iter().flatten().min()
    }

    /// When the command that runs has run long enough.
    fn deadline(&self) -> Option<Instant> {
        let (_, since, _) = self.command?;
        self.limits.command_time.filter(|_| self.ending.is_none()).map(|time| since + time)
    }

    /// Kills what was there before the newest command.
    fn kill_earlier(&self) {
        for (pid, start_ticks) in &self.earlier {
            if processes::state_of((*pid, *start_ticks)) != ProcessState::Ended
                && let Ok(pid) = i32::try_from(*pid)
            {
                let _ = sys::signal::send(pid, sys::signal::KILL);
            }
        }
    }

    fn counts_cpu_in_group(&self) -> bool {
        self.counts.cpu_us.is_some()
    }
}

impl Session {
    /// Looks whether a limit was reached, and goes on with ending what went beyond one.
    pub(super) fn heed_limits(&mut self) {
        if self.is_replaying {
            return;
        }
        let current = self.ledger.current;
        if let (Some((id, ..)), None) = (self.stops.as_ref().and_then(|s| s.command), current) {
            // Its end was not attested.
            self.end_limits(id);
        }
        let Some(mut stops) = self.stops.take() else { return };
        let now = Instant::now();
        if let Some(id) = current.filter(|id| stops.command.is_none_or(|(known, ..)| known != *id)) {
            self.count(&mut stops);
            if stops.ending.take().is_some() {
                // A job in the background was being ended, and the new command has nothing to do with it.
                stops.kill_earlier();
            }
            stops.command = Some((id, self.begun_at(id, now), self.ledger.scanner.position()));
            stops.look_at = Some(now);
            stops.cpu_from_us = self.cpu_used(&stops);
        }
        if stops.look_at.is_some_and(|at| now >= at) {
            self.count(&mut stops);
            self.heed_cpu(&mut stops, now);
            if stops.ending.is_some() {
                // Between two of its children only the shell itself can be interrupted. One interrupt at a time: a second one
                // could hit the next prompt.
                self.interrupt(Target::Process(self.ledger.shell_pid));
            }
            let is_sampled = stops.group.is_some() || stops.limits.cpu.is_some() || stops.ending.is_some();
            let pace = if current.is_some() || stops.ending.is_some() { LOOK_EVERY } else { LOOK_WHEN_IDLE };
            stops.look_at = is_sampled.then(|| now + pace);
        }
        if stops.deadline().is_some_and(|at| now >= at) {
            self.exceeded(&mut stops, Limit::CommandSeconds, now);
        }
        if let (Some((id, _, at)), Some(most)) = (stops.command, stops.limits.output) {
            let from = self.ledger.command(id).and_then(|c| c.start).unwrap_or(at);
            if self.ledger.scanner.position().saturating_sub(from) > most && stops.ending.is_none() {
                self.exceeded(&mut stops, Limit::OutputMb, now);
            }
        }
        self.go_on_stopping(&mut stops, now);
        self.stops = Some(stops);
    }

    /// A command has ended: what the kernel did to it belongs to its result, and what is left was there before the next.
    pub(super) fn end_limits(&mut self, id: u32) {
        if self.is_replaying {
            return;
        }
        let Some(mut stops) = self.stops.take() else { return };
        let (since, at) = stops.command.map_or_else(|| (Instant::now(), 0), |(_, since, at)| (since, at));
        stops.command = Some((id, since, at));
        self.count(&mut stops);
        stops.command = None;
        // What was used by a command that was ended for it must not be counted once more.
        if stops.ending.take().is_some() {
            stops.cpu_from_us = self.cpu_used(&stops);
        }
        let all = processes::tree(self.ledger.holder_pid).into_iter();
        stops.earlier = all.filter(|s| s.pid != self.ledger.shell_pid).map(|s| (s.pid, s.start_ticks)).collect();
        self.stops = Some(stops);
    }

    /// A command that runs on from the time of an earlier server began then.
    fn begun_at(&self, id: u32, now: Instant) -> Instant {
        let accepted_us = self.ledger.command(id).map_or(0, |c| c.accepted_us);
        let age = Duration::from_micros(micros(SystemTime::now()).saturating_sub(accepted_us));
        now.checked_sub(age).unwrap_or(now)
    }

    /// What the kernel did since it was looked at last.
    fn count(&mut self, stops: &mut Stops) {
        let Some(group) = &stops.group else { return };
        let counts = group.counts();
        let killed = counts.oom_kills.saturating_sub(stops.counts.oom_kills);
        let refused = counts.forks_refused.saturating_sub(stops.counts.forks_refused);
        stops.counts = counts;
        let command = stops.command.map(|(id, ..)| id);
        self.hit(Limit::MemoryMb, command, killed);
        self.hit(Limit::Processes, command, refused);
    }

    fn heed_cpu(&mut self, stops: &mut Stops, now: Instant) {
        let Some(most) = stops.limits.cpu.filter(|_| stops.ending.is_none()) else { return };
        let used = self.cpu_used(stops).saturating_sub(stops.cpu_from_us);
        if Duration::from_micros(used) > most {
            self.exceeded(stops, Limit::CpuSeconds, now);
        }
    }

    /// Microseconds on processors, of all that ever ran in here.
    fn cpu_used(&self, stops: &Stops) -> u64 {
        if stops.counts_cpu_in_group() {
            return stops.group.as_ref().and_then(|group| group.counts().cpu_us).unwrap_or(0);
        }
        processes::cpu_us(self.ledger.holder_pid)
    }

    fn exceeded(&mut self, stops: &mut Stops, limit: Limit, now: Instant) {
        self.hit(limit, stops.command.map(|(id, ..)| id), 1);
        self.interrupt(Target::Foreground);
        stops.look_at = Some(now + LOOK_EVERY);
        self.signal_those_meant(stops, limit, sys::signal::TERM);
        stops.ending = Some((Step::Kill, limit, now + limits::TERMINATE_GRACE));
    }

    fn go_on_stopping(&mut self, stops: &mut Stops, now: Instant) {
        let Some((step, limit, _)) = stops.ending.filter(|(.., at)| now >= *at) else { return };
        match step {
            Step::Kill => {
                self.signal_those_meant(stops, limit, sys::signal::KILL);
                stops.ending = Some((Step::EndSession, limit, now + limits::TERMINATE_GRACE));
            }
            Step::EndSession => {
                stops.ending = None;
                if self.ledger.current.is_some() && self.ledger.exit.is_none() {
                    let (reply, _) = oneshot::channel();
                    let signo = sys::signal::KILL;
                    self.call(Call::Terminate(reply), |seq| ToHolder::Terminate { seq, signo, grace_ms: 0 });
                } else if limit == Limit::CpuSeconds {
                    // What was left of it counts from here.
                    stops.cpu_from_us = self.cpu_used(stops);
                }
            }
        }
    }

    fn interrupt(&mut self, target: Target) {
        if self.ledger.current.is_some() {
            let (reply, _) = oneshot::channel();
            self.call(Call::Plain(reply), |seq| ToHolder::Signal { seq, target, signo: sys::signal::INT });
        }
    }

    /// A command's own limit is for what it started, and not for what ran before it or comes of that.
    fn signal_those_meant(&self, stops: &Stops, limit: Limit, signo: i32) {
        let mut spared = HashSet::new();
        let all = processes::tree(self.ledger.holder_pid).into_iter();
        for stat in all.filter(|s| s.pid != self.ledger.shell_pid && s.state != b'Z') {
            let is_earlier = stops.earlier.contains(&(stat.pid, stat.start_ticks)) || spared.contains(&stat.ppid);
            if is_earlier && limit != Limit::CpuSeconds {
                spared.insert(stat.pid);
            } else if let Ok(pid) = i32::try_from(stat.pid) {
                // Gone in the meantime is as good as signalled.
                let _ = sys::signal::send(pid, signo);
            }
        }
    }

    /// A limit was hit: on record with the holder, who outlives this server, and told to those who look on.
    pub(super) fn hit(&mut self, limit: Limit, command: Option<u32>, times: u64) {
        if times == 0 {
            return;
        }
        let command = command.unwrap_or(0);
        let count = self.ledger.hits.iter().find(|h| (h.limit, h.command) == (limit, command)).map_or(0, |h| h.count);
        let count = count.saturating_add(times);
        let is_new = count == times;
        let at_us = micros(SystemTime::now());
        self.ledger.hit(Hit { limit, command, at_us, count, is_recorded: false });
        self.link.send(&ToHolder::Limited { limit: limit.code(), command, count });
        if is_new {
            let command = (command > 0).then_some(CommandId(command));
            tracing::info!(session = %self.shared.id, limit = limit.name(), "the session ran into a limit");
            let hit = LimitHit { limit, command, at: SystemTime::now(), count };
            self.note(self.ledger.scanner.held_from(), SessionEvent::LimitHit(hit));
        }
    }
}
