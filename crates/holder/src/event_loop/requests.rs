//! Handles the servers' requests to the holder.

use journal::{EndReason, Record};
use sys::{signal, time};
use wire::{Status, ToHolder};

use super::Holder;
use super::ready::Ready;
use super::run_command::errno_of;
use crate::connections::Caller;
use crate::input::{InputRequest, Line};

impl Holder {
    pub(super) fn serve_clients(&mut self, ready: &Ready, now: u64) {
        for (id, frame) in self.connections.receive(&ready.clients, now) {
            self.handle(id, frame, now);
        }
        // After the polled connections and their requests: a client that has just sent something is not the longest
        // silent one.
        if ready.newcomers {
            self.connections.accept(now);
        }
    }

    fn handle(&mut self, id: u64, frame: ToHolder, now: u64) {
        match frame {
            ToHolder::Kill => self.end(None, EndReason::FORCED, signal::KILL, 0, now),
            // A server of another protocol sees that in the answer, and lets go.
            ToHolder::Hello { protocol: _, attaches } => self.on_hello(id, attaches),
            ToHolder::Run { seq, key, patience_ms, text } => {
                self.accept_command((id, seq), key, text, now + u64::from(patience_ms) * 1000);
                self.start_waiting_command(now);
            }
            ToHolder::Input { seq, key, is_secret, patience_ms, bytes } => {
                let (from, patience_us) = (vec![(id, seq)], u64::from(patience_ms) * 1000);
                self.queue_input(
                    InputRequest { from, key, is_secret, patience_us, bytes, command: None, until: None },
                    now,
                );
            }
            ToHolder::Type { seq, key, patience_ms, is_inside, nonce, text, line } => {
                let (from, patience_us) = (vec![(id, seq)], u64::from(patience_ms) * 1000);
                let command = Some(Line { is_inside, nonce, text });
                let (is_secret, bytes, until) = (false, line, None);
                self.queue_input(InputRequest { from, key, is_secret, patience_us, bytes, command, until }, now);
            }
            ToHolder::Judge { command, status, boundary, is_hookless, end, time_us, why } => {
                let why = why.as_slice();
                let judged = Record::Judged { command, status, boundary, is_hookless, end, time_us, why };
                self.records.note(&judged);
                self.shell.judged(command, is_hookless);
            }
            ToHolder::Resize { seq, cols, rows } => self.resize((id, seq), cols, rows),
            ToHolder::Signal { seq, target, signo } => self.signal((id, seq), target, signo, now),
            ToHolder::Answer { query, bytes } => {
                if !self.end.has_exited() {
                    self.replies.accept(query, bytes, now);
                    self.send_query_replies(now);
                }
            }
            ToHolder::Terminate { seq, signo, grace_ms } => {
                self.end(Some((id, seq)), EndReason::ASKED, signo, u64::from(grace_ms) * 1000, now);
            }
            ToHolder::Report { seq } => self.press_report_key((id, seq)),
            ToHolder::Limited { limit, command, count } => {
                if limit == wire::MEMORY {
                    self.memory_kills.recorded(command, count);
                }
                self.records.note(&Record::Limited { limit, command, count });
                self.schedule_sample(now);
            }
            ToHolder::Ping { seq } => self.connections.answer((id, seq), Status::Ok, 0),
        }
    }

    /// Only a client that attaches takes the session over; a mere status query never does.
    fn on_hello(&mut self, id: u64, attaches: bool) {
        if attaches {
            self.connections.displace_others(id);
            self.record_answered();
        }
        let hello = self.hello();
        self.connections.greet(id, attaches, &hello);
        if attaches {
            // The new server knows no foreground state yet: the next sample must be sent even if nothing changed.
            self.sampler.suspend();
            self.schedule_sample(time::monotonic_us());
        }
    }

    /// Records the offset up to which queries were answered, so that a server that attaches reads it first. A record of
    /// each reply would be longer than the query.
    fn record_answered(&mut self) {
        let Some(query) = self.replies.unrecorded() else { return };
        if self.records.append(&Record::Answered { query }).is_ok() {
            self.replies.recorded(query);
            self.publish_now(time::monotonic_us());
        }
    }

    fn resize(&mut self, from: Caller, cols: u16, rows: u16) {
        match self.terminal.resize(cols, rows) {
            Ok(()) => {
                self.records.note(&Record::Resized { cols, rows });
                // The event is published before the answer, so a client that has the answer sees the new size.
                self.publish_now(time::monotonic_us());
                self.connections.answer(from, Status::Ok, 0);
            }
            Err(e) => self.connections.answer(from, Status::Failed, errno_of(&e)),
        }
    }
}
