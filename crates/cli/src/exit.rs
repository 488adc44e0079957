//! Exit codes: 0 ok, 1 failed, 2 usage (clap's own), 3 no such session, 4 not allowed, 5 no server, 124 timed out.

use std::fmt;

use api::ErrorCode;
use client::ClientError;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct Failure {
    /// The process's exit code.
    pub code: u8,
    message: String,
}

impl Failure {
    /// A failure of no special kind.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::with(1, message)
    }

    /// A wrong use that clap cannot see.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::with(2, message)
    }

    /// No such session.
    pub fn no_session(message: impl fmt::Display) -> Self {
        Self::with(3, message)
    }

    /// No server.
    pub fn no_server(message: impl fmt::Display) -> Self {
        Self::with(5, message)
    }

    /// Time is up.
    pub fn timed_out(message: impl fmt::Display) -> Self {
        Self::with(124, message)
    }

    fn with(code: u8, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::NoServer(_) => 5,
            ClientError::Broken(_) | ClientError::Strange(_) => 1,
            ClientError::Refused(problem) => of(problem.code),
        };
        let hint = if matches!(error, ClientError::NoServer(_)) { "; start one with: ptyd serve" } else { "" };
        Self::with(code, format!("{error}{hint}"))
    }
}

fn of(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::SessionNotFound => 3,
        ErrorCode::Unauthorized | ErrorCode::Forbidden | ErrorCode::HostRefused | ErrorCode::OriginRefused => 4,
        ErrorCode::ServerRestarting => 5,
        ErrorCode::MalformedBody
        | ErrorCode::InvalidField
        | ErrorCode::BodyTooLarge
        | ErrorCode::RouteNotFound
        | ErrorCode::MethodNotAllowed
        | ErrorCode::UpgradeRequired
        | ErrorCode::CommandNotFound
        | ErrorCode::TokenNotFound
        | ErrorCode::SessionEnded
        | ErrorCode::SessionBusy
        | ErrorCode::SessionNotReady
        | ErrorCode::NothingRuns
        | ErrorCode::InputStalled
        | ErrorCode::LimitReached
        | ErrorCode::RateLimited
        | ErrorCode::KeyReused
        | ErrorCode::StartFailed
        | ErrorCode::Internal => 1,
    }
}
