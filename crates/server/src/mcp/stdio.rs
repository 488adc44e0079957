//! The stream of one stdio client: the hello line, then MCP's own framing, one message per line.
//!
//! When the stream ends the handler ends at once: rmcp alone would wait seconds for calls whose client is gone.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rmcp::service::{RoleServer, RxJsonRpcMessage, ServiceExt, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;

use super::Handler;
use super::deliveries::Delivering;
use super::dispatch_port::Server;
use super::handshake::Handshake;
use super::tool_call_lines::Messages;
use super::tool_calls::ToolCalls;
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::principal::{Detach, Principal};

/// The longest hello line, which has a whole environment: the kernel's limit for one is 2 MiB, in base64.
const HELLO_BYTES_MAX: u64 = 4 << 20;

/// Serves one stdio client until its stream ends.
pub async fn serve_stdio<S>(stream: S, dispatcher: Dispatcher, principal: Principal, base_url: &str)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    serve(stream, Arc::new(dispatcher), principal, base_url).await;
}

/// The same with any dispatcher.
pub(super) async fn serve<S>(stream: S, server: Arc<dyn Server>, principal: Principal, base_url: &str)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (read, mut write) = tokio::io::split(stream);
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    if let Err(error) = (&mut read).take(HELLO_BYTES_MAX).read_until(b'\n', &mut line).await {
        tracing::info!(%error, "a stdio client went before it said hello");
        return;
    }
    let hello = match Handshake::parse(&line) {
        Ok(hello) => hello,
        Err(why) => {
            tracing::warn!(why, "a stdio client was refused");
            let refusal =
                serde_json::json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": why } });
            // The client gets the error if it still reads.
            let _ = write.write_all(format!("{refusal}\n").as_bytes()).await;
            return;
        }
    };
    let name = hello.client.client.clone().unwrap_or_default();
    let _presence = Presence::of(name, server.clone(), hello.client.detach);
    let gone = CancellationToken::new();
    let principal = Principal { client: hello.client.client.clone(), ..principal };
    server.resume_reading(&principal, &hello.read_to).await;
    let handler = Handler::on(server, principal, hello.client, hello.tools, base_url);
    let handler = handler.with_structured_answers(hello.structured).behind_a_shim();
    let messages = Messages::on(read, write, gone.clone());
    let messages = Noted { messages, handler: handler.clone() };
    let peer = Arc::default();
    let messages = ToolCalls::on(Delivering::on(messages), handler.clone(), Arc::clone(&peer), gone.clone());
    match handler.serve_with_ct(messages, gone).await {
        Ok(running) => {
            // From now on its tool calls are performed by the task that reads them.
            let _ = peer.set(running.peer().clone());
            // The result of the stream concerns only the client.
            drop(running.waiting().await);
        }
        // This includes a stream that ends before the first request, which is a clean end.
        Err(error) => tracing::debug!(%error, "a stdio client went before its first request"),
    }
}

/// Has the handler note each message as it is read: rmcp calls it for several messages at once.
struct Noted<T> {
    messages: T,
    handler: Handler,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Noted<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.messages.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.messages.receive().await?;
        self.handler.note(&message);
        Some(message)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.messages.close().await
    }
}

/// The number of connections per client: a shim may reconnect before its old connection is known to be dead.
static CONNECTIONS: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

/// One connection of a client; the client counts as disconnected when its last connection is gone.
struct Presence {
    client: String,
    server: Arc<dyn Server>,
    detach: Detach,
}

impl Presence {
    fn of(client: String, server: Arc<dyn Server>, detach: Detach) -> Self {
        *CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner).entry(client.clone()).or_default() += 1;
        server.client_here(&client);
        Self { client, server, detach }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        let left = connections.get_mut(&self.client).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            connections.remove(&self.client);
            self.server.client_gone(&self.client, self.detach);
        }
    }
}
