//! Forwards the audit log to a syslog server (RFC 5424). A thread reads the files, so no request waits for it, and a server that was
//! down gets its lines later. A line can come twice. Lost is what the kernel had taken for a server that read no more: syslog
//! acknowledges nothing.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};

use serde_json::Value;

use super::read::opened;
use crate::action::AuditRecord;
use crate::limits::{AUDIT_FLUSH_EVERY, SYSLOG_BATCH_BYTES, SYSLOG_DATAGRAM_BYTES_MAX, SYSLOG_PATIENCE};
use crate::state_dir;
use crate::syslog_address::SyslogAddress;

/// The file with the place up to which lines were sent: an inode and an offset.
const POSITION_FILE: &str = "audit.syslog";
/// The facility of audit logs (RFC 5424, table 1).
const FACILITY: u8 = 13;
const WARNING: u8 = 4;
const INFORMATIONAL: u8 = 6;

/// Forwards the lines of the audit log in this folder until what it returns is dropped, from where the last server stopped. Without
/// a recorded position it begins at the present end.
pub(super) fn start(folder: &Path, address: &SyslogAddress) -> io::Result<SyncSender<()>> {
    let (until_dropped, ends) = mpsc::sync_channel(1);
    let position = Position::load(folder).or_else(|| Position::end(folder)).unwrap_or_default();
    // Lines from now on wait for a syslog server that is not there yet, also over a restart.
    position.store(folder)?;
    let mut forwarder = Forwarder {
        folder: folder.to_owned(),
        address: address.clone(),
        position,
        socket: None,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
    };
    let forward = move || {
        let mut has_failed = false;
        loop {
            match forwarder.send_batch() {
                Ok(true) => continue,
                Ok(false) => has_failed = false,
                Err(e) if has_failed => tracing::debug!(address = %forwarder.address, error = %e, "syslog"),
                Err(e) => {
                    tracing::warn!(address = %forwarder.address, error = %e, "the audit log is not forwarded; ptyd tries again every second");
                    has_failed = true;
                }
            }
            if ends.recv_timeout(AUDIT_FLUSH_EVERY) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("syslog".to_owned()).spawn(forward)?;
    Ok(until_dropped)
}

struct Forwarder {
    folder: PathBuf,
    address: SyslogAddress,
    position: Position,
    socket: Option<Socket>,
    host: String,
}

impl Forwarder {
    /// Sends the next lines; false if there are none.
    fn send_batch(&mut self) -> io::Result<bool> {
        let mut next = self.position;
        let lines = next.read(&self.folder)?;
        if next == self.position {
            return Ok(false);
        }
        if self.socket.as_mut().is_some_and(Socket::is_closed) {
            self.socket = None;
        }
        let socket = match &mut self.socket {
            Some(socket) => socket,
            None => self.socket.insert(Socket::open(&self.address)?),
        };
        let mut messages = lines.iter().filter_map(|line| message(line, &self.host));
        let sent = messages.try_for_each(|message| socket.send(&message));
        if sent.is_err() {
            // All lines of the batch are sent again on another connection.
            self.socket = None;
        }
        sent?;
        self.position = next;
        self.position.store(&self.folder)?;
        Ok(true)
    }
}

/// The place behind the last line that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Position {
    inode: u64,
    offset: u64,
}

impl Position {
    fn load(folder: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(folder.join(POSITION_FILE)).ok()?;
        let (inode, offset) = text.trim_end().split_once(' ')?;
        Some(Self { inode: inode.parse().ok()?, offset: offset.parse().ok()? })
    }

    fn store(self, folder: &Path) -> io::Result<()> {
        state_dir::replace(&folder.join(POSITION_FILE), format!("{} {}\n", self.inode, self.offset).as_bytes())
    }

    fn end(folder: &Path) -> Option<Self> {
        let there = opened(folder).ok()?.pop()?.metadata().ok()?;
        Some(Self { inode: there.ino(), offset: there.len() })
    }

    /// The whole lines behind it, at most a batch, and moves behind them. Where its file is gone, it goes on at the oldest.
    fn read(&mut self, folder: &Path) -> io::Result<Vec<Vec<u8>>> {
        let files = opened(folder)?;
        let mut inodes = Vec::new();
        for file in &files {
            inodes.push(file.metadata()?.ino());
        }
        let first = inodes.iter().position(|inode| *inode == self.inode).unwrap_or_else(|| {
            self.offset = 0;
            0
        });
        let mut lines = Vec::new();
        for (file, inode) in files.into_iter().zip(inodes).skip(first) {
            if inode != self.inode {
                *self = Self { inode, offset: 0 };
            }
            self.read_file(file, &mut lines)?;
            if !lines.is_empty() {
                break;
            }
        }
        Ok(lines)
    }

    fn read_file(&mut self, mut file: File, lines: &mut Vec<Vec<u8>>) -> io::Result<()> {
        file.seek(SeekFrom::Start(self.offset))?;
        let (mut file, mut bytes) = (BufReader::new(file), 0);
        while bytes < SYSLOG_BATCH_BYTES {
            let mut line = Vec::new();
            file.read_until(b'\n', &mut line)?;
            if line.pop() != Some(b'\n') {
                // Its end is still to be written, or never will be.
                break;
            }
            bytes += line.len() + 1;
            self.offset += line.len() as u64 + 1;
            lines.push(line);
        }
        Ok(())
    }
}

enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Socket {
    fn open(address: &SyslogAddress) -> io::Result<Self> {
        let resolved = |address: &str| {
            let none = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            address.to_socket_addrs()?.next().ok_or_else(none)
        };
        Ok(match address {
            SyslogAddress::Unix(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(SYSLOG_PATIENCE))?;
                Self::Unix(socket)
            }
            SyslogAddress::Udp(address) => {
                let to = resolved(address)?;
                let socket = UdpSocket::bind(if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" })?;
                socket.connect(to)?;
                Self::Udp(socket)
            }
            SyslogAddress::Tcp(address) => {
                let socket = TcpStream::connect_timeout(&resolved(address)?, SYSLOG_PATIENCE)?;
                socket.set_write_timeout(Some(SYSLOG_PATIENCE))?;
                Self::Tcp(socket)
            }
        })
    }

    /// Whether the server has closed the connection: the first bytes that are written then are lost without an error.
    fn is_closed(&mut self) -> bool {
        let Self::Tcp(socket) = self else { return false };
        let peeked = socket.set_nonblocking(true).and_then(|()| socket.peek(&mut [0]));
        let is_open = peeked.map_or_else(|e| e.kind() == io::ErrorKind::WouldBlock, |bytes| bytes > 0);
        socket.set_nonblocking(false).is_err() || !is_open
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.send(message).map(drop),
            Self::Udp(socket) => socket.send(message).map(drop),
            Self::Tcp(socket) => {
                let count = format!("{} ", message.len());
                socket.write_all(&[count.as_bytes(), message].concat())
            }
        }
    }
}

