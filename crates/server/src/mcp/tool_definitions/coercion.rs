//! Arguments of another JSON type than their schema's, as models write them: `"30"`, `"true"`, one text for a list.
//!
//! Only a value that means the same in its schema's type is changed; every other one is left for the error.

use rmcp::model::JsonObject;
use serde_json::{Number, Value};

/// Gives each value the type of its schema.
pub(super) fn coerce(schema: &JsonObject, value: &mut Value) {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    match (kind, &mut *value) {
        ("object", Value::Object(fields)) => {
            for (name, field) in fields {
                match schema.get("properties").and_then(|all| all.get(name)).and_then(Value::as_object) {
                    Some(property) => coerce(property, field),
                    None => coerce_part(schema.get("additionalProperties"), field),
                }
            }
        }
        ("array", Value::Array(items)) => {
            items.iter_mut().for_each(|item| coerce_part(schema.get("items"), item));
        }
        ("object" | "array", Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(parsed) if parsed.is_object() == (kind == "object") && (parsed.is_object() || parsed.is_array()) => {
                *value = parsed;
                coerce(schema, value);
            }
            Ok(_) | Err(_) if kind == "array" => *value = Value::Array(vec![value.take()]),
            Ok(_) | Err(_) => {}
        },
        ("boolean", Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" => *value = true.into(),
            "false" => *value = false.into(),
            _ => {}
        },
        ("number" | "integer", Value::String(text)) => {
            if let Some(number) = number(text.trim()) {
                *value = number.into();
                coerce(schema, value);
            }
        }
        ("integer", Value::Number(number)) => {
            let whole = number.as_f64().filter(|n| n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(n));
            if let Some(whole) = whole {
                *value = (whole as u64).into();
            }
        }
        _ => {}
    }
}

/// The same for an item of a list or a value of a map, where a number is also taken for a text: `{"PORT": 80}`. A command
/// that is a number is a mistake.
fn coerce_part(schema: Option<&Value>, value: &mut Value) {
    let Some(schema) = schema.and_then(Value::as_object) else { return };
    match value {
        Value::Number(_) | Value::Bool(_) if schema.get("type").is_some_and(|kind| kind == "string") => {
            *value = value.to_string().into();
        }
        _ => coerce(schema, value),
    }
}

/// A whole number as such, so that no digit is lost.
fn number(text: &str) -> Option<Number> {
    let whole = text.parse::<u64>().ok().map(Number::from);
    whole.or_else(|| text.parse::<f64>().ok().and_then(Number::from_f64))
}

/// A number of seconds, also as text.
pub(in crate::mcp) fn seconds(arguments: &JsonObject, name: &str) -> Option<f64> {
    let value = arguments.get(name)?;
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())
}

/// Whether a flag is set, also as text.
pub(super) fn flag(arguments: &JsonObject, name: &str) -> bool {
    let value = arguments.get(name).unwrap_or(&Value::Null);
    value.as_bool().unwrap_or_else(|| value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn coerced(schema: Value, mut value: Value) -> Value {
        coerce(schema.as_object().expect("an object"), &mut value);
        value
    }

    #[test]
    fn a_value_that_means_the_same_gets_the_type_of_its_schema() {
        let of = |kind: &str| json!({ "type": kind, "items": { "type": "string" } });
        for (kind, given, meant) in [
            ("number", json!("30"), json!(30)),
            ("number", json!(" 0.5 "), json!(0.5)),
            ("integer", json!(40.0), json!(40)),
            ("integer", json!("40"), json!(40)),
            ("boolean", json!("True"), json!(true)),
            ("boolean", json!("false"), json!(false)),
            ("array", json!("Enter"), json!(["Enter"])),
            ("array", json!("[\"a\", 1]"), json!(["a", "1"])),
        ] {
            assert_eq!(coerced(of(kind), given.clone()), meant, "{kind} {given}");
        }
    }

    #[test]
    fn every_other_value_is_left_for_the_error() {
        for (kind, given) in [
            ("number", json!("soon")),
            ("number", json!(true)),
            ("integer", json!(1.5)),
            ("boolean", json!("yes")),
            ("boolean", json!(1)),
            ("object", json!("text")),
            ("string", json!(["a"])),
            ("string", json!(5)),
        ] {
            assert_eq!(coerced(json!({ "type": kind }), given.clone()), given, "{kind}");
        }
    }

    #[test]
    fn fields_are_found_at_any_depth() {
        let schema = json!({ "type": "object", "properties": {
            "dimensions": { "type": "object", "properties": { "cols": { "type": "integer" } } },
            "env": { "type": "object", "additionalProperties": { "type": "string" } },
        }, "additionalProperties": false });
        let given = json!({ "dimensions": "{\"cols\": \"80\"}", "env": { "A": 1 }, "other": 2 });
        assert_eq!(coerced(schema, given), json!({ "dimensions": { "cols": 80 }, "env": { "A": "1" }, "other": 2 }));
    }
}
