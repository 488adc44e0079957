//! Control groups: where a group can be made, its limits and its counters (cgroups(7); the kernel's
//! Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst).
//!
//! Version 1 has a hierarchy for each controller, version 2 one for all of them; a hybrid system uses both. A [`Group`]
//! is the same in all cases: a folder below our own place in each hierarchy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The parent folder of our groups, below our own place in a hierarchy.
const PARENT: &str = "ptyd";
/// The leaf in which a service manager starts this process if it delegates the group above
/// (systemd.resource-control(5), DelegateSubgroup=).
const OWN_LEAF: &str = "ptyd-server";

/// A controller of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// `memory.max` or `memory.limit_in_bytes`.
    Memory,
    /// `pids.max`.
    Pids,
    /// The CPU share: groups get equal ones.
    Cpu,
    /// CPU time. Version 2 always counts it.
    CpuAccounting,
}

const CONTROLLERS: [Controller; 4] = [Controller::Memory, Controller::Pids, Controller::Cpu, Controller::CpuAccounting];

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::CpuAccounting => "cpuacct",
        }
    }
}

/// One controller of a group: its folder, and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seat {
    controller: Controller,
    is_v2: bool,
    folder: PathBuf,
}

/// The places where groups can be made; each controller at most once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places(Vec<Seat>);

/// One group; dropping the value does not remove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group(Vec<Seat>);

/// The limits of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// Bytes of memory, swap included.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub processes: Option<u64>,
}

/// The counters of a group since its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Processes killed because the group's memory was used up.
    pub oom_kills: u64,
    /// Refused forks.
    pub forks_refused: u64,
    /// CPU time in microseconds; `None` if it is not counted.
    pub cpu_us: Option<u64>,
}

impl Places {
    /// The places in which this process may make groups.
    pub fn find() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self(seats(&mounts, &own).into_iter().filter(|seat| seat.is_ours()).collect())
    }

    /// Whether groups here have this controller.
    pub fn have(&self, controller: Controller) -> bool {
        self.0.iter().any(|seat| seat.controller == controller)
    }

    /// Makes a group, or takes an existing one.
    pub fn make(&self, name: &str, bounds: Bounds) -> io::Result<Group> {
        let group = self.group(name);
        let made = group.0.iter().try_for_each(|seat| seat.make(bounds));
        made.inspect_err(|_| group.remove())?;
        Ok(group)
    }

    /// The group of this name, whether it exists or not.
    pub fn group(&self, name: &str) -> Group {
        let seat = |seat: &Seat| Seat { folder: seat.folder.join(PARENT).join(name), ..seat.clone() };
        Group(self.0.iter().map(seat).collect())
    }
}

impl Group {
    /// The group with these `cgroup.procs` files, which another process may have made: each folder's files show its
    /// controllers.
    pub fn behind(doors: &[PathBuf]) -> Self {
        let mut seats = Vec::new();
        for folder in doors.iter().filter_map(|door| door.parent()) {
            let has = |file: &str| folder.join(file).exists();
            let is_v2 = has("cgroup.controllers");
            for (controller, is_here) in [
                (Controller::Memory, has("memory.max") || has("memory.limit_in_bytes")),
                (Controller::Pids, has("pids.max")),
                (Controller::CpuAccounting, has("cpuacct.usage") || is_v2),
                (Controller::Cpu, has("cpu.shares") || has("cpu.weight")),
            ] {
                if is_here {
                    seats.push(Seat { controller, is_v2, folder: folder.to_owned() });
                }
            }
        }
        Self(seats)
    }

    /// The `cgroup.procs` files, into which a process writes `0` to join.
    pub fn doors(&self) -> Vec<PathBuf> {
        let mut doors: Vec<_> = self.0.iter().map(|seat| seat.folder.join("cgroup.procs")).collect();
        // Version 2, and joint controllers of version 1, share a folder.
        doors.dedup();
        doors
    }

