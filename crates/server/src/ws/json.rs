//! Plain JSON texts, for a connection without a sub-protocol; docs/websocket.md describes them.
//!
//! A client that was written from terminal-management.md alone knows `input`, `output` and `status`: every
//! event of the session is a `status`.

use api::{Dimensions, ErrorCode, SocketEvent, SocketInput, SocketMessage};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::whole_characters::WholeText;
use ptyd_core::action::SessionEvent;

/// Parses a message of the client; the error is for an `error` message.
pub(super) fn parse(text: &str) -> Result<SocketInput, (ErrorCode, String)> {
    serde_json::from_str(text).map_err(|e| match e.classify() {
        serde_json::error::Category::Data => (ErrorCode::InvalidField, e.to_string()),
        _ => (ErrorCode::MalformedBody, format!("the message is not JSON: {e}; nothing was typed")),
    })
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

/// An event of the session, or the first message, as a `status`.
pub(super) fn status(status: api::SessionStatus, mut event: SocketEvent) -> SocketMessage {
    if let SocketEvent::Control { status, window_bytes, .. } = &mut event {
        // The message has the status. A client of this kind acknowledges nothing, so it has no window.
        (*status, *window_bytes) = (None, None);
    }
    SocketMessage::Status { status, event }
}

/// Whether a program's last character is over at this event, even if it has no end.
pub(super) fn ends_output(event: &SessionEvent) -> bool {
    matches!(event, SessionEvent::Completed(_) | SessionEvent::Exited(_))
}

/// Output. `data` is for a terminal or a reader; where its bytes are not UTF-8, `dataBase64` has every one of them.
pub(super) fn output(output: &WholeText) -> SocketMessage {
    let WholeText { from, to, bytes } = output;
    let text = String::from_utf8_lossy(bytes);
    SocketMessage::Output {
        data_base64: matches!(text, std::borrow::Cow::Owned(_)).then(|| STANDARD.encode(bytes)),
        data: text.into_owned(),
        snapshot: false,
        dimensions: None,
        from_offset: Some(*from),
        next_offset: *to,
    }
}

/// The screen: it begins with a full reset, so what was written before it is replaced.
pub(super) fn snapshot(at: u64, cols: u16, rows: u16, bytes: &[u8]) -> SocketMessage {
    SocketMessage::Output {
        data: String::from_utf8_lossy(bytes).into_owned(),
        data_base64: None,
        snapshot: true,
        dimensions: Some(Dimensions { cols, rows }),
        from_offset: None,
        next_offset: at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    // promise: view-6
    fn a_message_is_read_or_refused_with_a_code() {
        let input = |data: &str, seq| SocketInput::Input { data: Some(data.to_owned()), data_base64: None, seq };
        assert_eq!(parse(r#"{"type":"input","data":"ls\n"}"#), Ok(input("ls\n", None)));
        assert_eq!(parse(r#"{"type":"input","data":"x","dataBase64":null,"seq":7}"#), Ok(input("x", Some(7))));
        assert_eq!(parse(r#"{"type":"resize","cols":80,"rows":24}"#), Ok(SocketInput::Resize { cols: 80, rows: 24 }));
        assert_eq!(parse(r#"{"type":"ping"}"#), Ok(SocketInput::Ping {}));
        let code = |text| parse(text).expect_err(text).0;
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
        let of = |bytes: &[u8]| {
            serde_json::to_value(output(&WholeText { from: 5, to: 9, bytes: bytes.to_vec() })).expect("plain data")
        };
        assert_eq!(of("aé".as_bytes()), json!({ "type": "output", "fromOffset": 5, "nextOffset": 9, "data": "aé" }));
        let exact =
            json!({ "type": "output", "fromOffset": 5, "nextOffset": 9, "data": "a\u{fffd}", "dataBase64": "Yf8=" });
        assert_eq!(of(b"a\xff"), exact);
        assert_eq!(bytes_of(None, Some("Yf8=".to_owned())), Ok(b"a\xff".to_vec()));
        assert!(bytes_of(None, None).is_err() && bytes_of(Some(String::new()), Some(String::new())).is_err());
    }
}
