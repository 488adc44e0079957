//! JSON Schemas of tool arguments and answers, in the form that every model provider accepts.
//!
//! No `$schema`, no references, no integer formats and no null: each of these makes at least one provider refuse the
//! whole request. An optional value is simply not required.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of one tool's arguments.
pub(super) fn of<T: JsonSchema>() -> JsonObject {
    made::<T>(SchemaSettings::draft2020_12())
}

/// The schema of one tool's answers.
pub(super) fn of_answer<T: JsonSchema>() -> JsonObject {
    made::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn made<T: JsonSchema>(mut settings: SchemaSettings) -> JsonObject {
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    clean(&mut schema);
    let Value::Object(mut object) = schema else {
        unreachable!("invariant: a tool's arguments and answers are structs")
    };
    // The name and doc comment of the Rust type mean nothing to a model.
    object.remove("title");
    object.remove("description");
    object
}

/// Names the header in which a client over HTTP repeats the session of a call (SEP-2243), so that a load balancer can route
/// the call by it. Over stdio nothing reads the name, and a model's provider could refuse it.
pub(super) fn name_session_header(arguments: &mut JsonObject) {
    let session = arguments.get_mut("properties").and_then(|properties| properties.get_mut("session_id"));
    if let Some(Value::Object(session)) = session {
        session.insert("x-mcp-header".to_owned(), "Session".into());
    }
}

fn clean(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("format");
            // Defaults that equal an absent value are left out; those of an object's fields are in the object.
            if object.get("default").is_some_and(|default| !is_informative(default)) {
                object.remove("default");
            }
            // A value that is absent is left out, and never null.
            if let Some(Value::Array(kinds)) = object.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [kind] = kinds.as_slice() {
                    object["type"] = kind.clone();
                }
            }
            object.values_mut().for_each(clean);
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_informative(default: &Value) -> bool {
    match default {
        Value::Null | Value::Object(_) | Value::Array(_) => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_that_says_nothing_is_omitted() {
        let mut schema = serde_json::json!({ "properties": {
            "a": { "default": "" }, "b": { "default": false }, "c": { "default": 0 }, "d": { "default": { "x": 1 } },
            "e": { "default": true }, "f": { "default": 50 }, "g": { "default": "text" }
        } });
        clean(&mut schema);
        let left = serde_json::json!({ "properties": {
            "a": {}, "b": {}, "c": {}, "d": {}, "e": { "default": true }, "f": { "default": 50 }, "g": { "default": "text" }
        } });
        assert_eq!(schema, left);
    }
}
