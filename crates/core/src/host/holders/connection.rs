//! The server's connection to one holder: complete frames in, frames out.

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::net;
use std::task::{Context, Poll};

use wire::{Frames, FromHolder, ToHolder};

use crate::unix_stream::UnixStream;

/// How much is read at once.
const READ_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(crate) struct HolderConnection {
    stream: UnixStream,
    frames: Frames,
    unsent: Vec<u8>,
}

impl HolderConnection {
    /// Of a stream that does not block.
    pub(super) fn new(stream: net::UnixStream) -> io::Result<Self> {
        Ok(Self { stream: UnixStream::new(stream)?, frames: Frames::default(), unsent: Vec::new() })
    }

    /// Queues a frame and sends what the socket takes. An error shows up in [`Self::receive`].
    pub(crate) fn send(&mut self, frame: &ToHolder) {
        self.unsent.extend(frame.encode());
        self.flush();
    }

    /// Sends a spare holder the path of its session's folder; false if it is gone. The socket is empty, so it fits.
    pub(super) fn send_path(&mut self, path: &[u8]) -> bool {
        self.stream.try_write(path).is_ok_and(|sent| sent == path.len())
    }

    /// How many bytes wait for the holder to read.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.unsent.len()
    }

    fn flush(&mut self) {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                // The holder is gone, as the next read shows. Its socket counts as writable, so waiting with unsent bytes would
                // return at once each time, and a runtime of one thread would never get to that read.
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => self.unsent.clear(),
                Err(_) => return,
            }
        }
        if self.unsent.capacity() > READ_BYTES {
            self.unsent = Vec::new();
        }
    }

    /// Waits for frames; an empty list means to ask again, an error that the holder is gone. Cancel-safe: nothing is
    /// taken before it is returned.
    pub(crate) async fn receive(&mut self) -> io::Result<Vec<FromHolder>> {
        poll_fn(|context| self.poll_receive(context)).await
    }

    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Vec<FromHolder>>> {
        let is_writable = !self.unsent.is_empty() && self.stream.poll_write_ready(context)?.is_ready();
        if is_writable {
            self.flush();
        }
        let mut room = [MaybeUninit::uninit(); READ_BYTES];
        match self.stream.poll_take(context, &mut room, |read| self.frames.push(read))? {
            Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            Poll::Ready(_) => {}
            Poll::Pending if is_writable => return Poll::Ready(Ok(Vec::new())),
            Poll::Pending => return Poll::Pending,
        }
        let mut whole = Vec::new();
        loop {
            match self.frames.next_frame() {
                Ok(Some(frame)) => whole.extend(FromHolder::decode(frame)),
                Ok(None) => return Poll::Ready(Ok(whole)),
                Err(_) => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_holders_end_is_received_although_a_frame_to_it_fails() {
        let (server, holder) = net::UnixStream::pair().expect("a pair");
        server.set_nonblocking(true).expect("set");
        let mut connection = HolderConnection::new(server).expect("registered");
        drop(holder);
        connection.send(&ToHolder::Ping { seq: 1 });
        let end = connection.receive().await.expect_err("no frame");
        assert_eq!(end.kind(), io::ErrorKind::UnexpectedEof);
    }
}
