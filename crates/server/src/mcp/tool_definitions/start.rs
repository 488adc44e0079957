//! `start_terminal_session`: starts a session.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::resize::cells;
use super::session;
use super::structured::{self, StartAnswer};
use super::tool::{Answer, Tool, ToolCall, ToolError, annotations, mismatch, read};
use crate::mcp::{schema, text};
use ptyd_core::action::{Action, Composite, Create, Limit, Limits, Otherwise, Outcome};
use ptyd_core::limits::{COLS_DEFAULT, COLS_MAX, ROWS_DEFAULT, ROWS_MAX};

pub(super) const NAME: &str = "start_terminal_session";

const DESCRIPTION: &str = "Start another shell and get its session_id for the other tools: to run several things at \
once (a server and its tests), or for another shell, directory or environment. Not for single commands: terminal has \
a shell already. Example: {\"cwd\": \"/app\", \"name\": \"server\"}. It ends when its shell exits, when terminated, or \
 10 minutes after this client disconnects.";

/// The part of the description for clients that have `terminal`.
pub(super) const ONE_SHELL_IS_THERE: &str = " Not for single commands: terminal has a shell already.";

/// The arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// A name or path: bash, zsh, fish or dash; or any program that reads commands, such as python3. "" is bash.
    #[serde(default)]
    shell: String,
    /// "" is this client's directory, ~ is HOME.
    #[serde(default)]
    cwd: String,
    /// Added to this client's environment.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The size in cells.
    #[serde(default)]
    #[schemars(with = "Dimensions")]
    dimensions: Option<Dimensions>,
    /// From the configuration file.
    #[serde(default)]
    profile: String,
    /// For people.
    #[serde(default)]
    name: String,
    /// ptyd ends a process that exceeds a limit, and the answer says so. cpuSeconds, outputMb and commandSeconds are per command.
    #[serde(default)]
    limits: LimitArguments,
    /// The owner; only for admins.
    #[serde(default)]
    owner: String,
}

/// Its limits; ptyd ends a process beyond one, and the answer names the limit.
#[derive(Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct LimitArguments {
    // Processor time of one command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    cpu_seconds: Option<f64>,
    // Memory in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    memory_mb: Option<f64>,
    // Processes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    processes: Option<f64>,
    // Open files of each process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    open_files: Option<f64>,
    // Output of one command in MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    output_mb: Option<f64>,
    // Running time of one command.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    command_seconds: Option<f64>,
}

impl LimitArguments {
    fn limits(&self) -> Result<Limits, ToolError> {
        let figures = [
            (Limit::CpuSeconds, self.cpu_seconds),
            (Limit::MemoryMb, self.memory_mb),
            (Limit::Processes, self.processes),
            (Limit::OpenFiles, self.open_files),
            (Limit::OutputMb, self.output_mb),
            (Limit::CommandSeconds, self.command_seconds),
        ];
        let mut limits = Limits::default();
        for (limit, value) in figures {
            let set = value.map_or(Ok(()), |value| limits.set(limit, value));
            set.map_err(|why| ToolError::Said(format!("limits.{}: {why}", limit.name())))?;
        }
        Ok(limits)
    }
}

/// The size in cells.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Dimensions {
    /// Columns.
    #[serde(default = "cols")]
    #[schemars(range(min = 1, max = COLS_MAX))]
    cols: u32,
    /// Rows.
    #[serde(default = "rows")]
    #[schemars(range(min = 1, max = ROWS_MAX))]
    rows: u32,
}

fn cols() -> u32 {
    COLS_DEFAULT.into()
}

fn rows() -> u32 {
    ROWS_DEFAULT.into()
}

impl Default for Dimensions {
    fn default() -> Self {
        Self { cols: cols(), rows: rows() }
    }
}

/// The table's entry.
pub(super) fn tool() -> Tool {
    Tool {
        name: NAME,
        title: "Start a session",
        description: DESCRIPTION,
        annotations: annotations([false, false, false, false]),
        schema: schema::of::<Arguments>(),
        answer: structured::schema::<StartAnswer>(),
        in_turn: |_| None,
        call: |call, arguments| Box::pin(run(call, read(NAME, arguments))),
    }
}

async fn run(call: &ToolCall<'_>, arguments: Result<Arguments, ToolError>) -> Result<Answer, ToolError> {
    let arguments = arguments?;
    let given = |text: String| Some(text).filter(|t| !t.is_empty());
    let client = &call.caller.client;
    let cwd = match given(arguments.cwd) {
        // The session expands its home.
        Some(path) if Path::new(&path).starts_with("~") => Some(path.into()),
        // A relative path is relative to the client's directory, not the server's.
        Some(path) => Some(client.cwd.clone().unwrap_or_default().join(path)),
        None => None,
    };
    let size = match &arguments.dimensions {
        None => (None, None),
        Some(d) => {
            let cols = cells("dimensions.cols", d.cols, COLS_MAX)?;
            (Some(cols), Some(cells("dimensions.rows", d.rows, ROWS_MAX)?))
        }
    };
    let action = Action::Composite(Composite::Create(Box::new(Create {
        shell: given(arguments.shell),
        login: false,
        cwd,
        env: arguments.env.into_iter().collect(),
        base_env: client.env.clone(),
        cols: size.0,
        rows: size.1,
        profile: given(arguments.profile),
        // Its token and its profile decide; the model gains nothing by asking for less freedom.
        confinement: None,
        is_by_model: true,
        otherwise: Otherwise {
            cwd: client.cwd.clone(),
            cols: Some(COLS_DEFAULT),
            rows: Some(ROWS_DEFAULT),
            umask: client.umask,
        },
        name: given(arguments.name),
        owner: given(arguments.owner),
        keeps_descendants: false,
        limits: arguments.limits.limits()?,
        named_actions: BTreeMap::new(),
        client: client.client.clone(),
        detach: client.detach,
        is_default: false,
        key: call.key.clone(),
    })));
    match call.act(action).await? {
        Outcome::Session(view) => {
            call.note(&view);
            let mut facts = text::Facts::default();
            facts.add(session::status(view.status));
            facts.add(text::plain(&view.shell));
            facts.add(format!("{}×{}", view.cols, view.rows));
            text::metadata(&mut facts, &view, &call.context(&view, None, None).await);
            text::startup(&mut facts, &view);
            facts.add(format!("attach: ptyd attach {}", view.id));
            let line = facts.line();
            let fields = StartAnswer::of(&view, &call.caller.base_url, &line);
            Ok(Answer::with_fields(line, &fields))
        }
        other => Err(mismatch(other)),
    }
}
