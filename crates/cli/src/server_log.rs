//! The server's log: lines on standard error. A server on demand has a file there, and rotates it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use ptyd_core::traces;
use ptyd_core::web_origin::WebOrigin;
use server::traces::Exporter;
use terminal::quote;
use tokio::runtime::Handle;
use tracing_subscriber::Layer;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::Failure;
use crate::units;

/// A server on demand begins a new log file when the present one has this size, and keeps one earlier file.
const LOG_FILE_BYTES: u64 = 10 << 20;

/// The heading of the options of the log in the help.
pub const LOGS: &str = "Logs";

/// The form of the log's lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

/// The options of the log.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = LOGS)]
pub struct LogOptions {
    /// Log a call that takes longer than this, unless its caller asked to wait; at most 86400 seconds [default: 2]
    #[arg(long, env = "PTYD_SLOW_CALL", value_name = "TIME", value_parser = slow_call)]
    pub slow_call: Option<Duration>,
    /// Log lines for people, or one JSON object in each line
    #[arg(long, env = "PTYD_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Send traces to the OpenTelemetry collector at this URL, by OTLP over HTTP: http://HOST:PORT [default: none]
    #[arg(long, env = "PTYD_OTLP_ENDPOINT", value_name = "URL", value_parser = otlp_endpoint)]
    pub otlp_endpoint: Option<String>,
}

/// The address of a collector. One on another machine is reached by a collector on this one, which has TLS and retries.
fn otlp_endpoint(text: &str) -> Result<String, String> {
    let _: WebOrigin = text.trim_end_matches('/').parse()?;
    if !text.starts_with("http://") {
        return Err("must be like http://127.0.0.1:4318; for TLS, run a collector on this machine".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn slow_call(text: &str) -> Result<Duration, String> {
    units::seconds(text, Duration::ZERO, ptyd_core::limits::TIMEOUT_MAX)
}

/// Sets up the log, and the export of traces. A server on demand has a log file, and keeps it small.
pub fn set_up(
    options: &LogOptions,
    file: Option<PathBuf>,
    node: u16,
    runtime: &Handle,
) -> Result<Option<Exporter>, Failure> {
    let given = std::env::var("PTYD_LOG").ok().filter(|given| !given.is_empty());
    let asked: Option<Targets> = given.and_then(|given| given.parse().ok());
    let asked = asked.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));
    let default = asked.default_level().unwrap_or(LevelFilter::ERROR);
    // The MCP library logs whole requests, including passwords typed at prompts.
    let filter = asked.with_default(default).with_target("rmcp", LevelFilter::ERROR);
    let filter = filter.with_target(traces::TARGET, LevelFilter::OFF);
    let exporter = options.otlp_endpoint.as_deref().map(|url| Exporter::to(url, node, runtime.clone())).transpose();
    let exporter = exporter.map_err(Failure::usage)?;
    let file = file.map(Mutex::new);
    let writer = move || {
        if let Some(file) = &file {
            // A log that cannot be rotated is still written.
            let _ = rotate(&file.lock().unwrap_or_else(PoisonError::into_inner));
        }
        io::stderr()
    };
    // Errors quote foreign text: the name of a directory or session must not be able to forge log lines.
    let fields = format::debug_fn(|out, field, value| {
        let text = format!("{value:?}");
        match field.name() {
            "message" => write!(out, "{}", quote::line(&text)),
            name => write!(out, "{name}={}", quote::line(&text)),
        }
    });
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let lines = match options.log_format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Text => lines.fmt_fields(fields.delimited(" ")).with_ansi(false).boxed(),
    };
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(filter));
    // With an absent layer (`None`), each disabled call site would ask its filters every time.
    match &exporter {
        Some(exporter) => subscriber.with(exporter.layer()).init(),
        None => subscriber.init(),
    }
    Ok(exporter)
}

/// If standard error is the log file and is full, makes it the earlier one, and begins a new one. The new file is there before a name
/// changes, and a file that lost its name in a rotation that failed gets a successor.
fn rotate(file: &Path) -> io::Result<()> {
    let own = rustix::fs::fstat(rustix::stdio::stderr())?;
    let named = fs::metadata(file).ok();
    let is_of_another = named.as_ref().is_some_and(|named| (own.st_dev, own.st_ino) != (named.dev(), named.ino()));
    if u64::try_from(own.st_size).unwrap_or(0) < LOG_FILE_BYTES || is_of_another {
        return Ok(());
    }
    let beside = |end: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let new = OpenOptions::new().append(true).create(true).mode(0o600).open(beside(".new"))?;
    if named.is_some() {
        fs::rename(file, beside(".1"))?;
    }
    fs::rename(beside(".new"), file)?;
    Ok(rustix::stdio::dup2_stderr(&new)?)
}
