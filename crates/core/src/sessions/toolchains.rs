//! The toolchains on a PATH.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::action::Tools;
use crate::host::{Host, Programs};
use crate::mutex::locked;

/// How long they are remembered.
const REMEMBERED: Duration = Duration::from_secs(1);
/// How many PATHs are remembered.
const PATHS_MAX: usize = 64;

/// The toolchains, and when they were found.
type Found = (Instant, Arc<Tools>);

/// The toolchains that were found a moment ago. At a server's start, thousands of sessions have the same PATH, and each
/// would search for some forty files.
#[derive(Debug, Default)]
pub(crate) struct Toolchains(Mutex<HashMap<Vec<u8>, Found>>);

impl Toolchains {
    /// The toolchains on this PATH, as of now or a moment ago.
    pub(crate) fn recent(&self, now: Instant, host: &dyn Host, path: Option<&[u8]>) -> Arc<Tools> {
        let Some(key) = path else { return Arc::default() };
        if let Some((_, tools)) = locked(&self.0).get(key).filter(|(at, _)| now < *at + REMEMBERED) {
            return Arc::clone(tools);
        }
        let tools = tools_on(host, path);
        let mut known = locked(&self.0);
        if known.len() >= PATHS_MAX {
            known.clear();
        }
        known.insert(key.to_owned(), (now, Arc::clone(&tools)));
        tools
    }
}

/// The toolchains on the shell's own PATH, in its file system.
pub(crate) fn tools_on(programs: &dyn Programs, path: Option<&[u8]>) -> Arc<Tools> {
    let Some(path) = path else { return Arc::default() };
    let find = |name| programs.resolve_program(name, Some(path));
    let python = find("python").or_else(|| find("python3"));
    Arc::new(Tools { python, node: find("node"), rustc: find("rustc"), cargo: find("cargo") })
}
