//! Handles the servers' requests to the holder.

use journal::{EndReason, Record};
use sys::{signal, time};
use wire::{Status, ToHolder};

use super::holder::{Holder, Ready};
use super::run_command::{errno_of, press_report_key};
use crate::connections::Caller;
use crate::input::{InputRequest, Line};

impl Holder {
    pub(super) fn serve_clients(&mut self, ready: &Ready, now: u64) {
        for (id, frame) in self.context.connections.receive(&ready.clients, now) {
            self.handle(id, frame, now);
        }
        // After the polled connections and their requests: a client that has just sent something is not the longest
        // silent one.
        if ready.newcomers {
            self.context.connections.accept(now);
        }
    }

    fn handle(&mut self, id: u64, frame: ToHolder, now: u64) {
        match frame {
            ToHolder::Kill => self.end(None, EndReason::FORCED, (signal::KILL, 0), now),
            // A server of another protocol sees that in the answer, and lets go.
            ToHolder::Hello { protocol: _, attaches } => self.on_hello(id, attaches),
            ToHolder::Run { seq, key, patience_ms, text } => {
                let until = now + u64::from(patience_ms) * 1000;
                self.handover.accept((id, seq), key, text, until, &mut self.context);
                self.handover.start(self.input.is_writing(), &mut self.context, now);
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
                self.context.records.note(&judged);
                self.context.shell.judged(command, is_hookless);
            }
            ToHolder::Resize { seq, cols, rows } => self.resize((id, seq), cols, rows),
            ToHolder::Signal { seq, target, signo } => {
                self.signals.send((id, seq), target, signo, &mut self.input, &mut self.context, now)
            }
            ToHolder::Answer { query, bytes } => {
                if !self.context.end.has_exited() {
                    self.context.replies.accept(query, bytes, now);
                    self.context.send_query_replies(now);
                }
            }
            ToHolder::Terminate { seq, signo, grace_ms } => {
                self.end(Some((id, seq)), EndReason::ASKED, (signo, u64::from(grace_ms) * 1000), now);
            }
            ToHolder::Report { seq } => {
                press_report_key((id, seq), &self.reports, self.input.is_writing(), &mut self.context)
            }
            ToHolder::Limited { limit, command, count } => {
                if limit == wire::MEMORY {
                    self.ending.counted_memory_kills(command, count);
                }
                self.context.records.note(&Record::Limited { limit, command, count });
                self.context.schedule_sample(now);
            }
            ToHolder::Ping { seq } => self.context.connections.answer((id, seq), Status::Ok, 0),
        }
    }

    /// Only a client that attaches takes the session over; a mere status query never does.
    fn on_hello(&mut self, id: u64, attaches: bool) {
        if attaches {
            self.context.connections.displace_others(id);
            self.record_answered();
        }
        let hello = self.context.hello();
        self.context.connections.greet(id, attaches, &hello);
        if attaches {
            // The new server knows no foreground state yet: the next sample must be sent even if nothing changed.
            self.context.sampler.suspend();
            self.context.schedule_sample(time::monotonic_us());
        }
    }

    /// Records the offset up to which queries were answered, so that a server that attaches reads it first. A record of
    /// each reply would be longer than the query.
    fn record_answered(&mut self) {
        let Some(query) = self.context.replies.unrecorded() else { return };
        if self.context.records.append(&Record::Answered { query }).is_ok() {
            self.context.replies.recorded(query);
            self.context.publish_now(time::monotonic_us());
        }
    }

    fn resize(&mut self, from: Caller, cols: u16, rows: u16) {
        match self.context.terminal.resize(cols, rows) {
            Ok(()) => {
                self.context.records.note(&Record::Resized { cols, rows });
                // The event is published before the answer, so a client that has the answer sees the new size.
                self.context.publish_now(time::monotonic_us());
                self.context.connections.answer(from, Status::Ok, 0);
            }
            Err(e) => self.context.connections.answer(from, Status::Failed, errno_of(&e)),
        }
    }

    /// Ends the session at a client's request, which is answered when nothing is left.
    fn end(&mut self, from: Option<Caller>, reason: EndReason, (signo, grace_us): (i32, u64), now: u64) {
        let context = &mut self.context;
        context.end.request(from);
        self.handover.refuse_waiting(Status::Ended, context);
        match context.end.is_terminating() {
            true if signo == signal::KILL => context.end.hurry(now),
            true => {}
            false => context.begin_end((reason, signal::name(signo).as_bytes()), signo, grace_us, now),
        }
    }

    fn queue_input(&mut self, request: InputRequest, now: u64) {
        if self.input.queue(request, &mut self.context, now) {
            self.signals.forget();
        }
    }
}
