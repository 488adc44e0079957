//! How many sessions the kernel allows, which of its limits is the tightest, and what to set for more.

use std::fmt;

use sys::capacity::{Bound, Resource};

use crate::limits::{
    CONNECTIONS_MAX, CONNECTIONS_MIN, SERVER_DESCRIPTORS, SESSION_DESCRIPTORS, SESSION_THREADS, SESSIONS_MANY,
    SESSIONS_MAX,
};

/// Descriptors of a server beside its sessions, if it has enough for all connections over both listeners.
const OTHER_DESCRIPTORS: u64 = 2 * CONNECTIONS_MAX as u64 + SERVER_DESCRIPTORS;
/// Terminals of others.
const OTHER_TERMINALS: u64 = 96;
/// Limits are set to multiples of this.
const STEP: u64 = 1_024;

/// One limit of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelLimit {
    bound: Bound,
    /// The part of it that is not for sessions.
    others: u64,
    /// How much a session takes of it.
    each: u64,
}

impl KernelLimit {
    fn of(bound: Bound) -> Self {
        let (others, each) = match bound.resource {
            // Containers get none of the reserve; whether this is one cannot be seen.
            Resource::Terminals | Resource::MountedTerminals => (0, 1),
            Resource::Descriptors => {
                (SERVER_DESCRIPTORS + 2 * connections_with(bound.most) as u64, SESSION_DESCRIPTORS)
            }
            Resource::Pids | Resource::Threads | Resource::UserThreads | Resource::GroupThreads => (0, SESSION_THREADS),
        };
        Self { bound, others, each }
    }

    /// The name of the check.
    pub fn name(&self) -> &'static str {
        match self.bound.resource {
            Resource::Terminals => "ptys",
            Resource::MountedTerminals => "devpts",
            Resource::Descriptors => "files",
            Resource::Pids => "pids",
            Resource::Threads => "threads",
            Resource::UserThreads => "nproc",
            Resource::GroupThreads => "cgroup",
        }
    }

    /// How many sessions it allows in all.
    pub fn sessions(&self) -> u64 {
        self.bound.most.saturating_sub(self.others) / self.each
    }

    /// The limit in words, and how to raise it.
    pub(crate) fn with_remedy(&self) -> String {
        let remedy = [SESSIONS_MAX as u64, SESSIONS_MANY].into_iter().find_map(|sessions| self.remedy(sessions));
        let remedy = remedy.map(|remedy| format!("; for more: {remedy}")).unwrap_or_default();
        format!("{self}{remedy}")
    }

    /// How to allow so many sessions; `None` if it does already.
    pub fn remedy(&self, sessions: u64) -> Option<String> {
        if self.sessions() >= sessions {
            return None;
        }
        let most = match self.bound.resource {
            Resource::Terminals => sessions + OTHER_TERMINALS + sys::capacity::reserved_terminals(),
            Resource::MountedTerminals => sessions + OTHER_TERMINALS,
            Resource::Descriptors => sessions * self.each + OTHER_DESCRIPTORS,
            _ => sessions * self.each + self.bound.used,
        };
        let most = most.next_multiple_of(STEP);
        Some(match self.bound.resource {
            Resource::Terminals => format!("sysctl -w kernel.pty.max={most}"),
            Resource::MountedTerminals => format!("mount -o remount,max={most} /dev/pts"),
            Resource::Pids => format!("sysctl -w kernel.pid_max={most}"),
            Resource::Threads => format!("sysctl -w kernel.threads-max={most}"),
            Resource::Descriptors => {
                let kernel =
                    (sys::capacity::most_descriptors() < most).then(|| format!("sysctl -w fs.nr_open={most}, and "));
                format!("{}ulimit -n {most} (in a unit LimitNOFILE={most})", kernel.unwrap_or_default())
            }
            Resource::UserThreads => format!("ulimit -u {most} (in a unit LimitNPROC={most})"),
            Resource::GroupThreads => format!("TasksMax={most} in its unit, or --pids-limit {most} of its container"),
        })
    }
}