    /// The present counters; one that cannot be read counts as zero.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for seat in &self.0 {
            let field = |file: &str, name: &str| field(&seat.folder.join(file), name);
            match (seat.controller, seat.is_v2) {
                (Controller::Memory, true) => counts.oom_kills = field("memory.events", "oom_kill").unwrap_or(0),
                (Controller::Memory, false) => counts.oom_kills = field("memory.oom_control", "oom_kill").unwrap_or(0),
                (Controller::Pids, _) => counts.forks_refused = field("pids.events", "max").unwrap_or(0),
                (Controller::CpuAccounting, true) => counts.cpu_us = field("cpu.stat", "usage_usec"),
                (Controller::CpuAccounting, false) => {
                    counts.cpu_us = number(&seat.folder.join("cpuacct.usage")).map(|ns| ns / 1_000);
                }
                (Controller::Cpu, _) => {}
            }
        }
        counts
    }

    /// Removes the group; one with processes in it remains.
    pub fn remove(&self) {
        for door in self.doors() {
            if let Some(folder) = door.parent() {
                let _ = fs::remove_dir(folder);
                // The last group removes the parent; a parent with other groups remains.
                let _ = folder.parent().map(fs::remove_dir);
            }
        }
    }
}

impl Seat {
    /// Whether this process may make groups here that have the controller.
    fn is_ours(&self) -> bool {
        let may_write = rustix::fs::access(&self.folder, rustix::fs::Access::WRITE_OK).is_ok();
        may_write && (!self.is_v2 || self.delegates())
    }

    /// Version 2: enables the controller for the groups below. That fails in a group with processes, except the root.
    /// No process is moved for it, because a service whose own group has groups below cannot be restarted in it.
    fn delegates(&self) -> bool {
        if self.controller == Controller::CpuAccounting {
            return true;
        }
        let pass_on = |folder: &Path| {
            let file = folder.join("cgroup.subtree_control");
            let has = fs::read_to_string(&file).is_ok_and(|all| has_word(&all, self.controller.name()));
            has || fs::write(&file, format!("+{}", self.controller.name())).is_ok()
        };
        let parent = self.folder.join(PARENT);
        pass_on(&self.folder) && fs::create_dir_all(&parent).is_ok() && pass_on(&parent)
    }

    fn make(&self, bounds: Bounds) -> io::Result<()> {
        // Another server may remove the parent with its last group.
        fs::create_dir_all(&self.folder).or_else(|_| fs::create_dir_all(&self.folder))?;
        let write = |file: &str, value: u64| fs::write(self.folder.join(file), value.to_string());
        match (self.controller, self.is_v2) {
            (Controller::Memory, is_v2) => {
                let Some(bytes) = bounds.memory else { return Ok(()) };
                if is_v2 {
                    write("memory.max", bytes)?;
                    // A kernel without swap has no such file.
                    let _ = write("memory.swap.max", 0);
                } else {
                    write("memory.limit_in_bytes", bytes)?;
                    let _ = write("memory.memsw.limit_in_bytes", bytes);
                }
                Ok(())
            }
            (Controller::Pids, _) => bounds.processes.map_or(Ok(()), |most| write("pids.max", most)),
            (Controller::Cpu | Controller::CpuAccounting, _) => Ok(()),
        }
    }
}

/// The limit of processes and their present number in the group of this process and in each above it, where there is one.
pub(crate) fn process_limits() -> Vec<(u64, u64)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let seat = seats(&mounts, &own).into_iter().find(|seat| seat.controller == Controller::Pids);
    seat.map(|seat| process_limits_from(&seat.folder)).unwrap_or_default()
}

fn process_limits_from(folder: &Path) -> Vec<(u64, u64)> {
    let groups = folder.ancestors().take_while(|folder| folder.join("cgroup.procs").exists());
    // Without a limit the file says `max`, and the root has none.
    groups.filter_map(|group| number(&group.join("pids.max")).zip(number(&group.join("pids.current")))).collect()
}

/// Our own place for each controller. `mounts` is `/proc/self/mountinfo`, `own` is `/proc/self/cgroup`.
fn seats(mounts: &str, own: &str) -> Vec<Seat> {
    let mounts: Vec<Mount<'_>> = mounts.lines().filter_map(Mount::parse).collect();
    let mut seats = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(names), Some(path)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let is_v2 = names.is_empty();
        let Some(mount) = mounts.iter().find(|m| m.holds(names)) else { continue };
        // A container sees a part of the hierarchy: paths are relative to the root of that part.
        let Some(below) = path.strip_prefix(mount.root.trim_end_matches('/')) else { continue };
        let mut folder = Path::new(mount.point).join(below.trim_start_matches('/'));
        if is_v2 && folder.ends_with(OWN_LEAF) {
            folder.pop();
        }
        let offered = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        for controller in CONTROLLERS {
            let is_here = match (is_v2, controller) {
                (false, _) => names.split(',').any(|n| n == controller.name()),
                // Version 2 counts CPU time in every group; without its controllers it is of no use to us.
                (true, Controller::CpuAccounting) => !offered.trim().is_empty(),
                (true, _) => has_word(&offered, controller.name()),
            };
            if is_here && !seats.iter().any(|s: &Seat| s.controller == controller) {
                seats.push(Seat { controller, is_v2, folder: folder.clone() });
            }
        }
    }
    seats
}

