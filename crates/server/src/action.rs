//! Everything that can be asked of ptyd, and everything that it can answer: the program's whole interface.
//!
//! The doors (`rest/`, `mcp/`) only parse into an [`Action`] and render an [`Outcome`]; nothing in here knows HTTP or
//! JSON. Durations and offsets are real types, text is already what a person would see.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use regex::Regex;

use crate::identity::Detach;
use crate::ids::{CommandId, SessionId};
pub use crate::reading::{CastVersion, FoundView, MatchView, OutputKind, Recording, Search};
pub use crate::sessions::Feed;
pub use crate::viewing::{Piece, SessionEvent, TicketView, Watching};

/// One request.
#[derive(Debug, Clone)]
pub enum Action {
    /// Start a session. → [`Outcome::Session`]
    Create(Create),
    /// Sessions that the caller may see. → [`Outcome::Sessions`]
    List(List),
    /// One session. → [`Outcome::Session`]
    Show(SessionId),
    /// End a session. → [`Outcome::Terminated`]
    Terminate(Terminate),
    /// Change a terminal's size. → [`Outcome::Session`]
    Resize {
        /// Which session.
        session: SessionId,
        /// Cells, 1 to [`crate::limits::COLS_MAX`].
        cols: u16,
        /// Cells, 1 to [`crate::limits::ROWS_MAX`].
        rows: u16,
    },
    /// Run a command in the session's shell. → [`Outcome::Report`]
    Execute(Execute),
    /// The commands of a session, oldest first. → [`Outcome::Commands`]
    Commands {
        /// Which session.
        session: SessionId,
        /// At most this many.
        limit: usize,
        /// Skip this many.
        offset: usize,
    },
    /// One command with its output so far. → [`Outcome::Report`]
    Command {
        /// Which session.
        session: SessionId,
        /// Which command.
        command: CommandId,
        /// How many characters of output to give at most.
        budget: usize,
    },
    /// Type at the terminal. → [`Outcome::Report`]
    Input(Input),
    /// Type bytes for a viewer, who waits for nothing. → [`Outcome::Typed`]
    Type {
        /// Which session.
        session: SessionId,
        /// What to type, as it is.
        bytes: Vec<u8>,
        /// The same key again is not typed again.
        key: String,
    },
    /// Follow a session as it is shown. → [`Outcome::Watching`]
    Watch {
        /// Which session.
        session: SessionId,
        /// From this offset; without it from where the output ends now.
        since: Option<u64>,
    },
    /// A ticket with which a browser comes in, once. → [`Outcome::Ticket`]
    Ticket {
        /// For which session.
        session: SessionId,
        /// Whether it may type and resize, too.
        may_write: bool,
    },
    /// Send a signal. → [`Outcome::Session`]
    Signal {
        /// Which session.
        session: SessionId,
        /// Whom to.
        target: SignalTarget,
        /// Its number.
        signo: i32,
    },
    /// Wait for something to happen. → [`Outcome::Report`]
    Wait {
        /// Which session.
        session: SessionId,
        /// What for, and how long.
        wait: Wait,
        /// How many characters of output to give at most.
        budget: usize,
    },
    /// Read output from a position on. → [`Outcome::Output`]
    Output(ReadOutput),
    /// Look for lines in the output. → [`Outcome::Found`]
    Search(Search),
    /// The session as an asciicast. → [`Outcome::Recording`]
    Recording(SessionId, CastVersion),
    /// The screen as it is now. → [`Outcome::Screen`]
    Screen(SessionId),
    /// The one-tool shell: this client's own default session. → [`Outcome::Terminal`]
    Terminal(TerminalCall),
}

