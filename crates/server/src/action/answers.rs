//! The data in outcomes: sessions, commands, output, and reports of waits.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{KeptLimit, Limit, LimitHit, Variables, View};
use crate::auth::principal::Scope;
use crate::ids::{CommandId, SessionId};

/// A session's life: terminal-management.md §3.4.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionStatus {
    /// The shell has not had its first prompt.
    Creating,
    /// It accepts commands.
    Running,
    /// It has ended; its output can be read.
    Terminated,
}

/// The state of the foreground, from the kernel and the attested reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreground {
    /// The shell is at its prompt.
    Idle,
    /// A program runs.
    Running,
    /// A program waits for a line or a key, with echo.
    InputWanted,
    /// A program waits for input without echo.
    PasswordWanted,
    /// A program paints the whole screen.
    Fullscreen,
    /// The last command was stopped (`^Z`), or the running program was (`kill -STOP`); it waits to be resumed.
    Stopped,
}

/// How certain a command's end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// The shell itself reported it over the attestation socket.
    Attested,
    /// A marker in the output showed it: a prompt mark of the sequence given only to the shell, or a nonce typed with
    /// the command.
    Nonce,
    /// Inferred from the kernel's state only; the exit code is unknown.
    Heuristic,
}

impl Boundary {
    /// Its name in the store.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Attested => "attested",
            Self::Nonce => "nonce",
            Self::Heuristic => "heuristic",
        }
    }

    /// The boundary of this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Attested, Self::Nonce, Self::Heuristic].into_iter().find(|boundary| boundary.as_str() == name)
    }
}

/// The present view of a session.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// Its name, for people.
    pub name: Option<String>,
    /// Its state.
    pub status: SessionStatus,
    /// The shell's name.
    pub shell: String,
    /// The shell's process, while it lives.
    pub pid: Option<u32>,
    /// The shell's working directory, in its original bytes.
    pub cwd: PathBuf,
    /// The variables requested at the start, with secret-looking values redacted.
    pub env: Vec<(String, String)>,
    /// When it was created.
    pub created_at: SystemTime,
    /// The last input, command or output.
    pub last_activity: SystemTime,
    /// Its owner.
    pub owner: String,
    /// The width in cells.
    pub cols: u16,
    /// The height in cells.
    pub rows: u16,
    /// The resources used by its processes.
    pub usage: Usage,
    /// The state of its foreground.
    pub foreground: Foreground,
    /// How certain its commands' ends are.
    pub boundary: Boundary,
    /// The running command.
    pub current_command: Option<CommandId>,
    /// The newest command that has ended.
    pub last_ended: Option<CommandId>,
    /// The offset of the oldest retained byte.
    pub first_offset: u64,
    /// The journal's end.
    pub end_offset: u64,
    /// How it ended.
    pub exit: Option<SessionExit>,
    /// A present problem, such as a full disk.
    pub trouble: Option<String>,
    /// It lives, but the server cannot reach its holder.
    pub is_unreachable: bool,
    /// The toolchains on its PATH.
    pub tools: Tools,
    /// The profile with which it was started.
    pub profile: Option<String>,
    /// Start-up commands of that profile that failed.
    pub startup_failed: Vec<StartupFailure>,
    /// The file with all of its output.
    pub log_file: PathBuf,
    /// Its limits.
    pub limits: Vec<KeptLimit>,
    /// The newest limits that it hit.
    pub limits_hit: Vec<LimitHit>,
}

/// The programs found under these names on a PATH.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    /// `python`, or else `python3`.
    pub python: Option<PathBuf>,
    /// `node`.
    pub node: Option<PathBuf>,
    /// `rustc`.
    pub rustc: Option<PathBuf>,
    /// `cargo`.
    pub cargo: Option<PathBuf>,
}

