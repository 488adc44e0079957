//! The HTTP upgrade to MCP lines: one request on the Unix socket, one `101`, and the connection is the stream.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use api::Problem;

const REQUEST: &[u8] =
    b"GET /mcp/stdio HTTP/1.1\r\nHost: localhost\r\nConnection: upgrade\r\nUpgrade: ptyd-mcp\r\n\r\n";

/// A server that accepts the connection answers within this time, or counts as dead.
const PATIENCE: Duration = Duration::from_secs(5);
/// Room for the head of an answer, and for enough of a refusal.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Why the upgrade failed.
#[derive(Debug)]
pub(super) enum NotUpgraded {
    /// A retry may help: the server is starting, stopping or dead.
    Later(io::Error),
    /// A retry will not help.
    Never(io::Error),
}

impl NotUpgraded {
    /// Why the connection failed: a server of another user stays inaccessible.
    pub(super) fn unreached(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::PermissionDenied { Self::Never(error) } else { Self::Later(error) }
    }
}

/// Upgrades the connection to this client's stream, and sends the hello line.
pub(super) fn upgrade(mut stream: UnixStream, hello: &[u8]) -> Result<UnixStream, NotUpgraded> {
    let head = exchange(&mut stream).map_err(NotUpgraded::Later)?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    match status.as_bytes().first() {
        Some(b'1') => {}
        Some(b'5') | None => return Err(NotUpgraded::Later(io::Error::other(format!("the server answered {status}")))),
        Some(_) => {
            let body = head.split_once("\r\n\r\n").map_or("", |(_, body)| body).trim();
            let why = serde_json::from_str::<Problem>(body).map_or_else(|_| body.to_owned(), |problem| problem.detail);
            let kind = if status == "403" { io::ErrorKind::PermissionDenied } else { io::ErrorKind::Other };
            return Err(NotUpgraded::Never(io::Error::new(kind, format!("the server refused with {status}: {why}"))));
        }
    }
    let ready = stream
        .write_all(hello)
        .and_then(|()| stream.set_read_timeout(None))
        .and_then(|()| stream.set_nonblocking(true));
    ready.map(|()| stream).map_err(NotUpgraded::Later)
}

/// Reads the head of the answer; after a `101` the server is silent until the hello, so no byte of the stream is read
/// here.
fn exchange(stream: &mut UnixStream) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(REQUEST)?;
    let mut head = Vec::new();
    let mut chunk = [0u8; 1024];
    while !head.windows(4).any(|w| w == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&chunk[..n]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
