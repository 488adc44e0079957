//! Input, signals and waits on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::null::null_is_default;
use crate::{CommandExecution, EndedBy, Foreground, NumberOrName, Omitted, Screen, SessionStatus};

/// `POST …/input`: exactly one of `input`, `inputBase64` and `keys`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct InputRequest {
    /// Text, at most 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_048_576))]
    pub input: Option<String>,
    /// Bytes as base64, at most 1 MiB of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_398_104), extend("contentEncoding" = "base64"))]
    pub input_base64: Option<String>,
    /// Named keys, such as `C-c`, `Up`, `Enter`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1_000))]
    pub keys: Option<Vec<String>>,
    /// Hand `input` over as a paste: in brackets where the program has asked for them (mode 2004), so that an editor or a line
    /// editor takes it as one piece of text.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub paste: bool,
    /// Press Enter after it.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub end_with_newline: bool,
    /// Keep it out of every record.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub secret: bool,
    /// A regular expression whose match in the new output ends the wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4_096))]
    pub wait_for: Option<String>,
    /// Further conditions, any of which ends the wait: `listening`, `listening:5173` (a TCP port of the session's processes),
    /// `file:PATH`, `gone:REGEX` (off the screen), `bell`, `quiet:MILLISECONDS`, `input`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>", length(max = 16))]
    pub until: Vec<String>,
    /// Seconds to wait at most. Without this and `waitFor` the answer comes once the input is typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 86_400.0))]
    pub timeout: Option<f64>,
    /// The maximum number of characters of output in the answer; the default is 30,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub max_chars: Option<u64>,
    /// Seconds to wait at most for a person's decision, where the policy asks for one (`approval_needed`); the default is 0, which
    /// answers at once. Then it is typed, and its own `timeout` begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 600.0))]
    pub approval_timeout: Option<f64>,
    /// Seconds to wait at most while another client drives the session (`session_driven`); the default is 0, which answers at
    /// once. Then it is typed, and its own `timeout` begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub driver_timeout: Option<f64>,
}

/// `POST …/signal`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignalRequest {
    /// A name (`INT`, `SIGTERM`) or a number.
    pub signal: NumberOrName,
    /// `foreground` (the default), `session`, or the id of a process of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<NumberOrName>,
}

/// `POST …/wait`: the first of these ends the wait; the end of the command and of the session always do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct WaitRequest {
    /// A regular expression that matches the output since the wait began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4_096))]
    pub wait_for: Option<String>,
    /// Further conditions, any of which ends the wait: `listening`, `listening:5173` (a TCP port of the session's processes),
    /// `file:PATH`, `gone:REGEX` (off the screen), `bell`, `quiet:MILLISECONDS`, `input`.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<Vec<String>>", length(max = 16))]
    pub until: Vec<String>,
    /// The program wants input.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub input_wanted: bool,
    /// No new output for this many milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 86_400_000))]
    pub quiet_ms: Option<u64>,
    /// Seconds at most; the default is 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 86_400.0))]
    pub timeout: Option<f64>,
    /// The maximum number of characters of output in the answer; the default is 30,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub max_chars: Option<u64>,
}

/// The result of an input or a wait.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitAnswer {
    /// Why the wait is over.
    pub ended_by: EndedBy,
    /// Its duration.
    pub waited_ms: u64,
    /// The session's state.
    pub status: SessionStatus,
    /// The state of the session's foreground.
    pub foreground: Foreground,
    /// The number of input bytes that were accepted, if there was input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_bytes: Option<usize>,
    /// The name of the program that was interrupted and runs on because it ignores that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored_by: Option<String>,
    /// The new output as text, within `maxChars`.
    pub output: String,
    /// The range of the journal that `output` stands for.
    pub from_offset: u64,
    /// The offset at which the next reading begins.
    pub next_offset: u64,
    /// True if something was left out of `output`.
    pub truncated: bool,
    /// The exact amounts left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
    /// The number of bytes that are not text (most control characters, or not UTF-8) and appear as `\xNN`.
    pub escaped: u64,
    /// The number of lines that the program ended with CR LF. The text ends them with LF.
    #[serde(default)]
    pub crlf_lines: u64,
    /// The number of bytes of control sequences without an end. They are not in the text.
    #[serde(default)]
    pub unfinished: u64,
    /// The text that matched `waitFor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// The command that was waited for or typed at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandExecution>,
    /// The exit code of the last line that was typed at the prompt, if the wait ended with it and the shell reported the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_exit_code: Option<i32>,
    /// The screen, when a program paints it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Screen>,
}
