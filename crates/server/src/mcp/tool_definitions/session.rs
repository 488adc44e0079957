//! A session as one line and as a summary: the same facts for the model and for programs.

use std::time::SystemTime;

use serde_json::{Value, json};

use crate::mcp::text::{Facts, path, plain, quoted};
use ptyd_core::action::{SessionStatus, SessionView};

/// `s0-… · running · wants input · bash · pid 4711 · cwd /app · name "build"`.
pub(super) fn line(session: &SessionView) -> String {
    let mut facts = Facts::default();
    facts.add(session.id.as_str());
    facts.add(status(session.status));
    if session.status != SessionStatus::Terminated {
        facts.add(session.foreground.name().replace('_', " "));
    }
    if let Some(command) = session.current_command {
        facts.add(format!("command {command}"));
    }
    facts.add(plain(&session.shell));
    if let Some(pid) = session.pid {
        facts.add(format!("pid {pid}"));
    }
    facts.add(format!("cwd {}", path(&session.cwd)));
    facts.add(format!("owner {}", plain(&session.owner)));
    if let Some(name) = &session.name {
        facts.add(format!("name {}", quoted(name)));
    }
    facts.add(format!("last activity {}", time(session.last_activity)));
    facts.line()
}

/// The same facts as a value.
pub(super) fn summary(session: &SessionView) -> Value {
    let mut summary = json!({
        "id": session.id.as_str(),
        "status": status(session.status),
        "shell": session.shell,
        "cwd": session.cwd.to_string_lossy(),
        "owner": session.owner,
        "lastActivity": time(session.last_activity),
    });
    if session.status != SessionStatus::Terminated {
        summary["foreground"] = session.foreground.name().into();
    }
    if let Some(command) = session.current_command {
        summary["currentCommand"] = command.to_string().into();
    }
    if let Some(pid) = session.pid {
        summary["pid"] = pid.into();
    }
    if let Some(name) = &session.name {
        summary["name"] = name.as_str().into();
    }
    summary
}

pub(super) fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Creating => "creating",
        SessionStatus::Running => "running",
        SessionStatus::Terminated => "terminated",
    }
}

/// RFC 3339, to the second: more is of no use to a model.
fn time(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds)
        .ok()
        .and_then(|s| jiff::Timestamp::from_second(s).ok())
        .map(|t| t.to_string())
        .unwrap_or_default()
}
