//! The table of routes: the method, the path, the handler, and the description.

use api::ErrorCode::{
    AlreadyDecided, ApprovalNeeded, CommandNotFound, InputStalled, NameTaken, NothingRuns, OtherNode, PolicyDenied,
    RemovalContinues, ServerDraining, SessionAlive, SessionBusy, SessionDriven, SessionEnded, SessionNotReady,
    StartFailed, WouldEcho,
};
use axum::http::Method;
use axum::routing::{MethodRouter, delete, get, post, put};
use serde_json::json;

use super::operation::{Operation, Tag};
use super::state::Rest;
use super::{
    actions, approvals, audit, batch, capabilities, commands, docs, drain, events_sse, input, logins, output,
    processes, recording, search, secrets, sessions, take_over, tickets, tokens,
};

/// One line of the table.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(super) handler: MethodRouter<Rest>,
    pub(super) operation: Operation,
}

fn on_get(path: &'static str, handler: MethodRouter<Rest>, operation: Operation) -> Route {
    Route { method: Method::GET, path, handler, operation }
}

fn on_post(path: &'static str, handler: MethodRouter<Rest>, operation: Operation) -> Route {
    Route { method: Method::POST, path, handler, operation }
}

fn on_put(path: &'static str, handler: MethodRouter<Rest>, operation: Operation) -> Route {
    Route { method: Method::PUT, path, handler, operation }
}

fn on_delete(path: &'static str, handler: MethodRouter<Rest>, operation: Operation) -> Route {
    Route { method: Method::DELETE, path, handler, operation }
}

/// Every REST route. The documentation and the tests read this table, too, so no route can exist without them.
pub(crate) fn routes() -> Vec<Route> {
    [of_sessions(), of_commands(), of_input(), of_output(), of_the_server()].into_iter().flatten().collect()
}

fn of_sessions() -> Vec<Route> {
    let say = |id, summary| Operation::new(id, Tag::Sessions, summary);
    vec![
        on_post(
            "/terminals",
            post(sessions::create),
            say("createSession", "Start a session")
                .details(
                    "Answers at the first prompt, or after 1 s with the status `creating`. Everything has a default.",
                )
                .body::<api::CreateRequest>(json!({ "name": "build", "cwd": "/tmp" }))
                .keyed()
                .json::<api::TerminalSession>(201, "The session.")
                .with("Location", "The session's path.")
                .refuses(&[NameTaken, StartFailed, PolicyDenied, ApprovalNeeded, ServerDraining, OtherNode]),
        ),
        on_get(
            "/terminals",
            get(sessions::list),
            say("listSessions", "List sessions")
                .details("Lists ended sessions only if `status` asks for them.")
                .query::<api::SessionListQuery>()
                .json::<api::SessionList>(200, "A page of sessions, and how many there are in all."),
        ),
        on_get(
            "/terminals/{session}",
            get(sessions::show),
            say("getSession", "Get a session")
                .details("An ended session is included until its folder is removed.")
                .json::<api::TerminalSession>(200, "The session with the resource usage of its processes."),
        ),
        on_post(
            "/terminals/{session}/rename",
            post(sessions::rename),
            say("renameSession", "Rename a session")
                .details("The name has to differ from those of the owner's other live sessions.")
                .body::<api::RenameRequest>(json!({ "name": "web" }))
                .needed()
                .json::<api::TerminalSession>(200, "The session with its new name.")
                .refuses(&[NameTaken, SessionEnded]),
        ),
        on_get(
            "/terminals/{session}/environment",
            get(sessions::environment),
            say("getEnvironment", "Get the environment of a session's shell")
                .details("Also works for ended sessions. It needs a token of scope `write`, like running `env` there.")
                .json::<api::SessionEnvironment>(200, "Profile, shell, mask, variables and toolchains."),
        ),
        on_delete(
            "/terminals/{session}",
            delete(sessions::terminate),
            say("terminateSession", "End a session")
                .details(
                    "Sends HUP, then TERM, then KILL, each after a wait, and answers when no process of the session \
                     is left. Every open wait on the session returns. Ending a session again is not an error. \
                     `purge` also removes all of its files: of an ended session, or with `force` of any. The \
                     parameters are in the query or in a JSON body, not in both.",
                )
                .query::<api::TerminateQuery>()
                .body::<api::TerminateQuery>(json!({ "force": true }))
                .json::<api::Terminated>(200, "The ended session, and the number of processes ended with it.")
                .refuses(&[SessionAlive, RemovalContinues]),
        ),
        on_post(
            "/terminals/{session}/resize",
            post(sessions::resize),
            say("resizeSession", "Resize a terminal")
                .body::<api::Dimensions>(json!({ "cols": 100, "rows": 30 }))
                .json::<api::Resized>(200, "The session with its new size.")
                .refuses(&[SessionEnded]),
        ),
    ]
}

