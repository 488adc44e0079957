//! The tasks of each session: waits that continue after their requests were answered. The records in the session's folder
//! are the state; this module has the part that the server has read.
//!
//! A record is a line of JSON in the file `tasks`. The next server continues the waits that have no end there.
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tokio::sync::{Semaphore, watch};

use super::removed::{RemovedTask, RemovedTasks, now_us};
use crate::action::{ActionError, EndedBy, Foreground, PersonReply, SecretRequest, TaskText};
use crate::host::holders::SessionFolder;
use crate::ids::{CommandId, SessionId, TaskId};
use crate::limits;
use crate::mutex::locked;
use crate::principal::{Principal, Scope};
use crate::sessions::history::History;
use crate::sessions::timeline::time;

/// One line of the file; kinds and fields are added.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::sessions) enum Record {
    Opened(Opened),
    /// The caller wants the command interrupted; written before that is done.
    Cancel(Which),
    /// It was interrupted.
    Interrupted(Which),
    /// A question with this key was put to the client.
    Asked(Which, u32),
    /// Its reply.
    Replied(Which, u32, PersonReply),
    Over(Which, Over),
    Told(Which, TaskText),
}

/// A task of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::sessions) struct Which {
    pub(in crate::sessions) command: u32,
    pub(in crate::sessions) wait: u32,
}

/// The wait of a task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sessions) struct Opened {
    #[serde(flatten)]
    pub(in crate::sessions) which: Which,
    /// When the request began, and when it was answered with the task.
    pub(in crate::sessions) began_us: u64,
    pub(in crate::sessions) at_us: u64,
    /// Where the caller's output begins.
    pub(in crate::sessions) from: u64,
    /// Output from before the command that is shown with it.
    pub(in crate::sessions) background: Option<(u64, u64)>,
    /// The bytes typed by the request.
    pub(in crate::sessions) typed: Option<usize>,
    /// When the timeout is over, since the machine was started: its command does not outlive that.
    pub(in crate::sessions) until_boot_us: u64,
    pub(in crate::sessions) quiet_ms: Option<u64>,
    /// The quiet time is the server's.
    pub(in crate::sessions) own_quiet: bool,
    pub(in crate::sessions) input: bool,
    /// It ends when the program listens and is silent.
    pub(in crate::sessions) listens: bool,
    /// Where its pattern begins to match: everything before it has been looked at, or was typed by the request.
    pub(in crate::sessions) matches_from: u64,
    pub(in crate::sessions) pattern: Option<String>,
    pub(in crate::sessions) conditions: Vec<String>,
    /// Ports that were open before.
    pub(in crate::sessions) ports: Vec<u16>,
    pub(in crate::sessions) principal: String,
    pub(in crate::sessions) client: Option<String>,
    /// The client sends a person to a page.
    pub(in crate::sessions) asks_person: bool,
    /// The idempotency key of the request.
    pub(in crate::sessions) key: Option<String>,
}

/// The end of a task's wait, and the state of session and command then.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::sessions) struct Over {
    pub(in crate::sessions) at_us: u64,
    pub(in crate::sessions) by: EndedBy,
    pub(in crate::sessions) matched: Option<String>,
    /// The end of the caller's output, and of that part which is text and no screen.
    pub(in crate::sessions) to: u64,
    pub(in crate::sessions) text_to: u64,
    pub(in crate::sessions) in_paint: bool,
    pub(in crate::sessions) cols: u16,
    pub(in crate::sessions) foreground: Foreground,
    pub(in crate::sessions) is_running: bool,
    /// Why nobody types the secret that its program reads.
    pub(in crate::sessions) person: Option<PersonReply>,
}

/// An open question. It is not on record: the next server asks again, with another key.
#[derive(Debug, Clone)]
pub(in crate::sessions) struct Question {
    pub(in crate::sessions) key: u32,
    pub(in crate::sessions) request: SecretRequest,
}

/// One task.
#[derive(Debug, Clone)]
pub(in crate::sessions) struct Task {
    pub(in crate::sessions) opened: Opened,
    pub(in crate::sessions) is_cancelled: bool,
    pub(in crate::sessions) is_interrupted: bool,
    pub(in crate::sessions) over: Option<Over>,
    pub(in crate::sessions) told: Option<TaskText>,
    /// The key of the newest question; 0 without one.
    pub(in crate::sessions) asked: u32,
    /// The newest reply, and the question's key.
    pub(in crate::sessions) reply: Option<(u32, PersonReply)>,
    pub(in crate::sessions) question: Option<Question>,
    /// It was shown as still running.
    pub(super) was_shown: bool,
}

