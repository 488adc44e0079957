//! `GET /openapi.json`, and `GET /docs`, the same document as a page.
//!
//! The page is self-contained: it loads nothing, runs no script, and includes the document itself, because a browser
//! that entered with a ticket could not fetch it.

use std::fmt::Write;
use std::sync::OnceLock;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Map, Value};

use super::state::Rest;
use crate::http::html_page::HtmlPage;

/// The document's route.
pub(super) const DOCUMENT: &str = "/openapi.json";
/// The page's route, which a browser enters with a ticket.
pub(crate) const PAGE: &str = "/docs";

const FRAME: &str = include_str!("docs.html");

pub(super) async fn document(State(rest): State<Rest>) -> impl IntoResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| (rest.document)().to_string());
    ([(header::CONTENT_TYPE, "application/json")], text.as_str())
}

pub(super) async fn page(State(rest): State<Rest>) -> impl IntoResponse {
    static CONTENT: OnceLock<String> = OnceLock::new();
    let document = (rest.document)();
    let content = CONTENT.get_or_init(|| content(document));
    // The document has the default address; the page shows that of this server.
    let content = content.replace(address(document), &rest.base_url);
    // The URL has a ticket; although it is used up, it should not be passed on.
    let (form_action, referrer_policy) = ("none", "no-referrer");
    HtmlPage { frame: FRAME, title: "ptyd", content: &content, form_action, referrer_policy }.response()
}

/// The address of the server that the document describes.
fn address(document: &Value) -> &str {
    text(&document["servers"][0]["url"])
}

/// The body of the page: chapters of operations, then schemas, then the document itself.
fn content(document: &Value) -> String {
    let mut page = Page::default();
    let info = &document["info"];
    page.put(format_args!("<h1>{} {}</h1>", escaped(text(&info["title"])), escaped(text(&info["version"]))));
    page.paragraph(text(&info["description"]));
    for tag in document["tags"].as_array().into_iter().flatten() {
        page.put(format_args!("<h2>{}</h2>", escaped(text(&tag["name"]))));
        page.paragraph(text(&tag["description"]));
        for (path, methods) in object(&document["paths"]) {
            for (method, operation) in object(methods).filter(|(_, o)| o["tags"][0] == tag["name"]) {
                page.operation(&method.to_ascii_uppercase(), address(document), path, operation);
            }
        }
    }
    page.put(format_args!("<h2>schemas</h2>"));
    for (name, schema) in object(&document["components"]["schemas"]) {
        page.put(format_args!("<h3 id=\"{0}\">{0}</h3>", escaped(name)));
        page.paragraph(text(&schema["description"]));
        page.fields(schema);
    }
    let whole = format!("{document:#}");
    page.put(format_args!(
        "<h2>the document</h2><details><summary>openapi.json</summary><pre>{}</pre></details>",
        escaped(&whole)
    ));
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn put(&mut self, html: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{html}").expect("invariant: a string takes what is written");
    }

    fn paragraph(&mut self, words: &str) {
        if !words.is_empty() {
            self.put(format_args!("<p>{}</p>", marked(words)));
        }
    }

    fn operation(&mut self, method: &str, address: &str, path: &str, operation: &Value) {
        let (id, summary) = (escaped(text(&operation["operationId"])), marked(text(&operation["summary"])));
        self.put(format_args!("<details id=\"{id}\"><summary><b>{method} {}</b> {summary}</summary>", escaped(path)));
        self.paragraph(text(&operation["description"]));
        let parameters: Vec<&Value> = operation["parameters"].as_array().into_iter().flatten().collect();
        if !parameters.is_empty() {
            self.put(format_args!("<table><tr><th>parameter<th>in<th>type<th>"));
            for one in parameters {
                let need = if one["required"] == true { ", required" } else { "" };
                let (name, place, about) = (text(&one["name"]), text(&one["in"]), text(&one["description"]));
                self.put(format_args!(
                    "<tr><td><code>{}</code><td>{place}{need}<td>{}<td>{}",
                    escaped(name),
                    kind(&one["schema"]),
                    marked(about)
                ));
            }
            self.put(format_args!("</table>"));
        }
        let body = &operation["requestBody"]["content"]["application/json"];
        if !body.is_null() {
            self.put(format_args!("<p>Body: {}</p>", kind(&body["schema"])));
        }
        self.put(format_args!("<pre>{}</pre>", escaped(&curl(method, address, path, operation, &body["example"]))));
        self.put(format_args!("<table><tr><th>status<th>body<th>"));
        for (status, answer) in object(&operation["responses"]) {
            let bodies: Vec<String> = object(&answer["content"])
                .map(|(name, content)| {
                    format!("{} <span class=\"type\">{}</span>", kind(&content["schema"]), escaped(name))
                })
                .collect();
            let about = marked(text(&answer["description"]));
            self.put(format_args!("<tr><td>{status}<td>{}<td>{about}", bodies.join("<br>")));
        }
        self.put(format_args!("</table></details>"));
    }

    /// The fields of an object, or the values of an enum.
    fn fields(&mut self, schema: &Value) {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        self.put(format_args!("<table>"));
        for (name, field) in object(&schema["properties"]) {
            let need = if required.contains(&name.as_str()) { ", required" } else { "" };
            let (name, about) = (escaped(name), marked(text(&field["description"])));
            self.put(format_args!("<tr><td><code>{name}</code><td>{}{need}<td>{about}", kind(field)));
        }
        for (i, word) in schema["enum"].as_array().into_iter().flatten().enumerate() {
            let (word, meaning) = (escaped(text(word)), marked(text(&schema["x-enum-descriptions"][i])));
            self.put(format_args!("<tr><td><code>{word}</code><td>{meaning}"));
        }
        self.put(format_args!("</table>"));
    }
}

