//! The part of a session that its viewers follow: how far they may be sent its output, and its newest events.

use std::collections::VecDeque;
use std::sync::Arc;

use super::summary::Summary;
use super::timeline::handover::RecentHandovers;
use crate::action::{Foreground, SessionEvent};
use crate::limits::{EVENTS_KEPT, EVENTS_TEXT_KEPT};

/// The state that an actor publishes to its viewers: positions and the newest events, never bytes.
#[derive(Debug, Default)]
pub(crate) struct Published {
    /// Viewers may be sent bytes up to here.
    pub(crate) to: u64,
    /// The ranges of attested markers up to there, oldest first.
    pub(crate) markers: Arc<Vec<(u64, u64)>>,
    /// The newest hand-overs.
    pub(crate) handovers: RecentHandovers,
    /// The newest events.
    pub(super) events: VecDeque<Noted>,
    /// The number of events so far.
    pub(crate) count: u64,
    /// The foreground state published last.
    pub(crate) foreground: Option<Foreground>,
    /// The rest of its state, for lists; `None` until what happened before this server is known.
    pub(crate) summary: Option<Summary>,
    /// The session has ended, so nothing more will be published; a mere stop of the server does not set this.
    pub(crate) is_over: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Noted {
    /// The output before this offset comes before the event.
    pub(crate) at: u64,
    pub(crate) event: Arc<SessionEvent>,
}

impl Published {
    pub(crate) fn note(&mut self, noted: Noted) {
        self.events.push_back(noted);
        let text = |events: &VecDeque<Noted>| events.iter().map(|noted| noted.event.text_bytes()).sum::<usize>();
        while self.events.len() > EVENTS_KEPT || text(&self.events) > EVENTS_TEXT_KEPT {
            self.events.pop_front();
        }
        self.count += 1;
    }

    /// The number of the oldest event kept.
    pub(super) fn oldest(&self) -> u64 {
        self.count - self.events.len() as u64
    }

    /// The number of the first event at or after this offset.
    pub(super) fn number_at(&self, offset: u64) -> u64 {
        self.oldest() + self.events.iter().take_while(|n| n.at < offset).count() as u64
    }

    /// The events from one number up to another; the first says how many of them are no longer kept.
    pub(super) fn between(&self, from: u64, to: u64) -> Vec<Arc<SessionEvent>> {
        let missed = self.oldest().min(to).saturating_sub(from);
        let missed = (missed > 0).then(|| Arc::new(SessionEvent::Missed(missed)));
        let kept = (from.max(self.oldest())..to).filter_map(|number| self.event(number));
        missed.into_iter().chain(kept.map(|noted| Arc::clone(&noted.event))).collect()
    }

    pub(super) fn event(&self, number: u64) -> Option<&Noted> {
        self.events.get(usize::try_from(number.checked_sub(self.oldest())?).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: view-2
    fn events_are_numbered_and_the_oldest_are_dropped() {
        let mut published = Published::default();
        for at in 0..EVENTS_KEPT as u64 + 5 {
            published.note(Noted { at, event: Arc::new(SessionEvent::Foreground(Foreground::Idle)) });
        }
        assert_eq!((published.oldest(), published.number_at(0), published.number_at(8)), (5, 5, 8));
        assert!(published.event(4).is_none() && published.event(5).is_some_and(|n| n.at == 5));
        assert!(matches!(*published.between(2, 7), [ref missed, _, _] if matches!(**missed, SessionEvent::Missed(3))));
        assert!(published.between(7, 7).is_empty() && published.between(8, 7).is_empty());
    }
}
