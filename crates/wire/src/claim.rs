//! The process that holds a session's folder: written by the holder before it does anything else, and read by a server before it
//! ends anything.
//!
//! A process id alone identifies no process: the kernel uses it again, and it means another process after a boot or in another
//! container. A folder that was copied says the same as the original, so the folder's own device and inode stand beside it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};

use crate::CLAIM_FILE;

/// A server writes this in the holder's stead, so that a holder that comes too late finds the folder taken and ends.
const GIVEN_UP: &str = "given up\n";

/// The longest claim: it has six short lines, and later versions may add some.
const CLAIM_BYTES_MAX: u64 = 4 << 10;

/// A process, and the folder that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The holder.
    pub pid: u32,
    /// When it started, in clock ticks since boot: with the pid this names a process for ever.
    pub start_ticks: u64,
    /// The boot in which it started (`/proc/sys/kernel/random/boot_id`).
    pub boot: String,
    /// The namespace in which the pid means this process (`/proc/self/ns/pid`).
    pub pid_namespace: String,
    /// The folder's device.
    pub device: u64,
    /// The folder's inode.
    pub inode: u64,
}

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// There is no file: no holder has begun, or the file was removed.
    Nobody,
    /// A server has given the session up before its holder began.
    GivenUp,
    /// This process.
    By(Claim),
}

impl Claim {
    /// This process's own claim to a folder.
    pub fn of_this_process(folder: &Path) -> io::Result<Self> {
        let pid = std::process::id();
        let stat = sys::process::stat(pid).ok_or_else(|| io::Error::other("/proc/self/stat cannot be read"))?;
        let metadata = std::fs::metadata(folder)?;
        Ok(Self {
            pid,
            start_ticks: stat.start_ticks,
            boot: boot()?,
            pid_namespace: pid_namespace()?,
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Claims the folder for this process. It is an error when a server has given the session up meanwhile.
    pub fn take(folder: &Path) -> io::Result<()> {
        publish(folder, &Self::of_this_process(folder)?.encode())
    }

    /// Sees to it that no holder begins in this folder any more; an error of the kind `AlreadyExists` when one has.
    pub fn give_up(folder: &Path) -> io::Result<()> {
        publish(folder, GIVEN_UP)
    }

    /// Reads the file back.
    pub fn load(folder: &Path) -> io::Result<Holding> {
        match journal::read_whole(&folder.join(CLAIM_FILE), CLAIM_BYTES_MAX) {
            Ok(text) if text == GIVEN_UP.as_bytes() => Ok(Holding::GivenUp),
            Ok(text) => str::from_utf8(&text).ok().and_then(Self::decode).map(Holding::By).ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, format!("the session's file `{CLAIM_FILE}` is damaged"))
            }),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Holding::Nobody),
            Err(e) => Err(e),
        }
    }

    /// Whether the folder is the one that was claimed, and no copy of it.
    pub fn is_of(&self, folder: &Path) -> io::Result<bool> {
        let metadata = std::fs::metadata(folder)?;
        Ok((metadata.dev(), metadata.ino()) == (self.device, self.inode))
    }

    /// Whether the pid means here what it meant there: in this boot, and in this namespace of pids.
    pub fn is_known_here(&self) -> bool {
        boot().is_ok_and(|boot| boot == self.boot) && pid_namespace().is_ok_and(|ns| ns == self.pid_namespace)
    }

    fn encode(&self) -> String {
        let Self { pid, start_ticks, boot, pid_namespace, device, inode } = self;
        format!(
            "pid {pid}\nstart {start_ticks}\nboot {boot}\nnamespace {pid_namespace}\ndevice {device}\ninode {inode}\n"
        )
    }

    /// Lines of a name and a value, in any order; names that are not known are passed over.
    fn decode(text: &str) -> Option<Self> {
        let value = |name| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Some(Self {
            pid: value("pid")?.parse().ok()?,
            start_ticks: value("start")?.parse().ok()?,
            boot: value("boot")?.to_owned(),
            pid_namespace: value("namespace")?.to_owned(),
            device: value("device")?.parse().ok()?,
            inode: value("inode")?.parse().ok()?,
        })
    }
}

