//! Enforces a session's limits: records each hit, and ends the processes that exceeded the limit.
//!
//! ```text
//! time, CPU or output is used up: INT to the foreground, TERM to the processes covered by the limit ── grace ──►
//!                                 INT, KILL ── grace ──► the session ends
//! memory, processes:              the kernel has killed or refused already; the hits are counted and published
//! output rate:                    the holder blocks the program, and records a hit
//! ```
//! A command's time or output limit covers the processes that this command started; the CPU limit covers every process
//! but the shell.

use std::collections::HashSet;

use tokio::sync::oneshot;
use tokio::time::Instant;
use wire::{Target, ToHolder};

use crate::action::{Limit, ProcessState};
use crate::host::{Host, Identity, Process, descendants};
use crate::limits;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::limit_enforcement::state::{LimitEnforcer, Step};
use crate::sessions::session::machine::session::Session;

impl Session {
    /// Checks the limits, and takes the next step against processes that exceeded one.
    pub(in crate::sessions::session::machine) fn check_limits(&mut self) {
        if self.cx.follower.is_replaying {
            return;
        }
        let current = self.cx.timeline.log().current;
        if let (Some((id, ..)), None) = (self.limit_enforcer.as_ref().and_then(|s| s.command), current) {
            // The command ended without an attested end.
            self.end_limits(id);
        }
        let Some(mut limit_enforcer) = self.limit_enforcer.take() else { return };
        let now = self.cx.now.at;
        if std::mem::take(&mut limit_enforcer.is_fresh) {
            self.take_over_limits(&mut limit_enforcer);
        }
        if let Some(id) = current.filter(|id| limit_enforcer.command.is_none_or(|(known, ..)| known != *id)) {
            if limit_enforcer.command.is_some() {
                self.count(&mut limit_enforcer);
            }
            // The processes being ended may be a background job, with which the new command has nothing to do.
            limit_enforcer.ending = None;
            limit_enforcer.command = Some((id, self.cx.begun_at(id), self.cx.timeline.output().scanner.position()));
            // The kernel may have killed one of its processes already. Kills of before were counted when it was sent.
            self.count(&mut limit_enforcer);
            limit_enforcer.look_at = Some(now);
            limit_enforcer.count_cpu_from_here(self.cx.host(), self.cx.timeline.holder_pid());
        }
        if limit_enforcer.look_at.is_some_and(|at| now >= at) {
            self.count(&mut limit_enforcer);
            if limit_enforcer.is_cpu_used_up(self.cx.host(), self.cx.timeline.holder_pid()) {
                self.exceeded(&mut limit_enforcer, Limit::CpuSeconds, now);
            }
            // Between two of its children, only the shell itself can be interrupted. If the shell has the terminal it
            // may already be at its prompt, where an interrupt would clear the next command's line.
            let shell = self.cx.host().process(self.cx.timeline.shell().pid);
            if limit_enforcer.ending.is_some()
                && shell.is_some_and(|s| s.foreground_group.is_some_and(|group| group != s.group))
            {
                self.interrupt(Target::Process(self.cx.timeline.shell().pid));
            }
            limit_enforcer.look_again(now, current.is_some());
        }
        if limit_enforcer.deadline().is_some_and(|at| now >= at) {
            self.exceeded(&mut limit_enforcer, Limit::CommandSeconds, now);
        }
        if let (Some((id, _, at)), Some(most)) = (limit_enforcer.command, limit_enforcer.limits.output) {
            let from = self.cx.timeline.log().command(id).and_then(|c| c.start).unwrap_or(at);
            if self.cx.timeline.output().scanner.position().saturating_sub(from) > most
                && limit_enforcer.ending.is_none()
            {
                self.exceeded(&mut limit_enforcer, Limit::OutputMb, now);
            }
        }
        self.go_on_stopping(&mut limit_enforcer, now);
        if let Some((to_kill, _)) = limit_enforcer.to_kill.take_if(|(_, at)| now >= *at) {
            self.kill_what_is_left(to_kill);
        }
        self.limit_enforcer = Some(limit_enforcer);
    }

    /// A command is about to be sent: the kernel's kills and refusals until now are not its own.
    pub(in crate::sessions::session::machine) fn count_before_command(&mut self) {
        if let Some(mut limit_enforcer) = self.limit_enforcer.take_if(|enforcer| !enforcer.is_fresh) {
            self.count(&mut limit_enforcer);
            self.limit_enforcer = Some(limit_enforcer);
        }
    }

    /// A command has ended: counts the kernel's kills and refusals for it, and records the remaining processes as
    /// earlier ones.
    pub(in crate::sessions::session::machine) fn end_limits(&mut self, id: u32) {
        if self.cx.follower.is_replaying {
            return;
        }
        let Some(mut limit_enforcer) = self.limit_enforcer.take() else { return };
        let (since, at) = limit_enforcer.command.map_or((self.cx.now.at, 0), |(_, since, at)| (since, at));
        limit_enforcer.command = Some((id, since, at));
        self.count(&mut limit_enforcer);
        limit_enforcer.command = None;
        // The CPU time of a command that was ended for it must not be counted again.
        if limit_enforcer.ending.take().is_some() {
            limit_enforcer.count_cpu_from_here(self.cx.host(), self.cx.timeline.holder_pid());
        }
        limit_enforcer.note_earlier(self.all_but_the_shell().iter());
        self.limit_enforcer = Some(limit_enforcer);
    }

