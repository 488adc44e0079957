//! Output and screens on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of `GET …/output`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OutputQuery {
    /// `o:<offset>`, an offset, an RFC 3339 time, or `last`; the default is the oldest byte that is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(last|(o:)?[0-9]+|[0-9]{4}-.+)$"))]
    pub since: Option<String>,
    /// Only the output of this command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^c[0-9]+$"))]
    pub command_id: Option<String>,
    /// Only output of this kind: each answer is its next stretch, and the one behind it is asked for from `nextOffset` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<OutputKind>,
    /// At most this many bytes of the journal; the default is 1 MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4_194_304))]
    pub max_bytes: Option<u64>,
    /// The form; the default is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<OutputView>,
    /// Wait this long for at least one new byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 86_400_000))]
    pub wait_ms: Option<u64>,
    /// At most this many lines of text: with `since` the next ones, behind which `nextOffset` is; else the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_lines: Option<u64>,
    /// The maximum number of characters of text in the answer; the default is 30,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 1_000_000))]
    pub max_chars: Option<u64>,
}

/// The forms of output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputView {
    /// As a person would see it.
    #[default]
    Text,
    /// Every byte as it came, markers included.
    Raw,
    /// Output for a terminal: without ptyd's markers and without queries that the server answers itself.
    Stream,
    /// The screen as it is now, as text.
    Screen,
}

/// The query of `GET …/output/stream`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OutputStreamQuery {
    /// `o:<offset>`, an offset, an RFC 3339 time, or `last`; the default is the oldest byte that is kept. `Last-Event-ID` precedes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(last|(o:)?[0-9]+|[0-9]{4}-.+)$"))]
    pub since: Option<String>,
    /// Only output of this kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<OutputKind>,
    /// At most this many bytes of the journal in one event; the default is 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_536))]
    pub max_bytes: Option<u64>,
    /// The form; the default is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<OutputStreamView>,
    /// A comment comes after so many milliseconds without output; the default is 15,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 15_000))]
    pub wait_ms: Option<u64>,
}

/// The forms of output that can be followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputStreamView {
    /// As a person would see it.
    #[default]
    Text,
    /// Every byte as it came, markers included.
    Raw,
    /// Output for a terminal: without ptyd's markers and without queries that the server answers itself.
    Stream,
}

/// Output from a position on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// The form.
    pub view: OutputView,
    /// The text, in the views text and screen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes, in the views raw and stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_base64: Option<String>,
    /// The first byte that this stands for.
    pub from_offset: u64,
    /// The offset at which the next reading begins.
    pub next_offset: u64,
    /// The oldest byte that is kept.
    pub first_offset: u64,
    /// Behind the newest byte.
    pub end_offset: u64,
    /// Bytes that are gone between what was asked for and `fromOffset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// The exact amounts left out of `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<Omitted>,
    /// The number of bytes that are not text (most control characters, or not UTF-8) and appear as `\xNN`.
    #[serde(default)]
    pub escaped: u64,
    /// The number of lines that the program ended with CR LF. The text ends them with LF.
    #[serde(default)]
    pub crlf_lines: u64,
    /// The number of bytes of control sequences without an end. They are not in the text.
    #[serde(default)]
    pub unfinished: u64,
    /// The session has ended and this reaches its last byte.
    #[serde(rename = "final")]
    pub is_final: bool,
}

/// The query of `GET …/search`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchQuery {
    /// The regular expression that a line of the text must match.
    #[schemars(length(max = 4_096))]
    pub q: String,
    /// `o:<offset>`, an offset, an RFC 3339 time, or `last`; the default is the oldest byte that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(last|(o:)?[0-9]+|[0-9]{4}-.+)$"))]
    pub since: Option<String>,
    /// Only the output of this command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^c[0-9]+$"))]
    pub command_id: Option<String>,
    /// Only output of this kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<OutputKind>,
    /// At most this many matches; the default is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<u64>,
}

/// The kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputKind {
    /// A command's.
    Command,
    /// Output while no command ran: prompts, and output of background jobs.
    Background,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchAnswer {
    /// The lines that match, in order.
    pub matches: Vec<Match>,
    /// The offset at which the next search begins: behind the last match when `more`, else behind all searched output.
    pub next_offset: u64,
    /// Behind the newest byte.
    pub end_offset: u64,
    /// The number of lines searched.
    pub lines: u64,
    /// There is more to be searched, from `nextOffset` on.
    pub more: bool,
    /// Bytes that are gone between `since` and what was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
}

/// A line that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Match {
    /// The journal offset at which the line begins; for an overwritten line, the offset of its final text.
    pub offset: u64,
    /// Its number, counted from 1 in the searched output.
    pub line: u64,
    /// The line as a person would see it, at most 1,000 characters of it.
    pub text: String,
    /// The command whose output it is; absent for what came while none ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_id: Option<String>,
}

/// Bytes that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// The first of them.
    pub from: u64,
    /// Behind the last of them.
    pub to: u64,
}

/// The exact amounts left out of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omitted {
    /// Bytes of the journal, freed ones included.
    pub bytes: u64,
    /// The number of bytes at the beginning of the range that are no longer kept: a reading begins behind them.
    #[serde(default)]
    pub freed: u64,
    /// The first line left out, counted from 1 in this output; 0 where freed bytes make it unknown.
    pub first_line: u64,
    /// The last line left out; 0 where freed bytes make it unknown.
    pub last_line: u64,
    /// The first byte left out.
    pub from_offset: u64,
    /// The offset at which the range ends.
    pub to_offset: u64,
}

/// The query of `GET …/recording`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordingQuery {
    /// The version of the asciicast format: 2 (the default) or 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2, max = 3))]
    pub version: Option<u64>,
}

/// A screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Screen {
    /// The rows, blanks at their ends cut off.
    pub rows: Vec<String>,
    /// The cursor.
    pub cursor: Cursor,
    /// The window's title.
    pub title: String,
    /// The width in cells.
    pub cols: u16,
    /// The spans shown in inverse video, such as the selected entry of a menu.
    pub inverse: Vec<Span>,
    /// The rows, from 0, whose text or colours changed since this caller last read the screen; absent in its first reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_rows: Option<Vec<u16>>,
    /// A program paints the alternate screen.
    pub alternate: bool,
    /// The bytes that paint this screen in a fresh terminal of the same size.
    pub ansi_base64: String,
    /// The offset up to which the output is in it: read on from here with the view `stream`.
    pub offset: u64,
}

/// A stretch of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// From 0.
    pub row: u16,
    /// Its first column, from 0.
    pub col: u16,
    /// Without blanks at its ends.
    pub text: String,
}

/// A cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cursor {
    /// From 0.
    pub row: u16,
    /// From 0.
    pub col: u16,
    /// True if it is visible.
    pub visible: bool,
}
