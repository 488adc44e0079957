//! The event log of all sessions, newest last: a bounded ring that followers of many sessions read.
//!
//! The ring waits for no reader and queues nothing for any. A reader has a position, and gets a gap if the events
//! behind it are gone. Positions belong to this server; one of another server is such a gap, too.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use super::shared::Shared;
use crate::action::{
    ActionError, ApprovalView, Decision, EventPlace, EventsView, PatternShare, ReadEvents, ServerEvent, ServerEventKind,
};
use crate::audit::AuditLog;
use crate::ids::SessionId;
use crate::lane::Lanes;
use crate::limits::{EVENTS_OF_ALL_KEPT, EVENTS_OF_ALL_TEXT, EVENTS_READ_MAX, FOLLOWERS_PER_PRINCIPAL_MAX};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::mutex::locked;
use crate::per_principal::PerPrincipal;
use crate::principal::Principal;
use crate::traces::CommandSpans;

#[derive(Debug)]
pub(crate) struct ServerEvents {
    /// Identifies this server, so that a position from an earlier one is recognised.
    server: u32,
    ring: Mutex<Ring>,
    /// The number of events so far.
    count: watch::Sender<u64>,
    /// Counts events, and other things in sessions.
    pub(crate) metrics: Arc<Metrics>,
    /// The permits of followers.
    followers: PerPrincipal<Semaphore>,
    /// The shares for patterns: of callers, whose requests have them, and of owners, whose sessions match them.
    patterns: PerPrincipal<PatternShare>,
    /// The lanes of callers and of owners.
    pub(crate) lanes: Arc<Lanes>,
    /// Gives back what requests have taken.
    pub(crate) memory: Arc<Memory>,
    /// Notified when a session waits for disk space.
    pub(super) stalled: Notify,
    /// The spans of the commands that run.
    pub(crate) spans: CommandSpans,
    /// Records actions, and ends of commands.
    pub(crate) audit: Arc<AuditLog>,
}

/// The newest events.
#[derive(Debug, Default)]
struct Ring {
    events: VecDeque<Arc<ServerEvent>>,
    /// The bytes of the commands in them.
    text: usize,
}

impl Ring {
    fn push(&mut self, event: Arc<ServerEvent>) {
        self.text += event.what.text_bytes();
        self.events.push_back(event);
        while self.events.len() > EVENTS_OF_ALL_KEPT || self.text > EVENTS_OF_ALL_TEXT {
            self.text -= self.events.pop_front().map_or(self.text, |gone| gone.what.text_bytes());
        }
    }
}

impl Default for ServerEvents {
    fn default() -> Self {
        let mut bytes = [0u8; 4];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        Self {
            server: u32::from_ne_bytes(bytes),
            ring: Mutex::default(),
            count: watch::Sender::new(0),
            metrics: Arc::default(),
            followers: PerPrincipal::default(),
            patterns: PerPrincipal::default(),
            lanes: Arc::default(),
            memory: Arc::default(),
            stalled: Notify::new(),
            spans: CommandSpans::default(),
            audit: Arc::default(),
        }
    }
}

impl ServerEvents {
    /// An empty log beside this audit log.
    pub(super) fn with(audit: Arc<AuditLog>) -> Self {
        Self { audit, ..Self::default() }
    }

    /// The share of this principal for patterns.
    pub(crate) fn patterns_of(&self, name: &str) -> Arc<PatternShare> {
        self.patterns.of(name, || PatternShare::in_lane(self.lanes.of(name)))
    }

    /// Appends an event of a session.
    pub(crate) fn notify(&self, shared: &Shared, what: ServerEventKind) {
        self.metrics.happened(&what);
        if let ServerEventKind::Completed(command) = &what {
            self.audit.command_ended(&shared.meta.owner, shared.meta.name.get().as_deref(), command);
            self.spans.ended(command);
        }
        if let ServerEventKind::Terminated(_) = &what {
            self.spans.session_ended(&shared.id);
        }
        if let ServerEventKind::Returned(driver, end) = &what {
            let name = shared.meta.name.get();
            let session = (&shared.id, shared.meta.owner.as_str(), name.as_deref());
            self.audit.take_over_ended(session, driver, *end);
        }
        self.add(shared.id.clone(), shared.meta.owner.clone(), shared.meta.name.get(), what);
    }

    /// Appends a decision. Its session may have ended.
    pub(super) fn approval_decided(&self, approval: &ApprovalView, decision: Decision) {
        let what = ServerEventKind::Approval { id: approval.id.clone(), decision: Some(decision) };
        self.add(approval.session.clone(), approval.owner.clone(), approval.session_name.clone(), what);
    }

    /// Appends an event of another node.
    pub(super) fn of_another_node(&self, event: ServerEvent) {
        self.push(event);
    }

    fn add(&self, session: SessionId, owner: String, name: Option<String>, what: ServerEventKind) {
        self.push(ServerEvent { number: 0, at: sys::time::wall(), session, owner, name, what });
    }

    fn push(&self, event: ServerEvent) {
        let mut ring = locked(&self.ring);
        let number = *self.count.borrow() + 1;
        ring.push(Arc::new(ServerEvent { number, ..event }));
        self.count.send_replace(number);
    }

