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
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::holder_link::Call;
use crate::sessions::session::machine::limit_enforcement::state::{LimitEnforcer, Step};

impl LimitEnforcer {
    /// Checks the limits, and takes the next step against processes that exceeded one.
    pub(crate) fn check(&mut self, cx: &mut Context) {
        self.note_time(cx.now.at);
        if cx.follower.is_replaying {
            return;
        }
        let current = cx.timeline.log().current;
        if let (Some((id, ..)), None) = (self.command, current) {
            // The command ended without an attested end.
            self.end(cx, id);
        }
        let now = cx.now.at;
        if std::mem::take(&mut self.is_fresh) {
            self.take_over_from_records(cx);
        }
        if let Some(id) = current.filter(|id| self.command.is_none_or(|(known, ..)| known != *id)) {
            if self.command.is_some() {
                self.count(cx);
            }
            // The processes being ended may be a background job, with which the new command has nothing to do.
            self.ending = None;
            self.command = Some((id, cx.begun_at(id), cx.timeline.output().scanner.position()));
            // The kernel may have killed one of its processes already. Kills of before were counted when it was sent.
            self.count(cx);
            self.look_at = Some(now);
            self.count_cpu_from_here(cx.host(), cx.timeline.holder_pid());
        }
        if self.look_at.is_some_and(|at| now >= at) {
            self.count(cx);
            if self.is_cpu_used_up(cx.host(), cx.timeline.holder_pid()) {
                self.exceeded(cx, Limit::CpuSeconds, now);
            }
            // Between two of its children, only the shell itself can be interrupted. If the shell has the terminal it
            // may already be at its prompt, where an interrupt would clear the next command's line.
            let shell = cx.host().process(cx.timeline.shell().pid);
            if self.ending.is_some() && shell.is_some_and(|s| s.foreground_group.is_some_and(|group| group != s.group))
            {
                interrupt(cx, Target::Process(cx.timeline.shell().pid));
            }
            self.look_again(now, current.is_some());
        }
        if self.deadline().is_some_and(|at| now >= at) {
            self.exceeded(cx, Limit::CommandSeconds, now);
        }
        if let (Some((id, _, at)), Some(most)) = (self.command, self.limits.output) {
            let from = cx.timeline.log().command(id).and_then(|c| c.start).unwrap_or(at);
            if cx.timeline.output().scanner.position().saturating_sub(from) > most && self.ending.is_none() {
                self.exceeded(cx, Limit::OutputMb, now);
            }
        }
        self.go_on_stopping(cx, now);
        if let Some((to_kill, _)) = self.to_kill.take_if(|(_, at)| now >= *at) {
            kill_what_is_left(cx, to_kill);
        }
    }

    /// A command is about to be sent: the kernel's kills and refusals until now are not its own.
    pub(crate) fn count_before_command(&mut self, cx: &mut Context) {
        if !self.is_fresh {
            self.count(cx);
        }
    }

    /// A command has ended: counts the kernel's kills and refusals for it, and records the remaining processes as
    /// earlier ones.
    pub(crate) fn end(&mut self, cx: &mut Context, id: u32) {
        if cx.follower.is_replaying {
            return;
        }
        let (since, at) = self.command.map_or((cx.now.at, 0), |(_, since, at)| (since, at));
        self.command = Some((id, since, at));
        self.count(cx);
        self.command = None;
        // The CPU time of a command that was ended for it must not be counted again.
        if self.ending.take().is_some() {
            self.count_cpu_from_here(cx.host(), cx.timeline.holder_pid());
        }
        self.note_earlier(all_but_the_shell(cx).iter());
    }

    /// Takes over from an earlier server.
    fn take_over_from_records(&mut self, cx: &mut Context) {
        self.take_over(told(cx, Limit::MemoryMb), told(cx, Limit::Processes));
        let accepted_us = cx.timeline.log().current.and_then(|id| cx.timeline.log().command(id)).map(|c| c.accepted_us);
        let boot_us = cx.now.booted_us();
        // A process that started before the running command was accepted does not belong to it.
        let before = accepted_us.map_or(u64::MAX, |us| us.saturating_sub(boot_us));
        self.note_earlier(all_but_the_shell(cx).iter().filter(|it| it.is_older_than(before)));
    }

