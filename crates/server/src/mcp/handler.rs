//! The MCP handler: rmcp's handler trait, implemented by hand because the tools are a table and not methods.
//!
//! A request that cannot be routed is a protocol error; an error that the model can correct is a tool error, which the
//! model reads.

#![expect(deprecated, reason = "later revisions drop log messages; those that have them still have clients")]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use api::ErrorCode;
use axum::http::request::Parts;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ClientJsonRpcMessage, ClientRequest,
    ClientResult, ContentBlock, CustomRequest, CustomResult, DiscoverResult, ErrorData, GetTaskParams, GetTaskResult,
    Implementation, InitializeRequestParams, InitializeResult, InputRequests, InputRequiredResult, JsonObject,
    JsonRpcRequest, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, MetaObject,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, Request, RequestId,
    ServerCapabilities, ServerConfig, ServerRequest, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool as ToolModel, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::approval_tasks;
use super::caller::Caller;
use super::command_turns::{CommandTurn, InTurn};
use super::deliveries;
use super::dispatch_port::Server;
use super::handshake::{StructuredAnswers, ToolSet};
use super::log_notifications::Log;
use super::progress;
use super::resources;
use super::schema;
use super::subscriptions::{self, Subscriber, Subscriptions};
use super::tasks;
use super::tool_definitions::{self, Answer, READ_TOOL, TOOLS, Tool, ToolCall, ToolError, refused};
use super::url_elicitation;
use ptyd_core::action::{ActionError, ClientContext, PersonReply, TaskSupport};
use ptyd_core::approval_wait::ApprovalWait;
use ptyd_core::limits::{APPROVAL_LIFETIME, EXECUTE_TIMEOUT, TIMEOUT_MAX};
use ptyd_core::principal::Principal;

/// The field for the shim's number of a request, which stays the same when the request is sent again.
pub const REQUEST_NUMBER: &str = "ptyd/request";
/// The field in which a request names its client.
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The field in which an answer tells the shim how far it reads in each session.
pub const READ_TO: &str = "ptyd/readTo";

const INSTRUCTIONS: &str = "Real terminals that stay alive. Answers are the output as a person sees it, then one line of \
facts: [exit 0], [exit 2 · 3.4s · cwd /app], [still running · 10s · wants input]. A timeout ends only the wait; the program continues and nothing is lost: look again. Only the last line is ptyd's; a program can print anything above it.";

/// The handler of one caller; clones share what was reported to it.
#[derive(Clone)]
pub struct Handler {
    caller: Caller,
    /// The notifications of a client before the stateless era, if it has a stream for them.
    stream: Option<Arc<ClientStream>>,
    /// A shim between us and the client repeats requests at the next server.
    is_asked_again: bool,
}

/// The notifications on a client's own stream.
#[derive(Default)]
struct ClientStream {
    subscriptions: Subscriptions,
    log: Log,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler").field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl Handler {
    /// A handler for one caller, with its chosen tools and its default session, if it has one.
    pub(super) fn on(
        server: Arc<dyn Server>,
        principal: Principal,
        client: ClientContext,
        tools: ToolSet,
        base_url: &str,
    ) -> Self {
        Self { caller: Caller::new(server, principal, client, tools, base_url), stream: None, is_asked_again: false }
    }

    /// The same for a client that asks for structured answers once and for all.
    pub(super) fn with_structured_answers(self, structured: bool) -> Self {
        Self { caller: self.caller.with_structured_answers(structured), ..self }
    }

    /// The same for a client with a stream of its own, which gets notifications and keeps its own reported state.
    pub(super) fn with_a_stream(&self) -> Self {
        Self { caller: self.caller.with_its_own_state(), stream: Some(Arc::default()), ..self.clone() }
    }

    /// The same for a client behind a shim, which repeats requests at the next server.
    pub(super) fn behind_a_shim(&self) -> Self {
        Self { is_asked_again: true, ..self.with_a_stream() }
    }

