//! The page `docs/tools.md`: every MCP tool with its parameters, made of the schema that a client gets.

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const INTRODUCTION: &str = "# The MCP tools\n\n\
    Made by `cargo xtask schema` of what the binary serves; `schema/mcp-tools.json` is the same for programs. The form of the answers is in\n\
    [text-format.md](text-format.md). With `--tools terminal` a client gets `terminal` alone.\n";

/// The page of this list of tools.
pub fn page(tools: String) -> Result<String> {
    let tools: Value = serde_json::from_str(&tools)?;
    let tools = tools.as_array().or_else(|| tools["tools"].as_array()).context("no list of tools")?;
    let mut page = INTRODUCTION.to_owned();
    for tool in tools {
        let (name, description) = (text(&tool["name"]), text(&tool["description"]));
        write!(page, "\n## `{name}`\n\n{description}\n\n| parameter | type | |\n| --- | --- | --- |\n")?;
        parameters(&mut page, "", &tool["inputSchema"])?;
    }
    Ok(page)
}

/// A row for each parameter, those of objects within it behind it; the required ones first.
fn parameters(page: &mut String, prefix: &str, schema: &Value) -> Result<()> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    // The order of a schema's names depends on what else is in the build.
    let sorted: BTreeMap<_, _> =
        properties.iter().map(|(name, schema)| ((!required.contains(&name.as_str()), name), schema)).collect();
    for ((is_optional, name), schema) in sorted {
        let need = if is_optional { "" } else { ", required" };
        writeln!(page, "| `{prefix}{name}` | {}{need} | {} |", kind(schema), cell(&text(&schema["description"])))?;
        parameters(page, &format!("{prefix}{name}."), schema)?;
        parameters(page, &format!("{prefix}{name}[]."), &schema["items"])?;
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
            "b":{"type":"integer","minimum":1,"maximum":5,"description":"One|two."}}}}]"#;
        let page = page(tools.to_owned()).expect("a page");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        assert_eq!(
            rows,
            [
                "| `b` | integer, 1 to 5, required | One\\|two. |",
                "| `a` | array of object |  |",
                "| `a[].c` | `x` or `y` |  |",
            ]
        );
    }
}
