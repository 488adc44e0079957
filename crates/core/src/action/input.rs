//! Input that is typed at the terminal.

use super::budget::Budget;
use super::wait::Wait;
use crate::ids::SessionId;

/// A request to type input.
#[derive(Debug, Clone)]
pub struct Input {
    /// The session.
    pub session: SessionId,
    /// The input; key names are parsed by the protocols ([`crate::keys`]).
    pub bytes: InputBytes,
    /// Keep the bytes out of every record.
    pub is_secret: bool,
    /// A person has allowed it without seeing it, because a program asked for a password: it is typed as a secret, so only
    /// where the terminal does not echo.
    pub is_hidden: bool,
    /// The wait afterwards; `None` answers once the input is typed.
    pub wait: Option<Wait>,
    /// The idempotency key: a repeated request with it is not typed again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: Budget,
    /// Leave its echo out of the answer, where that is known to be one.
    pub without_echo: bool,
}

/// The input to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputBytes {
    /// These bytes, unchanged.
    Raw(Vec<u8>),
    /// Named keys, which depend on the terminal's modes at the moment of typing.
    Keys(Vec<crate::keys::Key>),
    /// Text as from a clipboard, in bracketed paste mode if the program has enabled it.
    Paste {
        /// The text.
        text: String,
        /// Whether Enter follows.
        enters: bool,
    },
}
