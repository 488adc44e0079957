//! Sessions on the wire: the data model of terminal-management.md §3.4.1 to the letter, and what the contract adds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NumberOrName;
use crate::limits::{Enforcer, Limit, LimitHit, Limits};
use crate::null::null_is_default;
use crate::take_over::Driver;

/// `POST /terminals`: everything has a default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CreateRequest {
    /// A name (`bash`) or a path; the default is the user's own shell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub shell: Option<String>,
    /// As a login shell.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub login: bool,
    /// The absolute path of the directory in which it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    pub cwd: Option<String>,
    /// Variables on top of the server's environment; null is none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub env: BTreeMap<String, String>,
    /// The size; the default is 120 × 40.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<Dimensions>,
    /// For people; without control characters. Of one owner's live sessions only one has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub name: Option<String>,
    /// The profile of the configuration file that goes behind everything that is said here; the default is the one that is
    /// called `default`, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub profile: Option<String>,
    /// The least confinement of its shell and programs; its profile's or the token's may be stronger. Where the machine cannot give
    /// it (`GET /capabilities`), the session is not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementTier>,
    /// The directory in which it starts if neither `cwd` nor the profile names one; an absolute path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^/"))]
    pub fallback_cwd: Option<String>,
    /// Its owner; only an admin may name another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The treatment of background processes when the session ends.
    #[serde(skip_serializing_if = "OnEnd::is_kill", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<OnEnd>")]
    pub on_end: OnEnd,
    /// Its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// It ends when it had no input, command or output for so many seconds; 0 is never, whatever the server's default is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_622_400))]
    pub inactivity_timeout: Option<f64>,
    /// It ends after so many seconds; 0 is never, whatever the server's default is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_622_400))]
    pub max_age: Option<f64>,
    /// Named actions, performed by `POST …/actions/{name}`: for example `reload`, as a signal, keys or a command.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<BTreeMap<String, SessionAction>>", extend("maxProperties" = 64))]
    pub actions: BTreeMap<String, SessionAction>,
}

/// `POST …/rename`, of a live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RenameRequest {
    /// Its new name.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
}

/// A named action: exactly one of these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SessionAction {
    /// A signal to the foreground, by name or number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<NumberOrName>,
    /// Keys to press.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<String>>,
    /// A command to run; it is not waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// The policy of a session's commands and input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionPolicy {
    /// Its name in the policy file.
    pub name: String,
    /// The session is not confined: once a program runs, only the policy's own words keep it from anything.
    pub advisory: bool,
    /// Why none of its commands can be proven any more, so that `allow` by a rule becomes what the policy says of the
    /// unproven; absent while they can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unprovable: Option<String>,
}

/// How strong the confinement of a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfinementTier {
    /// The kernel refuses the processes themselves: Landlock, a seccomp filter, no capabilities, no new privileges.
    Process,
    /// The same in namespaces of its own: a read-only system, private `/tmp`, `/proc` and `/dev`, ended as one.
    Sandbox,
    /// The same in a container: of the machine's files, those are there that are named.
    Container,
}

/// The treatment of background processes when the session ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnEnd {
    /// They end with it.
    #[default]
    Kill,
    /// They stay.
    Keep,
}

impl OnEnd {
    fn is_kill(&self) -> bool {
        *self == Self::Kill
    }
}

/// A terminal's size in cells; also the body of `POST …/resize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dimensions {
    /// Columns, 1 to 1,000.
    #[schemars(range(min = 1, max = 1_000))]
    pub cols: u16,
    /// Rows, 1 to 1,000.
    #[schemars(range(min = 1, max = 1_000))]
    pub rows: u16,
}

/// A session's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// The shell has not shown its first prompt.
    Creating,
    /// It can be used.
    Running,
    /// It has ended; its output can be read.
    Terminated,
}

/// The state of the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Foreground {
    /// The shell is at its prompt.
    Idle,
    /// A program runs.
    Running,
    /// A program waits for input.
    InputWanted,
    /// A program waits for input that the terminal does not echo.
    PasswordWanted,
    /// A program paints the whole screen.
    Fullscreen,
    /// The last command or the running program was stopped and waits to be resumed.
    Stopped,
}

/// The certainty of a command's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Boundary {
    /// The shell reported it over a socket on which the kernel names the sender.
    Attested,
    /// A mark in the output reports it: a prompt's number that follows from a number known only to the shell, or a nonce that
    /// was typed with a command `inside`.
    Nonce,
    /// It was concluded from the kernel's state; the exit code is unknown.
    Heuristic,
}

