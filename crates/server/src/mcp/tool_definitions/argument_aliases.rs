//! Names of arguments that models know from other tools.
//!
//! An argument that a tool does not have is taken as the one that it stands for, unless that is given, too. Every other one is
//! left for the error.

use std::borrow::Cow;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::coercion::flag;

/// The names that other tools have for an argument, in snake case, and its name here.
const ALIASES: [(&str, &str); 36] = [
    ("cmd", "command"),
    ("script", "command"),
    ("code", "command"),
    ("shell_command", "command"),
    ("session", "session_id"),
    ("id", "session_id"),
    ("terminal_id", "session_id"),
    ("timeout_seconds", "timeout"),
    ("timeout_secs", "timeout"),
    ("wait", "timeout"),
    ("max_wait", "timeout"),
    ("waits_for", "wait_for"),
    ("workdir", "cwd"),
    ("working_directory", "cwd"),
    ("directory", "cwd"),
    ("environment", "env"),
    ("title", "name"),
    ("restart", "reset"),
    ("lines", "max_lines"),
    ("tail", "max_lines"),
    ("limit", "max_lines"),
    ("pattern", "search"),
    ("query", "search"),
    ("text", "input"),
    ("data", "input"),
    ("chars", "input"),
    ("enter", "end_with_newline"),
    ("press_enter", "end_with_newline"),
    ("submit", "end_with_newline"),
    ("newline", "end_with_newline"),
    ("append_newline", "end_with_newline"),
    ("key", "keys"),
    ("columns", "cols"),
    ("width", "cols"),
    ("height", "rows"),
    ("lines", "rows"),
];
/// Arguments of other tools in which a model comments on its call.
const COMMENTS: [&str; 5] = ["description", "explanation", "reason", "justification", "is_dangerous"];
/// From this similarity on (Jaro–Winkler, 0 to 1), an unknown name is taken for a misspelt one.
const SIMILAR: f64 = 0.85;
const MILLISECONDS: [&str; 4] = ["timeout_ms", "yield_time_ms", "wait_ms", "timeout_milliseconds"];
const BACKGROUND: [&str; 4] = ["run_in_background", "background", "is_background", "in_background"];

/// The arguments by the own names of the tool with this schema.
pub(in crate::mcp) fn meant<'a>(schema: &JsonObject, arguments: &'a JsonObject) -> Cow<'a, JsonObject> {
    let has = |name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
    // Models write null for arguments that they leave out.
    let given = |(_, value): &(&String, &Value)| !value.is_null();
    // A reset by itself runs nothing.
    let is_reset = ["reset", "restart"].iter().any(|name| flag(arguments, name))
        && arguments.get("command").is_none_or(Value::is_null)
        && has("command");
    // Typed text is the program's, whatever it looks like.
    let may_be_key = has("is_input") && !flag(arguments, "is_input");
    let own_value = |name: &str, value: &Value| own_value(name, value, may_be_key);
    if !is_reset && arguments.iter().all(|(name, value)| has(name) && own_value(name, value).is_none()) {
        return Cow::Borrowed(arguments);
    }
    let mut meant = JsonObject::new();
    let (own, others): (Vec<_>, Vec<_>) = arguments.iter().filter(given).partition(|(name, _)| has(name));
    for (name, value) in own {
        meant.insert(name.clone(), own_value(name, value).unwrap_or_else(|| value.clone()));
    }
    for (name, value) in others {
        let snake = snake_case(name);
        let alias = ALIASES.iter().find(|(alias, own)| *alias == snake && has(own)).map(|(_, own)| *own);
        let own = if has(&snake) { Some(snake.as_str()) } else { alias };
        let seconds = || value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).map(|ms| ms / 1000.0);
        let (own, value) = match (own, snake.as_str()) {
            (Some(own), _) => (own, Some(value.clone())),
            (None, comment) if COMMENTS.contains(&comment) => continue,
            (None, in_ms) if MILLISECONDS.contains(&in_ms) && has("timeout") => ("timeout", seconds().map(Value::from)),
            (None, background) if BACKGROUND.contains(&background) && has("timeout") => match as_text(value).as_str() {
                // Its time limit is for a command that is waited for.
                "true" => {
                    meant.insert("timeout".to_owned(), json!(0));
                    continue;
                }
                "false" => continue,
                _ => (name.as_str(), None),
            },
            (None, "cols" | "columns" | "width" | "rows" | "height") if has("dimensions") => {
                let side = if matches!(snake.as_str(), "rows" | "height") { "rows" } else { "cols" };
                let dimensions = meant.entry("dimensions").or_insert_with(|| json!({}));
                match dimensions.as_object_mut() {
                    Some(sides) if !sides.contains_key(side) => drop(sides.insert(side.to_owned(), value.clone())),
                    _ => drop(meant.insert(name.clone(), value.clone())),
                }
                continue;
            }
            (None, "dimensions" | "size") if has("cols") && has("rows") => {
                let sides =
                    value.as_object().filter(|sides| sides.keys().all(|side| matches!(side.as_str(), "cols" | "rows")));
                match sides {
                    Some(sides) if !sides.keys().any(|side| meant.contains_key(side)) => meant.extend(sides.clone()),
                    _ => drop(meant.insert(name.clone(), value.clone())),
                }
                continue;
            }
            (None, "status") if has("filter") => ("filter", Some(json!({ "status": value }))),
            (None, _) => (name.as_str(), None),
        };
        match value {
            Some(value) if !meant.contains_key(own) => meant.insert(own.to_owned(), value),
            _ => meant.insert(name.clone(), arguments[name].clone()),
        };
    }
    if is_reset && !meant.contains_key("command") {
        meant.insert("command".to_owned(), "".into());
    }
    Cow::Owned(meant)
}

