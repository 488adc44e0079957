//! The session's end: signals to the holder, the shell's exit, and the termination of what is left.

use journal::{EndReason, Record, TroubleKind};
use rustix::process::{WaitOptions, wait};
use sys::signal;
use wire::Status;

use super::Holder;
use crate::connections::Caller;

/// The grace period of the session's programs when the holder itself ends the session.
const GRACE_US: u64 = 1_000_000;

impl Holder {
    /// Ends the session if its folder was removed: no client could reach or end it any more.
    pub(super) fn check_folder(&mut self, now: u64) {
        if self.folder.is_gone(now) {
            self.end_by_itself(b"the session's folder was removed", now);
        }
    }

    /// Ends the session without a client's request.
    fn end_by_itself(&mut self, why: &[u8], now: u64) {
        self.end.request(None);
        if !self.end.is_terminating() {
            self.refuse_waiting(Status::Ended);
            self.begin_end(EndReason::HOLDER, why, signal::HUP, GRACE_US, now);
        }
    }

    /// Ends the session at a client's request, which is answered when nothing is left.
    pub(super) fn end(&mut self, from: Option<Caller>, reason: EndReason, signo: i32, grace_us: u64, now: u64) {
        self.end.request(from);
        self.refuse_waiting(Status::Ended);
        match self.end.is_terminating() {
            true if signo == signal::KILL => self.end.hurry(now),
            true => {}
            false => self.begin_end(reason, signal::name(signo).as_bytes(), signo, grace_us, now),
        }
    }

    fn begin_end(&mut self, reason: EndReason, text: &[u8], signo: i32, grace_us: u64, now: u64) {
        self.records.note(&Record::Ending { reason, text });
        self.end.terminate(signo, grace_us, self.terminal.shell_pid(), now);
    }

    /// Reaps every child; the shell's exit is the session's end.
    pub(super) fn reap(&mut self, now: u64) {
        while let Some(signo) = signal::take(&self.signals) {
            match signo {
                signal::TERM => self.end_by_itself(b"the holder got SIGTERM", now),
                signal::IO => self.check_folder(now),
                _ => {}
            }
        }
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let is_shell = pid.as_raw_nonzero().get().unsigned_abs() == self.terminal.shell_pid();
            if is_shell && !self.end.has_exited() {
                self.end.shell_exited(status.as_raw());
                self.sampler.suspend();
            }
        }
        let Some(wait_status) = self.end.unrecorded_exit() else {
            return;
        };
        // The shell's last output is in the terminal already, and its last reports are in the socket.
        let is_drained = self.takes_the_rest(now);
        self.drain_attestation(now);
        if !is_drained {
            // The exit record names an end offset, so all output up to it must be in the journal. Until then the
            // writers block as before.
            if self.end.delay_exit() {
                let words = b"the shell has exited; its last output waits for room on the disk";
                self.records.trouble(TroubleKind::DISK_FULL, 0, words);
            }
            return;
        }
        if self.output.disk_is_full() {
            let words = b"ended while the disk was full; the last output is lost";
            self.records.trouble(TroubleKind::DISK_FULL, 0, words);
        }
        if signal::of_wait_status(wait_status) == Some(signal::KILL) {
            self.record_memory_kills();
        }
        let (left, names) = self.end.left_behind();
        let (end, dropped_records) = (self.records.end(), self.attestation.dropped());
        let exited = Record::Exited { wait_status, end, dropped_records, left, names: names.as_bytes() };
        if self.records.append(&exited).is_ok() {
            self.publication.announce_now(now);
            self.refuse_waiting(Status::Ended);
            self.end.exit_recorded(now);
        } else {
            self.output.retry_later(now);
        }
    }

    /// Records the kernel's kills that no server has counted; the shell's own may be one of them.
    fn record_memory_kills(&mut self) {
        let command = self.shell.command();
        if let Some(count) = self.memory_kills.unrecorded(command) {
            self.records.note(&Record::Limited { limit: wire::MEMORY, command, count });
            self.memory_kills.recorded(command, count);
        }
    }

    pub(super) fn go_on_ending(&mut self, now: u64) {
        let Some((status, ended)) = self.end.turn(now) else {
            return;
        };
        // The last output of the processes that were ended with the shell is still in the terminal.
        if self.takes_the_rest(now) {
            let callers = self.end.complete();
            self.connections.answer_all(&callers, status, ended);
        }
    }
}
