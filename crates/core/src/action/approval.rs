//! Approvals: a policy leaves a command or an input to a person, who allows it once or for always, or denies it.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use journal::MaskedText;

use crate::ids::SessionId;

/// A command or an input that waits for a person, or that a person has decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalView {
    /// `a`, the node, a dash and ten characters that nobody guesses.
    pub id: String,
    /// The session.
    pub session: SessionId,
    /// The session's name.
    pub session_name: Option<String>,
    /// The session's owner.
    pub owner: String,
    /// The principal that asks.
    pub principal: String,
    /// The policy, its rule and why that matches.
    pub policy: String,
    /// The rule.
    pub rule: String,
    /// Why it matches.
    pub why: String,
    /// The command or the input.
    pub subject: ApprovalSubject,
    /// The directory of the session's shell when it was asked for; the same request in another one is asked about again. `None` where
    /// it is not known, as in a nested shell.
    pub cwd: Option<PathBuf>,
    /// The decision.
    pub state: ApprovalState,
    /// When it was asked for.
    pub asked_at: SystemTime,
    /// How long it is still good.
    pub left: Duration,
}

/// The subject of a decision: exactly this, in this session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalSubject {
    /// A command, whole; `inside`: in a shell that runs in the session's own.
    Command {
        /// Its text.
        text: MaskedText,
        /// In a nested shell.
        inside: bool,
    },
    /// Input; nothing of it where it is secret.
    Input {
        /// The bytes, readable.
        text: Option<MaskedText>,
        /// How many bytes.
        length: usize,
    },
    /// Keys, by their names.
    Keys(Vec<String>),
}

/// The state of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nobody has decided.
    Pending,
    /// It may be performed once.
    Allowed {
        /// By whom.
        by: String,
        /// The same command runs without asking from now on.
        for_always: bool,
    },
    /// It is refused until this is forgotten.
    Denied {
        /// By whom.
        by: String,
    },
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Decision {
    /// Let it be performed once.
    Allow,
    /// The same, and make a rule of the command.
    Always,
    /// Refuse it.
    Deny,
}

impl Decision {
    /// Its name in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Always => "always",
            Self::Deny => "deny",
        }
    }
}
