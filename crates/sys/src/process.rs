//! Processes in `/proc`: family, state, environment and sockets (proc(5)).
//!
//! Everything here is a sample: a process may be gone a moment later, so absence is `None`, never an error.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Marks every descriptor from 3 on close-on-exec (close_range(2), Linux 5.11; without it nothing changes), so that
/// descriptors inherited by this process do not reach the programs that it starts.
pub fn keep_descriptors_to_ourselves() {
    // SAFETY: the call takes three numbers, touches no memory, and closes nothing: it only sets a flag.
    unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// The fields of `/proc/<pid>/stat` that we use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stat {
    /// The process.
    pub pid: u32,
    /// The command's name, at most 15 bytes.
    pub comm: String,
    /// `R`, `S`, `D`, `T`, `Z`, …
    pub state: u8,
    /// The parent.
    pub ppid: u32,
    /// The process group.
    pub pgrp: u32,
    /// The session.
    pub session: u32,
    /// Its terminal's device number (`tty_nr`), 0 for none.
    pub tty: u32,
    /// The foreground process group of its terminal, if it has one.
    pub foreground_group: Option<u32>,
    /// User and system time together, in clock ticks (1/100 s).
    pub cpu_ticks: u64,
    /// The same of its children that have ended and were reaped.
    pub reaped_ticks: u64,
    /// How many threads it has.
    pub threads: u64,
    /// Start time in clock ticks since boot: together with the pid it identifies a process for ever.
    pub start_ticks: u64,
    /// Resident memory in pages.
    pub rss_pages: u64,
}

/// More than the file has: 52 numbers of at most 20 digits, and a name.
const STAT_BYTES_MAX: usize = 2048;
/// The fields behind the name that are parsed.
const STAT_FIELDS: usize = 22;