impl Task {
    fn of(opened: Opened) -> Self {
        Self {
            opened,
            is_cancelled: false,
            is_interrupted: false,
            over: None,
            told: None,
            asked: 0,
            reply: None,
            question: None,
            was_shown: false,
        }
    }

    /// The caller that opened it, who may see whatever session it was in.
    pub(in crate::sessions) fn caller(&self) -> Principal {
        let Opened { principal, client, .. } = &self.opened;
        Principal { client: client.clone(), ..Principal::named(principal, Scope::Admin) }
    }

    /// The record that stays when its session is removed. The removal of a session has ended whatever was open.
    fn as_removed(&self, session: &SessionId) -> RemovedTask {
        let Opened { which, principal, at_us, .. } = &self.opened;
        let id = TaskId { session: session.clone(), command: CommandId(which.command), wait: which.wait };
        RemovedTask {
            task: id.to_string(),
            principal: principal.clone(),
            opened_us: *at_us,
            removed_us: now_us(),
            cancelled: self.is_cancelled && self.over.as_ref().is_none_or(|over| !over.is_running),
        }
    }

    /// Whether this task will report the command's end to this reader.
    fn will_tell(&self, reader: &str, command: CommandId) -> bool {
        let is_open =
            self.told.is_none() && !self.is_cancelled && self.over.as_ref().is_none_or(|over| !over.is_running);
        is_open && self.opened.which.command == command.0 && self.caller().reader() == reader
    }
}

impl Opened {
    pub(in crate::sessions) fn at(&self) -> SystemTime {
        time(self.at_us)
    }

    /// The time after this one, since the machine was started.
    pub(in crate::sessions) fn in_boot_us(left: std::time::Duration) -> u64 {
        sys::time::since_boot_us().saturating_add(u64::try_from(left.as_micros()).unwrap_or(u64::MAX))
    }

    /// The rest of its timeout, which survives the server, and a wall clock that is set.
    pub(in crate::sessions) fn left(&self) -> std::time::Duration {
        std::time::Duration::from_micros(self.until_boot_us.saturating_sub(sys::time::since_boot_us()))
    }
}

/// The tasks of one session.
#[derive(Debug)]
pub(in crate::sessions) struct SessionTasks {
    folder: SessionFolder,
    all: Mutex<Vec<Task>>,
    /// Held by whoever writes: a disk that does not answer blocks writers only.
    writing: Mutex<()>,
    changed: watch::Sender<()>,
}

impl SessionTasks {
    fn load(folder: SessionFolder) -> std::io::Result<Self> {
        let mut all = Vec::new();
        // A later version writes kinds that this one does not know, and a machine that died left part of a line.
        let records = folder.tasks()?;
        for record in records.lines().filter_map(|line| serde_json::from_str(line).ok()) {
            take(&mut all, record);
        }
        Ok(Self { folder, all: Mutex::new(all), writing: Mutex::default(), changed: watch::Sender::new(()) })
    }

    fn write(&self, record: Record) -> std::io::Result<()> {
        let line = serde_json::to_string(&record).expect("invariant: strings, numbers and lists are JSON");
        self.folder.add_task_line(&line)?;
        take(&mut locked(&self.all), record);
        self.changed.send_replace(());
        Ok(())
    }

    /// Opens a task with the next number of its command, unless there are too many. Blocks on the disk.
    pub(in crate::sessions) fn open(&self, mut opened: Opened) -> std::io::Result<Option<Task>> {
        let _writing = locked(&self.writing);
        {
            let all = locked(&self.all);
            if all.iter().filter(|task| task.over.is_none()).count() >= limits::TASKS_OPEN_MAX {
                return Ok(None);
            }
            let command = opened.which.command;
            let earlier = all.iter().filter(|task| task.opened.which.command == command).count();
            opened.which.wait = u32::try_from(earlier).unwrap_or(u32::MAX).saturating_add(1);
        }
        let which = opened.which;
        self.write(Record::Opened(opened))?;
        Ok(self.get(which))
    }

