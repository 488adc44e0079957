//! The lines of a stdio client, of which those with a tool call are parsed here.
//!
//! rmcp tries one kind of message after the other, and makes the text of an error for each that does not fit: a tool call
//! comes late, and is nearly every message. A line that is anything else, or that has not come whole, is left to rmcp.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientRequest, JsonRpcMessage, JsonRpcRequest,
    JsonRpcVersion2_0, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde::Deserialize;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;

type Message = RxJsonRpcMessage<RoleServer>;

/// A request to call a tool, with nothing beside it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    method: CallToolRequestMethod,
    params: CallToolRequestParams,
}

/// The tool call in this line, as rmcp reads it; `None` if it is anything else.
fn call(line: &[u8]) -> Option<Message> {
    let Call { jsonrpc, id, method: CallToolRequestMethod, mut params } = serde_json::from_slice(line).ok()?;
    let meta = params.meta.take();
    let mut call = CallToolRequest::new(params);
    if let Some(meta) = meta {
        call.extensions.insert(meta);
    }
    let request = ClientRequest::CallToolRequest(call);
    Some(JsonRpcMessage::Request(JsonRpcRequest { jsonrpc, id, request }))
}

/// A tool call that was parsed here and is not received yet.
type Parsed = Arc<Mutex<Option<Message>>>;

/// The lines for rmcp: all others.
struct OtherLines<R> {
    read: R,
    is_within_line: bool,
    parsed: Parsed,
    /// Cancelled when the stream ends: rmcp alone would wait seconds for calls whose client is gone.
    gone: CancellationToken,
}

impl<R: AsyncBufRead + Unpin> AsyncRead for OtherLines<R> {
    /// After a tool call this is pending, and nothing wakes its task: the one that polls it finds the call.
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let mut read = Pin::new(&mut this.read);
        let bytes = match ready!(read.as_mut().poll_fill_buf(context)) {
            Ok(bytes) => bytes,
            Err(error) => {
                this.gone.cancel();
                return Poll::Ready(Err(error));
            }
        };
        if bytes.is_empty() {
            this.gone.cancel();
            return Poll::Ready(Ok(()));
        }
        let end = memchr::memchr(b'\n', bytes);
        if let (false, Some(end)) = (this.is_within_line, end)
            && let Some(call) = call(&bytes[..end])
        {
            read.consume(end + 1);
            *this.parsed.lock().unwrap_or_else(PoisonError::into_inner) = Some(call);
            return Poll::Pending;
        }
        let taken = end.map_or(bytes.len(), |end| end + 1).min(room.remaining());
        room.put_slice(&bytes[..taken]);
        this.is_within_line = room.filled().last() != Some(&b'\n');
        read.consume(taken);
        Poll::Ready(Ok(()))
    }
}

/// The messages of a stdio client.
pub(super) struct Messages<R: AsyncBufRead + Unpin, W: AsyncWrite> {
    others: AsyncRwTransport<RoleServer, OtherLines<R>, W>,
    parsed: Parsed,
}

impl<R, W> Messages<R, W>
where
    R: AsyncBufRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// The messages on these streams; `gone` is cancelled when the first one ends.
    pub(super) fn on(read: R, write: W, gone: CancellationToken) -> Self {
        let parsed = Parsed::default();
        let others = OtherLines { read, is_within_line: false, parsed: Arc::clone(&parsed), gone };
        Self { others: AsyncRwTransport::new(others, write), parsed }
    }
}

impl<R, W> Transport<RoleServer> for Messages<R, W>
where
    R: AsyncBufRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.others.send(message)
    }

    async fn receive(&mut self) -> Option<Message> {
        let mut other = pin!(self.others.receive());
        poll_fn(|context| match other.as_mut().poll(context) {
            Poll::Ready(message) => Poll::Ready(message),
            Poll::Pending => match self.parsed.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(call) => Poll::Ready(Some(call)),
                None => Poll::Pending,
            },
        })
        .await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.others.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncWriteExt as _, BufReader};

    const CALLS: [&str; 5] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
        r#"{"params":{"arguments":{"n":[1,-2,3.5,18446744073709551615,1e400],"s":"\u00e9\n"},"name":"b"},"method":"tools/call","id":"x","jsonrpc":"2.0"} "#,
        r#"{"jsonrpc":"2.0","id":-3,"method":"tools\/call","params":{"name":"c","arguments":{},"_meta":{"ptyd/request":7,"progressToken":"p"}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"d","arguments":null,"_meta":null,"other":1}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"e","requestState":"s","arguments":{"a":1,"a":2}}}"#,
    ];

    const OTHERS: [&str; 10] = [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"more":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"a"}}"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
        "{",
    ];

    fn as_json(message: &Message) -> serde_json::Value {
        serde_json::to_value(message).expect("JSON")
    }

    #[test]
    fn a_tool_call_is_read_as_rmcp_reads_it_and_nothing_else_is() {
        for line in CALLS {
            let theirs: serde_json::Result<Message> = serde_json::from_str(line);
            // Where it is one for rmcp: it takes no number that is larger than any.
            let ours = call(line.as_bytes());
            assert_eq!(ours.as_ref().map(as_json), theirs.ok().as_ref().map(as_json), "{line}");
        }
        for line in OTHERS {
            assert!(call(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[tokio::test]
    async fn messages_keep_their_order_wherever_their_bytes_are_cut() {
        let lines = [CALLS[0], OTHERS[0], "", CALLS[2], CALLS[3], OTHERS[1], OTHERS[9], CALLS[4]];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let expected: Vec<_> = lines.iter().filter_map(|line| serde_json::from_str::<Message>(line).ok()).collect();
        let expected: Vec<_> = expected.iter().map(as_json).collect();
        assert_eq!(expected.len(), 6);
        for size in [1, 7, 64, 100, 10_000] {
            let (mut client, server) = tokio::io::duplex(size);
            let (gone, text) = (CancellationToken::new(), text.clone());
            let sends = tokio::spawn(async move { client.write_all(text.as_bytes()).await });
            let mut messages = Messages::on(BufReader::new(server), tokio::io::sink(), gone.clone());
            let mut received = Vec::new();
            while let Some(message) = messages.receive().await {
                received.push(as_json(&message));
            }
            assert_eq!(received, expected, "in parts of {size} bytes");
            assert!(gone.is_cancelled());
            sends.await.expect("no panic").expect("sent");
        }
    }
}
