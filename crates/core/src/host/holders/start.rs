//! The start of a holder in a session's folder.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use wire::Spec;

use super::folder::SessionFolder;
use super::spare::SpareHolder;
use super::spawn::{HolderBinary, StartedHolder, spawn};

/// Creates the session's folder, stores the spec and the secrets that are files, and has a holder begin in it: the spare one, or a
/// new one.
pub(super) fn start(
    binary: &HolderBinary,
    spare: Option<SpareHolder>,
    folder: &Path,
    spec: &Spec,
    secrets: &[(String, String)],
    container: Option<OwnedFd>,
) -> io::Result<StartedHolder> {
    sys::fault::stall("create");
    std::fs::DirBuilder::new().mode(0o700).create(folder)?;
    spec.store(folder)?;
    SessionFolder::at(folder.to_owned()).write_secrets(secrets)?;
    match spare.and_then(|spare| spare.hold(folder)) {
        Some(started) => Ok(started),
        None => spawn(binary, folder, container),
    }
}