impl Tools {
    /// Each tool with its name.
    pub fn named(&self) -> [(&'static str, Option<&PathBuf>); 4] {
        let Self { python, node, rustc, cargo } = self;
        [("python", python), ("node", node), ("rustc", rustc), ("cargo", cargo)].map(|(n, path)| (n, path.as_ref()))
    }
}

/// A start-up command of a profile that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupFailure {
    /// The command's text.
    pub command: String,
    /// The reason, as text.
    pub reason: String,
}

/// The environment with which a shell was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentView {
    /// The profile's name.
    pub profile: Option<String>,
    /// The user, if not the server's own.
    pub user: Option<String>,
    /// The shell's program.
    pub shell: PathBuf,
    /// Whether it is a login shell.
    pub is_login: bool,
    /// The file mode mask.
    pub umask: u32,
    /// All variables, secret-looking values redacted.
    pub variables: Variables,
    /// The toolchains on its present PATH.
    pub tools: Tools,
}

/// A new session.
#[derive(Debug, Clone)]
pub struct Created {
    /// The session at its first prompt.
    pub session: SessionView,
    /// The commands of its profile that are to be run before it is announced.
    pub startup: Vec<String>,
    /// Whether this request started it; an earlier one with the same idempotency key, or of the same client, may have.
    pub is_new: bool,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionExit {
    /// The shell's exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The reason, as text.
    pub reason: String,
    /// When it ended.
    pub at: SystemTime,
}

/// The resources used by a process tree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Percent of one core since the previous request, or since the start.
    pub cpu_percent: f64,
    /// Resident memory in MiB.
    pub memory_mb: f64,
    /// The number of processes.
    pub processes: u32,
}

/// A command's state: terminal-management.md §3.4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandStatus {
    /// It has not ended.
    Running,
    /// The shell reported an exit code.
    Completed,
    /// It did not run, or its outcome is unknown.
    Failed,
    /// It ended with its session.
    Terminated,
}

/// The present view of a command.
#[derive(Debug, Clone)]
pub struct CommandView {
    /// Its id, unique in its session.
    pub id: CommandId,
    /// Its session.
    pub session: SessionId,
    /// The command's text.
    pub command: String,
    /// Its state.
    pub status: CommandStatus,
    /// When it was accepted.
    pub started_at: SystemTime,
    /// When it ended.
    pub completed_at: Option<SystemTime>,
    /// The shell's `$?`.
    pub exit_code: Option<i32>,
    /// The signal inferred from an exit code above 128.
    pub signal: Option<i32>,
    /// The exit codes of the last pipeline's parts.
    pub pipestatus: Vec<i32>,
    /// Why it failed.
    pub error: Option<String>,
    /// The first byte of its output.
    pub start_offset: u64,
    /// The offset after the last byte of its output.
    pub end_offset: Option<u64>,
    /// The number of bytes of output so far.
    pub output_size: u64,
    /// The working directory when it ended.
    pub cwd: Option<PathBuf>,
    /// How certain its end is.
    pub boundary: Boundary,
    /// The limits that it hit.
    pub limits_hit: Vec<Limit>,
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// The caller did not wait.
    Accepted,
    /// The command ended, or none runs.
    Ended,
    /// The pattern matched.
    Matched,
    /// The program wants input.
    InputWanted,
    /// The program was stopped by a signal; `CONT` resumes it.
    Stopped,
    /// There was no new output for the requested time.
    Quiet,
    /// The timeout expired.
    TimedOut,
    /// The session ended.
    Exited,
}

/// The result of a command, an input or a wait: the command if there is one, the new output, and the state after it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The session afterwards.
    pub session: SessionView,
    /// The command that was run, awaited or typed at.
    pub command: Option<CommandView>,
    /// Why the wait is over.
    pub ended_by: EndedBy,
    /// How long the wait took.
    pub waited: Duration,
    /// The output, cut to the budget.
    pub output: TextView,
    /// The screen, if a full-screen program runs.
    pub screen: Option<ScreenView>,
    /// How many bytes of input were typed, if there was input.
    pub accepted_bytes: Option<usize>,
    /// The text that matched the pattern.
    pub matched: Option<String>,
}

