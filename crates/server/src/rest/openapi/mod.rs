//! The OpenAPI 3.1 document, generated from the table of routes and the wire types.
//!
//! OpenAPI 3.1 uses JSON Schema 2020-12, as `schemars` does, so the types document themselves and nothing is written
//! twice (docs/decisions/0016). No schema has null: an answer never has one, and in a request it counts as omitted.

mod other_routes;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use api::ErrorCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::operation::{Answer, Content, Header, Operation, Tag};
use super::routes::routes;

const ABOUT: &str = "Real terminals for AI agents: shells that stay alive, whose commands end exactly. JSON over HTTP/1.1 on \
loopback with a bearer token, and on the Unix socket without one. Bodies are camelCase, times RFC 3339, time-outs seconds \
with fractions, offsets bytes of a session's journal. A request refuses fields that it does not know. Every answer carries \
`x-request-id` and `ptyd-version`. Every refusal is a problem document (RFC 9457) with a code; `x-codes` lists those of an \
operation. A HEAD returns the headers of a GET. The server refuses a message that is not HTTP/1.1 before these rules apply.";

/// The default address of a server.
const DEFAULT_ADDRESS: &str = "http://127.0.0.1:7893";

/// The document as it is served and committed.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(make);
    &DOCUMENT
}

fn make() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    let table = routes().into_iter().map(|route| (route.method, route.path, route.operation));
    for (method, path, operation) in table.chain(other_routes::operations()) {
        // The names of path parameters, as in the contract.
        let path = path.replace("{session}", "{sessionId}").replace("{command}", "{commandId}");
        let item = paths.entry(path.as_str()).or_insert_with(|| json!({}));
        item[method.as_str().to_ascii_lowercase()] = describe(&operation, &path, &mut schemas);
    }
    let tags: Vec<Value> =
        Tag::ALL.iter().map(|(_, name, about)| json!({ "name": name, "description": about })).collect();
    schemas.answers.subschema_for::<api::Problem>();
    // OpenAPI has no place for the messages of a WebSocket.
    paths["/terminals/{sessionId}/socket"]["get"]["x-websocket"] = json!({
        "ptyd.v1": {
            "server": schemas.answers.subschema_for::<api::SocketEvent>(),
            "client": schemas.requests.subschema_for::<api::SocketRequest>(),
        },
        "": {
            "server": schemas.answers.subschema_for::<api::SocketMessage>(),
            "client": schemas.requests.subschema_for::<api::SocketInput>(),
        },
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ptyd",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": DEFAULT_ADDRESS, "description": "A server with its default address." }],
        "security": [{ "bearer": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.all(),
            "headers": {
                "RequestId": {
                    "description": "Names the request in the server's log. If the client sends a short one, ptyd returns it.",
                    "schema": { "type": "string" },
                },
                "Version": {
                    "description": "The version of the server and of this interface; docs/api-stability.md says what it promises.",
                    "schema": { "type": "string" },
                },
            },
            "securitySchemes": { "bearer": {
                "type": "http", "scheme": "bearer",
                "description": "The token in the file `token` of the server's state directory.",
            } },
        },
    })
}

/// The schemas of requests and of answers: a field with a default is optional only in requests.
struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        let requests = settings.clone().for_deserialize().into_generator();
        Self { requests, answers: settings.for_serialize().into_generator() }
    }

    fn all(mut self) -> Map<String, Value> {
        let (mut all, mut answers) = (self.requests.take_definitions(true), self.answers.take_definitions(true));
        all.values_mut().for_each(without_nulls);
        all.values_mut().for_each(plain_enum);
        for (name, mut schema) in std::mem::take(&mut answers) {
            without_nulls(&mut schema);
            plain_enum(&mut schema);
            let same = all.insert(name.clone(), schema.clone()).is_none_or(|request| request == schema);
            assert!(same, "invariant: {name} is one and the same in requests and answers");
        }
        let variants: Vec<_> = all.iter_mut().flat_map(|(name, schema)| named_variants(name, schema)).collect();
        all.extend(variants);
        all
    }
}

