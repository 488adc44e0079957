//! Compares what an engine has mounted with what was checked. An engine resolves the path of a mount by itself, some time after the
//! check, and a session could exchange a folder for a link in between; and it mounts what is mounted below a place as it is.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxAttributes, StatxFlags, open, statx};
use wire::Rules;

use super::ContainerFiles;

/// The places that a container is to have, each opened at its checked path.
#[derive(Debug)]
pub(super) struct MountSources {
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    file: OwnedFd,
    can_change: bool,
}

/// A line of `/proc/PID/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Debug)]
struct Mount<'a> {
    id: u64,
    parent: u64,
    /// As the kernel writes it, with blanks escaped.
    path: &'a str,
    is_read_only: bool,
}

impl MountSources {
    /// Opens them before the engine runs. The paths have been checked with their links followed, so none leads elsewhere now.
    pub(super) fn open(rules: &Rules) -> Result<Self, String> {
        let readable = rules.readable.iter().map(|path| Source::open(path, false));
        let writable = rules.writable.iter().map(|path| Source::open(path, true));
        Ok(Self { sources: readable.chain(writable).collect::<Result<_, _>>()? })
    }

    /// Refuses a container in which another file is at one of these paths, or in which one that is only readable has a mount below
    /// it that can be changed. Its mounts do not change later: nothing in it may mount.
    pub(super) fn check(&self, pid: u32) -> Result<(), String> {
        let files = ContainerFiles::of_process(pid);
        let mounted = |source| Source::mounted(source, &files).map(|statx| (statx.stx_mnt_id, source));
        let given: HashMap<u64, &Source> = self.sources.iter().map(mounted).collect::<Result<_, _>>()?;
        let info = format!("/proc/{pid}/mountinfo");
        let info = std::fs::read_to_string(&info).map_err(|e| format!("{info}: {e}"))?;
        let mounts: HashMap<u64, Mount<'_>> = info.lines().filter_map(Mount::parse).map(|it| (it.id, it)).collect();
        for mount in mounts.values().filter(|mount| !mount.is_read_only) {
            let with_those_above = std::iter::successors(Some(mount), |below| {
                mounts.get(&below.parent).filter(|above| above.id != below.id)
            });
            let nearest = with_those_above.filter_map(|mount| given.get(&mount.id)).next();
            if let Some(source) = nearest.filter(|source| !source.can_change) {
                let (below, path) = (mount.path, source.path.display());
                return Err(format!(
                    "{path} must be read-only, but the mount at {below} inside it can be changed, and an engine \
                     does not make inner mounts read-only; name other folders"
                ));
            }
        }
        Ok(())
    }
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split(' ');
        let (id, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (path, options) = (fields.nth(2)?, fields.next()?);
        Some(Self { id, parent, path, is_read_only: options.split(',').any(|option| option == "ro") })
    }
}

impl Source {
    fn open(path: &Path, can_change: bool) -> Result<Self, String> {
        let failed = |e: &dyn std::fmt::Display| format!("{} cannot be mounted: {e}", path.display());
        // The descriptor also keeps its inode's number from being used again.
        let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|e| failed(&e))?;
        let now = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|e| failed(&e))?;
        match now == path {
            true => Ok(Self { path: path.to_owned(), file, can_change }),
            false => Err(exchanged(path)),
        }
    }

    /// The mount of this source in a container.
    fn mounted(&self, files: &ContainerFiles) -> Result<Statx, String> {
        let mounted = files.open(&self.path).ok_or_else(|| exchanged(&self.path))?;
        let (there, here) = (which(&mounted), which(&self.file));
        let (there, here) = there.and_then(|there| Ok((there, here?))).map_err(|e| format!("statx: {e}"))?;
        let place = |it: &Statx| (it.stx_dev_major, it.stx_dev_minor, it.stx_ino);
        // A link below another mount could have led this one elsewhere in the container, while its path shows the checked file.
        let is_mount = there.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
        match is_mount && place(&there) == place(&here) {
            true => Ok(there),
            false => Err(exchanged(&self.path)),
        }
    }
}

fn which(file: &OwnedFd) -> rustix::io::Result<Statx> {
    statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)
}

fn exchanged(path: &Path) -> String {
    format!("{} was replaced during the start, or a folder above it was; try again", path.display())
}
