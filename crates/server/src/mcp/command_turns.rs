//! The turns of a client's commands: a command waits while an earlier one of the same client in the same session is
//! unanswered, because hosts send several calls at once and expect an answer to each.
//!
//! Only calls that run a command take part; keys, input and looks concern the command that runs. Over stdio the order is
//! that of the messages: a request is noted as its message is read, before its handler runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ptyd_core::ids::SessionId;
use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Commands of one client that may wait for their turn, over all its sessions.
const WAITING_MAX: usize = 64;
/// After this time without its handler a noted request is taken for one that was refused or cancelled.
const UNHANDLED_MAX: Duration = Duration::from_secs(1);

/// The unanswered commands of one client, the earliest first.
#[derive(Debug, Default)]
pub(super) struct CommandTurns {
    queue: Mutex<Queue>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    unanswered: VecDeque<Unanswered>,
    last_ticket: u64,
}

#[derive(Debug)]
struct Unanswered {
    ticket: u64,
    /// The session's id; empty for the default one; while the request has no handler, as the call names it.
    session: String,
    /// A request that was noted and has no handler yet, and since when.
    noted: Option<(RequestId, Instant)>,
    has_turn: bool,
}

/// Why a command did not get its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoTurn {
    /// Too many wait.
    Full,
    /// An earlier command is still unanswered.
    TimedOut,
}

/// A command's place; its end lets the next command of the session go on.
#[derive(Debug)]
pub(super) struct CommandTurn {
    turns: Arc<CommandTurns>,
    ticket: u64,
}

impl Unanswered {
    /// Whether its session is given by a name that nobody has looked up yet.
    fn may_be_any(&self) -> bool {
        self.noted.is_some() && !self.session.is_empty() && SessionId::parse(&self.session).is_err()
    }
}

impl Queue {
    fn push(&mut self, session: &str, noted: Option<(RequestId, Instant)>) -> Option<u64> {
        self.give_up_unhandled();
        if self.unanswered.iter().filter(|it| !it.has_turn).count() >= WAITING_MAX {
            return None;
        }
        self.last_ticket += 1;
        let (ticket, session) = (self.last_ticket, session.to_owned());
        self.unanswered.push_back(Unanswered { ticket, session, noted, has_turn: false });
        Some(ticket)
    }

    fn give_up_unhandled(&mut self) {
        self.unanswered.retain(|it| it.noted.as_ref().is_none_or(|(_, at)| at.elapsed() < UNHANDLED_MAX));
    }

    /// The place of a request whose handler is here now.
    fn enter(&mut self, request: &RequestId, session: &str) -> Option<u64> {
        let is_it = |it: &&mut Unanswered| it.noted.as_ref().is_some_and(|(noted, _)| noted == request);
        match self.unanswered.iter_mut().find(is_it) {
            Some(place) => {
                (place.noted, place.session) = (None, session.to_owned());
                Some(place.ticket)
            }
            None => self.push(session, None),
        }
    }

    /// The time at which the command before this one is given up if it has no handler by then; `Ok` if none is before it
    /// in its session, so that it has its turn.
    fn take_turn(&mut self, ticket: u64) -> Result<(), Option<Instant>> {
        self.give_up_unhandled();
        let Some(at) = self.unanswered.iter().position(|it| it.ticket == ticket) else { return Ok(()) };
        let session = &self.unanswered[at].session;
        match self.unanswered.iter().take(at).find(|it| it.session == *session || it.may_be_any()) {
            Some(before) => Err(before.noted.as_ref().map(|(_, noted_at)| *noted_at + UNHANDLED_MAX)),
            None => {
                self.unanswered[at].has_turn = true;
                Ok(())
            }
        }
    }
}

impl CommandTurns {
    /// Notes a command as its message is read. One that finds no room is refused by its handler.
    pub fn note(&self, request: &RequestId, session: &str) {
        self.locked().push(session, Some((request.clone(), Instant::now())));
    }

