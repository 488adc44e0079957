//! Wait conditions outside of the terminal: ports that the session's processes listen on, and files.
//!
//! No portable notification exists for either (inotify misses writes of other hosts, sock_diag needs privileges), so
//! poll while a wait is open: often at first, then less often.

use std::collections::HashSet;
use std::future::Future;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::create::from_home;
use super::processes;
use super::registry::Handle;
use super::session::{Finished, Request};
use crate::action::{ActionError, EndedBy, Until, Wait};
use crate::limits::{OUTSIDE_EVERY_MAX, OUTSIDE_EVERY_MIN};

/// The identity of a file and its modification time: device, inode, seconds, nanoseconds.
type Version = (u64, u64, i64, i64);

/// The conditions of one wait.
#[derive(Debug, Default)]
pub(super) struct ExternalConditions {
    holder_pid: u32,
    any_port: bool,
    ports: Vec<u16>,
    /// Ports that no longer count for "any".
    known: HashSet<u16>,
    /// The file's full path, the path as requested, and the version that does not count.
    files: Vec<(PathBuf, PathBuf, Option<Version>)>,
}

impl ExternalConditions {
    /// `None` if the wait has no such condition. A port or file that exists already counts only with `counts_now`.
    pub(super) async fn of(
        handle: &Handle,
        wait: Option<&Wait>,
        counts_now: bool,
    ) -> Result<Option<Self>, ActionError> {
        let until = wait.map(|wait| wait.until.as_slice()).unwrap_or_default();
        if !until.iter().any(|until| matches!(until, Until::Listening(_) | Until::File(_))) {
            return Ok(None);
        }
        let snapshot = handle.ask(Request::Look).await?;
        let mut this = Self { holder_pid: snapshot.holder_pid, ..Self::default() };
        for until in until {
            match until {
                Until::Listening(None) => this.any_port = true,
                Until::Listening(Some(port)) => this.ports.push(*port),
                Until::File(path) => {
                    let place = snapshot.view.cwd.join(from_home(path, home(handle)));
                    let known = if counts_now { None } else { version(&place) };
                    this.files.push((place, path.clone(), known));
                }
                Until::Gone(_) | Until::Bell | Until::Input => {}
            }
        }
        if this.any_port && !counts_now {
            this.known = listening(this.holder_pid);
        }
        Ok(Some(this))
    }

    /// Polls until a condition is met, and returns it.
    async fn seen(self) -> String {
        let mut pause = OUTSIDE_EVERY_MIN;
        let this = std::sync::Arc::new(self);
        loop {
            // Reading a large process tree takes milliseconds.
            let looking = std::sync::Arc::clone(&this);
            if let Ok(Some(found)) = tokio::task::spawn_blocking(move || looking.look()).await {
                return found;
            }
            tokio::time::sleep_until(Instant::now() + pause).await;
            pause = (pause * 3 / 2).min(OUTSIDE_EVERY_MAX);
        }
    }

    fn look(&self) -> Option<String> {
        let is_there = |(place, _, known): &&(PathBuf, PathBuf, Option<Version>)| {
            version(place).is_some_and(|version| Some(version) != *known)
        };
        if let Some((_, asked, _)) = self.files.iter().find(is_there) {
            return Some(format!("file:{}", asked.display()));
        }
        if !self.any_port && self.ports.is_empty() {
            return None;
        }
        let open = listening(self.holder_pid);
        let asked = self.ports.iter().copied().find(|port| open.contains(port));
        let any = || open.difference(&self.known).min().copied().filter(|_| self.any_port);
        asked.or_else(any).map(|port| format!("listening:{port}"))
    }
}

/// The end of a wait, by the session or by a condition outside of it. `from` is where the caller's output begins; for a
/// command that was just run, its own start offset is better.
pub(super) async fn either(
    handle: &Handle,
    finished: impl Future<Output = Result<Finished, ActionError>>,
    outside: Option<ExternalConditions>,
    (command, from): (Option<u32>, Option<u64>),
) -> Result<Finished, ActionError> {
    let Some(outside) = outside else { return finished.await };
    let begun = std::time::Instant::now();
    let found = tokio::select! {
        biased;
        finished = finished => return finished,
        found = outside.seen() => found,
    };
    // A wait of zero length returns the present state.
    let wait = Wait::at_most(Duration::ZERO);
    let now = handle.ask(|reply| Request::Wait { wait, command, from, reply }).await?;
    let begins = now.snapshot.command.as_ref().map_or(now.from, |c| c.start_offset);
    Ok(Finished {
        ended_by: EndedBy::Matched,
        matched: Some(found),
        waited: begun.elapsed(),
        from: from.unwrap_or(begins),
        ..now
    })
}

/// The session's home directory, which may differ from the server's.
fn home(handle: &Handle) -> Option<&[u8]> {
    handle.shared.spec.env.iter().find_map(|entry| entry.strip_prefix(b"HOME="))
}

fn listening(holder_pid: u32) -> HashSet<u16> {
    processes::tree(holder_pid).iter().flat_map(|stat| sys::process::listening(stat.pid)).collect()
}

fn version(path: &PathBuf) -> Option<Version> {
    std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino(), m.mtime(), m.mtime_nsec()))
}
