//! Processes as the kernel shows them: whose they are, what they hold, and when they end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, Signal, kill_process, pidfd_open};

/// A process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(u32);

impl Pid {
    /// This process.
    pub fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0
    }

    fn raw(self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(i32::try_from(self.0).ok()?)
    }

    /// Sends a signal; one that has ended takes it silently.
    pub fn signal(self, signal: Signal) {
        if let Some(pid) = self.raw() {
            let _ = kill_process(pid, signal);
        }
    }

    /// `kill -9`.
    pub fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Whether it runs; a zombie does not.
    pub fn is_alive(self) -> bool {
        self.state().is_some_and(|state| state != 'Z' && state != 'X')
    }

    /// The letter of its state in ps(1).
    pub fn state(self) -> Option<char> {
        self.after_name()?.chars().next()
    }

    fn after_name(self) -> Option<String> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0)).ok()?;
        // The name may hold anything, a closing parenthesis too.
        Some(stat.rsplit_once(')')?.1.trim_start().to_owned())
    }

    /// Its parent.
    pub fn parent(self) -> Option<Self> {
        self.after_name()?.split(' ').nth(1)?.parse().ok().map(Self)
    }

    /// Processor time that it used, all its threads together, to the nanosecond.
    pub fn processor_time(self) -> Duration {
        let threads = fs::read_dir(format!("/proc/{}/task", self.0)).into_iter().flatten().flatten();
        let spent = |entry: fs::DirEntry| {
            let text = fs::read_to_string(entry.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        };
        Duration::from_nanos(threads.filter_map(spent).sum())
    }

    /// Its arguments.
    pub fn command_line(self) -> String {
        let bytes = fs::read(format!("/proc/{}/cmdline", self.0)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ").trim_end().to_owned()
    }

    fn is_spare_holder(self) -> bool {
        self.command_line().contains("/spare-")
    }

    /// Waits for its end; `false` when it still runs after `longest`.
    pub fn ends_within(self, longest: Duration) -> bool {
        let Some(fd) = self.raw().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return true };
        let until = Instant::now() + longest;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).expect("a short time");
            match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&left)) {
                Ok(0) => return false,
                Ok(_) => return true,
                Err(_) => {}
            }
        }
    }
}

fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").expect("/proc is mounted").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok().map(Pid))
}

/// The spare holders of the server of this home, which has one at most.
pub fn spare_holders(home: &Path) -> Vec<Pid> {
    let home = home.to_string_lossy();
    all().filter(|pid| pid.is_alive() && pid.is_spare_holder() && pid.command_line().contains(&*home)).collect()
}

/// The processes that carry this path in their environment or arguments, but ourselves and the spare holder of a server.
pub fn marked(mark: &Path) -> Vec<Pid> {
    let mark = mark.as_os_str().as_encoded_bytes();
    let own = std::process::id();
    let carries = |pid: &Pid| {
        ["environ", "cmdline"].iter().any(|file| {
            let bytes = fs::read(format!("/proc/{}/{file}", pid.0)).unwrap_or_default();
            bytes.windows(mark.len()).any(|window| window == mark)
        })
    };
    // Most processes of the machine carry nothing, so that is asked first.
    all().filter(|pid| pid.0 != own && carries(pid)).filter(|pid| pid.is_alive() && !pid.is_spare_holder()).collect()
}

/// A process and everything below it.
pub fn with_descendants(root: Pid) -> Vec<Pid> {
    let mut children: BTreeMap<Pid, Vec<Pid>> = BTreeMap::new();
    for pid in all() {
        if let Some(parent) = pid.parent() {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut at = 0;
    while at < found.len() {
        found.extend(children.remove(&found[at]).unwrap_or_default());
        at += 1;
    }
    found
}

/// The resources of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Open files.
    pub files: usize,
    /// Threads.
    pub threads: usize,
    /// Children that have ended and were not waited for.
    pub zombies: usize,
    /// Resident memory.
    pub resident_bytes: u64,
    /// The most that was ever resident.
    pub peak_bytes: u64,
    /// Its share of resident memory, shared pages divided by their users.
    pub share_bytes: u64,
}

/// The present resources of a process.
pub fn footprint(pid: Pid) -> Footprint {
    let entries = |folder: &str| fs::read_dir(format!("/proc/{}/{folder}", pid.0)).map_or(0, Iterator::count);
    let kib = |file: &str, name: &str| {
        let text = fs::read_to_string(format!("/proc/{}/{file}", pid.0)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0)
    };
    Footprint {
        files: entries("fd"),
        threads: entries("task"),
        zombies: all().filter(|child| child.parent() == Some(pid) && child.state() == Some('Z')).count(),
        resident_bytes: kib("status", "VmRSS:") << 10,
        peak_bytes: kib("status", "VmHWM:") << 10,
        share_bytes: kib("smaps_rollup", "Pss:") << 10,
    }
}

/// The control groups of a session.
pub fn groups(id: &str) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from("/sys/fs/cgroup")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        let inside = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let (ours, others): (Vec<_>, Vec<_>) = inside.filter(|path| path.is_dir()).partition(|path| path.ends_with(id));
        found.extend(ours);
        folders.extend(others);
    }
    found
}