/// Output as text, cut to a budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextView {
    /// The head, or all of it.
    pub head: String,
    /// The range left out between head and tail.
    pub omitted: Option<Omitted>,
    /// The tail, if a range was left out.
    pub tail: String,
    /// The beginning of the range of the journal that is shown.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// How many bytes were not valid text (NUL, or not UTF-8) and are shown as `\xNN`.
    pub escaped: u64,
    /// Text in it that a person at the terminal would not have seen.
    pub unseen: HiddenText,
}

/// The range of the journal that a text leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// How many bytes at the beginning of the range retention has freed: they cannot be read any more.
    pub freed: u64,
    /// The first line left out, counted from 1 in this output; 0 if freed bytes make it unknown.
    pub first_line: u64,
    /// The last line left out; 0 if freed bytes make it unknown.
    pub last_line: u64,
    /// The range's first byte.
    pub from: u64,
    /// The offset after the range's last byte.
    pub to: u64,
}

impl Omitted {
    /// The length of the range in bytes, including freed ones.
    pub fn bytes(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// The part of the range that can still be read.
    pub fn kept(&self) -> std::ops::Range<u64> {
        self.from.saturating_add(self.freed).min(self.to)..self.to
    }
}

/// Output from a position on.
#[derive(Debug, Clone)]
pub struct OutputView {
    /// The form of the output.
    pub view: View,
    /// The bytes, in the raw and stream views.
    pub bytes: Vec<u8>,
    /// The text, in the text view.
    pub text: TextView,
    /// The first byte shown.
    pub from: u64,
    /// The offset at which to continue.
    pub next: u64,
    /// The offset of the oldest retained byte.
    pub first: u64,
    /// The journal's end.
    pub end: u64,
    /// The lost range between the requested offset and `from`.
    pub gap: Option<(u64, u64)>,
    /// The session has ended and there is no more output.
    pub is_final: bool,
}

/// The screen of a terminal.
#[derive(Debug, Clone)]
pub struct ScreenView {
    /// The rows, without trailing blanks.
    pub rows: Vec<String>,
    /// The cursor's row, from 0.
    pub cursor_row: u16,
    /// The cursor's column, from 0.
    pub cursor_col: u16,
    /// Whether the cursor is shown.
    pub cursor_visible: bool,
    /// The window's title.
    pub title: String,
    /// The width in cells.
    pub cols: u16,
    /// Text in reverse video, such as the selected entry of a menu.
    pub inverse: Vec<Span>,
    /// A hash of each row, including its colours.
    pub marks: Vec<u64>,
    /// The rows, from 0, that are new to the caller; `None` in its first screen.
    pub changed: Option<Vec<u16>>,
    /// A program paints the alternate screen.
    pub is_alternate: bool,
    /// Bytes that paint this screen in a new terminal of the same size.
    pub ansi: Vec<u8>,
    /// The offset up to which the journal is part of it.
    pub at: u64,
}

pub use terminal::{HiddenText, Span};

/// The result of terminating a session.
#[derive(Debug, Clone)]
pub struct TerminatedView {
    /// The session afterwards.
    pub session: SessionView,
    /// How many processes were ended.
    pub killed: u64,
    /// How many processes could not be ended.
    pub left: u64,
    /// The session had ended before.
    pub was_over: bool,
    /// How many bytes of disk space a purge has freed.
    pub freed_bytes: Option<u64>,
}

/// A named token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    /// Its name, which is the owner of sessions started with it.
    pub name: String,
    /// Its scope.
    pub scope: Scope,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it expires, if ever.
    pub expires_at: Option<SystemTime>,
}

/// A new token; it is shown only this once.
#[derive(Clone)]
pub struct FreshToken {
    /// The token.
    pub token: String,
    /// The token's later view.
    pub view: TokenView,
}

/// A token is a secret and must not be logged.
impl fmt::Debug for FreshToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FreshToken({:?})", self.view)
    }
}