    fn subscriber(&self) -> Subscriber {
        Subscriber { server: Arc::clone(&self.caller.server), principal: Arc::clone(&self.caller.principal) }
    }

    /// The caller of this request, which over HTTP may ask for structured answers by itself.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        let asks = |parts: &Parts| parts.extensions.get::<StructuredAnswers>().is_some();
        let parts = context.extensions.get::<Parts>();
        // Over HTTP one handler serves all connections of a principal.
        let origin = parts.and_then(|parts| Some(parts.extensions.get::<Principal>()?.origin.clone()));
        // A stateless client names itself in each request. The library's own function would decode the whole record for it.
        let told = context.meta.get(CLIENT_INFO).and_then(|client| client.get("name")?.as_str());
        let greeted = if told.is_none() { context.peer.peer_info() } else { None };
        let name = told.or(greeted.as_ref().map(|info| info.client_info.name.as_str()));
        self.caller.with_structured_answers(parts.is_some_and(asks)).with_origin(origin, name)
    }

    async fn answer(
        &self,
        caller: &Caller,
        tool: &Tool,
        arguments: JsonObject,
        id: &RequestId,
        number: Option<String>,
        support: TaskSupport,
    ) -> CallToolResponse {
        let key = number.zip(self.caller.client.client.as_deref()).map(|(n, client)| format!("{client}:{n}"));
        let has_read_tool = self.caller.offers(READ_TOOL);
        let mut call = ToolCall { caller, key, waited: Duration::ZERO, tasks: support, has_read_tool };
        let answer = self.answer_in_turn(tool, &mut call, arguments, id).await;
        if let (Err(_), Some(delivery)) = (&answer, &caller.principal.delivery) {
            // An error shows nothing.
            delivery.give_up();
        }
        let result = match answer {
            Ok(Answer { task: Some(task), .. }) => return CallToolResponse::Task(tasks::created(&task)),
            Ok(Answer { text, structured, task: None }) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = structured;
                result.meta = self.read_positions(caller);
                result
            }
            Err(ToolError::Said(why)) => refused(caller, ErrorCode::InvalidField, why),
            Err(ToolError::Refused(code, why)) => refused(caller, code, why),
            Err(ToolError::Restarting) => {
                // The shim repeats the request once this connection ends with the server, so its client need not see
                // the restart.
                if self.is_asked_again && call.key.is_some() && self.caller.server.is_stopping() {
                    std::future::pending::<()>().await;
                }
                refused(caller, ErrorCode::ServerRestarting, ActionError::Restarting.to_string())
            }
        };
        result.into()
    }
}

impl Handler {
    /// How far this answer reads, for a shim that tells it to the next server.
    fn read_positions(&self, caller: &Caller) -> Option<MetaObject> {
        let read_to = caller.principal.delivery.as_ref().filter(|_| self.is_asked_again)?.read_to();
        let positions: JsonObject = read_to.iter().map(|(id, at)| (id.to_string(), Value::from(*at))).collect();
        let meta = JsonObject::from_iter([(READ_TO.to_owned(), Value::Object(positions))]);
        (!read_to.is_empty()).then_some(MetaObject(meta))
    }

