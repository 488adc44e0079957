//! The shell's reports: datagrams on the attestation socket, which the kernel stamps with the sender, and prompt marks
//! in the output. Only this module accepts a report as the shell's.

use super::*;

/// The exit status of a command that SIGINT ended.
const INTERRUPTED: i32 = 130;
/// An unknown exit status.
const UNKNOWN: i32 = -1;

impl Holder {
    pub(super) fn drain_attestation(&mut self, now: u64) {
        self.append_held();
        // A report is at most a path and its numbers; one with PATH may come in several datagrams.
        let mut buffer = [0u8; DATAGRAM_BYTES_MAX];
        for _ in 0..DATAGRAMS_MAX {
            if !self.held.is_empty() {
                return;
            }
            let Ok(Some(datagram)) = socket::receive(self.attestation.as_fd(), &mut buffer) else {
                return;
            };
            if datagram.len == 0 {
                // An empty datagram from a child, or the end of the socket: only POLLHUP tells them apart.
                if self.attestation_is_hung_up() {
                    self.is_unattested = true;
                    return;
                }
                continue;
            }
            if datagram.pid != self.shell_pid {
                self.prompt.dropped += 1;
                continue;
            }
            let bytes = buffer.get(..datagram.len).unwrap_or_default();
            if let Some(report) = self.prompt.datagram(bytes) {
                if self.prompt.shell == Phase::Ready && report.starts_with(b"D") {
                    let marker = self.just_moved_marker_of(&report);
                    self.prompt_at = marker.unwrap_or(self.journal.end());
                    self.has_marker = marker.is_some();
                    self.expects_marker = (!self.has_marker).then_some(self.prompt_at);
                    if let Some(nonce) = marker_lookup::nonce_of(&report).filter(|_| marker.is_none()) {
                        self.pace.await_marker(nonce, LAST_BYTES_MAX);
                    }
                    self.idle_until = 0;
                }
                if let Some((prompts, _)) = self.prompts.as_mut().filter(|_| report.starts_with(b"D")) {
                    prompts.reported();
                }
                self.keep_report(report, now);
            }
        }
    }

    fn keep_report(&mut self, report: Vec<u8>, now: u64) {
        if self.prompt.shell == Phase::Ready && report.starts_with(b"D") {
            // Earlier samples do not cover input that was typed ahead.
            self.sampler.suspend();
        }
        self.held.push_back((time::wall_us(), report));
        self.append_held();
        self.announce_by.get_or_insert(now + MARKER_US);
        self.schedule_look(now);
    }

    /// Finds prompt marks in new output. A mark that a program prints while it has the terminal does not count.
    pub(super) fn on_prompt_marks(&mut self, now: u64) {
        let end = self.journal.end();
        let Some((prompts, seen)) = self.prompts.as_mut().filter(|(_, seen)| *seen < end) else { return };
        let from = seen.0.saturating_sub(MARK_BYTES_MAX).max(end.0.saturating_sub(MARKER_SOUGHT_BYTES as u64));
        *seen = end;
        let mut newest = [0; MARKER_SOUGHT_BYTES];
        let Some(newest) = newest.get_mut(..(end.0 - from) as usize) else { return };
        let Ok(newest) = self.journal.newest(newest) else { return };
        let begins = end.0 - newest.len() as u64;
        for drawn in prompts.look(newest, begins) {
            self.prompt_drawn(&drawn, now);
        }
    }

    /// Handles one prompt mark. Marks of the shell are recorded even without news, so that viewers can cut them out.
    fn prompt_drawn(&mut self, drawn: &PromptMark, now: u64) {
        // nushell draws its prompt before it takes the terminal back, and often prints such a sequence itself.
        let is_theirs = self.spec.handover.is_in_band() || pty::foreground_group(self.leader.as_fd()) == self.shell_pid;
        let running = self.prompt.command();
        let ended = match &drawn.command {
            _ if !drawn.is_news || !is_theirs => None,
            Some((id, flags)) if self.spec.handover.is_in_band() || *id == running => {
                Some((*id, drawn.status, flags.as_str()))
            }
            // No caller waits for a line typed by a person, so an unknown exit status is recorded as unknown.
            Some(_) if running == 0 => Some((0, UNKNOWN, "")),
            None if running == 0 => Some((0, drawn.status, "")),
            // If the text never got to its end, only an interrupt leaves its own status. Any other status comes from a
            // failure of our line, and a status left by another text proves nothing.
            None if drawn.status == INTERRUPTED => Some((running, drawn.status, "n")),
            Some(_) | None => None,
        };
        let Some((id, status, flags)) = ended else {
            return if is_theirs {
                self.keep_report(format!("M;;{}", drawn.nonce).into_bytes(), now)
            };
        };
        let cwd = sys::process::working_directory(self.shell_pid).unwrap_or_default();
        let nonce = &drawn.nonce;
        let head = format!("D;;{nonce};{id};{status};{status};b{flags};");
        let report = [head.as_bytes(), cwd.as_os_str().as_bytes()].concat();
        self.prompt_at = Offset(drawn.at);
        self.prompt.report(&report);
        self.keep_report(report, now);
    }

    fn attestation_is_hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.attestation, PollFlags::empty())];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok()
            && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
    }

    pub(super) fn append_held(&mut self) {
        while let Some((at, report)) = self.held.front() {
            if self.events.append(Kind::ATTESTED, *at, self.journal.end(), &[report]).is_err() {
                self.retry_at.get_or_insert(time::monotonic_us() + FULL_RETRY_US);
                return;
            }
            self.held.pop_front();
        }
    }
}