    /// Waits until every earlier command in this session is answered.
    pub async fn turn(
        self: &Arc<Self>,
        request: &RequestId,
        session: &str,
        until: Instant,
    ) -> Result<CommandTurn, NoTurn> {
        let ticket = self.locked().enter(request, session).ok_or(NoTurn::Full)?;
        let turn = CommandTurn { turns: Arc::clone(self), ticket };
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let Err(given_up_at) = self.locked().take_turn(ticket) else { return Ok(turn) };
            tokio::select! {
                () = changed => {}
                () = sleep_until(given_up_at.unwrap_or(until).min(until)) => {
                    if Instant::now() >= until {
                        return Err(NoTurn::TimedOut);
                    }
                }
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CommandTurn {
    /// Whether a later command of the client waits for this one's answer.
    pub fn is_awaited(&self) -> bool {
        let queue = self.turns.locked();
        let mut own = queue.unanswered.iter().skip_while(|it| it.ticket != self.ticket);
        let session = own.next().map(|it| &it.session);
        own.any(|it| Some(&it.session) == session)
    }
}

impl Drop for CommandTurn {
    fn drop(&mut self) {
        self.turns.locked().unanswered.retain(|it| it.ticket != self.ticket);
        self.turns.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    async fn now(turns: &Arc<CommandTurns>, number: i64, session: &str) -> Result<CommandTurn, NoTurn> {
        turns.turn(&id(number), session, Instant::now()).await
    }

    #[tokio::test]
    async fn a_command_waits_for_the_earlier_ones_of_its_session_only() {
        let turns = Arc::new(CommandTurns::default());
        let first = now(&turns, 1, "a").await.expect("nothing is before it");
        let _other = now(&turns, 2, "b").await.expect("another session");
        assert_eq!(now(&turns, 3, "a").await.err(), Some(NoTurn::TimedOut));
        let second = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.turn(&id(4), "a", Instant::now() + Duration::from_secs(9)).await.is_ok() }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop(first);
        assert!(second.await.expect("no panic"));
        assert!(now(&turns, 5, "a").await.is_ok(), "what timed out or ended has no place any more");
    }

    #[tokio::test]
    async fn the_order_is_that_of_the_messages_and_not_of_the_handlers() {
        let turns = Arc::new(CommandTurns::default());
        turns.note(&id(1), "a");
        turns.note(&id(2), "a");
        assert_eq!(now(&turns, 2, "a").await.err(), Some(NoTurn::TimedOut), "the first one comes first");
        let first = now(&turns, 1, "a").await.expect("its turn");
        drop(first);
        assert!(now(&turns, 2, "a").await.is_ok());
    }

    #[tokio::test]
    async fn a_request_without_a_handler_holds_nobody_up_for_long() {
        let turns = Arc::new(CommandTurns::default());
        turns.note(&id(1), "a");
        let begun = Instant::now();
        turns.turn(&id(2), "a", begun + Duration::from_secs(9)).await.expect("its turn");
        assert_eq!(begun.elapsed().as_millis() / 100, 10);
    }

    #[tokio::test]
    async fn two_requests_of_one_number_have_two_places() {
        let turns = Arc::new(CommandTurns::default());
        let first = now(&turns, 1, "a").await.expect("nothing is before it");
        assert_eq!(now(&turns, 1, "a").await.err(), Some(NoTurn::TimedOut));
        drop(first);
        assert!(now(&turns, 1, "a").await.is_ok());
    }

    #[tokio::test]
    async fn the_number_that_waits_is_bounded() {
        let turns = Arc::new(CommandTurns::default());
        let mut running = Vec::new();
        for number in 0..2 * WAITING_MAX as i64 {
            let turn = now(&turns, number, &number.to_string()).await;
            running.push(turn.expect("commands that have their turn do not count"));
        }
        for number in 0..WAITING_MAX as i64 {
            turns.note(&id(1_000 + number), "0");
        }
        assert_eq!(now(&turns, 9_999, "0").await.err(), Some(NoTurn::Full));
    }
}
