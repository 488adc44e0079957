//! Confines a process before it becomes the shell: Landlock for files, a seccomp filter for system calls, no capabilities.
//!
//! A right of Landlock holds for a whole hierarchy, and none can be taken away beneath it. So a directory that has something
//! hidden below gets no right itself: each of its entries gets them. Entries made later have none.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

mod filter;
mod place;

pub use place::{outside_proc, place, resolved, seen_by};

/// The first Landlock that keeps a process from signalling others outside (Linux 6.12).
const LANDLOCK: ABI = ABI::V6;
/// The number of that version.
const LANDLOCK_ABI: i64 = 6;

/// The folder of shared memory; where it can be changed, the other ways to share memory are open, too.
const SHARED_MEMORY: &str = "/dev/shm";

/// The files, devices and sockets that a confined process may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Files and hierarchies that can be read and executed. Nobody follows a link in this list or in the next one: somebody may
    /// have made it after these rules.
    pub readable: Vec<PathBuf>,
    /// Those that can also be changed.
    pub writable: Vec<PathBuf>,
    /// Those among them that are only read all the same, as far as they exist, where the process has mounts of its own.
    pub kept: Vec<PathBuf>,
    /// Devices that can be opened for reading and writing.
    pub devices: Vec<PathBuf>,
    /// Paths inside of the hierarchies above that cannot be opened, whether they exist or not. One that is itself in a
    /// list above has the rights of that list.
    pub hidden: Vec<PathBuf>,
    /// Whether sockets of the Internet protocols can be made. Those of other families never can.
    pub network: bool,
    /// The namespaces that the process is in.
    pub namespaces: Namespaces,
}

/// The namespaces of a confined process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Namespaces {
    /// Those of its machine, but mounts of its own where the machine allows them.
    #[default]
    Shared,
    /// Its own ([`crate::sandbox`]).
    Own,
    /// Those of a container. Its files are those of an image, so no rule names them: the lists of paths say what a
    /// container engine mounts.
    Container,
}

/// Why this machine cannot confine a process; `None` if it can.
pub fn hindrance() -> Option<String> {
    // SAFETY: with this flag the call reads no memory (landlock_create_ruleset(2)).
    let abi = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, 0, 0, 1) };
    if abi < LANDLOCK_ABI {
        let here = if abi < 1 { "has none".to_owned() } else { format!("has version {abi}") };
        return Some(format!("needs Landlock of version {LANDLOCK_ABI} (Linux 6.12); this kernel {here}"));
    }
    // SAFETY: a null program is refused (EFAULT) by a kernel that has filters, and nothing changes.
    let refused = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, 0, 0, 0) };
    let errno = io::Error::last_os_error().raw_os_error();
    (refused != -1 || errno != Some(libc::EFAULT)).then(|| "needs seccomp filters (CONFIG_SECCOMP_FILTER)".to_owned())
}

/// Rules in the form that the kernel takes, prepared before the fork.
#[derive(Debug)]
pub struct Confinement {
    ruleset: OwnedFd,
    filter: Vec<libc::sock_filter>,
}

impl Confinement {
    /// Opens every path. A path that does not exist is left out. The places that a sandbox with this root has for itself can be
    /// used, too.
    pub fn prepare(rules: &Rules, sandbox: Option<&Path>) -> io::Result<Self> {
        let mut granting = Granting { ruleset: ruleset()?, hidden: resolved_all(&rules.hidden) };
        let (read, write) = (reading(), writing());
        let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        for path in &rules.devices {
            granting.grant_root(path, device)?;
        }
        for (paths, rights) in [(&rules.readable, read), (&rules.writable, write)] {
            for path in paths {
                granting.grant(path, rights)?;
            }
        }
        let own = [("proc", read), ("dev", read), ("dev/pts", device | AccessFs::ReadDir), ("dev/shm", write)];
        for (root, (path, rights)) in sandbox.into_iter().flat_map(|root| own.map(|own| (root, own))) {
            let file = rustix::fs::open(root.join(path), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            granting.add_file(file, rights)?;
        }
        // Of a sandbox's own ipc namespace, or named by the profile.
        let shared_memory = rules.namespaces != Namespaces::Shared
            || rules.writable.iter().any(|path| path == Path::new(SHARED_MEMORY));
        granting.done(rules.network, shared_memory)
    }

    /// The same for a process in the container with this root: all that is mounted there can be used, and of the machine the
    /// shell's script can be read.
    pub fn prepare_in_container(rules: &Rules, root: &Path, script: &Path) -> io::Result<Self> {
        let mut granting = Granting { ruleset: ruleset()?, hidden: Vec::new() };
        let root = rustix::fs::open(root, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        granting.add_file(root, writing())?;
        if script.is_absolute() {
            granting.grant_root(script, reading())?;
        }
        granting.done(rules.network, true)
    }

    pub(crate) fn plan(&self) -> Plan<'_> {
        Plan { ruleset: self.ruleset.as_raw_fd(), filter: &self.filter }
    }
}

fn ruleset() -> io::Result<RulesetCreated> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(LANDLOCK))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(LANDLOCK)))
        .and_then(Ruleset::create)
        .map_err(io::Error::other)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::Execute | AccessFs::ReadFile | AccessFs::ReadDir
}

fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(LANDLOCK) & !(AccessFs::MakeChar | AccessFs::MakeBlock)
}

/// The paths without symbolic links, as far as they exist, with one look at each folder that several of them are in.
pub(crate) fn resolved_all(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<(&Path, PathBuf)> = Vec::new();
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            all.push(resolved(path));
            continue;
        };
        if !folders.iter().any(|(known, _)| *known == folder) {
            folders.push((folder, resolved(folder)));
        }
        let found = folders.iter().find(|(known, _)| *known == folder).map(|(_, found)| found.join(name));
        all.push(found.filter(|found| !found.is_symlink()).unwrap_or_else(|| resolved(path)));
    }
    all
}

struct Granting {
    ruleset: RulesetCreated,
    hidden: Vec<PathBuf>,
}

impl Granting {
    fn done(self, network: bool, shared_memory: bool) -> io::Result<Confinement> {
        let ruleset: Option<OwnedFd> = self.ruleset.into();
        let ruleset = ruleset.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(Confinement { ruleset, filter: filter::program(network, shared_memory) })
    }

    fn grant_root(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
        match path.canonicalize() {
            Ok(path) => self.grant(&path, rights),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        }
    }

    /// Gives these rights to everything at this path that is not hidden.
    fn grant(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
        if !self.hidden.iter().any(|hidden| hidden != path && hidden.starts_with(path)) {
            return self.add(path, rights);
        }
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            // Nothing in it can be named then, or it is gone.
            Err(e) if matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => return Ok(()),
            Err(e) => return Err(e),
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            // The target of a link has the rights of its own place.
            if !self.hidden.contains(&path) && !entry.file_type()?.is_symlink() {
                self.grant(&path, rights)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, rights: BitFlags<AccessFs>) -> io::Result<()> {
        // Every caller has resolved the path; a link in it has come since then.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(file) => self.add_file(file, rights),
            Err(_) => Ok(()),
        }
    }

    fn add_file(&mut self, file: OwnedFd, rights: BitFlags<AccessFs>) -> io::Result<()> {
        let is_directory = rustix::fs::fstat(&file)
            .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory);
        let rights = if is_directory { rights } else { rights & AccessFs::from_file(LANDLOCK) };
        self.ruleset.as_mut().add_rule(PathBeneath::new(file, rights)).map(drop).map_err(io::Error::other)
    }
}

/// Plain pointers and numbers for the forked child.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    ruleset: RawFd,
    filter: &'a [libc::sock_filter],
}

impl Plan<'_> {
    /// Confines this process and all its later children; false if a call failed, with its errno.
    ///
    /// # Safety
    /// Only async-signal-safe calls are made, so a freshly forked child may call it.
    pub(crate) unsafe fn apply(&self) -> bool {
        // SAFETY: each call works on numbers, on locals, or on the filter's valid memory.
        unsafe {
            for capability in 0..=63 {
                // Beyond the last one it is EINVAL; without CAP_SETPCAP it is EPERM, and no program can use the set then.
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
            // linux/capability.h: version 3, this process; two times effective, permitted and inheritable.
            let (header, none) = ([0x2008_0522_u32, 0], [0u32; 6]);
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1
                || libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) == -1
                || libc::syscall(libc::SYS_landlock_restrict_self, self.ruleset, 0) == -1
            {
                return false;
            }
            let program =
                libc::sock_fprog { len: self.filter.len() as libc::c_ushort, filter: self.filter.as_ptr().cast_mut() };
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0) != -1
        }
    }
}