/// Makes the file whole and once: link(2) refuses a name that is there, and no reader sees half a file.
fn publish(folder: &Path, text: &str) -> io::Result<()> {
    match unnamed(folder) {
        Ok(mut file) => {
            file.write_all(text.as_bytes())?;
            let own = format!("/proc/self/fd/{}", file.as_raw_fd());
            Ok(linkat(CWD, own, CWD, folder.join(CLAIM_FILE), AtFlags::SYMLINK_FOLLOW)?)
        }
        Err(_) => publish_draft(folder, text),
    }
}

/// A file without a name (open(2), O_TMPFILE), which not every file system has.
fn unnamed(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?))
}

fn publish_draft(folder: &Path, text: &str) -> io::Result<()> {
    let draft = folder.join(format!(".{CLAIM_FILE}-{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    let linked = file.write_all(text.as_bytes()).and_then(|()| std::fs::hard_link(&draft, folder.join(CLAIM_FILE)));
    let _ = std::fs::remove_file(&draft);
    linked
}

fn boot() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim_end().to_owned())
}

fn pid_namespace() -> io::Result<String> {
    Ok(std::fs::read_link("/proc/self/ns/pid")?.to_string_lossy().into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_back_names_its_process_and_is_taken_once() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Claim::load(dir.path()).unwrap(), Holding::Nobody);
        Claim::take(dir.path()).unwrap();
        let Holding::By(claim) = Claim::load(dir.path()).unwrap() else { panic!("it was taken") };
        assert_eq!(claim, Claim::of_this_process(dir.path()).unwrap());
        assert_eq!((claim.pid, claim.is_known_here()), (std::process::id(), true));
        assert!(claim.start_ticks > 0);
        for late in [Claim::take(dir.path()), Claim::give_up(dir.path())] {
            assert_eq!(late.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(files, [CLAIM_FILE]);
    }

    #[test]
    fn a_file_system_without_unnamed_files_gets_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        publish_draft(dir.path(), GIVEN_UP).unwrap();
        assert_eq!(Claim::load(dir.path()).unwrap(), Holding::GivenUp);
        assert_eq!(publish_draft(dir.path(), GIVEN_UP).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(files, [CLAIM_FILE]);
    }

    #[test]
    fn a_copy_of_a_folder_is_not_the_one_that_was_claimed_and_a_moved_one_is() {
        let dir = tempfile::tempdir().unwrap();
        let [one, copy, moved] = ["one", "copy", "moved"].map(|name| dir.path().join(name));
        std::fs::create_dir(&one).unwrap();
        Claim::take(&one).unwrap();
        std::fs::create_dir(&copy).unwrap();
        std::fs::copy(one.join(CLAIM_FILE), copy.join(CLAIM_FILE)).unwrap();
        std::fs::rename(&one, &moved).unwrap();
        for (folder, is_own) in [(&copy, false), (&moved, true)] {
            let Holding::By(claim) = Claim::load(folder).unwrap() else { panic!("it was taken") };
            assert_eq!(claim.is_of(folder).unwrap(), is_own, "{}", folder.display());
        }
    }

    #[test]
    fn a_late_holder_of_an_abandoned_session_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        Claim::give_up(dir.path()).unwrap();
        assert_eq!(Claim::load(dir.path()).unwrap(), Holding::GivenUp);
        assert_eq!(Claim::take(dir.path()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn lines_of_later_versions_are_skipped_and_a_cut_file_is_damaged() {
        let text = "pid 7\nstart 8\ncolour red\nboot b\nnamespace pid:[1]\ndevice 9\ninode 10\n";
        let claim =
            Claim { pid: 7, start_ticks: 8, boot: "b".into(), pid_namespace: "pid:[1]".into(), device: 9, inode: 10 };
        assert_eq!(Claim::decode(text), Some(claim.clone()));
        assert_eq!(Claim::decode(&claim.encode()), Some(claim));
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(CLAIM_FILE), text.split_at(40).0).unwrap();
        assert_eq!(Claim::load(dir.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