/// Environment variables, names and values as the kernel has them.
pub type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// How a session is to be started. Everything has a default.
#[derive(Debug, Clone, Default)]
pub struct Create {
    /// A name (`bash`) or a path; the default is the user's bash.
    pub shell: Option<String>,
    /// As a login shell.
    pub login: bool,
    /// Where it starts; the default is where the client is, else the server's own directory.
    pub cwd: Option<PathBuf>,
    /// Variables on top of the base environment.
    pub env: Vec<(String, String)>,
    /// The base environment, when it is another process's (a stdio client's); else the server's own.
    pub base_env: Option<Arc<Variables>>,
    /// The file mode mask, when it is another process's.
    pub umask: Option<u32>,
    /// Cells; the default is 120.
    pub cols: Option<u16>,
    /// Cells; the default is 40.
    pub rows: Option<u16>,
    /// For people.
    pub name: Option<String>,
    /// Whose it is, when an admin starts it for somebody.
    pub owner: Option<String>,
    /// Whether descendants stay when the session ends.
    pub keeps_descendants: bool,
    /// The stdio client whose going starts the grace period.
    pub client: Option<String>,
    /// What its going means for the session.
    pub detach: Detach,
    /// It is that client's default session, the one of the `terminal` tool.
    pub is_default: bool,
    /// The same key again answers with the same session.
    pub key: Option<String>,
}

/// Which sessions to list.
#[derive(Debug, Clone, Default)]
pub struct List {
    /// Only this owner's.
    pub owner: Option<String>,
    /// Only in this state; without it, all but the terminated ones.
    pub status: Option<SessionStatus>,
    /// At most this many.
    pub limit: usize,
    /// Skip this many.
    pub offset: usize,
}

/// How to end a session.
#[derive(Debug, Clone)]
pub struct Terminate {
    /// Which session.
    pub session: SessionId,
    /// At once, with KILL.
    pub force: bool,
    /// The first signal instead of HUP.
    pub signo: Option<i32>,
}

/// A command to run.
#[derive(Debug, Clone)]
pub struct Execute {
    /// Which session.
    pub session: SessionId,
    /// The text, as data: nothing in it is typed. At most [`crate::limits::COMMAND_BYTES_MAX`], no NUL.
    pub command: String,
    /// What to wait for. `None` answers as soon as the command is accepted.
    pub wait: Option<Wait>,
    /// The same key again answers with the same command.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// Something to type.
#[derive(Debug, Clone)]
pub struct Input {
    /// Which session.
    pub session: SessionId,
    /// The bytes; the doors translate key names into them ([`crate::keys`]).
    pub bytes: InputBytes,
    /// Keep it out of every record.
    pub is_secret: bool,
    /// What to wait for afterwards. `None` answers once it is typed.
    pub wait: Option<Wait>,
    /// The same key again is not typed again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// What to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputBytes {
    /// These bytes as they are.
    Raw(Vec<u8>),
    /// Named keys, which depend on the terminal's modes at the moment of typing.
    Keys(Vec<crate::keys::Key>),
}

/// What ends a wait. The first of them does; the end of the command and of the session always do.
#[derive(Debug, Clone)]
pub struct Wait {
    /// This expression matches the clean text since the call began (or the screen of a full-screen program).
    pub pattern: Option<Regex>,
    /// The program wants input (not looked at while a pattern is given).
    pub input_wanted: bool,
    /// No new output for this long.
    pub quiet: Option<Duration>,
    /// At the latest after this.
    pub timeout: Duration,
}

/// Output to read.
#[derive(Debug, Clone)]
pub struct ReadOutput {
    /// Which session.
    pub session: SessionId,
    /// From where.
    pub since: Since,
    /// In which form.
    pub view: View,
    /// At most this many bytes of the journal.
    pub limit: usize,
    /// Keep only this many newest lines (text).
    pub lines_max: Option<usize>,
    /// Wait this long for at least one new byte.
    pub wait: Duration,
    /// How many characters of text to give at most.
    pub budget: usize,
}

/// A position in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Since {
    /// The oldest byte that is kept.
    First,
    /// This offset.
    Offset(u64),
    /// What came at or after this time.
    Time(SystemTime),
    /// Where this caller stopped the last time.
    Last,
    /// The output of this command.
    Command(CommandId),
}

