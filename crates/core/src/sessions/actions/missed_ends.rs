//! The ends of commands that a caller of the `terminal` tool has yet to learn.

use super::{commands, range_text};
use crate::action::{ActionError, Budget, CommandStatus, CommandView, MissedEnd, ReadMissed};
use crate::limits;
use crate::principal::Principal;
use crate::sessions::read_cursor::ReadCursors;
use crate::sessions::services::Services;

/// The ended commands whose ends this caller has yet to learn, except the one that its answer reports.
pub(in crate::sessions) async fn missed(
    services: &Services,
    principal: &Principal,
    read: &ReadMissed,
) -> Vec<MissedEnd> {
    let is_running = |command: &CommandView| command.status == CommandStatus::Running;
    if let Some((of, id, is_running)) = &read.told {
        let note = if *is_running { ReadCursors::note_running } else { ReadCursors::note_end_reported };
        note(&services.read_cursors, principal, of, *id);
    }
    let mut missed = Vec::new();
    for id in services.read_cursors.unreported(principal, &read.session) {
        if read.told.as_ref().is_some_and(|(of, told, _)| (of, *told) == (&read.session, id)) {
            continue;
        }
        // Its task tells it.
        if services.tasks.tells(&principal.reader(), &read.session, id).is_some() {
            continue;
        }
        let known = match commands::known(services, principal, &read.session, id).await {
            Ok(known) if is_running(&known.command) => continue,
            Ok(known) => Some(known),
            Err(ActionError::NoSession { .. } | ActionError::NoCommand { .. }) => None,
            // The next call finds it.
            Err(_) => continue,
        };
        services.read_cursors.note_end_reported(principal, &read.session, id);
        let Some(known) = known else { continue };
        let read_to = read.read_to;
        let from = known.command.start_offset.max(read_to);
        // The answer shows the command that ran inside this one.
        let told = match &read.told {
            Some((of, told, _)) if *of == read.session => commands::known(services, principal, of, *told).await.ok(),
            _ => None,
        };
        let end = known.command.end_offset.unwrap_or(from);
        let inner = told.map(|told| told.command.start_offset).filter(|inner| (from..end).contains(inner));
        let to = inner.unwrap_or(end);
        let is_some = from < to || inner.is_some();
        let unread = if is_some && to - from <= limits::UNREAD_SHOWN_BYTES_MAX {
            let cols = known.session.cols;
            // If the journal cannot be read here, the answer announces the output, as it does a longer one.
            range_text::text(&known.shared, known.handovers, (from, to), cols, Budget::folded(limits::BUDGET_CHARS))
                .await
                .ok()
        } else {
            None
        };
        missed.push(MissedEnd { session: known.session, command: known.command, read_to, unread });
    }
    missed
}
