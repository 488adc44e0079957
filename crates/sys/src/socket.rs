//! Unix sockets: the attestation pair with kernel credentials, and listeners with paths of any length.

use std::fs::Permissions;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

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

/// The longest datagram: bash flushes its output when its buffer is full, which is BUFSIZ at most (stdio.h).
const DATAGRAM_BYTES_MAX: usize = 8192;
/// How many datagrams are received at once: mostly one has come, and the second place shows that there is no other.
const DATAGRAMS_AT_ONCE: usize = 2;

/// How far [`receive`] has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It took everything.
    All,
    /// There may be more.
    Part,
}

/// Receives datagrams, each with the pid of its writer from the kernel (0 if that process is not visible from here). One
/// without bytes also stands for the end of the socket. A datagram longer than the buffer is cut (unix(7)).
pub fn receive(socket: BorrowedFd<'_>, mut take: impl FnMut(u32, &[u8])) -> io::Result<Received> {
    /// Room for a header and a `ucred`, with the alignment of a header (cmsg(3)).
    #[repr(C, align(8))]
    struct Credentials([u8; 32]);
    let mut bytes = [const { [MaybeUninit::<u8>::uninit(); DATAGRAM_BYTES_MAX] }; DATAGRAMS_AT_ONCE];
    let mut credentials = [const { Credentials([0; 32]) }; DATAGRAMS_AT_ONCE];
    let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; DATAGRAMS_AT_ONCE];
    // SAFETY: zeros are a valid mmsghdr: null pointers and lengths of zero.
    let mut messages: [libc::mmsghdr; DATAGRAMS_AT_ONCE] = unsafe { std::mem::zeroed() };
    for (((message, part), bytes), room) in messages.iter_mut().zip(&mut parts).zip(&mut bytes).zip(&mut credentials) {
        *part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
        message.msg_hdr.msg_control = room.0.as_mut_ptr().cast();
        message.msg_hdr.msg_controllen = room.0.len() as _;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
    let at_most = DATAGRAMS_AT_ONCE as libc::c_uint;
    // SAFETY: every header points to locals that outlive the call, with their lengths; the descriptor is open for the length
    // of the call because it is borrowed.
    let count =
        unsafe { libc::recvmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), at_most, flags as _, std::ptr::null_mut()) };
    let Ok(count) = usize::try_from(count) else {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(Received::All) } else { Err(error) };
    };
    for (message, bytes) in messages.iter().zip(&bytes).take(count) {
        // SAFETY: the kernel has written this header, and its control message, if there is one, to the room above.
        let pid = unsafe { writer(&message.msg_hdr) };
        // SAFETY: the kernel has written so many bytes to this buffer.
        take(pid, unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), message.msg_len as usize) });
    }
    Ok(if count < DATAGRAMS_AT_ONCE { Received::All } else { Received::Part })
}

/// The pid of the writer, 0 if the kernel gave none.
///
/// # Safety
/// A header that recvmsg(2) has filled, with control messages that are still there.
unsafe fn writer(header: &libc::msghdr) -> u32 {
    // SAFETY: CMSG_FIRSTHDR(3) reads the header and returns null or a whole message header within the room, and a credentials
    // message has a `ucred` as its data.
    unsafe {
        match libc::CMSG_FIRSTHDR(header).as_ref() {
            Some(message) if (message.cmsg_level, message.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                libc::CMSG_DATA(message).cast::<libc::ucred>().read_unaligned().pid.unsigned_abs()
            }
            _ => 0,
        }
    }
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

/// Listens on `folder/name`, which only this user can connect to. The path goes through `/proc/self/fd`, because sockaddr_un holds
/// only 108 bytes.
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