/// The forms of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// As a person would see it.
    Text,
    /// Every byte as it came, markers included.
    Raw,
    /// Every byte but our markers and the queries that ptyd answers itself: what a terminal should be fed.
    Stream,
}

/// Whom a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalTarget {
    /// The foreground process group.
    Foreground,
    /// Every process of the session.
    Session,
    /// One process of the session.
    Process(u32),
}

/// A call of the one-tool shell.
#[derive(Debug, Clone)]
pub struct TerminalCall {
    /// Another session than the default one.
    pub session: Option<SessionId>,
    /// The command, `""` to look, or exactly `C-c`, `C-z`, `C-d`.
    pub command: String,
    /// It is standard input for the running program.
    pub is_input: bool,
    /// The longest wait.
    pub timeout: Option<Duration>,
    /// A fresh shell first.
    pub reset: bool,
    /// What to wait for.
    pub pattern: Option<Regex>,
    /// The client whose default session it is.
    pub client: ClientContext,
    /// The same key again does not run again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: usize,
}

/// Where a client is: a stdio client's own directory, environment and mask, and the name of its default session.
#[derive(Debug, Clone, Default)]
pub struct ClientContext {
    /// Names the client for as long as it lives; `None` for a caller that has no default session.
    pub client: Option<String>,
    /// Its directory.
    pub cwd: Option<PathBuf>,
    /// Its environment.
    pub env: Option<Arc<Variables>>,
    /// Its mask.
    pub umask: Option<u32>,
    /// What its going means for its sessions.
    pub detach: Detach,
}

/// One answer.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A session.
    Session(Box<SessionView>),
    /// Some sessions, and how many there are in all.
    Sessions(Vec<SessionView>, usize),
    /// Some commands, and how many there are in all.
    Commands(Vec<CommandView>, usize),
    /// What a wait came to.
    Report(Box<Report>),
    /// Output.
    Output(OutputView),
    /// Lines that match.
    Found(FoundView),
    /// A recording that is yet to be read.
    Recording(Recording),
    /// The screen.
    Screen(ScreenView),
    /// The session has ended.
    Terminated(TerminatedView),
    /// The one-tool shell's answer.
    Terminal(Box<TerminalView>),
    /// How many bytes were typed.
    Typed(usize),
    /// A viewer's place in a session.
    Watching(Box<Watching>),
    /// A ticket.
    Ticket(TicketView),
}

/// A session's life: terminal-management.md §3.4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionStatus {
    /// The shell has not shown its first prompt.
    Creating,
    /// It can be used.
    Running,
    /// It has ended; its output can be read.
    Terminated,
}

/// What the foreground does, as the kernel and the attested reports tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreground {
    /// The shell is at its prompt.
    Idle,
    /// A program runs.
    Running,
    /// A program waits for a line or a key.
    InputWanted,
    /// A program waits for something that it does not show.
    PasswordWanted,
    /// A program paints the whole screen.
    Fullscreen,
    /// The last command was stopped (`^Z`), or what runs was (`kill -STOP`), and waits to be resumed.
    Stopped,
}

/// How sure a command's end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// The shell itself reported it over the attestation socket.
    Attested,
    /// Only the kernel's state says so; the exit code is not known.
    Heuristic,
}

