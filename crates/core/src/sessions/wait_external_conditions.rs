//! Wait conditions outside of the terminal: ports that the session's processes listen on, and files.
//!
//! No portable notification exists for either (inotify misses writes of other hosts, sock_diag needs privileges). So ptyd
//! polls while a wait is open: often at first, then less often.

use std::collections::HashSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use wire::{Rules, TEMPORARY_FOLDER};

use super::silent_listener;
use crate::action::{ActionError, ConfinementTier, EndedBy, Until, Wait};
use crate::host::{FileFacts, Host};
use crate::limits::{DISK_PATIENCE, OUTSIDE_EVERY_MAX, OUTSIDE_EVERY_MIN};
use crate::sessions::handle::Handle;
use crate::sessions::launch::confinement::is_hidden;
use crate::sessions::launch::directory::from_home;
use crate::sessions::session::{Finished, Request};

/// The conditions of one wait.
#[derive(Debug)]
pub(in crate::sessions) struct ExternalConditions {
    host: Arc<dyn Host>,
    holder_pid: u32,
    /// The shell, to which `/proc/self` is another process than to the server.
    shell: Option<u32>,
    /// The shell of a sandbox, whose paths the files have.
    inside: Option<u32>,
    /// The user whose session it is, if it is not the server's own.
    identity: Vec<u32>,
    /// The rules of a confined session, and the temporary folder of its programs.
    confinement: Option<(Rules, PathBuf)>,
    /// The only condition: the program listens and is silent.
    awaits_server: bool,
    any_port: bool,
    ports: Vec<u16>,
    /// Ports that no longer count for "any".
    known: HashSet<u16>,
    /// The file's full path, the path as requested, and the version that does not count.
    files: Vec<(PathBuf, PathBuf, Option<FileFacts>)>,
}

impl ExternalConditions {
    fn at(host: Arc<dyn Host>, holder_pid: u32) -> Self {
        let (shell, inside, identity, confinement, awaits_server, ports, known, files) = Default::default();
        Self {
            host,
            holder_pid,
            shell,
            inside,
            identity,
            confinement,
            awaits_server,
            any_port: false,
            ports,
            known,
            files,
        }
    }

    /// `None` if the wait has no such condition. A port or file that exists already counts only with `counts_now`.
    pub(in crate::sessions) async fn of(
        handle: &Handle,
        wait: Option<&Wait>,
        counts_now: bool,
    ) -> Result<Option<Self>, ActionError> {
        if silent_listener::ends(wait) {
            let host = Arc::clone(&handle.shared.backends.host);
            return Ok(Some(Self { awaits_server: true, ..Self::at(host, 0) }));
        }
        let until = wait.map(|wait| wait.until.as_slice()).unwrap_or_default();
        if !until.iter().any(|until| matches!(until, Until::Listening(_) | Until::File(_))) {
            return Ok(None);
        }
        let snapshot = handle.ask(Request::Look).await?;
        let mut this = Self::at(Arc::clone(&handle.shared.backends.host), snapshot.holder_pid);
        this.shell = snapshot.view.pid;
        this.inside =
            snapshot.view.pid.filter(|_| snapshot.view.confinement.is_some_and(ConfinementTier::has_namespaces));
        let spec = &handle.shared.spec;
        this.identity.clone_from(&spec.identity);
        let temporary = handle.shared.folder.path().join(TEMPORARY_FOLDER);
        this.confinement = spec.confinement.clone().map(|rules| (rules, temporary));
        for until in until {
            match until {
                Until::Listening(None) => this.any_port = true,
                Until::Listening(Some(port)) => this.ports.push(*port),
                Until::File(path) => {
                    let place = snapshot.view.cwd.join(from_home(path, home(handle)));
                    let place = match snapshot.view.pid {
                        Some(shell) => this.host.path_of(shell, place),
                        None => place,
                    };
                    this.files.push((place, path.clone(), None));
                }
                Until::Gone(_) | Until::Bell | Until::Input => {}
            }
        }
        if counts_now || !this.any_port && this.files.is_empty() {
            return Ok(Some(this));
        }
        let look = async { handle.shared.lane().look(move || this.knowing_present()).await };
        match tokio::time::timeout(DISK_PATIENCE, look).await {
            Ok(Some(known)) => Ok(Some(known)),
            Ok(None) | Err(_) => {
                let why = "ptyd cannot check the files and ports of `until`: this check hangs, or an earlier one of this owner does";
                Err(ActionError::Internal { why: why.to_owned() })
            }
        }
    }

    /// The same conditions with what is there now, which does not count.
    fn knowing_present(mut self) -> Self {
        let mut files = std::mem::take(&mut self.files);
        for (place, _, known) in &mut files {
            *known = self.file(place);
        }
        self.files = files;
        if self.any_port {
            self.known = self.host.listening_ports(self.holder_pid);
        }
        self
    }

    /// The same conditions for a wait that continues an earlier one: ports that were open when that one began are known.
    pub(in crate::sessions) fn knowing(mut self, known: &[u16]) -> Self {
        self.known = known.iter().copied().collect();
        self
    }

    /// Polls until a condition is met, and returns it.
    async fn seen(self, handle: &Handle) -> (EndedBy, String) {
        if self.awaits_server {
            return (EndedBy::Listens, silent_listener::ready(handle).await);
        }
        let mut pause = OUTSIDE_EVERY_MIN;
        let this = Arc::new(self);
        loop {
            // Reading a large process tree takes milliseconds.
            let looking = Arc::clone(&this);
            if let Some(Some(found)) = handle.shared.lane().look(move || looking.look()).await {
                return (EndedBy::Matched, found);
            }
            tokio::time::sleep_until(Instant::now() + pause).await;
            pause = (pause * 3 / 2).min(OUTSIDE_EVERY_MAX);
        }
    }

