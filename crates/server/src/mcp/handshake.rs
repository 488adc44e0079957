//! The first line of a stdio client's stream: the client's id, its context, and its tools.
//!
//! The shim writes the line and this module parses it; unknown fields are ignored, because new ones may come.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use ptyd_core::action::ClientContext;
use ptyd_core::ids::SessionId;
use ptyd_core::limits::TIMEOUT_MAX;
use ptyd_core::principal::Detach;

/// The version of the line that this server supports.
const VERSION: u32 = 1;

/// The tools that a model sees.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolSet {
    /// All eight tools.
    #[default]
    All,
    /// Only the `terminal` tool.
    Terminal,
    /// All but the `terminal` tool.
    Sessions,
    /// The four tools for an agent that writes code.
    Coding,
}

/// An agent that writes code starts shells, types at programs and reads output; `terminal` runs commands in every session.
const CODING: [&str; 4] = ["get_terminal_output", "send_input_to_terminal", "start_terminal_session", "terminal"];

impl ToolSet {
    pub(super) fn has(self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Terminal => name == "terminal",
            Self::Sessions => name != "terminal",
            Self::Coding => CODING.contains(&name),
        }
    }
}

/// The mark of an HTTP request that asks for structured answers.
#[derive(Debug, Clone, Copy)]
pub(super) struct StructuredAnswers;

/// The parsed line.
#[derive(Debug, Clone)]
pub(super) struct Handshake {
    /// The client's id, with its directory, environment and mask.
    pub client: ClientContext,
    /// Its tools.
    pub tools: ToolSet,
    /// It asks for structured answers.
    pub structured: bool,
    /// How far it has read in sessions of an earlier server.
    pub read_to: BTreeMap<SessionId, u64>,
}

#[derive(Deserialize)]
struct Wire {
    v: u32,
    client: String,
    cwd: String,
    env: Vec<(String, String)>,
    umask: u32,
    #[serde(default)]
    tools: ToolSet,
    #[serde(default)]
    structured: bool,
    #[serde(default)]
    detach: Option<WireDetach>,
    #[serde(default, rename = "readTo")]
    read_to: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WireDetach {
    Word(String),
    Seconds(f64),
}

impl Handshake {
    /// Parses the line; the error is for the log and the shim's stderr.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let wire: Wire = serde_json::from_slice(line).map_err(|e| format!("the hello line cannot be read: {e}"))?;
        if wire.v != VERSION {
            return Err(format!("the hello line has version {}, this server understands {VERSION}", wire.v));
        }
        if wire.client.is_empty() || wire.client.len() > 100 {
            return Err("the hello line names no client".to_owned());
        }
        let bytes = |text: &str| STANDARD.decode(text).map_err(|e| format!("the hello line has bad base64: {e}"));
        let mut env = Vec::with_capacity(wire.env.len());
        for (name, value) in &wire.env {
            env.push((bytes(name)?, bytes(value)?));
        }
        let detach = match wire.detach {
            None => Detach::default(),
            Some(WireDetach::Word(word)) if word == "keep" => Detach::Keep,
            Some(WireDetach::Word(word)) => {
                return Err(format!("detach: {word:?} is neither \"keep\" nor a number of seconds"));
            }
            Some(WireDetach::Seconds(seconds)) => {
                Detach::After(Duration::try_from_secs_f64(seconds).unwrap_or(TIMEOUT_MAX).min(TIMEOUT_MAX))
            }
        };
        let client = ClientContext {
            client: Some(wire.client),
            cwd: Some(PathBuf::from(OsString::from_vec(bytes(&wire.cwd)?))),
            env: Some(Arc::new(env)),
            umask: Some(wire.umask),
            detach,
        };
        let read_to = wire.read_to.iter().filter_map(|(id, read_to)| Some((SessionId::parse(id).ok()?, *read_to)));
        Ok(Self { client, tools: wire.tools, structured: wire.structured, read_to: read_to.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_carries_bytes_that_are_not_utf8() {
        let line = br#"{"v":1,"client":"c1","cwd":"L2H/","env":[["QQ==","/w=="]],"umask":18,"tools":"terminal","structured":true,"detach":"keep","readTo":{"s0-aaaaaaaaaa":7,"no session":8},"new":1}"#;
        let hello = Handshake::parse(line).expect("a good hello");
        assert_eq!(hello.client.client.as_deref(), Some("c1"));
        assert_eq!(hello.client.cwd, Some(PathBuf::from(OsString::from_vec(b"/a\xff".to_vec()))));
        assert_eq!(hello.client.env, Some(Arc::new(vec![(b"A".to_vec(), b"\xff".to_vec())])));
        assert_eq!((hello.client.umask, hello.tools, hello.client.detach), (Some(18), ToolSet::Terminal, Detach::Keep));
        assert!(hello.structured);
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        assert_eq!(hello.read_to, BTreeMap::from([(session, 7)]));
    }

    #[test]
    fn a_hello_of_another_version_or_without_a_client_is_refused() {
        for bad in [
            r#"{"v":2,"client":"c","cwd":"","env":[],"umask":18}"#,
            r#"{"v":1,"client":"","cwd":"","env":[],"umask":18}"#,
            r#"{"v":1,"client":"c","cwd":"%","env":[],"umask":18}"#,
            r#"{"v":1,"client":"c","cwd":"","env":[],"umask":18,"detach":"never"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
        ] {
            assert!(Handshake::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
