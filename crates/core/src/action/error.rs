//! The errors of actions.

use std::fmt;
use std::sync::Arc;

use policy::{Ruling, Verdict};
use terminal::quote;

use super::secret::SecretRefusal;
use super::take_over::Driver;
use crate::ids::{CommandId, NoSessionId, SessionId};
use crate::principal::NoPerson;

/// The hint if the program may be a shell.
const INSIDE: &str = "; if it is a shell at its prompt, run the command in it with inside";

/// Why an action was not performed. Every message says what to do next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ActionError {
    /// There is no such session for this caller.
    #[error("no session {}{}", quote::line(.id), live_list(.live.as_deref()))]
    NoSession {
        /// The requested id.
        id: String,
        /// The caller's live sessions, if they were looked up.
        live: Option<Vec<String>>,
    },
    /// The session or approval is on another server behind the same load balancer.
    #[error("{id} is on node {node}, and this is another node; send the request to that node")]
    OtherNode {
        /// Its id.
        id: String,
        /// The node that its id names.
        node: u16,
    },
    /// There is no such command.
    #[error(
        "no command {id} in session {session}; `ptyd history` (GET /terminals/{session}/commands) lists its \
     commands"
    )]
    NoCommand {
        /// The session.
        session: SessionId,
        /// The requested id.
        id: String,
    },
    /// A field is wrong.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field's name as the client wrote it.
        field: &'static str,
        /// The problem and its remedy.
        problem: String,
    },
    /// A command runs.
    #[error("not run: session {session} is busy with {with}; wait for it, send it input, or interrupt it (C-c){}", if *.may_be_a_shell { INSIDE } else { "" })]
    Busy {
        /// The session.
        session: SessionId,
        /// The command with the beginning of its text, or another program that has the terminal.
        with: String,
        /// That command.
        command: Option<CommandId>,
        /// Whether the program waits for a line.
        may_be_a_shell: bool,
    },
    /// The shell is not at its prompt.
    #[error("not run: the shell of session {session} is not at its prompt: {why}")]
    NotReady {
        /// The session.
        session: SessionId,
        /// The present state of the shell, and the remedy.
        why: String,
    },
    /// Another client drives the session.
    #[error(
        "nothing was typed: {driver} has taken the keyboard of session {session} until {} at the latest; running \
         programs continue, and you can read their output; send the request again when the keyboard is returned",
        .driver.until_in_words()
    )]
    Driven {
        /// The session.
        session: SessionId,
        /// The driver.
        driver: Arc<Driver>,
    },
    /// There is no program that could read the input.
    #[error("no program that could read input runs in session {session}; run a command first")]
    NothingRuns {
        /// The session.
        session: SessionId,
    },
    /// The command that the input was meant for has ended, and the shell would read it.
    #[error(
        "nothing was typed: {command} has ended, and the shell of session {session} is at its prompt; if you send the \
         input again, ptyd types it there"
    )]
    InputTooLate {
        /// The session.
        session: SessionId,
        /// The command with the beginning of its text.
        command: String,
    },
    /// The session has ended.
    #[error(
        "session {session} has ended ({reason}); start a new one; ptyd keeps the ended session's output readable \
     until it removes the session"
    )]
    Ended {
        /// The session.
        session: SessionId,
        /// How it ended.
        reason: EndReason,
    },
    /// The session is still live.
    #[error(
        "not purged: session {session} is alive; end it first (DELETE /terminals/{session}, ptyd kill), or end and purge it at once with force=true"
    )]
    Alive {
        /// The session.
        session: SessionId,
    },
    /// The program does not read its input.
    #[error(
        "only {accepted} of {offered} bytes were typed: the program does not read its input; nothing more was sent"
    )]
    Stalled {
        /// How many bytes were typed.
        accepted: usize,
        /// How many bytes were sent.
        offered: usize,
    },
    /// The terminal would echo the secret.
    #[error(
        "nothing was typed: the terminal of session {session} echoes input, so the secret would appear in its output; \
         send it when the program asks for it (foreground password_wanted), or without `secret`"
    )]
    WouldEcho {
        /// The session.
        session: SessionId,
    },
    /// A person's secret was not typed.
    #[error("{0}")]
    SecretRefused(SecretRefusal),
    /// The caller lacks the permission.
    #[error("not allowed: {why}")]
    Denied {
        /// The reason, and which principal is allowed.
        why: String,
    },
    /// The session's policy denies it.
    #[error("{0}")]
    PolicyDenied(Box<PolicyRefusal>),
    /// The session's policy leaves it to a person.
    #[error("{0}")]
    ApprovalNeeded(Box<PolicyRefusal>),
    /// Another decision stands.
    #[error("approval {id} is decided: {by} has {decision}; the first decision counts")]
    AlreadyDecided {
        /// The approval.
        id: String,
        /// By whom.
        by: String,
        /// `allowed it`, `allowed it permanently` or `denied it`.
        decision: &'static str,
    },
    /// The caller's token was revoked or has expired, or its browser's log-in has ended.
    #[error(
        "the token was revoked or has expired, or the browser was logged out; get a new token (ptyd token new) or a new link (ptyd open)"
    )]
    ShutOut,
    /// There is no such token.
    #[error("no token {name}; ptyd token ls (GET /tokens) lists them")]
    NoToken {
        /// The requested name.
        name: String,
    },
    /// A limit was reached.
    #[error("{what} is at its limit of {limit}; {hint}")]
    Limit {
        /// The name of the limit.
        what: &'static str,
        /// Its value.
        limit: u64,
        /// The remedy.
        hint: &'static str,
    },
    /// The idempotency key was used with another request.
    #[error("idempotency key {key:?} was used before with another request; use a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// Another live session of the owner has the name.
    #[error(
        "session {session} is already named {}: use it, choose another name, or end or rename it first",
        terminal::quote::line(name)
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The session that has it.
        session: SessionId,
    },
    /// The session could not be started.
    #[error("the session could not be started: {why}")]
    Start {
        /// The reason.
        why: String,
    },
    /// The session lives, but the server cannot reach its holder.
    #[error(
        "session {session} is alive, but {why}. The request may still take effect: check before you repeat it, or \
         repeat it with its idempotency key. You can also end the session by force (DELETE \
         /terminals/{session}?force=true, ptyd kill --force)"
    )]
    Unreachable {
        /// The session.
        session: SessionId,
        /// The fault of the holder.
        why: String,
    },
    /// The machine or this server lacks a resource.
    #[error(
        "not done: the machine lacks terminals, descriptors, memory, processes or disk space: {why}; end unused sessions, or retry later"
    )]
    Exhausted {
        /// The step that failed, and the kernel's error.
        why: String,
    },
    /// The removal of a session's folder takes longer than a request waits.
    #[error(
        "not removed yet after {patience:?}: {folder}; the removal continues: repeat the request to wait for its end"
    )]
    Removing {
        /// The folder.
        folder: String,
        /// How long the request has waited.
        patience: std::time::Duration,
    },
    /// The audit log cannot be written, and the server runs nothing that it cannot record.
    #[error(
        "not done: the audit log cannot be written ({why}), and this server runs nothing that it cannot record; free disk space or repair the file, or \
         ask the operator to start the server with --audit best-effort"
    )]
    NotRecorded {
        /// The file, and the kernel's error.
        why: String,
    },
    /// The server drains.
    #[error(
        "not started: this server is draining and refuses new sessions; running sessions are not affected; use another \
         server, or retry later"
    )]
    Draining,
    /// The server is stopping.
    #[error("the server is restarting; nothing is lost; retry in a moment")]
    Restarting,
    /// A bug or fault of the server.
    #[error("internal error: {why}")]
    Internal {
        /// The reason, which is also logged.
        why: String,
    },
}

