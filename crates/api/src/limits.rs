//! The limits of a session, on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of a session; an absent one is the server's default, which is none unless the server was started with one. A limit
/// that this machine cannot enforce is refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Seconds on processors that all processes but the shell may use from the start of one command to the start of the
    /// next; what goes beyond is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 31_536_000.0))]
    pub cpu_seconds: Option<f64>,
    /// MiB of memory: of all processes together where a control group can be made, else of each one's address space.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 8, max = 16_777_216))]
    pub memory_mb: Option<u64>,
    /// Processes and threads at once, the shell included; a fork beyond that fails. It needs a control group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 4_194_304))]
    pub processes: Option<u64>,
    /// Descriptors that each process may have open (`RLIMIT_NOFILE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 32, max = 1_048_576))]
    pub open_files: Option<u64>,
    /// MiB that one command may print; then it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 16_777_216.0))]
    pub output_mb: Option<f64>,
    /// MiB a second that the terminal takes from all programs together, and as much at once after a pause. A program
    /// that prints faster waits; nothing is ended and nothing is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 16_384.0))]
    pub output_mb_per_second: Option<f64>,
    /// Seconds that one command may run; then it is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.01, max = 31_536_000.0))]
    pub command_seconds: Option<f64>,
}

impl Limits {
    /// Whether no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The name of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of `Limits` say it")]
pub enum Limit {
    CpuSeconds,
    MemoryMb,
    Processes,
    OpenFiles,
    OutputMb,
    OutputMbPerSecond,
    CommandSeconds,
    /// A field of the session itself.
    InactivityTimeout,
    /// A field of the session itself.
    MaxAge,
}

/// The process or mechanism that enforces a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Enforcer {
    /// The kernel, for all processes together.
    Cgroup,
    /// The kernel, for each process by itself; the processes of a sandbox together.
    Rlimit,
    /// The session's holder process, with or without a running server.
    Holder,
    /// The server, while it runs.
    Server,
}

/// A limit that was hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LimitHit {
    /// The limit.
    pub limit: Limit,
    /// The command that ran then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
    /// When it was seen first; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
    /// The count: processes killed for `memoryMb`, forks refused for `processes`.
    pub count: u64,
}
