//! A viewer over the WebSocket, with the frames of docs/websocket.md as a client of another language would read them.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::{PATIENCE, Server};

/// A connected viewer; dropping it cuts the connection without a word.
#[derive(Debug)]
pub struct Socket(WebSocketStream<TcpStream>);

/// A message to a viewer.
#[derive(Debug, Clone, PartialEq)]
pub enum SocketMessage {
    /// Output, and its range in the journal.
    Data(u64, u64, Vec<u8>),
    /// The screen, and the offset that it holds.
    Snapshot(u64, Vec<u8>),
    /// A range that is not given.
    Gap(u64, u64),
    /// The input of this number was typed.
    Typed(u64),
    /// An event.
    Event(Value),
    /// The end: the code, and the reason.
    Closed(u16, String),
}

impl Socket {
    /// A viewer with the server's token; `query` begins with `?` or is empty.
    pub async fn visit(server: &Server, session: &str, query: &str) -> Self {
        let bearer = format!("Bearer {}", server.token());
        let headers = [("authorization", bearer.as_str()), ("sec-websocket-protocol", "ptyd.v1")];
        let opened = Self::open(server, &format!("/terminals/{session}/socket{query}"), &headers).await;
        opened.unwrap_or_else(|status| panic!("refused with {status}"))
    }

    /// A connection with exactly these headers besides those of any WebSocket; the status where it is refused.
    pub async fn open(server: &Server, path: &str, headers: &[(&str, &str)]) -> Result<Self, u16> {
        let address = server.address();
        let mut request = format!("ws://{address}{path}").into_client_request().expect("an address");
        for (name, value) in headers {
            let name: tokio_tungstenite::tungstenite::http::HeaderName = name.parse().expect("a name");
            request.headers_mut().append(name, value.parse().expect("a value"));
        }
        let stream = TcpStream::connect(address).await.expect("it listens");
        stream.set_nodelay(true).expect("a TCP socket");
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(answer)) => Err(answer.status().as_u16()),
            Err(error) => panic!("no WebSocket: {error}"),
        }
    }

    /// The next message, whatever it is.
    pub async fn message(&mut self) -> Message {
        let message = async {
            loop {
                match self.0.next().await.expect("a close frame before the end").expect("whole frames") {
                    Message::Ping(_) | Message::Pong(_) => {}
                    message => return message,
                }
            }
        };
        // A heartbeat is not a sign that what is awaited will come.
        timeout(PATIENCE, message).await.expect("a message in time")
    }

    /// The next message in frames.
    pub async fn next(&mut self) -> SocketMessage {
        match self.message().await {
            Message::Binary(bytes) => decode(&bytes),
            Message::Text(text) => SocketMessage::Event(serde_json::from_str(&text).expect("JSON")),
            Message::Close(frame) => {
                let frame = frame.expect("a reason");
                SocketMessage::Closed(CloseCode::into(frame.code), frame.reason.to_string())
            }
            other => panic!("unexpected {other:?}"),
        }
    }

    /// Listens until something fits, and gives it; what came before is given up.
    pub async fn until<T>(&mut self, mut fits: impl FnMut(&SocketMessage) -> Option<T>) -> T {
        loop {
            let heard = self.next().await;
            if let Some(found) = fits(&heard) {
                return found;
            }
            assert!(!matches!(heard, SocketMessage::Closed(..)), "closed instead: {heard:?}");
        }
    }

    /// Listens until its output has these words, and acknowledges it; gives the output.
    pub async fn reads_until(&mut self, words: &str) -> String {
        let mut all = Vec::new();
        loop {
            match self.next().await {
                SocketMessage::Data(_, to, bytes) => {
                    all.extend(bytes);
                    self.parsed(to).await;
                }
                SocketMessage::Closed(code, why) => panic!("closed with {code}: {why}"),
                SocketMessage::Snapshot(..)
                | SocketMessage::Gap(..)
                | SocketMessage::Typed(_)
                | SocketMessage::Event(_) => {}
            }
            let text = String::from_utf8_lossy(&all);
            if text.contains(words) {
                return text.into_owned();
            }
        }
    }

    /// The event of this name.
    pub async fn event(&mut self, name: &str) -> Value {
        self.until(|heard| match heard {
            SocketMessage::Event(value) if value["event"] == name => Some(value.clone()),
            _ => None,
        })
        .await
    }

    /// Listens to the end; gives the output, the events' names and the close code.
    pub async fn to_the_end(&mut self) -> (Vec<u8>, Vec<String>, u16) {
        let (mut bytes, mut events) = (Vec::new(), Vec::new());
        loop {
            match self.next().await {
                SocketMessage::Data(_, to, more) => {
                    bytes.extend(more);
                    self.parsed(to).await;
                }
                SocketMessage::Event(value) => events.push(value["event"].as_str().unwrap_or_default().to_owned()),
                SocketMessage::Closed(code, _) => return (bytes, events, code),
                SocketMessage::Snapshot(..) | SocketMessage::Gap(..) | SocketMessage::Typed(_) => {}
            }
        }
    }

    /// Types, under a number.
    pub async fn types(&mut self, seq: u64, bytes: &[u8]) {
        self.sends(&[&[0x11], seq.to_le_bytes().as_slice(), bytes].concat()).await;
    }

    /// Says that everything up to this offset was parsed.
    pub async fn parsed(&mut self, to: u64) {
        // A server that has gone meanwhile has said so, and that is read next.
        let frame = [&[0x12], to.to_le_bytes().as_slice()].concat();
        let _ = self.0.send(Message::Binary(frame.into())).await;
    }

    /// Sends a binary message.
    pub async fn sends(&mut self, bytes: &[u8]) {
        self.0.send(Message::Binary(bytes.to_vec().into())).await.expect("an open connection");
    }

    /// Sends a text.
    pub async fn says(&mut self, text: &str) {
        self.0.send(Message::Text(text.into())).await.expect("an open connection");
    }

    /// Whether nothing comes for this long.
    pub async fn is_silent_for(&mut self, time: Duration) -> bool {
        timeout(time, self.0.next()).await.is_err()
    }

    /// The connection below, which is not a WebSocket any more.
    pub fn stream(&mut self) -> &mut TcpStream {
        self.0.get_mut()
    }
}

fn decode(frame: &[u8]) -> SocketMessage {
    let number = |at: usize| u64::from_le_bytes(frame[at..at + 8].try_into().expect("eight bytes"));
    match frame[0] {
        1 => SocketMessage::Data(number(1), number(9), frame[17..].to_vec()),
        2 => SocketMessage::Snapshot(number(1), frame[13..].to_vec()),
        3 => SocketMessage::Gap(number(1), number(9)),
        4 => SocketMessage::Typed(number(1)),
        other => panic!("a frame of the unknown kind {other}"),
    }
}
