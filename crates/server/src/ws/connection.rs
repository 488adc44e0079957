//! One WebSocket connection: pieces out, input in, until either side closes it. One task and no queue: unsent output
//! stays in the journal.

use std::sync::Arc;
use std::time::Duration;

use api::{Dimensions, SessionStatus, SocketEvent, SocketInput, SocketMessage, SocketRequest};
use axum::body::Bytes;
use axum::extract::ws::{Message, WebSocket};
use serde::Serialize;
use tokio::time::{Instant, sleep_until, timeout};

use super::close::{self, Code, code_of};
use super::event;
use super::frame::{FromClient, FromServer};
use super::heartbeat::{Due, Heartbeat};
use super::input_task::{InputTask, Typed};
use super::json;
use super::query::{Mode, Query};
use super::whole_characters::{WholeCharacters, WholeText};
use crate::http::convert;
use ptyd_core::action::{
    Action, ActionError, Feed, Hold, Outcome, Piece, SessionEvent, Take, ViewerSnapshot, Watching,
};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::ids::SessionId;
use ptyd_core::lane::Lane;
use ptyd_core::limits;
use ptyd_core::principal::Principal;

/// The parameters of a connection.
pub(super) struct SocketConnection {
    pub(super) dispatcher: Dispatcher,
    pub(super) principal: Principal,
    pub(super) session: SessionId,
    pub(super) mode: Mode,
    pub(super) query: Query,
    pub(super) may_write: bool,
}

/// Why the connection ends.
pub(super) enum End {
    /// We close it, with a code and a reason.
    Close(Code, String),
    /// The client is gone or does not read any more.
    Gone,
}

impl From<ActionError> for End {
    fn from(error: ActionError) -> Self {
        Self::Close(code_of(&error).1, error.to_string())
    }
}

/// Serves a WebSocket to its end.
pub(super) async fn receive(mut socket: WebSocket, connection: Result<SocketConnection, End>) {
    let end = match connection {
        Ok(connection) => connection.run(&mut socket).await,
        Err(end) => end,
    };
    let End::Close(code, reason) = end else { return };
    let goodbye = async {
        socket.send(Message::Close(Some(close::frame(code, &reason)))).await?;
        // Closing a TCP connection with unread input would discard what was sent last.
        while let Some(message) = socket.recv().await {
            message?;
        }
        Ok::<(), axum::Error>(())
    };
    let _ = timeout(limits::CLOSE_PATIENCE, goodbye).await;
}

impl SocketConnection {
    async fn run(mut self, socket: &mut WebSocket) -> End {
        let client = self.query.client.clone().unwrap_or_else(fresh_name);
        // Its input is that of this client, also over its other connections.
        self.principal.client = Some(client.clone());
        let _hold = match self.take().await {
            Ok(hold) => hold,
            Err(end) => return end,
        };
        let action = Action::Watch { session: self.session.clone(), since: self.query.since };
        // Boxed: the memory of this action must not be kept as long as the connection lasts.
        let Watching { session, feed } = match Box::pin(self.dispatcher.dispatch(&self.principal, action)).await {
            Ok(Outcome::Watching(watching)) => *watching,
            Ok(other) => return End::Close(Code::Internal, format!("the watch action returned {other:?}")),
            Err(error) => return error.into(),
        };
        let hello = event::attached(&session, feed.cursor(), &client, self.may_write);
        let acked = feed.cursor();
        let shut_out = self.principal.shut_out();
        let now = Instant::now();
        let mut open = OpenConnection {
            pulse: Heartbeat::new(now),
            lane: self.dispatcher.lane(&self.principal),
            wanted: None,
            connection: self,
            socket,
            client,
            feed,
            input_task: None,
            unnumbered: None,
            status: convert::session_status(session.status),
            characters: WholeCharacters::default(),
            acked,
            was_stopped: false,
            snapshot_at: now,
        };
        // Also while a slow client reads.
        let ended = tokio::select! {
            biased;
            () = shut_out => return ActionError::ShutOut.into(),
            ended = open.run(hello) => ended,
        };
        match ended {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }
}

impl SocketConnection {
    /// Takes the keyboard, if the client asks for it, for as long as the returned hold lives.
    async fn take(&self) -> Result<Option<Hold>, End> {
        let Some(forces) = self.query.takes_by_force else { return Ok(None) };
        if !self.may_write {
            return Err(End::Close(Code::Forbidden, ONLY_LOOKING.to_owned()));
        }
        let take = Take { session: self.session.clone(), lasts: limits::TAKE_OVER_MAX, forces, is_held: true };
        match Box::pin(self.dispatcher.dispatch(&self.principal, Action::Take(take))).await? {
            Outcome::Taken(taken) => Ok(taken.hold),
            other => Err(End::Close(Code::Internal, format!("the take action returned {other:?}"))),
        }
    }
}

/// The refusal of a client that may not type.
const ONLY_LOOKING: &str = "this ticket or token only allows looking";

/// A name for a client without one, so that it can number its input across connections.
fn fresh_name() -> String {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
    format!("{:032x}", u128::from_le_bytes(bytes))
}

/// An open connection.
struct OpenConnection<'a> {
    connection: SocketConnection,
    socket: &'a mut WebSocket,
    client: String,
    feed: Box<dyn Feed>,
    /// Started with the first input: most viewers only watch.
    input_task: Option<InputTask>,
    /// A name for the inputs that the client does not number, and how many there were.
    unnumbered: Option<(String, u64)>,
    /// The session's status, as the client was told.
    status: SessionStatus,
    /// Output for JSON texts, in which characters are whole.
    characters: WholeCharacters,
    /// The principal's.
    lane: Arc<Lane>,
    /// The size that the client asked for last. It is set once no further message waits: a later one takes its place.
    wanted: Option<Dimensions>,
    pulse: Heartbeat,
    /// The client has parsed everything up to this offset.
    acked: u64,
    /// The client has fallen behind since it was last at the end.
    was_stopped: bool,
    /// The earliest time of the next snapshot.
    snapshot_at: Instant,
}