impl ActionError {
    /// Its code, as the audit log has it: that of the HTTP interface.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSession { .. } => "session_not_found",
            Self::OtherNode { .. } => "other_node",
            Self::NoCommand { .. } => "command_not_found",
            Self::Invalid { .. } => "invalid_field",
            Self::Busy { .. } => "session_busy",
            Self::NotReady { .. } => "session_not_ready",
            Self::NothingRuns { .. } | Self::InputTooLate { .. } => "nothing_runs",
            Self::Ended { .. } => "session_ended",
            Self::Alive { .. } => "session_alive",
            Self::Stalled { .. } => "input_stalled",
            Self::Driven { .. } => "session_driven",
            Self::WouldEcho { .. } => "would_echo",
            Self::SecretRefused(SecretRefusal::Unknown) => "route_not_found",
            Self::SecretRefused(SecretRefusal::Answered | SecretRefusal::Over) => "nothing_runs",
            Self::Denied { .. } => "forbidden",
            Self::PolicyDenied(_) => "policy_denied",
            Self::ApprovalNeeded(_) => "approval_needed",
            Self::AlreadyDecided { .. } => "already_decided",
            Self::ShutOut => "unauthorized",
            Self::NoToken { .. } => "token_not_found",
            Self::Limit { .. } => "limit_reached",
            Self::KeyReused { .. } => "key_reused",
            Self::NameTaken { .. } => "name_taken",
            Self::Start { .. } => "start_failed",
            Self::Unreachable { .. } => "session_unreachable",
            Self::Exhausted { .. } | Self::NotRecorded { .. } => "resources_exhausted",
            Self::Removing { .. } => "removal_continues",
            Self::Draining => "server_draining",
            Self::Restarting => "server_restarting",
            Self::Internal { .. } => "internal",
        }
    }
}

