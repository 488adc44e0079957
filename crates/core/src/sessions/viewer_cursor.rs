//! A viewer cursor: one viewer's position in a session, from which it gets output and events piece by piece.
//!
//! The actor publishes how far viewers may read ([`Published`]); the bytes come from the journal. There is no queue: a
//! slow viewer is only a cursor that is behind, and slows down no other viewer.

use std::sync::Arc;

use journal::{Offset, Read};
use tokio::sync::watch;

use super::ended::session::EndedSession;
use super::handle::Handle;
use super::render::handover::Handovers;
use super::render::stream::stream;
use super::session::{Request, ScreenSnapshot};
use super::shared::Shared;
use super::viewer_feed::{Noted, Published};
use super::viewers::ViewerPlace;
use crate::action::{ActionError, Boxed, Feed, Piece, SessionEvent, ViewerSnapshot};

/// One viewer's cursor in a session.
#[derive(Debug)]
pub(in crate::sessions) struct ViewerCursor {
    shared: Arc<Shared>,
    /// `None` for a session that had ended before.
    handle: Option<Handle>,
    published: watch::Receiver<Published>,
    /// The next byte to send.
    cursor: u64,
    /// The number of the next event to send.
    seen: u64,
    /// An event at or before this offset waits for no more bytes: it is inside a control sequence that is held back.
    due: u64,
    handovers: Handovers,
    _place: Option<Arc<ViewerPlace>>,
}

/// The next step.
enum Next {
    Give(Piece),
    Read { to: u64, most: usize, markers: Arc<Vec<(u64, u64)>>, is_last: bool, event_at: Option<u64> },
    Wait,
}

impl Feed for ViewerCursor {
    fn cursor(&self) -> u64 {
        self.cursor
    }

    fn behind(&self) -> u64 {
        self.published.borrow().to.saturating_sub(self.cursor)
    }

    fn next(&mut self, most: usize) -> Boxed<'_, Result<Piece, ActionError>> {
        Box::pin(self.next_piece(most))
    }

    fn snapshot(&mut self) -> Boxed<'_, Result<Option<ViewerSnapshot>, ActionError>> {
        Box::pin(self.picture())
    }
}

impl ViewerCursor {
    /// Follows a live session; without an offset from the present end of its output.
    pub(in crate::sessions) fn live(handle: Handle, since: Option<u64>, place: ViewerPlace) -> Self {
        let mut published = handle.feed.clone();
        let (cursor, seen) = {
            let now = published.borrow_and_update();
            since.map_or((now.to, now.count), |at| (at, now.number_at(at)))
        };
        let shared = Arc::clone(&handle.shared);
        let place = Some(Arc::new(place));
        Self {
            shared,
            handle: Some(handle),
            published,
            cursor,
            seen,
            due: 0,
            handovers: Handovers::default(),
            _place: place,
        }
    }

    /// Reads an ended session: its output from an offset on, and its exit.
    pub(in crate::sessions) fn past(past: &EndedSession, since: Option<u64>, exit: SessionEvent) -> Self {
        let (shared, timeline) = (Arc::clone(&past.shared), &past.timeline);
        let end = timeline.output().scanner.position();
        let markers = Arc::new(timeline.output().markers.iter().copied().collect());
        let handovers = timeline.log().handovers(0);
        let mut published = Published { to: end, markers, handovers, is_over: true, ..Published::default() };
        published.note(Noted { at: 0, event: Arc::new(exit) });
        let (_, published) = watch::channel(published);
        let cursor = since.unwrap_or(end);
        Self { shared, handle: None, published, cursor, seen: 0, due: 0, handovers: Handovers::default(), _place: None }
    }

    async fn next_piece(&mut self, most: usize) -> Result<Piece, ActionError> {
        loop {
            match self.look(most) {
                Next::Give(piece) => return Ok(piece),
                Next::Read { to, most, markers, is_last, event_at } => {
                    if let Some(piece) = self.read(to, most, &markers, is_last)? {
                        return Ok(piece);
                    }
                    // All of it is held back. An event is sent all the same, output when there is more.
                    match event_at {
                        Some(at) => self.due = at,
                        None if is_last => return Ok(Piece::Over),
                        None => self.wait().await?,
                    }
                }
                Next::Wait => self.wait().await?,
            }
        }
    }

    async fn wait(&mut self) -> Result<(), ActionError> {
        match self.published.changed().await {
            Ok(()) => Ok(()),
            // The actor is gone although the session has not ended.
            Err(_) if !self.published.borrow().is_over => Err(ActionError::Restarting),
            Err(_) => Ok(()),
        }
    }

    fn look(&mut self, most: usize) -> Next {
        let now = self.published.borrow_and_update();
        if self.seen < now.oldest() {
            let missed = now.oldest() - self.seen;
            self.seen = now.oldest();
            return Next::Give(Piece::Event(Arc::new(SessionEvent::Missed(missed))));
        }
        let event = now.event(self.seen);
        if let Some(noted) = event.filter(|n| n.at <= self.cursor.max(self.due)) {
            self.seen += 1;
            return Next::Give(Piece::Event(Arc::clone(&noted.event)));
        }
        // Output before an event comes before it, the rest after it.
        let event_at = event.map(|n| n.at).filter(|at| *at <= now.to);
        let to = event_at.unwrap_or(now.to);
        if self.cursor < to {
            let markers = Arc::clone(&now.markers);
            self.handovers.recent = now.handovers.clone();
            let is_last = now.is_over && event_at.is_none();
            return Next::Read { to, most, markers, is_last, event_at };
        }
        if now.is_over { Next::Give(Piece::Over) } else { Next::Wait }
    }

    /// Reads one range; `None` if all of it is held back.
    fn read(
        &mut self,
        limit: u64,
        most: usize,
        markers: &[(u64, u64)],
        is_last: bool,
    ) -> Result<Option<Piece>, ActionError> {
        let unreadable = |e: std::io::Error| ActionError::Internal { why: format!("the journal: {e}") };
        let from = self.cursor;
        let want = usize::try_from(limit - from).unwrap_or(usize::MAX).min(most);
        let mut bytes = vec![0; want];
        match self.shared.reader.read(Offset(from), Offset(limit), &mut bytes).map_err(unreadable)? {
            Read::Bytes(n) => {
                bytes.truncate(n);
                let end = from + n as u64;
                let Shared { folder, reader, .. } = &*self.shared;
                let cuts = self.handovers.cuts(folder, reader, from, end).map_err(unreadable)?;
                let (shown, to) = stream(bytes, from, markers, &cuts, is_last && end == limit);
                self.cursor = to;
                Ok((to > from).then_some(Piece::Data { from, to, bytes: shown }))
            }
            Read::Gap { to, .. } | Read::Cut { to, .. } => {
                self.cursor = to.0;
                Ok(Some(Piece::Gap { from, to: to.0 }))
            }
            Read::End => Ok(None),
        }
    }

    /// The screen and the cursor come from one turn of the actor, so no byte is in both or in neither.
    async fn picture(&mut self) -> Result<Option<ViewerSnapshot>, ActionError> {
        let Some(handle) = &self.handle else { return Ok(None) };
        let ScreenSnapshot { screen, rows, count } = match handle.ask(Request::Picture).await {
            Ok(picture) => picture,
            Err(ActionError::Ended { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let events = self.published.borrow().between(self.seen, count);
        (self.cursor, self.seen) = (screen.at, count.max(self.seen));
        Ok(Some(ViewerSnapshot { events, at: screen.at, cols: screen.cols, rows, bytes: screen.ansi }))
    }
}