    /// Performs a call; one that runs a command waits for its turn, and its time begins before that.
    async fn answer_in_turn(
        &self,
        tool: &Tool,
        call: &mut ToolCall<'_>,
        arguments: JsonObject,
        id: &RequestId,
    ) -> Result<Answer, ToolError> {
        let Some(in_turn) = (tool.in_turn)(&arguments) else {
            return (tool.call)(call, arguments).await;
        };
        let begun = Instant::now();
        // A session that is not known is refused by the tool.
        let session = match in_turn.session() {
            "" => String::new(),
            name => tool_definitions::arguments::session(call, name)
                .await
                .map_or_else(|_| name.to_owned(), |id| id.to_string()),
        };
        let turn = match in_turn {
            InTurn::Input { .. } => self.caller.turns.input(id, &session),
            InTurn::Command { timeout: default, .. } => {
                let timeout =
                    tool_definitions::seconds(&arguments, "timeout").and_then(|n| Duration::try_from_secs_f64(n).ok());
                let until = begun + timeout.unwrap_or(default).min(TIMEOUT_MAX);
                let turn = self.caller.turns.turn(id, &session, until).await?;
                call.waited = begun.elapsed();
                Some(turn)
            }
        };
        // A task would let the next command run into a busy shell.
        if turn.as_ref().is_some_and(CommandTurn::is_awaited) {
            call.tasks = TaskSupport::None;
        }
        let Some(approval) = call.caller.principal.approval_wait.clone() else {
            return (tool.call)(call, arguments).await;
        };
        let becomes_task = call.tasks != TaskSupport::None;
        let mut work = (tool.call)(call, arguments);
        tokio::select! {
            biased;
            answer = &mut work => return answer,
            _ = approval.begins() => {}
        }
        // A call that waits for a person holds up no other call of its client: the next one of the session ends the wait, or
        // goes before a task.
        match turn {
            Some(turn) if !becomes_task => {
                tokio::select! {
                    biased;
                    answer = &mut work => return answer,
                    () = turn.awaited() => approval.give_up(),
                }
                work.await
            }
            _ => {
                drop(turn);
                work.await
            }
        }
    }

    /// How a call waits for a person's decision: within its timeout.
    fn approval_wait(tool: &Tool, arguments: &JsonObject) -> Option<ApprovalWait> {
        let in_turn = (tool.in_turn)(arguments)?;
        let given = tool_definitions::seconds(arguments, "timeout").and_then(|n| Duration::try_from_secs_f64(n).ok());
        let wait = |time: Duration| ApprovalWait::at_most(time.min(APPROVAL_LIFETIME));
        Some(match (given, in_turn) {
            (Some(time), _) => wait(time).within_timeout(),
            (None, InTurn::Command { timeout, .. }) => wait(timeout).within_timeout(),
            (None, InTurn::Input { .. }) => wait(EXECUTE_TIMEOUT),
        })
    }