/// Reads `/proc/<pid>/stat`, with one read: a server that starts and a list of sessions read thousands of them.
pub fn stat(pid: u32) -> Option<Stat> {
    use rustix::fs::{Mode, OFlags};
    let file = rustix::fs::open(format!("/proc/{pid}/stat"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0; STAT_BYTES_MAX];
    let length = rustix::io::retry_on_intr(|| rustix::io::read(&file, &mut buffer)).ok()?;
    let raw = &buffer[..length];
    // The name is in parentheses and may itself have spaces and parentheses: the last one closes it.
    let open = raw.iter().position(|b| *b == b'(')?;
    let close = raw.iter().rposition(|b| *b == b')')?;
    let comm = String::from_utf8_lossy(raw.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(raw.get(close + 2..)?).ok()?;
    let f: Vec<&str> = rest.split_ascii_whitespace().take(STAT_FIELDS).collect();
    let number = |i: usize| f.get(i).and_then(|v| v.parse::<u64>().ok());
    Some(Stat {
        pid,
        comm,
        state: *f.first()?.as_bytes().first()?,
        ppid: u32::try_from(number(1)?).ok()?,
        pgrp: u32::try_from(number(2)?).ok()?,
        session: u32::try_from(number(3)?).ok()?,
        // A signed number in the file; a terminal's is small.
        tty: number(4).and_then(|tty| u32::try_from(tty).ok()).unwrap_or(0),
        foreground_group: number(5).and_then(|group| u32::try_from(group).ok()),
        cpu_ticks: number(11)? + number(12)?,
        reaped_ticks: number(13)? + number(14)?,
        threads: number(17)?,
        start_ticks: number(19)?,
        rss_pages: number(21)?,
    })
}

/// A process and its descendants, parents before children, at most `most`; empty if it is gone. Those of a holder include the
/// orphans in its container.
pub fn tree(root: u32, most: usize) -> Vec<Stat> {
    let mut found: Vec<Stat> = stat(root).into_iter().collect();
    let (mut next, mut pids) = (0, Vec::new());
    if !found.is_empty() {
        orphans_in_container(root, &mut pids);
        found.extend(pids.iter().filter_map(|pid| stat(*pid)));
    }
    while next < found.len() && found.len() < most {
        let Stat { pid, threads, .. } = found[next];
        pids.clear();
        if threads > 1 {
            children(pid, &mut pids);
        } else if let Ok(list) = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) {
            // The usual case, without reading the folder of threads.
            pids.extend(list.split_ascii_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
        found.extend(pids.iter().filter_map(|pid| stat(*pid)));
        next += 1;
    }
    found.truncate(most);
    found
}

/// A pidfd of the process with this start time (pidfd_open(2)), which becomes readable when it ends; `None` if it is
/// gone.
pub fn open_exactly(pid: u32, start_ticks: u64) -> io::Result<Option<OwnedFd>> {
    let Some(raw) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return Ok(None) };
    match rustix::process::pidfd_open(raw, rustix::process::PidfdFlags::empty()) {
        // The descriptor's process cannot change any more, so this check is about the same process.
        Ok(fd) => Ok(stat(pid).is_some_and(|s| s.start_ticks == start_ticks).then_some(fd)),
        Err(rustix::io::Errno::SRCH) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Sends a signal to the process with this start time, and to no later one with its pid; false if it is gone.
pub fn signal_exactly(pid: u32, start_ticks: u64, signo: i32) -> bool {
    let signal = rustix::process::Signal::from_named_raw(signo);
    let (Ok(Some(fd)), Some(signal)) = (open_exactly(pid, start_ticks), signal) else { return false };
    rustix::process::pidfd_send_signal(fd, signal).is_ok()
}

/// The children of every thread of a process (`/proc/<pid>/task/<tid>/children`).
pub fn children(pid: u32, into: &mut Vec<u32>) {
    for_each_task(pid, |tid| {
        if let Ok(list) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")) {
            into.extend(list.split_ascii_whitespace().filter_map(|c| c.parse::<u32>().ok()));
        }
    });
}

/// Each thread of a process; the names are read into the stack, because opendir(3) needs eight pages of heap each time.
pub fn for_each_task(pid: u32, mut each: impl FnMut(u32)) {
    use rustix::fs::{Mode, OFlags, RawDir};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(folder) = rustix::fs::open(format!("/proc/{pid}/task"), flags, Mode::empty()) else { return };
    let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
    let mut names = RawDir::new(folder, &mut buffer);
    while let Some(Ok(entry)) = names.next() {
        if let Some(tid) = entry.file_name().to_str().ok().and_then(|name| name.parse().ok()) {
            each(tid);
        }
    }
}

/// The first process of the container whose shell is a child of this holder: the holder's standard output is a pidfd of it
/// ([`crate::sandbox::Sandbox::of_container`]). `None` for every other process, and when that process has ended.
pub fn first_in_container(holder: u32) -> Option<u32> {
    let info = fs::read_to_string(format!("/proc/{holder}/fdinfo/1")).ok()?;
    let pid = info.lines().find_map(|line| line.strip_prefix("Pid:"))?;
    // It is -1 for a process that is gone (proc_pid_fdinfo(5)), so that this is never a later process with its pid.
    pid.trim().parse().ok().filter(|pid| *pid > 0)
}

/// The children of the first process of a holder's container: what a program there left behind, for nobody is an orphan's parent
/// outside of its pid namespace.
pub fn orphans_in_container(holder: u32, into: &mut Vec<u32>) {
    if let Some(first) = first_in_container(holder) {
        children(first, into);
    }
}

/// All descendants of a process, itself not included, parents before children; at most `most`. Those of a holder include the
/// orphans in its container.
pub fn descendants(root: u32, most: usize) -> Vec<u32> {
    let mut found = Vec::new();
    children(root, &mut found);
    orphans_in_container(root, &mut found);
    let mut next = 0;
    while next < found.len() && found.len() < most {
        let pid = found[next];
        children(pid, &mut found);
        next += 1;
    }
    found.truncate(most);
    found
}

/// Whether a process is this ancestor or has it among its ancestors; `None` if it is gone, or if its ancestors change
/// faster than they are read.
pub fn is_descendant(pid: u32, ancestor: u32) -> Option<bool> {
    (0..WALKS_MAX).find_map(|_| descends(pid, ancestor))
}

/// The ancestors of a process, the nearest first, up to one that `/proc` hides (proc(5), hidepid); `None` if the process
/// is gone, or if its ancestors change faster than they are read.
pub fn ancestors(pid: u32) -> Option<Vec<u32>> {
    (0..WALKS_MAX).find_map(|_| ancestors_now(pid))
}

/// One walk upwards; `None` if a process on the way was gone.
fn ancestors_now(pid: u32) -> Option<Vec<u32>> {
    let (mut found, mut at) = (Vec::new(), pid);
    while found.len() < GENERATIONS_MAX {
        at = match stat(at) {
            Some(stat) => stat.ppid,
            None if at != pid && exists(at) => return Some(found),
            None => return None,
        };
        if at == 0 {
            return Some(found);
        }
        found.push(at);
    }
    None
}

/// Whether there is such a process, visible in `/proc` or not.
fn exists(pid: u32) -> bool {
    rustix::process::Pid::from_raw(pid.cast_signed())
        .is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// One walk upwards; `None` if a process on the way was gone.
fn descends(pid: u32, ancestor: u32) -> Option<bool> {
    let mut at = pid;
    for _ in 0..GENERATIONS_MAX {
        match at {
            _ if at == ancestor => return Some(true),
            0 => return Some(false),
            _ => at = stat(at)?.ppid,
        }
    }
    None
}

/// How often a walk is repeated because an ancestor has ended meanwhile.
const WALKS_MAX: usize = 8;
/// How many ancestors are followed.
const GENERATIONS_MAX: usize = 4096;

/// The command line, arguments joined by spaces; empty for a kernel thread or a zombie.
pub fn command_line(pid: u32) -> String {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let parts: Vec<_> = raw.split(|b| *b == 0).filter(|a| !a.is_empty()).map(String::from_utf8_lossy).collect();
    parts.join(" ")
}

/// The executable of a process; `None` if it may not be read.
pub fn executable(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The real and the effective user of a process, and whether its program's file gives it the rights of the file's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Users {
    /// The user who started it, unless it has changed that.
    pub real: u32,
    /// The user whose rights it has.
    pub effective: u32,
    /// Its file is set-user-id; false if the file may not be looked at.
    pub is_set_user_id: bool,
}

/// The users of a process (proc(5), `Uid` of `status`).
pub fn users(pid: u32) -> Option<Users> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    // The name before it has its line ends escaped.
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let mut ids = ids.split_ascii_whitespace().map_while(|id| id.parse().ok());
    let (real, effective) = (ids.next()?, ids.next()?);
    // The file itself, whatever is at its path by now.
    let file = fs::metadata(format!("/proc/{pid}/exe"));
    Some(Users { real, effective, is_set_user_id: file.is_ok_and(|file| file.mode() & 0o4000 != 0) })
}

/// Whether a process ignores a signal (proc(5), `SigIgn` of `status`).
pub fn ignores(pid: u32, signo: i32) -> bool {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (1..=64).contains(&signo) && mask >> (signo - 1) & 1 == 1
}

/// The pid of a process in the innermost pid namespace that has it (proc(5), `NSpid` of `status`).
pub fn innermost_pid(pid: u32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_ascii_whitespace().last()?.parse().ok()
}

/// Whether a process is in the pid namespace of this one (proc(5), `NSpid` of `status`, which has a number for each
/// namespace and, other than the links of `ns`, may be read of every process that is seen); `None` if it is gone or hidden.
pub fn is_in_own_pid_namespace(pid: u32) -> Option<bool> {
    let depth = |process: &str| {
        let status = fs::read(format!("/proc/{process}/status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        Some(status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace().count())
    };
    Some(depth(&pid.to_string())? == depth("self")?)
}

/// The value of a variable in the initial environment of a process; `None` if it has none, or may not be looked at.
pub fn variable(pid: u32, name: &str) -> Option<Vec<u8>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut entries = environment.split(|b| *b == 0);
    entries.find_map(|entry| Some(entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec()))
}

/// The working directory, from the kernel.
pub fn working_directory(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

/// The start of a process's stack, which the kernel chooses anew at each execve(2), also of the same program (proc(5),
/// `startstack`). `None` if it may not be read.
pub fn image(pid: u32) -> Option<u64> {
    let raw = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let close = raw.iter().rposition(|b| *b == b')')?;
    let rest = std::str::from_utf8(raw.get(close + 2..)?).ok()?;
    rest.split_ascii_whitespace().nth(25)?.parse().ok().filter(|stack| *stack > 1)
}

/// Whether a process was stopped by a signal; a traced one does not count.
pub fn is_stopped(pid: u32) -> bool {
    stat(pid).is_some_and(|s| s.state == b'T')
}

/// Whether a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|s| s.state != b'Z')
}

/// All processes of the machine.
pub fn all() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str().and_then(|n| n.parse().ok())).collect()
}

/// How many threads the machine has, kernel threads included: `/proc/loadavg` has them behind a slash.
pub fn count() -> Option<usize> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split_ascii_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// All processes whose initial environment has exactly this entry, such as `NAME=value`.
pub fn with_environment(entry: &[u8]) -> Vec<u32> {
    all()
        .into_iter()
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|env| env.split(|b| *b == 0).any(|v| v == entry))
        })
        .collect()
}

