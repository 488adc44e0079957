//! Sessions that have ended: read from their folders when somebody asks, the same story as when they lived.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use holder::spec::Spec;
use journal::{EventsReader, Offset, Read, Reader};

use super::holders;
use super::ledger::{Command, Ledger, News, micros, time};
use super::meta::Meta;
use super::session::Shared;
use super::snapshot;
use super::tape::{Step, Tape};
use super::unreachable::{Hindrance, Unreachable};
use crate::action::{Boundary, CommandStatus, CommandView, Foreground, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::limits::{COLS_DEFAULT, ROWS_DEFAULT, SCAN_CHUNK};
use crate::store::Store;

/// An ended session.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ledger: Ledger,
    /// It has not ended: this is what is on disk of a session with which this server has no word.
    pub(crate) unreachable: Option<Arc<Unreachable>>,
}

impl Past {
    /// Replays a folder. Reads everything, so it is done on a thread that may block.
    pub(crate) fn load(id: &SessionId, folder: &Path, store: &Arc<Store>) -> std::io::Result<Self> {
        Self::replay(id, folder, store, |_| {})
    }

    /// The same, and each command is shown when it has ended: only the newest stay in memory.
    pub(crate) fn replay(
        id: &SessionId,
        folder: &Path,
        store: &Arc<Store>,
        ended: impl FnMut(&Command),
    ) -> std::io::Result<Self> {
        let has_left = holders::has_left(folder);
        let mut past = Self::read(id, folder, store, ended)?;
        let ledger = &mut past.ledger;
        if ledger.exit.is_none() {
            holders::tell_unrecorded_end(ledger, folder, has_left);
        }
        let reason = snapshot::exit_of(ledger).map_or_else(String::new, |e| e.reason);
        let at = ledger.exit.map_or(ledger.last_us, |(_, _, us)| us);
        ledger.give_up_inside(CommandStatus::Terminated, &reason, Boundary::Heuristic, at);
        ledger.end_current(CommandStatus::Terminated, &reason, Boundary::Attested, at);
        Ok(past)
    }

    /// What is on disk of a session that lives. What this server fails to read is not read again: then only the bytes are there.
    pub(crate) fn of_unreachable(unreachable: &Arc<Unreachable>, store: &Arc<Store>) -> std::io::Result<Self> {
        let (id, folder) = (&unreachable.id, &unreachable.folder);
        let past = match unreachable.hindrance {
            Hindrance::Silent => Self::read(id, folder, store, |_| {})?,
            Hindrance::Damaged | Hindrance::Faulty => {
                let (shared, damage) = open(id, folder, store)?;
                let shared = Arc::new(shared);
                let mut ledger = Ledger::new(shared.reader.len()?.0, shared.spec.cols.max(1), shared.spec.rows.max(1));
                (ledger.prompt_seen, ledger.last_us) = (true, shared.meta.created_us);
                ledger.damage = damage;
                Self { shared, ledger, unreachable: None }
            }
        };
        Ok(Self { unreachable: Some(Arc::clone(unreachable)), ..past })
    }

    /// The story as far as it is on disk, without an end that is not told there.
    fn read(
        id: &SessionId,
        folder: &Path,
        store: &Arc<Store>,
        mut ended: impl FnMut(&Command),
    ) -> std::io::Result<Self> {
        let (shared, mut damage) = open(id, folder, store)?;
        let shared = Arc::new(shared);
        let first = shared.reader.first()?;
        let mut ledger = Ledger::new(first.0, shared.spec.cols, shared.spec.rows);
        let mut tape = Tape::new(events(folder)?);
        let (events_end, end) = (tape.events_end()?, shared.reader.len()?);
        let mut news = Vec::new();
        let mut tell = |ledger: &Ledger, news: &mut Vec<News>| {
            for item in news.drain(..) {
                if let News::Ended(id) | News::InsideEnded(id) = item {
                    ledger.command(id).into_iter().for_each(&mut ended);
                }
            }
        };
        let mut buffer = vec![0; SCAN_CHUNK];
        let mut at = first.0;
        loop {
            let to = match tape.next(events_end, at, end.0)? {
                Step::Event(event) => {
                    ledger.event(&event, &mut news);
                    tell(&ledger, &mut news);
                    continue;
                }
                Step::OutputTo(to) => Offset(to),
                Step::AllOutput if at < end.0 => end,
                Step::AllOutput => break,
            };
            match shared.reader.read(Offset(at), to, &mut buffer)? {
                Read::Bytes(n) => ledger.bytes(&buffer[..n], &mut news),
                Read::Gap { to, .. } => ledger.skip_to(to.0, &mut news),
                // What is not there holds up no event.
                Read::End => at = u64::MAX,
            }
            at = at.max(ledger.scanner.position());
            tell(&ledger, &mut news);
        }
        damage = match damage {
            None => tape.damage(events_end, false)?,
            told => told,
        };
        let known_to = ledger.exit.map_or(ledger.reached, |(_, to, _)| to.max(ledger.reached));
        if end.0 < known_to {
            damage.get_or_insert_with(|| {
                format!("damaged: the output ends at {}, and {known_to} bytes were printed", end.0)
            });
        }
        ledger.damage = damage;
        // Whoever lost its marker at the very end has ended all the same.
        for id in ledger.ends_without_marker() {
            ledger.expire(id, ledger.scanner.position(), &mut news);
        }
        tell(&ledger, &mut news);
        Ok(Self { shared, ledger, unreachable: None })
    }

