//! The requests to repeat at the next server when one dies: the handshake, and every request without an answer. It also
//! keeps the place up to which the host has been shown each session, so that the next server shows each line once.
//!
//! No I/O: lines in, lines out. Only the id and method of a message are parsed, and only tool calls are changed: each
//! gets a number, so that the next server recognises it.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::discovery::Discovery;

/// Requests that may be open at once: far more than any host sends.
const OPEN_MAX: usize = 1_024;
/// The bytes of all of them.
const OPEN_BYTES_MAX: usize = 64 << 20;
/// Resources followed at once: more than the server permits.
const SUBSCRIBED_MAX: usize = 256;
/// How often one request is sent to servers that it may kill: it must not do so for ever.
const SENDS_MAX: u32 = 3;
/// A server that ends later after a request is taken to have ended for another reason, such as an upgrade.
pub(super) const KILLS_WITHIN: Duration = Duration::from_secs(10);
/// Sessions whose read positions are kept; the next server reads the others from its own records.
const READ_POSITIONS_MAX: usize = 64;
/// Answers that the host may still refuse with a cancellation: as many as the server takes back.
const CROSSED_MAX: usize = 16;
/// The field in which the server expects the number.
const REQUEST_NUMBER: &str = "ptyd/request";
/// The field in which an answer says how far it reads in each session.
const READ_TO: &str = "ptyd/readTo";

/// The requests of one host.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    initialize: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
    /// The host's subscriptions, by resource, and its log level, to be repeated at the next server.
    subscribed: BTreeMap<String, Subscription>,
    /// Ids of repeated requests (handshake, subscriptions) whose answers the host already has.
    swallowed: Vec<String>,
    open: BTreeMap<u64, OpenRequest>,
    open_bytes: usize,
    number: u64,
    /// How far the answers read in each session, the newest last.
    read_to: VecDeque<(String, u64)>,
    /// The newest answers that read something, by their requests' ids.
    answered: VecDeque<(String, Vec<String>)>,
}

#[derive(Debug)]
struct OpenRequest {
    id: String,
    line: Vec<u8>,
    /// The servers that may have ended because of it, and the present one.
    sends: u32,
    /// When it was last sent again.
    sent_again: Option<Instant>,
    is_initialize: bool,
    is_discover: bool,
}

#[derive(Debug)]
struct Subscription {
    id: String,
    line: Vec<u8>,
}

/// The handling of a line from the host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// Send this.
    Send(Vec<u8>),
    /// Send this answer to the host.
    Refuse(Vec<u8>),
}

/// The relevant parts of a message.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    /// Null counts as present: a second `_meta` would be an error.
    #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
    meta: Option<&'a RawValue>,
}

/// The part of an answer that says how far it reads.
#[derive(Deserialize)]
struct Answer {
    result: AnswerResult,
}

#[derive(Deserialize)]
struct AnswerResult {
    #[serde(rename = "_meta")]
    meta: AnswerMeta,
}

