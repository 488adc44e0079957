//! Close codes: one exhaustive mapping from errors to the codes of close frames, which are all that a browser sees.

use api::ErrorCode;
use axum::extract::ws::CloseFrame;

use ptyd_core::action::ActionError;

/// The reason in a close frame has 123 bytes at most (RFC 6455 §5.5).
const REASON_BYTES_MAX: usize = 123;

/// Why a socket is closed; the number is the close code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Code {
    /// The frame violates the protocol.
    Protocol = 1002,
    /// A message type that is not accepted.
    Unsupported = 1003,
    /// The message is too long.
    TooLong = 1009,
    /// A bug or fault of the server.
    Internal = 1011,
    /// The server is stopping; the next one has the same sessions.
    Restarting = 1012,
    /// The token was revoked or has expired, or the first message had no valid credential.
    Unauthorized = 4401,
    /// The ticket or the token's scope does not allow it.
    Forbidden = 4403,
    /// There is no such session for this client.
    NotFound = 4404,
    /// A value of the client does not fit the session: a position of another session, a number that was used.
    Conflict = 4409,
    /// The session has ended, and everything was sent.
    Ended = 4410,
    /// Another client drives, and the connection asked for the keyboard.
    Driven = 4423,
    /// A limit was reached.
    TooMany = 4429,
}

/// A close frame.
pub(super) fn frame(code: Code, reason: &str) -> CloseFrame {
    let end = (0..=reason.len().min(REASON_BYTES_MAX)).rev().find(|i| reason.is_char_boundary(*i)).unwrap_or(0);
    CloseFrame { code: code as u16, reason: reason[..end].into() }
}

/// The error code of an `error` event, and the close code if the error ends the connection.
pub(super) fn code_of(error: &ActionError) -> (ErrorCode, Code) {
    match error {
        ActionError::NoSession { .. } => (ErrorCode::SessionNotFound, Code::NotFound),
        ActionError::OtherNode { .. } => (ErrorCode::OtherNode, Code::NotFound),
        ActionError::NoCommand { .. } => (ErrorCode::CommandNotFound, Code::NotFound),
        ActionError::Invalid { .. } => (ErrorCode::InvalidField, Code::Conflict),
        ActionError::Busy { .. } => (ErrorCode::SessionBusy, Code::Conflict),
        ActionError::NotReady { .. } => (ErrorCode::SessionNotReady, Code::Conflict),
        ActionError::NothingRuns { .. } | ActionError::InputTooLate { .. } => (ErrorCode::NothingRuns, Code::Conflict),
        ActionError::Ended { .. } => (ErrorCode::SessionEnded, Code::Ended),
        ActionError::Alive { .. } => (ErrorCode::SessionAlive, Code::Conflict),
        ActionError::Stalled { .. } => (ErrorCode::InputStalled, Code::Conflict),
        ActionError::Driven { .. } => (ErrorCode::SessionDriven, Code::Driven),
        ActionError::WouldEcho { .. } => (ErrorCode::WouldEcho, Code::Conflict),
        ActionError::SecretRefused(_) => (ErrorCode::NothingRuns, Code::Conflict),
        ActionError::Denied { .. } => (ErrorCode::Forbidden, Code::Forbidden),
        ActionError::PolicyDenied(_) => (ErrorCode::PolicyDenied, Code::Forbidden),
        ActionError::ApprovalNeeded(_) => (ErrorCode::ApprovalNeeded, Code::Forbidden),
        ActionError::AlreadyDecided { .. } => (ErrorCode::AlreadyDecided, Code::Conflict),
        ActionError::ShutOut => (ErrorCode::Unauthorized, Code::Unauthorized),
        ActionError::NoToken { .. } => (ErrorCode::TokenNotFound, Code::NotFound),
        ActionError::Limit { .. } => (ErrorCode::LimitReached, Code::TooMany),
        ActionError::KeyReused { .. } => (ErrorCode::KeyReused, Code::Conflict),
        ActionError::NameTaken { .. } => (ErrorCode::NameTaken, Code::Conflict),
        ActionError::Start { .. } => (ErrorCode::StartFailed, Code::Internal),
        ActionError::Unreachable { .. } => (ErrorCode::SessionUnreachable, Code::Internal),
        ActionError::Exhausted { .. } | ActionError::NotRecorded { .. } => {
            (ErrorCode::ResourcesExhausted, Code::Internal)
        }
        ActionError::Removing { .. } => (ErrorCode::RemovalContinues, Code::Internal),
        // No message of a viewer starts a session.
        ActionError::Draining => (ErrorCode::ServerDraining, Code::Restarting),
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
