//! The processes of a session on the wire, and the signals that were sent to them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET …/processes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessList {
    /// The processes, parents before children; none of a session that has ended.
    pub processes: Vec<Process>,
}

/// A process as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    /// Its id on the machine, which signals take.
    pub pid: u32,
    /// Its id inside of the session's sandbox or container, which its programs see and print; absent where the session has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox_pid: Option<u32>,
    /// Its parent, if that is of the session: the shell and orphans have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_pid: Option<u32>,
    /// Its process group.
    pub process_group: u32,
    /// Its kernel session (setsid(2)).
    pub session: u32,
    /// The command's name, at most 15 bytes.
    pub name: String,
    /// The command line, at most 1,000 characters.
    pub command_line: String,
    /// The state of the process.
    pub state: ProcessState,
    /// Percent of one core since the list was asked for last.
    pub cpu: f64,
    /// Seconds on processors so far.
    pub cpu_seconds: f64,
    /// MiB.
    pub memory: f64,
    /// RFC 3339, exact to 10 ms.
    #[schemars(extend("format" = "date-time"))]
    pub started_at: String,
    /// It is of the terminal's foreground process group.
    pub is_foreground: bool,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It computes, or could.
    Running,
    /// It waits.
    Sleeping,
    /// It waits and cannot be interrupted.
    Blocked,
    /// It was stopped by a signal.
    Stopped,
    /// It has ended.
    Ended,
}

/// `GET …/signals`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignalList {
    /// The newest 64, oldest first.
    pub signals: Vec<SentSignal>,
}

/// A signal that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentSignal {
    /// Its name, without `SIG`.
    pub signal: String,
    /// `foreground`, `session` or the id of a process.
    pub target: NumberOrName,
    /// When; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// Why the kernel refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The processes that received it, and their state now; empty if an earlier server or a typed key sent it.
    pub receivers: Vec<Receiver>,
}

/// A number or a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "must be a name or a number")]
pub enum NumberOrName {
    /// A number.
    Number(u32),
    /// A name.
    Name(String),
}

/// A process that got a signal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Receiver {
    /// Its id.
    pub pid: u32,
    /// The command's name.
    pub name: String,
    /// Its present state.
    pub state: ProcessState,
}