#[derive(Deserialize)]
struct AnswerMeta {
    #[serde(rename = "ptyd/readTo")]
    read_to: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request: Value,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl PendingRequests {
    /// The number identifies a request of this client, which may have been another process before.
    pub(super) fn numbered_after(number: u64) -> Self {
        Self { number, ..Self::default() }
    }

    /// Processes a line from the host.
    pub fn outgoing(&mut self, line: Vec<u8>) -> Outgoing {
        let line = with_whole_characters(line);
        if may_have_unreadable_numbers(&line)
            && let Some(error) = refusal(&line)
        {
            return Outgoing::Refuse(error);
        }
        let Some((id, method, numbered)) = self.read(&line) else {
            return match refusal(&line) {
                Some(error) => Outgoing::Refuse(error),
                None => Outgoing::Send(line),
            };
        };
        let line = numbered.unwrap_or(line);
        match (id, method.as_str()) {
            (Some(id), method) => {
                if self.open.len() >= OPEN_MAX || self.open_bytes + line.len() > OPEN_BYTES_MAX {
                    return Outgoing::Refuse(error(&id, "too many requests are open; wait for answers"));
                }
                let is_initialize = method == "\"initialize\"";
                if is_initialize {
                    self.initialize = Some(line.clone());
                }
                self.note_subscription(&id, method, &line);
                self.open_bytes += line.len();
                let is_discover = method == "\"server/discover\"";
                let open =
                    OpenRequest { id, line: line.clone(), sends: 1, sent_again: None, is_initialize, is_discover };
                self.open.insert(self.number, open);
            }
            (None, "\"notifications/initialized\"") => self.initialized = Some(line.clone()),
            (None, "\"notifications/cancelled\"") => {
                // A cancelled request gets no answer, so it would stay open for ever.
                let request = serde_json::from_slice::<Value>(&line).ok().map(|mut message| message["params"].take());
                if let Some(cancelled) = request.and_then(|p| serde_json::from_value::<CancelledParams>(p).ok()) {
                    let id = cancelled.request.to_string();
                    self.close(&id);
                    self.take_back(&id);
                }
            }
            (None, _) => {}
        }
        Outgoing::Send(line)
    }

    /// Remembers a subscription. The server refuses too many, as well.
    fn note_subscription(&mut self, id: &str, method: &str, line: &[u8]) {
        let uri = || Some(serde_json::from_slice::<Value>(line).ok()?["params"]["uri"].as_str()?.to_owned());
        match method {
            "\"resources/subscribe\"" if self.subscribed.len() < SUBSCRIBED_MAX => {
                let subscribed = Subscription { id: id.to_owned(), line: line.to_vec() };
                self.subscribed.extend(uri().map(|uri| (uri, subscribed)));
            }
            // The log level is stored like a resource; no resource has an empty name.
            "\"logging/setLevel\"" => {
                let level = Subscription { id: id.to_owned(), line: line.to_vec() };
                self.subscribed.insert(String::new(), level);
            }
            "\"resources/unsubscribe\"" => drop(uri().map(|uri| self.subscribed.remove(&uri))),
            _ => {}
        }
    }

    /// The id, the method as JSON, and the line with its number if it is a tool call; `None` if it is not a message.
    fn read(&mut self, line: &[u8]) -> Option<(Option<String>, String, Option<Vec<u8>>)> {
        let text = std::str::from_utf8(line).ok().filter(|t| t.trim_start().starts_with('{'))?;
        let head: Head<'_> = serde_json::from_str(text).ok()?;
        let method = head.method?.get();
        let id = head.id.and_then(key);
        let has_form = method.starts_with('"') && head.params.is_none_or(|params| params.get().starts_with(['{', 'n']));
        if id.is_some() && !has_form {
            return None;
        }
        if id.is_some() {
            self.number += 1;
        }
        let params = head.params.filter(|_| method == "\"tools/call\"" && id.is_some());
        let numbered = params.and_then(|params| number(text, params, self.number));
        Some((id, method.to_owned(), numbered))
    }

    /// Whether the host gets this line of the server.
    pub fn incoming(&mut self, line: &[u8]) -> bool {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let Ok(Head { id: Some(id), method: None, .. }) = serde_json::from_str(text) else { return true };
        let Some(id) = key(id) else { return true };
        if let Some(at) = self.swallowed.iter().position(|swallowed| *swallowed == id) {
            self.swallowed.swap_remove(at);
            return false;
        }
        if self.close(&id) {
            self.note_read(id, text);
        }
        true
    }

    /// Notes how far this answer reads.
    fn note_read(&mut self, id: String, line: &str) {
        if !line.contains(READ_TO) {
            return;
        }
        let Ok(Answer { result }) = serde_json::from_str(line) else { return };
        let sessions = result.meta.read_to.keys().cloned().collect();
        for (session, at) in result.meta.read_to {
            self.read_to.retain(|(other, _)| *other != session);
            self.read_to.push_back((session, at));
        }
        self.answered.push_back((id, sessions));
        self.read_to.drain(..self.read_to.len().saturating_sub(READ_POSITIONS_MAX));
        self.answered.drain(..self.answered.len().saturating_sub(CROSSED_MAX));
    }

    /// The host does not take this answer: the server knows from where it reads on.
    fn take_back(&mut self, id: &str) {
        let Some(at) = self.answered.iter().position(|(answered, _)| answered == id) else { return };
        let (_, sessions) = self.answered.remove(at).unwrap_or_default();
        self.read_to.retain(|(session, _)| !sessions.contains(session));
    }

    /// The places up to which the host has been shown its sessions.
    pub fn read_to(&self) -> BTreeMap<&str, u64> {
        self.read_to.iter().map(|(session, at)| (session.as_str(), *at)).collect()
    }

    /// The lines for the next server, in order, and the answers to requests that were sent too often. The last server
    /// ended at the given time.
    pub fn replay(&mut self, ended: Instant, now: Instant) -> (Vec<u8>, Vec<u8>) {
        let (mut lines, mut refusals) = (Vec::new(), Vec::new());
        let is_answered = !self.open.values().any(|open| open.is_initialize);
        self.swallowed.clear();
        if let (Some(initialize), true) = (&self.initialize, is_answered) {
            self.swallowed.extend(serde_json::from_slice::<Value>(initialize).ok().map(|m| m["id"].to_string()));
            push(&mut lines, initialize);
            if let Some(initialized) = &self.initialized {
                push(&mut lines, initialized);
            }
        }
        for Subscription { id, line } in self.subscribed.values() {
            // A request without an answer is open, and is sent as such.
            if !self.open.values().any(|open| open.id == *id) {
                self.swallowed.push(id.clone());
                push(&mut lines, line);
            }
        }
        self.open.retain(|_, open| {
            if open.sent_again.replace(now).is_some_and(|sent| ended.duration_since(sent) >= KILLS_WITHIN) {
                open.sends = 1;
            }
            if open.sends >= SENDS_MAX {
                self.open_bytes -= open.line.len();
                push(
                    &mut refusals,
                    &error(&open.id, "the server ended several times during this request; ptyd did not send it again"),
                );
                return false;
            }
            open.sends += 1;
            push(&mut lines, &open.line);
            true
        });
        (lines, refusals)
    }

    /// Whether the host waits for what the server is.
    pub fn awaits_discovery(&self) -> bool {
        self.open.values().any(|open| open.is_discover)
    }

    /// The answers to these requests; the host does not see those of the server.
    pub fn discover(&mut self, discovery: &Discovery) -> Vec<u8> {
        let mut answers = Vec::new();
        let (swallowed, bytes) = (&mut self.swallowed, &mut self.open_bytes);
        self.open.retain(|_, open| {
            let result = if open.is_discover { discovery.result(&open.line) } else { None };
            let Some(result) = result else { return true };
            push(&mut answers, format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, open.id).as_bytes());
            swallowed.push(std::mem::take(&mut open.id));
            *bytes -= open.line.len();
            false
        });
        answers
    }

