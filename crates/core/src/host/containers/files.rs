//! The files of a container, looked at from outside: links in them lead to places inside, whatever is there on the machine.

use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use super::super::port::{FileFacts, Programs};

/// The file system that a process in the container has.
#[derive(Debug, Clone)]
pub(crate) struct ContainerFiles {
    root: PathBuf,
}

impl ContainerFiles {
    pub(crate) fn of_process(pid: u32) -> Self {
        Self { root: PathBuf::from(format!("/proc/{pid}/root")) }
    }

    pub(super) fn open(&self, path: &Path) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let root = rustix::fs::open(&self.root, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
        openat2(root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT).ok()
    }

    /// The facts of what is there, behind every link.
    pub(crate) fn facts(&self, path: &Path) -> Option<FileFacts> {
        std::fs::File::from(self.open(path)?).metadata().ok().map(|metadata| FileFacts::from(&metadata))
    }

    /// The type and permissions of what is there, behind every link.
    fn mode(&self, path: &Path) -> Option<u32> {
        rustix::fs::fstat(self.open(path)?).ok().map(|stat| stat.st_mode)
    }

    pub(crate) fn is_directory(&self, path: &Path) -> bool {
        self.mode(path).is_some_and(|mode| rustix::fs::FileType::from_raw_mode(mode).is_dir())
    }

    fn is_executable(&self, path: &Path) -> bool {
        self.mode(path).is_some_and(|mode| rustix::fs::FileType::from_raw_mode(mode).is_file() && mode & 0o111 != 0)
    }
}

impl Programs for ContainerFiles {
    fn resolve_program(&self, name: &str, path: Option<&[u8]>) -> Option<PathBuf> {
        if name.is_empty() {
            return None;
        }
        if name.contains('/') {
            let program = PathBuf::from(name);
            return (program.is_absolute() && self.is_executable(&program)).then_some(program);
        }
        let folders = path.unwrap_or(b"/usr/local/bin:/usr/bin:/bin").split(|b| *b == b':').filter(|it| !it.is_empty());
        let programs = folders.map(|folder| Path::new(OsStr::from_bytes(folder)).join(name));
        programs.into_iter().find(|program| program.is_absolute() && self.is_executable(program))
    }

    fn real_path(&self, path: &Path) -> Option<PathBuf> {
        let file = self.open(path)?;
        // The kernel gives the path in the file's own mount namespace.
        std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-16
    fn a_link_of_an_image_leads_to_no_program_of_the_machine() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("bin")).expect("made");
        std::fs::write(at("bin/tool"), "").expect("written");
        std::fs::set_permissions(at("bin/tool"), std::fs::Permissions::from_mode(0o755)).expect("ours");
        symlink("/bin/tool", at("bin/here")).expect("made");
        symlink("/bin/sh", at("bin/sh")).expect("made");
        symlink("../../../../../../bin/sh", at("bin/up")).expect("made");
        let files = ContainerFiles { root: dir.path().to_owned() };
        let found = |name: &str| files.resolve_program(name, Some(b"/usr/bin:/bin"));
        assert_eq!(["here", "sh", "up"].map(found), [Some("/bin/here".into()), None, None]);
        assert_eq!(files.resolve_program("/bin/tool", None), Some("/bin/tool".into()));
        let real = files.real_path(Path::new("/bin/here"));
        assert_eq!(real, Some(at("bin/tool").canonicalize().expect("there")), "a mount of its own would be the root");
        let facts = |path: &str| files.facts(Path::new(path));
        assert!(facts("/bin/here").is_some() && facts("/bin/here") == facts("/bin/tool") && facts("/bin/sh").is_none());
        assert!(files.is_directory(Path::new("/bin")) && !files.is_directory(Path::new("/usr")));
    }
}
