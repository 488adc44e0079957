//! `ptyd mcp` as a client starts it: lines of JSON on stdin and stdout, blocking.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};

use crate::{Pid, Server};

/// A stdio client.
#[derive(Debug)]
pub struct Mcp {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    count: u64,
}

impl Mcp {
    /// Starts the program and introduces itself.
    pub fn start(server: &Server) -> io::Result<Self> {
        let mut child = server.ptyd(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        let mut mcp = Self { child, stdin, stdout, count: 0 };
        let client = json!({ "name": "e2e", "version": "1" });
        mcp.request(
            "initialize",
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client }),
        )?;
        mcp.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(mcp)
    }

    /// The program's process.
    pub fn pid(&self) -> Pid {
        Pid::new(self.child.id())
    }

    /// Calls a tool; the whole result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> io::Result<Value> {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    fn request(&mut self, method: &str, params: Value) -> io::Result<Value> {
        self.count += 1;
        let id = self.count;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut message: Value = serde_json::from_str(&line)?;
            // Progress and the like has no id.
            if message["id"] == id {
                return match message.get("error") {
                    Some(error) => Err(io::Error::other(error.to_string())),
                    None => Ok(message["result"].take()),
                };
            }
        }
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let mut line = message.to_string();
        line.push('\n');
        self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?.write_all(line.as_bytes())
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        // An end of input is how a client leaves.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
