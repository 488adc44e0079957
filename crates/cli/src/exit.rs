//! Exit codes, and the failures that have them.

use std::{fmt, io};

use api::ErrorCode;
use client::ClientError;

/// All exit codes of ptyd's own, for agents.
pub const CODES: [(u8, &str); 10] = [
    (0, "success"),
    (1, "failure; wait: the command's exit code is not 0; search: nothing matched"),
    (USAGE, "wrong usage"),
    (3, "no such session"),
    (NOT_ALLOWED, "not allowed"),
    (NO_SERVER, "no server"),
    (INPUT_WANTED, "wait: the program wants input"),
    (STOPPED, "wait: the program is stopped"),
    (EXITED, "wait: the session has ended"),
    (TIMED_OUT, "timed out"),
];

/// The same as a table for `--help`.
pub fn help() -> String {
    CODES.iter().map(|(code, meaning)| format!("  {code:<3}  {meaning}\n")).collect()
}

/// clap's own.
pub const USAGE: u8 = 2;
pub const NOT_ALLOWED: u8 = 4;
const NO_SERVER: u8 = 5;
pub const INPUT_WANTED: u8 = 6;
pub const STOPPED: u8 = 7;
pub const EXITED: u8 = 8;
pub const TIMED_OUT: u8 = 124;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    /// The process's exit code.
    pub code: u8,
    /// The reason of a server that refused.
    pub reason: Option<ErrorCode>,
    message: String,
}

impl Failure {
    /// A failure without a special code.
    pub fn new(message: impl fmt::Display) -> Self {
        Self::with(1, message)
    }

    /// A usage error that clap cannot detect.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::with(USAGE, message)
    }

    /// The session does not exist.
    pub fn no_session(message: impl fmt::Display) -> Self {
        Self::with(3, message)
    }

    /// No server could be reached or started.
    pub fn unreached(error: &io::Error) -> Self {
        Self::with(of_unreached(error), error)
    }

    /// No server answers, or it takes no sessions.
    pub fn no_server(message: impl fmt::Display) -> Self {
        Self::with(NO_SERVER, message)
    }

    /// The timeout expired.
    pub fn timed_out(message: impl fmt::Display) -> Self {
        Self::with(TIMED_OUT, message)
    }

    /// The same failure with this advice in the place of its own, which begins with `from`.
    pub fn advising(self, from: &str, advice: &str) -> Self {
        let Some((why, _)) = self.message.split_once(from) else { return self };
        Self { message: format!("{why}; {advice}"), ..self }
    }

    fn with(code: u8, message: impl fmt::Display) -> Self {
        Self { code, reason: None, message: message.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(error)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::NoServer(_) | ClientError::Unreachable(_) | ClientError::Silent(_) => NO_SERVER,
            ClientError::Closed(_) => NOT_ALLOWED,
            ClientError::Broken(_) | ClientError::Strange(_) => 1,
            ClientError::Refused(problem) => of(problem.code),
        };
        let hint = match &error {
            ClientError::NoServer(_) => "; `ptyd new`, `run` and `mcp` start one",
            ClientError::Silent(_) => "; run `ptyd doctor`",
            ClientError::Unreachable(_)
            | ClientError::Refused(_)
            | ClientError::Closed(_)
            | ClientError::Broken(_)
            | ClientError::Strange(_) => "",
        };
        Self { reason: error.code(), ..Self::with(code, format!("{error}{hint}")) }
    }
}

/// The exit code if no server is reached: "another user's server" and "no server" are different.
pub fn of_unreached(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::PermissionDenied { NOT_ALLOWED } else { NO_SERVER }
}

fn of(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::SessionNotFound | ErrorCode::OtherNode => 3,
        ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::PolicyDenied
        | ErrorCode::ApprovalNeeded
        | ErrorCode::HostRefused
        | ErrorCode::OriginRefused => NOT_ALLOWED,
        ErrorCode::ServerDraining | ErrorCode::ServerRestarting | ErrorCode::NodeUnreachable => NO_SERVER,
        ErrorCode::MalformedBody
        | ErrorCode::InvalidField
        | ErrorCode::BodyTooLarge
        | ErrorCode::BodyLate
        | ErrorCode::MalformedHead
        | ErrorCode::RouteNotFound
        | ErrorCode::MethodNotAllowed
        | ErrorCode::UpgradeRequired
        | ErrorCode::CommandNotFound
        | ErrorCode::TokenNotFound
        | ErrorCode::SessionEnded
        | ErrorCode::SessionAlive
        | ErrorCode::SessionBusy
        | ErrorCode::SessionNotReady
        | ErrorCode::NothingRuns
        | ErrorCode::InputStalled
        | ErrorCode::SessionDriven
        | ErrorCode::WouldEcho
        | ErrorCode::AlreadyDecided
        | ErrorCode::LimitReached
        | ErrorCode::RateLimited
        | ErrorCode::KeyReused
        | ErrorCode::NameTaken
        | ErrorCode::StartFailed
        | ErrorCode::SessionUnreachable
        | ErrorCode::ResourcesExhausted
        | ErrorCode::RemovalContinues
        | ErrorCode::Internal => 1,
    }
}
