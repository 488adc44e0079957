//! The holder, and the order of the steps in one turn of its loop.

use sys::sandbox::Sandbox;
use sys::time;
use wire::{Activity, FromHolder, Observed};

use super::context::Context;
use super::ending::Ending;
use super::reports::Reports;
use super::send_signal::Signals;
use crate::foreground_sampler::Sample;
use crate::handover::CommandHandover;
use crate::input::Input;
use crate::shell_state::Phase;

pub(super) struct Holder {
    pub(super) context: Context,
    pub(super) reports: Reports,
    pub(super) handover: CommandHandover,
    pub(super) input: Input,
    pub(super) signals: Signals,
    pub(super) ending: Ending,
    /// Its first process ends with this.
    pub(super) _container: Option<Sandbox>,
}

/// The ready descriptors.
pub(super) struct Ready {
    pub(super) signals: bool,
    pub(super) newcomers: bool,
    pub(super) clients: Vec<bool>,
    /// The terminal may have output that this turn is to move.
    pub(super) output: bool,
    /// The attestation socket has reports, or is hung up.
    pub(super) reports: bool,
}

impl Holder {
    // Not inlined, so that its stack frame is gone when the memory below it is returned.
    #[inline(never)]
    pub(super) fn turn(&mut self, ready: &Ready) {
        let now = time::monotonic_us();
        let context = &mut self.context;
        self.reports.greet();
        let has_moved = ready.output && context.move_output(now);
        // The shell reports before it prints a mark, so the socket has what belongs to the output that was moved.
        let may_be_marked = has_moved && context.output.may_end_a_mark(&context.records);
        if may_be_marked || ready.reports || context.records.has_waiting_reports() {
            self.reports.drain(context, now);
        }
        // The marker of a report that has just come is mostly there: both are published together.
        if has_moved && ready.reports && context.publication.expects_marker() && context.move_output(now) {
            self.reports.drain(context, now);
        }
        if has_moved {
            context.note_editor();
        }
        context.output.rest_if_due(now);
        self.reports.on_prompt_marks(context, now);
        if ready.signals || context.end.has_exited() {
            self.ending.reap(&mut self.handover, &mut self.reports, context, now);
        }
        self.ending.check_folder_if_due(&mut self.handover, context, now);
        self.input.go_on_writing(context, now);
        if self.input.start(context, now) {
            self.signals.forget();
        }
        self.signals.check(&mut self.input, context, now);
        context.send_query_replies(now);
        self.handover.start(self.input.is_writing(), context, now);
        context.press_load_key_again(now);
        self.sample_foreground(now);
        self.serve_clients(ready, now);
        let context = &mut self.context;
        context.go_on_ending(now);
        context.publish(now);
        // The server cannot use the held frames before the marker arrives; waking it now would take the CPU time that
        // the marker's path needs.
        let is_idle = context.publication.idle_until(now).is_some();
        let may_wait = is_idle || context.publication.expects_marker() && !context.records.has_waiting_reports();
        context.connections.flush(may_wait);
    }

    /// Samples the foreground if it is time, and reports a change.
    fn sample_foreground(&mut self, now: u64) {
        let context = &mut self.context;
        if let Some(until) = context.output.blocked_until() {
            return context.sampler.put_off(until);
        }
        let shell_pid = context.terminal.shell_pid();
        let Some(sample) = context.sampler.sample_if_due(now, context.terminal.leader(), shell_pid) else { return };
        sys::fault::stall("sampled");
        let Sample { mut facts, state, is_new } = sample;
        // At a reported prompt, only these are new to the server: a hook that asks, the editor behind it or behind typed input, and
        // the foreground of input that was typed ahead.
        if context.shell.phase() == Phase::Ready {
            let is_touched = context.shell.input_since_handover();
            let is_read = is_touched && !self.input.is_writing();
            let is_news = match state.foreground {
                Activity::ShellReads => {
                    context.shell.hook_asks();
                    true
                }
                Activity::Editor if state.group == shell_pid => {
                    context.sampler.suspend();
                    context.shell.edits();
                    context.shell.take_hook_asked() || is_read
                }
                Activity::Unknown => is_read,
                _ => state.group != shell_pid && is_touched,
            };
            if !is_news && !context.shell.is_sampled_only() {
                return;
            }
        }
        if state.foreground.waits() {
            if context.output.pass_held(context.terminal.leader(), &mut context.records, now) {
                // The output may be newer than the sample, and give the same state another meaning.
                context.sampler.wrote(now);
                context.schedule_sample(now);
            }
            self.reports.drain(context, now);
        }
        if state.foreground.is_a_waiting_shell() {
            facts.rivals = context.sampler.rivals(shell_pid);
        }
        // "Input wanted" is published only together with all output written before it.
        context.publish_now(now);
        let observed = Observed { answered: context.replies.answered(), is_new, facts };
        context.connections.send_attached(&FromHolder::Observed(observed));
    }

    /// Shuts down: removes the socket, flushes every frame to the clients, closes the records, and removes temporary files.
    pub(super) fn shut_down(&mut self) {
        self.ending.leave(|| {
            self.context.connections.finish();
            self.context.records.close();
        });
    }
}
