//! Unix sockets: the attestation pair with kernel credentials, and listeners with paths of any length.

use std::fs::Permissions;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair,
    sockopt,
};

/// The two ends of an attestation socket: datagrams that the kernel stamps with the sender's pid (unix(7),
/// SO_PASSCRED).
#[derive(Debug)]
pub struct Attestation {
    /// Our end; it does not block.
    pub ours: OwnedFd,
    /// The shell's end.
    pub theirs: OwnedFd,
}

impl Attestation {
    /// Makes a pair, both ends close-on-exec.
    pub fn pair() -> io::Result<Self> {
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_passcred(&ours, true)?;
        let flags = rustix::fs::fcntl_getfl(&ours)?;
        rustix::fs::fcntl_setfl(&ours, flags | OFlags::NONBLOCK)?;
        Ok(Self { ours, theirs })
    }
}

/// One datagram, with the pid of its writer from the kernel (0 if that process is not visible from here).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram {
    /// How many bytes of the buffer are filled.
    pub len: usize,
    /// The writer's pid.
    pub pid: u32,
}

/// Receives the next datagram; `None` if there is none now. A datagram longer than the buffer is cut (unix(7)).
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Option<Datagram>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = match recvmsg(
        socket,
        &mut [IoSliceMut::new(buffer)],
        &mut ancillary,
        RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
    ) {
        Ok(r) => r,
        Err(rustix::io::Errno::AGAIN) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let mut pid = 0;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmCredentials(who) = message {
            pid = who.pid.as_raw_nonzero().get().unsigned_abs();
        }
    }
    Ok(Some(Datagram { len: received.bytes, pid }))
}

/// The process that made the other end of a connected stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its user.
    pub uid: u32,
    /// Its process, 0 when that is not visible from here.
    pub pid: u32,
}

/// The peer of a connected stream, as it was when the stream was connected (unix(7), SO_PEERCRED).
pub fn peer(stream: impl AsFd) -> io::Result<Peer> {
    // By hand: rustix assumes a pid that is never zero, and here it may be.
    let mut credentials = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = std::mem::size_of::<libc::ucred>() as libc::socklen_t;
    let fd = stream.as_fd().as_raw_fd();
    let at = std::ptr::from_mut(&mut credentials).cast();
    // SAFETY: the kernel writes at most `len` bytes to a local of that size, which any bytes make valid; the descriptor is
    // open for the length of the call because it is borrowed.
    let got = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut len) };
    match got {
        0 => Ok(Peer { uid: credentials.uid, pid: credentials.pid.unsigned_abs() }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A descriptor of the process that made the other end, as it was when the stream was connected (unix(7), SO_PEERPIDFD,
/// since Linux 6.5). With it a process is told from a later one of the same number.
pub fn peer_process(stream: impl AsFd) -> io::Result<OwnedFd> {
    let mut process: libc::c_int = -1;
    let mut len = std::mem::size_of::<libc::c_int>() as libc::socklen_t;
    let fd = stream.as_fd().as_raw_fd();
    let at = std::ptr::from_mut(&mut process).cast();
    // SAFETY: the kernel writes at most `len` bytes to a local of that size; the descriptor is open for the length of the
    // call because it is borrowed.
    match unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, SO_PEERPIDFD, at, &mut len) } {
        // SAFETY: the kernel has made this descriptor for the caller, and nothing else owns it.
        0 => Ok(unsafe { OwnedFd::from_raw_fd(process) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `asm-generic/socket.h`; not in every C library's headers.
const SO_PEERPIDFD: libc::c_int = 77;

/// Whether the process of this descriptor has ended.
pub fn has_ended(process: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(process, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) != Ok(0)
}

/// The user id of the peer of a connected stream.
pub fn peer_uid(stream: impl AsFd) -> io::Result<u32> {
    Ok(peer(stream)?.uid)
}

/// Listens on `folder/name`, which only this user can connect to. The path goes through `/proc/self/fd`, because sockaddr_un holds only 108 bytes.
pub fn listen_in(folder: &Path, name: &str) -> io::Result<UnixListener> {
    let dir = std::fs::File::open(folder)?;
    let path = short_path(&dir, name);
    let listener = UnixListener::bind(&path)?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Connects to the socket `folder/name`, whatever the length of the path. Neither the stream nor this call blocks: a
/// listener with a full queue yields `WouldBlock` (connect(2), EAGAIN).
pub fn connect_in(folder: &Path, name: &str) -> io::Result<UnixStream> {
    let dir = std::fs::File::open(folder)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &rustix::net::SocketAddrUnix::new(short_path(&dir, name))?)?;
    Ok(UnixStream::from(socket))
}

fn short_path(dir: &std::fs::File, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
}