/// Whether a process holds a listening TCP socket.
pub fn listens(pid: u32) -> bool {
    !listening(pid).is_empty()
}

/// The inodes of a process's sockets, except those known not to be TCP: almost every process of a session has our Unix
/// socket, and the connection table of a whole machine is long.
fn tcp_sockets(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries
        .filter_map(|e| {
            let target = fs::read_link(e.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
            may_be_tcp(&e.path()).then(|| inode.to_owned())
        })
        .collect()
}

/// By the protocol name, which every socket has as an attribute (net/socket.c, `sockfs_xattr_handler`).
fn may_be_tcp(socket: &Path) -> bool {
    let mut name = [0; 32];
    match rustix::fs::getxattr(socket, "system.sockprotoname", &mut name[..]) {
        Ok(len) => name[..len].windows(3).any(|part| part == b"TCP"),
        Err(_) => true,
    }
}

/// The TCP ports that a process listens on (`/proc/<pid>/net/tcp`, state 0A).
pub fn listening(pid: u32) -> Vec<u16> {
    let sockets = tcp_sockets(pid);
    if sockets.is_empty() {
        return Vec::new();
    }
    let table = |name| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let tables = [table("tcp"), table("tcp6")];
    let open = tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(|line| {
        let f: Vec<&str> = line.split_ascii_whitespace().collect();
        let is_ours = f.get(3) == Some(&"0A") && f.get(9).is_some_and(|inode| sockets.iter().any(|s| s == inode));
        is_ours.then(|| u16::from_str_radix(f[1].rsplit(':').next()?, 16).ok())?
    });
    open.collect()
}

/// The processes that have the TCP socket with these addresses open on this machine, as far as they can be looked at.
pub fn tcp_holders(own: SocketAddr, peer: SocketAddr) -> Vec<u32> {
    let Some((_, inode)) = tcp_socket(own, peer) else { return Vec::new() };
    all().into_iter().filter(|pid| tcp_sockets(*pid).contains(&inode)).collect()
}

/// The user who has opened the TCP socket with these addresses on this machine, while its connection is whole
/// (`/proc/net/tcp`, state 01). A socket that its process has closed has no user any more, which the table shows as root.
pub fn tcp_user(own: SocketAddr, peer: SocketAddr) -> Option<u32> {
    tcp_socket(own, peer).map(|(user, _)| user)
}

/// User and inode of the TCP socket with these addresses.
fn tcp_socket(own: SocketAddr, peer: SocketAddr) -> Option<(u32, String)> {
    ["tcp", "tcp6"].into_iter().find_map(|name| {
        let table = fs::read_to_string(format!("/proc/self/net/{name}")).unwrap_or_default();
        table.lines().skip(1).find_map(|line| {
            let f: Vec<&str> = line.split_ascii_whitespace().collect();
            let is_it = f.get(3) == Some(&"01") && is_address(f.get(1)?, own) && is_address(f.get(2)?, peer);
            is_it.then(|| Some((f.get(7)?.parse().ok()?, (*f.get(9)?).to_owned())))?
        })
    })
}

/// Whether a column of that table is this address; an IPv4 address may be in the clothes of IPv6.
fn is_address(column: &str, address: SocketAddr) -> bool {
    let Some((ip, port)) = column.split_once(':') else { return false };
    // The kernel prints each four bytes as a number.
    let words: Option<Vec<[u8; 4]>> = (0..ip.len() / 8)
        .map(|i| u32::from_str_radix(ip.get(i * 8..i * 8 + 8)?, 16).ok().map(u32::to_ne_bytes))
        .collect();
    let bytes = words.filter(|_| ip.len() % 8 == 0).unwrap_or_default().concat();
    let four = <[u8; 4]>::try_from(bytes.as_slice()).ok().map(IpAddr::from);
    let ip = four.or_else(|| <[u8; 16]>::try_from(bytes.as_slice()).ok().map(IpAddr::from));
    let is_port = u16::from_str_radix(port, 16) == Ok(address.port());
    is_port && ip.is_some_and(|ip| ip.to_canonical() == address.ip().to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_of_a_process_is_the_kernels_word() {
        let ours = users(std::process::id()).expect("we exist");
        let uid = rustix::process::getuid().as_raw();
        assert_eq!(ours, Users { real: uid, effective: uid, is_set_user_id: false });
        assert_eq!(users(u32::MAX), None);
    }

    #[test]
    // promise: access-12
    fn a_complete_connection_has_the_user_who_opened_it() {
        use std::net::{TcpListener, TcpStream};
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let server = listener.local_addr().expect("bound");
        let stream = TcpStream::connect(server).expect("it listens");
        let own = stream.local_addr().expect("connected");
        let uid = rustix::process::getuid().as_raw();
        assert_eq!(tcp_user(own, server), Some(uid));
        assert_eq!(tcp_holders(own, server), [std::process::id()]);
        assert_eq!(tcp_user(own, SocketAddr::new(server.ip(), 1)), None);
        let (accepted, _) = listener.accept().expect("ours");
        drop(stream);
        assert_eq!(tcp_user(own, server), None);
        drop(accepted);
    }

    #[test]
    fn addresses_are_read_as_the_kernel_prints_them() {
        let v4 = "127.0.0.1:7893".parse().expect("an address");
        let own = u32::from_ne_bytes([127, 0, 0, 1]);
        assert!(is_address(&format!("{own:08X}:1ED5"), v4));
        let mapped = format!("0000000000000000{:08X}{own:08X}:1ED5", u32::from_ne_bytes([0, 0, 0xff, 0xff]));
        assert!(is_address(&mapped, v4));
        for other in ["", ":", "0100007F", "x:1ED5", "00000000:1ED5", "0100007F0:1ED5"] {
            assert!(!is_address(other, v4), "{other}");
        }
    }

    #[test]
    fn our_own_stat_names_our_parent_and_state() {
        let me = stat(std::process::id()).expect("we exist");
        assert_eq!(me.ppid, std::os::unix::process::parent_id());
        assert!(matches!(me.state, b'R' | b'S'));
        assert!(descendants(me.ppid, 100_000).contains(&me.pid));
    }

    #[test]
    fn a_process_listens_on_the_ports_that_it_has_opened() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        assert!(listening(std::process::id()).contains(&port));
        drop(listener);
        assert!(!listening(std::process::id()).contains(&port));
    }

    #[test]
    // promise: limit-7
    fn only_sockets_that_may_listen_make_the_table_be_read() {
        use std::os::fd::OwnedFd;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let of = |input: OwnedFd| {
            let mut child = std::process::Command::new("sleep").arg("60").stdin(input).spawn().expect("sleep is there");
            let found = tcp_sockets(child.id()).len();
            child.kill().expect("ours");
            child.wait().expect("ours");
            found
        };
        assert_eq!((of(theirs.into()), of(tcp.into())), (0, 1));
        drop(ours);
    }

    #[test]
    // promise: shell-14
    fn a_program_that_is_executed_again_is_another_image() {
        use std::io::{Read, Write};
        let piped = std::process::Stdio::piped;
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-c", "echo; read x; exec sh -c 'echo; read x'"]).stdin(piped()).stdout(piped());
        let mut shell = shell.spawn().expect("sh is there");
        let (mut input, mut output) = (shell.stdin.take().expect("piped"), shell.stdout.take().expect("piped"));
        let mut image = || {
            output.read_exact(&mut [0]).expect("it has begun");
            image(shell.id())
        };
        let before = image();
        input.write_all(b"\n").expect("it reads");
        assert!(before.is_some() && before != image(), "{before:?}");
        input.write_all(b"\n").expect("it reads");
        shell.wait().expect("it ends");
    }

    #[test]
    fn a_process_descends_from_its_parents_and_itself_and_from_no_child() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let (ours, us, parent) = (child.id(), std::process::id(), std::os::unix::process::parent_id());
        assert_eq!([is_descendant(ours, us), is_descendant(ours, parent), is_descendant(us, us)], [Some(true); 3]);
        assert_eq!([is_descendant(us, ours), is_descendant(1, us)], [Some(false); 2]);
        assert_eq!(ancestors(ours).expect("they are there")[..2], [us, parent]);
        child.kill().expect("ours");
        child.wait().expect("ours");
        assert_eq!(is_descendant(ours, us), None, "it is gone");
    }

    #[test]
    fn a_process_that_is_gone_is_absent() {
        assert_eq!(stat(u32::MAX), None);
    }
}
