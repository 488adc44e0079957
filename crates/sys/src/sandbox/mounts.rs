//! Makes the mounts of a sandbox, in its first process. Everything is opened without following links, because somebody may
//! have made them since the layout was prepared.

use std::ffi::CStr;
use std::os::fd::RawFd;

use super::layout::{Entry, Kind, Layout};
use crate::spawn::failure::{Step, last_errno};

/// An empty file, which is shown in the place of hidden ones.
const EMPTY_FILE: &CStr = c"/proc/file";

/// `linux/mount.h`.
const OPEN_TREE_CLONE: libc::c_int = 1;
const MOVE_MOUNT_EMPTY_PATHS: libc::c_uint = 0x4 | 0x40;
const AT_RECURSIVE: libc::c_int = 0x8000;
const ATTR_RDONLY: u64 = 1;
const ATTR_NOSUID: u64 = 2;
const ATTR_NODEV: u64 = 4;
/// `linux/openat2.h`.
const RESOLVE_NO_SYMLINKS: u64 = 4;

/// `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// `struct open_how`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// Makes all mounts, or gives the step that failed, with its errno.
///
/// # Safety
/// In the first process of new user, mount and pid namespaces; only async-signal-safe calls are made.
pub(super) unsafe fn make(layout: &mut Layout) -> Result<(), Step> {
    // SAFETY: each call works on numbers, on locals, or on the layout's valid strings.
    unsafe {
        let mount = |source: &CStr, target: &CStr, flags, options: &CStr| {
            let kind = source.as_ptr();
            done(libc::mount(kind, target.as_ptr(), kind, flags, options.as_ptr().cast()), Step::Mounts)
        };
        let hardened = libc::MS_NOSUID | libc::MS_NODEV;
        // Nothing that is mounted outside later comes in.
        mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE, c"")?;
        for entry in &mut layout.entries {
            copy(entry)?;
        }
        if layout.is_shared {
            attributes(libc::AT_FDCWD, c"/", AT_RECURSIVE, ATTR_RDONLY | ATTR_NOSUID)?;
            for entry in &layout.entries {
                show(entry)?;
            }
            return done(libc::chdir(c"/".as_ptr()), Step::Mounts);
        }
        attributes(libc::AT_FDCWD, c"/", AT_RECURSIVE, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV)?;
        mount(c"tmpfs", c"/proc", hardened, c"mode=0755,size=1m")?;
        done(libc::mkdir(c"/proc/dev".as_ptr(), 0o755), Step::Mounts)?;
        let file = libc::open(EMPTY_FILE.as_ptr(), libc::O_CREAT | libc::O_CLOEXEC, 0);
        done(file, Step::Mounts)?;
        libc::close(file);
        for entry in &layout.entries {
            show(entry)?;
            if entry.kind == Kind::Devices {
                devices()?;
                // So many terminals and so much shared memory are a session's own; both would else be taken from all of the machine.
                mount(
                    c"devpts",
                    c"/dev/pts",
                    libc::MS_NOSUID | libc::MS_NOEXEC,
                    c"newinstance,ptmxmode=0666,mode=0620,max=256",
                )?;
                mount(c"tmpfs", c"/dev/shm", hardened, c"mode=1777,size=256m,nr_inodes=16384")?;
            }
        }
        // Read-only, because as root its settings could be changed without any capability.
        let flags = hardened | libc::MS_NOEXEC | libc::MS_RDONLY;
        mount(c"proc", c"/proc", flags, c"").map_err(|_| Step::Proc)?;
        // The empty folders.
        mount(c"tmpfs", c"/dev", hardened | libc::MS_REMOUNT | libc::MS_RDONLY, c"")?;
        done(libc::chdir(c"/".as_ptr()), Step::Mounts)
    }
}

fn done(result: libc::c_int, step: Step) -> Result<(), Step> {
    if result == -1 { Err(step) } else { Ok(()) }
}

/// Whether a path is not there, or nobody inside can get there either.
fn is_absent() -> bool {
    matches!(last_errno(), libc::ENOENT | libc::ENOTDIR | libc::ELOOP | libc::EACCES)
}

/// Takes a copy of what an entry shows, before anything is mounted over it.
///
/// # Safety
/// As [`make`].
unsafe fn copy(entry: &mut Entry) -> Result<(), Step> {
    if matches!(entry.kind, Kind::Hidden | Kind::Devices) {
        return Ok(());
    }
    // SAFETY: as in [`make`].
    unsafe {
        let file = open(&entry.source);
        if file == -1 {
            return if is_absent() { Ok(()) } else { Err(Step::Mounts) };
        }
        entry.is_directory = is_directory(file);
        entry.tree = tree(file, c"")?;
        libc::close(file);
        let more = match entry.kind {
            Kind::Device => 0,
            Kind::Readable => ATTR_NODEV | ATTR_RDONLY,
            _ => ATTR_NODEV,
        };
        attributes(entry.tree, c"", libc::AT_EMPTY_PATH | AT_RECURSIVE, ATTR_NOSUID | more)
    }
}

