//! A session as one line for the model, and the words that the answers for programs share with it.

use std::time::SystemTime;

use crate::mcp::text::{Facts, path, plain, quoted};
use ptyd_core::action::{SessionStatus, SessionView};

/// Characters of a command's text in a summary; it may have a megabyte.
const COMMAND_CHARS_MAX: usize = 200;

/// `s0-… · name "build" · running · command c7 "npm run dev" · bash · pid 4711 · cwd /app`.
pub(super) fn line(session: &SessionView, caller: &str) -> String {
    let mut facts = Facts::default();
    facts.add(session.id.as_str());
    if let Some(name) = &session.name {
        facts.add(format!("name {}", quoted(name)));
    }
    // For a running session the foreground's state is shown.
    facts.add(match session.status {
        SessionStatus::Running => session.foreground.name().replace('_', " "),
        SessionStatus::Creating | SessionStatus::Terminated => status(session.status).to_owned(),
    });
    if let Some(command) = session.current_command {
        let text = session.current_command_text.as_deref().map(|text| format!(" {}", quoted(text)));
        facts.add(format!("command {command}{}", text.unwrap_or_default()));
    }
    facts.add(plain(&session.shell));
    if let Some(pid) = session.pid {
        facts.add(format!("pid {pid}"));
    }
    facts.add(format!("cwd {}", path(&session.cwd)));
    if session.owner != caller {
        facts.add(format!("owner {}", plain(&session.owner)));
    }
    facts.add(format!("last activity {}", time(session.last_activity)));
    facts.line()
}

/// The beginning of the running command's text.
pub(super) fn command_text(session: &SessionView) -> Option<String> {
    session.current_command_text.as_ref().map(|text| text.chars().take(COMMAND_CHARS_MAX).collect())
}

pub(super) fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Creating => "creating",
        SessionStatus::Running => "running",
        SessionStatus::Terminated => "terminated",
    }
}

/// RFC 3339, to the second: more is of no use to a model.
pub(super) fn time(at: SystemTime) -> String {
    let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    i64::try_from(seconds)
        .ok()
        .and_then(|s| jiff::Timestamp::from_second(s).ok())
        .map(|t| t.to_string())
        .unwrap_or_default()
}
