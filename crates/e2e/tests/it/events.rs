//! Server-sent events: every byte once over any number of cuts, heartbeats, the end, and followers that do not read.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use api::Output;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{PATIENCE, Random, Server, footprint, seq};

/// One event.
#[derive(Debug)]
struct Event {
    id: u64,
    kind: String,
    output: Output,
}

/// A stream of events as it comes.
struct Stream {
    wire: UnixStream,
    raw: Vec<u8>,
}

impl Stream {
    fn open(server: &Server, path: &str, last: Option<u64>) -> Self {
        let mut wire = server.wire();
        wire.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{last}\r\n");
        wire.write_all(head.as_bytes()).expect("it listens");
        Self { wire, raw: Vec::new() }
    }

    /// Reads so much more, or to the end; false at the end.
    fn read(&mut self, most: usize) -> bool {
        let mut buffer = vec![0; most];
        let n = self.wire.read(&mut buffer).expect("something comes in time");
        self.raw.extend_from_slice(&buffer[..n]);
        n > 0
    }

    fn status(&self) -> String {
        String::from_utf8_lossy(&self.raw).lines().next().unwrap_or_default().to_owned()
    }

    /// The body as far as it came.
    fn text(&self) -> String {
        let head = self.raw.windows(4).position(|w| w == b"\r\n\r\n").map_or(self.raw.len(), |at| at + 4);
        let (mut rest, mut body) = (&self.raw[head..], Vec::new());
        while let Some(line) = rest.windows(2).position(|w| w == b"\r\n") {
            let size = std::str::from_utf8(&rest[..line]).expect("a size");
            let size = usize::from_str_radix(size, 16).expect("a size");
            rest = &rest[line + 2..];
            body.extend_from_slice(&rest[..size.min(rest.len())]);
            rest = rest.get(size + 2..).unwrap_or_default();
        }
        String::from_utf8_lossy(&body).into_owned()
    }

    /// The events that came whole.
    fn events(&self) -> Vec<Event> {
        let text = self.text();
        let whole = text.rfind("\n\n").map_or("", |end| &text[..end + 2]);
        let field = |event: &str, name: &str| {
            event.lines().find_map(|line| line.strip_prefix(name)).map(|value| value.trim_start().to_owned())
        };
        let events = whole.split_terminator("\n\n").filter_map(|event| {
            Some(Event {
                id: field(event, "id:")?.parse().expect("an offset"),
                kind: field(event, "event:")?,
                output: serde_json::from_str(&field(event, "data:")?).expect("an output"),
            })
        });
        events.collect()
    }
}

/// Adds the bytes of consecutive events, and returns the next offset.
fn join(all: &mut Vec<u8>, mut next: u64, events: Vec<Event>) -> u64 {
    for event in events {
        assert_eq!((event.output.from_offset, event.output.gap), (next, None));
        assert_eq!(event.id, event.output.next_offset);
        all.extend(STANDARD.decode(event.output.data_base64.expect("the raw view")).expect("base64"));
        next = event.id;
    }
    next
}

#[tokio::test]
// promise: view-1
async fn a_stream_of_events_that_is_cut_anywhere_continues_with_the_next_byte() {
    let server = Server::start();
    let shell = server.session().await;
    let mut random = Random::seeded();
    let flood = shell.begin("seq 1 900000").await;
    let path = format!("/terminals/{}/output/stream?view=raw&maxBytes=4096&waitMs=100", shell.id);
    let (mut all, mut next) = (Vec::new(), 0);
    let start = shell.look().await.journal.first_offset;
    for cut in 0..200 {
        let mut stream = Stream::open(&server, &path, (cut > 0).then_some(next));
        let mut left = usize::try_from(random.below(60_000) + 100).expect("small");
        while left > 0 {
            let before = stream.raw.len();
            if !stream.read(left) {
                break;
            }
            left -= stream.raw.len() - before;
        }
        assert_eq!(stream.status(), "HTTP/1.1 200 OK", "{}", String::from_utf8_lossy(&stream.raw));
        next = join(&mut all, next, stream.events());
        if cut == 100 {
            server.kill9();
            server.again();
        }
    }
    let end = shell.end_of(&flood).await.end_offset.expect("it has ended");
    let path = format!("/terminals/{}/output/stream?view=raw&waitMs=100", shell.id);
    while next < end {
        let mut stream = Stream::open(&server, &path, Some(next));
        while stream.raw.len() < 1 << 20 && !stream.raw.ends_with(b"\n:\n\n\r\n") && stream.events().is_empty() {
            assert!(stream.read(1 << 20));
        }
        next = join(&mut all, next, stream.events());
    }
    assert!(all == shell.bytes(start, next).await, "{} bytes", all.len());
    assert!(all.windows(8).any(|w| w == b"900000\r\n") && all.len() > seq(900_000).len());
}

#[tokio::test]
async fn silence_is_broken_by_heartbeats_and_the_end_is_reported_once() {
    let server = Server::start();
    let shell = server.session().await;
    let end = shell.look().await.journal.end_offset;
    let path = format!("/terminals/{}/output/stream?view=stream&waitMs=50&since=o:{end}", shell.id);
    let mut stream = Stream::open(&server, &path, None);
    while stream.text().matches(":\n\n").count() < 3 {
        assert!(stream.read(1000));
    }
    shell.run("exit 3").await;
    while stream.events().last().is_none_or(|e| e.kind != "end") {
        assert!(stream.read(1000), "{}", stream.text());
    }
    let last = stream.events().pop().expect("the end");
    assert!(last.output.is_final && last.id == last.output.end_offset, "{last:?}");
    // A client that returns after the end is answered not to return.
    let mut again = Stream::open(&server, &path, Some(last.id));
    again.read(1000);
    assert_eq!(again.status(), "HTTP/1.1 204 No Content");
    for wrong in ["view=screen", "maxLines=3", "commandId=c1", "since=nonsense"] {
        let mut refused = Stream::open(&server, &format!("/terminals/{}/output/stream?{wrong}", shell.id), None);
        refused.read(1000);
        assert_eq!(refused.status(), "HTTP/1.1 422 Unprocessable Entity", "{wrong}");
    }
    let mut refused = Stream::open(&server, &path, Some(u64::MAX));
    refused.read(1000);
    assert_eq!(refused.status(), "HTTP/1.1 422 Unprocessable Entity");
}

#[tokio::test]
// promise: view-3
async fn a_follower_that_does_not_read_costs_little_and_delays_nobody() {
    let server = Server::start();
    let shell = server.session().await;
    let path = format!("/terminals/{}/output/stream?view=raw", shell.id);
    shell.gives("true").await;
    let before = footprint(server.pid()).resident_bytes;
    let deaf: Vec<Stream> = (0..4).map(|_| Stream::open(&server, &path, None)).collect();
    let flood = shell.begin("seq 1 1000000").await;
    assert_eq!(shell.end_of(&flood).await.exit_code, Some(0));
    let grown = footprint(server.pid()).resident_bytes.saturating_sub(before);
    assert!(grown < 16 << 20, "memory grew by {} KiB", grown >> 10);
    drop(deaf);
}
