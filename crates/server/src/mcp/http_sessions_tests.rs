//! Tests of MCP sessions over HTTP: how they begin, make room and end, without a shell or a socket.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::http::{Entrance, SESSION};
use super::test_support::{Fake, ID};
use super::{Handler, ToolSet};
use ptyd_core::action::ClientContext;
use ptyd_core::principal::Principal;

/// An entrance with so many places, and word of waits.
fn entrance(places: usize) -> (Entrance<Handler>, tokio::sync::mpsc::Receiver<String>) {
    let (server, heard) = Fake::new(|_| None);
    let handler = Handler::on(server.clone(), Principal::local(), ClientContext::default(), ToolSet::All, "");
    let conversing = handler.clone();
    let begin = move || conversing.with_a_stream();
    (Entrance::new(handler, begin, Arc::new(Semaphore::new(places)), None, server), heard)
}

async fn ask(entrance: &Entrance<Handler>, method: Method, session: Option<&str>, body: Value) -> Response {
    let request = Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json");
    let request = session.into_iter().fold(request, |request, id| request.header(SESSION, id));
    entrance.answer(request.body(Body::from(body.to_string())).expect("a request")).await
}

/// Initializes; returns the id of the MCP session, if there is one.
async fn begin(entrance: &Entrance<Handler>) -> Option<String> {
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let answer = ask(entrance, Method::POST, None, hello).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let id = answer.headers().get(SESSION).map(|id| id.to_str().expect("a text").to_owned())?;
    let said = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(ask(entrance, Method::POST, Some(&id), said).await.status(), StatusCode::ACCEPTED);
    Some(id)
}

async fn listen(entrance: &Entrance<Handler>, id: &str) -> Response {
    ask(entrance, Method::GET, Some(id), Value::Null).await
}

async fn ping(entrance: &Entrance<Handler>, id: &str) -> StatusCode {
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    let answer = ask(entrance, Method::POST, Some(id), ping).await;
    let status = answer.status();
    answer.into_body().collect().await.expect("a whole answer");
    status
}

#[tokio::test]
// promise: mcp-6
async fn the_longest_idle_session_is_dropped_and_none_with_a_listener() {
    let (entrance, _heard) = entrance(2);
    let first = begin(&entrance).await.expect("there is room");
    let second = begin(&entrance).await.expect("there is room");
    let listening = listen(&entrance, &first).await;
    assert_eq!(listening.status(), StatusCode::OK);
    let third = begin(&entrance).await.expect("the second goes for it");
    assert_eq!(ping(&entrance, &second).await, StatusCode::NOT_FOUND);
    let also_listening = listen(&entrance, &third).await;
    // A further client is served without one, and its answer says so.
    assert_eq!(begin(&entrance).await, None);
    assert_eq!((ping(&entrance, &first).await, ping(&entrance, &third).await), (StatusCode::OK, StatusCode::OK));
    drop((listening, also_listening));
    assert!(begin(&entrance).await.is_some());
}

#[tokio::test]
// promise: mcp-6
async fn an_mcp_session_expires_when_no_client_uses_it() {
    let (entrance, _heard) = entrance(2);
    let idle = begin(&entrance).await.expect("there is room");
    let used = begin(&entrance).await.expect("there is room");
    let _listening = listen(&entrance, &used).await;
    entrance.sessions.end_idle(Duration::from_secs(60)).await;
    assert_eq!(ping(&entrance, &idle).await, StatusCode::OK);
    entrance.sessions.end_idle(Duration::ZERO).await;
    assert_eq!(ping(&entrance, &idle).await, StatusCode::NOT_FOUND);
    assert_eq!(ping(&entrance, &used).await, StatusCode::OK);
}

#[tokio::test]
// promise: mcp-6
async fn a_wait_in_a_conversation_ends_with_the_stream_of_its_answer() {
    let (entrance, mut heard) = entrance(1);
    let id = begin(&entrance).await.expect("there is room");
    let arguments = json!({ "session_id": ID, "wait_for": "never" });
    let call = json!({ "jsonrpc": "2.0", "id": "w", "method": "tools/call",
        "params": { "name": "get_terminal_output", "arguments": arguments } });
    let answer = ask(&entrance, Method::POST, Some(&id), call).await;
    assert_eq!(heard.recv().await.as_deref(), Some("waiting"));
    drop(answer);
    while heard.recv().await.expect("the door is there") != "given up" {}
}