    /// Adds a record if the task is as the record supposes. Returns whether it was, and the task. Blocks on the disk.
    pub(in crate::sessions) fn add_if(
        &self,
        which: Which,
        record: Record,
        fits: impl FnOnce(&Task) -> bool,
    ) -> std::io::Result<Option<(bool, Task)>> {
        let _writing = locked(&self.writing);
        let Some(task) = self.get(which) else { return Ok(None) };
        let is_added = fits(&task);
        if is_added {
            self.write(record)?;
        }
        Ok(self.get(which).map(|task| (is_added, task)))
    }

    pub(in crate::sessions) fn get(&self, which: Which) -> Option<Task> {
        locked(&self.all).iter().find(|task| task.opened.which == which).cloned()
    }

    /// Opens or closes the question of a task. The next query of the task returns at once.
    pub(in crate::sessions) fn set_question(&self, which: Which, question: Option<Question>) {
        if let Some(task) = locked(&self.all).iter_mut().find(|task| task.opened.which == which) {
            task.question = question;
            task.was_shown = false;
        }
        self.changed.send_replace(());
    }

    /// Whether it was shown as still running before; it has been now.
    pub(in crate::sessions) fn shows(&self, which: Which) -> bool {
        let mut all = locked(&self.all);
        let task = all.iter_mut().find(|task| task.opened.which == which);
        task.is_some_and(|task| std::mem::replace(&mut task.was_shown, true))
    }

    /// Notified of every later record.
    pub(in crate::sessions) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn open_ones(&self) -> Vec<Which> {
        locked(&self.all).iter().filter(|task| task.over.is_none()).map(|task| task.opened.which).collect()
    }
}

/// Counts a record; one of an unknown task is ignored.
fn take(all: &mut Vec<Task>, record: Record) {
    let (Record::Cancel(which)
    | Record::Interrupted(which)
    | Record::Asked(which, _)
    | Record::Replied(which, ..)
    | Record::Over(which, _)
    | Record::Told(which, _)) = &record
    else {
        if let Record::Opened(opened) = record {
            all.push(Task::of(opened));
        }
        return;
    };
    let Some(task) = all.iter_mut().find(|task| task.opened.which == *which) else { return };
    match record {
        Record::Opened(_) => {}
        Record::Cancel(_) => task.is_cancelled = true,
        Record::Interrupted(_) => task.is_interrupted = true,
        Record::Asked(_, key) => task.asked = key,
        // A question that was replied to is over; it may be asked again under another key.
        Record::Replied(_, key, reply) => (task.reply, task.question) = (Some((key, reply)), None),
        Record::Over(_, over) => task.over = Some(over),
        Record::Told(_, told) => task.told = Some(told),
    }
}

/// The tasks of all sessions that have had one.
#[derive(Debug)]
pub(in crate::sessions) struct Tasks {
    known: Mutex<HashMap<SessionId, Arc<SessionTasks>>>,
    /// Queries that wait for an end.
    pub(in crate::sessions) held: Semaphore,
    /// Those of sessions that are no longer retained.
    pub(in crate::sessions) removed: RemovedTasks,
    /// Bounds the work on a disk that may hang.
    history: Arc<History>,
}

impl Tasks {
    /// With those of removed sessions in this file.
    pub(in crate::sessions) fn new(removed: PathBuf, history: Arc<History>) -> Self {
        let held = Semaphore::new(limits::TASKS_HELD_MAX);
        Self { known: Mutex::default(), held, removed: RemovedTasks::at(removed), history }
    }

    /// The tasks of a session, and those that nobody waits for yet: the session's records are read for the first time.
    /// Blocks on the disk.
    pub(in crate::sessions) fn of(
        &self,
        id: &SessionId,
        folder: SessionFolder,
    ) -> std::io::Result<(Arc<SessionTasks>, Vec<Which>)> {
        if let Some(tasks) = locked(&self.known).get(id) {
            return Ok((Arc::clone(tasks), Vec::new()));
        }
        let loaded = Arc::new(SessionTasks::load(folder)?);
        let mut known = locked(&self.known);
        if let Some(tasks) = known.get(id) {
            return Ok((Arc::clone(tasks), Vec::new()));
        }
        known.insert(id.clone(), Arc::clone(&loaded));
        let open = loaded.open_ones();
        Ok((loaded, open))
    }

