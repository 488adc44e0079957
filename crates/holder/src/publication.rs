//! When a new tail is published: output at once, a record together with the output that belongs to it.
//!
//! Each published tail wakes the server. So a record waits a moment for its output, output before an expected marker
//! waits for the marker, and output of a command that just began waits for the command's end.

use journal::Offset;
use wire::Tail;

/// Output of a command that was just started is announced together with the command's end, if that comes within this
/// time.
const COALESCE_US: u64 = 1_500;
/// A report waits this long for its marker, which is on its way through the terminal, to be announced together with it.
const MARKER_US: u64 = 500;
/// For this long after a key, output is announced at once.
const TYPING_US: u64 = 100_000;

#[derive(Debug, Default)]
pub(crate) struct Publication {
    published: Tail,
    /// New records are announced at this time at the latest.
    announce_by: Option<u64>,
    /// The marker of the newest end has not arrived; it will be behind this offset.
    expects_marker: Option<Offset>,
    /// The next published tail includes the marker of the newest end.
    has_marker: bool,
    typed_at: u64,
    /// Until then no client waits for output: it stays in the terminal and is moved in one piece.
    idle_until: u64,
}

impl Publication {
    /// The newest published tail.
    pub(crate) fn published(&self) -> Tail {
        self.published
    }

    /// When new records are announced at the latest.
    pub(crate) fn announce_by(&self) -> Option<u64> {
        self.announce_by
    }

    /// The end of the time in which no client waits for output, if it is now.
    pub(crate) fn idle_until(&self, now: u64) -> Option<u64> {
        Some(self.idle_until).filter(|until| now < *until)
    }

    pub(crate) fn expects_marker(&self) -> bool {
        self.expects_marker.is_some()
    }

    pub(crate) fn announce_now(&mut self, now: u64) {
        self.announce_by = Some(now);
    }

    /// A report was recorded: its marker is on its way.
    pub(crate) fn announce_with_marker(&mut self, now: u64) {
        self.announce_by.get_or_insert(now + MARKER_US);
    }

    /// A command was handed over.
    pub(crate) fn command_began(&mut self, now: u64) {
        self.idle_until = now + COALESCE_US;
    }

    /// A command's end was reported: its marker has come, or will come behind `end`.
    pub(crate) fn command_ended(&mut self, marker: Option<Offset>, end: Offset) {
        self.has_marker = marker.is_some();
        self.expects_marker = marker.is_none().then_some(end);
        self.idle_until = 0;
    }

    /// A client typed.
    pub(crate) fn typed(&mut self, now: u64) {
        (self.typed_at, self.idle_until) = (now, 0);
    }

    /// The tail that is to be published now. `tail` is the end of the records, `None` while some are missing.
    pub(crate) fn due(&mut self, tail: Option<Tail>, is_last: bool, is_at_prompt: bool, now: u64) -> Option<Tail> {
        let Some(tail) = tail.filter(|tail| *tail != self.published) else {
            // A deadline in the past with nothing to publish would keep the loop spinning.
            self.announce_by = None;
            return None;
        };
        // New bytes are published at once, except that bytes before an expected marker are published together with it.
        self.has_marker |= self.expects_marker.is_some_and(|from| tail.journal > from);
        let has_news = tail.journal > self.published.journal && (self.has_marker || self.expects_marker.is_none());
        if !is_last && !has_news && self.announce_by.is_none_or(|at| at > now) {
            // Only events are new: publish them with the bytes that belong to them, or after MARKER_US.
            self.announce_by.get_or_insert(now + MARKER_US);
            return None;
        }
        // A shell paints its prompt in several pieces. No client waits for these, except while a person types.
        if self.has_marker && is_at_prompt && now > self.typed_at + TYPING_US {
            self.idle_until = now + COALESCE_US;
        }
        (self.expects_marker, self.has_marker) = (None, false);
        Some(self.publish(tail))
    }

    /// Publishes a tail together with an answer.
    pub(crate) fn publish(&mut self, tail: Tail) -> Tail {
        self.announce_by = None;
        self.published = tail;
        tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(journal: u64, events: u64) -> Option<Tail> {
        Some(Tail { journal: Offset(journal), events })
    }

    #[test]
    fn output_is_published_at_once_and_a_record_waits_for_its_output() {
        let mut p = Publication::default();
        assert_eq!(p.due(tail(5, 0), false, false, 10), tail(5, 0));
        assert_eq!(p.due(tail(5, 0), false, false, 11), None, "nothing is new");
        assert_eq!((p.due(tail(5, 9), false, false, 20), p.announce_by()), (None, Some(20 + MARKER_US)));
        assert_eq!(p.due(tail(5, 9), false, false, 20 + MARKER_US), tail(5, 9));
        assert_eq!(p.due(tail(5, 12), true, false, 600), tail(5, 12), "the last tail waits for nothing");
    }

    #[test]
    fn nothing_is_published_while_records_are_missing() {
        let mut p = Publication::default();
        p.announce_now(5);
        assert_eq!((p.due(None, true, true, 5), p.announce_by()), (None, None));
    }

    #[test]
    fn output_before_an_expected_marker_is_published_with_the_marker() {
        let mut p = Publication::default();
        p.command_ended(None, Offset(5));
        p.announce_with_marker(10);
        assert_eq!(p.due(tail(5, 9), false, true, 10), None);
        assert!(p.expects_marker());
        assert_eq!(p.due(tail(8, 9), false, true, 11), tail(8, 9));
        assert_eq!((p.expects_marker(), p.idle_until(11)), (false, None), "a key was pressed a moment ago");
    }

    #[test]
    fn behind_a_marker_the_prompt_is_painted_in_silence_unless_a_person_types() {
        let (now, mut p) = (TYPING_US + 10, Publication::default());
        p.command_ended(Some(Offset(3)), Offset(5));
        assert_eq!(p.due(tail(5, 9), false, true, now), tail(5, 9));
        assert_eq!(p.idle_until(now), Some(now + COALESCE_US));
        p.typed(now);
        assert_eq!(p.idle_until(now), None);
        p.command_ended(Some(Offset(7)), Offset(8));
        assert_eq!(p.due(tail(8, 18), false, true, now + 1), tail(8, 18));
        assert_eq!(p.idle_until(now + 1), None);
    }
}