/// The error about an argument that the tool does not have; `None` if it has all of them.
pub(super) fn unknown(tool: &str, properties: &JsonObject, arguments: &JsonObject) -> Option<String> {
    let name = arguments.keys().find(|name| !properties.contains_key(*name))?;
    let instead =
        match (tool, ALIASES.iter().find(|(alias, _)| *alias == snake_case(name)).map_or(name.as_str(), |it| it.1)) {
            ("terminal" | "execute_in_terminal", "cwd") => "; write `cd DIR && …` into the command".to_owned(),
            ("terminal" | "execute_in_terminal", "env") => "; write `NAME=value …` into the command".to_owned(),
            ("terminal", "shell") => "; start_terminal_session has it".to_owned(),
            ("terminal", "keys" | "input" | "stdin") => {
                "; is_input types the command as input, or as a key such as C-c or Escape".to_owned()
            }
            _ => match resembling(properties, name) {
                Some(like) => format!("; did you mean {like}?"),
                None => format!("; it has {}", properties.keys().map(String::as_str).collect::<Vec<_>>().join(", ")),
            },
        };
    Some(format!("{tool} has no argument {name:?}{instead}"))
}

/// The argument of the tool with a similar name.
fn resembling<'a>(properties: &'a JsonObject, name: &str) -> Option<&'a str> {
    let name = snake_case(name);
    let similarity = |own: &str| strsim::jaro_winkler(own, &name);
    let nearest = properties.keys().max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    (similarity(nearest) >= SIMILAR).then_some(nearest)
}

