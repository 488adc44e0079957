//! The rules of every tool's face, for all of them at once.

use serde_json::Value;

use super::TOOLS;
use crate::mcp::tools_schema;

/// Every object in a schema.
fn walk<'a>(value: &'a Value, seen: &mut Vec<&'a serde_json::Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            seen.push(object);
            object.values().for_each(|v| walk(v, seen));
        }
        Value::Array(items) => items.iter().for_each(|v| walk(v, seen)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn there_are_eight_tools_in_the_order_of_their_names() {
    let names: Vec<&str> = TOOLS.iter().map(|t| t.name).collect();
    let expected = [
        "execute_in_terminal",
        "get_terminal_output",
        "list_terminal_sessions",
        "resize_terminal",
        "send_input_to_terminal",
        "start_terminal_session",
        "terminal",
        "terminate_terminal_session",
    ];
    assert_eq!(names, expected);
}

#[test]
fn schemas_hold_nothing_that_a_provider_refuses() {
    for tool in TOOLS.iter() {
        let schema = Value::Object(tool.schema.clone());
        let mut objects = Vec::new();
        walk(&schema, &mut objects);
        for object in objects {
            for key in ["$schema", "$ref", "$defs", "format", "anyOf", "oneOf", "allOf"] {
                assert!(!object.contains_key(key), "{}: {key} in {object:?}", tool.name);
            }
            assert!(!object.get("type").is_some_and(Value::is_array), "{}: {object:?}", tool.name);
            assert!(object.values().all(|v| !v.is_null()), "{}: {object:?}", tool.name);
        }
        assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
        for (name, property) in schema["properties"].as_object().expect("properties") {
            assert!(property["description"].is_string(), "{}.{name} has no description", tool.name);
        }
    }
}

#[test]
fn descriptions_are_short_have_an_example_and_all_four_annotations() {
    for tool in TOOLS.iter() {
        let chars = tool.description.chars().count();
        assert!((200..=1_000).contains(&chars), "{} has {chars}", tool.name);
        assert!(tool.description.contains("Example: {"), "{}", tool.name);
        let a = &tool.annotations;
        let all = [a.read_only_hint, a.destructive_hint, a.idempotent_hint, a.open_world_hint];
        assert!(all.iter().all(Option::is_some), "{}", tool.name);
    }
}

#[test]
fn the_schema_of_all_tools_is_the_same_text_every_time() {
    assert_eq!(tools_schema().to_string(), tools_schema().to_string());
    assert_eq!(tools_schema()["tools"][6]["inputSchema"]["required"], serde_json::json!(["command"]));
}
