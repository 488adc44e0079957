//! The report on a command, an input or a wait: the answer to each of them.

use std::time::{Duration, SystemTime};

use journal::MaskedText;

use super::command::{CommandStatus, CommandView, Ending};
use super::output::{ScreenView, TextView};
use super::session::SessionView;
use crate::ids::TaskId;

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The caller did not wait.
    Accepted,
    /// The command ended, or none runs.
    Ended,
    /// The pattern matched.
    Matched,
    /// The program listens and is silent; the match is the list of its ports.
    Listens,
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
    /// The caller's read cursor before this answer; 0 if it had none.
    pub read_before: u64,
    /// Background output that came before the command and was not shown to the caller; most often there is none.
    pub background: Option<Box<TextView>>,
    /// The output, cut to the budget.
    pub output: TextView,
    /// The screen, if a full-screen program runs.
    pub screen: Option<ScreenView>,
    /// How many bytes of input were typed, if there was input.
    pub accepted_bytes: Option<usize>,
    /// The exit code of the last line that was typed at the prompt, if the wait was for such lines and the shell reported it.
    pub line_exit: Option<i32>,
    /// The input was typed at the shell's prompt.
    pub is_typed_at_prompt: bool,
    /// An interrupt was sent, and the program of this name ignores it.
    pub ignored_by: Option<String>,
    /// The command runs on although the call that began it was cancelled; no answer has said so.
    pub is_given_up: bool,
    /// The text that matched the pattern.
    pub matched: Option<MaskedText>,
    /// The way in which the server ended the command, if its time was up.
    pub time_limit: Option<Ending>,
    /// The task by which the caller learns of the command's end, if there is one.
    pub task: Option<TaskNote>,
}

impl Report {
    /// The program that was interrupted and runs on because it ignores that.
    pub fn still_ignored_by(&self) -> Option<&str> {
        let runs = self.command.as_ref().is_some_and(|command| command.status == CommandStatus::Running);
        self.ignored_by.as_deref().filter(|_| runs)
    }
}

/// The task by which a report's caller learns of the end.
#[derive(Debug, Clone)]
pub enum TaskNote {
    /// The wait goes on as this task, and the report shows nothing of the output.
    Opened(OpenedTask),
    /// An open task of the same caller will report the command's end.
    TellsEnd(TaskId),
}

/// A wait that goes on as a task.
#[derive(Debug, Clone)]
pub struct OpenedTask {
    /// Its id.
    pub id: TaskId,
    /// When it was opened.
    pub at: SystemTime,
    /// How long the caller has waited by then.
    pub waited: Duration,
}
