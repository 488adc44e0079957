//! What the next server has to be told when this one dies: the handshake, and every request that has no answer yet.
//!
//! Pure: lines in, lines out. A message is parsed no further than to its id and method, and only a tool call is changed:
//! it gets this process's number for it, so that the server knows it when it comes again.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Requests that may be open at once: far more than any host sends.
const OPEN_MAX: usize = 1_024;
/// Bytes of all of them.
const OPEN_BYTES_MAX: usize = 64 << 20;
/// Resources that are followed at once: more than the server allows.
const SUBSCRIBED_MAX: usize = 256;
/// How often one request is sent: a request that kills every server must not do so for ever.
const SENDS_MAX: u32 = 3;
/// Where the server looks for the number.
const REQUEST_NUMBER: &str = "ptyd/request";

/// The requests of one host.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    initialize: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
    /// What the host follows, by the name of the resource, and the level of its log: the next server has to be told.
    subscribed: BTreeMap<String, Subscribed>,
    /// The handshake and subscriptions were repeated, and these are the ids of answers that the host has had already.
    swallowed: Vec<String>,
    open: BTreeMap<u64, Open>,
    open_bytes: usize,
    number: u64,
}

#[derive(Debug)]
struct Open {
    id: String,
    line: Vec<u8>,
    sends: u32,
    is_initialize: bool,
}

#[derive(Debug)]
struct Subscribed {
    id: String,
    line: Vec<u8>,
}

/// What to do with the host's line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outgoing {
    /// Send this.
    Send(Vec<u8>),
    /// Answer this to the host.
    Refuse(Vec<u8>),
}

/// The parts of a message that matter here.
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
    /// Present although null is another thing than absent: a second `_meta` would be an error.
    #[serde(borrow, default, rename = "_meta", deserialize_with = "present")]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Cancelled {
    #[serde(rename = "requestId")]
    request: Value,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl PendingRequests {
    /// Notes what the host says.
    pub fn outgoing(&mut self, line: Vec<u8>) -> Outgoing {
        let Some((id, method, numbered)) = self.read(&line) else { return Outgoing::Send(line) };
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
                self.open.insert(self.number, Open { id, line: line.clone(), sends: 1, is_initialize });
            }
            (None, "\"notifications/initialized\"") => self.initialized = Some(line.clone()),
            (None, "\"notifications/cancelled\"") => {
                // A cancelled request gets no answer, so it would stay open for ever.
                let request = serde_json::from_slice::<Value>(&line).ok().map(|mut message| message["params"].take());
                if let Some(cancelled) = request.and_then(|p| serde_json::from_value::<Cancelled>(p).ok()) {
                    self.close(&cancelled.request.to_string());
                }
            }
            (None, _) => {}
        }
        Outgoing::Send(line)
    }

    /// Remembers what is followed. More than fits is refused by the server, too.
    fn note_subscription(&mut self, id: &str, method: &str, line: &[u8]) {
        let uri = || Some(serde_json::from_slice::<Value>(line).ok()?["params"]["uri"].as_str()?.to_owned());
        match method {
            "\"resources/subscribe\"" if self.subscribed.len() < SUBSCRIBED_MAX => {
                let subscribed = Subscribed { id: id.to_owned(), line: line.to_vec() };
                self.subscribed.extend(uri().map(|uri| (uri, subscribed)));
            }
            // The level stands beside the resources; no resource has no name.
            "\"logging/setLevel\"" => {
                let level = Subscribed { id: id.to_owned(), line: line.to_vec() };
                self.subscribed.insert(String::new(), level);
            }
            "\"resources/unsubscribe\"" => drop(uri().map(|uri| self.subscribed.remove(&uri))),
            _ => {}
        }
    }

    /// The id, the method as JSON, and the line with its number if it is a tool call; `None` for what is no message.
    fn read(&mut self, line: &[u8]) -> Option<(Option<String>, String, Option<Vec<u8>>)> {
        let text = std::str::from_utf8(line).ok().filter(|t| t.trim_start().starts_with('{'))?;
        let head: Head<'_> = serde_json::from_str(text).ok()?;
        let method = head.method?.get();
        let id = head.id.and_then(key);
        if id.is_some() {
            self.number += 1;
        }
        let params = head.params.filter(|_| method == "\"tools/call\"" && id.is_some());
        let numbered = params.and_then(|params| number(text, params, self.number));
        Some((id, method.to_owned(), numbered))
    }

    /// Whether the host is to see this line of the server.
    pub fn incoming(&mut self, line: &[u8]) -> bool {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let Ok(Head { id: Some(id), method: None, .. }) = serde_json::from_str(text) else { return true };
        let Some(id) = key(id) else { return true };
        if let Some(at) = self.swallowed.iter().position(|swallowed| *swallowed == id) {
            self.swallowed.swap_remove(at);
            return false;
        }
        self.close(&id);
        true
    }

    /// The lines for the next server, in their order, and the answers to requests that were sent often enough.
    pub fn replay(&mut self) -> (Vec<u8>, Vec<u8>) {
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
        for Subscribed { id, line } in self.subscribed.values() {
            // One without an answer is open, and is sent as such.
            if !self.open.values().any(|open| open.id == *id) {
                self.swallowed.push(id.clone());
                push(&mut lines, line);
            }
        }
        self.open.retain(|_, open| {
            if open.sends >= SENDS_MAX {
                self.open_bytes -= open.line.len();
                push(
                    &mut refusals,
                    &error(&open.id, "the server ended several times while it did this; it was not tried again"),
                );
                return false;
            }
            open.sends += 1;
            push(&mut lines, &open.line);
            true
        });
        (lines, refusals)
    }

    /// The answers to everything that is open, because no server will give one, and why.
    pub fn give_up(&mut self, why: &str) -> Vec<u8> {
        let mut refusals = Vec::new();
        for open in std::mem::take(&mut self.open).into_values() {
            push(&mut refusals, &error(&open.id, &format!("no server can be reached: {why}")));
        }
        self.open_bytes = 0;
        refusals
    }

    /// Whether an answer is still awaited.
    pub fn awaits(&self) -> bool {
        !self.open.is_empty()
    }

    fn close(&mut self, id: &str) {
        let number = self.open.iter().find(|(_, open)| open.id == id).map(|(number, _)| *number);
        if let Some(open) = number.and_then(|number| self.open.remove(&number)) {
            self.open_bytes -= open.line.len();
        }
    }
}

fn push(lines: &mut Vec<u8>, line: &[u8]) {
    lines.extend_from_slice(line);
    lines.push(b'\n');
}

/// An id as both sides would write it: the server need not keep the host's escapes.
fn key(id: &RawValue) -> Option<String> {
    serde_json::from_str::<Value>(id.get()).ok().filter(|v| !v.is_null()).map(|v| v.to_string())
}

/// The line with the number in the request's `_meta`, all other bytes as they were.
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
    // A RawValue borrows from the line, so where it begins is where it stands in the line.
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
