//! The page `docs/tools.md`: every MCP tool with its parameters and structured answers, made of the schemas that a client
//! gets.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const INTRODUCTION: &str = "# The MCP tools\n\n\
    `cargo xtask schema` generates this page from the schemas that the binary serves; `schema/mcp-tools.json` has them for programs.\n\
    [text-format.md](text-format.md) describes the answers. `--tools terminal` offers a client only `terminal`; `--tools coding` offers\n\
    `terminal`, `start_terminal_session`, `send_input_to_terminal` and `get_terminal_output`.\n\n\
    Programs get **structured answers** on request: `structuredContent` beside the same text, and an `outputSchema` for each tool\n\
    (`schema/mcp-tools-structured.json`). To request them, start `ptyd mcp --structured`, or send `Ptyd-Structured: true` or\n\
    `/mcp?structured=true` with each HTTP request. A refused call has `error` and `error_code`, and no other field.\n\
    `list_terminal_sessions`, `resize_terminal`, `start_terminal_session` and `terminate_terminal_session` always return the fields.\n\n\
    ptyd also accepts argument names that models know from other tools (`cmd`, `workdir`, `timeout_ms`, `run_in_background`, camelCase),\n\
    unless the call also has the argument that they stand for. It ignores comments such as `description`. Any other name is an error.\n";

/// The page of this list of tools.
pub fn page(tools: String) -> Result<String> {
    let tools: Value = serde_json::from_str(&tools)?;
    let tools = tools.as_array().or_else(|| tools["tools"].as_array()).context("no list of tools")?;
    let mut page = INTRODUCTION.to_owned();
    for tool in tools {
        let (name, description) = (text(&tool["name"]), text(&tool["description"]));
        write!(page, "\n## `{name}`\n\n{description}\n\n| parameter | type | |\n| --- | --- | --- |\n")?;
        fields(&mut page, "", "required", &tool["inputSchema"])?;
        let answer = &tool["outputSchema"];
        if answer.is_object() {
            page.push_str("\n| structured answer | type | |\n| --- | --- | --- |\n");
            // A refusal has none of the fields that every other answer has.
            let mut answer = answer.clone();
            answer["required"] = answer["else"]["required"].take();
            fields(&mut page, "", "always", &answer)?;
        }
    }
    Ok(page)
}

/// A row for each field, those of objects within it behind it; the required ones first, with this word.
fn fields(page: &mut String, prefix: &str, needed: &str, schema: &Value) -> Result<()> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    // The order of a schema's names depends on what else is in the build.
    let sorted: BTreeMap<_, _> =
        properties.iter().map(|(name, schema)| ((!required.contains(&name.as_str()), name), schema)).collect();
    for ((is_optional, name), schema) in sorted {
        let need = if is_optional { String::new() } else { format!(", {needed}") };
        writeln!(page, "| `{prefix}{name}` | {}{need} | {} |", kind(schema), cell(&text(&schema["description"])))?;
        fields(page, &format!("{prefix}{name}."), needed, schema)?;
        fields(page, &format!("{prefix}{name}[]."), needed, &schema["items"])?;
    }
    Ok(())
}

fn kind(schema: &Value) -> String {
    let mut kind = match &schema["enum"] {
        Value::Array(words) => words.iter().map(|word| format!("`{}`", text(word))).collect::<Vec<_>>().join(" or "),
        _ => text(&schema["type"]),
    };
    if schema["items"].is_object() {
        kind = format!("{kind} of {}", self::kind(&schema["items"]));
    }
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) => format!("{kind}, {least} to {most}"),
        (Some(least), None) => format!("{kind}, at least {least}"),
        (None, Some(most)) => format!("{kind}, at most {most}"),
        (None, None) => kind,
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_a_row_with_its_type_and_bounds() {
        let tools = r#"[{"name":"t","description":"Does it.","inputSchema":{"type":"object","required":["b"],"properties":{
            "a":{"type":"array","items":{"type":"object","properties":{"c":{"type":"string","enum":["x","y"]}}}},
            "b":{"type":"integer","minimum":1,"maximum":5,"description":"One|two."}}},
            "outputSchema":{"type":"object","if":{"required":["e"]},"else":{"required":["d"]},"properties":{
            "d":{"type":"string"},"e":{"type":"string"}}}}]"#;
        let page = page(tools.to_owned()).expect("a page");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `b` | integer, 1 to 5, required | One\\|two. |",
                "| `a` | array of object |  |",
                "| `a[].c` | `x` or `y` |  |",
                "| `d` | string, always |  |",
                "| `e` | string |  |",
            ]
        );
    }
}