fn describe(operation: &Operation, path: &str, schemas: &mut Schemas) -> Value {
    let mut refusals = operation.refusals.clone();
    refusals.extend([ErrorCode::MalformedHead, ErrorCode::HostRefused, ErrorCode::OriginRefused]);
    if !operation.is_open {
        refusals.extend([
            ErrorCode::Unauthorized,
            ErrorCode::Forbidden,
            ErrorCode::LimitReached,
            ErrorCode::RateLimited,
        ]);
        refusals.extend([
            ErrorCode::Internal,
            ErrorCode::SessionUnreachable,
            ErrorCode::ResourcesExhausted,
            ErrorCode::ServerRestarting,
        ]);
    }
    let mut parameters = Vec::new();
    for (name, about, pattern, codes) in [
        (
            "sessionId",
            "The session.",
            "^[a-z0-9]+-[a-z0-9]+$",
            &[ErrorCode::SessionNotFound, ErrorCode::OtherNode, ErrorCode::NodeUnreachable][..],
        ),
        ("commandId", "The command.", "^c[0-9]+$", &[ErrorCode::CommandNotFound]),
        ("token", "Its name.", "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", &[ErrorCode::TokenNotFound]),
        ("secret", "Its name.", "^[A-Z][A-Z0-9_]{0,63}$", &[ErrorCode::InvalidField]),
        (
            "approval",
            "Its id.",
            "^a[0-9]+-[a-z0-9]{10}$",
            &[ErrorCode::InvalidField, ErrorCode::OtherNode, ErrorCode::NodeUnreachable],
        ),
        ("action", "Its name.", "^[A-Za-z0-9_.-]{1,64}$", &[ErrorCode::InvalidField]),
    ] {
        if path.contains(&format!("{{{name}}}")) {
            let schema = json!({ "type": "string", "pattern": pattern });
            parameters
                .push(json!({ "name": name, "in": "path", "required": true, "description": about, "schema": schema }));
            refusals.extend(codes);
        }
    }
    if let Some(query) = operation.query {
        parameters.extend(in_query(query(&mut schemas.requests).to_value()));
    }
    for Header { name, about, pattern } in &operation.headers {
        let schema = json!({ "type": "string", "pattern": pattern });
        parameters.push(json!({ "name": name, "in": "header", "description": about, "schema": schema }));
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.tag.name()],
        "summary": operation.summary,
        "responses": answers(operation, refusals, schemas),
    });
    if !operation.details.is_empty() {
        described["description"] = operation.details.into();
    }
    if !parameters.is_empty() {
        described["parameters"] = parameters.into();
    }
    if let Some(body) = &operation.body {
        let schema = (body.schema)(&mut schemas.requests).to_value();
        let content = json!({ "schema": schema, "example": body.example });
        // An absent body is an empty object, which is enough if every field has a default.
        let is_required = body.is_needed || is_needed(&content["schema"], &schemas.requests);
        described["requestBody"] = json!({ "required": is_required, "content": { "application/json": content } });
    }
    if operation.is_open {
        described["security"] = json!([]);
    }
    described
}

fn is_needed(schema: &Value, generator: &SchemaGenerator) -> bool {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    let definition = name.and_then(|name| generator.definitions().get(name));
    definition.is_some_and(|schema| schema["required"].as_array().is_some_and(|fields| !fields.is_empty()))
}

/// The fields of a query as parameters.
fn in_query(schema: Value) -> Vec<Value> {
    let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
    let parameter = |(name, schema): (&String, &Value)| {
        let mut schema = schema.clone();
        // A query has no null.
        without_nulls(&mut schema);
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description")).unwrap_or_default();
        let is_required = required.iter().any(|r| *r == name);
        json!({ "name": name, "in": "query", "required": is_required, "description": about, "schema": schema })
    };
    schema["properties"].as_object().into_iter().flatten().map(parameter).collect()
}

