//! Log messages about the caller's sessions, for a client before the stateless era that has sent `logging/setLevel`.
//!
//! The server's own log belongs to its operator and is never sent this way.

#![expect(deprecated, reason = "later revisions drop log messages; those that have them still have clients")]

use std::sync::{Mutex, PoisonError};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RoleServer};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::subscriptions::Subscriber;
use ptyd_core::action::{Action, ActionError, EventsView, Outcome, ReadEvents, ServerEvent, ServerEventKind};
use ptyd_core::limits::{HEARTBEAT, SUBSCRIPTION_PAUSE};

/// The logger's name.
const LOGGER: &str = "ptyd";

/// The log messages of one client; they end with it.
#[derive(Default)]
pub(super) struct Log(Mutex<Option<watch::Sender<LoggingLevel>>>);

impl Log {
    /// From now on sends messages of at least this level.
    pub fn set(&self, by: Subscriber, peer: Peer<RoleServer>, level: LoggingLevel) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.as_ref().is_some_and(|told| told.send(level).is_ok()) {
            return;
        }
        let (sender, mut least) = watch::channel(level);
        *told = Some(sender);
        tokio::spawn(async move {
            let following = follow(&by, &peer, least.clone());
            tokio::select! {
                // A stopping server sends nothing more; the shim sets the level again at the next one.
                _ = following => {}
                () = async { while least.changed().await.is_ok() {} } => {}
            }
        });
    }
}

/// Sends messages until the client is gone.
async fn follow(
    by: &Subscriber,
    peer: &Peer<RoleServer>,
    least: watch::Receiver<LoggingLevel>,
) -> Result<(), ActionError> {
    let mut read = ReadEvents { since: None, wait: HEARTBEAT, follows: false };
    loop {
        let view = match by.server.dispatch(&by.principal, Action::Events(read)).await? {
            Outcome::Events(view) => view,
            _ => return Err(ActionError::Internal { why: "events were answered with something else".to_owned() }),
        };
        for (level, data) in messages(&view) {
            if rank(level) >= rank(*least.borrow()) {
                let word = LoggingMessageNotificationParam::new(level, data).with_logger(LOGGER);
                if peer.notify_logging_message(word).await.is_err() {
                    return Ok(());
                }
            }
        }
        let is_calm = view.events.is_empty();
        read.since = Some(view.next);
        if !is_calm {
            // Events of a flood are sent together.
            tokio::time::sleep_until(tokio::time::Instant::now() + SUBSCRIPTION_PAUSE).await;
        }
    }
}

fn messages(view: &EventsView) -> impl Iterator<Item = (LoggingLevel, Value)> {
    let gap = view.is_gap.then(|| (LoggingLevel::Warning, json!({ "event": "gap" })));
    gap.into_iter().chain(view.events.iter().map(|server_event| message(server_event)))
}

/// The level and the text of an event, in the terms of `GET /events`.
fn message(server_event: &ServerEvent) -> (LoggingLevel, Value) {
    let (level, event, more) = match &server_event.what {
        ServerEventKind::Created => (LoggingLevel::Info, "session.created", json!({})),
        ServerEventKind::Terminated(_) => (LoggingLevel::Notice, "session.terminated", json!({})),
        ServerEventKind::Started(command) => {
            (LoggingLevel::Debug, "command.started", json!({ "commandId": command.id.to_string() }))
        }
        ServerEventKind::Completed(command) => (
            LoggingLevel::Info,
            "command.completed",
            json!({ "commandId": command.id.to_string(), "exitCode": command.exit_code }),
        ),
        ServerEventKind::Wanted(_) => (LoggingLevel::Notice, "attention", json!({})),
        ServerEventKind::LimitHit(hit) => (LoggingLevel::Warning, "limit", json!({ "limit": hit.limit.name() })),
        ServerEventKind::Taken(driver) => {
            (LoggingLevel::Notice, "keyboard.taken", json!({ "driver": driver.to_string() }))
        }
        ServerEventKind::Returned(driver, end) => {
            let data = json!({ "driver": driver.to_string(), "endedBy": end.name() });
            (LoggingLevel::Notice, "keyboard.returned", data)
        }
        ServerEventKind::Approval { id, decision: None } => {
            (LoggingLevel::Notice, "approval.requested", json!({ "approvalId": id }))
        }
        ServerEventKind::Approval { id, decision: Some(decision) } => {
            let data = json!({ "approvalId": id, "decision": decision.name() });
            (LoggingLevel::Notice, "approval.decided", data)
        }
    };
    let mut data = json!({ "event": event, "sessionId": server_event.session.as_str(), "name": server_event.name });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    (level, data)
}

/// The levels in order (RFC 5424 §6.2.1, the most severe last).
fn rank(level: LoggingLevel) -> usize {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
