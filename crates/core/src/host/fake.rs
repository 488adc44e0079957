//! A machine of tests: it has what a test gives it, and nothing of the real one.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::port::{Bounds, ControlGroup, Controller, FileFacts, Host, Identity, Process, Programs, User, Users};
use crate::action::{ConfinementTier, ProcessState};

/// The machine.
#[derive(Debug, Default)]
pub(crate) struct FakeHost(Mutex<Machine>);

#[derive(Debug, Default)]
struct Machine {
    processes: Vec<Process>,
    ports: HashMap<u32, HashSet<u16>>,
    files: HashMap<PathBuf, FileFacts>,
    since_boot_us: u64,
}

/// A sleeping process that was started at boot and has used nothing.
pub(crate) fn process(pid: u32, parent: u32) -> Process {
    Process {
        identity: (pid, 1),
        parent,
        group: pid,
        session: pid,
        name: String::new(),
        state: ProcessState::Sleeping,
        is_job_stopped: false,
        foreground_group: None,
        cpu_us: 0,
        reaped_cpu_us: 0,
        memory_bytes: 0,
        started_us: 0,
    }
}

impl FakeHost {
    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Below this process, these ports are open.
    pub(crate) fn listens(&self, root: u32, ports: &[u16]) {
        self.machine().ports.insert(root, ports.iter().copied().collect());
    }

    pub(crate) fn has_file(&self, path: &str, file: FileFacts) {
        self.machine().files.insert(path.into(), file);
    }

    /// These processes run, parents before children, at this time since boot.
    pub(crate) fn runs(&self, processes: &[Process], since_boot_us: u64) {
        let mut machine = self.machine();
        (machine.processes, machine.since_boot_us) = (processes.to_vec(), since_boot_us);
    }
}

impl Programs for FakeHost {
    fn resolve_program(&self, _: &str, _: Option<&[u8]>) -> Option<PathBuf> {
        None
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        self.file(path).map(|_| path.to_owned())
    }
}

impl Host for FakeHost {
    fn file(&self, path: &Path) -> Option<FileFacts> {
        self.machine().files.get(path).copied()
    }

    fn file_inside(&self, _: u32, path: &Path) -> Option<FileFacts> {
        self.file(path)
    }

    fn resolved_path(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn path_of(&self, _: u32, path: PathBuf) -> PathBuf {
        path
    }

    fn path_seen_by(&self, _: u32, path: &Path) -> PathBuf {
        path.to_owned()
    }

    fn path_outside_proc(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn place(&self, path: &Path) -> Result<PathBuf, PathBuf> {
        Ok(path.to_owned())
    }

    fn program_folders(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn home(&self) -> Option<PathBuf> {
        None
    }

    fn default_directory(&self) -> PathBuf {
        "/".into()
    }

    fn confinement_hindrance(&self, _: ConfinementTier) -> Option<String> {
        None
    }

    fn user(&self, _: &str) -> io::Result<Option<User>> {
        Ok(None)
    }

    fn login_shell(&self) -> Option<String> {
        None
    }

    fn process(&self, pid: u32) -> Option<Process> {
        self.machine().processes.iter().find(|it| it.pid() == pid).cloned()
    }

    fn process_trees(&self, roots: &[u32]) -> Vec<Vec<Process>> {
        let all = self.machine().processes.clone();
        let tree = |root: &u32| {
            let mut pids = HashSet::from([*root]);
            let is_below = |it: &&Process| it.pid() == *root || pids.contains(&it.parent) && pids.insert(it.pid());
            all.iter().filter(is_below).cloned().collect()
        };
        roots.iter().map(tree).collect()
    }

    fn command_line(&self, pid: u32) -> String {
        self.process(pid).map(|it| it.name).unwrap_or_default()
    }

    fn working_directory(&self, _: u32) -> Option<PathBuf> {
        None
    }

    fn is_directory_gone(&self, _: u32) -> bool {
        false
    }

    fn innermost_pid(&self, pid: u32) -> Option<u32> {
        Some(pid)
    }

    fn executable(&self, _: u32) -> Option<PathBuf> {
        None
    }

    fn users(&self, pid: u32) -> Option<Users> {
        self.process(pid).map(|_| Users { real: 0, effective: 0, is_set_user_id: false })
    }

    fn user_name(&self, _: u32) -> Option<String> {
        None
    }

    fn tcp_user(&self, _: SocketAddr, _: SocketAddr) -> Option<u32> {
        None
    }

    fn ignores(&self, _: u32, _: i32) -> bool {
        false
    }

    fn image(&self, _: u32) -> Option<u64> {
        None
    }

    fn listening_ports(&self, root: u32) -> HashSet<u16> {
        self.machine().ports.get(&root).cloned().unwrap_or_default()
    }

    fn ports_of_job(&self, _: u32, group: u32) -> HashSet<u16> {
        self.listening_ports(group)
    }

    fn since_boot_us(&self) -> u64 {
        self.machine().since_boot_us
    }

    fn signal_exactly(&self, process: Identity, _: i32) -> bool {
        self.machine().processes.iter().any(|it| it.identity == process)
    }

    fn ends_within(&self, process: Identity, _: Duration) -> Pin<Box<dyn Future<Output = bool> + Send>> {
        let has_ended = !self.machine().processes.iter().any(|it| it.identity == process);
        Box::pin(std::future::ready(has_ended))
    }

    fn sweep(&self, _: &str, _: u64) -> Vec<Process> {
        Vec::new()
    }

    fn has_controller(&self, _: Controller) -> bool {
        false
    }

    fn bounds_tasks_of_namespaces(&self) -> bool {
        false
    }

    fn group_entrances(&self, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }

    fn make_group(&self, _: &str, _: Bounds) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn group(&self, _: &[PathBuf]) -> Box<dyn ControlGroup> {
        Box::new(sys::cgroup::Group::behind(&[]))
    }
}