/// The next event.
enum Next {
    Message(Option<Result<Message, axum::Error>>),
    Size(Dimensions),
    Piece(Result<Piece, ActionError>),
    Typed(Typed),
    Time,
}

/// A connection always ends with an error.
enum Never {}

impl OpenConnection<'_> {
    async fn run(&mut self, hello: SocketEvent) -> Result<Never, End> {
        match self.connection.mode {
            Mode::Framed => self.text(&hello).await?,
            Mode::Json => self.text(&json::status(self.status, hello)).await?,
            Mode::Raw => {}
        }
        if self.connection.query.since.is_none() {
            self.show_present(false).await?;
        }
        loop {
            if self.is_left_behind() {
                self.show_present(true).await?;
            }
            let may_send = self.has_window();
            self.was_stopped |= !may_send;
            let may_read = self.input_task.as_ref().is_none_or(InputTask::has_room);
            let next = {
                let Self { socket, feed, input_task, pulse, wanted, .. } = self;
                let typed = async {
                    match input_task {
                        Some(input_task) => input_task.done().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    biased;
                    message = socket.recv(), if may_read => Next::Message(message),
                    Some(size) = async { wanted.take() } => Next::Size(size),
                    typed = typed => Next::Typed(typed),
                    piece = feed.next(limits::FRAME_BYTES), if may_send => Next::Piece(piece),
                    () = sleep_until(pulse.next_at()) => Next::Time,
                }
            };
            let lane = Arc::clone(&self.lane);
            match next {
                Next::Message(message) => lane.small(self.on_message(message)).await?,
                Next::Size(size) => lane.small(self.resize(size)).await?,
                Next::Piece(piece) => self.give(piece?).await?,
                Next::Typed((seq, result)) => self.notify_typed(seq, result).await?,
                Next::Time => match self.pulse.due(Instant::now()) {
                    Due::Ping => self.send(Message::Ping(Bytes::new())).await?,
                    // Its pong may be unread while its input waits.
                    Due::Dead if may_read => return Err(End::Gone),
                    Due::Dead => self.pulse.alive(),
                    Due::Nothing => {}
                },
            }
        }
    }

    /// Whether more bytes may be in flight to the client.
    fn has_window(&self) -> bool {
        // Without acknowledgements, the connection's own buffers are the window.
        self.connection.mode != Mode::Framed || self.feed.cursor().saturating_sub(self.acked) < limits::WINDOW_BYTES
    }

    /// Whether the client should get a snapshot of the present screen.
    fn is_left_behind(&mut self) -> bool {
        // A client of JSON texts may know no gaps: it gets every byte unless it asks for the present.
        let wants_all = self.connection.query.wants_all.unwrap_or(self.connection.mode == Mode::Json);
        if !self.was_stopped || wants_all || !self.has_window() {
            return false;
        }
        let behind = self.feed.behind();
        self.was_stopped = behind > 0;
        behind > limits::BEHIND_BYTES_MAX && Instant::now() >= self.snapshot_at
    }

    /// Sends the present screen, and continues behind it.
    async fn show_present(&mut self, says_gap: bool) -> Result<(), End> {
        let from = self.characters.forget().unwrap_or_else(|| self.feed.cursor());
        let Some(snapshot) = self.feed.snapshot().await? else { return Ok(()) };
        // The events come first: an older size behind the snapshot would spoil the screen.
        for event in &snapshot.events {
            self.give_event(event).await?;
        }
        let ViewerSnapshot { at, cols, rows, bytes, .. } = snapshot;
        self.was_stopped = false;
        self.snapshot_at = Instant::now() + limits::SNAPSHOT_EVERY;
        match self.connection.mode {
            Mode::Raw => self.send(Message::Binary(bytes.into())).await,
            Mode::Json => {
                if says_gap {
                    self.text(&SocketMessage::Gap { from_offset: from, next_offset: at }).await?;
                }
                self.text(&json::snapshot(at, cols, rows, &bytes)).await
            }
            Mode::Framed => {
                if says_gap {
                    self.frame(&FromServer::Gap { from, to: at }).await?;
                }
                // Skipped output is not shown and needs no acknowledgement.
                self.acked = self.acked.max(at);
                self.frame(&FromServer::Snapshot { at, cols, rows, bytes: &bytes }).await
            }
        }
    }

    async fn give(&mut self, piece: Piece) -> Result<(), End> {
        match self.connection.mode {
            Mode::Framed => self.give_framed(piece).await,
            Mode::Raw => self.give_raw(piece).await,
            Mode::Json => self.give_json(piece).await,
        }
    }

    async fn give_framed(&mut self, piece: Piece) -> Result<(), End> {
        match piece {
            Piece::Data { from, to, bytes } => self.frame(&FromServer::Data { from, to, bytes: &bytes }).await,
            Piece::Gap { from, to } => self.frame(&FromServer::Gap { from, to }).await,
            Piece::Event(event) => self.give_event(&event).await,
            Piece::Over => Err(ended()),
        }
    }

    async fn give_raw(&mut self, piece: Piece) -> Result<(), End> {
        match piece {
            Piece::Data { bytes, .. } if bytes.is_empty() => Ok(()),
            Piece::Data { bytes, .. } => self.unacknowledged(Message::Binary(bytes.into())).await,
            // Raw mode cannot report the gap, but the screen can be repaired.
            Piece::Gap { .. } => self.show_present(false).await,
            Piece::Event(event) => self.give_event(&event).await,
            Piece::Over => Err(ended()),
        }
    }

    async fn give_json(&mut self, piece: Piece) -> Result<(), End> {
        match piece {
            Piece::Data { from, to, bytes } => {
                let text = self.characters.add(from, to, bytes);
                self.give_text(text).await
            }
            Piece::Gap { from, to } => {
                self.give_held_back().await?;
                self.text(&SocketMessage::Gap { from_offset: from, next_offset: to }).await
            }
            Piece::Event(event) => self.give_event(&event).await,
            Piece::Over => {
                self.give_held_back().await?;
                Err(ended())
            }
        }
    }

    async fn give_event(&mut self, event: &SessionEvent) -> Result<(), End> {
        match self.connection.mode {
            Mode::Framed => self.text(&event::of(event)).await,
            Mode::Raw => Ok(()),
            Mode::Json => {
                if json::ends_output(event) {
                    self.give_held_back().await?;
                }
                match event {
                    SessionEvent::Ready => self.status = SessionStatus::Running,
                    SessionEvent::Exited(_) => self.status = SessionStatus::Terminated,
                    _ => {}
                }
                self.text(&json::status(self.status, event::of(event))).await
            }
        }
    }

    async fn give_held_back(&mut self) -> Result<(), End> {
        let text = self.characters.rest();
        self.give_text(text).await
    }

    async fn give_text(&mut self, text: Option<WholeText>) -> Result<(), End> {
        let Some(text) = text else { return Ok(()) };
        self.unacknowledged(text_of(&json::output(&text))).await
    }

    /// Sends output to a client that acknowledges nothing: the time that it takes tells whether the client keeps up.
    async fn unacknowledged(&mut self, message: Message) -> Result<(), End> {
        let begun = Instant::now();
        self.send(message).await?;
        // The connection's buffer was full.
        self.was_stopped |= begun.elapsed() > Duration::from_millis(20);
        Ok(())
    }

    async fn on_message(&mut self, message: Option<Result<Message, axum::Error>>) -> Result<(), End> {
        self.pulse.alive();
        let message = match (message, self.connection.mode) {
            (Some(Ok(Message::Text(text))), Mode::Json) => return self.on_json(&text).await,
            (Some(Ok(Message::Text(text))), Mode::Framed) => match serde_json::from_str(&text) {
                Ok(SocketRequest::Resize { dimensions }) => return self.want(dimensions),
                Ok(SocketRequest::Ping {}) => return self.text(&SocketEvent::Pong).await,
                Err(_) => Err(End::Close(
                    Code::Unsupported,
                    "the only text messages are the events resize and ping".to_owned(),
                )),
            },
            (Some(Ok(message)), _) => Ok(message),
            (Some(Err(error)), _) => Err(broken(error)),
            (None, _) => Err(End::Gone),
        };
        self.resize_before().await?;
        match (message?, self.connection.mode) {
            // The library would queue a pong for each ping: nothing more is read before this one is sent.
            (Message::Ping(bytes), _) => self.send(Message::Pong(bytes)).await,
            (Message::Pong(_), _) => Ok(()),
            (Message::Close(_), _) => Err(End::Gone),
            (Message::Binary(bytes), Mode::Raw | Mode::Json) => self.take_input(None, bytes.into()),
            (Message::Text(text), _) => self.take_input(None, Bytes::from(text).into()),
            (Message::Binary(bytes), Mode::Framed) => match FromClient::decode(&bytes) {
                Some(FromClient::Input { seq, bytes }) => self.take_input(Some(seq), bytes.to_vec()),
                Some(FromClient::Parsed { to }) if to <= self.feed.cursor() => {
                    self.acked = self.acked.max(to);
                    Ok(())
                }
                Some(FromClient::Parsed { to }) => {
                    let why = format!("offset {to} was not sent yet, so it cannot have been parsed");
                    Err(End::Close(Code::Conflict, why))
                }
                None => Err(End::Close(Code::Protocol, "not a frame of ptyd.v1".to_owned())),
            },
        }
    }

    /// A message that is none is told, and nothing of it is done: a slip of a client must not end its visit.
    async fn on_json(&mut self, text: &str) -> Result<(), End> {
        let said = json::parse(text);
        if !matches!(said, Ok(SocketInput::Resize { .. })) {
            self.resize_before().await?;
        }
        let input = match said {
            Ok(SocketInput::Input { data, data_base64, seq }) => (seq, json::bytes_of(data, data_base64)),
            Ok(SocketInput::Resize { cols, rows }) => return self.want(Dimensions { cols, rows }),
            Ok(SocketInput::Ping {}) => return self.text(&SocketMessage::Pong).await,
            Err((code, detail)) => return self.text(&SocketMessage::Error { code, detail, seq: None }).await,
        };
        match input {
            (seq, Ok(bytes)) => self.take_input(seq, bytes),
            (seq, Err((code, detail))) => {
                self.text(&SocketMessage::Error { code, detail: detail.to_owned(), seq }).await
            }
        }
    }

    /// Takes an input; without a number it gets one under a name of this connection.
    fn take_input(&mut self, seq: Option<u64>, bytes: Vec<u8>) -> Result<(), End> {
        self.may_write()?;
        let key = match seq {
            Some(seq) => format!("ws:{}:{seq}", self.client),
            None => {
                let (name, count) = self.unnumbered.get_or_insert_with(|| (fresh_name(), 0));
                *count += 1;
                format!("ws:{name}:{count}")
            }
        };
        let SocketConnection { dispatcher, principal, session, .. } = &self.connection;
        let start = || InputTask::start(dispatcher.clone(), principal.clone(), session.clone(), Arc::clone(&self.lane));
        self.input_task.get_or_insert_with(start).take(key, seq, bytes).map_err(End::from)
    }

    fn may_write(&self) -> Result<(), End> {
        if self.connection.may_write {
            return Ok(());
        }
        Err(End::Close(Code::Forbidden, ONLY_LOOKING.to_owned()))
    }

    /// Keeps a size for later, in place of an earlier one that still waits.
    fn want(&mut self, size: Dimensions) -> Result<(), End> {
        self.may_write()?;
        self.wanted = Some(size);
        Ok(())
    }

    /// Sets the size that waits, before another message of the client is handled or its connection ends.
    async fn resize_before(&mut self) -> Result<(), End> {
        match self.wanted.take() {
            Some(size) => self.resize(size).await,
            None => Ok(()),
        }
    }

    async fn resize(&mut self, size: Dimensions) -> Result<(), End> {
        let (session, Dimensions { cols, rows }) = (self.connection.session.clone(), size);
        let action = Action::Resize { session, cols, rows };
        match Box::pin(self.connection.dispatcher.dispatch(&self.connection.principal, action)).await {
            Ok(_) => Ok(()),
            Err(error) => self.not_done(error, None).await,
        }
    }

    async fn notify_typed(&mut self, seq: Option<u64>, result: Result<(), ActionError>) -> Result<(), End> {
        match (result, seq, self.connection.mode) {
            (Ok(()), None, _) | (Ok(()), _, Mode::Raw) => Ok(()),
            (Ok(()), Some(seq), Mode::Framed) => self.frame(&FromServer::Typed { seq }).await,
            (Ok(()), Some(seq), Mode::Json) => self.text(&SocketMessage::Typed { seq }).await,
            (Err(error), seq, _) => self.not_done(error, seq).await,
        }
    }

    /// A request of the client failed. An error that it can recover from is sent, any other closes the connection.
    async fn not_done(&mut self, error: ActionError, seq: Option<u64>) -> Result<(), End> {
        let (code, close) = code_of(&error);
        let goes_on = match error {
            ActionError::Stalled { .. }
            | ActionError::WouldEcho { .. }
            | ActionError::Driven { .. }
            | ActionError::Invalid { .. }
            | ActionError::PolicyDenied(_)
            | ActionError::ApprovalNeeded(_)
            | ActionError::Ended { .. }
            | ActionError::Unreachable { .. } => true,
            ActionError::NoSession { .. }
            | ActionError::OtherNode { .. }
            | ActionError::NoCommand { .. }
            | ActionError::Busy { .. }
            | ActionError::NotReady { .. }
            | ActionError::NothingRuns { .. }
            | ActionError::InputTooLate { .. }
            | ActionError::Alive { .. }
            | ActionError::SecretRefused(_)
            | ActionError::Denied { .. }
            | ActionError::AlreadyDecided { .. }
            | ActionError::ShutOut
            | ActionError::NoToken { .. }
            | ActionError::Limit { .. }
            | ActionError::KeyReused { .. }
            | ActionError::NameTaken { .. }
            | ActionError::Start { .. }
            | ActionError::Exhausted { .. }
            | ActionError::Removing { .. }
            | ActionError::NotRecorded { .. }
            | ActionError::Draining
            | ActionError::Restarting
            | ActionError::Internal { .. } => false,
        };
        if !goes_on {
            return Err(End::Close(close, error.to_string()));
        }
        match self.connection.mode {
            Mode::Framed => self.text(&SocketEvent::Error { code, detail: error.to_string(), seq }).await,
            Mode::Json => self.text(&SocketMessage::Error { code, detail: error.to_string(), seq }).await,
            // The client gets no message, as at any terminal.
            Mode::Raw => Ok(()),
        }
    }

    async fn frame(&mut self, frame: &FromServer<'_>) -> Result<(), End> {
        self.send(Message::Binary(frame.encode().into())).await
    }

    async fn text(&mut self, message: &impl Serialize) -> Result<(), End> {
        self.send(text_of(message)).await
    }

    /// Sends one message. A client that reads nothing for as long as it may be silent is gone.
    async fn send(&mut self, message: Message) -> Result<(), End> {
        match timeout(limits::PING_EVERY + limits::PONG_PATIENCE, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }
}

fn text_of(message: &impl Serialize) -> Message {
    Message::Text(serde_json::to_string(message).expect("invariant: a message is plain data").into())
}

fn ended() -> End {
    End::Close(Code::Ended, "the session has ended; its output stays readable until it is removed".to_owned())
}

/// The input is not a WebSocket frame, or too long.
pub(super) fn broken(error: axum::Error) -> End {
    let text = error.to_string();
    if text.contains("too long") || text.contains("too big") {
        let why = format!("a message may have at most {} bytes; send several", limits::MESSAGE_BYTES_MAX);
        End::Close(Code::TooLong, why)
    } else {
        End::Close(Code::Protocol, text)
    }
}
