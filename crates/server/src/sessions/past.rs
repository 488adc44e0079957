//! Sessions that have ended: read from their folders when somebody asks, the same story as when they lived.

use std::path::Path;
use std::sync::Arc;

use holder::spec::Spec;
use journal::{EventsReader, Offset, Read, Reader};

use super::ledger::{Ledger, time};
use super::meta::Meta;
use super::session::Shared;
use super::snapshot;
use crate::action::{Boundary, CommandStatus, CommandView, Foreground, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::limits::SCAN_CHUNK;
use crate::store::Store;

/// An ended session.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ledger: Ledger,
}

impl Past {
    /// Replays a folder. Reads everything, so it is done on a thread that may block.
    pub(crate) fn load(id: &SessionId, folder: &Path, store: &Arc<Store>) -> std::io::Result<Self> {
        let shared = Arc::new(open(id, folder, store)?);
        let first = shared.reader.first()?;
        let mut ledger = Ledger::new(first.0, shared.spec.cols, shared.spec.rows);
        let mut events = EventsReader::open(folder)?;
        let mut news = Vec::new();
        let end = events.len()?;
        while let Some(event) = events.next(end)? {
            ledger.event(&event, &mut news);
        }
        let end = shared.reader.len()?;
        let mut buffer = vec![0; SCAN_CHUNK];
        while ledger.scanner.position() < end.0 {
            match shared.reader.read(Offset(ledger.scanner.position()), end, &mut buffer)? {
                Read::Bytes(n) => ledger.bytes(&buffer[..n], &mut news),
                Read::Gap { to, .. } => ledger.skip_to(to.0, &mut news),
                Read::End => break,
            }
        }
        let reason = snapshot::exit_of(&ledger).map_or_else(|| HOLDER_GONE.to_owned(), |e| e.reason);
        if ledger.exit.is_none() {
            ledger.ending.get_or_insert_with(|| HOLDER_GONE.to_owned());
        }
        let at = ledger.exit.map_or(ledger.last_us, |(_, _, us)| us);
        ledger.end_current(CommandStatus::Terminated, &reason, Boundary::Attested, at);
        Ok(Self { shared, ledger })
    }

    pub(crate) fn view(&self) -> SessionView {
        let first = self.shared.reader.first().unwrap_or_default().0;
        let end = self.ledger.scanner.position();
        let (over, idle, sure) = (SessionStatus::Terminated, Foreground::Idle, Boundary::Attested);
        let mut view = snapshot::session_view(&self.shared, &self.ledger, over, idle, sure, first, end);
        view.last_activity = time(self.ledger.last_us);
        view
    }

    pub(crate) fn commands(&self) -> Vec<CommandView> {
        snapshot::command_views(&self.shared.id, &self.ledger)
    }

    /// When it ended.
    pub(crate) fn ended_us(&self) -> u64 {
        self.ledger.exit.map_or(self.ledger.last_us, |(_, _, us)| us)
    }
}

const HOLDER_GONE: &str = "the session's holder process was killed";

/// Opens what all that speak of a session share.
pub(crate) fn open(id: &SessionId, folder: &Path, store: &Arc<Store>) -> std::io::Result<Shared> {
    let spec = Spec::load(folder)?;
    let meta = Meta::decode(&spec.meta);
    let reader = Reader::open(folder)?;
    Ok(Shared { id: id.clone(), folder: folder.to_owned(), meta, spec, reader, store: Arc::clone(store) })
}
