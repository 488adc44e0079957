//! The turns of a client's commands: a command waits while an earlier one of the same client in the same session is
//! unanswered, because hosts send several calls at once and expect an answer to each.
//!
//! Keys, input and looks concern what runs and wait for nothing. A command waits for an earlier input or key of its client,
//! too, though not for long: what that does decides which shell is to run the command. Over stdio the order is that of the
//! messages: a request is noted as its message is read, before its handler runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ptyd_core::ids::SessionId;
use ptyd_core::limits::INSIDE_SETTLES;
use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Commands of one client that may wait for their turn, over all its sessions.
const WAITING_MAX: usize = 64;
/// After this time without its handler a noted request is taken for one that was refused or cancelled.
const UNHANDLED_MAX: Duration = Duration::from_secs(1);

/// How a call takes part in a session, which it names so (empty for the default one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InTurn<'a> {
    /// It runs a command, and waits so long for its end if it does not say how long.
    Command { session: &'a str, timeout: Duration },
    /// It types at what runs there, or interrupts it.
    Input { session: &'a str },
}

impl<'a> InTurn<'a> {
    pub fn session(self) -> &'a str {
        match self {
            Self::Command { session, .. } | Self::Input { session } => session,
        }
    }
}

/// The unanswered commands and inputs of one client, the earliest first.
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
    /// A request that was noted and has no handler yet.
    noted: Option<RequestId>,
    since: Instant,
    is_input: bool,
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

/// The place of a command or an input; its end lets the next command of the session go on.
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

    /// Until when it holds up later commands at most.
    fn holds_until(&self) -> Option<Instant> {
        let handled = self.noted.as_ref().map(|_| self.since + UNHANDLED_MAX);
        let settled = self.is_input.then(|| self.since + INSIDE_SETTLES);
        handled.into_iter().chain(settled).min()
    }
}

impl Queue {
    fn push(&mut self, in_turn: InTurn<'_>, noted: Option<RequestId>) -> Option<u64> {
        self.give_up_unhandled();
        if self.unanswered.iter().filter(|it| !it.has_turn).count() >= WAITING_MAX {
            return None;
        }
        self.last_ticket += 1;
        let is_input = matches!(in_turn, InTurn::Input { .. });
        self.unanswered.push_back(Unanswered {
            ticket: self.last_ticket,
            session: in_turn.session().to_owned(),
            has_turn: is_input && noted.is_none(),
            noted,
            since: Instant::now(),
            is_input,
        });
        Some(self.last_ticket)
    }

    fn give_up_unhandled(&mut self) {
        self.unanswered.retain(|it| it.noted.is_none() || it.since.elapsed() < UNHANDLED_MAX);
    }

    /// The place of a request whose handler is here now.
    fn enter(&mut self, request: &RequestId, in_turn: InTurn<'_>) -> Option<u64> {
        match self.unanswered.iter_mut().find(|it| it.noted.as_ref() == Some(request)) {
            Some(place) => {
                (place.noted, place.session) = (None, in_turn.session().to_owned());
                place.has_turn = place.is_input;
                Some(place.ticket)
            }
            None => self.push(in_turn, None),
        }
    }

    /// The time at which the call before this one holds it up no more, if there is one; `Ok` if none is before it in its
    /// session, so that it has its turn.
    fn take_turn(&mut self, ticket: u64) -> Result<(), Option<Instant>> {
        self.give_up_unhandled();
        let Some(at) = self.unanswered.iter().position(|it| it.ticket == ticket) else { return Ok(()) };
        let (session, now) = (&self.unanswered[at].session, Instant::now());
        let is_before = |it: &&Unanswered| {
            let holds = it.holds_until().is_none_or(|until| now < until);
            holds && (it.session == *session || it.may_be_any())
        };
        match self.unanswered.iter().take(at).find(is_before) {
            Some(before) => Err(before.holds_until()),
            None => {
                self.unanswered[at].has_turn = true;
                Ok(())
            }
        }
    }
}

