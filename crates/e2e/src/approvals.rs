//! Requests that wait for a person's decision.

use std::sync::Arc;

use api::{Approval, ApprovalState, CommandExecution, CreateRequest, ExecuteRequest, TokenRequest, TokenScope};
use client::{Client, ClientError};

use crate::policy::ask;
use crate::{PATIENCE, Server, Session, eventually};

/// A request for a token of scope `write`.
pub fn token(name: &str) -> TokenRequest {
    let name = name.to_owned();
    TokenRequest { name, scope: TokenScope::Write, ..TokenRequest::default() }
}

/// A token of scope `write`, whose requests the owner decides on.
pub async fn bot(server: &Server) -> Arc<Client> {
    Arc::new(Client::tcp(server.address(), server.client().make_token(&token("bot")).await.expect("made").token))
}

/// A new session of this client.
pub async fn session_of(client: &Arc<Client>) -> Session {
    let session = client.create(&CreateRequest::default(), None).await.expect("started");
    Session::new(Arc::clone(client), session.id)
}

/// A command that waits for a person's decision.
pub fn waiting(command: &str) -> ExecuteRequest {
    ExecuteRequest { approval_timeout: Some(PATIENCE.as_secs_f64()), ..ask(command) }
}

/// Begins a request in a task of its own.
pub fn begun(
    client: &Arc<Client>,
    session: &Session,
    request: ExecuteRequest,
) -> tokio::task::JoinHandle<Result<CommandExecution, ClientError>> {
    let session = Session::new(Arc::clone(client), session.id.clone());
    tokio::spawn(async move { session.try_run(&request).await })
}

/// The approval that a request waits for. The follower of the events would block the thread that the request needs.
pub async fn asked(server: &Server) -> Approval {
    eventually("a person is asked", async || {
        let all = server.client().approvals().await.expect("a list").approvals;
        all.into_iter().find(|one| one.state == ApprovalState::Pending)
    })
    .await
}