    fn file(&self, place: &Path) -> Option<FileFacts> {
        match self.inside {
            Some(shell) => self.host.file_inside(shell, place),
            None if self.hides(place) => None,
            // A link may lead to `/proc/self`, as `/dev/fd` does, and may come later.
            None => {
                let seen = self.shell.map(|shell| self.host.path_seen_by(shell, place));
                self.host.file_as(&self.identity, seen.as_deref().unwrap_or(place))
            }
        }
    }

    /// Whether its own programs cannot open this file. Then a wait does not tell whether the file exists.
    fn hides(&self, place: &Path) -> bool {
        let Some((rules, temporary)) = &self.confinement else { return false };
        let Some(place) = self.host.path_outside_proc(place) else { return true };
        let resolved = |path: &Path| self.host.resolved_path(path);
        !place.starts_with(resolved(temporary)) && is_hidden(rules, &place, &resolved)
    }

    fn look(&self) -> Option<String> {
        let is_there = |(place, _, known): &&(PathBuf, PathBuf, Option<FileFacts>)| {
            self.file(place).is_some_and(|now| Some(now) != *known)
        };
        if let Some((_, asked, _)) = self.files.iter().find(is_there) {
            return Some(format!("file:{}", asked.display()));
        }
        if !self.any_port && self.ports.is_empty() {
            return None;
        }
        let open = self.host.listening_ports(self.holder_pid);
        let asked = self.ports.iter().copied().find(|port| open.contains(port));
        let any = || open.difference(&self.known).min().copied().filter(|_| self.any_port);
        asked.or_else(any).map(|port| format!("listening:{port}"))
    }
}

/// The end of a wait, by the session or by a condition outside of it. `from` is where the caller's output begins; for a
/// command that was just run, its own start offset is better.
pub(in crate::sessions) async fn either(
    handle: &Handle,
    finished: impl Future<Output = Result<Finished, ActionError>>,
    outside: Option<ExternalConditions>,
    (command, from): (Option<u32>, Option<u64>),
) -> Result<Finished, ActionError> {
    let Some(outside) = outside else { return finished.await };
    let begun = std::time::Instant::now();
    let (ended_by, found) = tokio::select! {
        biased;
        finished = finished => return finished,
        found = outside.seen(handle) => found,
    };
    // A wait of zero length returns the present state.
    let wait = Wait::at_most(Duration::ZERO);
    let now = handle.ask(|reply| Request::Wait { wait, command, from, reply }).await?;
    let begins = now.snapshot.command.as_ref().map_or(now.from, |c| c.start_offset);
    Ok(Finished {
        ended_by,
        matched: Some(handle.shared.folder.masks().text(found)),
        waited: begun.elapsed(),
        from: from.unwrap_or(begins),
        ..now
    })
}

/// The session's home directory, which may differ from the server's.
fn home(handle: &Handle) -> Option<&[u8]> {
    handle.shared.spec.env.iter().find_map(|entry| entry.strip_prefix(b"HOME="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    #[test]
    // promise: wait-5
    fn a_file_that_the_sessions_programs_cannot_see_ends_no_wait() {
        let host = Arc::new(FakeHost::default());
        let file = FileFacts { is_directory: false, which: (1, 2), modified: (3, 4) };
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (hidden, writable) = (paths(&["/home", "/state"]), paths(&["/home/ann/web"]));
        let rules = Rules { readable: paths(&["/"]), writable, hidden, ..Rules::default() };
        for (place, identity, is_seen) in [
            ("/home/ann/.ssh/id_rsa", &[][..], false),
            ("/state/token", &[], false),
            ("/home/ann/web/dist", &[], true),
            ("/state/s/tmp/done", &[], true),
            ("/usr/done", &[], true),
            ("/usr/done", &[7, 7], false),
        ] {
            host.has_file(place, file);
            let mut wait = ExternalConditions::at(host.clone(), 7);
            wait.confinement = Some((rules.clone(), "/state/s/tmp".into()));
            wait.identity = identity.to_vec();
            wait.files.push((place.into(), place.into(), None));
            assert_eq!(wait.look().is_some(), is_seen, "{place} {identity:?}");
        }
    }

    #[test]
    // promise: wait-5
    fn a_port_and_a_file_of_the_sessions_machine_end_a_wait_and_nothing_of_the_servers_own() {
        let host = Arc::new(FakeHost::default());
        let mut wait = ExternalConditions::at(host.clone(), 7);
        (wait.any_port, wait.ports, wait.known) = (true, vec![8080], HashSet::from([5000]));
        // There is a folder of this name on the server's machine.
        wait.files.push(("/tmp".into(), "tmp".into(), None));
        host.listens(7, &[5000]);
        assert_eq!(wait.look(), None);
        host.listens(9, &[8080]);
        assert_eq!(wait.look(), None, "of another session");
        host.listens(7, &[5000, 3000]);
        assert_eq!(wait.look().as_deref(), Some("listening:3000"));
        host.listens(7, &[5000, 3000, 8080]);
        assert_eq!(wait.look().as_deref(), Some("listening:8080"));
        let file = FileFacts { is_directory: false, which: (1, 2), modified: (3, 4) };
        host.has_file("/tmp", file);
        assert_eq!(wait.look().as_deref(), Some("file:tmp"));
        wait.files = vec![("/tmp".into(), "tmp".into(), Some(file))];
        assert_eq!(wait.look().as_deref(), Some("listening:8080"), "that file was there before");
        host.has_file("/tmp", FileFacts { modified: (3, 5), ..file });
        assert_eq!(wait.look().as_deref(), Some("file:tmp"), "it was written");
    }
}
