//! The questions of tasks: while a program reads a secret, the task asks its client to send a person to the page for it.

use std::sync::Arc;

use tokio::time::Instant;

use super::records::{Over, Question, Record, SessionTasks, Task, Which};
use crate::action::{ActionError, EndedBy, Foreground, PersonReply};
use crate::ids::SessionId;
use crate::limits::TASK_QUESTIONS_MAX;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::services::Services;
use crate::sessions::session::Request;

/// How a question ended.
pub(super) enum Asked {
    /// The program reads no more, or the task was cancelled: the wait continues.
    GoesOn,
    /// Nobody types it, for this reason.
    Ended(PersonReply),
    /// There is no request for it, or the server stops.
    Not,
}

/// Whether a task asks a person instead of ending here.
pub(super) fn asks_person(services: &Services, task: &Task, over: &Over) -> bool {
    let wants_it = over.by == EndedBy::InputWanted && over.foreground == Foreground::PasswordWanted;
    wants_it && over.is_running && task.opened.asks_person && !task.is_cancelled && services.settings.secret_page
}

/// Asks for the secret that the task's program reads, until the program reads no more or nobody types it.
pub(super) async fn ask_person(
    services: &Services,
    id: &SessionId,
    tasks: &Arc<SessionTasks>,
    task: &Task,
) -> Result<Asked, ActionError> {
    let (which, caller) = (task.opened.which, task.caller());
    let SessionRef::Live(handle) = services.sessions.find(&caller, id).await? else { return Ok(Asked::GoesOn) };
    for _ in 0..TASK_QUESTIONS_MAX {
        let Some((number, request)) = services.secret_requests.of_reader(&handle, &caller.name).await? else {
            return Ok(Asked::Not);
        };
        let until = Instant::now() + request.left;
        let mut changes = tasks.changes();
        let writer = Arc::clone(tasks);
        let Some(key) = services.tasks.on_disk(move || writer.ask(which, request)).await? else {
            return Ok(Asked::GoesOn);
        };
        let answered = async {
            loop {
                match tasks.get(which) {
                    Some(task) if task.over.is_none() && !task.is_cancelled => match task.reply {
                        Some((to, reply)) if to == key => return Some(reply),
                        _ => {}
                    },
                    _ => return None,
                }
                if changes.changed().await.is_err() {
                    return None;
                }
            }
        };
        let reply = tokio::select! {
            reply = answered => reply,
            _ = handle.ask(|reply| Request::SecretOver(number, reply)) => None,
            () = tokio::time::sleep_until(until) => Some(PersonReply::Cancelled),
            () = services.sessions.stopping() => return Ok(Asked::Not),
        };
        tasks.no_question(which);
        match reply {
            None => return Ok(Asked::GoesOn),
            Some(PersonReply::Accepted) => {}
            Some(reply) => return Ok(Asked::Ended(reply)),
        }
    }
    Ok(Asked::Ended(PersonReply::Cancelled))
}

impl SessionTasks {
    /// Puts a question to the client under the task's next key, which is never used again; none if the task is over.
    /// Blocks on the disk.
    fn ask(&self, which: Which, request: crate::action::SecretRequest) -> std::io::Result<Option<u32>> {
        let Some(task) = self.get(which) else { return Ok(None) };
        let key = task.asked + 1;
        let asks = |task: &Task| task.over.is_none() && !task.is_cancelled;
        let added = self.add_if(which, Record::Asked(which, key), asks)?;
        Ok(added.filter(|(is_added, _)| *is_added).map(|_| {
            self.set_question(which, Some(Question { key, request }));
            key
        }))
    }

    fn no_question(&self, which: Which) {
        self.set_question(which, None);
    }
}