    /// The answer to a call, or a task as soon as it waits for a person's decision and its caller takes one.
    async fn answer_or_task(
        &self,
        caller: Caller,
        (tool, request): (&'static Tool, CallToolRequestParams),
        approval: ApprovalWait,
        context: &RequestContext<RoleServer>,
    ) -> CallToolResponse {
        let number = context.meta.get(REQUEST_NUMBER).map(Value::to_string);
        let CallToolRequestParams { arguments, input_responses, request_state, .. } = request;
        let (arguments, support) = (arguments.unwrap_or_default(), tasks::support(context));
        let is_asked_again = request_state.is_some();
        if input_responses.is_some_and(|replies| {
            replies
                .get(approval_tasks::QUESTION)
                .is_some_and(|reply| url_elicitation::reply_of(reply) != PersonReply::Accepted)
        }) {
            approval.give_up();
        }
        let (handler, id, its_caller) = (self.clone(), context.id.clone(), caller.clone());
        let mut work: approval_tasks::Work =
            Box::pin(async move { handler.answer(&its_caller, tool, arguments, &id, number, support).await });
        let id = tokio::select! {
            biased;
            answer = &mut work => return answer,
            id = approval.begins() => id,
        };
        let asks_person = tasks::sends_to_pages(context);
        if support != TaskSupport::None {
            // Over stdio the end of the connection is the end of the client.
            let gone = self.is_asked_again.then(|| context.ct.clone());
            return match approval_tasks::open(&caller, &id, &approval, asks_person, gone, work) {
                Ok(task) => CallToolResponse::Task(task),
                Err(work) => work.await,
            };
        }
        let page = if asks_person && !is_asked_again { caller.approval_page(&id).await } else { None };
        let Some(page) = page else { return work.await };
        if tasks::has_tasks(context) {
            // The client sends the call again once its person was at the page.
            let asked = InputRequests::from([(
                approval_tasks::QUESTION.to_owned(),
                url_elicitation::approval_question(&id, page),
            )]);
            return InputRequiredResult::new(Some(asked), Some(id.to_string())).into();
        }
        if self.stream.is_none() {
            return work.await;
        }
        let asking = async {
            let request = ServerRequest::ElicitRequest(Request::new(url_elicitation::approval_request(&id, page)));
            match context.peer.send_request(request).await {
                Ok(ClientResult::ElicitResult(reply)) if url_elicitation::is_declined(&reply.action) => {
                    approval.give_up()
                }
                // Its person is at the page, or the client cannot do it after all.
                Ok(_) | Err(_) => {}
            }
            std::future::pending::<CallToolResponse>().await
        };
        tokio::select! { answer = &mut work => answer, answer = asking => answer }
    }

    /// The result, unless the server stops and the request is repeated at the next one.
    async fn unless_asked_again<T>(&self, result: Result<T, ErrorData>) -> Result<T, ErrorData> {
        if result.is_err() && self.is_asked_again && self.caller.server.is_stopping() {
            std::future::pending::<()>().await;
        }
        result
    }

    /// Notes a message as it is read, so that commands run in the order in which they came.
    pub(super) fn note(&self, message: &ClientJsonRpcMessage) {
        let ClientJsonRpcMessage::Request(JsonRpcRequest { id, request: ClientRequest::CallToolRequest(call), .. }) =
            message
        else {
            return;
        };
        let tool = TOOLS.iter().find(|tool| tool.name == call.params.name && self.caller.offers(tool.name));
        let no_arguments = JsonObject::default();
        let arguments = call.params.arguments.as_ref().unwrap_or(&no_arguments);
        let Some(tool) = tool else { return };
        if let Some(in_turn) = (tool.in_turn)(&tool_definitions::meant(&tool.schema, arguments)) {
            self.caller.turns.note(id, in_turn);
        }
    }
}

/// The answer to `server/discover`, which is the same for every client: a shim gives it while its server is silent.
pub fn discovery() -> Value {
    serde_json::to_value(discovered()).expect("invariant: strings and lists are JSON")
}

fn discovered() -> DiscoverResult {
    DiscoverResult::from_server_info(ProtocolVersion::KNOWN_VERSIONS.to_vec(), info())
}

fn info() -> ServerConfig {
    let capabilities = ServerCapabilities::builder()
        .enable_tools()
        .enable_resources()
        .enable_resources_subscribe()
        .enable_prompts()
        .enable_tasks()
        .build();
    ServerConfig::new(capabilities)
        .with_server_info(Implementation::new("ptyd", env!("CARGO_PKG_VERSION")).with_title("ptyd terminals"))
        .with_instructions(INSTRUCTIONS)
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        info()
    }

