//! This machine, on which the server itself runs.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

use sys::cgroup::{Group, Places};
use sys::process::{self, Stat};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::containers;
use super::port::{
    Bounds, ControlGroup, Controller, Counts, FileFacts, Host, Identity, Process, Programs, User, Users,
};
use crate::action::{ConfinementTier, ProcessState};

/// Linux counts time for /proc in hundredths of a second on every architecture (USER_HZ).
const US_PER_TICK: u64 = 10_000;
/// How many processes of one session are read.
const TREE_MAX: usize = 10_000;
/// Above this number of sessions, one scan of all processes may replace a search per session.
const TREES_MAX: usize = 16;
/// A search reads about so many files for each session, a scan one for each process of the machine.
const READS_PER_TREE: usize = 4;
/// A process may fork during a search; the next round finds its child.
const ROUNDS_MAX: usize = 10;

/// The machine of the server.
#[derive(Debug, Default)]
pub(crate) struct LocalHost {
    /// The places where this server can make control groups; determined when the first session needs one, because most servers
    /// never do.
    places: OnceLock<Places>,
}

impl LocalHost {
    fn places(&self) -> &Places {
        self.places.get_or_init(Places::find)
    }
}

/// Why this machine cannot give a session this confinement, for `ptyd doctor` too; `None` if it can.
#[must_use]
pub fn confinement_hindrance(tier: ConfinementTier) -> Option<String> {
    let more = || match tier {
        ConfinementTier::Process => None,
        ConfinementTier::Sandbox => sys::sandbox::hindrance(),
        ConfinementTier::Container => containers::hindrance(),
    };
    sys::confinement::hindrance().or_else(more)
}

impl Programs for LocalHost {
    fn resolve_program(&self, name: &str, path: Option<&[u8]>) -> Option<PathBuf> {
        if name.is_empty() {
            return None;
        }
        if name.contains('/') {
            let p = PathBuf::from(name);
            return (p.is_absolute() && is_executable(&p)).then_some(p);
        }
        path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin")
            .split(|b| *b == b':')
            .filter(|dir| !dir.is_empty())
            .map(|dir| Path::new(OsStr::from_bytes(dir)).join(name))
            .find(|p| is_executable(p))
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }
}

impl Host for LocalHost {
    fn file(&self, path: &Path) -> Option<FileFacts> {
        std::fs::metadata(path).ok().map(|metadata| FileFacts::from(&metadata))
    }

    fn file_as(&self, identity: &[u32], path: &Path) -> Option<FileFacts> {
        match identity {
            [] => self.file(path),
            another => sys::user::metadata_as(another, path).ok().map(|metadata| FileFacts::from(&metadata)),
        }
    }

    fn file_inside(&self, pid: u32, path: &Path) -> Option<FileFacts> {
        containers::ContainerFiles::of_process(pid).facts(path)
    }

    fn resolved_path(&self, path: &Path) -> PathBuf {
        sys::confinement::resolved(path)
    }

    fn path_of(&self, pid: u32, path: PathBuf) -> PathBuf {
        let own = ["/proc/self", "/proc/thread-self"].into_iter().find_map(|own| path.strip_prefix(own).ok());
        match (own, process::innermost_pid(pid)) {
            (Some(rest), Some(inside)) => Path::new("/proc").join(inside.to_string()).join(rest),
            _ => path,
        }
    }

    fn path_seen_by(&self, pid: u32, path: &Path) -> PathBuf {
        sys::confinement::seen_by(pid, path)
    }

    fn path_outside_proc(&self, path: &Path) -> Option<PathBuf> {
        sys::confinement::outside_proc(path)
    }

    fn place(&self, path: &Path) -> Result<PathBuf, PathBuf> {
        sys::confinement::place(path)
    }

    fn program_folders(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
    }

    fn home(&self) -> Option<PathBuf> {
        std::env::var_os("HOME").map(PathBuf::from)
    }

    fn default_directory(&self) -> PathBuf {
        std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"))
    }

    fn confinement_hindrance(&self, tier: ConfinementTier) -> Option<String> {
        confinement_hindrance(tier)
    }

    fn user(&self, name: &str) -> io::Result<Option<User>> {
        sys::user::named(name)
    }

