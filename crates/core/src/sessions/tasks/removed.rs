//! The tasks of sessions that were removed, so that a later query of one gets a definite answer.
//!
//! The record has ids, times and the principal, but nothing of a command or its output, which a purge removes. A record is
//! a line of JSON in the file `removed-tasks`; the newest stay in it.

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::ids::TaskId;
use crate::mutex::locked;
use crate::principal::Principal;
use crate::sessions::timeline::{micros, time};
use crate::{limits, state_dir};

/// One line of the file; fields are added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sessions) struct RemovedTask {
    /// Its id.
    pub(in crate::sessions) task: String,
    /// The principal that opened it.
    pub(in crate::sessions) principal: String,
    pub(in crate::sessions) opened_us: u64,
    pub(in crate::sessions) removed_us: u64,
    /// Its caller had cancelled it, and its command did not outlive that.
    pub(in crate::sessions) cancelled: bool,
}

impl RemovedTask {
    fn is_kept(&self, now: SystemTime) -> bool {
        // A clock that was set back makes no record old.
        now.duration_since(time(self.removed_us)).unwrap_or_default() < limits::TASK_REMOVED_KEPT
    }
}

/// The removed tasks that are still known, the oldest first.
#[derive(Debug)]
pub(in crate::sessions) struct RemovedTasks {
    path: PathBuf,
    /// `None` before the file was read.
    known: Mutex<Option<Known>>,
}

#[derive(Debug, Default)]
struct Known {
    tasks: VecDeque<RemovedTask>,
    /// The lines of the file, outdated ones included.
    lines: usize,
}

impl Known {
    fn add(&mut self, task: RemovedTask) {
        self.lines += 1;
        // A removal that failed is repeated.
        self.tasks.retain(|other| other.task != task.task);
        self.tasks.push_back(task);
        if self.tasks.len() > limits::TASKS_REMOVED_MAX {
            self.tasks.pop_front();
        }
    }
}

impl RemovedTasks {
    pub(in crate::sessions) fn at(path: PathBuf) -> Self {
        Self { path, known: Mutex::default() }
    }

    /// Keeps these tasks of a session that is about to be removed. Blocks on the disk.
    pub(in crate::sessions) fn add(&self, tasks: Vec<RemovedTask>) -> io::Result<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        let mut known = locked(&self.known);
        let known = self.read(&mut known)?;
        let lines: String = tasks.iter().map(line).collect();
        tasks.into_iter().for_each(|task| known.add(task));
        if known.lines > 2 * limits::TASKS_REMOVED_MAX {
            let now = sys::time::steady_wall();
            known.tasks.retain(|task| task.is_kept(now));
            let draft = self.path.with_extension("new");
            state_dir::write(&draft, &known.tasks.iter().map(line).collect::<String>())?;
            fs::rename(&draft, &self.path)?;
            known.lines = known.tasks.len();
            return Ok(());
        }
        let mut file = OpenOptions::new();
        let file = file.create(true).append(true).mode(0o600).custom_flags(state_dir::no_link()).open(&self.path);
        file?.write_all(lines.as_bytes())
    }

    /// The removed task, if it was this principal's. Blocks on the disk.
    pub(in crate::sessions) fn find(&self, principal: &Principal, id: &TaskId) -> io::Result<Option<RemovedTask>> {
        let (id, now) = (id.to_string(), sys::time::steady_wall());
        let mut known = locked(&self.known);
        let found = self.read(&mut known)?.tasks.iter().find(|task| task.task == id && task.is_kept(now));
        Ok(found.filter(|task| principal.is_admin() || task.principal == principal.name).cloned())
    }

    fn read<'a>(&self, known: &'a mut Option<Known>) -> io::Result<&'a mut Known> {
        if known.is_none() {
            let bytes = match state_dir::read(&self.path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => Vec::new(),
                bytes => bytes?,
            };
            let mut read = Known::default();
            // A machine that died left part of a line.
            let lines = String::from_utf8_lossy(&bytes);
            lines.lines().filter_map(|line| serde_json::from_str(line).ok()).for_each(|task| read.add(task));
            *known = Some(read);
        }
        Ok(known.get_or_insert_default())
    }
}

/// It begins with a line end, so that a part of a line before it spoils nothing.
fn line(task: &RemovedTask) -> String {
    let json = serde_json::to_string(task).expect("invariant: strings and numbers are JSON");
    format!("\n{json}\n")
}

/// The present time in a record.
pub(in crate::sessions) fn now_us() -> u64 {
    micros(sys::time::wall())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{CommandId, SessionId};
    use crate::principal::Scope;

    fn removed(id: &TaskId, removed_us: u64) -> RemovedTask {
        RemovedTask { task: id.to_string(), principal: "me".to_owned(), opened_us: 1, removed_us, cancelled: false }
    }

    fn task(command: u32) -> TaskId {
        TaskId { session: SessionId::parse("s0-aaaaaaaaaa").expect("an id"), command: CommandId(command), wait: 1 }
    }

    fn principal(name: &str, scope: Scope) -> Principal {
        Principal::named(name, scope)
    }

    #[test]
    // promise: mcp-7
    fn only_their_principal_and_admins_see_them_at_the_next_server() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("removed-tasks");
        RemovedTasks::at(path.clone()).add(vec![removed(&task(1), now_us())]).expect("written");
        OpenOptions::new().append(true).open(&path).expect("there").write_all(b"{\"task\":\"s0-").expect("cut");
        RemovedTasks::at(path.clone()).add(vec![removed(&task(2), now_us())]).expect("written");
        let next = RemovedTasks::at(path);
        let knows = |principal: &Principal, id| next.find(principal, &task(id)).expect("readable").is_some();
        let (me, other) = (principal("me", Scope::Write), principal("other", Scope::Write));
        assert_eq!([knows(&me, 1), knows(&me, 2), knows(&me, 3), knows(&other, 1)], [true, true, false, false]);
        assert!(knows(&principal("root", Scope::Admin), 1));
    }

    #[test]
    fn their_number_and_their_age_are_bounded() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("removed-tasks");
        let (tasks, me) = (RemovedTasks::at(path.clone()), principal("me", Scope::Write));
        let too_old = now_us() - u64::try_from(limits::TASK_REMOVED_KEPT.as_micros()).expect("fits");
        tasks.add(vec![removed(&task(1), too_old)]).expect("written");
        assert_eq!(tasks.find(&me, &task(1)).expect("readable"), None);
        let many = u32::try_from(limits::TASKS_REMOVED_MAX).expect("fits");
        for i in 0..3 * many {
            tasks.add(vec![removed(&task(10 + i), now_us())]).expect("written");
        }
        let known = |id| RemovedTasks::at(path.clone()).find(&me, &task(id)).expect("readable").is_some();
        assert_eq!([known(10 + 2 * many - 1), known(10 + 2 * many), known(10 + 3 * many - 1)], [false, true, true]);
        let lines = fs::read_to_string(&path).expect("there").lines().filter(|line| !line.is_empty()).count();
        assert!(lines <= 2 * limits::TASKS_REMOVED_MAX, "{lines}");
    }
}