/// A session as it is now.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// For people.
    pub name: Option<String>,
    /// Its state.
    pub status: SessionStatus,
    /// The shell's name.
    pub shell: String,
    /// The shell's process, while it lives.
    pub pid: Option<u32>,
    /// The shell's working directory, bytes as they are.
    pub cwd: PathBuf,
    /// The variables that were given at the start, secret-looking values redacted.
    pub env: Vec<(String, String)>,
    /// When it was created.
    pub created_at: SystemTime,
    /// The last input, command or output.
    pub last_activity: SystemTime,
    /// Whose it is.
    pub owner: String,
    /// Cells.
    pub cols: u16,
    /// Cells.
    pub rows: u16,
    /// What the process tree uses.
    pub usage: Usage,
    /// What the foreground does.
    pub foreground: Foreground,
    /// How sure ends are.
    pub boundary: Boundary,
    /// The command that runs.
    pub current_command: Option<CommandId>,
    /// The oldest byte that is kept.
    pub first_offset: u64,
    /// The journal's end.
    pub end_offset: u64,
    /// How it ended.
    pub exit: Option<SessionExit>,
    /// What is wrong, such as a full disk.
    pub trouble: Option<String>,
    /// The python that a command named `python` (else `python3`) would run.
    pub python: Option<PathBuf>,
    /// The file that holds every byte of output.
    pub log_file: PathBuf,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionExit {
    /// The shell's exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// In words.
    pub reason: String,
    /// When.
    pub at: SystemTime,
}

/// What a process tree uses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Percent of one core since the last look (or since the start).
    pub cpu_percent: f64,
    /// Resident memory in MiB.
    pub memory_mb: f64,
    /// How many processes.
    pub processes: u32,
}

/// A command's state: terminal-management.md §3.4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// It has not ended.
    Running,
    /// The shell reported an exit code.
    Completed,
    /// It could not run, or its outcome cannot be known.
    Failed,
    /// It ended with its session.
    Terminated,
}

/// A command as it is now.
#[derive(Debug, Clone)]
pub struct CommandView {
    /// Its id, unique in its session.
    pub id: CommandId,
    /// Its session.
    pub session: SessionId,
    /// The text.
    pub command: String,
    /// Its state.
    pub status: CommandStatus,
    /// When it was accepted.
    pub started_at: SystemTime,
    /// When it ended.
    pub completed_at: Option<SystemTime>,
    /// The shell's `$?`.
    pub exit_code: Option<i32>,
    /// The signal behind an exit code above 128, inferred.
    pub signal: Option<i32>,
    /// Every part of the last pipeline.
    pub pipestatus: Vec<i32>,
    /// Why it failed.
    pub error: Option<String>,
    /// The first byte of its output.
    pub start_offset: u64,
    /// Behind the last byte of its output.
    pub end_offset: Option<u64>,
    /// How many bytes of output there are so far.
    pub output_size: u64,
    /// The working directory when it ended.
    pub cwd: Option<PathBuf>,
    /// How sure its end is.
    pub boundary: Boundary,
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Nothing was waited for.
    Accepted,
    /// The command ended (or none runs).
    Ended,
    /// The pattern matched.
    Matched,
    /// The program wants input.
    InputWanted,
    /// What runs was stopped by a signal, and goes on after a `CONT`.
    Stopped,
    /// No new output for as long as was asked.
    Quiet,
    /// The time is up.
    TimedOut,
    /// The session ended.
    Exited,
}

/// What a wait came to: the command if there is one, the new output, and how things stand.
#[derive(Debug, Clone)]
pub struct Report {
    /// The session as it is now.
    pub session: SessionView,
    /// The command that was run, waited for or typed at.
    pub command: Option<CommandView>,
    /// Why the wait is over.
    pub ended_by: EndedBy,
    /// How long it waited.
    pub waited: Duration,
    /// The output, cut to the budget.
    pub output: TextView,
    /// The screen, when a program paints it.
    pub screen: Option<ScreenView>,
    /// How many bytes of input were taken, when there was input.
    pub accepted_bytes: Option<usize>,
    /// The text that matched the pattern.
    pub matched: Option<String>,
}

/// Output as text, cut to a budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextView {
    /// The head, or all of it.
    pub head: String,
    /// What was left out between head and tail.
    pub omitted: Option<Omitted>,
    /// The tail, when something was left out.
    pub tail: String,
    /// The range of the journal that this stands for.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// How many bytes were not UTF-8 and appear as `\xNN`.
    pub escaped: u64,
}

