//! WebSocket events as JSON texts. Names and values are those of REST's data models; docs/websocket.md lists them.

use std::time::{Duration, SystemTime};

use api::ErrorCode;
use serde_json::{Value, json};

use ptyd_core::action::{
    Boundary, CommandStatus, CommandView, SessionEvent, SessionExit, SessionStatus, SessionView, signal_name,
};
use ptyd_core::limits;

/// The first text: the state of the session and of the connection.
pub(super) fn attached(view: &SessionView, at: u64, client: &str, may_write: bool) -> Value {
    let status = match view.status {
        SessionStatus::Creating => "creating",
        SessionStatus::Running => "running",
        SessionStatus::Terminated => "terminated",
    };
    json!({
        "event": "control",
        "session": view.id.as_str(),
        "status": status,
        "client": client,
        "mayWrite": may_write,
        "offset": at,
        "firstOffset": view.first_offset,
        "endOffset": view.end_offset,
        "dimensions": { "cols": view.cols, "rows": view.rows },
        "foreground": view.foreground.name(),
        "currentCommand": view.current_command.map(|id| id.to_string()),
        "windowBytes": limits::WINDOW_BYTES,
    })
}

pub(super) fn render(event: &SessionEvent) -> Value {
    match event {
        SessionEvent::Started(view) => json!({ "event": "command.started", "command": command(view) }),
        SessionEvent::Completed(view) => json!({ "event": "command.completed", "command": command(view) }),
        SessionEvent::Ready => json!({ "event": "ready" }),
        SessionEvent::Foreground(now) => json!({ "event": "foreground", "foreground": now.name() }),
        SessionEvent::Resized { cols, rows } => {
            json!({ "event": "resize", "dimensions": { "cols": cols, "rows": rows } })
        }
        SessionEvent::Exited(how) => json!({ "event": "exit", "exit": how.as_ref().map(exit) }),
        SessionEvent::LimitHit(hit) => json!({
            "event": "limit",
            "limit": hit.limit.name(),
            "commandId": hit.command.map(|id| id.to_string()),
        }),
        SessionEvent::Missed(events) => json!({ "event": "control", "missedEvents": events }),
    }
}

/// The answer to a ping.
pub(super) fn pong() -> Value {
    json!({ "event": "pong" })
}

/// A request of the client failed; `seq` is the input's number, if it was one.
pub(super) fn error(code: ErrorCode, detail: &str, seq: Option<u64>) -> Value {
    json!({ "event": "error", "code": code.as_str(), "detail": detail, "seq": seq })
}

fn command(view: &CommandView) -> Value {
    let status = match view.status {
        CommandStatus::Running => "running",
        CommandStatus::Completed => "completed",
        CommandStatus::Failed => "failed",
        CommandStatus::Terminated => "terminated",
    };
    let boundary = match view.boundary {
        Boundary::Attested => "attested",
        Boundary::Nonce => "nonce",
        Boundary::Heuristic => "heuristic",
    };
    let mut value = json!({
        "id": view.id.to_string(),
        "sessionId": view.session.as_str(),
        "command": view.command,
        "status": status,
        "startedAt": time(view.started_at),
        "startOffset": view.start_offset,
        "outputSize": view.output_size,
        "boundary": boundary,
    });
    let known = [
        ("completedAt", view.completed_at.map(|at| time(at).into())),
        ("exitCode", view.exit_code.map(Value::from)),
        ("signal", view.signal.map(|signo| signal_name(signo).into())),
        ("pipestatus", (!view.pipestatus.is_empty()).then(|| view.pipestatus.clone().into())),
        ("error", view.error.clone().map(Value::from)),
        ("endOffset", view.end_offset.map(Value::from)),
        ("cwd", view.cwd.as_ref().map(|path| path.to_string_lossy().into())),
        ("durationMs", view.lasted.map(|lasted| millis(lasted).into())),
    ];
    for (name, known) in known {
        if let Some(known) = known {
            value[name] = known;
        }
    }
    value
}

fn exit(exit: &SessionExit) -> Value {
    let signal = exit.signal.map(signal_name);
    json!({ "exitCode": exit.code, "signal": signal, "reason": exit.reason, "at": time(exit.at) })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).map_or_else(|_| String::new(), |stamp| stamp.to_string())
}
