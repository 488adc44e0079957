//! Many sessions at work at once, over REST with kept connections or over the WebSocket, every answer compared.
//!
//! The same code is a test (a small load) and a measurement (`cargo xtask bench load`), so both mean the same thing.

use std::io;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::{Connection, Pid, Server, Session, Socket, footprint, with_descendants};

/// The amount of concurrent work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Sessions, each with a client of its own.
    pub sessions: usize,
    /// Commands in each, one after the other.
    pub commands: usize,
}

/// The result.
#[derive(Debug)]
pub struct Loaded {
    /// From the first command to the last answer.
    pub took: Duration,
    /// Each command's time as its client saw it, the shortest first.
    pub times: Vec<Duration>,
    /// The failures: a line for each command without its exact answer.
    pub errors: Vec<String>,
    /// The server's memory when all was done, and the most it ever had.
    pub server_bytes: (u64, u64),
    /// The memory of the largest holder.
    pub holder_bytes: u64,
}

impl Loaded {
    /// The time below which this part of the commands lies.
    pub fn below(&self, permille: usize) -> Duration {
        let at = (self.times.len() * permille / 1000).min(self.times.len().saturating_sub(1));
        self.times.get(at).copied().unwrap_or_default()
    }

    /// Commands in a second.
    #[expect(clippy::cast_precision_loss, reason = "no run has 2^53 commands")]
    pub fn rate(&self) -> f64 {
        self.times.len() as f64 / self.took.as_secs_f64()
    }

    fn of(server: &Server, took: Duration, answers: Vec<Answer>) -> Self {
        let (mut times, mut errors) = (Vec::new(), Vec::new());
        for answer in answers {
            match answer {
                Ok(time) => times.push(time),
                Err(why) => errors.push(why),
            }
        }
        times.sort();
        let whole = footprint(server.pid());
        let holders = with_descendants(server.pid()).into_iter().filter(|pid| pid.parent() == Some(server.pid()));
        let share = |pid: Pid| footprint(pid).share_bytes;
        let holder_bytes = holders.map(share).max().unwrap_or_default();
        Self { took, times, errors, server_bytes: (whole.share_bytes, whole.peak_bytes), holder_bytes }
    }
}

/// A command's time, or what came instead of its answer.
type Answer = Result<Duration, String>;

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
        let begun = Instant::now();
        let lost = || vec![Err("a client panicked".to_owned())];
        let answers = clients.into_iter().flat_map(|client| client.join().unwrap_or_else(|_| lost())).collect();
        Ok(Loaded::of(server, begun.elapsed(), answers))
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
        let begun = Instant::now();
        let mut clients = tokio::task::JoinSet::new();
        for (number, mut socket) in sockets.into_iter().enumerate() {
            clients.spawn(async move {
                let mut answers = Vec::new();
                for command in 0..self.commands {
                    let begun = Instant::now();
                    let words = words(number, command);
                    // The echo of what is typed has the words in two parts.
                    let (one, other) = words.split_at(2);
                    let line = format!("echo {one}''{other}\r");
                    socket.types(command as u64 + 1, line.as_bytes()).await;
                    socket.reads_until(&format!("{words}\r\n")).await;
                    answers.push(Ok(begun.elapsed()));
                }
                answers
            });
        }
        let mut answers = Vec::new();
        while let Some(client) = clients.join_next().await {
            answers.extend(client.unwrap_or_else(|error| vec![Err(error.to_string())]));
        }
        Loaded::of(server, begun.elapsed(), answers)
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
    let begun = Instant::now();
    let body = json!({ "command": format!("echo {words}"), "timeout": 60 }).to_string();
    let headers = [("Host", "127.0.0.1"), ("Authorization", bearer), ("Content-Type", "application/json")];
    let reply = http.send("POST", path, &headers, &body).map_err(|error| error.to_string())?;
    let took = begun.elapsed();
    let done = reply.json();
    let told = (reply.status, done["exitCode"].as_i64(), done["output"].as_str());
    if told == (200, Some(0), Some(&format!("{words}\n"))) { Ok(took) } else { Err(format!("{words}: {done}")) }
}
