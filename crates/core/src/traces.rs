//! The spans of OpenTelemetry traces: an action, and the command that it runs, from its request to its end.
//!
//! Spans are those of the `tracing` crate with a target of their own. Without an exporter nobody wants them, and they cost
//! next to nothing. They have ids, codes and times, but no command, input or output.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use tracing::Span;
use tracing::field::Empty;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::action::CommandView;
use crate::ids::{CommandId, SessionId};
use crate::limits::{COMMAND_SPANS_MAX, ENDED_COMMANDS_WITHOUT_SPAN_MAX};
use crate::mutex::locked;

/// The target of all spans that are exported.
pub const TARGET: &str = "ptyd::traces";

/// The span of an action.
pub(crate) fn action(name: &'static str) -> Span {
    tracing::info_span!(
        target: TARGET,
        "action",
        otel.name = name,
        otel.status_code = Empty,
        error.r#type = Empty,
    )
}

/// Records the code of the error with which the action failed.
pub fn failed(span: &Span, code: &str) {
    span.record("error.type", code);
    span.record("otel.status_code", "ERROR");
}

type Place = (SessionId, CommandId);

/// The spans of the commands that run. A command may end before its caller knows its id.
#[derive(Debug, Default)]
pub(crate) struct CommandSpans(Mutex<Commands>);

#[derive(Debug, Default)]
struct Commands {
    running: HashMap<Place, Span>,
    /// The newest commands that ended without a span.
    ended: VecDeque<(Place, Option<i32>)>,
}

impl CommandSpans {
    /// The span of a command that is about to be handed over.
    pub(crate) fn new_span() -> Span {
        let span = tracing::info_span!(
            target: TARGET,
            parent: None,
            "command",
            otel.status_code = Empty,
            ptyd.session.id = Empty,
            ptyd.command.id = Empty,
            process.exit.code = Empty,
        );
        if !span.is_disabled() {
            // A child in the sense of `tracing` would keep its request's span from the collector until the command ends.
            let _ = span.set_parent(Span::current().context());
        }
        span
    }

    /// The command was handed over. Beyond the greatest number of commands, its span ends here.
    pub(crate) fn handed_over(&self, session: &SessionId, command: CommandId, span: Span) {
        if span.is_disabled() {
            return;
        }
        span.record("ptyd.session.id", session.as_str());
        span.record("ptyd.command.id", i64::from(command.0));
        span.in_scope(|| tracing::info!(target: TARGET, "handed over"));
        let place = (session.clone(), command);
        let mut commands = locked(&self.0);
        if let Some(at) = commands.ended.iter().rposition(|(ended, _)| *ended == place) {
            let (_, exit_code) = commands.ended.remove(at).expect("invariant: it was found there");
            drop(commands);
            end(&span, exit_code);
        } else if commands.running.len() < COMMAND_SPANS_MAX {
            // A repeated request has the command that runs.
            commands.running.entry(place).or_insert(span);
        }
    }

    /// The command has ended.
    pub(crate) fn ended(&self, command: &CommandView) {
        if !tracing::enabled!(target: TARGET, tracing::Level::INFO) {
            return;
        }
        let place = (command.session.clone(), command.id);
        let mut commands = locked(&self.0);
        if let Some(span) = commands.running.remove(&place) {
            drop(commands);
            return end(&span, command.exit_code);
        }
        commands.ended.push_back((place, command.exit_code));
        if commands.ended.len() > ENDED_COMMANDS_WITHOUT_SPAN_MAX {
            commands.ended.pop_front();
        }
    }

    /// The session has ended; a command of it that still has a span was not reported.
    pub(crate) fn session_ended(&self, session: &SessionId) {
        locked(&self.0).running.retain(|(of, _), _| of != session);
    }
}

/// Records the exit code, which is absent if nobody knows it.
fn end(span: &Span, exit_code: Option<i32>) {
    if let Some(code) = exit_code {
        span.record("process.exit.code", i64::from(code));
    }
    if exit_code != Some(0) {
        span.record("otel.status_code", "ERROR");
    }
    // The exporter takes the time at which a span was left last for its end.
    span.in_scope(|| ());
}
