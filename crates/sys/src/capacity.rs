//! How much of what a session takes the kernel allows, and how much of it is in use: terminals, descriptors, processes.
//!
//! A figure that cannot be read is left out.

use std::fs;
use std::path::Path;

use rustix::process::{Resource as Limit, getrlimit, getuid};

/// A resource that the kernel counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Pseudo-terminals of the machine (sysctl kernel.pty.max).
    Terminals,
    /// Pseudo-terminals of the file system in /dev/pts (its mount option `max`).
    MountedTerminals,
    /// Descriptors of this process (setrlimit(2), RLIMIT_NOFILE, the hard limit).
    Descriptors,
    /// Process ids of the machine, of which every thread has one (sysctl kernel.pid_max).
    Pids,
    /// Threads of the machine (sysctl kernel.threads-max).
    Threads,
    /// Threads of this user (setrlimit(2), RLIMIT_NPROC); not read for root, for whom it does not count.
    UserThreads,
    /// Threads of that control group of this process that has the fewest left (`pids.max`).
    GroupThreads,
}

/// One bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The counted resource.
    pub resource: Resource,
    /// How many the kernel allows.
    pub most: u64,
    /// How many there are.
    pub used: u64,
}

impl Bound {
    /// How many more there may be.
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.used)
    }
}

/// The terminals that the kernel keeps for the host, so that containers cannot take all (sysctl kernel.pty.reserve).
pub fn reserved_terminals() -> u64 {
    number(Path::new("/proc/sys/kernel/pty/reserve")).unwrap_or(0)
}

/// The highest limit of descriptors that can be set (sysctl fs.nr_open).
pub fn most_descriptors() -> u64 {
    number(Path::new("/proc/sys/fs/nr_open")).unwrap_or(u64::MAX)
}

/// Every bound that can be read.
pub fn bounds() -> Vec<Bound> {
    use Resource::{Descriptors, GroupThreads, MountedTerminals, Pids, Terminals, Threads, UserThreads};
    let sysctl = |name: &str| number(&Path::new("/proc/sys/kernel").join(name));
    let threads = crate::process::count().map(|all| all as u64);
    let descriptors = getrlimit(Limit::Nofile).maximum.unwrap_or(u64::MAX);
    let own = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    let user = (!getuid().is_root()).then(|| getrlimit(Limit::Nproc).current).flatten();
    let found = [
        (Terminals, sysctl("pty/max"), sysctl("pty/nr")),
        (
            MountedTerminals,
            mounted_terminals(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()),
            mounted(),
        ),
        (Descriptors, Some(descriptors), Some(own)),
        (Pids, sysctl("pid_max"), threads),
        (Threads, sysctl("threads-max"), threads),
        (UserThreads, user, user.map(|_| threads_of_user())),
    ];
    let found =
        found.into_iter().filter_map(|(resource, most, used)| Some(Bound { resource, most: most?, used: used? }));
    let groups = crate::cgroup::process_limits().into_iter();
    let tightest = groups.map(|(most, used)| Bound { resource: GroupThreads, most, used }).min_by_key(Bound::left);
    found.chain(tightest).collect()
}

/// The option `max` of the file system in /dev/pts. `mounts` is `/proc/self/mountinfo`, where later lines are above
/// earlier ones.
fn mounted_terminals(mounts: &str) -> Option<u64> {
    let devpts = mounts.lines().filter_map(|line| line.split_once(" - devpts ")).rfind(|(front, _)| {
        let mut fields = front.split(' ');
        fields.nth(4) == Some("/dev/pts")
    });
    devpts?.1.split([' ', ',']).find_map(|option| option.strip_prefix("max=")?.parse().ok())
}

/// How many terminals there are in /dev/pts; one file in it is `ptmx`.
fn mounted() -> Option<u64> {
    let entries = fs::read_dir("/dev/pts").ok()?.flatten();
    Some(entries.filter(|entry| entry.file_name() != "ptmx").count() as u64)
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The threads of this user, as far as they can be seen.
fn threads_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let uid = getuid().as_raw();
    let is_ours = |pid: &u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|m| m.uid() == uid);
    let ours = crate::process::all().into_iter().filter(is_ours);
    ours.filter_map(crate::process::stat).map(|stat| stat.threads).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: limit-4
    fn the_file_system_of_the_terminals_has_a_limit_of_its_own() {
        let mount = |options: &str| format!("24 1 0:21 / /dev/pts rw,nosuid - devpts devpts rw,gid=5,{options}\n");
        assert_eq!(mounted_terminals(&mount("ptmxmode=000")), None);
        assert_eq!(mounted_terminals(&[mount("max=9"), mount("mode=620,max=4,ptmxmode=666")].concat()), Some(4));
    }

    #[test]
    // promise: limit-4
    fn the_kernel_reports_its_limits_of_terminals_and_descriptors() {
        let bounds = bounds();
        let of = |resource| bounds.iter().find(|bound| bound.resource == resource).copied();
        let terminals = of(Resource::Terminals).expect("every Linux tells it");
        assert!(terminals.most > 0 && terminals.left() <= terminals.most, "{terminals:?}");
        let descriptors = of(Resource::Descriptors).expect("every Linux tells it");
        let _one = fs::File::open("/dev/null").expect("there");
        assert!(descriptors.used > 0 && descriptors.left() < descriptors.most, "{descriptors:?}");
        assert!(of(Resource::Pids).is_some_and(|pids| pids.used > 0), "this process is one");
    }
}
