//! Many sessions at work at once, over REST with kept connections or over the WebSocket, every answer compared.
//!
//! `cargo xtask bench load` measures the same, with clients of its own.

use std::io;
use std::sync::{Arc, Barrier};

use serde_json::json;

use crate::{Connection, Server, Session, Socket};

/// The amount of concurrent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Sessions, each with a client of its own.
    pub sessions: usize,
    /// Commands in each, one after the other.
    pub commands: usize,
}

/// The result.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Commands with their exact answer.
    pub answered: usize,
    /// A line for each other command.
    pub errors: Vec<String>,
}

impl Loaded {
    fn of(answers: Vec<Answer>) -> Self {
        let mut loaded = Self::default();
        for answer in answers {
            match answer {
                Ok(()) => loaded.answered += 1,
                Err(why) => loaded.errors.push(why),
            }
        }
        loaded
    }
}

/// Nothing where the answer was exact, or what came instead.
type Answer = Result<(), String>;

/// The words that one command of one session prints, and no other one.
fn words(session: usize, command: usize) -> String {
    format!("s{session}c{command}e")
}

impl Load {
    /// Over REST: each session has a connection that is kept.
    pub async fn over_rest(self, server: &Server) -> io::Result<Loaded> {
        let sessions = self.open(server).await;
        let begin = Arc::new(Barrier::new(self.sessions + 1));
        let bearer: Arc<str> = format!("Bearer {}", server.token()).into();
        let mut clients = Vec::new();
        for (number, session) in sessions.iter().enumerate() {
            let (begin, bearer) = (Arc::clone(&begin), Arc::clone(&bearer));
            let mut http = Connection::tcp(server.address())?;
            let path = format!("/terminals/{}/execute", session.id);
            clients.push(std::thread::spawn(move || {
                begin.wait();
                let ask = |command| execute(&mut http, &bearer, &path, &words(number, command));
                (0..self.commands).map(ask).collect::<Vec<Answer>>()
            }));
        }
        begin.wait();
        let lost = || vec![Err("a client panicked".to_owned())];
        let answers = clients.into_iter().flat_map(|client| client.join().unwrap_or_else(|_| lost())).collect();
        Ok(Loaded::of(answers))
    }

    /// Over the WebSocket: each session has a viewer that types a line and reads until its output is there.
    pub async fn over_socket(self, server: &Server) -> Loaded {
        let sessions = self.open(server).await;
        let mut sockets = Vec::new();
        for session in &sessions {
            let mut socket = Socket::visit(server, &session.id, "").await;
            socket.event("control").await;
            sockets.push(socket);
        }
        let mut clients = tokio::task::JoinSet::new();
        for (number, mut socket) in sockets.into_iter().enumerate() {
            clients.spawn(async move {
                let mut answers = Vec::new();
                for command in 0..self.commands {
                    let words = words(number, command);
                    // The echo of what is typed has the words in two parts.
                    let (one, other) = words.split_at(2);
                    let line = format!("echo {one}''{other}\r");
                    socket.types(command as u64 + 1, line.as_bytes()).await;
                    socket.reads_until(&format!("{words}\r\n")).await;
                    answers.push(Ok(()));
                }
                answers
            });
        }
        let mut answers = Vec::new();
        while let Some(client) = clients.join_next().await {
            answers.extend(client.unwrap_or_else(|error| vec![Err(error.to_string())]));
        }
        Loaded::of(answers)
    }

    async fn open(self, server: &Server) -> Vec<Session> {
        let mut sessions = Vec::new();
        for _ in 0..self.sessions {
            sessions.push(server.session().await);
        }
        sessions
    }
}

fn execute(http: &mut Connection, bearer: &str, path: &str, words: &str) -> Answer {
    let body = json!({ "command": format!("echo {words}"), "timeout": 60 }).to_string();
    let headers = [("Host", "127.0.0.1"), ("Authorization", bearer), ("Content-Type", "application/json")];
    let reply = http.send("POST", path, &headers, &body).map_err(|error| error.to_string())?;
    let done = reply.json();
    let told = (reply.status, done["exitCode"].as_i64(), done["output"].as_str());
    if told == (200, Some(0), Some(&format!("{words}\n"))) { Ok(()) } else { Err(format!("{words}: {done}")) }
}
