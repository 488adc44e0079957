//! Notes which answers of a connection reach its client.
//!
//! An answer is delivered when it is handed to the transport whole. One that its client cancels is not, also when the
//! cancellation crosses it: the client passes over an answer that comes after its cancellation.

use std::collections::{HashMap, VecDeque};

use axum::http::request::Parts;
use ptyd_core::delivery::{Delivery, Undelivered};
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, Extensions, JsonRpcMessage, RequestId};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Answers that a cancellation may still cross: as many calls as a host has open at once.
const CROSSED_MAX: usize = 16;

/// A transport that gives each call its [`Delivery`], and notes which answers go out.
pub(super) struct Delivering<T> {
    messages: T,
    undelivered: HashMap<RequestId, Undelivered>,
    delivered: VecDeque<(RequestId, Delivery)>,
    /// Over HTTP the body of the response has an answer after this transport, and says when it is delivered.
    has_bodies: bool,
}

impl<T> Delivering<T> {
    pub fn on(messages: T) -> Self {
        Self { messages, undelivered: HashMap::new(), delivered: VecDeque::new(), has_bodies: false }
    }

    /// The same for the messages of an MCP session over HTTP.
    pub fn in_bodies(messages: T) -> Self {
        Self { has_bodies: true, ..Self::on(messages) }
    }

    fn received(&mut self, message: &mut ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                if let ClientRequest::CallToolRequest(call) = &mut request.request {
                    let delivery = of(&call.extensions).unwrap_or_default();
                    call.extensions.insert(delivery.clone());
                    self.undelivered.insert(request.id.clone(), Undelivered::new(delivery));
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.cancelled(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    fn cancelled(&mut self, id: &RequestId) {
        self.undelivered.remove(id);
        if let Some(at) = self.delivered.iter().position(|(delivered, _)| delivered == id) {
            self.delivered.remove(at).into_iter().for_each(|(_, delivery)| delivery.give_up());
        }
    }

    /// The answer in this message, if it is one to a call.
    fn answered(&mut self, message: &TxJsonRpcMessage<RoleServer>) -> Option<Delivery> {
        let response = match message {
            JsonRpcMessage::Response(response) => response,
            JsonRpcMessage::Error(error) => {
                // It shows nothing.
                error.id.as_ref().map(|id| self.undelivered.remove(id));
                return None;
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => return None,
        };
        let delivery = self.undelivered.remove(&response.id)?.on_its_way()?;
        self.delivered.push_back((response.id.clone(), delivery.clone()));
        if self.delivered.len() > CROSSED_MAX {
            self.delivered.pop_front();
        }
        Some(delivery)
    }
}

/// The delivery of a request: over HTTP that of its response's body.
pub(super) fn of(extensions: &Extensions) -> Option<Delivery> {
    let in_body = || extensions.get::<Parts>()?.extensions.get::<Delivery>();
    extensions.get::<Delivery>().or_else(in_body).cloned()
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Delivering<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // Before it is written: the client's next call must find what this answer has shown.
        let delivery = self.answered(&message);
        let sent = self.messages.send(message);
        let has_bodies = self.has_bodies;
        async move {
            let writing = delivery.map(Undelivered::new);
            sent.await?;
            let delivery = writing.and_then(Undelivered::on_its_way).filter(|_| !has_bodies);
            delivery.iter().for_each(Delivery::delivered);
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let mut message = self.messages.receive().await;
        match &mut message {
            Some(message) => self.received(message),
            // The client has gone.
            None => self.undelivered.clear(),
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.undelivered.clear();
        self.messages.close().await
    }
}
