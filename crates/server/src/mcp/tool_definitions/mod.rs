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

use rmcp::model::JsonObject;

pub(super) use argument_aliases::meant;
pub(super) use coercion::seconds;
pub(super) use output::NAME as READ_TOOL;
pub(super) use structured::of_task as structured_task;
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

/// The description of a tool for a model that is offered only some. It names only tools that the model is offered.
pub(super) fn description_among(tool: &Tool, offers: impl Fn(&str) -> bool) -> String {
    let mut text = tool.description.to_owned();
    if !offers(start::NAME) {
        text = text.replace(terminal::MORE_SHELLS, "");
    }
    if !offers(terminal::NAME) {
        text = text.replace(start::ONE_SHELL_IS_THERE, "");
    }
    if !offers(execute::NAME) {
        text = text.replace(execute::NAME, terminal::NAME);
    }
    text
}

/// The schema of a tool for such a model, if it differs: there each tool explains `until` itself.
pub(super) fn schema_among(tool: &Tool, offers: impl Fn(&str) -> bool) -> Option<JsonObject> {
    if offers(execute::NAME) {
        return None;
    }
    let explained = TOOLS.iter().find(|tool| tool.name == execute::NAME)?.schema.get("properties")?.get("until")?;
    let mut schema = tool.schema.clone();
    let until = schema.get_mut("properties")?.get_mut("until")?;
    *until = explained.clone();
    Some(schema)
}
