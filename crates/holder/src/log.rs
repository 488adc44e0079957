//! The session's `holder.log`: why a holder ended that could not tell its server. Most sessions have none.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

const FILE: &str = "holder.log";

/// Adds a line to the log in this folder.
pub fn add(folder: &Path, line: &str) {
    let log = std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(folder.join(FILE));
    // Nobody could be told of an error.
    let _ = log.and_then(|mut log| writeln!(log, "{line}"));
}

/// Has a panic logged in this folder.
pub fn panics_in(folder: &Path) {
    let folder = folder.to_owned();
    std::panic::set_hook(Box::new(move |panic| add(&folder, &panic.to_string())));
}
