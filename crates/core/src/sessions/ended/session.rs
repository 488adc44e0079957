//! Ended sessions: replayed from their folders on request, with the same timeline as while they lived.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};

use journal::{Offset, Read, Reader};
use wire::Spec;

use super::unrecorded_end::explain_unrecorded_end;
use crate::action::{ActionError, Boundary, CommandStatus, CommandView, Foreground, SessionStatus, SessionView};
use crate::host::holders::{MaskedFolder, SessionFolder};
use crate::ids::SessionId;
use crate::limits::{COLS_DEFAULT, ROWS_DEFAULT, SCAN_CHUNK};
use crate::sessions::backends::Backends;
use crate::sessions::replay_order::{self, ReplayOrder, Step, is_damage};
use crate::sessions::session_metadata::SessionMetadata;
use crate::sessions::shared::Shared;
use crate::sessions::taint::Taint;
use crate::sessions::timeline::{Change, Command, Timeline, micros};
use crate::sessions::unreachable::{Hindrance, Unreachable};
use crate::sessions::viewers::Viewers;
use crate::sessions::{toolchains, views};

#[derive(Debug)]
pub(crate) struct EndedSession {
    pub(crate) shared: Arc<Shared>,
    pub(crate) timeline: Timeline,
    /// Set if the session has not ended: then this is the on-disk state of an unreachable session.
    pub(crate) unreachable: Option<Arc<Unreachable>>,
}

impl EndedSession {
    /// Replays a folder. Reads everything, so it belongs on a thread that may block.
    pub(crate) fn load(id: &SessionId, folder: &SessionFolder, backends: &Arc<Backends>) -> std::io::Result<Self> {
        Self::replay(id, folder, backends, |_| {})
    }

    /// The same; calls `ended` for each ended command, because only the newest stay in memory.
    pub(crate) fn replay(
        id: &SessionId,
        folder: &SessionFolder,
        backends: &Arc<Backends>,
        ended: impl FnMut(&Command),
    ) -> std::io::Result<Self> {
        let traces = backends.holders.traces(folder);
        let mut past = Self::read(id, folder, backends, ended)?;
        let timeline = &mut past.timeline;
        if timeline.end().exit.is_none() {
            explain_unrecorded_end(timeline, &traces);
            // The server that saw it end has kept when.
            let row = backends.store.session(id.as_str()).ok().flatten();
            row.and_then(|row| row.ended_us).into_iter().for_each(|us| timeline.set_unrecorded_end_time(us));
        }
        let reason = views::exit_of(timeline).map_or_else(String::new, |e| e.reason);
        let at = timeline.ended_us();
        timeline.give_up_inside(CommandStatus::Terminated, &reason, Boundary::Heuristic, at);
        timeline.end_current(CommandStatus::Terminated, &reason, Boundary::Attested, at);
        Ok(past)
    }

    /// The on-disk state of a live session. If this server failed to read it, it is not replayed again, and only its
    /// bytes are available.
    pub(crate) fn of_unreachable(unreachable: &Arc<Unreachable>, backends: &Arc<Backends>) -> std::io::Result<Self> {
        let (id, folder) = (&unreachable.id, &unreachable.folder);
        let past = match unreachable.unreachable_reason {
            Hindrance::Silent | Hindrance::Foreign => Self::read(id, folder, backends, |_| {})?,
            Hindrance::Damaged | Hindrance::Faulty => {
                let (shared, damage) = open(id, folder, backends)?;
                let shared = Arc::new(shared);
                let mut timeline =
                    Timeline::new(shared.reader.len()?.0, shared.spec.cols.max(1), shared.spec.rows.max(1));
                timeline.set_unreadable(last_write_us(folder));
                if let Some(what) = damage {
                    timeline.set_damage(what);
                }
                Self { shared, timeline, unreachable: None }
            }
        };
        Ok(Self { unreachable: Some(Arc::clone(unreachable)), ..past })
    }

