//! A spare holder: it was started before there was a session for it, so that a session need not wait for the start of a program.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::startup;

/// Whether this is the argument of a spare holder.
pub fn is_spare(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.as_bytes().starts_with(wire::SPARE.as_bytes()))
}

/// Waits on the standard input for the path of the session's folder; `None` when the server has gone without one.
pub fn session_folder(instead: &Path) -> io::Result<Option<PathBuf>> {
    startup::prepare_process()?;
    let mut path = vec![0; instead.as_os_str().len()];
    let mut got = 0;
    while let Some(room) = path.get_mut(got..).filter(|room| !room.is_empty()) {
        match rustix::io::retry_on_intr(|| rustix::io::read(rustix::stdio::stdin(), &mut *room))? {
            0 => return Ok(None),
            n => got += n,
        }
    }
    sys::start::replace_first_argument(&path);
    Ok(Some(PathBuf::from(OsStr::from_bytes(&path))))
}