fn of_commands() -> Vec<Route> {
    let say = |id, summary| Operation::new(id, Tag::Commands, summary);
    vec![
        on_post(
            "/terminals/{session}/execute",
            post(commands::execute),
            say("executeCommand", "Run a command")
                .of_client()
                .details(
                    "The text is data and is not typed. A timeout ends the wait and never the command; `getCommand` \
                     returns the same object later.",
                )
                .body::<api::ExecuteRequest>(json!({ "command": "uname -s", "timeout": 10 }))
                .keyed()
                .json::<api::CommandExecution>(200, "The command ended within the wait.")
                .json::<api::CommandExecution>(202, "The command is still running.")
                .refuses(&[SessionBusy, SessionNotReady, SessionDriven, SessionEnded, PolicyDenied, ApprovalNeeded]),
        ),
        on_get(
            "/terminals/{session}/commands",
            get(commands::list),
            say("listCommands", "List a session's commands")
                .query::<api::CommandListQuery>()
                .json::<api::CommandList>(200, "A page of commands without output, oldest first."),
        ),
        on_get(
            "/terminals/{session}/commands/{command}",
            get(commands::show),
            say("getCommand", "Get a command")
                .query::<api::CommandQuery>()
                .json::<api::CommandExecution>(200, "The command with its output."),
        ),
    ]
}

fn of_input() -> Vec<Route> {
    let say = |id, summary| Operation::new(id, Tag::Input, summary);
    vec![
        on_post(
            "/terminals/{session}/input",
            post(input::input),
            say("sendInput", "Send input")
                .of_client()
                .details("Give exactly one of `input`, `inputBase64` and `keys`.")
                .body::<api::InputRequest>(json!({ "keys": ["Enter"] }))
                .needed()
                .keyed()
                .json::<api::WaitAnswer>(200, "The number of accepted bytes, and the result of the wait.")
                .refuses(&[
                    InputStalled,
                    WouldEcho,
                    SessionBusy,
                    SessionDriven,
                    SessionEnded,
                    PolicyDenied,
                    ApprovalNeeded,
                ]),
        ),
        on_post(
            "/terminals/{session}/signal",
            post(input::signal),
            say("sendSignal", "Send a signal")
                .details("A process is signalled only when it belongs to the session.")
                .body::<api::SignalRequest>(json!({ "signal": "INT", "target": "foreground" }))
                .json::<api::TerminalSession>(200, "The session.")
                .refuses(&[NothingRuns, SessionEnded]),
        ),
        on_get(
            "/terminals/{session}/signals",
            get(processes::signals),
            say("listSignals", "List sent signals")
                .details("With the processes that received them, and their states now; also for ended sessions.")
                .json::<api::SignalList>(200, "The newest signals, oldest first."),
        ),
        on_get(
            "/terminals/{session}/processes",
            get(processes::list),
            say("listProcesses", "List a session's processes")
                .details("Percentages count from the previous request of this list.")
                .json::<api::ProcessList>(200, "The processes, parents before children."),
        ),
        on_post(
            "/terminals/{session}/actions/{action}",
            post(actions::perform),
            say("doAction", "Perform a named action")
                .of_client()
                .details(
                    "A session's actions are defined when it is created. The answer does not wait for their result.",
                )
                .keyed()
                .json::<api::WaitAnswer>(200, "The session's state and its new output so far.")
                .refuses(&[
                    InputStalled,
                    NothingRuns,
                    SessionBusy,
                    SessionNotReady,
                    SessionDriven,
                    SessionEnded,
                    PolicyDenied,
                    ApprovalNeeded,
                ]),
        ),
        on_post(
            "/terminals/{session}/take",
            post(take_over::take),
            say("takeKeyboard", "Take the keyboard")
                .of_client()
                .details(
                    "Until the client returns the keyboard, or its time is up, nobody else can run or type anything in \
                     the session. Others can still send signals, resize the session and end it. Running commands \
                     continue. The request needs `Ptyd-Client`. Restricted tokens, MCP tools and programs in a session \
                     cannot take a keyboard. After a restart of the server, nobody has it.",
                )
                .body::<api::TakeRequest>(json!({ "for": 60 }))
                .json::<api::TerminalSession>(
                    200,
                    "The session with its driver; with `hold`, the answer comes when \
                 the take-over has ended.",
                )
                .refuses(&[SessionDriven, SessionEnded]),
        ),
        on_delete(
            "/terminals/{session}/take",
            delete(take_over::give_back),
            say("returnKeyboard", "Return the keyboard")
                .of_client()
                .details(
                    "It is not an error if nobody has the keyboard. With `force`, a person takes it away from \
                 another driver.",
                )
                .query::<api::ReturnQuery>()
                .json::<api::TerminalSession>(200, "The session.")
                .refuses(&[SessionDriven, SessionEnded]),
        ),
        on_post(
            "/terminals/{session}/wait",
            post(input::wait),
            say("wait", "Wait for something")
                .of_client()
                .details(
                    "The first condition that holds ends the wait; the end of the command or of the session \
                    also ends it.",
                )
                .body::<api::WaitRequest>(json!({ "quietMs": 200, "timeout": 10 }))
                .json::<api::WaitAnswer>(200, "The condition that ended the wait, and the output during it."),
        ),
    ]
}

