//! The REST client of the measurements.

use anyhow::{Context, Result, ensure};
use e2e::{Connection, Pid, Server};
use serde_json::{Value, json};

use crate::processor::Role;

/// A client over loopback, as remote programs are.
pub struct Rest {
    http: Connection,
    bearer: String,
    server: Pid,
}

impl Rest {
    /// Connects with the server's token.
    pub fn connect(server: &Server) -> Result<Self> {
        let bearer = format!("Bearer {}", server.token());
        Ok(Self { http: Connection::tcp(server.address())?, bearer, server: server.pid() })
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

    /// The server's process.
    pub fn server(&self) -> Pid {
        self.server
    }

    /// The processes that work for a session.
    pub fn processes(&mut self, session: &str) -> Result<Vec<(Role, Pid)>> {
        let shell = self.ask("GET", &format!("/terminals/{session}"), &Value::Null)?["pid"].as_u64();
        let shell = Pid::new(u32::try_from(shell.context("a shell")?)?);
        let holder = shell.parent().context("a holder")?;
        Ok(vec![(Role::Server, self.server), (Role::Holder, holder), (Role::Shell, shell)])
    }

    /// Ends a session.
    pub fn end(&mut self, session: &str) -> Result<()> {
        self.ask("DELETE", &format!("/terminals/{session}?force=true"), &Value::Null).map(drop)
    }
}
