//! A connection of a server to the holder: received frames, unsent frames, and whether the session is attached to it.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use wire::{Frames, FromHolder, ToHolder};

/// A connection that does not read its answers is closed at this many unsent bytes.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// How much is read from one connection at once. The buffer is on the stack, and a stack page that was touched stays
/// resident.
const READ_BYTES: usize = 2 << 10;

#[derive(Debug)]
pub(crate) struct Connection {
    /// Never reused, unlike its index in the list.
    pub(crate) id: u64,
    stream: UnixStream,
    frames: Frames,
    unsent: VecDeque<u8>,
    is_attached: bool,
    /// When it was accepted or last sent a frame.
    last_frame_at: u64,
    /// To be closed once everything is sent.
    is_leaving: bool,
    is_broken: bool,
    /// The unsent frames may wait for the next one.
    is_held: bool,
}

impl Connection {
    pub(crate) fn new(id: u64, stream: UnixStream, is_attached: bool, now: u64) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            id,
            stream,
            frames: Frames::default(),
            unsent: VecDeque::new(),
            is_attached,
            last_frame_at: now,
            is_leaving: false,
            is_broken: false,
            is_held: false,
        })
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Whether this server has the session.
    pub(crate) fn is_attached(&self) -> bool {
        self.is_attached
    }

    /// This server takes the session over.
    pub(crate) fn attach(&mut self) {
        self.is_attached = true;
    }

    /// Another server takes the session over: this connection is closed once everything is sent.
    pub(crate) fn displace(&mut self) {
        self.send(&FromHolder::Displaced);
        (self.is_attached, self.is_leaving) = (false, true);
    }

    /// When it was accepted or last sent a frame.
    pub(crate) fn last_frame_at(&self) -> u64 {
        self.last_frame_at
    }

    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Whether the connection can be closed.
    pub(crate) fn is_over(&self) -> bool {
        self.is_broken || (self.is_leaving && self.unsent.is_empty())
    }

    /// Reads what has arrived; returns the complete frames. Unknown kinds are skipped.
    pub(crate) fn receive(&mut self, now: u64) -> Vec<ToHolder> {
        let mut buffer = [0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.is_broken = true,
            Ok(n) => self.frames.push(buffer.get(..n).unwrap_or_default()),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.is_broken = true,
        }
        let mut whole = Vec::new();
        loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => whole.extend(ToHolder::decode(frame)),
                Ok(None) => break,
                Err(_) => {
                    self.is_broken = true;
                    break;
                }
            }
        }
        if !whole.is_empty() {
            self.last_frame_at = now;
        }
        whole
    }

    /// Queues a frame to be sent together with the next one: one wake-up of the peer instead of two.
    pub(crate) fn hold(&mut self, frame: &FromHolder) {
        self.is_held |= self.unsent.is_empty();
        self.unsent.extend(frame.encode());
    }

    /// Sends a frame, or queues it until the peer reads.
    pub(crate) fn send(&mut self, frame: &FromHolder) {
        let bytes = frame.encode();
        let sent = if self.unsent.is_empty() { self.write(&bytes) } else { 0 };
        self.unsent.extend(bytes.get(sent..).unwrap_or_default());
        if self.is_held {
            self.flush();
        }
        if self.unsent.len() > UNSENT_BYTES_MAX {
            self.is_broken = true;
        }
    }

    /// Sends the queued frames.
    pub(crate) fn flush(&mut self) {
        self.is_held = false;
        while !self.unsent.is_empty() && !self.is_broken {
            let (head, _) = self.unsent.as_slices();
            let head = head.to_vec();
            let n = self.write(&head);
            if n == 0 {
                break;
            }
            self.unsent.drain(..n);
        }
    }

    fn write(&mut self, bytes: &[u8]) -> usize {
        match self.stream.write(bytes) {
            Ok(n) => n,
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(_) => {
                self.is_broken = true;
                0
            }
        }
    }
}