/// What was left out, exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// Bytes of the journal.
    pub bytes: u64,
    /// The first line left out, counted from 1 in this output.
    pub first_line: u64,
    /// The last line left out.
    pub last_line: u64,
    /// Where to read on to get them.
    pub from: u64,
    /// Where they end.
    pub to: u64,
}

/// Output from a position on.
#[derive(Debug, Clone)]
pub struct OutputView {
    /// The form.
    pub view: View,
    /// The bytes, in the raw and stream views.
    pub bytes: Vec<u8>,
    /// The text, in the text view.
    pub text: TextView,
    /// The first byte that this stands for.
    pub from: u64,
    /// Where to go on.
    pub next: u64,
    /// The oldest byte that is kept.
    pub first: u64,
    /// The journal's end.
    pub end: u64,
    /// Bytes that are gone between what was asked for and `from`.
    pub gap: Option<(u64, u64)>,
    /// The session has ended and this is all.
    pub is_final: bool,
}

/// A screen.
#[derive(Debug, Clone)]
pub struct ScreenView {
    /// The rows, blanks at their ends cut off.
    pub rows: Vec<String>,
    /// The cursor's row, from 0.
    pub cursor_row: u16,
    /// The cursor's column, from 0.
    pub cursor_col: u16,
    /// Whether the cursor is shown.
    pub cursor_visible: bool,
    /// The window's title.
    pub title: String,
    /// Cells.
    pub cols: u16,
    /// A program paints the alternate screen.
    pub is_alternate: bool,
    /// What paints this screen in a fresh terminal of the same size.
    pub ansi: Vec<u8>,
    /// The offset up to which the journal is in it.
    pub at: u64,
}

/// How a session was ended.
#[derive(Debug, Clone)]
pub struct TerminatedView {
    /// The session as it is now.
    pub session: SessionView,
    /// How many processes were ended.
    pub killed: u64,
    /// How many resisted.
    pub left: u64,
    /// It had ended before.
    pub was_over: bool,
}

/// The one-tool shell's answer.
#[derive(Debug, Clone)]
pub struct TerminalView {
    /// What happened.
    pub report: Report,
    /// A fresh shell was started for this call, and why.
    pub fresh: Option<Fresh>,
    /// What `""` or a key found: `None` when a command or input was sent.
    pub look: Option<Look>,
    /// The silence that would have ended the wait.
    pub soft_timeout: Duration,
}

/// Why a fresh shell was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fresh {
    /// The client's first call.
    First,
    /// The last shell had ended; in words, how.
    Ended(String),
    /// It was asked for; the command that was lost with it, if one ran.
    Reset(Option<String>),
}

/// What a call that runs nothing found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A program runs.
    Running,
    /// Nothing runs; what is shown came since the last look.
    Idle,
    /// A key was asked for and nothing runs, so nothing was sent.
    NothingToInterrupt,
    /// Only a reset was asked for.
    Reset,
}

/// Why an action was not done. Every message says what to do next.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ActionError {
    /// No such session for this caller.
    #[error("no session {id}{}", live_list(.live))]
    NoSession {
        /// What was asked for.
        id: String,
        /// Sessions that the caller could have meant.
        live: Vec<String>,
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
    #[error(
        "not run: session {session} is busy with command {command} ({text}); wait for it, send it input, or interrupt it (C-c)"
    )]
    Busy {
        /// The session.
        session: SessionId,
        /// The command.
        command: CommandId,
        /// The first words of its text.
        text: String,
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
    /// The program does not read its input.
    #[error("only {accepted} of {offered} bytes were taken: the program does not read; nothing more was sent")]
    Stalled {
        /// Taken.
        accepted: usize,
        /// Offered.
        offered: usize,
    },
    /// The caller may not.
    #[error("not allowed: {why}")]
    Denied {
        /// Why, and who may.
        why: String,
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

fn live_list(live: &[String]) -> String {
    match live {
        [] => "; there is none; start one with start_terminal_session (POST /terminals)".to_owned(),
        some => format!("; live: {}", some.join(", ")),
    }
}
