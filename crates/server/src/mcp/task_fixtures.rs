//! The tools of the conformance suite that are tasks. The long one is a real command of a real session, so that the way
//! through the sessions is tested with it; the others ask and fail as no task of ptyd does, and exist here only.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CreateTaskResult, ErrorData,
    GetTaskResult, InputRequiredResult, JsonObject,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use super::{Handler, tasks};

/// The names of the tools.
pub(super) const TOOLS: [&str; 7] = [
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

/// The tasks that belong to no session, by id.
#[derive(Default)]
pub(super) struct TaskFixtures(Mutex<BTreeMap<String, Fixture>>);

struct Fixture {
    at: String,
    asks: BTreeMap<String, Value>,
    end: Value,
}

fn typed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the fixture is of this type")
}

fn said(text: &str, is_error: bool) -> Value {
    json!({ "resultType": "complete", "isError": is_error, "content": [{ "type": "text", "text": text }] })
}

fn question(field: &str) -> Value {
    let schema = json!({ "type": "object", "properties": { field: { "type": "boolean" } }, "required": [field] });
    json!({ "method": "elicitation/create", "params": { "mode": "form", "message": field, "requestedSchema": schema } })
}

impl Fixture {
    fn fields(&self, id: &str, result: &str) -> Value {
        let mut fields = json!({ "resultType": result, "taskId": id, "status": "working", "ttlMs": null,
            "createdAt": self.at, "lastUpdatedAt": self.at, "pollIntervalMs": 100 });
        if result == "task" {
            return fields;
        }
        let asking = || json!({ "status": "input_required", "inputRequests": self.asks });
        let state = if self.asks.is_empty() { self.end.clone() } else { asking() };
        if let (Value::Object(fields), Value::Object(state)) = (&mut fields, state) {
            fields.extend(state);
        }
        fields
    }
}

impl TaskFixtures {
    fn make(&self, asks: &[&str], end: Value) -> CallToolResponse {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let id = format!("fixture-{}", all.len());
        let asks = asks.iter().map(|ask| (format!("{ask}-1"), question(ask))).collect();
        let at = jiff::Timestamp::try_from(SystemTime::now()).unwrap_or_default().to_string();
        let made = all.entry(id.clone()).or_insert(Fixture { at, asks, end });
        CallToolResponse::Task(typed::<CreateTaskResult>(made.fields(&id, "task")))
    }

    /// Answers a call of one of the tools.
    pub(super) async fn call(
        &self,
        handler: &Handler,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.clone().unwrap_or_default();
        let given = |name: &str| arguments.get(name).cloned().unwrap_or_default();
        let completed = |text: &str, is_error| json!({ "status": "completed", "result": said(text, is_error) });
        match &*request.name {
            "greet" => {
                let hello = format!("Hello, {}!", given("name").as_str().unwrap_or_default());
                return Ok(typed::<CallToolResult>(said(&hello, false)).into());
            }
            "slow_compute" => return slow_compute(handler, given("seconds"), context).await,
            _ if !tasks::are_declared(&context) => {
                let needed = ClientCapabilities::builder().enable_tasks().build();
                return Err(ErrorData::missing_required_client_capability(needed));
            }
            "test_tool_with_task" => {
                let answers = request.input_responses.as_ref().map(|given| serde_json::to_value(given).expect("JSON"));
                let Some(answers) = answers else {
                    let asks = json!({ "resultType": "input_required", "inputRequests": { "name": question("name") } });
                    return Ok(typed::<InputRequiredResult>(asks).into());
                };
                return Ok(self.make(&[], completed(&answers.to_string(), false)));
            }
            _ => {}
        }
        Ok(match &*request.name {
            "failing_job" => self.make(&[], completed("it failed", true)),
            "confirm_delete" => self.make(&["confirm"], completed("deleted", false)),
            "multi_input" => self.make(&["name", "confirm"], completed("both", false)),
            _ => self.make(&[], json!({ "status": "failed", "error": { "code": -32603, "message": "it broke" } })),
        })
    }

    /// A task that is not a session's.
    pub(super) fn get(&self, id: &str) -> Option<GetTaskResult> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(id).map(|task| typed(task.fields(id, "complete")))
    }

    /// Takes answers; whether the task is not a session's.
    pub(super) fn update(&self, id: &str, answers: &Value) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(task) = all.get_mut(id) else { return false };
        task.asks.retain(|key, _| answers.get(key).is_none());
        true
    }

    /// Cancels a task that asks; whether it is not a session's.
    pub(super) fn cancel(&self, id: &str) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(task) = all.get_mut(id) else { return false };
        if !task.asks.is_empty() {
            (task.asks, task.end) = (BTreeMap::new(), json!({ "status": "cancelled" }));
        }
        true
    }
}

/// Sleeps in a session of its own.
async fn slow_compute(
    handler: &Handler,
    seconds: Value,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let call = async |tool: &'static str, arguments: Value| {
        let request = CallToolRequestParams::new(tool).with_arguments(typed::<JsonObject>(arguments));
        handler.call_tool(request, context.clone()).await
    };
    let started = call("start_terminal_session", json!({ "shell": "bash" })).await?;
    let CallToolResponse::Complete(CallToolResult { structured_content: Some(started), .. }) = started else {
        return Err(ErrorData::internal_error("no session was started", None));
    };
    let run = json!({ "session_id": started["session_id"], "command": format!("sleep {seconds}"), "timeout": 100 });
    call("execute_in_terminal", run).await
}
