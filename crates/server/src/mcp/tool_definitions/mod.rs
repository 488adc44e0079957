//! The tools: one file for each, and the table of them.
//!
//! A file has the arguments, the description for the model, and the conversions to an action and from its outcome to
//! text. No other code knows a tool's name.

mod argument_aliases;
pub(in crate::mcp) mod arguments;
mod coercion;
mod execute;
mod input;
mod list;
mod output;
mod reading;
mod resize;
mod session;
mod several_sessions;
mod start;
mod structured;
mod terminal;
mod terminate;
#[cfg(test)]
mod tests;
mod tool;

use std::sync::LazyLock;

pub(super) use argument_aliases::meant;
pub(super) use coercion::seconds;
pub(super) use output::NAME as READ_TOOL;
pub(super) use start::NAME as START_TOOL;
pub(super) use structured::of_task as structured_task;
pub(super) use terminal::MORE_SHELLS;
pub(super) use tool::{Answer, Tool, ToolCall, ToolError, refused};

/// Every tool, ordered by name: prompts are cached by their text, so the order never changes.
pub(super) static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    vec![
        execute::tool(),
        output::tool(),
        list::tool(),
        resize::tool(),
        input::tool(),
        start::tool(),
        terminal::tool(),
        terminate::tool(),
    ]
});