    /// The open or untold task by which this reader will be told the end of a command.
    pub(in crate::sessions) fn tells(&self, reader: &str, id: &SessionId, command: CommandId) -> Option<TaskId> {
        let tasks = locked(&self.known).get(id).cloned()?;
        let all = locked(&tasks.all);
        let task = all.iter().find(|task| task.will_tell(reader, command))?;
        Some(TaskId { session: id.clone(), command, wait: task.opened.which.wait })
    }

    /// Whether an open task keeps the session after its client is gone.
    pub(in crate::sessions) fn keeps(&self, id: &SessionId) -> bool {
        let Some(tasks) = locked(&self.known).get(id).cloned() else { return false };
        let is_young = |task: &Task| task.opened.at().elapsed().is_ok_and(|age| age < limits::TASK_KEEPS_SESSION);
        locked(&tasks.all).iter().any(|task| task.over.is_none() && is_young(task))
    }

    /// Keeps the lasting facts about the tasks of a session whose folder is about to be removed. Blocks on the disk.
    pub(in crate::sessions) fn is_removed(&self, id: &SessionId, folder: SessionFolder) -> std::io::Result<()> {
        let loaded = SessionTasks::load(folder)?;
        let all = locked(&loaded.all);
        self.removed.add(all.iter().map(|task| task.as_removed(id)).collect())
    }

    /// The session is no longer retained.
    pub(in crate::sessions) fn forget(&self, id: &SessionId) {
        locked(&self.known).remove(id);
    }

    /// Works on the records of tasks; a disk that does not answer fails the request and not the server.
    pub(in crate::sessions) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, ActionError> {
        let unusable =
            |why: String| ActionError::Internal { why: format!("the session's file `tasks` cannot be used: {why}") };
        let done = tokio::task::spawn_blocking(work);
        let done = self.history.in_time(("tasks", limits::DISK_PATIENCE), done).await?;
        done.map_err(|e| unusable(e.to_string()))?.map_err(|e| unusable(e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(command: u32) -> Opened {
        Opened {
            which: Which { command, wait: 0 },
            began_us: 1,
            at_us: 2,
            from: 3,
            background: None,
            typed: None,
            until_boot_us: 4,
            quiet_ms: None,
            own_quiet: false,
            input: true,
            listens: false,
            matches_from: 0,
            pattern: None,
            conditions: Vec::new(),
            ports: Vec::new(),
            principal: "me".to_owned(),
            client: None,
            asks_person: false,
            key: None,
        }
    }

    #[test]
    // promise: mcp-7
    fn records_are_read_back_without_those_that_are_cut_or_unknown() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = SessionFolder::of_test(dir.path());
        let tasks = SessionTasks::load(folder.clone()).expect("nothing is there");
        let waits: Vec<u32> = [7, 7, 8]
            .map(|command| tasks.open(opened(command)).expect("written").expect("room").opened.which.wait)
            .to_vec();
        assert_eq!(waits, [1, 2, 1]);
        let which = Which { command: 7, wait: 2 };
        let cancel = || tasks.add_if(which, Record::Cancel(which), |task| !task.is_cancelled).expect("written");
        assert_eq!([cancel(), cancel()].map(|done| done.expect("known").0), [true, false]);
        folder.add_task_line(r#"{"from_a_later_version":{}}"#).expect("written");
        folder.add_task_line(r#"{"opened":{"command":9,"wai"#).expect("written");
        let over = Over {
            at_us: 9,
            by: EndedBy::Matched,
            matched: Some("ready".to_owned()),
            to: 5,
            text_to: 5,
            in_paint: false,
            cols: 80,
            foreground: Foreground::Running,
            is_running: true,
            person: None,
        };
        tasks.add_if(which, Record::Over(which, over), |_| true).expect("written");
        let again = SessionTasks::load(folder).expect("readable");
        assert_eq!(again.open_ones(), [Which { command: 7, wait: 1 }, Which { command: 8, wait: 1 }]);
        let task = again.get(which).expect("known");
        assert!(task.is_cancelled && task.over.is_some_and(|over| over.matched.as_deref() == Some("ready")));
    }

    #[test]
    fn the_number_of_open_tasks_is_bounded() {
        let dir = tempfile::tempdir().expect("a folder");
        let tasks = SessionTasks::load(SessionFolder::of_test(dir.path())).expect("nothing is there");
        for command in 0..limits::TASKS_OPEN_MAX as u32 {
            assert!(tasks.open(opened(command)).expect("written").is_some());
        }
        assert!(tasks.open(opened(9_999)).expect("written").is_none());
    }
}
