//! The recording of a session: finds its extent. The journal is read in a lane, part by part.

use std::sync::Arc;

use super::positions::catch_up;
use crate::action::{ActionError, CastVersion, Recording};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::sessions::known_sessions::SessionRef;
use crate::sessions::render::recording::{Extent, Recorder};
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::sessions::timeline::micros;

/// The recording of a session up to now.
pub(in crate::sessions) async fn recording(
    services: &Services,
    principal: &Principal,
    session: &SessionId,
    version: CastVersion,
) -> Result<Recording, ActionError> {
    let (shared, extent) = match services.sessions.find_to_read(principal, session).await? {
        SessionRef::Unreachable(unreachable) => return Err(unreachable.error()),
        SessionRef::Live(handle) => {
            let tail = handle.tail.borrow().journal.0;
            catch_up(&handle, tail).await;
            let marks = handle.ask(Request::Times).await?;
            let shown = handle.ask(Request::ViewerLimit).await?;
            let events_end = handle.tail.borrow().events;
            let extent = Extent { events_end, end: shown.to, marks, end_us: micros(sys::time::wall()) };
            (Arc::clone(&handle.shared), extent)
        }
        SessionRef::EndedSession(past) => {
            past.has_journal()?;
            let (end, end_us) = (past.timeline.output().scanner.position(), past.ended_us());
            let marks = past.timeline.clock().times.clone();
            (Arc::clone(&past.shared), Extent { events_end: u64::MAX, end, marks, end_us })
        }
    };
    let (lane, room) = (shared.lane(), shared.answer_room(limits::RECORDING_BYTES).await?);
    let recorder = lane.work(usize::MAX, || Recorder::new(shared, room, version, extent)).await;
    recorder.map(Recording::new).map_err(|e| ActionError::Internal { why: format!("the journal: {e}") })
}
