//! The shell's reports: datagrams that `Attestation` accepts, and prompt marks in the output.

use std::collections::VecDeque;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use journal::Offset;
use rustix::event::PollFlags;

use super::context::Context;
use crate::attestation::Attestation;
use crate::attestation_socket::AttestationSocket;
use crate::prompt_marks::{MarkSearch, PromptMark};
use crate::shell_state::Phase;

/// Datagrams drained per turn: more than the socket can queue, so a turn always reaches the end of the queue as it was
/// when the turn began.
const DATAGRAMS_MAX: usize = 4096;
/// The exit status of a command that SIGINT ended.
const INTERRUPTED: i32 = 130;
/// An unknown exit status.
const UNKNOWN: i32 = -1;

/// The ways in which the shell reports.
pub(super) struct Reports {
    socket: AttestationSocket,
    attestation: Attestation,
    /// For a shell that reports by prompt marks in its output.
    marks: Option<MarkSearch>,
}

impl Reports {
    /// The socket of this shell, with its secret, and the seed of a shell that speaks by its prompts.
    pub(super) fn new(
        socket: OwnedFd,
        greeting: VecDeque<u8>,
        (shell_pid, secret): (u32, Vec<u8>),
        in_prompts: Option<u32>,
    ) -> Self {
        Self {
            socket: AttestationSocket::new(socket, greeting),
            attestation: Attestation::new(shell_pid, secret),
            marks: in_prompts.map(MarkSearch::new),
        }
    }

    /// Writes what the socket takes of the greeting.
    pub(super) fn greet(&mut self) {
        self.socket.greet();
    }

    pub(super) fn polled(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        self.socket.polled()
    }

    /// Whether the shell reports by prompt marks, and has no key that makes it report.
    pub(super) fn are_in_prompts(&self) -> bool {
        self.marks.is_some()
    }

    /// How many datagrams came from other processes or without the secret.
    pub(super) fn dropped(&self) -> u64 {
        self.attestation.dropped()
    }

    pub(super) fn drain(&mut self, context: &mut Context, now: u64) {
        context.append_reports(now);
        for _ in 0..DATAGRAMS_MAX {
            if context.records.has_waiting_reports() {
                return;
            }
            let mut reports = Vec::new();
            let is_empty = self.socket.receive(|pid, bytes| {
                reports.extend(self.attestation.accept(pid, bytes));
            });
            for report in reports {
                context.shell.report(&report);
                self.on_report(report, context, now);
            }
            if is_empty {
                return;
            }
        }
    }

    fn on_report(&mut self, report: Vec<u8>, context: &mut Context, now: u64) {
        let is_end = report.starts_with(b"D");
        if is_end && context.shell.phase() == Phase::Ready {
            let nonce = nonce_of(&report);
            // This turn's output was moved first, so the marker may be there already.
            let marker = nonce.and_then(|nonce| context.output.place_of(nonce, &context.records));
            let prompt_at = marker.unwrap_or(context.records.end());
            context.replies.drop_before(prompt_at);
            context.publication.command_ended(marker, prompt_at);
            if let Some(nonce) = nonce.filter(|_| marker.is_none()) {
                context.output.await_marker(nonce);
            }
        }
        if let Some(marks) = self.marks.as_mut().filter(|_| is_end) {
            marks.reported();
        }
        keep(report, context, now);
    }

    /// Finds prompt marks in new output. A mark that a program prints while it has the terminal does not count.
    pub(super) fn on_prompt_marks(&mut self, context: &mut Context, now: u64) {
        let Some(marks) = &mut self.marks else { return };
        for mark in marks.search(&context.records) {
            prompt_drawn(&mark, context, now);
        }
    }
}

/// Handles one prompt mark. Marks of the shell are recorded even without news, so that viewers can cut them out.
fn prompt_drawn(drawn: &PromptMark, context: &mut Context, now: u64) {
    // nushell draws its prompt before it takes the terminal back, and often prints such a sequence itself.
    let is_theirs = context.keys.are_in_band() || context.terminal.shell_is_foreground();
    let running = context.shell.command();
    let ended = match &drawn.command {
        _ if !drawn.is_news || !is_theirs => None,
        Some((id, flags)) if context.keys.are_in_band() || *id == running => Some((*id, drawn.status, flags.as_str())),
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
            keep(format!("M;;{}", drawn.nonce).into_bytes(), context, now)
        };
    };
    let cwd = sys::process::working_directory(context.terminal.shell_pid()).unwrap_or_default();
    let nonce = &drawn.nonce;
    let head = format!("D;;{nonce};{id};{status};{status};b{flags};");
    let report = [head.as_bytes(), cwd.as_os_str().as_bytes()].concat();
    context.replies.drop_before(Offset(drawn.at));
    context.shell.report(&report);
    keep(report, context, now);
}

fn keep(report: Vec<u8>, context: &mut Context, now: u64) {
    if context.shell.phase() == Phase::Ready && report.starts_with(b"D") {
        // Earlier samples do not cover input that was typed ahead.
        context.sampler.suspend();
    }
    context.records.keep_report(report);
    context.append_reports(now);
    context.publication.announce_with_marker(now);
    context.schedule_sample(now);
}

/// The nonce of a report's marker. Only a `D` record has one; a PATH record may contain anything.
fn nonce_of(report: &[u8]) -> Option<&[u8]> {
    report.strip_prefix(b"D;;")?.split(|b| *b == b';').next().filter(|nonce| !nonce.is_empty())
}