    /// The last field of the user's line in passwd(5).
    fn login_shell(&self) -> Option<String> {
        user_line(rustix::process::getuid().as_raw())?.split(':').nth(6).map(str::to_owned)
    }

    fn process(&self, pid: u32) -> Option<Process> {
        process::stat(pid).map(process_of)
    }

    fn process_trees(&self, roots: &[u32]) -> Vec<Vec<Process>> {
        let plain = |stats: Vec<Stat>| stats.into_iter().map(process_of).collect();
        let is_small = || process::count().is_some_and(|all| roots.len() * READS_PER_TREE < all);
        if roots.len() <= TREES_MAX || is_small() {
            let tree = |root: &u32| if *root == 0 { Vec::new() } else { process::tree(*root, TREE_MAX) };
            return roots.iter().map(tree).map(plain).collect();
        }
        let everyone = families();
        roots.iter().map(|root| plain(below(*root, &everyone))).collect()
    }

    fn command_line(&self, pid: u32) -> String {
        process::command_line(pid)
    }

    fn working_directory(&self, pid: u32) -> Option<PathBuf> {
        process::working_directory(pid).filter(|path| !is_said_to_be_gone(path))
    }

    fn is_directory_gone(&self, pid: u32) -> bool {
        // A directory may have that name. One that was removed has no links, and is on a file system that has answered.
        let links = || std::fs::metadata(format!("/proc/{pid}/cwd")).map(|it| it.nlink());
        process::working_directory(pid).is_some_and(|path| is_said_to_be_gone(&path)) && links().is_ok_and(|n| n == 0)
    }

    fn innermost_pid(&self, pid: u32) -> Option<u32> {
        process::innermost_pid(pid)
    }

    fn executable(&self, pid: u32) -> Option<PathBuf> {
        process::executable(pid)
    }

    fn users(&self, pid: u32) -> Option<Users> {
        process::users(pid)
    }

    /// The first field of the user's line in passwd(5).
    fn user_name(&self, uid: u32) -> Option<String> {
        user_line(uid)?.split(':').next().map(str::to_owned)
    }

    fn tcp_user(&self, own: SocketAddr, peer: SocketAddr) -> Option<u32> {
        process::tcp_user(own, peer)
    }

    fn ignores(&self, pid: u32, signo: i32) -> bool {
        process::ignores(pid, signo)
    }

    fn image(&self, pid: u32) -> Option<u64> {
        process::image(pid)
    }

    fn listening_ports(&self, root: u32) -> HashSet<u16> {
        super::port::descendants(self, root).iter().flat_map(|below| process::listening(below.pid())).collect()
    }

    fn ports_of_job(&self, root: u32, group: u32) -> HashSet<u16> {
        let mut job: HashSet<u32> = HashSet::new();
        // Parents come before children.
        for below in super::port::descendants(self, root) {
            if below.group == group || job.contains(&below.parent) {
                job.insert(below.pid());
            }
        }
        job.into_iter().flat_map(process::listening).collect()
    }

    fn since_boot_us(&self) -> u64 {
        sys::time::since_boot_us()
    }

    fn signal_exactly(&self, (pid, start_ticks): Identity, signo: i32) -> bool {
        process::signal_exactly(pid, start_ticks, signo)
    }

    fn ends_within(&self, process: Identity, longest: Duration) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        Box::pin(ends_within(process, longest))
    }

    fn sweep(&self, variable: &str, began: u64) -> Vec<Process> {
        let own = std::process::id();
        let mut swept: Vec<Process> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let found = process::with_environment(variable.as_bytes()).into_iter().filter(|pid| *pid != own);
            let victims: Vec<Stat> = found.filter_map(alive).filter(|stat| stat.start_ticks >= began).collect();
            if victims.is_empty() {
                break;
            }
            for victim in victims.into_iter().map(process_of) {
                let is_new = !swept.iter().any(|before| before.identity == victim.identity);
                if self.signal_exactly(victim.identity, sys::signal::KILL) && is_new {
                    swept.push(victim);
                }
            }
        }
        swept
    }

    fn has_controller(&self, controller: Controller) -> bool {
        self.places().have(controller)
    }

    fn bounds_tasks_of_namespaces(&self) -> bool {
        // Root's are not bounded, and an older kernel counts all processes of the user (setrlimit(2)).
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(number);
        !rustix::process::getuid().is_root() && (parts.next(), parts.next()) >= (Some(5), Some(14))
    }

    fn group_entrances(&self, name: &str) -> Vec<PathBuf> {
        self.places().group(name).doors()
    }

    fn make_group(&self, name: &str, bounds: Bounds) -> io::Result<()> {
        self.places().make(name, bounds).map(drop)
    }

    fn group(&self, entrances: &[PathBuf]) -> Box<dyn ControlGroup> {
        Box::new(Group::behind(entrances))
    }
}