fn of_output() -> Vec<Route> {
    let say = |id, summary| Operation::new(id, Tag::Output, summary);
    vec![
        on_get(
            "/terminals/{session}/output",
            get(output::output),
            say("getOutput", "Read output")
                .of_client()
                .details(
                    "Ask again with `since=o:<nextOffset>` and `waitMs` to follow, or use `streamOutput`. stdout and stderr are \
                     one stream.",
                )
                .query::<api::OutputQuery>()
                .json::<api::Output>(200, "Output from a position on.")
                .refuses(&[CommandNotFound, SessionEnded]),
        ),
        on_get(
            "/terminals/{session}/output/stream",
            get(output::stream),
            say("streamOutput", "Follow output")
                .of_client()
                .details(
                    "Server-sent events: each is an answer of `getOutput`, and its id is the offset to continue at. The event \
                     `end` is the last.",
                )
                .query::<api::OutputStreamQuery>()
                .resumed()
                .events::<api::Output>(200, "Output from a position on, as it comes.")
                .empty(204, "The client has received all output, and no more will come."),
        ),
        on_get(
            "/terminals/{session}/screen",
            get(output::screen),
            say("getScreen", "Get the screen")
                .of_client()
                .details("The screen of a live session; the output of an ended one stays readable.")
                .json::<api::Screen>(200, "The screen.")
                .refuses(&[SessionEnded]),
        ),
        on_get(
            "/terminals/{session}/search",
            get(search::search),
            say("searchOutput", "Search output")
                .of_client()
                .query::<api::SearchQuery>()
                .json::<api::SearchAnswer>(200, "The matching lines, with their positions.")
                .refuses(&[CommandNotFound]),
        ),
        on_get(
            "/terminals/{session}/recording",
            get(recording::recording),
            say("getRecording", "Take a recording")
                .query::<api::RecordingQuery>()
                .text(200, "An asciicast of the session up to now.", "application/x-asciicast"),
        ),
    ]
}