fn answers(operation: &Operation, refusals: Vec<ErrorCode>, schemas: &mut Schemas) -> Map<String, Value> {
    let mut responses = Map::new();
    let all = || {
        json!({
            "X-Request-Id": { "$ref": "#/components/headers/RequestId" },
            "Ptyd-Version": { "$ref": "#/components/headers/Version" },
        })
    };
    for Answer { status, about, contents, headers } in &operation.answers {
        let mut response = json!({ "description": about, "headers": all() });
        for (name, about) in headers {
            response["headers"][*name] = json!({ "description": about, "schema": { "type": "string" } });
        }
        for (kind, content) in contents {
            response["content"][*kind] = match content {
                Content::Json(make) => json!({ "schema": make(&mut schemas.answers).to_value() }),
                Content::Text if *kind == "application/json" => json!({ "schema": { "type": "object" } }),
                Content::Text => json!({ "schema": { "type": "string" } }),
                // OpenAPI 3.1 cannot describe the parts of a stream; JSON Schema has a keyword for the contents of a
                // text.
                Content::Events(make) => json!({ "schema": {
                    "type": "string",
                    "description": "Server-sent events; contentSchema describes the list of their data.",
                    "contentMediaType": kind,
                    "contentSchema": { "type": "array", "items": make(&mut schemas.answers).to_value() },
                } }),
            };
        }
        responses.insert(status.to_string(), response);
    }
    let mut by_status = BTreeMap::<u16, Vec<ErrorCode>>::new();
    for code in refusals {
        let codes = by_status.entry(code.http_status()).or_default();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    for (status, codes) in by_status {
        let words: Vec<String> = codes.iter().map(|code| format!("`{}`: {}.", code.as_str(), code.title())).collect();
        let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        let schema = json!({ "$ref": "#/components/schemas/Problem" });
        let refusal = json!({
            "description": words.join(" "),
            "headers": all(),
            "content": { "application/problem+json": { "schema": schema } },
            "x-codes": names,
        });
        let status = status.to_string();
        match responses.get_mut(&status) {
            // A status that another protocol uses, too.
            Some(own) => {
                own["content"]["application/problem+json"] = refusal["content"]["application/problem+json"].clone();
                own["x-codes"] = refusal["x-codes"].clone();
            }
            None => drop(responses.insert(status, refusal)),
        }
    }
    responses
}

/// Converts values into a plain `enum`, which every client generator supports; their descriptions go beside it.
fn plain_enum(schema: &mut Value) {
    let Some(words) = schema["oneOf"].as_array().filter(|all| all.iter().all(|one| one["const"].is_string())) else {
        return;
    };
    let of = |field: &str| words.iter().map(|one| one[field].clone()).collect::<Vec<Value>>();
    let (names, meanings) = (of("const"), of("description"));
    if let Some(object) = schema.as_object_mut() {
        object.remove("oneOf");
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), names.into());
        object.insert("x-enum-descriptions".to_owned(), meanings.into());
    }
}

/// Takes the variants of a tagged type out of its schema, which names them and the tag: generators make a type of each.
fn named_variants(name: &str, schema: &mut Value) -> Vec<(String, Value)> {
    let tag_of = |variant: &Value| {
        let properties = variant["properties"].as_object()?;
        properties.iter().find_map(|(tag, value)| Some((tag.clone(), value["const"].as_str()?.to_owned())))
    };
    let Some(tags) = schema["oneOf"].as_array().and_then(|all| all.iter().map(tag_of).collect::<Option<Vec<_>>>())
    else {
        return Vec::new();
    };
    let Some((property, _)) = tags.first().cloned() else { return Vec::new() };
    let names = tags.iter().map(|(_, value)| {
        let words = value.split('.').map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
        words.fold(name.to_owned(), |all, word| all + &word)
    });
    let names: Vec<String> = names.collect();
    let address = |name: &String| format!("#/components/schemas/{name}");
    let references: Vec<Value> = names.iter().map(|name| json!({ "$ref": address(name) })).collect();
    let mapping: Map<String, Value> =
        tags.iter().zip(&names).map(|((_, value), name)| (value.clone(), address(name).into())).collect();
    let variants = std::mem::replace(&mut schema["oneOf"], references.into());
    schema["discriminator"] = json!({ "propertyName": property, "mapping": mapping });
    let Value::Array(variants) = variants else { return Vec::new() };
    names.into_iter().zip(variants).collect()
}

