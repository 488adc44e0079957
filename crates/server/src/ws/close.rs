//! Why a socket is closed: one exhaustive mapping from errors to close codes, which are all that a browser sees.

use api::ErrorCode;
use axum::extract::ws::CloseFrame;

use crate::action::ActionError;

/// The reason in a close frame has 123 bytes at most (RFC 6455 §5.5).
const REASON_BYTES_MAX: usize = 123;

/// Why a socket ends; the number is the close code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Code {
    /// The frame breaks the protocol.
    Protocol = 1002,
    /// A message of a kind that is not taken.
    Unsupported = 1003,
    /// The message is too long.
    TooLong = 1009,
    /// A fault of ours.
    Internal = 1011,
    /// The server is going; the next one has the same sessions.
    Restarting = 1012,
    /// The token was revoked, or has expired.
    ShutOut = 4401,
    /// Not with this ticket, or with a token of this scope.
    Forbidden = 4403,
    /// No such session for this visitor.
    NotFound = 4404,
    /// What the visitor says does not fit what is here: a position of another session, a number that was used.
    Conflict = 4409,
    /// The session has ended, and everything was given.
    Ended = 4410,
    /// A bound was reached.
    TooMany = 4429,
}

/// A close frame.
pub(super) fn frame(code: Code, reason: &str) -> CloseFrame {
    let end = (0..=reason.len().min(REASON_BYTES_MAX)).rev().find(|i| reason.is_char_boundary(*i)).unwrap_or(0);
    CloseFrame { code: code as u16, reason: reason[..end].into() }
}

/// What an error is called in an `error` event, and the code of the close where it ends the visit.
pub(super) fn code_of(error: &ActionError) -> (ErrorCode, Code) {
    match error {
        ActionError::NoSession { .. } => (ErrorCode::SessionNotFound, Code::NotFound),
        ActionError::NoCommand { .. } => (ErrorCode::CommandNotFound, Code::NotFound),
        ActionError::Invalid { .. } => (ErrorCode::InvalidField, Code::Conflict),
        ActionError::Busy { .. } => (ErrorCode::SessionBusy, Code::Conflict),
        ActionError::NotReady { .. } => (ErrorCode::SessionNotReady, Code::Conflict),
        ActionError::NothingRuns { .. } => (ErrorCode::NothingRuns, Code::Conflict),
        ActionError::Ended { .. } => (ErrorCode::SessionEnded, Code::Ended),
        ActionError::Alive { .. } => (ErrorCode::SessionAlive, Code::Conflict),
        ActionError::Stalled { .. } => (ErrorCode::InputStalled, Code::Conflict),
        ActionError::WouldEcho { .. } => (ErrorCode::WouldEcho, Code::Conflict),
        ActionError::Denied { .. } => (ErrorCode::Forbidden, Code::Forbidden),
        ActionError::ShutOut => (ErrorCode::Unauthorized, Code::ShutOut),
        ActionError::NoToken { .. } => (ErrorCode::TokenNotFound, Code::NotFound),
        ActionError::Limit { .. } => (ErrorCode::LimitReached, Code::TooMany),
        ActionError::KeyReused { .. } => (ErrorCode::KeyReused, Code::Conflict),
        ActionError::Start { .. } => (ErrorCode::StartFailed, Code::Internal),
        ActionError::Unreachable { .. } => (ErrorCode::SessionUnreachable, Code::Internal),
        ActionError::Exhausted { .. } => (ErrorCode::ResourcesExhausted, Code::Internal),
        ActionError::Restarting => (ErrorCode::ServerRestarting, Code::Restarting),
        ActionError::Internal { .. } => (ErrorCode::Internal, Code::Internal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_fits_its_frame_and_ends_with_a_whole_character() {
        assert_eq!(frame(Code::Ended, "over"), CloseFrame { code: 4410, reason: "over".into() });
        let long = frame(Code::Restarting, &"ä".repeat(100));
        assert_eq!((long.code, long.reason.as_str()), (1012, "ä".repeat(61).as_str()));
    }
}
