//! The shell's reports: datagrams that `Attestation` accepts, and prompt marks in the output.

use std::os::unix::ffi::OsStrExt;

use journal::Offset;

use super::Holder;
use crate::prompt_marks::PromptMark;
use crate::shell_state::Phase;

/// Datagrams drained per turn: more than the socket can queue, so a turn always reaches the end of the queue as it was
/// when the turn began.
const DATAGRAMS_MAX: usize = 4096;
/// The exit status of a command that SIGINT ended.
const INTERRUPTED: i32 = 130;
/// An unknown exit status.
const UNKNOWN: i32 = -1;

impl Holder {
    pub(super) fn drain_attestation(&mut self, now: u64) {
        self.append_reports(now);
        for _ in 0..DATAGRAMS_MAX {
            if self.records.has_waiting_reports() {
                return;
            }
            let mut reports = Vec::new();
            let is_empty = self.attestation_socket.receive(|pid, bytes| {
                reports.extend(self.attestation.accept(pid, bytes));
            });
            for report in reports {
                self.shell.report(&report);
                self.on_report(report, now);
            }
            if is_empty {
                return;
            }
        }
    }

    fn on_report(&mut self, report: Vec<u8>, now: u64) {
        let is_end = report.starts_with(b"D");
        if is_end && self.shell.phase() == Phase::Ready {
            let nonce = nonce_of(&report);
            // This turn's output was moved first, so the marker may be there already.
            let marker = nonce.and_then(|nonce| self.output.place_of(nonce, &self.records));
            let prompt_at = marker.unwrap_or(self.records.end());
            self.replies.drop_before(prompt_at);
            self.publication.command_ended(marker, prompt_at);
            if let Some(nonce) = nonce.filter(|_| marker.is_none()) {
                self.output.await_marker(nonce);
            }
        }
        if let Some(marks) = self.marks.as_mut().filter(|_| is_end) {
            marks.reported();
        }
        self.keep_report(report, now);
    }

    fn keep_report(&mut self, report: Vec<u8>, now: u64) {
        if self.shell.phase() == Phase::Ready && report.starts_with(b"D") {
            // Earlier samples do not cover input that was typed ahead.
            self.sampler.suspend();
        }
        self.records.keep_report(report);
        self.append_reports(now);
        self.publication.announce_with_marker(now);
        self.schedule_sample(now);
    }

    fn append_reports(&mut self, now: u64) {
        if !self.records.append_reports() {
            self.output.retry_later(now);
        }
    }

    /// Finds prompt marks in new output. A mark that a program prints while it has the terminal does not count.
    pub(super) fn on_prompt_marks(&mut self, now: u64) {
        let Some(marks) = &mut self.marks else { return };
        for mark in marks.search(&self.records) {
            self.prompt_drawn(&mark, now);
        }
    }

    /// Handles one prompt mark. Marks of the shell are recorded even without news, so that viewers can cut them out.
    fn prompt_drawn(&mut self, drawn: &PromptMark, now: u64) {
        // nushell draws its prompt before it takes the terminal back, and often prints such a sequence itself.
        let is_theirs = self.handover.is_in_band() || self.terminal.shell_is_foreground();
        let running = self.shell.command();
        let ended = match &drawn.command {
            _ if !drawn.is_news || !is_theirs => None,
            Some((id, flags)) if self.handover.is_in_band() || *id == running => {
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
        let cwd = sys::process::working_directory(self.terminal.shell_pid()).unwrap_or_default();
        let nonce = &drawn.nonce;
        let head = format!("D;;{nonce};{id};{status};{status};b{flags};");
        let report = [head.as_bytes(), cwd.as_os_str().as_bytes()].concat();
        self.replies.drop_before(Offset(drawn.at));
        self.shell.report(&report);
        self.keep_report(report, now);
    }
}

/// The nonce of a report's marker. Only a `D` record has one; a PATH record may contain anything.
fn nonce_of(report: &[u8]) -> Option<&[u8]> {
    report.strip_prefix(b"D;;")?.split(|b| *b == b';').next().filter(|nonce| !nonce.is_empty())
}
