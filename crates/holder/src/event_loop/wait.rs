//! Waits for the next event: the only place where the holder sleeps.

use rustix::io::Errno;

use super::*;

/// How long to pause when poll(2) fails for lack of memory.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Which descriptors are ready; the terminal and the attestation socket are read in every turn.
pub(super) struct Ready {
    pub(super) signals: bool,
    pub(super) newcomers: bool,
    pub(super) clients: Vec<bool>,
}

impl Holder {
    /// The next deadline of any timer.
    fn next_at(&self, now: u64) -> Option<u64> {
        let timers = [
            self.sampler.next_at(),
            self.keyboard.next_at(),
            self.input_retry_at(now),
            self.waiting.as_ref().map(|_| now + if self.prompts.is_some() { LINE_RETRY_US } else { READY_RETRY_US }),
            self.answers.front().map(|_| now + ANSWER_RETRY_US),
            self.ending.as_ref().map(Termination::next_at),
            // While a termination runs, check often: a client waits for its end.
            self.ending.as_ref().map(|_| now + 5_000),
            self.retry_at,
            self.pace.held_until(),
            self.quiet_at,
            self.announce_by,
            self.has_more.then_some(now),
            self.is_idle(now).then_some(self.idle_until),
            self.folder.next_at(),
            // Until then the listener is not polled.
            self.place_at().filter(|at| *at > now),
        ];
        timers.into_iter().flatten().min()
    }

    fn is_idle(&self, now: u64) -> bool {
        now < self.idle_until && self.exit.is_none()
    }

    pub(super) fn wait_for_something(&mut self) -> io::Result<Ready> {
        let now = time::monotonic_us();
        let timeout = self.next_at(now).map(|at| {
            let us = at.saturating_sub(now);
            Timespec { tv_sec: (us / 1_000_000) as i64, tv_nsec: (us % 1_000_000 * 1000) as i64 }
        });
        let mut leader = PollFlags::empty();
        if self.retry_at.is_none() && self.pace.held_until().is_none() && !self.is_idle(now) {
            leader |= PollFlags::IN;
        }
        if !self.keyboard.is_empty() {
            leader |= PollFlags::OUT;
        }
        let mut attestation = PollFlags::IN;
        if !self.greeting.is_empty() {
            attestation |= PollFlags::OUT;
        }
        let mut fds = Vec::with_capacity(4 + peers::CLIENTS_MAX);
        fds.push(PollFd::new(&self.signals, PollFlags::IN));
        for client in &self.clients {
            let unsent = if client.has_unsent() && !client.is_held() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::from_borrowed_fd(client.fd(), PollFlags::IN | unsent));
        }
        // A connection that cannot be accepted would keep the loop spinning.
        let listener = self.has_place(now).then_some(fds.len());
        if listener.is_some() {
            fds.push(PollFd::new(&self.listener, PollFlags::IN));
        }
        if self.held.is_empty() && !self.is_unattested {
            fds.push(PollFd::new(&self.attestation, attestation));
        }
        // poll(2) always reports a hung-up terminal as ready; it is left out until its retry.
        if !leader.is_empty() && self.retry_at.is_none() {
            fds.push(PollFd::new(&self.leader, leader));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // The error says nothing about the descriptors and is temporary (poll(2)). Try all of them, which is
            // harmless because none of them blocks.
            Err(Errno::NOMEM | Errno::AGAIN) => {
                let _ = poll(&mut [], Some(&PAUSE));
                return Ok(Ready { signals: true, newcomers: true, clients: vec![true; self.clients.len()] });
            }
            Err(e) => return Err(e.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        Ok(Ready {
            signals: fds.first().is_some_and(is_ready),
            newcomers: listener.is_some_and(|at| fds.get(at).is_some_and(is_ready)),
            clients: fds.iter().skip(1).take(self.clients.len()).map(is_ready).collect(),
        })
    }
}