    /// The events behind a position that this caller may see; without a position, only the present end.
    fn since(&self, principal: &Principal, place: Option<EventPlace>) -> EventsView {
        let ring = &locked(&self.ring).events;
        let count = *self.count.borrow();
        let first = ring.front().map_or(count + 1, |h| h.number);
        let (from, is_gap) = match place {
            None => (count, false),
            // A position beyond the end was never given out.
            Some(place) if place.server != self.server || place.number > count => (first - 1, true),
            Some(place) if place.number + 1 < first => (first - 1, true),
            Some(place) => (place.number, false),
        };
        let visible = |h: &&Arc<ServerEvent>| principal.is_admin() || h.owner == principal.name;
        // Numbers have no gaps, so the index follows from the number.
        let read = usize::try_from((from + 1).saturating_sub(first)).unwrap_or(usize::MAX).min(ring.len());
        let new = ring.range(read..);
        let events: Vec<_> = new.filter(visible).take(EVENTS_READ_MAX).cloned().collect();
        let number = if events.len() == EVENTS_READ_MAX { events.last().map_or(count, |h| h.number) } else { count };
        EventsView { events, is_gap, next: EventPlace { server: self.server, number }, follower: None }
    }

    /// A permit to follow, for as long as it is held.
    fn follower(&self, principal: &Principal) -> Result<Arc<OwnedSemaphorePermit>, ActionError> {
        let places = self.followers.of(&principal.name, || Semaphore::new(FOLLOWERS_PER_PRINCIPAL_MAX));
        Ok(Arc::new(places.try_acquire_owned().map_err(|_| ActionError::Limit {
            what: "the number of followers of all sessions with this token",
            limit: FOLLOWERS_PER_PRINCIPAL_MAX as u64,
            hint: "follow once, and close unused streams",
        })?))
    }

    /// The events behind a position; waits for one that the caller may see, until the server stops.
    pub(super) async fn read(
        &self,
        principal: &Principal,
        read: &ReadEvents,
        mut stopping: watch::Receiver<bool>,
    ) -> Result<EventsView, ActionError> {
        let until = tokio::time::Instant::now() + read.wait;
        let mut view = self.since(principal, read.since);
        if read.follows {
            view.follower = Some(self.follower(principal)?);
        }
        loop {
            if *stopping.borrow() {
                return Err(ActionError::Restarting);
            }
            if !view.events.is_empty() || view.is_gap || read.wait.is_zero() {
                return Ok(view);
            }
            tokio::select! {
                () = self.moved(view.next) => view = self.since(principal, Some(view.next)),
                () = tokio::time::sleep_until(until) => return Ok(view),
                _ = stopping.changed() => {}
            }
        }
    }

    /// The events of this node's sessions behind a number, and the number of the newest event.
    pub(super) fn own_since(&self, number: u64, node: u16) -> (Vec<(EventPlace, Arc<ServerEvent>)>, u64) {
        let ring = locked(&self.ring);
        let is_new = |event: &&Arc<ServerEvent>| event.number > number && event.session.node() == node;
        let placed =
            |event: &Arc<ServerEvent>| (EventPlace { server: self.server, number: event.number }, Arc::clone(event));
        (ring.events.iter().filter(is_new).map(placed).collect(), *self.count.borrow())
    }

    /// Tells of every further event.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// Waits until there is an event behind this position.
    async fn moved(&self, place: EventPlace) {
        let mut count = self.count.subscribe();
        // The sender lives as long as `self`.
        let _ = count.wait_for(|count| *count > place.number).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Scope;

    fn principal(name: &str) -> Principal {
        Principal::named(name, Scope::Read)
    }

    fn numbers(view: &EventsView) -> Vec<u64> {
        view.events.iter().map(|h| h.number).collect()
    }

    #[test]
    fn one_principal_has_a_bounded_number_of_places_and_leaves_the_others_free() {
        let server_events = ServerEvents::default();
        let mut held: Vec<_> =
            (0..FOLLOWERS_PER_PRINCIPAL_MAX).map(|_| server_events.follower(&principal("ann"))).collect();
        assert!(held.iter().all(Result::is_ok));
        assert!(matches!(server_events.follower(&principal("ann")), Err(ActionError::Limit { .. })));
        assert!(server_events.follower(&principal("bob")).is_ok());
        held.pop();
        assert!(server_events.follower(&principal("ann")).is_ok());
    }

    #[test]
    // promise: rest-8
    fn a_reader_gets_its_events_in_order_and_learns_which_are_no_longer_kept() {
        let server_events = ServerEvents::default();
        let notify = |owner: &str| {
            let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
            server_events.add(session, owner.to_owned(), None, ServerEventKind::Created);
        };
        let begin = server_events.since(&principal("ann"), None).next;
        ["ann", "bob", "ann"].into_iter().for_each(&notify);
        let read = server_events.since(&principal("ann"), Some(begin));
        assert_eq!((numbers(&read), read.is_gap, read.next.number), (vec![1, 3], false, 3));
        assert_eq!(numbers(&server_events.since(&principal("ann"), Some(read.next))), [0u64; 0]);
        // Another server's place, and one that was never given.
        for strange in [EventPlace { server: !begin.server, number: 1 }, EventPlace { number: 99, ..begin }] {
            assert!(server_events.since(&principal("ann"), Some(strange)).is_gap);
        }
        (0..EVENTS_OF_ALL_KEPT).for_each(|_| notify("ann"));
        let late = server_events.since(&principal("ann"), Some(read.next));
        assert_eq!((late.is_gap, late.events.len()), (false, EVENTS_READ_MAX));
        notify("ann");
        assert!(server_events.since(&principal("ann"), Some(read.next)).is_gap);
    }
}