    /// The timeline as far as it is on disk, without an end that is not recorded.
    fn read(
        id: &SessionId,
        folder: &SessionFolder,
        backends: &Arc<Backends>,
        mut ended: impl FnMut(&Command),
    ) -> std::io::Result<Self> {
        let (shared, mut damage) = match open(id, folder, backends) {
            // A folder that is there is a session, which can be listed and removed.
            Err(e) if is_damage(&e) && folder.exists() => {
                let (shared, _) = open_with(id, folder, backends, |_| Ok(Reader::of_nothing()))?;
                (shared, Some(damaged("journal", &e)))
            }
            opened => opened?,
        };
        let shared = Arc::new(shared);
        let first = shared.reader.first()?;
        let mut timeline = Timeline::new(first.0, shared.spec.cols, shared.spec.rows);
        let mut replay = ReplayOrder::new(replay_order::events(&shared.folder)?);
        let (events_end, end) = (replay.events_end()?, shared.reader.len()?);
        let mut news = Vec::new();
        let mut notify = |timeline: &Timeline, news: &mut Vec<Change>| {
            for item in news.drain(..) {
                if let Change::Ended(id) | Change::InsideEnded(id) = item {
                    timeline.log().command(id).into_iter().for_each(&mut ended);
                }
            }
        };
        let mut buffer = vec![0; SCAN_CHUNK];
        let mut at = first.0;
        loop {
            let to = match replay.next(events_end, at, end.0, false)? {
                Step::Event(event) => {
                    timeline.event(&event, &mut news);
                    notify(&timeline, &mut news);
                    continue;
                }
                Step::OutputTo(to) => Offset(to),
                Step::AllOutput if at < end.0 => end,
                Step::AllOutput => break,
            };
            match shared.reader.read(Offset(at), to, &mut buffer)? {
                Read::Bytes(n) => timeline.bytes(&buffer[..n], &mut news),
                Read::Gap { to, .. } | Read::Cut { to, .. } => timeline.skip_to(to.0),
                // Missing output does not hold up events.
                Read::End => at = u64::MAX,
            }
            at = at.max(timeline.output().scanner.position());
            notify(&timeline, &mut news);
        }
        damage = match damage {
            None => replay.damage(events_end, false)?,
            told => told,
        };
        let known_to =
            timeline.end().exit.map_or(timeline.clock().reached, |(_, to, _)| to.max(timeline.clock().reached));
        if end.0 < known_to {
            damage.get_or_insert_with(|| {
                format!("damaged: the output ends at {}, although {known_to} bytes were printed", end.0)
            });
            // Offsets stay as they were reported while it was live.
            timeline.skip_to(known_to);
        }
        if let Some(what) = damage {
            timeline.set_damage(what);
        }
        // A container's files are gone.
        let path = timeline.shell().path.as_deref().filter(|_| shared.meta.confinement.container.is_none());
        timeline.set_tools(toolchains::tools_on(&*backends.host, path));
        timeline.set_last_write(last_write_us(folder));
        // A command whose marker is missing at the very end has ended all the same.
        for id in timeline.ends_without_marker() {
            timeline.expire(id, timeline.output().scanner.position(), &mut news);
        }
        notify(&timeline, &mut news);
        Ok(Self { shared, timeline, unreachable: None })
    }

    pub(crate) fn view(&self) -> SessionView {
        let end = self.timeline.output().scanner.position();
        let (status, foreground) = match &self.unreachable {
            Some(unreachable) => (unreachable.view().status, Foreground::Running),
            None => (SessionStatus::Terminated, Foreground::Idle),
        };
        let sure = Boundary::Attested;
        let mut view = views::summary(&self.timeline, status, foreground, sure, end).view(&self.shared);
        if let Some(unreachable) = &self.unreachable {
            (view.is_unreachable, view.trouble) = (true, Some(unreachable.why.clone()));
        }
        view
    }

    /// Whether its shell ended without anybody's request.
    pub(crate) fn ended_by_itself(&self) -> bool {
        let end = self.timeline.end();
        end.exit.is_some() && end.ending.is_none() && self.unreachable.is_none()
    }