/// Mounts an entry at its place.
///
/// # Safety
/// As [`make`].
unsafe fn show(entry: &Entry) -> Result<(), Step> {
    let is_ours = matches!(entry.kind, Kind::Hidden | Kind::Devices);
    if entry.tree == -1 && !is_ours {
        return Ok(());
    }
    // SAFETY: as in [`make`].
    unsafe {
        let (last, above) = match entry.made.split_last() {
            Some((last, above)) => (Some(last), above),
            None => (None, &[][..]),
        };
        for folder in above {
            libc::mkdir(folder.as_ptr(), 0o755);
        }
        match last {
            Some(folder) if entry.is_directory => drop(libc::mkdir(folder.as_ptr(), 0o755)),
            Some(file) => drop(libc::close(libc::open(
                file.as_ptr(),
                libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC,
                0o644,
            ))),
            None => {}
        }
        let target = open(&entry.target);
        if target == -1 {
            return if is_absent() { Ok(()) } else { Err(Step::Mounts) };
        }
        let tree = match entry.kind {
            Kind::Hidden if !is_directory(target) => tree(libc::AT_FDCWD, EMPTY_FILE)?,
            Kind::Hidden => {
                libc::mkdir(entry.source.as_ptr(), 0o755);
                tree(libc::AT_FDCWD, &entry.source)?
            }
            Kind::Devices => tree(libc::AT_FDCWD, &entry.source)?,
            _ => entry.tree,
        };
        let (none, flags) = (c"".as_ptr(), MOVE_MOUNT_EMPTY_PATHS);
        let moved = libc::syscall(libc::SYS_move_mount, tree, none, target, none, flags);
        libc::close(tree);
        libc::close(target);
        if moved == -1 { Err(Step::Mounts) } else { Ok(()) }
    }
}

/// Makes what is in the folder of devices besides devices.
///
/// # Safety
/// As [`make`].
unsafe fn devices() -> Result<(), Step> {
    // SAFETY: as in [`make`].
    unsafe {
        for folder in [c"/dev/pts", c"/dev/shm"] {
            done(libc::mkdir(folder.as_ptr(), 0o755), Step::Mounts)?;
        }
        for (target, link) in [
            (c"pts/ptmx", c"/dev/ptmx"),
            (c"/proc/self/fd", c"/dev/fd"),
            (c"/proc/self/fd/0", c"/dev/stdin"),
            (c"/proc/self/fd/1", c"/dev/stdout"),
            (c"/proc/self/fd/2", c"/dev/stderr"),
        ] {
            done(libc::symlink(target.as_ptr(), link.as_ptr()), Step::Mounts)?;
        }
    }
    Ok(())
}

/// A place, -1 if it cannot be opened.
///
/// # Safety
/// As [`make`].
unsafe fn open(path: &CStr) -> RawFd {
    let how = OpenHow { flags: (libc::O_PATH | libc::O_CLOEXEC) as u64, mode: 0, resolve: RESOLVE_NO_SYMLINKS };
    // SAFETY: the kernel reads the string and a local of the given size.
    let fd = unsafe {
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &raw const how, size_of::<OpenHow>())
    };
    RawFd::try_from(fd).unwrap_or(-1)
}

/// A detached copy of the mounts at a place.
///
/// # Safety
/// As [`make`].
unsafe fn tree(at: RawFd, path: &CStr) -> Result<RawFd, Step> {
    let flags = OPEN_TREE_CLONE | AT_RECURSIVE | libc::AT_EMPTY_PATH | libc::O_CLOEXEC;
    // SAFETY: the kernel reads a valid string.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, at, path.as_ptr(), flags) };
    RawFd::try_from(fd).ok().filter(|fd| *fd != -1).ok_or(Step::Mounts)
}

/// Sets attributes of the mounts at a place.
///
/// # Safety
/// As [`make`].
unsafe fn attributes(at: RawFd, path: &CStr, flags: libc::c_int, set: u64) -> Result<(), Step> {
    let all = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: the kernel reads a valid string and a local of the given size.
    let set = unsafe {
        libc::syscall(libc::SYS_mount_setattr, at, path.as_ptr(), flags, &raw const all, size_of::<MountAttributes>())
    };
    if set == -1 { Err(Step::Mounts) } else { Ok(()) }
}

/// # Safety
/// As [`make`].
unsafe fn is_directory(fd: RawFd) -> bool {
    // SAFETY: the kernel writes to a local, which zeros make valid.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        libc::fstat(fd, &mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFDIR
    }
}
