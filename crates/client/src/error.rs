//! Why a call got no answer, and whether to try again.

use std::time::Duration;

use api::{ErrorCode, Problem};

/// Why a call got no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No process listens.
    #[error("no server answers: {0}")]
    NoServer(std::io::Error),
    /// The server at a URL cannot be connected to.
    #[error("no server answers at {0}")]
    Unreachable(std::io::Error),
    /// A process may listen, but this user has no access, or does not trust its user.
    #[error("this user may not use the server's socket: {0}")]
    Closed(std::io::Error),
    /// The server accepted the request and has not answered; whether it performed it is unknown.
    #[error("the server has not answered within {} s", .0.as_secs())]
    Silent(Duration),
    /// The connection broke; whether the server performed the request is unknown.
    #[error("the connection to the server was lost: {0}")]
    Broken(hyper::Error),
    /// The server refused the request, with this problem.
    #[error("{}", .0.detail)]
    Refused(Box<Problem>),
    /// The answer is not from a ptyd server, or from another version.
    #[error("the server's answer cannot be read: {0}")]
    Strange(String),
}

impl ClientError {
    /// The server's error code, if it answered.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(problem) => Some(problem.code),
            Self::NoServer(_)
            | Self::Unreachable(_)
            | Self::Closed(_)
            | Self::Silent(_)
            | Self::Broken(_)
            | Self::Strange(_) => None,
        }
    }

    /// Whether a server that comes back would answer: no process listens, the connection broke, or the server is
    /// restarting.
    pub fn is_outage(&self) -> bool {
        match self {
            Self::NoServer(_) | Self::Unreachable(_) | Self::Broken(_) => true,
            Self::Refused(problem) => problem.code == ErrorCode::ServerRestarting,
            Self::Closed(_) | Self::Silent(_) | Self::Strange(_) => false,
        }
    }
}