    /// Refuses a session without a journal: its output would be empty, as if nothing had been printed.
    pub(crate) fn has_journal(&self) -> Result<(), ActionError> {
        if self.shared.reader.has_journal() {
            return Ok(());
        }
        let why = self.timeline.damage().unwrap_or("the journal is gone").to_owned();
        Err(ActionError::Internal { why })
    }

    pub(crate) fn commands(&self) -> Vec<CommandView> {
        views::command_views(&self.shared, &self.timeline)
    }

    /// When the session ended. If damaged records have no time, the last write of its output: retention removes
    /// sessions that ended long ago.
    pub(crate) fn ended_us(&self) -> u64 {
        let written = || self.timeline.clock().last_us.max(last_write_us(&self.shared.folder));
        self.timeline.end().exit.map_or_else(written, |(_, _, us)| us)
    }
}

/// The last write of the session's output, or of its folder: when damaged records have no time.
pub(crate) fn last_write_us(folder: &SessionFolder) -> u64 {
    folder.last_write().map_or(0, micros)
}

/// The message about a damaged file of a session.
fn damaged(file: &str, why: &std::io::Error) -> String {
    format!("damaged: {file} cannot be read ({why}); its contents are unknown")
}

/// Opens the shared state of a session, and returns what is damaged. Missing parts of the spec come from the store; a
/// session whose owner is unknown is visible to admins only.
pub(crate) fn open(
    id: &SessionId,
    folder: &SessionFolder,
    backends: &Arc<Backends>,
) -> std::io::Result<(Shared, Option<String>)> {
    let mut damage = None;
    // A session without a journal is not taken on.
    let (shared, damaged_spec) = open_with(id, folder, backends, |folder| match folder.journal() {
        Err(e) if is_damage(&e) => {
            damage = Some(damaged("events", &e));
            folder.journal_alone()
        }
        reader => reader,
    })?;
    Ok((shared, damaged_spec.or(damage)))
}

fn open_with(
    id: &SessionId,
    folder: &SessionFolder,
    backends: &Arc<Backends>,
    reader: impl FnOnce(&MaskedFolder) -> std::io::Result<Reader>,
) -> std::io::Result<(Shared, Option<String>)> {
    let mut damage = None;
    let (spec, mut meta) = match folder.spec() {
        Ok(spec) => {
            let meta = SessionMetadata::decode(&spec.meta);
            (spec, meta)
        }
        Err(e) if is_damage(&e) => {
            damage = Some(damaged("spec", &e));
            let row = backends.store.session(id.as_str()).ok().flatten();
            let meta = row.map_or_else(SessionMetadata::default, |row| SessionMetadata {
                name: row.name.into(),
                owner: row.owner,
                created_us: row.created_us,
                key: row.key,
                ..SessionMetadata::default()
            });
            (Spec { cols: COLS_DEFAULT, rows: ROWS_DEFAULT, ..Spec::default() }, meta)
        }
        Err(e) => return Err(e),
    };
    meta.created_us = meta.created_us_in(folder);
    // A session whose metadata cannot be read may have been given any secret.
    let is_known = damage.is_none() && !meta.owner.is_empty();
    let masks = if is_known { meta.secrets.masks() } else { backends.secrets.masks() };
    let masked = folder.clone().masked(masks);
    let reader = reader(&masked)?;
    let taint = if meta.policy.is_some() { Taint::read(folder) } else { Taint::default() };
    let shared = Shared {
        id: id.clone(),
        folder: masked,
        meta,
        spec,
        reader,
        backends: Arc::clone(backends),
        startup_failed: Mutex::default(),
        faulted: AtomicBool::default(),
        prompt_lines: AtomicUsize::new(usize::MAX),
        server: Mutex::default(),
        is_in_turn: AtomicBool::new(true),
        stalled: AtomicBool::default(),
        taint,
        recorded_end: Mutex::default(),
        renames: Mutex::default(),
        viewers: Viewers::default(),
    };
    Ok((shared, damage))
}