    /// The error answers to all open requests when no server can be reached.
    pub fn give_up(&mut self, why: &str) -> Vec<u8> {
        let mut refusals = Vec::new();
        for open in std::mem::take(&mut self.open).into_values() {
            push(&mut refusals, &error(&open.id, &format!("no server can be reached: {why}")));
        }
        self.open_bytes = 0;
        refusals
    }

    /// Whether an answer is pending.
    pub fn awaits(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the request was open.
    fn close(&mut self, id: &str) -> bool {
        let number = self.open.iter().find(|(_, open)| open.id == id).map(|(number, _)| *number);
        let closed = number.and_then(|number| self.open.remove(&number));
        self.open_bytes -= closed.as_ref().map_or(0, |open| open.line.len());
        closed.is_some()
    }
}

/// The sender of a line that cannot be read as a whole.
#[derive(Deserialize)]
struct Sender {
    id: Option<Value>,
}

/// A number of at most this many digits, without an exponent, can always be read.
const DIGITS_READ: usize = 300;

/// Whether a number may be larger than any that is read (`1e400`), which makes the whole line unreadable.
fn may_have_unreadable_numbers(line: &[u8]) -> bool {
    line.windows(2).any(|part| part[0].is_ascii_digit() && matches!(part[1], b'e' | b'E'))
        || line.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > DIGITS_READ)
}

