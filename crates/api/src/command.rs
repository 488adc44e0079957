//! Commands on the wire: exactly the data model of terminal-management.md §3.4.2, and the contract's additions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::null::null_is_default;
use crate::{Boundary, Foreground, Limit, Omitted, Screen};

/// `POST …/execute`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteRequest {
    /// The text, at most 1 MiB; no NUL, which no shell takes.
    #[schemars(length(max = 1_048_576))]
    pub command: String,
    /// Seconds to wait for it at most. The default is 1: a command that takes longer is answered with its id and runs on. With
    /// `waitForCompletion`, `waitFor` or `until` the default is 30. `onTimeout` says what becomes of the command then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 86_400.0))]
    pub timeout: Option<f64>,
    /// The server does this when `timeout` is over and the command still runs. For anything but `continue`, `timeout` must be given;
    /// it then holds although the answer comes before (a question, a match, no wait at all) or the client goes away.
    #[serde(default, skip_serializing_if = "OnTimeout::is_continue", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<OnTimeout>")]
    pub on_timeout: OnTimeout,
    /// `true` waits up to 30 seconds unless `timeout` says otherwise; `false` answers as soon as the command is accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for_completion: Option<bool>,
    /// A regular expression whose match in the output ends the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4_096))]
    pub wait_for: Option<String>,
    /// Further conditions, any of which ends the wait: `listening`, `listening:5173` (a TCP port of the session's processes),
    /// `file:PATH`, `gone:REGEX` (off the screen), `bell`, `quiet:MILLISECONDS`, `input`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>", length(max = 16))]
    pub until: Vec<String>,
    /// Run it in the shell that reads there now, and not in the session's own: after `ssh`, `su`, `docker exec -it`, `bash`.
    /// It is typed as one line of at most 4,000 bytes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub inside: bool,
    /// The maximum number of characters of output in the answer; the default is 30,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub max_chars: Option<u64>,
    /// Seconds to wait at most for a person's decision, where the policy asks for one (`approval_needed`); the default is 0, which
    /// answers at once. Then it runs, and its own `timeout` begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 600.0))]
    pub approval_timeout: Option<f64>,
    /// Seconds to wait at most while another client drives the session (`session_driven`); the default is 0, which answers at
    /// once. Then it runs, and its own `timeout` begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub driver_timeout: Option<f64>,
}

/// The server's way to deal with a command whose `timeout` is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// It goes on; only the wait ends.
    #[default]
    Continue,
    /// It gets a C-c, which it may handle; the answer comes at its end, and after 5 s in any case.
    Interrupt,
    /// It gets a C-c, after 0.5 s a TERM and after a further 1.5 s a KILL, as far as needed; the session's shell stays.
    Kill,
}

impl OnTimeout {
    fn is_continue(&self) -> bool {
        *self == Self::Continue
    }
}

/// A command's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandStatus {
    /// It has not ended.
    Running,
    /// It has ended, with whatever exit code. Without one the shell did not report it; `error` says why.
    Completed,
    /// It did not run, or nobody knows whether it ran; `error` says why.
    Failed,
    /// It ended with its session.
    Terminated,
}

/// Why a wait is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// Nothing was waited for.
    Accepted,
    /// The command ended, or none runs.
    Ended,
    /// The expression matched.
    Matched,
    /// The program wants input.
    InputWanted,
    /// The running program was stopped by a signal; a `CONT` resumes it.
    Stopped,
    /// No new output for as long as was asked.
    Quiet,
    /// The time is up.
    TimedOut,
    /// The session ended.
    Exited,
}

/// The forms of a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandView {
    /// As a person would see it.
    #[default]
    Text,
    /// Every byte, as base64.
    Raw,
}

/// A command as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecution {
    /// Its id, unique in its session.
    pub id: String,
    /// Its session.
    pub session_id: String,
    /// The text.
    pub command: String,
    /// Its state.
    pub status: CommandStatus,
    /// When it was accepted; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub started_at: String,
    /// When it ended; RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub completed_at: Option<String>,
    /// The shell's `$?`; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of output bytes so far.
    pub output_size: u64,
    /// Why it failed, or why it has no exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The server did this because the command's `timeout` was over, if this answer has waited for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// The signal behind an exit code above 128, without `SIG`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The exit codes of every part of the last pipeline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pipestatus: Vec<i32>,
    /// The first byte of its output.
    pub start_offset: u64,
    /// Behind the last byte of its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_offset: Option<u64>,
    /// The working directory when it ended; bytes that are not UTF-8 appear as `\xNN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The exact bytes of a working directory that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd_base64: Option<String>,
    /// Its running time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The certainty of its end.
    pub boundary: Boundary,
    /// The limits that it ran into.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<Limit>,
    /// Background output that came before it and that its caller has not been shown, within `maxChars`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// Its output as text, within `maxChars`; absent if the request did not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Every byte of its output, up to `nextOffset`, where the raw format was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_base64: Option<String>,
    /// The offset at which `outputBase64` ends; more follows while this is below `endOffset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// True if a part of the output is not in this answer.
    #[serde(default)]
    pub truncated: bool,
    /// The exact amounts left out of `output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
    /// The number of bytes of `output` that are not text (most control characters, or not UTF-8) and appear as `\xNN`.
    #[serde(default)]
    pub escaped: u64,
    /// The number of lines that the program ended with CR LF. The text ends them with LF.
    #[serde(default)]
    pub crlf_lines: u64,
    /// The number of bytes of control sequences without an end. They are not in the text.
    #[serde(default)]
    pub unfinished: u64,
    /// Why the wait is over, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<EndedBy>,
    /// The duration of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_ms: Option<u64>,
    /// The text that matched `waitFor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// The present state of the session's foreground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Foreground>,
    /// The screen, when a program paints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Screen>,
}

/// The query of `GET …/commands`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandListQuery {
    /// At most this many; the default is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<u64>,
    /// Skip this many of the oldest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9_007_199_254_740_992_u64))]
    pub offset: Option<u64>,
}

/// The query of `GET …/commands/{commandId}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandQuery {
    /// The form of the output; the default is text.
    #[serde(default)]
    pub view: CommandView,
    /// Text: how many characters of output to answer with at most; the default is 30,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub max_chars: Option<u64>,
    /// Raw: from this offset of the journal on, as in `o:4711`; the default is the command's first byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(o:)?[0-9]+$"))]
    pub since: Option<String>,
    /// Raw: at most this many bytes; the default is 4 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_194_304))]
    pub max_bytes: Option<u64>,
}

/// `GET …/commands`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CommandList {
    /// The commands, oldest first.
    pub commands: Vec<CommandExecution>,
    /// The total number.
    pub total: usize,
}
