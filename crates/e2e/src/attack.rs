//! Requests of one principal that cost the server much, while another principal measures how long its own take.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use api::{CreateRequest, TokenScope};
use client::Client;

use crate::{Connection, PATIENCE, Server, count, footprint, token};

/// Rounds in which it has to be so once.
const ROUNDS: usize = 10;

/// The time that the attackers' own threads take from it on the processors shared with the server: a slice of the
/// scheduler's time or two.
pub const SLICES: Duration = Duration::from_millis(10);

/// How much longer another's `true` may take.
const FACTOR: u32 = 3;

/// The memory that the server may hold, whatever one principal does.
pub const MEMORY_MAX: u64 = 256 << 20;

/// A server, an attacker with a token of scope `write` or `read`, and another client.
pub struct Rig {
    /// The server under attack.
    pub server: Server,
    /// The attacker's token of scope `write`.
    pub write: String,
    /// Its token of scope `read`.
    pub read: String,
    /// A client of the other.
    pub victim: Client,
    /// The other's token.
    pub token: String,
    /// The other's session.
    pub session: String,
    connection: Connection,
}

impl Rig {
    /// A rig around a new server.
    pub async fn start() -> Self {
        Self::on(Server::start()).await
    }

    /// A rig around this server.
    pub async fn on(server: Server) -> Self {
        let write = token(&server, "mallory", TokenScope::Write).await;
        let read = token(&server, "eye", TokenScope::Read).await;
        let own = token(&server, "victim", TokenScope::Write).await;
        let victim = Client::tcp(server.address(), own.clone());
        let session = victim.create(&CreateRequest::default(), None).await.expect("a session").id;
        let connection = Connection::tcp(server.address()).expect("it listens");
        Self { server, write, read, victim, token: own, session, connection }
    }

    /// A client of the attacker.
    pub fn attacker(&self) -> Client {
        Client::tcp(self.server.address(), self.write.clone())
    }

    /// How long the other's request takes: the median of some, and the longest.
    pub fn asks(&mut self, method: &str, path: &str, body: &str) -> (Duration, Duration) {
        let bearer = format!("Bearer {}", self.token);
        let headers = [("Host", "localhost"), ("Authorization", bearer.as_str())];
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..count(40, 200) {
            let begun = Instant::now();
            let reply = self.connection.send(method, path, &headers, body).expect("an answer");
            times.push(begun.elapsed());
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        }
        times.sort();
        (times[times.len() / 2], times[times.len() - 1])
    }

    /// How long the other's `true` takes: the median, and the longest.
    pub fn trues(&mut self) -> (Duration, Duration) {
        let path = format!("/terminals/{}/execute", self.session);
        self.asks("POST", &path, r#"{"command":"true","timeout":60}"#)
    }

    /// The other's `true` takes no more than thrice as long beside the attack, and the server keeps within its memory.
    pub fn bears<T>(&mut self, what: &str, begin: impl Fn(&Self) -> T) {
        self.bears_for(what, begin, Self::trues);
    }

    /// The same of any request of the other's.
    pub fn bears_for<T>(
        &mut self,
        what: &str,
        begin: impl Fn(&Self) -> T,
        measure: impl Fn(&mut Self) -> (Duration, Duration),
    ) {
        let mut seen = Vec::new();
        for _ in 0..ROUNDS {
            let before = measure(self).0;
            let attack = begin(self);
            let (beside, longest) = measure(self);
            drop(attack);
            let alone = before.max(measure(self).0);
            seen.push(format!("{alone:?} alone, {beside:?} beside, {longest:?} at most"));
            if beside <= SLICES.max(alone * FACTOR) {
                break;
            }
        }
        println!("{what}: {}", seen.join("; "));
        assert!(seen.len() < ROUNDS, "{what}: {}", seen.join("; "));
        let peak = footprint(self.server.pid()).peak_bytes;
        assert!(peak <= MEMORY_MAX, "{what}: {} MiB", peak >> 20);
    }
}

/// Threads that go on until this is dropped.
pub struct Attack {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Attack {
    /// So many of them; each does one thing again and again. Returns when each has done it once.
    pub fn of(threads: usize, one: impl Fn() + Send + Sync + 'static) -> Self {
        let (over, one) = (Arc::new(AtomicBool::new(false)), Arc::new(one));
        let (begun, beginning) = mpsc::sync_channel(threads);
        let thread = |_| {
            let (over, one, begun) = (Arc::clone(&over), Arc::clone(&one), begun.clone());
            std::thread::spawn(move || {
                one();
                let _ = begun.send(());
                while !over.load(Ordering::Relaxed) {
                    one();
                }
            })
        };
        let threads: Vec<_> = (0..threads).map(thread).collect();
        for _ in &threads {
            beginning.recv_timeout(PATIENCE).expect("it has begun");
        }
        Self { over, threads }
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// A connection on which this was sent, as far as it was taken.
pub fn sent(address: SocketAddr, parts: &[&[u8]]) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    // One that is refused early is closed early.
    let _ = parts.iter().try_for_each(|part| stream.write_all(part));
    stream
}

/// The head of a request with a body of this length.
pub fn head(method: &str, path: &str, token: &str, length: usize) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n"
    )
}

/// The status of the next answer; none where the connection ends instead.
pub fn status(stream: &mut TcpStream) -> Option<u16> {
    let mut text = Vec::new();
    let mut byte = [0];
    while !text.ends_with(b"\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => text.push(byte[0]),
            Ok(_) | Err(_) => return None,
        }
    }
    String::from_utf8_lossy(&text).split(' ').nth(1)?.parse().ok()
}