    pub(crate) fn view(&self) -> SessionView {
        let first = self.shared.reader.first().unwrap_or_default().0;
        let end = self.ledger.scanner.position();
        let (status, foreground) = match &self.unreachable {
            Some(unreachable) => (unreachable.view().status, Foreground::Running),
            None => (SessionStatus::Terminated, Foreground::Idle),
        };
        let sure = Boundary::Attested;
        let mut view = snapshot::session_view(&self.shared, &self.ledger, status, foreground, sure, first, end);
        view.last_activity = time(self.ledger.last_us);
        if let Some(unreachable) = &self.unreachable {
            (view.is_unreachable, view.trouble) = (true, Some(unreachable.why.clone()));
        }
        view
    }

    pub(crate) fn commands(&self) -> Vec<CommandView> {
        snapshot::command_views(&self.shared, &self.ledger)
    }

    /// When it ended. Where damaged records tell no time, no earlier than its output was written last: retention removes what
    /// ended long ago.
    pub(crate) fn ended_us(&self) -> u64 {
        let written = std::fs::metadata(self.shared.folder.join(journal::JOURNAL_FILE)).and_then(|m| m.modified());
        self.ledger.exit.map_or_else(|| self.ledger.last_us.max(written.map_or(0, micros)), |(_, _, us)| us)
    }
}

/// What is said of a file of a session that is not what was written.
fn damaged(file: &str, why: &std::io::Error) -> String {
    format!("damaged: {file} cannot be read ({why}); what it holds is not known")
}

/// The file could be read and is not what was written, or is gone from the session's folder.
fn is_damage(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::NotFound)
}

/// The events of a session; none where their header is damaged, of which [`open`] tells.
pub(crate) fn events(folder: &Path) -> std::io::Result<Option<EventsReader>> {
    match EventsReader::open(folder) {
        Err(e) if is_damage(&e) => Ok(None),
        events => events.map(Some),
    }
}

/// Opens what all that speak of a session share, and says what of it is damaged. What cannot be read of the spec is taken
/// from the store: a session whose owner is not known is an admin's to see.
pub(crate) fn open(id: &SessionId, folder: &Path, store: &Arc<Store>) -> std::io::Result<(Shared, Option<String>)> {
    let mut damage = None;
    // First: what has no journal is no session, and nothing more is looked up for it.
    let reader = match Reader::open(folder) {
        Err(e) if is_damage(&e) => {
            damage = Some(damaged("events", &e));
            Reader::open_alone(folder)?
        }
        reader => reader?,
    };
    let (spec, meta) = match Spec::load(folder) {
        Ok(spec) => {
            let meta = Meta::decode(&spec.meta);
            (spec, meta)
        }
        Err(e) if is_damage(&e) => {
            damage = Some(damaged("spec", &e));
            let row = store.session(id.as_str()).ok().flatten();
            let meta = row.map_or_else(Meta::default, |row| Meta {
                name: row.name,
                owner: row.owner,
                created_us: row.created_us,
                key: row.key,
                ..Meta::default()
            });
            (Spec { cols: COLS_DEFAULT, rows: ROWS_DEFAULT, ..Spec::default() }, meta)
        }
        Err(e) => return Err(e),
    };
    let shared = Shared {
        id: id.clone(),
        folder: folder.to_owned(),
        meta,
        spec,
        reader,
        store: Arc::clone(store),
        startup_failed: Mutex::default(),
        faulted: AtomicBool::default(),
        stalled: AtomicBool::default(),
    };
    Ok((shared, damage))
}
