//! Compares what an engine has mounted with what was checked. An engine resolves the path of a mount by itself, some time after the
//! check, and a session could exchange a folder for a link in between.

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
}

impl MountSources {
    /// Opens them before the engine runs. The paths have been checked with their links followed, so none leads elsewhere now.
    pub(super) fn open(rules: &Rules) -> Result<Self, String> {
        let paths = rules.readable.iter().chain(&rules.writable);
        Ok(Self { sources: paths.map(|path| Source::open(path)).collect::<Result<_, _>>()? })
    }

    /// Refuses a container in which another file is at one of these paths.
    pub(super) fn check(&self, files: &ContainerFiles) -> Result<(), String> {
        self.sources.iter().try_for_each(|source| source.mounted(files).map(drop))
    }
}

impl Source {
    fn open(path: &Path) -> Result<Self, String> {
        let failed = |e: &dyn std::fmt::Display| format!("{} cannot be mounted: {e}", path.display());
        // The descriptor also keeps its inode's number from being used again.
        let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(|e| failed(&e))?;
        let now = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(|e| failed(&e))?;
        match now == path {
            true => Ok(Self { path: path.to_owned(), file }),
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
    format!(
        "{} is not the file that was checked: something has exchanged it, or a folder above it, during the start; try again",
        path.display()
    )
}
