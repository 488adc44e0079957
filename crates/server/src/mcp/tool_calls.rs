//! The tool calls of a stdio client, performed by the task that reads its messages.
//!
//! rmcp makes a task of each request and another one of the sending of its answer. The fourth task that a wake leads to is
//! one for another thread, in tokio, so each answer to a call woke a second thread for nothing. All that is not a tool call,
//! and a call that comes before the handshake is over, is left to rmcp.

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use rmcp::model::{
    ClientNotification, ClientRequest, ErrorData, GetExtensions, GetMeta, JsonRpcMessage, JsonRpcRequest, RequestId,
    ServerResult,
};
use rmcp::service::{Peer, RequestContext, RoleServer, RxJsonRpcMessage, Service, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio_util::sync::CancellationToken;

use super::Handler;
use crate::http::polled_again::polled_again;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
/// A call that has ended; without a result if its handler has panicked.
type Ended = (RequestId, Option<Result<ServerResult, ErrorData>>);

/// A transport that performs the tool calls among its messages, and answers them.
pub(super) struct ToolCalls<T> {
    messages: T,
    handler: Arc<Handler>,
    /// The client, once the handshake is over.
    peer: Arc<OnceLock<Peer<RoleServer>>>,
    /// Cancelled when the stream has ended.
    gone: CancellationToken,
    /// How to cancel the calls that are to be answered.
    unanswered: HashMap<RequestId, CancellationToken>,
    open: FuturesUnordered<Boxed<Ended>>,
    /// Answers on their way into the stream.
    answers: FuturesUnordered<Boxed<()>>,
}

impl<T: Transport<RoleServer>> ToolCalls<T> {
    pub(super) fn on(
        messages: T,
        handler: Handler,
        peer: Arc<OnceLock<Peer<RoleServer>>>,
        gone: CancellationToken,
    ) -> Self {
        let (unanswered, open, answers) = Default::default();
        Self { messages, handler: Arc::new(handler), peer, gone, unanswered, open, answers }
    }

    /// Begins a tool call; any other message is returned.
    fn begin(&mut self, message: RxJsonRpcMessage<RoleServer>) -> Option<RxJsonRpcMessage<RoleServer>> {
        let Some(peer) = self.peer.get() else { return Some(message) };
        match message {
            JsonRpcMessage::Request(JsonRpcRequest {
                id,
                request: mut request @ ClientRequest::CallToolRequest(_),
                ..
            }) => {
                if self.unanswered.contains_key(&id) {
                    let twice = ErrorData::invalid_request("a call with this id is not answered yet", None);
                    self.answer(JsonRpcMessage::error(twice, Some(id)));
                    return None;
                }
                let mut context = RequestContext::new(id.clone(), peer.clone());
                let cancel = self.gone.child_token();
                context.ct = cancel.child_token();
                std::mem::swap(&mut context.meta, request.get_meta_mut());
                std::mem::swap(&mut context.extensions, request.extensions_mut());
                self.unanswered.insert(id.clone(), cancel);
                let handler = Arc::clone(&self.handler);
                self.open.push(Box::pin(async move {
                    let result = AssertUnwindSafe(handler.handle_request(request, context)).catch_unwind().await;
                    (id, result.ok())
                }));
                None
            }
            other => {
                if let JsonRpcMessage::Notification(notification) = &other
                    && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(cancel) = cancelled.params.request_id.as_ref().and_then(|id| self.unanswered.remove(id))
                {
                    cancel.cancel();
                }
                Some(other)
            }
        }
    }

    /// Goes on with the calls, and answers those that have ended.
    fn go_on(&mut self, context: &mut Context<'_>) {
        while let Poll::Ready(Some((id, result))) = self.open.poll_next_unpin(context) {
            // Nobody waits for the answer to a call that was cancelled.
            if self.unanswered.remove(&id).is_none() {
                continue;
            }
            self.answer(match result {
                Some(Ok(result)) => JsonRpcMessage::response(result, id),
                Some(Err(error)) => JsonRpcMessage::error(error, Some(id)),
                None => {
                    JsonRpcMessage::error(ErrorData::internal_error("a fault of ptyd ended this call", None), Some(id))
                }
            });
        }
        while let Poll::Ready(Some(())) = self.answers.poll_next_unpin(context) {}
    }

    fn answer(&mut self, answer: TxJsonRpcMessage<RoleServer>) {
        let sent = self.messages.send(answer);
        self.answers.push(Box::pin(async move {
            if sent.await.is_err() {
                tracing::debug!("an answer did not reach its stdio client");
            }
        }));
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for ToolCalls<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.messages.send(message)
    }

    /// rmcp drops this future for other work and calls it again, so all that goes on is in `self`.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let going_on = pin!(poll_fn(|context| {
            loop {
                let received = pin!(self.messages.receive()).poll(context);
                match received {
                    Poll::Ready(Some(message)) => {
                        if let Some(other) = self.begin(message) {
                            return Poll::Ready(Some(other));
                        }
                    }
                    Poll::Ready(None) => {
                        // Those that have ended are answered yet; the others have lost their client.
                        self.go_on(context);
                        self.open.clear();
                        return Poll::Ready(None);
                    }
                    Poll::Pending => break,
                }
            }
            self.go_on(context);
            Poll::Pending
        }));
        // A set of futures wakes its task once it has polled all of them.
        polled_again(going_on).await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.messages.close().await
    }
}