/// Its name, its bound, and how much of it is in use.
impl fmt::Display for KernelLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bound { resource, most, used } = self.bound;
        match resource {
            Resource::Terminals => {
                write!(f, "kernel.pty.max is {most}")?;
                match sys::capacity::reserved_terminals() {
                    0 => {}
                    reserved => write!(f, " (in a container {reserved} less)")?,
                }
                write!(f, ", {used} in use")
            }
            Resource::MountedTerminals => {
                write!(f, "/dev/pts may have {most} terminals (its mount option max), and has {used}")
            }
            Resource::Descriptors => write!(f, "a server may have {most} descriptors"),
            Resource::Pids => write!(f, "kernel.pid_max is {most}, {used} in use"),
            Resource::Threads => write!(f, "kernel.threads-max is {most}, {used} in use"),
            Resource::UserThreads => write!(f, "this user may have {most} processes (ulimit -u), and has {used}"),
            Resource::GroupThreads => write!(f, "the control group may have {most} processes, and has {used}"),
        }
    }
}

/// Every limit of the kernel that bounds the number of sessions, as far as it can be read.
pub fn kernel_limits() -> Vec<KernelLimit> {
    sys::capacity::bounds().into_iter().map(KernelLimit::of).collect()
}

/// The connections of each listener, of so many descriptors: both listeners have a quarter of what the server does not need itself, so
/// that the sessions leave room for those who end them.
fn connections_with(descriptors: u64) -> usize {
    let share = usize::try_from(descriptors.saturating_sub(SERVER_DESCRIPTORS) / 8).unwrap_or(CONNECTIONS_MAX);
    share.clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// The connections of each listener that the descriptors of this server allow.
pub fn connections_max() -> usize {
    descriptors().map_or(CONNECTIONS_MAX, |limit| connections_with(limit.bound.most))
}

/// The limit of the descriptors of this process.
pub(crate) fn descriptors() -> Option<KernelLimit> {
    kernel_limits().into_iter().find(|limit| limit.bound.resource == Resource::Descriptors)
}

/// The limit that a start ran into, and how to raise it; `None` if none of these is used up.
pub(super) fn used_up(resources: &[Resource]) -> Option<String> {
    /// A start frees again what it took.
    const NEARLY: u64 = 64;
    let limits = kernel_limits().into_iter().filter(|limit| resources.contains(&limit.bound.resource));
    let limit = limits.min_by_key(|limit| limit.bound.left())?;
    if limit.bound.left() > NEARLY.max(reserve_of(limit.bound.resource)) {
        return None;
    }
    Some(limit.with_remedy())
}

/// The terminals that a container may not take.
fn reserve_of(resource: Resource) -> u64 {
    if resource == Resource::Terminals { sys::capacity::reserved_terminals() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(resource: Resource, most: u64) -> KernelLimit {
        KernelLimit::of(Bound { resource, most, used: 100 })
    }

    #[test]
    // promise: limit-4
    fn each_limit_says_how_many_sessions_it_allows_and_how_to_raise_it() {
        let many = [SESSIONS_MAX as u64, SESSIONS_MANY];
        let terminals = limit(Resource::Terminals, 4_096);
        assert_eq!(terminals.sessions(), 4_096);
        let [enough, more] = many.map(|sessions| terminals.remedy(sessions));
        assert_eq!(enough, None);
        let more = more.expect("there are too few");
        let value: u64 = more.strip_prefix("sysctl -w kernel.pty.max=").expect("a command").parse().expect("a number");
        assert!(limit(Resource::Terminals, value).remedy(SESSIONS_MANY).is_none(), "{more}");
        for resource in
            [Resource::Descriptors, Resource::Pids, Resource::Threads, Resource::UserThreads, Resource::GroupThreads]
        {
            let small = limit(resource, 1_024);
            assert!(small.sessions() < 1_024 && many.iter().all(|sessions| small.remedy(*sessions).is_some()));
            assert_eq!(many.map(|sessions| limit(resource, 1 << 22).remedy(sessions)), [None, None]);
        }
        for most in [85, 256, 1_024, 4_096, 24_576, 1 << 20] {
            let taken =
                |sessions| sessions * SESSION_DESCRIPTORS + 2 * connections_with(most) as u64 + SERVER_DESCRIPTORS;
            assert!(
                taken(limit(Resource::Descriptors, most).sessions()) <= most,
                "{most}: nothing is left for an answer"
            );
        }
        assert!(limit(Resource::Descriptors, 24_576).sessions() >= SESSIONS_MAX as u64, "the documented value");
        assert!(limit(Resource::Pids, 32_768).sessions() >= SESSIONS_MAX as u64, "the kernel's default");
    }
}
