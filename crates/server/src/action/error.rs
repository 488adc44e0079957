//! Why an action was not done.

use api::quote;

use crate::ids::SessionId;

/// What helps where the program may be a shell.
const INSIDE: &str = "; if it is a shell at its prompt, run the command in it with inside";

/// Why an action was not done. Every message says what to do next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ActionError {
    /// No such session for this caller.
    #[error("no session {}{}", quote::line(.id), live_list(.live.as_deref()))]
    NoSession {
        /// What was asked for.
        id: String,
        /// Sessions that the caller could have meant, where it was looked.
        live: Option<Vec<String>>,
    },
    /// No such command.
    #[error("no command {id} in session {session}; GET /terminals/{session}/commands lists them")]
    NoCommand {
        /// The session.
        session: SessionId,
        /// What was asked for.
        id: String,
    },
    /// A field is wrong.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field's name as the client wrote it.
        field: &'static str,
        /// What is wrong and what is right.
        problem: String,
    },
    /// A command runs.
    #[error("not run: session {session} is busy with {with}; wait for it, send it input, or interrupt it (C-c){}", if *.may_be_a_shell { INSIDE } else { "" })]
    Busy {
        /// The session.
        session: SessionId,
        /// The command with the first words of its text, or what else has the terminal.
        with: String,
        /// It waits for a line.
        may_be_a_shell: bool,
    },
    /// The shell does not show its prompt.
    #[error("not run: the shell of session {session} is not at its prompt: {why}")]
    NotReady {
        /// The session.
        session: SessionId,
        /// What it does instead, and what helps.
        why: String,
    },
    /// Input without a program that could read it.
    #[error("nothing runs in session {session} that could read input; run a command first")]
    NothingRuns {
        /// The session.
        session: SessionId,
    },
    /// The session has ended.
    #[error("session {session} has ended ({reason}); its output can still be read; start a new one")]
    Ended {
        /// The session.
        session: SessionId,
        /// How.
        reason: String,
    },
    /// The session lives.
    #[error(
        "not purged: session {session} lives; end it first (DELETE /terminals/{session}, ptyd kill), or end and purge it at once with force=true"
    )]
    Alive {
        /// The session.
        session: SessionId,
    },
    /// The program does not read its input.
    #[error("only {accepted} of {offered} bytes were taken: the program does not read; nothing more was sent")]
    Stalled {
        /// Taken.
        accepted: usize,
        /// Offered.
        offered: usize,
    },
    /// A secret, where what is typed is shown.
    #[error(
        "nothing was typed: the terminal of session {session} shows what is typed, so the secret would be in its output; \
         send it when the program asks for it (foreground password_wanted), or without `secret`"
    )]
    WouldEcho {
        /// The session.
        session: SessionId,
    },
    /// The caller may not.
    #[error("not allowed: {why}")]
    Denied {
        /// Why, and who may.
        why: String,
    },
    /// The token by which the caller came was revoked, or has expired.
    #[error("the token was revoked or has expired; ask whoever runs the server for another (ptyd token new)")]
    ShutOut,
    /// No such token.
    #[error("no token {name}; ptyd token ls (GET /tokens) lists them")]
    NoToken {
        /// What was asked for.
        name: String,
    },
    /// A bound was reached.
    #[error("{what} is at its limit of {limit}; {hint}")]
    Limit {
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: u64,
        /// What helps.
        hint: &'static str,
    },
    /// The same idempotency key with another body.
    #[error("idempotency key {key:?} was used before with another request; use a new key")]
    KeyReused {
        /// The key.
        key: String,
    },
    /// The session could not be started.
    #[error("the session could not be started: {why}")]
    Start {
        /// Why.
        why: String,
    },
    /// The session lives, and nobody can speak with its holder.
    #[error(
        "session {session} lives, but {why}; ask again later, or end it by force (DELETE /terminals/{session}?force=true, ptyd kill --force)"
    )]
    Unreachable {
        /// The session.
        session: SessionId,
        /// What is wrong with its holder.
        why: String,
    },
    /// The machine, or this server, is out of something.
    #[error(
        "not done, for want of descriptors, memory, processes or room on the disk: {why}; end what is not needed, or ask again later"
    )]
    Exhausted {
        /// What was tried, and the kernel's word.
        why: String,
    },
    /// The server is stopping.
    #[error("the server is restarting; nothing is lost; ask again in a moment")]
    Restarting,
    /// Our fault.
    #[error("internal error: {why}")]
    Internal {
        /// What the log says too.
        why: String,
    },
}

fn live_list(live: Option<&[String]>) -> String {
    match live {
        None => "; list_terminal_sessions (GET /terminals) tells which there are".to_owned(),
        Some([]) => {
            "; no session of yours is alive; start one with start_terminal_session (POST /terminals)".to_owned()
        }
        Some(some) => format!("; live: {}", some.join(", ")),
    }
}