/// A type in a few words; a named schema as a link.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        return format!("<a href=\"#{0}\">{0}</a>", escaped(name));
    }
    if let Some(several) = schema["anyOf"].as_array() {
        return several.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let mut words = match &schema["type"] {
        Value::Array(types) => types.iter().map(text).collect::<Vec<_>>().join(" or "),
        Value::String(one) => one.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "any".to_owned(),
    };
    for (name, word) in [("minimum", "≥"), ("maximum", "≤"), ("minLength", "length ≥"), ("maxLength", "length ≤")]
    {
        if let Some(bound) = schema.get(name) {
            let _ = write!(words, ", {word} {bound}");
        }
    }
    if let Some(pattern) = schema["pattern"].as_str() {
        let _ = write!(words, ", {pattern}");
    }
    let mut shown = format!("<span class=\"type\">{}</span>", escaped(&words));
    if !schema["items"].is_null() {
        let _ = write!(shown, " of {}", kind(&schema["items"]));
    }
    shown
}

/// The operation as a command to try, for a server with the default directories and port.
fn curl(method: &str, address: &str, path: &str, operation: &Value, example: &Value) -> String {
    let mut command = String::from("curl -s");
    if operation["security"].as_array().is_none_or(|none| !none.is_empty()) {
        command.push_str(" -H \"Authorization: Bearer $(cat \"${XDG_STATE_HOME:-$HOME/.local/state}/ptyd/token\")\"");
    }
    if !matches!(method, "GET" | "POST") || (method == "POST" && example.is_null()) {
        let _ = write!(command, " -X {method}");
    }
    if !example.is_null() {
        let _ = write!(command, " \\\n  -H 'Content-Type: application/json' -d '{example}'");
    }
    let path = path.replace("{sessionId}", "$SESSION").replace("{commandId}", "$COMMAND");
    let required: Vec<String> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| one["in"] == "query" && one["required"] == true)
        .map(|one| format!("{}=…", text(&one["name"])))
        .collect();
    let query = if required.is_empty() { String::new() } else { format!("?{}", required.join("&")) };
    let _ = write!(command, " \\\n  \"{address}{path}{query}\"");
    command
}

fn object(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Our own text, in which backticks mark code.
fn marked(words: &str) -> String {
    let parts = words.split('`').enumerate();
    parts.map(|(i, part)| if i % 2 == 1 { format!("<code>{}</code>", escaped(part)) } else { escaped(part) }).collect()
}
