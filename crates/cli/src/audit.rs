//! `audit`: prints, filters and follows the audit log. It reads the files, so it works without a server, and leaves no
//! lines itself.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::Args;
use ptyd_core::action::{AuditFilter, AuditRecord, ReadAudit};
use ptyd_core::audit::{Follower, page};
use ptyd_core::limits::AUDIT_LINES;
use serde_json::Value;
use terminal::quote;
use tokio::time::Instant;

use crate::exit::Failure;
use crate::paths::Paths;
use crate::{print, units};

/// How often a followed log is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The options of `audit`.
#[derive(Debug, Args)]
pub struct AuditOptions {
    /// Print only lines about the session with this id or name
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Print only lines of this principal, such as the name of a token
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Print only lines of this action or event, such as execute, start, refused or end
    #[arg(long, value_name = "NAME")]
    action: Option<String>,
    /// Print only lines that are not older than this, such as 30m or 7d
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    since: Option<Duration>,
    /// Print only lines with this text in one of their values
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Print only this many of the newest lines [default: 100; all with --since]
    #[arg(short = 'n', long, value_name = "COUNT")]
    lines: Option<usize>,
    /// Continue with new lines until C-c
    #[arg(short, long)]
    follow: bool,
    /// Print each line as JSON
    #[arg(long)]
    json: bool,
}

/// Prints the audit log of this state directory, oldest line first.
pub async fn audit(paths: &Paths, options: &AuditOptions) -> Result<ExitCode, Failure> {
    let folder = &paths.state_dir;
    let since = options.since.map(|since| SystemTime::now().checked_sub(since).unwrap_or(SystemTime::UNIX_EPOCH));
    let filter = AuditFilter {
        session: options.session.clone(),
        principal: options.principal.clone(),
        action: options.action.clone(),
        since,
        until: None,
        text: options.text.clone(),
    };
    let limit = options.lines.unwrap_or(if since.is_some() { usize::MAX } else { AUDIT_LINES });
    let unreadable = |e| Failure::new(format!("the audit log in {}: {e}", folder.display()));
    // Before the page, so that no line is missing between them; one that is in both is printed once.
    let follower = options.follow.then(|| Follower::from_end(folder, &filter)).transpose().map_err(unreadable)?;
    let there = page(folder, &ReadAudit { filter, limit, offset: 0 }).map_err(unreadable)?;
    for record in there.records.iter().rev() {
        show(record, options.json)?;
    }
    let Some(mut follower) = follower else { return Ok(ExitCode::SUCCESS) };
    let mut shown = there.records;
    loop {
        for record in follower.read().map_err(unreadable)? {
            if !shown.contains(&record) {
                show(&record, options.json)?;
            }
        }
        shown.clear();
        tokio::time::sleep_until(Instant::now() + LOOK_EVERY).await;
    }
}

fn show(record: &AuditRecord, json: bool) -> Result<(), Failure> {
    if json { print::compact_json(record) } else { print::line(line(record)) }
}

/// The fields that each line begins with, those that come next, and those that are not for people.
const FIRST: [&str; 5] = ["time", "principal", "door", "action", "event"];
const NEXT: [&str; 6] = ["session", "sessionName", "command", "text", "outcome", "exitCode"];
const LEFT_OUT: [&str; 5] = ["id", "scope", "credential", "transport", "owner"];

/// A line for people: time, principal, door, action, and every other fact with its name. No value can look like another one.
fn line(record: &AuditRecord) -> String {
    let value = |name: &str| record.get(name).map(format_value);
    let event = value("event").unwrap_or_default();
    let action = match (value("action"), event.as_str()) {
        (Some(action), "answer") => format!("{action} →"),
        (Some(action), _) => action,
        (None, _) => event,
    };
    let principal = value("principal").or_else(|| value("owner")).unwrap_or_else(|| "-".to_owned());
    let door = value("door").or_else(|| value("transport")).unwrap_or_else(|| "-".to_owned());
    let mut text = format!("{}  {principal}  {door}  {action}", value("time").unwrap_or_default());
    let is_named = record.contains_key("clientName");
    let is_other = |name: &&String| {
        let name = name.as_str();
        // The id of a client that has a name is for programs.
        if is_named && name == "client" {
            return false;
        }
        !FIRST.contains(&name) && !NEXT.contains(&name) && !LEFT_OUT.contains(&name)
    };
    for name in NEXT.into_iter().chain(record.keys().filter(is_other).map(String::as_str)) {
        if let Some(fact) = record.get(name) {
            text.push_str(&format!("  {}={}", quote::fact(name), format_value(fact)));
        }
    }
    text
}

/// A value in one line; text with blanks or an equals sign is quoted.
fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains([' ', '=']) || text.is_empty() => quote::in_quotes(text),
        Value::String(text) => quote::fact(text),
        Value::Array(all) => all.iter().map(format_value).collect::<Vec<_>>().join(","),
        other => quote::line(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: audit-4
    fn a_line_for_people_has_every_fact_once_and_foreign_text_in_quotes() {
        let of = |json: Value| line(json.as_object().expect("an object"));
        let request = serde_json::json!({
            "time": "2026-11-24T01:02:03.000004Z", "event": "request", "id": "a-1", "principal": "ann", "scope": "write",
            "credential": "token", "door": "mcp", "action": "execute", "session": "s0-aaaaaaaaaa",
            "text": "make  outcome=ok\n\u{1b}[2J\u{202e}",
        });
        assert_eq!(
            of(request),
            r#"2026-11-24T01:02:03.000004Z  ann  mcp  execute  session=s0-aaaaaaaaaa  text="make  outcome=ok\n\e[2J\u{202e}""#
        );
        let answer = serde_json::json!({
            "time": "t", "event": "answer", "principal": "ann", "door": "rest", "action": "execute", "command": "c1",
            "exitCode": 0, "outcome": "ok", "ms": 3,
        });
        assert_eq!(of(answer), "t  ann  rest  execute →  command=c1  outcome=ok  exitCode=0  ms=3");
        let refused = serde_json::json!({"time": "t", "event": "refused", "transport": "tcp", "path": "/x y", "outcome": "unauthorized"});
        assert_eq!(of(refused), r#"t  -  tcp  refused  outcome=unauthorized  path="/x y""#);
    }
}