/// The value in this tool's form: other tools take a bare number for a position or a command, and a key by another name.
/// `None` if it has this form already.
fn own_value(name: &str, value: &Value, may_be_key: bool) -> Option<Value> {
    match name {
        "since" if is_whole(value) => Some(format!("o:{}", as_text(value)).into()),
        "command_id" if is_whole(value) => Some(format!("c{}", as_text(value)).into()),
        "command" if may_be_key => {
            let text = value.as_str().filter(|text| text.len() <= "Ctrl+C".len())?.to_ascii_lowercase();
            let key = ["^", "ctrl+", "ctrl-"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
            matches!(key, "c" | "z" | "d").then(|| format!("C-{key}").into())
        }
        _ => None,
    }
}

/// Whether the value is a whole number, also as text.
fn is_whole(value: &Value) -> bool {
    let text = as_text(value);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 2);
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.push(if character == '-' { '_' } else { character.to_ascii_lowercase() });
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::super::TOOLS;
    use super::*;

    fn of(tool: &str, arguments: Value) -> Value {
        let tool = TOOLS.iter().find(|it| it.name == tool).expect("it is offered");
        Value::Object(meant(&tool.schema, arguments.as_object().expect("an object")).into_owned())
    }

    #[test]
    // promise: mcp-4
    fn alias_names_count_as_the_arguments_that_they_stand_for() {
        for (tool, given, taken) in [
            ("terminal", json!({ "cmd": "ls", "description": "Lists" }), json!({ "command": "ls" })),
            (
                "terminal",
                json!({ "command": "ls", "sessionId": "two" }),
                json!({ "command": "ls", "session_id": "two" }),
            ),
            ("terminal", json!({ "command": "ls", "timeout_ms": 5000 }), json!({ "command": "ls", "timeout": 5.0 })),
            ("terminal", json!({ "command": "ls", "isBackground": true }), json!({ "command": "ls", "timeout": 0 })),
            ("terminal", json!({ "reset": true }), json!({ "reset": true, "command": "" })),
            ("terminal", json!({ "restart": true }), json!({ "reset": true, "command": "" })),
            ("terminal", json!({ "command": "ls", "restart": true }), json!({ "command": "ls", "reset": true })),
            ("terminal", json!({ "command": "Ctrl+C" }), json!({ "command": "C-c" })),
            ("terminal", json!({ "command": null, "cmd": "ls" }), json!({ "command": "ls" })),
            ("terminal", json!({ "command": "^d", "is_input": true }), json!({ "command": "^d", "is_input": true })),
            (
                "execute_in_terminal",
                json!({ "session_id": "s", "command": "^C" }),
                json!({ "session_id": "s", "command": "^C" }),
            ),
            (
                "terminal",
                json!({ "command": "x", "background": true, "timeout": 60 }),
                json!({ "command": "x", "timeout": 0 }),
            ),
            ("terminal", json!({ "command": "^Z" }), json!({ "command": "C-z" })),
            ("terminal", json!({ "command": "ls", "background": "false" }), json!({ "command": "ls" })),
            (
                "terminal",
                json!({ "command": "ls", "wait": 5, "isInput": true }),
                json!({ "command": "ls", "timeout": 5, "is_input": true }),
            ),
            (
                "start_terminal_session",
                json!({ "workdir": "/usr", "title": "t" }),
                json!({ "cwd": "/usr", "name": "t" }),
            ),
            (
                "start_terminal_session",
                json!({ "cols": 80, "height": 24 }),
                json!({ "dimensions": { "cols": 80, "rows": 24 } }),
            ),
            (
                "get_terminal_output",
                json!({ "session_id": "s", "tail": 5, "since": 0 }),
                json!({ "session_id": "s", "max_lines": 5, "since": "o:0" }),
            ),
            (
                "get_terminal_output",
                json!({ "id": "s", "command_id": "1" }),
                json!({ "session_id": "s", "command_id": "c1" }),
            ),
            (
                "send_input_to_terminal",
                json!({ "session_id": "s", "text": "x", "enter": true }),
                json!({ "session_id": "s", "input": "x", "end_with_newline": true }),
            ),
            ("list_terminal_sessions", json!({ "status": "running" }), json!({ "filter": { "status": "running" } })),
            (
                "resize_terminal",
                json!({ "session_id": "s", "width": 80, "rows": 24 }),
                json!({ "session_id": "s", "cols": 80, "rows": 24 }),
            ),
            (
                "resize_terminal",
                json!({ "session_id": "s", "dimensions": { "cols": 80, "rows": 24 } }),
                json!({ "session_id": "s", "cols": 80, "rows": 24 }),
            ),
            ("resize_terminal", json!({ "columns": 80, "lines": 24 }), json!({ "cols": 80, "rows": 24 })),
            ("send_input_to_terminal", json!({ "key": "C-c" }), json!({ "keys": "C-c" })),
            (
                "send_input_to_terminal",
                json!({ "text": "x", "press_enter": true }),
                json!({ "input": "x", "end_with_newline": true }),
            ),
            ("terminate_terminal_session", json!({ "id": "s", "reason": "done" }), json!({ "session_id": "s" })),
        ] {
            assert_eq!(of(tool, given.clone()), taken, "{tool} {given}");
        }
    }

    #[test]
    fn unknown_and_doubled_arguments_are_left_for_the_error() {
        for (tool, given) in [
            ("terminal", json!({ "command": "ls", "cmd": "pwd" })),
            ("terminal", json!({ "command": "ls", "cwd": "/usr" })),
            ("terminal", json!({ "command": "ls", "timeout": 1, "timeout_ms": 5 })),
            ("terminal", json!({ "command": "ls", "timeout_ms": "soon" })),
            ("list_terminal_sessions", json!({ "limit": 3, "tail": 4 })),
            ("start_terminal_session", json!({ "cols": 80, "dimensions": { "cols": 100 } })),
            ("resize_terminal", json!({ "cols": 80, "dimensions": { "cols": 100 } })),
        ] {
            assert_eq!(of(tool, given.clone()), given, "{tool}");
        }
    }

    #[test]
    fn the_error_for_an_unknown_argument_is_short() {
        for tool in TOOLS.iter() {
            let properties = tool.schema["properties"].as_object().expect("an object");
            let said = unknown(tool.name, properties, json!({ "nosuch": 1 }).as_object().expect("an object"));
            let said = said.expect("it has no such argument");
            assert!(said.contains("\"nosuch\"") && said.len() < 200, "{said}");
        }
        let terminal = TOOLS.iter().find(|tool| tool.name == "terminal").expect("offered");
        let properties = terminal.schema["properties"].as_object().expect("an object");
        let said = unknown("terminal", properties, json!({ "workdir": "/usr" }).as_object().expect("an object"));
        assert_eq!(said.as_deref(), Some("terminal has no argument \"workdir\"; write `cd DIR && …` into the command"));
        let said = unknown("execute_in_terminal", properties, json!({ "cwd": "/usr" }).as_object().expect("an object"));
        assert!(said.is_some_and(|said| said.ends_with("; write `cd DIR && …` into the command")));
    }
}