fn of_the_server() -> Vec<Route> {
    let say = |id, summary| Operation::new(id, Tag::Server, summary);
    vec![
        on_post(
            batch::PATH,
            post(batch::batch),
            say("runBatch", "Perform several operations")
                .of_client()
                .details("They are performed in order; each returns the status that it would return on its own.")
                .body::<api::BatchRequest>(json!({ "operations": [{ "method": "GET", "path": "/terminals?limit=1" }] }))
                .json::<api::BatchAnswer>(200, "The answers, in the same order."),
        ),
        on_post(
            "/tickets",
            post(tickets::create),
            say("createTicket", "Get a ticket for a browser")
                .details(
                    "The URL of a socket or a page carries the ticket instead of the token, because a browser cannot send headers with it. Give exactly one of `session` and `page`.",
                )
                .body::<api::TicketRequest>(json!({ "page": "docs" }))
                .needed()
                .json::<api::Ticket>(201, "A ticket, which works once within 30 s; for the page `sessions`, within 5 minutes.")
                .refuses(&[api::ErrorCode::SessionNotFound]),
        ),
        on_post(
            logins::PATH,
            post(logins::open),
            say("logIn", "Log a browser in to the page of sessions")
                .details(
                    "The credential is a token, or the ticket of a link (`createTicket` with the page `sessions`), as the \
                     bearer token. Afterwards, the page's own requests send the answer's cookie, and its `key` in the \
                      header `Ptyd-Login`, instead of the credential.",
                )
                .json::<api::Login>(201, "The key. The log-in ends after 12 hours, with its token, or with the server.")
                .with("Set-Cookie", "The cookie, which no script can read."),
        ),
        on_delete(
            logins::PATH,
            delete(logins::close),
            say("logOut", "End a browser's log-in").empty(204, "The cookie and its key are not valid any more."),
        ),
        on_post(
            "/tokens",
            post(tokens::create),
            say("createToken", "Make a named token")
                .details("Only an admin makes, lists and revokes tokens. The token is shown only now.")
                .body::<api::TokenRequest>(json!({ "name": "agent-1", "scope": "write" }))
                .needed()
                .json::<api::NewToken>(201, "The token."),
        ),
        on_get(
            "/tokens",
            get(tokens::list),
            say("listTokens", "List the named tokens").json::<api::TokenList>(200, "The tokens, by name."),
        ),
        on_delete(
            "/tokens/{token}",
            delete(tokens::revoke),
            say("revokeToken", "Revoke a token")
                .details("Its open streams and waits end at once; the sessions that it started continue.")
                .json::<api::TokenInfo>(200, "The revoked token."),
        ),
        on_get(
            "/secrets",
            get(secrets::list),
            say("listSecrets", "List the named secrets")
                .details("Only an admin can list, set and remove secrets; programs in a session cannot. No answer has \
                 a secret's value.")
                .json::<api::SecretList>(200, "The secrets, by name."),
        ),
        on_put(
            "/secrets/{secret}",
            put(secrets::set),
            say("setSecret", "Set a named secret")
                .details(
                    "New sessions of profiles that name the secret get this value, and ptyd masks it in everything that it returns about them. Live sessions keep their value.",
                )
                .body::<api::SecretRequest>(json!({ "value": "correct horse battery staple" }))
                .needed()
                .json::<api::NamedSecret>(200, "The secret, without its value."),
        ),
        on_delete(
            "/secrets/{secret}",
            delete(secrets::remove),
            say("removeSecret", "Remove a named secret")
                .details("Sessions that have the secret keep it, and ptyd still masks it there.")
                .json::<api::NamedSecret>(200, "The removed secret."),
        ),
        on_get(
            "/approvals",
            get(approvals::list),
            say("listApprovals", "List the requests that policies leave to a person")
                .details("Returns the approvals of the caller's sessions; an admin gets all. docs/policy.md says \
                    how to use them.")
                .json::<api::ApprovalList>(200, "The approvals, oldest first."),
        ),
        on_post(
            "/approvals/{approval}",
            post(approvals::decide),
            say("decideApproval", "Allow a request, once or always, or deny it")
                .details("Only admins can decide, and nobody decides their own request. `always` also makes a \
                    rule that allows the command.")
                .body::<api::DecisionRequest>(json!({ "decision": "allow" }))
                .needed()
                .refuses(&[AlreadyDecided])
                .json::<api::Approval>(200, "The approval."),
        ),
        on_get(
            "/capabilities",
            get(capabilities::show),
            say("getCapabilities", "Get the capabilities of this machine")
                .details("If a confinement is not available, a session that requests it does not start; it never \
                    starts with a weaker one.")
                .json::<api::Capabilities>(200, "The capabilities."),
        ),
        on_get(
            "/audit",
            get(audit::list),
            say("listAudit", "Read the audit log")
                .details("Only admins can read it. It returns the newest lines first; docs/audit.md describes their \
                 fields.")
                .query::<api::AuditQuery>()
                .json::<api::AuditList>(200, "A page of lines."),
        ),
        on_get(
            "/drain",
            get(drain::show),
            say("getDrain", "Show whether the server takes new sessions")
                .details("With `sessions` and `waitMs`, it answers when the number of sessions has changed.")
                .query::<api::DrainQuery>()
                .json::<api::Drain>(200, "The state, and the number of live sessions."),
        ),
        on_put(
            "/drain",
            put(drain::begin),
            say("beginDrain", "Refuse new sessions")
                .details(
                    "For admins only. Live sessions are not affected, and `/readyz` returns 503. The next server \
                     accepts sessions again.",
                )
                .json::<api::Drain>(200, "The state, and the number of live sessions."),
        ),
        on_delete(
            "/drain",
            delete(drain::end),
            say("endDrain", "Accept new sessions again")
                .details("For admins only.")
                .json::<api::Drain>(200, "The state, and the number of live sessions."),
        ),
        on_get(
            events_sse::PATH,
            get(events_sse::follow),
            say("followEvents", "Follow the events of all sessions")
                .details(
                    "Server-sent events of all sessions that the caller may see, from now on. The data of each is \
                     an `Event`; its id is the position after it.",
                )
                .resumed_at_a_place()
                .events::<api::Event>(200, "Events, for as long as the connection lasts."),
        ),
        on_get(
            docs::DOCUMENT,
            get(docs::document),
            say("getOpenapi", "This document").text(200, "OpenAPI 3.1.", "application/json"),
        ),
        on_get(
            docs::PAGE,
            get(docs::page),
            say("getDocs", "This document as a page")
                .details("A browser opens it with `?ticket=…`, where the ticket is for the page `docs`.")
                .text(200, "A page that loads nothing else.", "text/html; charset=utf-8"),
        ),
    ]
}
