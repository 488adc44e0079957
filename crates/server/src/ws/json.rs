//! Plain JSON texts, for a connection without a sub-protocol; docs/websocket.md describes them.
//!
//! A client that was written from terminal-management.md alone knows `input`, `output` and `status`: every
//! event of the session is a `status`.

use api::ErrorCode;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::whole_characters::WholeText;
use ptyd_core::action::{SessionEvent, SessionStatus};

/// A message from the client.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum FromClient {
    /// Type this: exactly one of both.
    #[serde(rename_all = "camelCase")]
    Input {
        /// Text.
        data: Option<String>,
        /// Bytes that are not text.
        data_base64: Option<String>,
        /// Its number, if the client numbers its inputs.
        seq: Option<u64>,
    },
    /// A new size for the terminal.
    Resize { cols: u16, rows: u16 },
    /// A question whether the connection works: a page cannot send a ping frame.
    Ping {},
}

impl FromClient {
    /// Parses a message; the error is for an `error` message.
    pub(super) fn parse(text: &str) -> Result<Self, (ErrorCode, String)> {
        serde_json::from_str(text).map_err(|e| match e.classify() {
            serde_json::error::Category::Data => (ErrorCode::InvalidField, e.to_string()),
            _ => (ErrorCode::MalformedBody, format!("the message is not JSON: {e}; nothing was typed")),
        })
    }
}

/// The bytes of an input.
pub(super) fn bytes_of(
    data: Option<String>,
    data_base64: Option<String>,
) -> Result<Vec<u8>, (ErrorCode, &'static str)> {
    match (data, data_base64) {
        (Some(text), None) => Ok(text.into_bytes()),
        (None, Some(coded)) => STANDARD
            .decode(coded)
            .map_err(|_| (ErrorCode::InvalidField, "dataBase64: is not base64; nothing was typed")),
        (Some(_), Some(_)) | (None, None) => {
            Err((ErrorCode::InvalidField, "input: has either data or dataBase64; nothing was typed"))
        }
    }
}

/// An event of the session, or the first text, as a `status`.
pub(super) fn status(status: SessionStatus, event: Value) -> Value {
    let mut message = json!({ "type": "status", "status": status_name(status) });
    if let (Value::Object(message), Value::Object(event)) = (&mut message, event) {
        // A client of this kind acknowledges nothing, so it has no window.
        message.extend(event.into_iter().filter(|(name, _)| name != "windowBytes"));
    }
    message
}

fn status_name(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Creating => "creating",
        SessionStatus::Running => "running",
        SessionStatus::Terminated => "terminated",
    }
}

/// Whether a program's last character is over at this event, even if it has no end.
pub(super) fn ends_output(event: &SessionEvent) -> bool {
    matches!(event, SessionEvent::Completed(_) | SessionEvent::Exited(_))
}

/// Output. `data` is for a terminal or a reader; where its bytes are not UTF-8, `dataBase64` has every one of them.
pub(super) fn output(output: &WholeText) -> Value {
    let WholeText { from, to, bytes } = output;
    let text = String::from_utf8_lossy(bytes);
    let mut message = json!({ "type": "output", "fromOffset": from, "nextOffset": to });
    if matches!(text, std::borrow::Cow::Owned(_)) {
        message["dataBase64"] = STANDARD.encode(bytes).into();
    }
    message["data"] = text.into();
    message
}

/// The screen: it begins with a full reset, so what was written before it is replaced.
pub(super) fn snapshot(at: u64, cols: u16, rows: u16, bytes: &[u8]) -> Value {
    json!({
        "type": "output",
        "snapshot": true,
        "data": String::from_utf8_lossy(bytes),
        "dimensions": { "cols": cols, "rows": rows },
        "nextOffset": at,
    })
}

/// A range that is not given.
pub(super) fn gap(from: u64, to: u64) -> Value {
    json!({ "type": "gap", "fromOffset": from, "nextOffset": to })
}

/// The input of this number was typed.
pub(super) fn typed(seq: u64) -> Value {
    json!({ "type": "typed", "seq": seq })
}

/// The answer to a `ping`.
pub(super) fn pong() -> Value {
    json!({ "type": "pong" })
}

/// A request of the client failed.
pub(super) fn error(code: ErrorCode, detail: &str, seq: Option<u64>) -> Value {
    json!({ "type": "error", "code": code.as_str(), "detail": detail, "seq": seq })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: view-6
    fn a_message_is_read_or_refused_with_a_code() {
        let input = |data: &str, seq| FromClient::Input { data: Some(data.to_owned()), data_base64: None, seq };
        assert_eq!(FromClient::parse(r#"{"type":"input","data":"ls\n"}"#), Ok(input("ls\n", None)));
        assert_eq!(
            FromClient::parse(r#"{"type":"input","data":"x","dataBase64":null,"seq":7}"#),
            Ok(input("x", Some(7)))
        );
        assert_eq!(
            FromClient::parse(r#"{"type":"resize","cols":80,"rows":24}"#),
            Ok(FromClient::Resize { cols: 80, rows: 24 })
        );
        assert_eq!(FromClient::parse(r#"{"type":"ping"}"#), Ok(FromClient::Ping {}));
        let code = |text| FromClient::parse(text).expect_err(text).0;
        for text in ["ls", "", "{"] {
            assert_eq!(code(text), ErrorCode::MalformedBody, "{text}");
        }
        for text in [r#"{"type":"resize","cols":70000,"rows":1}"#, r#"{"type":"x"}"#, r#"{"type":"ping","id":1}"#, "7"]
        {
            assert_eq!(code(text), ErrorCode::InvalidField, "{text}");
        }
    }

    #[test]
    // promise: view-6
    fn bytes_that_are_not_text_are_given_exactly_too() {
        let of = |bytes: &[u8]| output(&WholeText { from: 5, to: 9, bytes: bytes.to_vec() });
        assert_eq!(of("aé".as_bytes()), json!({ "type": "output", "fromOffset": 5, "nextOffset": 9, "data": "aé" }));
        let exact =
            json!({ "type": "output", "fromOffset": 5, "nextOffset": 9, "data": "a\u{fffd}", "dataBase64": "Yf8=" });
        assert_eq!(of(b"a\xff"), exact);
        assert_eq!(bytes_of(None, Some("Yf8=".to_owned())), Ok(b"a\xff".to_vec()));
        assert!(bytes_of(None, None).is_err() && bytes_of(Some(String::new()), Some(String::new())).is_err());
    }
}