impl CommandTurns {
    /// Notes a call as its message is read. A command that finds no room is refused by its handler.
    pub fn note(&self, request: &RequestId, in_turn: InTurn<'_>) {
        self.locked().push(in_turn, Some(request.clone()));
        self.changed.notify_waiters();
    }

    /// The handler of an input is here, which waits for nothing.
    pub fn input(self: &Arc<Self>, request: &RequestId, session: &str) -> Option<CommandTurn> {
        let ticket = self.locked().enter(request, InTurn::Input { session });
        // Its session may be another one than a later command has feared.
        self.changed.notify_waiters();
        ticket.map(|ticket| CommandTurn { turns: Arc::clone(self), ticket })
    }

    /// Waits until every earlier command in this session is answered, and every earlier input, or has had its time.
    pub async fn turn(
        self: &Arc<Self>,
        request: &RequestId,
        session: &str,
        until: Instant,
    ) -> Result<CommandTurn, NoTurn> {
        let command = InTurn::Command { session, timeout: Duration::ZERO };
        let ticket = self.locked().enter(request, command).ok_or(NoTurn::Full)?;
        let turn = CommandTurn { turns: Arc::clone(self), ticket };
        // A call that waits for a person ends its wait.
        self.changed.notify_waiters();
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let Err(held_until) = self.locked().take_turn(ticket) else { return Ok(turn) };
            tokio::select! {
                () = changed => {}
                () = sleep_until(held_until.unwrap_or(until).min(until)) => {
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
        own.any(|it| !it.is_input && Some(&it.session) == session)
    }

    /// Waits until a later command of the client waits for this one's answer.
    pub async fn awaited(&self) {
        loop {
            let mut changed = std::pin::pin!(self.turns.changed.notified());
            changed.as_mut().enable();
            if self.is_awaited() {
                return;
            }
            changed.await;
        }
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

    fn command(session: &str) -> InTurn<'_> {
        InTurn::Command { session, timeout: Duration::ZERO }
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
        turns.note(&id(1), command("a"));
        turns.note(&id(2), command("a"));
        assert_eq!(now(&turns, 2, "a").await.err(), Some(NoTurn::TimedOut), "the first one comes first");
        let first = now(&turns, 1, "a").await.expect("its turn");
        drop(first);
        assert!(now(&turns, 2, "a").await.is_ok());
    }

    #[tokio::test]
    async fn a_request_without_a_handler_does_not_delay_others_for_long() {
        let turns = Arc::new(CommandTurns::default());
        let begun = Instant::now();
        turns.note(&id(1), command("a"));
        turns.turn(&id(2), "a", begun + Duration::from_secs(3_600)).await.expect("its turn");
        assert!(begun.elapsed() >= UNHANDLED_MAX);
    }

    #[tokio::test]
    async fn a_command_waits_for_an_earlier_input_which_itself_waits_for_nothing() {
        let turns = Arc::new(CommandTurns::default());
        let _running = now(&turns, 1, "b").await.expect("nothing is before it");
        turns.note(&id(2), InTurn::Input { session: "a" });
        turns.note(&id(3), command("a"));
        assert_eq!(now(&turns, 3, "a").await.err(), Some(NoTurn::TimedOut), "the input comes first");
        let input = turns.input(&id(2), "a").expect("its place");
        assert!(turns.input(&id(4), "b").is_some(), "although a command is before it");
        assert_eq!(now(&turns, 5, "a").await.err(), Some(NoTurn::TimedOut), "the input is not answered");
        drop(input);
        assert!(now(&turns, 6, "a").await.is_ok());
    }

    #[tokio::test]
    async fn unanswered_input_does_not_delay_commands_for_long() {
        let turns = Arc::new(CommandTurns::default());
        let begun = Instant::now();
        let _input = turns.input(&id(1), "a").expect("its place");
        let turn = turns.turn(&id(2), "a", begun + Duration::from_secs(3_600)).await.expect("its turn");
        assert!(begun.elapsed() >= INSIDE_SETTLES);
        assert!(!turn.is_awaited());
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
            turns.note(&id(1_000 + number), command("0"));
        }
        assert_eq!(now(&turns, 9_999, "0").await.err(), Some(NoTurn::Full));
    }
}
