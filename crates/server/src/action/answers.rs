//! What an outcome shows: sessions, commands, output and what a wait came to.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::{KeptLimit, Limit, LimitHit, Variables, View};
use crate::auth::principal::Scope;
use crate::ids::{CommandId, SessionId};

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
    /// A mark in the output said it: a prompt's number that follows from one that only the shell was told, or a nonce that was
    /// typed with the command.
    Nonce,
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
    /// The newest command that has ended.
    pub last_ended: Option<CommandId>,
    /// The oldest byte that is kept.
    pub first_offset: u64,
    /// The journal's end.
    pub end_offset: u64,
    /// How it ended.
    pub exit: Option<SessionExit>,
    /// What is wrong, such as a full disk.
    pub trouble: Option<String>,
    /// It lives, and nobody can speak with its holder.
    pub is_unreachable: bool,
    /// The toolchains on its PATH.
    pub tools: Tools,
    /// The profile by which it was started.
    pub profile: Option<String>,
    /// Commands of that profile that failed at the start.
    pub startup_failed: Vec<StartupFailure>,
    /// The file that holds every byte of output.
    pub log_file: PathBuf,
    /// What it may use.
    pub limits: Vec<KeptLimit>,
    /// The limits that it ran into, the newest ones.
    pub limits_hit: Vec<LimitHit>,
}

/// The programs that commands of these names would run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    /// `python`, else `python3`.
    pub python: Option<PathBuf>,
    /// `node`.
    pub node: Option<PathBuf>,
    /// `rustc`.
    pub rustc: Option<PathBuf>,
    /// `cargo`.
    pub cargo: Option<PathBuf>,
}

impl Tools {
    /// Each with its name.
    pub fn named(&self) -> [(&'static str, Option<&PathBuf>); 4] {
        let Self { python, node, rustc, cargo } = self;
        [("python", python), ("node", node), ("rustc", rustc), ("cargo", cargo)].map(|(n, path)| (n, path.as_ref()))
    }
}

/// A command of a profile that failed when the session was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartupFailure {
    /// Its text.
    pub command: String,
    /// What became of it, in words.
    pub reason: String,
}

/// What a shell was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentView {
    /// The profile.
    pub profile: Option<String>,
    /// Another user than the server's own.
    pub user: Option<String>,
    /// The shell's program.
    pub shell: PathBuf,
    /// As a login shell.
    pub is_login: bool,
    /// The file mode mask.
    pub umask: u32,
    /// All variables, secret-looking values redacted.
    pub variables: Variables,
    /// The toolchains on its PATH as it is now.
    pub tools: Tools,
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
    /// The limits that it ran into.
    pub limits_hit: Vec<Limit>,
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
    /// How many bytes were no text (NUL, or not UTF-8) and appear as `\xNN`.
    pub escaped: u64,
    /// What a person at the terminal would not have seen of it.
    pub unseen: HiddenText,
}

/// The range of the journal that a text leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omitted {
    /// How many bytes at the beginning of the range retention has freed: nobody can read them any more.
    pub freed: u64,
    /// The first line left out, counted from 1 in this output; 0 where freed bytes make it unknown.
    pub first_line: u64,
    /// The last line left out; 0 where freed bytes make it unknown.
    pub last_line: u64,
    /// The range's first byte.
    pub from: u64,
    /// Where the range ends.
    pub to: u64,
}

impl Omitted {
    /// How many bytes the range has, freed ones included.
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
    /// What is shown inverse, as the chosen entry of a menu is.
    pub inverse: Vec<Span>,
    /// What each row looks like, colours included, as a number.
    pub marks: Vec<u64>,
    /// The rows, from 0, that the caller has not been shown yet; `None` at its first look.
    pub changed: Option<Vec<u16>>,
    /// A program paints the alternate screen.
    pub is_alternate: bool,
    /// What paints this screen in a fresh terminal of the same size.
    pub ansi: Vec<u8>,
    /// The offset up to which the journal is in it.
    pub at: u64,
}

pub use terminal::{HiddenText, Span};

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
    /// How many bytes on the disk were freed, where it was purged.
    pub freed_bytes: Option<u64>,
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
    /// What ended since this caller was told that it runs, and is not what this answer is about.
    pub missed: Vec<Missed>,
    /// The silence that would have ended the wait.
    pub soft_timeout: Duration,
}

/// A command whose end was not told in time.
#[derive(Debug, Clone)]
pub struct Missed {
    /// Where it ran.
    pub session: SessionView,
    /// What became of it.
    pub command: CommandView,
    /// How far the session had been read by then.
    pub read_to: u64,
}

/// Why a fresh shell was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fresh {
    /// The client's first call.
    First,
    /// The last shell had ended.
    Ended {
        /// It was this session.
        session: SessionId,
        /// In words.
        how: String,
    },
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

/// A named token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenView {
    /// Its name, and the owner of what is started with it.
    pub name: String,
    /// What it allows.
    pub scope: Scope,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it is no longer good, if ever.
    pub expires_at: Option<SystemTime>,
}

/// A token, fresh: the one time that it is shown.
#[derive(Clone)]
pub struct FreshToken {
    /// The token.
    pub token: String,
    /// What there is to know of it later.
    pub view: TokenView,
}

/// A token is a secret, and stands in no log.
impl fmt::Debug for FreshToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FreshToken({:?})", self.view)
    }
}
