//! Removes a folder that somebody else has filled, however deep it is. The standard library's function calls itself for each
//! level, and a program can make more of them than a stack or the open files suffice for.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, chmod, open, openat, renameat_with, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;

/// Opens a directory, and no link to one.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A program that still makes files must not keep this going for ever.
const PASSES_MAX: usize = 10_000_000;

/// Removes the directory at this path with everything in it; a link there is not followed.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    remove_folder_in(parent.as_fd(), name)
}

/// Removes the directory of this name with everything in it. Several callers may do so at the same time.
pub fn remove_folder_in(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> io::Result<()> {
    let folder = opened(parent, name)?;
    let mut raised = 0_u64;
    for _ in 0..PASSES_MAX {
        let mut is_empty = true;
        for (child, is_directory) in entries(folder.as_fd())? {
            is_empty = false;
            match is_directory {
                true => match flatten(folder.as_fd(), &child, &mut raised) {
                    // Another caller removed it.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    flattened => flattened?,
                },
                false => unlink(folder.as_fd(), &child)?,
            }
        }
        if is_empty {
            match unlinkat(parent, name, AtFlags::REMOVEDIR) {
                // Another caller moved a directory here.
                Err(Errno::NOTEMPTY) => {}
                removed => return Ok(removed?),
            }
        }
    }
    Err(io::ErrorKind::DirectoryNotEmpty.into())
}

/// Removes this directory of `top`; those in it become directories of `top`.
fn flatten(top: BorrowedFd<'_>, name: &CStr, raised: &mut u64) -> io::Result<()> {
    let folder = opened(top, name)?;
    for (child, is_directory) in entries(folder.as_fd())? {
        if !is_directory {
            unlink(folder.as_fd(), &child)?;
        } else if unlinkat(&folder, &child, AtFlags::REMOVEDIR).is_err() {
            // Only a directory that can be written can be moved.
            let _ = open_to_owner(folder.as_fd(), child.as_c_str());
            while let Err(e) = renameat_with(&folder, &child, top, format!(".{raised}.removed"), RenameFlags::NOREPLACE)
            {
                if e != Errno::EXIST {
                    return Err(e.into());
                }
                *raised += 1;
            }
            *raised += 1;
        }
    }
    // One that was filled again is flattened again in the next pass.
    match unlinkat(top, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// This directory, also where its mode refuses its owner.
fn opened(parent: BorrowedFd<'_>, name: impl Arg + Copy) -> io::Result<OwnedFd> {
    let refused = match openat(parent, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) => Errno::ACCESS,
        opened => return Ok(opened?),
    };
    open_to_owner(parent, name).map_err(|_| refused)?;
    Ok(openat(parent, name, DIRECTORY, Mode::empty())?)
}

/// Lets its owner use this directory; never what a link in its place leads to.
fn open_to_owner(parent: BorrowedFd<'_>, name: impl Arg) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = openat(parent, name, flags, Mode::empty())?;
    Ok(chmod(format!("/proc/self/fd/{}", found.as_raw_fd()), Mode::RWXU)?)
}

fn unlink(folder: BorrowedFd<'_>, name: &CStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        // Its mode keeps its owner from changing it.
        Err(Errno::ACCESS) => {
            rustix::fs::fchmod(folder, Mode::RWXU)?;
            Ok(unlinkat(folder, name, AtFlags::empty())?)
        }
        Err(e) => Err(e.into()),
    }
}

/// The names in a directory, and whether each is a directory itself. A list, because entries that are removed during the reading
/// may hide others (readdir(3)).
fn entries(folder: BorrowedFd<'_>) -> io::Result<Vec<(std::ffi::CString, bool)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                .map(|stat| FileType::from_raw_mode(stat.st_mode))?,
            known => known,
        };
        found.push((entry.file_name().to_owned(), kind == FileType::Directory));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: access-13
    fn a_folder_is_removed_however_deep_it_is_and_nothing_that_it_links_to() {
        let place = tempfile::tempdir().expect("a folder");
        let (kept, filled) = (place.path().join("kept"), place.path().join("filled"));
        std::fs::create_dir_all(filled.join("a/b/c")).expect("made");
        std::fs::create_dir_all(filled.join(".0.removed/shut/in")).expect("made");
        std::fs::create_dir(&kept).expect("made");
        std::fs::write(kept.join("file"), "text").expect("written");
        std::fs::write(filled.join("a/b/file"), "text").expect("written");
        std::os::unix::fs::symlink(&kept, filled.join("a/link")).expect("made");
        std::os::unix::fs::symlink(&kept, place.path().join("link")).expect("made");
        rustix::fs::chmod(filled.join(".0.removed/shut"), Mode::empty()).expect("changed");
        let mut deepest = open(&filled, DIRECTORY, Mode::empty()).expect("opened");
        for _ in 0..3_000 {
            rustix::fs::mkdirat(&deepest, "d", Mode::RWXU).expect("made");
            deepest = openat(&deepest, "d", DIRECTORY, Mode::empty()).expect("opened");
        }
        drop(deepest);
        assert!(remove_folder(&place.path().join("link")).is_err());
        // A function that called itself for each level would need more.
        let small = std::thread::Builder::new().stack_size(64 << 10);
        std::thread::scope(|scope| {
            let removing = small.spawn_scoped(scope, || remove_folder(&filled)).expect("started");
            removing.join().expect("no panic").expect("removed");
        });
        assert!(!filled.exists() && kept.join("file").exists());
        assert_eq!(remove_folder(&filled).expect_err("gone").kind(), io::ErrorKind::NotFound);
    }

    #[test]
    // promise: access-13
    fn a_folder_that_two_remove_at_once_is_removed() {
        let place = tempfile::tempdir().expect("a folder");
        let filled = place.path().join("filled");
        for _ in 0..20 {
            for n in 0..20 {
                std::fs::create_dir_all(filled.join(format!("{n}/a/b/c/d/e/f/g"))).expect("made");
            }
            let remove = || match remove_folder(&filled) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => panic!("{e}"),
                Ok(()) | Err(_) => assert!(!filled.exists()),
            };
            std::thread::scope(|scope| {
                [scope.spawn(remove), scope.spawn(remove)].map(|it| it.join().expect("removed"))
            });
        }
    }
}
