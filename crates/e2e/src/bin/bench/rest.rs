//! The REST client of the measurements.

use anyhow::{Context, Result, ensure};
use e2e::{Connection, Server};
use serde_json::{Value, json};

/// A client over loopback, as remote programs are.
pub struct Rest {
    http: Connection,
    bearer: String,
}

impl Rest {
    /// Connects with the server's token.
    pub fn connect(server: &Server) -> Result<Self> {
        Ok(Self { http: Connection::tcp(server.address())?, bearer: format!("Bearer {}", server.token()) })
    }

    /// Sends one request; an answer that reports a failure is an error.
    pub fn ask(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let headers = [("Host", "127.0.0.1"), ("Authorization", &self.bearer)];
        let reply = self.http.send(method, path, &headers, &body)?;
        ensure!(reply.status < 300, "{method} {path}: {} {}", reply.status, reply.json());
        Ok(reply.json())
    }

    /// Starts a session and returns its id.
    pub fn session(&mut self) -> Result<String> {
        let made = self.ask("POST", "/terminals", &json!({}))?;
        Ok(made["id"].as_str().context("an id")?.to_owned())
    }

    /// Runs a command that succeeds.
    pub fn run(&mut self, session: &str, command: &str) -> Result<Value> {
        let body = json!({ "command": command, "timeout": 120, "maxChars": 1000 });
        let done = self.ask("POST", &format!("/terminals/{session}/execute"), &body)?;
        ensure!(done["exitCode"] == 0, "{command}: {done}");
        Ok(done)
    }

    /// Ends a session.
    pub fn end(&mut self, session: &str) -> Result<()> {
        self.ask("DELETE", &format!("/terminals/{session}?force=true"), &Value::Null).map(drop)
    }
}
