//! A spare holder: it was started before there was a session for it, so that a session need not wait for the start of a program.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::startup;

/// The folder of the session: the holder's argument, or for a spare one the path that comes over its standard input. `None` when
/// the server has gone without one.
// Not inlined, so that its stack frame is gone while the holder waits for its events.
#[inline(never)]
pub fn session_folder(argument: PathBuf) -> io::Result<Option<PathBuf>> {
    if !argument.file_name().is_some_and(|name| name.as_bytes().starts_with(wire::SPARE.as_bytes())) {
        return Ok(Some(argument));
    }
    startup::prepare_process()?;
    let mut path = vec![0; argument.as_os_str().len()];
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
