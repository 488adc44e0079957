//! A Unix stream that wakes its task when there is something to read, and not each time its peer has read something.
//!
//! The kernel reports a Unix socket as writable anew after each read of its peer. Tokio's own stream asks for that report, so
//! each message that is sent wakes the server once more, for nothing. Here it is asked for only while a write waits.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// The stream; its reads and writes are those of [`AsyncRead`] and [`AsyncWrite`].
#[derive(Debug)]
pub struct UnixStream {
    stream: AsyncFd<net::UnixStream>,
    /// A second descriptor of the same socket while a write waits: epoll(7) takes each descriptor once.
    writable: Option<AsyncFd<OwnedFd>>,
}

impl UnixStream {
    /// Of a stream that does not block.
    pub fn new(stream: net::UnixStream) -> io::Result<Self> {
        Ok(Self { stream: watched(stream, Interest::READABLE)?, writable: None })
    }

    /// Writes what the socket takes now.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut stream = self.stream.get_ref();
        stream.write(bytes)
    }

    /// Waits until the socket has room again, after a write that would have blocked.
    pub(crate) fn poll_write_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let writable = match self.writable.take() {
            Some(writable) => writable,
            None => watched(self.stream.get_ref().as_fd().try_clone_to_owned()?, Interest::WRITABLE)?,
        };
        let writable = self.writable.insert(writable);
        ready!(writable.poll_write_ready(context))?.retain_ready();
        self.writable = None;
        Poll::Ready(Ok(()))
    }

    /// Hands what is read into this room to `take`; returns how much it was.
    pub(crate) fn poll_take(
        &self,
        context: &mut Context<'_>,
        room: &mut [MaybeUninit<u8>],
        mut take: impl FnMut(&[u8]),
    ) -> Poll<io::Result<usize>> {
        self.poll_reading(context, room.len(), |socket| {
            let (read, _) = rustix::io::read(socket, &mut *room)?;
            take(read);
            Ok(read.len())
        })
    }

    fn poll_reading(
        &self,
        context: &mut Context<'_>,
        size: usize,
        mut read: impl FnMut(BorrowedFd<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.stream.poll_read_ready(context))?;
            match read(ready.get_inner().as_fd()) {
                Ok(count) => {
                    // After a short read the socket is empty, and the next bytes are reported anew.
                    if count > 0 && count < size {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_writing(
        &mut self,
        context: &mut Context<'_>,
        write: impl Fn(&net::UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            match write(self.stream.get_ref()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(self.poll_write_ready(context))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => {
                    self.writable = None;
                    return Poll::Ready(written);
                }
            }
        }
    }
}

#[expect(
    deprecated,
    reason = "unsound for a type that closes its descriptor early; its successor is unsafe for all types"
)]
fn watched<T: Into<OwnedFd> + AsRawFd>(owned: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(owned, interest)
}

impl AsyncRead for UnixStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let unfilled = room.initialize_unfilled();
        let size = unfilled.len();
        let read = ready!(self.poll_reading(context, size, |socket| Ok(rustix::io::read(socket, &mut *unfilled)?)))?;
        room.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for UnixStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_writing(context, |mut stream| stream.write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_writing(context, |mut stream| stream.write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.get_ref().shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn pair() -> (UnixStream, net::UnixStream) {
        let (ours, theirs) = net::UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("set");
        (UnixStream::new(ours).expect("registered"), theirs)
    }

    #[tokio::test]
    async fn bytes_that_do_not_fit_at_once_arrive_when_the_peer_reads() {
        let (mut ours, mut theirs) = pair();
        let sent: Vec<u8> = (0..4_000_000u32).map(|n| n as u8).collect();
        let expected = sent.clone();
        let reads = tokio::task::spawn_blocking(move || {
            let mut read = Vec::new();
            io::Read::read_to_end(&mut theirs, &mut read).map(|_| read)
        });
        ours.write_all(&sent).await.expect("written");
        ours.shutdown().await.expect("shut");
        assert!(reads.await.expect("no panic").expect("read") == expected);
        assert!(ours.writable.is_none(), "asked for while a write waits only");
    }

    #[tokio::test]
    async fn every_byte_and_the_end_are_read() {
        let (mut ours, mut theirs) = pair();
        for part in [&b"a"[..], b"bc", b"def"] {
            theirs.write_all(part).expect("room");
            let mut bytes = [0; 3];
            // Reads of the whole room, of less, and of nothing.
            assert_eq!(ours.read(&mut bytes).await.expect("read"), part.len());
            let nothing = tokio::time::timeout(Duration::ZERO, ours.read(&mut bytes)).await;
            assert!(nothing.is_err(), "nothing more has come");
        }
        theirs.write_all(b"xy").expect("room");
        drop(theirs);
        let mut rest = Vec::new();
        ours.read_to_end(&mut rest).await.expect("read");
        assert_eq!(rest, b"xy");
    }
}