/// A session as it is now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminalSession {
    /// Its id; opaque.
    pub id: String,
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its state.
    pub status: SessionStatus,
    /// The shell's name.
    pub shell: String,
    /// The shell's process, while it lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// The shell's working directory; bytes that are not UTF-8 appear as `\xNN`, and then `cwdBase64` is there.
    pub cwd: String,
    /// The exact bytes of a working directory that is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd_base64: Option<String>,
    /// The variables that were given at the start, values that look like secrets redacted.
    pub env: BTreeMap<String, String>,
    /// RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// The last input, command or output; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub last_activity: String,
    /// Its owner.
    pub owner: String,
    /// Its size.
    pub dimensions: Dimensions,
    /// The resource usage of its processes.
    pub resource_usage: ResourceUsage,
    /// The state of the foreground.
    pub foreground: Foreground,
    /// The certainty of its commands' ends.
    pub boundary: Boundary,
    /// The command that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_command: Option<String>,
    /// The range of output that can be read.
    pub journal: Journal,
    /// Its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
    /// A present problem, such as a full disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// It is alive, but its holder process cannot be reached; `trouble` says why. Requests that need that process are refused
    /// with `session_unreachable` until it answers again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreachable: bool,
    /// The python that a command named `python` (else `python3`) would run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// The same of `node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The same of `rustc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rustc: Option<String>,
    /// The same of `cargo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cargo: Option<String>,
    /// The profile by which it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// How the kernel confines its shell and programs; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<ConfinementTier>,
    /// The policy of its commands and input; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<SessionPolicy>,
    /// Commands of that profile that failed at the start, as long as the server runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub startup_failed: Vec<StartupFailure>,
    /// The file that holds every byte of output.
    pub log_file: String,
    /// Its limits.
    #[serde(default, skip_serializing_if = "Limits::is_empty")]
    pub limits: Limits,
    /// The process or mechanism that enforces each of its limits, `inactivityTimeout` and `maxAge`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits_enforced_by: BTreeMap<Limit, Enforcer>,
    /// It ends when it had no input, command or output for so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactivity_timeout: Option<f64>,
    /// It ends after so many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<f64>,
    /// The limits that it ran into, the newest ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<LimitHit>,
    /// The client that has taken its keyboard: nobody else types there meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Driver>,
    /// The name by which the client that started it calls itself: `clientInfo.name` over MCP, `User-Agent` over REST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    /// The principals of its viewers, such as `ptyd attach` and the page, one name for each viewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub viewers: Vec<String>,
    /// The addresses of its endpoints.
    pub connection: Connection,
}

/// The resource usage of a session's processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceUsage {
    /// Percent of one core.
    pub cpu: f64,
    /// MiB.
    pub memory: f64,
    /// Their number.
    pub processes: u32,
}

/// A range of a session's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Journal {
    /// The oldest byte that is kept.
    pub first_offset: u64,
    /// Behind the newest byte.
    pub end_offset: u64,
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// The shell's exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it, without `SIG`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// In words.
    pub reason: String,
    /// When; RFC 3339.
    #[schemars(extend("format" = "date-time"))]
    pub at: String,
}

/// The addresses of its endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Connection {
    /// The session's REST resource; output and input are below it.
    pub url: String,
    /// Its WebSocket (docs/websocket.md).
    pub socket: String,
    /// MCP over HTTP, where the tools take the session's id.
    pub mcp: String,
    /// The command that attaches a person's terminal.
    pub attach: String,
}

impl Connection {
    /// Those of this session at the server with this base URL, such as `http://127.0.0.1:7893`.
    pub fn of(base_url: &str, session: &str) -> Self {
        // http becomes ws, and https becomes wss (RFC 6455, 3).
        let behind_http = base_url.strip_prefix("http").unwrap_or(base_url);
        Self {
            url: format!("{base_url}/terminals/{session}"),
            socket: format!("ws{behind_http}/terminals/{session}/socket"),
            mcp: format!("{base_url}/mcp"),
            attach: format!("ptyd attach {session}"),
        }
    }
}

/// The order of a list of sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Those that were started first.
    #[default]
    Oldest,
    /// Those that were started last.
    Newest,
}

/// The query of `GET /terminals`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionListQuery {
    /// Only this owner's; only an admin sees those of other owners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Only those in this state; without it all but the terminated ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SessionStatus>,
    /// Only those of exactly this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The order; the default is `oldest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// At most this many; the default is 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000))]
    pub limit: Option<u64>,
    /// Skip this many of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 9_007_199_254_740_992_u64))]
    pub offset: Option<u64>,
}

/// The query of `DELETE /terminals/{sessionId}`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TerminateQuery {
    /// At once, with KILL.
    #[serde(default, deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub force: bool,
    /// The first signal, by name or number, instead of HUP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Remove what is kept of it: its output, its commands and their texts. A living session is only purged with `force`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_is_default")]
    #[schemars(with = "Option<bool>")]
    pub purge: bool,
    /// Seconds to wait after the first signal, and after TERM; the default is 1.5.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 60.0))]
    pub grace_seconds: Option<f64>,
}

/// A command of a profile that failed at the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartupFailure {
    /// Its text.
    pub command: String,
    /// Its failure, in words.
    pub reason: String,
}

/// `GET /terminals/{sessionId}/environment`: what the shell was started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnvironment {
    /// The profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The user that runs the shell, if it is not the server's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The shell's program.
    pub shell: String,
    /// It is a login shell.
    pub login: bool,
    /// The file mode mask, in octal digits.
    pub umask: String,
    /// All variables, values that look like secrets redacted; bytes that are not UTF-8 appear as `\xNN`.
    pub variables: BTreeMap<String, String>,
    /// The toolchains on its PATH as it is now, by their commands' names.
    pub toolchains: BTreeMap<String, String>,
}

/// `GET /terminals`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// The sessions, in the order that was asked for.
    pub terminals: Vec<TerminalSession>,
    /// The total number.
    pub total: usize,
    /// Sessions on other nodes are missing, because the directory of all nodes does not answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub degraded: bool,
}

/// `POST …/resize`: the session with its new size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resized {
    /// True: the terminal has this size.
    pub success: bool,
    /// The session as it is now.
    #[serde(flatten)]
    pub session: TerminalSession,
}

/// `DELETE /terminals/{sessionId}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Terminated {
    /// The session's state now.
    pub status: SessionStatus,
    /// The session as it is now.
    pub session: TerminalSession,
    /// The number of processes that were ended.
    pub killed: u64,
    /// The number of processes that are still alive.
    pub left: u64,
    /// True if the session had already ended.
    pub was_over: bool,
    /// Bytes on the disk that were freed, where it was purged: there is no such session any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freed_bytes: Option<u64>,
}
