//! Judged ends: a server's conclusion about a command whose end the shell did not report. The holder records it, so
//! that the next server and the readers of an ended session report the same.
//!
//! The numbers are in the events of sessions, so they keep their meaning; an unknown number is read as the least
//! certain.

use journal::Offset;
use wire::ToHolder;

use super::command_log::{Command, End};
use crate::action::{Boundary, CommandStatus};

/// The frame with which the holder records this end.
pub(crate) fn to_holder(command: &Command, is_hookless: bool) -> Option<ToHolder> {
    let end = command.end.as_ref()?;
    let status = match end.status {
        CommandStatus::Running | CommandStatus::Failed => 0,
        CommandStatus::Completed => 1,
        CommandStatus::Terminated => 2,
    };
    let boundary = match end.boundary {
        Boundary::Heuristic => 0,
        Boundary::Nonce => 1,
        Boundary::Attested => 2,
    };
    let why = end.error.clone().unwrap_or_default().into_bytes();
    let (command, end, time_us) = (command.id, Offset(end.at), end.time_us);
    Some(ToHolder::Judge { command, status, boundary, is_hookless, end, time_us, why })
}

/// The end as it was recorded.
pub(crate) fn end((status, boundary): (u8, u8), at: u64, time_us: u64, why: &[u8]) -> End {
    let status = match status {
        1 => CommandStatus::Completed,
        2 => CommandStatus::Terminated,
        _ => CommandStatus::Failed,
    };
    let boundary = match boundary {
        1 => Boundary::Nonce,
        2 => Boundary::Attested,
        _ => Boundary::Heuristic,
    };
    let error = (!why.is_empty()).then(|| String::from_utf8_lossy(why).into_owned());
    End { at, time_us, status, exit: None, pipestatus: Vec::new(), cwd: None, error, boundary }
}