/// A line of `/proc/self/mountinfo` (proc(5)) about control groups.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    is_v2: bool,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let mut back = back.split(' ');
        let is_v2 = match back.next()? {
            "cgroup" => false,
            "cgroup2" => true,
            _ => return None,
        };
        Some(Self { root: front.next()?, point: front.next()?, is_v2, options: back.nth(1)? })
    }

    /// Whether it is the hierarchy of these controllers; no names mean version 2.
    fn holds(&self, names: &str) -> bool {
        let all = || names.split(',').all(|name| self.options.split(',').any(|o| o == name));
        if names.is_empty() { self.is_v2 } else { !self.is_v2 && all() }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split_ascii_whitespace().any(|w| w == word)
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The value of a line `name value`.
fn field(file: &Path, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "33 28 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
                      34 28 0:28 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n\
                      35 28 0:29 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n\
                      36 28 0:30 / /proc rw - proc proc rw\n";

    #[test]
    fn each_hierarchy_of_version_1_is_found_with_our_place_in_it() {
        let own = "4:memory:/user/a\n3:cpu,cpuacct:/\n2:name=systemd:/x\n0::/\n";
        let seat = |controller, folder: &str| Seat { controller, is_v2: false, folder: folder.into() };
        let expected = [
            seat(Controller::Memory, "/sys/fs/cgroup/memory/user/a"),
            seat(Controller::Cpu, "/sys/fs/cgroup/cpu,cpuacct/"),
            seat(Controller::CpuAccounting, "/sys/fs/cgroup/cpu,cpuacct/"),
        ];
        assert_eq!(seats(V1, own), expected);
    }

    #[test]
    fn a_place_outside_of_the_mounts_is_not_found() {
        let mounts = "33 28 0:27 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        assert_eq!(seats(mounts, "4:memory:/docker/def\n"), []);
        let inside = seats(mounts, "4:memory:/docker/abc/x\n");
        assert_eq!(inside.first().map(|s| s.folder.as_path()), Some(Path::new("/sys/fs/cgroup/memory/x")));
    }

    #[test]
    // promise: limit-4
    fn the_groups_above_a_process_limit_it_too() {
        let root = tempfile::tempdir().expect("a folder");
        let inner = root.path().join("slice/unit");
        fs::create_dir_all(&inner).expect("made");
        for (folder, most) in [(root.path().join("slice"), "500\n"), (inner.clone(), "max\n")] {
            fs::write(folder.join("cgroup.procs"), "").expect("written");
            fs::write(folder.join("pids.max"), most).expect("written");
            fs::write(folder.join("pids.current"), "20\n").expect("written");
        }
        assert_eq!(process_limits_from(&inner), [(500, 20)]);
    }

    /// Files as version 2 has them; what the kernel does with what is written is not shown by this.
    #[test]
    // promise: limit-1
    fn version_2_is_one_folder_for_all_controllers() {
        let root = tempfile::tempdir().expect("a folder");
        let at = root.path().to_str().expect("a name");
        fs::write(root.path().join("cgroup.controllers"), "cpuset cpu io memory pids\n").expect("written");
        let mounts = format!("35 28 0:29 / {at} rw,nosuid - cgroup2 cgroup2 rw\n");
        let found = seats(&mounts, "0::/\n");
        let seat = |controller| Seat { controller, is_v2: true, folder: root.path().to_owned() };
        assert_eq!(found, CONTROLLERS.map(seat));
        let places = Places(found);
        let bounds = Bounds { memory: Some(1 << 20), processes: Some(7) };
        let group = places.make("s", bounds).expect("made");
        let folder = root.path().join("ptyd/s");
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert_eq!([read("memory.max"), read("pids.max")], ["1048576", "7"]);
        assert_eq!(group.doors(), [folder.join("cgroup.procs")]);
        for (file, text) in [
            ("memory.events", "low 0\noom 3\noom_kill 2\n"),
            ("pids.events", "max 5\n"),
            ("cpu.stat", "usage_usec 1234\nuser_usec 1\n"),
        ] {
            fs::write(folder.join(file), text).expect("written");
        }
        assert_eq!(group.counts(), Counts { oom_kills: 2, forks_refused: 5, cpu_us: Some(1_234) });
    }
}