/// The error for a line that no request can be read from; `None` for all others. The server would drop it, and its sender
/// would wait.
fn refusal(line: &[u8]) -> Option<Vec<u8>> {
    let first = line.iter().find(|byte| !byte.is_ascii_whitespace())?;
    let (code, why) = match serde_json::from_slice::<Value>(line) {
        Err(error) => (-32700, format!("this line cannot be read as JSON: {error}")),
        Ok(_) if !matches!(first, b'{' | b'[') => (-32600, "a message must be a JSON object".to_owned()),
        Ok(message) if message["id"].is_null() || message.get("result").or(message.get("error")).is_some() => {
            return None;
        }
        Ok(message) if !message["method"].is_string() => (-32600, "a request must name its method".to_owned()),
        Ok(message) if !matches!(message["params"], Value::Object(_) | Value::Null) => {
            (-32602, "params must be a JSON object".to_owned())
        }
        Ok(_) => return None,
    };
    let id = serde_json::from_slice::<Sender>(line).ok().and_then(|sender| sender.id);
    let error = serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": format!("ptyd mcp: {why}") } });
    Some(error.to_string().into_bytes())
}

/// The line with U+FFFD for what is half a character: bytes that are not UTF-8, and escaped surrogates without their other
/// half, which JavaScript writes for half an emoji.
fn with_whole_characters(line: Vec<u8>) -> Vec<u8> {
    let has_surrogates = line.windows(3).any(|part| part == b"\\ud" || part == b"\\uD");
    let line = match std::str::from_utf8(&line) {
        Ok(_) => line,
        Err(_) => String::from_utf8_lossy(&line).into_owned().into_bytes(),
    };
    if !has_surrogates {
        return line;
    }
    let unit = |at: usize| -> Option<u16> {
        let digits = line.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut whole = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(byte) = line.get(at) {
        let len = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            // An escaped backslash begins no other escape.
            _ if *byte == b'\\' => 2.min(line.len() - at),
            _ => 1,
        };
        whole.extend_from_slice(&line[at..at + len]);
        at += len;
    }
    whole
}

fn push(lines: &mut Vec<u8>, line: &[u8]) {
    lines.extend_from_slice(line);
    lines.push(b'\n');
}

/// A normalised id: the server need not keep the host's escapes.
fn key(id: &RawValue) -> Option<String> {
    serde_json::from_str::<Value>(id.get()).ok().filter(|v| !v.is_null()).map(|v| v.to_string())
}

/// The line with the number in the request's `_meta`, and all other bytes unchanged.
fn number(line: &str, params: &RawValue, number: u64) -> Option<Vec<u8>> {
    let Params { meta } = serde_json::from_str(params.get()).ok()?;
    let member = format!("\"{REQUEST_NUMBER}\":{number}");
    let (object, member) = match meta {
        Some(meta) if meta.get() == "null" => {
            let at = meta.get().as_ptr() as usize - line.as_ptr() as usize;
            return Some(format!("{}{{{member}}}{}", &line[..at], &line[at + 4..]).into_bytes());
        }
        Some(meta) => (meta, member),
        None => (params, format!("\"_meta\":{{{member}}}")),
    };
    // A RawValue borrows from the line, so its address gives its position in the line.
    let begin = object.get().as_ptr() as usize - line.as_ptr() as usize;
    let inner = object.get().strip_prefix('{')?.strip_suffix('}')?;
    // Last, because the last of two members with one name counts.
    let end = begin + object.get().len() - 1;
    let comma = if inner.trim().is_empty() { "" } else { "," };
    Some(format!("{}{comma}{member}{}", &line[..end], &line[end..]).into_bytes())
}

/// An error from the shim itself.
fn error(id: &str, why: &str) -> Vec<u8> {
    // The id is JSON already.
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32000,\"message\":\"ptyd mcp: {why}\"}}}}")
        .into_bytes()
}
