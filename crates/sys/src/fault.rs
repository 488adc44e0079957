//! What a test may do to a process from outside: let it die at a named point.
//!
//! Nothing of it is in a release: without debug assertions and without the feature `faults` every function here is empty.

use std::ffi::OsString;
use std::path::Path;

/// `<point>:<file>`: a process that comes to this point while the file is there kills itself.
const FAULT: &str = "PTYD_FAULT";

/// Whether this build heeds tests.
const IS_HEEDED: bool = cfg!(any(debug_assertions, feature = "faults"));

/// The variables of this process that a holder is to have too.
pub fn passed_on() -> Vec<(&'static str, OsString)> {
    if !IS_HEEDED {
        return Vec::new();
    }
    [FAULT].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect()
}

/// Dies by KILL, as from outside, when a test wants the process dead here.
pub fn point(name: &str) {
    if !IS_HEEDED {
        return;
    }
    let fault = std::env::var(FAULT).unwrap_or_default();
    if fault.split_once(':').is_some_and(|(point, file)| point == name && Path::new(file).exists()) {
        // It cannot fail for ourselves, and does not return.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