fn without_null_defaults(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            object.values_mut().for_each(without_null_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null_defaults),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes null from optional fields: they are absent, and never null.
fn without_nulls(schema: &mut Value) {
    without_null_defaults(schema);
    take_nulls(schema);
}

fn take_nulls(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|t| t != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(mut any)) = object.remove("anyOf") {
                any.retain(|one| *one != json!({ "type": "null" }));
                match any.as_mut_slice() {
                    [Value::Object(only)] => {
                        for (name, value) in std::mem::take(only) {
                            object.entry(name).or_insert(value);
                        }
                    }
                    _ => drop(object.insert("anyOf".to_owned(), any.into())),
                }
            }
            object.values_mut().for_each(take_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(take_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use ptyd_core::limits;

    /// All values under a name, at any depth.
    fn under<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
        match value {
            Value::Object(object) => {
                found.extend(object.get(name));
                object.values().for_each(|value| under(value, name, found));
            }
            Value::Array(items) => items.iter().for_each(|value| under(value, name, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn operations() -> Vec<(String, String, &'static Value)> {
        let paths = document()["paths"].as_object().expect("paths");
        let each = paths.iter().flat_map(|(path, item)| {
            let methods = item.as_object().expect("methods");
            methods.iter().map(move |(method, operation)| (method.to_ascii_uppercase(), path.clone(), operation))
        });
        each.collect()
    }

    #[test]
    // promise: rest-1
    fn every_route_is_described_once_and_every_reference_leads_somewhere() {
        let described: BTreeSet<(String, String)> = operations().into_iter().map(|(m, p, _)| (m, p)).collect();
        for route in routes() {
            let path = route.path.replace("{session}", "{sessionId}").replace("{command}", "{commandId}");
            assert!(described.contains(&(route.method.to_string(), path.clone())), "{} {path}", route.method);
        }
        assert_eq!(described.len(), routes().len() + other_routes::operations().len());
        let ids: BTreeSet<&str> = operations().iter().filter_map(|(.., o)| o["operationId"].as_str()).collect();
        assert_eq!(ids.len(), described.len(), "names are not used twice");
        let mut references = Vec::new();
        under(document(), "$ref", &mut references);
        for reference in references {
            let pointer = reference.as_str().and_then(|r| r.strip_prefix('#')).expect("a reference into the document");
            assert!(document().pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn every_operation_says_how_it_is_refused_and_every_code_is_somewhere() {
        let mut known = BTreeSet::new();
        for (method, path, operation) in operations() {
            let mut codes = Vec::new();
            under(&operation["responses"], "x-codes", &mut codes);
            let codes: Vec<&str> =
                codes.iter().flat_map(|c| c.as_array().expect("a list")).filter_map(Value::as_str).collect();
            let is_open = operation["security"] == json!([]);
            assert_eq!(codes.contains(&"unauthorized"), !is_open, "{method} {path}");
            assert!(codes.contains(&"host_refused"), "{method} {path}");
            known.extend(codes);
        }
        let unsaid: Vec<&str> = ErrorCode::ALL.iter().map(|c| c.as_str()).filter(|c| !known.contains(c)).collect();
        assert_eq!(unsaid, ["route_not_found", "method_not_allowed"], "these belong to no operation");
    }

    #[test]
    fn no_answer_contains_null_and_every_field_has_a_description() {
        let schemas = &document()["components"]["schemas"];
        for name in ["TerminalSession", "CommandExecution", "WaitAnswer", "Output", "Screen", "Terminated", "Problem"] {
            let text = schemas[name].to_string();
            assert!(!text.contains("null"), "{name}: {text}");
            for (field, schema) in schemas[name]["properties"].as_object().expect("fields") {
                assert!(schema["description"].is_string(), "{name}.{field} has no description");
            }
        }
    }

    #[test]
    // promise: rest-1
    fn the_bounds_in_the_document_are_those_of_the_server() {
        let schemas = &document()["components"]["schemas"];
        let field =
            |of: &str, name: &str, bound: &str| schemas[of]["properties"][name][bound].as_f64().expect("a bound");
        let query = |id: &str, name: &str| {
            let (.., operation) =
                operations().into_iter().find(|(.., o)| o["operationId"] == id).expect("an operation");
            let parameters = operation["parameters"].as_array().expect("parameters");
            parameters.iter().find(|p| p["name"] == name).expect("a parameter")["schema"]["maximum"].as_f64()
        };
        let seconds = limits::TIMEOUT_MAX.as_secs_f64();
        assert_eq!(
            [
                field("Dimensions", "cols", "maximum"),
                field("Dimensions", "rows", "maximum"),
                field("CreateRequest", "name", "maxLength"),
                field("ExecuteRequest", "command", "maxLength"),
                field("InputRequest", "input", "maxLength"),
                field("BatchRequest", "operations", "maxItems"),
                field("WaitRequest", "quietMs", "maximum"),
            ],
            [
                f64::from(limits::COLS_MAX),
                f64::from(limits::ROWS_MAX),
                limits::NAME_CHARS_MAX as f64,
                limits::COMMAND_BYTES_MAX as f64,
                limits::INPUT_BYTES_MAX as f64,
                limits::BATCH_OPERATIONS_MAX as f64,
                seconds * 1_000.0,
            ]
        );
        for name in ["ExecuteRequest", "InputRequest", "WaitRequest"] {
            assert_eq!(field(name, "timeout", "maximum"), seconds, "{name}");
            assert_eq!(field(name, "maxChars", "maximum"), limits::BUDGET_CHARS_MAX as f64, "{name}");
        }
        assert_eq!(
            [
                query("getOutput", "maxBytes"),
                query("getCommand", "maxBytes"),
                query("searchOutput", "limit"),
                query("getOutput", "waitMs")
            ],
            [
                Some(limits::READ_BYTES_MAX as f64),
                Some(limits::READ_BYTES_MAX as f64),
                Some(limits::SEARCH_MATCHES_MAX as f64),
                Some(seconds * 1_000.0)
            ]
        );
    }
}