/// The message for a line: its JSON behind a header of RFC 5424. `None` for a line that is not JSON, or longer than any of ours: a torn
/// one, or one of somebody else.
fn message(line: &[u8], host: &str) -> Option<Vec<u8>> {
    let record: AuditRecord = serde_json::from_slice(line).ok()?;
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or("-");
    let (time, event, outcome) = (text("time"), text("event"), text("outcome"));
    let is_refused =
        matches!(event, "refused" | "gap") || matches!(outcome, "forbidden" | "policy_denied" | "approval_needed");
    let priority = FACILITY * 8 + if is_refused { WARNING } else { INFORMATIONAL };
    let header = format!("<{priority}>1 {time} {host} ptyd {} {event} - ", std::process::id());
    let message = [header.as_bytes(), line].concat();
    (message.len() <= SYSLOG_DATAGRAM_BYTES_MAX).then_some(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: audit-5
    fn a_line_is_whole_json_behind_its_header() {
        let line =
            br#"{"time":"2026-11-24T10:00:00.000001Z","event":"answer","outcome":"policy_denied","text":"rm x"}"#;
        let head = format!("<108>1 2026-11-24T10:00:00.000001Z host ptyd {} answer - ", std::process::id());
        assert_eq!(message(line, "host").expect("JSON"), [head.as_bytes(), line].concat());
        let line = br#"{"time":"t","event":"request"}"#;
        assert!(message(line, "host").expect("JSON").starts_with(b"<110>1 t host ptyd "));
        assert_eq!(message(b"{\"torn", "host"), None);
    }

    #[test]
    // promise: audit-5
    fn lines_are_read_once_across_a_rotation_and_a_restart() {
        let dir = tempfile::tempdir().expect("a directory");
        let (present, full) = (dir.path().join("audit.jsonl"), dir.path().join("audit.1.jsonl"));
        std::fs::write(&present, "1\n2\n").expect("a write");
        let mut position = Position::end(dir.path()).expect("a file");
        assert_eq!(position.read(dir.path()).expect("read"), Vec::<Vec<u8>>::new());
        std::fs::write(&present, "1\n2\n3\n4").expect("a write");
        assert_eq!(position.read(dir.path()).expect("read"), [b"3"]);
        position.store(dir.path()).expect("a write");
        std::fs::write(&present, "1\n2\n3\n4\n").expect("a write");
        std::fs::rename(&present, &full).expect("a rename");
        std::fs::write(&present, "5\n6\n").expect("a write");
        let mut position = Position::load(dir.path()).expect("stored");
        let mut read = || position.read(dir.path()).expect("read");
        assert_eq!((read(), read(), read()), (vec![b"4".to_vec()], vec![b"5".to_vec(), b"6".to_vec()], vec![]));
    }
}