    /// Takes over from an earlier server.
    fn take_over_limits(&mut self, limit_enforcer: &mut LimitEnforcer) {
        limit_enforcer.take_over(self.told(Limit::MemoryMb), self.told(Limit::Processes));
        let accepted_us =
            self.cx.timeline.log().current.and_then(|id| self.cx.timeline.log().command(id)).map(|c| c.accepted_us);
        let boot_us = self.cx.now.booted_us();
        // A process that started before the running command was accepted does not belong to it.
        let before = accepted_us.map_or(u64::MAX, |us| us.saturating_sub(boot_us));
        limit_enforcer.note_earlier(self.all_but_the_shell().iter().filter(|it| it.is_older_than(before)));
    }

    fn all_but_the_shell(&self) -> Vec<Process> {
        let mut all = descendants(self.cx.host(), self.cx.timeline.holder_pid());
        all.retain(|s| s.pid() != self.cx.timeline.shell().pid && s.state != ProcessState::Ended);
        all
    }

    /// How often this limit was hit, as far as it is on record.
    fn told(&self, limit: Limit) -> u64 {
        self.cx.timeline.hits().iter().filter(|h| h.limit == limit).map(|h| h.count).sum()
    }

    /// Records the kernel's kills and refusals since the last check.
    fn count(&mut self, limit_enforcer: &mut LimitEnforcer) {
        let (killed, refused) = limit_enforcer.news(self.told(Limit::MemoryMb));
        let command = limit_enforcer.command.map(|(id, ..)| id);
        self.cx.hit(Limit::MemoryMb, command, killed);
        self.cx.hit(Limit::Processes, command, refused);
    }

    fn exceeded(&mut self, limit_enforcer: &mut LimitEnforcer, limit: Limit, now: Instant) {
        let command = limit_enforcer.command.map(|(id, ..)| id);
        // An earlier server may have recorded the hit without ending the processes.
        let is_told =
            command.is_some() && self.cx.timeline.hits().iter().any(|h| (h.limit, Some(h.command)) == (limit, command));
        if !is_told {
            self.cx.hit(limit, command, 1);
        }
        self.interrupt(Target::Foreground);
        let covered = limit_enforcer.covered(&self.all_but_the_shell(), limit);
        limit_enforcer.begin_ending(limit, covered, now);
    }

    fn go_on_stopping(&mut self, limit_enforcer: &mut LimitEnforcer, now: Instant) {
        let Some((step, limit, _)) = limit_enforcer.ending.filter(|(.., at)| now >= *at) else { return };
        match step {
            Step::Terminate => {
                let at = now + limits::TERMINATE_GRACE;
                let covered = limit_enforcer.covered(&self.all_but_the_shell(), limit);
                signal_all(self.cx.host(), &covered, sys::signal::TERM);
                limit_enforcer.to_kill = Some((covered, at));
                limit_enforcer.ending = Some((Step::Kill, limit, at));
            }
            Step::Kill => {
                let covered = limit_enforcer.covered(&self.all_but_the_shell(), limit);
                signal_all(self.cx.host(), &covered, sys::signal::KILL);
                limit_enforcer.ending = Some((Step::EndSession, limit, now + limits::TERMINATE_GRACE));
            }
            Step::EndSession => {
                limit_enforcer.ending = None;
                if self.cx.timeline.log().current.is_some() && self.cx.timeline.end().exit.is_none() {
                    let (reply, _) = oneshot::channel();
                    let signo = sys::signal::KILL;
                    self.cx.link.call(self.cx.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate {
                        seq,
                        signo,
                        grace_ms: 0,
                    });
                } else if limit == Limit::CpuSeconds {
                    // The remaining processes' CPU time counts from here.
                    limit_enforcer.count_cpu_from_here(self.cx.host(), self.cx.timeline.holder_pid());
                }
            }
        }
    }

    fn interrupt(&mut self, target: Target) {
        if self.cx.timeline.log().current.is_some() {
            let (reply, _) = oneshot::channel();
            self.cx.link.call(self.cx.now.at, Call::Plain(reply), |seq| ToHolder::Signal {
                seq,
                target,
                signo: sys::signal::INT,
            });
        }
    }

    /// Kills the processes that survived SIGTERM, and their children.
    fn kill_what_is_left(&self, mut to_kill: HashSet<Identity>) {
        let mut pids: HashSet<u32> = HashSet::new();
        for s in self.all_but_the_shell() {
            if to_kill.contains(&s.identity) || pids.contains(&s.parent) {
                pids.insert(s.pid());
                to_kill.insert(s.identity);
            }
        }
        signal_all(self.cx.host(), &to_kill, sys::signal::KILL);
    }
}

fn signal_all(host: &dyn Host, processes: &HashSet<Identity>, signo: i32) {
    for process in processes {
        host.signal_exactly(*process, signo);
    }
}