    /// Records the kernel's kills and refusals since the last check.
    fn count(&mut self, cx: &mut Context) {
        let (killed, refused) = self.news(told(cx, Limit::MemoryMb));
        let command = self.command.map(|(id, ..)| id);
        cx.hit(Limit::MemoryMb, command, killed);
        cx.hit(Limit::Processes, command, refused);
    }

    fn exceeded(&mut self, cx: &mut Context, limit: Limit, now: Instant) {
        let command = self.command.map(|(id, ..)| id);
        // An earlier server may have recorded the hit without ending the processes.
        let is_told =
            command.is_some() && cx.timeline.hits().iter().any(|h| (h.limit, Some(h.command)) == (limit, command));
        if !is_told {
            cx.hit(limit, command, 1);
        }
        interrupt(cx, Target::Foreground);
        let covered = self.covered(&all_but_the_shell(cx), limit);
        self.begin_ending(limit, covered, now);
    }

    fn go_on_stopping(&mut self, cx: &mut Context, now: Instant) {
        let Some((step, limit, _)) = self.ending.filter(|(.., at)| now >= *at) else { return };
        match step {
            Step::Terminate => {
                let at = now + limits::TERMINATE_GRACE;
                let covered = self.covered(&all_but_the_shell(cx), limit);
                signal_all(cx.host(), &covered, sys::signal::TERM);
                self.to_kill = Some((covered, at));
                self.ending = Some((Step::Kill, limit, at));
            }
            Step::Kill => {
                let covered = self.covered(&all_but_the_shell(cx), limit);
                signal_all(cx.host(), &covered, sys::signal::KILL);
                self.ending = Some((Step::EndSession, limit, now + limits::TERMINATE_GRACE));
            }
            Step::EndSession => {
                self.ending = None;
                if cx.timeline.log().current.is_some() && cx.timeline.end().exit.is_none() {
                    let (reply, _) = oneshot::channel();
                    let signo = sys::signal::KILL;
                    cx.link.call(cx.now.at, Call::Terminate(reply), |seq| ToHolder::Terminate {
                        seq,
                        signo,
                        grace_ms: 0,
                    });
                } else if limit == Limit::CpuSeconds {
                    // The remaining processes' CPU time counts from here.
                    self.count_cpu_from_here(cx.host(), cx.timeline.holder_pid());
                }
            }
        }
    }
}

fn all_but_the_shell(cx: &Context) -> Vec<Process> {
    let mut all = descendants(cx.host(), cx.timeline.holder_pid());
    all.retain(|s| s.pid() != cx.timeline.shell().pid && s.state != ProcessState::Ended);
    all
}

/// How often this limit was hit, as far as it is on record.
fn told(cx: &Context, limit: Limit) -> u64 {
    cx.timeline.hits().iter().filter(|h| h.limit == limit).map(|h| h.count).sum()
}

fn interrupt(cx: &mut Context, target: Target) {
    if cx.timeline.log().current.is_some() {
        let (reply, _) = oneshot::channel();
        cx.link.call(cx.now.at, Call::Plain(reply), |seq| ToHolder::Signal { seq, target, signo: sys::signal::INT });
    }
}

/// Kills the processes that survived SIGTERM, and their children.
fn kill_what_is_left(cx: &Context, mut to_kill: HashSet<Identity>) {
    let mut pids: HashSet<u32> = HashSet::new();
    for s in all_but_the_shell(cx) {
        if to_kill.contains(&s.identity) || pids.contains(&s.parent) {
            pids.insert(s.pid());
            to_kill.insert(s.identity);
        }
    }
    signal_all(cx.host(), &to_kill, sys::signal::KILL);
}

fn signal_all(host: &dyn Host, processes: &HashSet<Identity>, signo: i32) {
    for process in processes {
        host.signal_exactly(*process, signo);
    }
}
