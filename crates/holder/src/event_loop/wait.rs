//! Waits for the next event: the only place where the holder sleeps.

use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use sys::time;

use super::holder::{Holder, Ready};
use crate::connections::CONNECTIONS_MAX;
use crate::handover::READY_RETRY_US;

/// How long to pause when poll(2) fails for lack of memory.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

impl Holder {
    /// The next deadline of any timer.
    fn next_at(&self, now: u64) -> Option<u64> {
        let timers = [
            self.context.sampler.next_at(),
            self.input.next_at(now),
            self.signals.next_at(),
            self.handover.next_at(&self.context.keys, now),
            self.context.shell.awaits_load_key(now).then_some(now + READY_RETRY_US),
            self.context.replies.next_at(now),
            self.context.end.next_at(now),
            self.context.output.next_at(now),
            self.context.publication.announce_by(),
            self.idle_until(now),
            self.ending.next_at(),
            // Until then the listener is not polled.
            self.context.connections.place_at().filter(|at| *at > now),
        ];
        timers.into_iter().flatten().min()
    }

    /// Until then output stays in the terminal; after the shell's exit it never does.
    fn idle_until(&self, now: u64) -> Option<u64> {
        self.context.publication.idle_until(now).filter(|_| !self.context.end.has_exited())
    }

    pub(super) fn wait_for_something(&mut self) -> io::Result<Ready> {
        let now = time::monotonic_us();
        let timeout = self.next_at(now).map(|at| {
            let us = at.saturating_sub(now);
            Timespec { tv_sec: (us / 1_000_000) as i64, tv_nsec: (us % 1_000_000 * 1000) as i64 }
        });
        let mut leader = PollFlags::empty();
        if self.context.output.is_polled() && self.idle_until(now).is_none() {
            leader |= PollFlags::IN;
        }
        if self.input.is_writing() {
            leader |= PollFlags::OUT;
        }
        let clients = self.context.connections.len();
        let mut fds = Vec::with_capacity(4 + CONNECTIONS_MAX);
        fds.push(PollFd::from_borrowed_fd(self.ending.signals(), PollFlags::IN));
        fds.extend(self.context.connections.polled().map(|(fd, events)| PollFd::from_borrowed_fd(fd, events)));
        // A connection that cannot be accepted would keep the loop spinning.
        let listener = self.context.connections.has_place(now).then_some(fds.len());
        if listener.is_some() {
            fds.push(PollFd::from_borrowed_fd(self.context.connections.listener(), PollFlags::IN));
        }
        let reports = fds.len();
        if !self.context.records.has_waiting_reports() {
            fds.extend(self.reports.polled().map(|(fd, events)| PollFd::from_borrowed_fd(fd, events)));
        }
        let output = fds.len();
        // poll(2) always reports a hung-up terminal as ready; it is left out until its retry.
        if !leader.is_empty() && self.context.output.retry_at().is_none() {
            fds.push(PollFd::from_borrowed_fd(self.context.terminal.leader(), leader));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // The error says nothing about the descriptors and is temporary (poll(2)). Try all of them, which is
            // harmless because none of them blocks.
            Err(Errno::NOMEM | Errno::AGAIN) => {
                let _ = poll(&mut [], Some(&PAUSE));
                let clients = vec![true; clients];
                return Ok(Ready { signals: true, newcomers: true, clients, output: true, reports: true });
            }
            Err(e) => return Err(e.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let is_ready_at = |at: usize| fds.get(at).is_some_and(is_ready);
        let has_reports = fds.get(reports..output).is_some_and(|fds| fds.iter().any(is_ready));
        // Each event moves what stays in the terminal while no client waits for it, because a command's record says what was
        // printed before it.
        let may_have_output = !leader.contains(PollFlags::IN) || is_ready_at(output);
        Ok(Ready {
            signals: is_ready_at(0),
            newcomers: listener.is_some_and(is_ready_at),
            clients: fds.iter().skip(1).take(clients).map(is_ready).collect(),
            output: may_have_output || has_reports || self.context.output.has_more() || self.context.end.has_exited(),
            reports: has_reports,
        })
    }
}
