//! Tasks: waits that go on after their requests were answered.

use std::time::{Duration, SystemTime};

use journal::MaskedText;

use super::report::Report;
use super::secret::SecretRequest;
use crate::ids::TaskId;

/// The present view of a task.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// When it was opened.
    pub opened_at: SystemTime,
    /// Its state.
    pub state: TaskState,
}

/// The state of a task.
#[derive(Debug, Clone)]
pub enum TaskState {
    /// The wait goes on.
    Working {
        /// How long it has taken, with the time before the task.
        waited: Duration,
        /// The last line of the output.
        last_line: MaskedText,
        /// Why nothing is known of it at present.
        trouble: Option<String>,
    },
    /// A program of it reads a secret, which a person can type: the client is to ask one.
    InputRequired {
        /// The question's number in the task, from 1.
        key: u32,
        /// The request for the secret.
        request: Box<SecretRequest>,
        /// How long the call has taken.
        waited: Duration,
    },
    /// The wait is over.
    Over(Box<TaskEnd>),
    /// The session was removed, and with it the output and the end of the command.
    Removed {
        /// When that was.
        at: SystemTime,
        /// The caller had cancelled it, and the command did not outlive that.
        cancelled: bool,
    },
}

/// The end of a task.
#[derive(Debug, Clone)]
pub struct TaskEnd {
    /// The report: the output that the caller was not shown, up to the end of the wait.
    pub report: Report,
    /// When the wait ended.
    pub at: SystemTime,
    /// Where the output begins that the caller was not shown.
    pub from: u64,
    /// How many bytes of the output were shown to the caller by other requests.
    pub told_before: u64,
    /// The caller wanted the command interrupted: whether it has ended since.
    pub cancelled: Option<bool>,
    /// The command was interrupted for that.
    pub interrupted: bool,
    /// Why nobody types the secret that its program reads.
    pub person: Option<PersonReply>,
    /// The quiet time that ends it, unless the caller named one.
    pub quiet: Option<Duration>,
    /// The parts of the text that was made of it for the caller, once that was done.
    pub told: Option<TaskText>,
}

/// A person's reply to a question, as their client reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonReply {
    /// They went to the page.
    Accepted,
    /// They do not want to.
    Declined,
    /// There was nobody, or no reply.
    Cancelled,
}

/// The parts of a text that cannot be made again from the output.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TaskText {
    /// Where the output begins that was shown.
    pub from: u64,
    /// The status line.
    pub facts: String,
    /// The rows of a screen, as they were shown.
    pub screen: Option<String>,
}