impl ControlGroup for Group {
    fn counts(&self) -> Counts {
        Group::counts(self)
    }

    fn remove(&self) {
        Group::remove(self);
    }
}

/// A user's line in passwd(5).
fn user_line(uid: u32) -> Option<String> {
    let uid = uid.to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find(|line| line.split(':').nth(2) == Some(uid.as_str())).map(str::to_owned)
}

/// Waits for the end of a process; false if it still lives after `longest`, or its end cannot be determined.
#[expect(
    deprecated,
    reason = "its successor is unsafe, for types whose descriptor may change; that of an `OwnedFd` does not"
)]
pub(super) async fn ends_within(process: Identity, longest: Duration) -> bool {
    let (pid, start_ticks) = process;
    match process::open_exactly(pid, start_ticks) {
        Ok(None) => true,
        Ok(Some(fd)) => match AsyncFd::with_interest(fd, Interest::READABLE) {
            // The pidfd becomes readable when the process has ended (pidfd_open(2)).
            Ok(fd) => tokio::time::timeout(longest, fd.readable()).await.is_ok_and(|ended| ended.is_ok()),
            Err(_) => !is_alive(process),
        },
        Err(_) => !is_alive(process),
    }
}

pub(super) fn alive(pid: u32) -> Option<Stat> {
    process::stat(pid).filter(|stat| stat.state != b'Z')
}

pub(super) fn is_alive((pid, start_ticks): Identity) -> bool {
    alive(pid).is_some_and(|stat| stat.start_ticks == start_ticks)
}

fn process_of(stat: Stat) -> Process {
    Process {
        identity: (stat.pid, stat.start_ticks),
        parent: stat.ppid,
        group: stat.pgrp,
        session: stat.session,
        name: stat.comm,
        state: state(stat.state),
        is_job_stopped: stat.state == b'T',
        foreground_group: stat.foreground_group,
        cpu_us: stat.cpu_ticks * US_PER_TICK,
        reaped_cpu_us: stat.reaped_ticks * US_PER_TICK,
        memory_bytes: stat.rss_pages * rustix::param::page_size() as u64,
        started_us: stat.start_ticks * US_PER_TICK,
    }
}

/// The letters of `/proc/<pid>/stat` (proc(5)).
fn state(letter: u8) -> ProcessState {
    match letter {
        b'R' => ProcessState::Running,
        b'T' | b't' => ProcessState::Stopped,
        b'D' => ProcessState::Blocked,
        b'Z' | b'X' => ProcessState::Ended,
        _ => ProcessState::Sleeping,
    }
}

/// All processes of the machine, by parent.
fn families() -> HashMap<u32, Vec<Stat>> {
    let mut families: HashMap<u32, Vec<Stat>> = HashMap::new();
    for stat in process::all().into_iter().filter_map(process::stat) {
        families.entry(stat.ppid).or_default().push(stat);
    }
    families
}

/// A process and all of its descendants.
fn below(root: u32, families: &HashMap<u32, Vec<Stat>>) -> Vec<Stat> {
    let mut found: Vec<Stat> = process::stat(root).into_iter().collect();
    if let Some(first) = process::first_in_container(root) {
        found.extend(families.get(&first).cloned().unwrap_or_default());
    }
    let mut next = 0;
    while next < found.len() && found.len() < TREE_MAX {
        found.extend(families.get(&found[next].pid).cloned().unwrap_or_default());
        next += 1;
    }
    found
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The kernel adds a word to the path of a directory that is gone. A look at the directory could hang, as on a file system whose
/// server does not answer.
fn is_said_to_be_gone(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)")
}