/// The refusal of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRefusal {
    /// The action that was not performed: `not run`, `nothing was typed`.
    pub what: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// The policy's name.
    pub policy: String,
    /// The rule's name.
    pub rule: String,
    /// Why it matches.
    pub why: String,
    /// Nothing but the policy keeps the session's programs from it.
    pub is_advisory: bool,
    /// The approval that a person can give; `None` where nobody is asked.
    pub approval: Option<String>,
}

impl PolicyRefusal {
    /// The error of a ruling that does not allow an action, with the approval for which it waits.
    pub(crate) fn error(
        what: &'static str,
        policy: &str,
        ruling: &Ruling,
        is_advisory: bool,
        approval: Option<String>,
    ) -> Option<ActionError> {
        let Ruling { verdict, rule, why, .. } = ruling.clone();
        let refusal = Box::new(Self { what, verdict, policy: policy.to_owned(), rule, why, is_advisory, approval });
        match verdict {
            Verdict::Allow => None,
            Verdict::Ask => Some(ActionError::ApprovalNeeded(refusal)),
            Verdict::Deny => Some(ActionError::PolicyDenied(refusal)),
        }
    }
}

impl fmt::Display for PolicyRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, policy, rule, why, .. } = self;
        let why = quote::line(why);
        if self.verdict == Verdict::Ask {
            write!(f, "{what}: needs approval by a person: rule {rule} of policy {policy}: {why}; ")?;
            match &self.approval {
                Some(id) => write!(
                    f,
                    "waiting for approval {id} (ptyd approvals); send the same request again once it is allowed"
                )?,
                None => f.write_str("no person can be asked about this")?,
            }
        } else {
            write!(f, "{what}: rule {rule} of policy {policy} denies it: {why}")?;
        }
        if self.is_advisory { write!(f, " (advisory: the session is not confined)") } else { Ok(()) }
    }
}

/// How a session ended, as far as the request that failed for it knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndReason {
    /// It ended during the request, before its end was on record.
    #[error("it has just ended")]
    DuringRequest,
    /// The reason on record.
    #[error("{0}")]
    Recorded(String),
}

impl From<NoPerson> for ActionError {
    fn from(NoPerson(why): NoPerson) -> Self {
        Self::Denied { why: why.to_owned() }
    }
}

impl From<NoSessionId> for ActionError {
    fn from(NoSessionId(id): NoSessionId) -> Self {
        Self::NoSession { id, live: None }
    }
}

fn live_list(live: Option<&[String]>) -> String {
    match live {
        None => "; list_terminal_sessions (GET /terminals) lists them".to_owned(),
        Some([]) => {
            "; no session of yours is alive; start one with start_terminal_session (POST /terminals)".to_owned()
        }
        Some(some) => format!("; live: {}", some.join(", ")),
    }
}
