//! HTTP/1.1 as it is on the wire, blocking and on one kept connection: for what a typed client hides (headers, statuses,
//! bodies that are wrong), for cleaning up in a destructor, and for measuring without a runtime.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

/// A kept connection.
pub struct Connection {
    reader: BufReader<Box<dyn Read + Send>>,
    writer: Box<dyn Write + Send>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The status, and the code and field of the problem document, if it is one.
    pub fn problem(&self) -> (u16, String, String) {
        let json = self.json();
        let is_problem = self.header("content-type") == Some("application/problem+json");
        let word = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        if is_problem {
            (self.status, word("code"), word("field"))
        } else {
            (self.status, String::new(), String::new())
        }
    }
}

impl Connection {
    /// Over loopback.
    pub fn tcp(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { writer: Box::new(stream.try_clone()?), reader: BufReader::new(Box::new(stream)) })
    }

    /// Over the Unix socket.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        Ok(Self { writer: Box::new(stream.try_clone()?), reader: BufReader::new(Box::new(stream)) })
    }

    /// Sends a request with exactly these headers (and the body's length), and reads the answer.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> io::Result<Reply> {
        let mut text = format!("{method} {path} HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.writer.write_all(text.as_bytes())?;
        self.reply()
    }

    /// The same with a loopback host, as this user's own programs do.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<Reply> {
        self.send(method, path, &[("Host", "localhost")], body)
    }

    /// The next part of a chunked body; none at its end (RFC 9112 §7.1).
    fn part(&mut self) -> io::Result<Option<Vec<u8>>> {
        let broken = || io::Error::new(io::ErrorKind::UnexpectedEof, "the body broke off");
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let length = usize::from_str_radix(line.trim_end(), 16).map_err(|_| broken())?;
        let mut part = vec![0; length + 2];
        self.reader.read_exact(&mut part)?;
        part.truncate(length);
        Ok((length > 0).then_some(part))
    }

    fn reply(&mut self) -> io::Result<Reply> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, "not an HTTP answer with a length");
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(broken)?;
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        if reply.header("transfer-encoding") == Some("chunked") {
            while let Some(part) = self.part()? {
                reply.body.extend(part);
            }
            return Ok(reply);
        }
        // An answer without content has no length (RFC 9110 §8.6).
        if status == 204 {
            return Ok(reply);
        }
        let length = reply.header("content-length").and_then(|word| word.parse().ok()).ok_or_else(broken)?;
        reply.body.resize(length, 0);
        self.reader.read_exact(&mut reply.body)?;
        Ok(reply)
    }
}
