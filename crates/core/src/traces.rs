//! The spans of OpenTelemetry traces: an action, and the command that it hands over, until the command ends.
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
use crate::limits::{COMMAND_SPANS_MAX, ENDED_COMMANDS_REMEMBERED_MAX};
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
    /// The newest commands that have ended.
    ended: VecDeque<(Place, Ended)>,
}

#[derive(Debug, Clone, Copy)]
struct Ended {
    exit_code: Option<i32>,
    has_span: bool,
}

impl CommandSpans {
    /// A command of the current action was handed over, so that its span begins. A repeated request gets the command that has one.
    pub(crate) fn handed_over(&self, session: &SessionId, command: CommandId) {
        if !is_exported() {
            return;
        }
        let place = (session.clone(), command);
        let mut commands = locked(&self.0);
        if let Some((_, ended)) = commands.ended.iter_mut().rev().find(|(ended, _)| *ended == place) {
            let Ended { exit_code, has_span } = std::mem::replace(ended, Ended { has_span: true, ..*ended });
            drop(commands);
            if !has_span {
                end(&span(session, command), exit_code);
            }
        } else if commands.running.len() < COMMAND_SPANS_MAX {
            commands.running.entry(place).or_insert_with(|| span(session, command));
        }
    }

    /// The command has ended.
    pub(crate) fn ended(&self, command: &CommandView) {
        if !is_exported() {
            return;
        }
        let place = (command.session.clone(), command.id);
        let mut commands = locked(&self.0);
        let span = commands.running.remove(&place);
        commands.ended.push_back((place, Ended { exit_code: command.exit_code, has_span: span.is_some() }));
        if commands.ended.len() > ENDED_COMMANDS_REMEMBERED_MAX {
            commands.ended.pop_front();
        }
        drop(commands);
        if let Some(span) = span {
            end(&span, command.exit_code);
        }
    }

    /// The session has ended, and so have its commands.
    pub(crate) fn session_ended(&self, session: &SessionId) {
        let left: Vec<Span> = {
            let mut commands = locked(&self.0);
            commands.running.extract_if(|(of, _), _| of == session).map(|(_, span)| span).collect()
        };
        left.iter().for_each(|span| end(span, None));
    }
}

fn is_exported() -> bool {
    tracing::enabled!(target: TARGET, tracing::Level::INFO)
}

/// A span of a command that begins now.
fn span(session: &SessionId, command: CommandId) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        parent: None,
        "command",
        otel.status_code = Empty,
        ptyd.session.id = session.as_str(),
        ptyd.command.id = i64::from(command.0),
        process.exit.code = Empty,
    );
    // A child in the sense of `tracing` would keep its request's span from the collector until the command ends.
    let _ = span.set_parent(Span::current().context());
    span
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