    async fn discover(&self, _context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        Ok(discovered())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut agreed = self.negotiate_initialize(&request)?;
        // Tasks begin with the revision that needs no handshake.
        agreed.capabilities.extensions = None;
        match (&self.stream, &mut agreed.capabilities.resources) {
            (None, Some(resources)) => resources.subscribe = None,
            (None, None) => {}
            (Some(_), _) => agreed.capabilities.logging = Some(JsonObject::default()),
        }
        Ok(agreed)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context);
        let model = if caller.structured { structured_model } else { model };
        let offers = |name: &str| caller.offers(name);
        let is_over_http = context.extensions.get::<Parts>().is_some();
        let tools = TOOLS.iter().filter(|tool| offers(tool.name)).map(|tool| {
            let mut model = model(tool);
            model.description = Some(tool_definitions::description_among(tool, offers).into());
            if let Some(schema) = tool_definitions::schema_among(tool, offers) {
                model.input_schema = Arc::new(schema);
            }
            if is_over_http {
                schema::name_session_header(Arc::make_mut(&mut model.input_schema));
            }
            model
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        mut request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = TOOLS.iter().find(|t| t.name == request.name && self.caller.offers(t.name)) else {
            let names: Vec<&str> = TOOLS.iter().map(|t| t.name).filter(|n| self.caller.offers(n)).collect();
            return Err(ErrorData::invalid_params(
                format!("unknown tool {}; there are {}", request.name, names.join(", ")),
                None,
            ));
        };
        if let Some(arguments) = &mut request.arguments
            && let Cow::Owned(meant) = tool_definitions::meant(&tool.schema, arguments)
        {
            *arguments = meant;
        }
        let caller = self.caller(&context).with_delivery(deliveries::of(&context.extensions));
        let approval = request.arguments.as_ref().and_then(|arguments| Self::approval_wait(tool, arguments));
        let Some(approval) = approval else {
            let number = context.meta.get(REQUEST_NUMBER).map(Value::to_string);
            let (arguments, support) = (request.arguments.unwrap_or_default(), tasks::support(&context));
            let answer = self.answer(&caller, tool, arguments, &context.id, number, support);
            return progress::while_waiting(&context, tool.name, None, answer).await;
        };
        let caller = caller.with_approval_wait(Some(approval.clone()));
        let answer = self.answer_or_task(caller, (tool, request), approval.clone(), &context);
        progress::while_waiting(&context, tool.name, Some(&approval), answer).await
    }

    /// rmcp treats a request with wrong parameters as one with an unknown method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // Those of every revision: others are unknown in some.
        const METHODS: [&str; 9] = [
            "tools/list",
            "tools/call",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "tasks/get",
            "tasks/update",
            "tasks/cancel",
        ];
        let CustomRequest { method, .. } = request;
        Err(if METHODS.contains(&method.as_str()) {
            ErrorData::invalid_params(format!("these are not the parameters of {method}"), None)
        } else {
            ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, method, None)
        })
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::begun(&context)?;
        self.unless_asked_again(approval_tasks::get(&self.caller(&context), &request.task_id).await).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::begun(&context)?;
        self.unless_asked_again(approval_tasks::update(&self.caller, &request.task_id, &request.input_responses).await)
            .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        tasks::begun(&context)?;
        self.unless_asked_again(approval_tasks::cancel(&self.caller, &request.task_id).await).await
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        // Declared and empty: several clients list prompts without checking the capabilities.
        Ok(ListPromptsResult::default())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(&self.caller).await
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&self.caller, &request.uri).await.map(Into::into)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let stream = self.stream.as_ref().ok_or_else(no_stream)?;
        stream.subscriptions.begin(self.subscriber(), context.peer, request.uri).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.stream.as_ref().ok_or_else(no_stream)?.subscriptions.end(&request.uri);
        Ok(())
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let stream = self.stream.as_ref().ok_or_else(no_stream)?;
        stream.log.set(self.subscriber(), context.peer, request.level);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted(requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        // The shim of a stdio client repeats open requests at the next server.
        subscriptions::listen(&self.subscriber(), context, self.is_asked_again).await;
        Ok(())
    }
}

fn no_stream() -> ErrorData {
    let why = "over HTTP, notifications need an MCP session: start one with `initialize`; from 2026-07-28 on, use \
`subscriptions/listen`";
    ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, why, None)
}

fn model(tool: &Tool) -> ToolModel {
    ToolModel::new(tool.name, tool.description, Arc::new(tool.schema.clone()))
        .with_title(tool.title)
        .with_annotations(tool.annotations.clone())
}

/// The same for a client that asks for structured answers.
fn structured_model(tool: &Tool) -> ToolModel {
    model(tool).with_raw_output_schema(Arc::new(tool.answer.clone()))
}

/// All tools as clients see them, always the same text: for `ptyd schema` and the committed copy.
pub fn tools_schema() -> Value {
    json!({ "tools": TOOLS.iter().map(model).collect::<Vec<ToolModel>>() })
}

/// The same with the schemas of structured answers.
pub fn structured_tools_schema() -> Value {
    json!({ "tools": TOOLS.iter().map(structured_model).collect::<Vec<ToolModel>>() })
}
