//! The options of `ptyd mcp`, which the server gets in the hello line.

use clap::{Args, ValueEnum};

use crate::units;

/// The options of `ptyd mcp`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Keep this client's sessions for this long after it disconnects: a number of seconds, or a time such as 1h;
    /// 0: end them at once; keep: never end them
    #[arg(long, default_value = "600", value_parser = detach, value_name = "keep|TIME")]
    pub detach: Detach,
    /// Show these tools to the model
    #[arg(long, default_value = "all")]
    pub tools: Tools,
    /// Also return structured answers for programs: each tool has an outputSchema, and each answer has structuredContent
    #[arg(long)]
    pub structured: bool,
}

/// The treatment of a client's sessions when it disconnects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Detach {
    /// They stay.
    Keep,
    /// They end after so many seconds.
    After(f64),
}

/// The tools that a model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Tools {
    /// All eight tools
    All,
    /// Only terminal, the one-tool shell
    Terminal,
    /// All tools except terminal
    Sessions,
    /// terminal, start_terminal_session, send_input_to_terminal and get_terminal_output, for agents that write code
    Coding,
}

pub(super) fn detach(text: &str) -> Result<Detach, String> {
    match text {
        "keep" => Ok(Detach::Keep),
        _ => units::time(text).map(|time| Detach::After(time.as_secs_f64())).map_err(|e| format!("{e}, or keep")),
    }
}
