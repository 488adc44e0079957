//! One-time tickets: authentication for browsers, which cannot set headers for a WebSocket or a page.
//!
//! A ticket is valid once, for a short time and for one place. No code in here puts it into a log or an error.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq;

use crate::action::ActionError;
use crate::ids::IdKind;
use crate::limits::{TICKET_LIFETIME, TICKETS_MAX, TICKETS_PER_PRINCIPAL_MAX};
use crate::principal::Grant;

/// 256 bits, like a token.
const RANDOM_BYTES: usize = 32;

/// The unused tickets, oldest first.
#[derive(Default)]
pub struct Tickets {
    /// The number of this server: it alone redeems what it has issued.
    node: u16,
    open: Mutex<VecDeque<(Instant, String, Grant)>>,
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets(…)")
    }
}

impl Tickets {
    /// None yet, on this node.
    pub fn on(node: u16) -> Self {
        Self { node, open: Mutex::default() }
    }

    /// Issues a ticket.
    pub fn issue(&self, grant: Grant) -> Result<String, ActionError> {
        let mut bytes = [0u8; RANDOM_BYTES];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        let text = IdKind::Ticket.id(self.node, &URL_SAFE_NO_PAD.encode(bytes));
        let now = Instant::now();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut open, now);
        let hint = "use them, or wait until they expire";
        if open.iter().filter(|(.., of)| of.principal.name == grant.principal.name).count() >= TICKETS_PER_PRINCIPAL_MAX
        {
            let (what, limit) = ("the number of this principal's open tickets", TICKETS_PER_PRINCIPAL_MAX as u64);
            return Err(ActionError::Limit { what, limit, hint });
        }
        if open.len() == TICKETS_MAX {
            return Err(ActionError::Limit { what: "the number of open tickets", limit: TICKETS_MAX as u64, hint });
        }
        open.push_back((now + TICKET_LIFETIME, text.clone(), grant));
        Ok(text)
    }

    /// Redeems a ticket and returns its grant; the ticket is used up whatever follows. The comparison takes constant
    /// time.
    pub fn redeem(&self, shown: &str) -> Option<Grant> {
        self.redeem_at(shown, Instant::now())
    }

    fn redeem_at(&self, shown: &str, now: Instant) -> Option<Grant> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        forget_old(&mut open, now);
        let at = open.iter().position(|(_, text, _)| text.as_bytes().ct_eq(shown.as_bytes()).into())?;
        open.remove(at).map(|(_, _, grant)| grant)
    }
}

fn forget_old(open: &mut VecDeque<(Instant, String, Grant)>, now: Instant) {
    while open.front().is_some_and(|(until, ..)| now >= *until) {
        open.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SessionId;
    use crate::principal::{Principal, Scope, TicketTarget};

    fn grant() -> Grant {
        let session = SessionId::parse("s0-aaaaaaaaaa").expect("an id");
        Grant { principal: Principal::named("me", Scope::Write), place: TicketTarget::Socket(session), may_write: true }
    }

    #[test]
    // promise: access-7
    fn a_ticket_is_good_once_and_not_for_long() {
        let tickets = Tickets::default();
        let (used, old) = (tickets.issue(grant()).expect("room"), tickets.issue(grant()).expect("room"));
        assert!(used != old && used.len() == "t0-".len() + 43);
        assert_eq!([tickets.redeem(""), tickets.redeem(&used[1..])], [None, None]);
        assert_eq!([tickets.redeem(&used), tickets.redeem(&used)], [Some(grant()), None]);
        assert_eq!(tickets.redeem_at(&old, Instant::now() + TICKET_LIFETIME), None);
    }

    #[test]
    // promise: access-7
    fn open_tickets_are_bounded_and_never_shown() {
        let tickets = Tickets::default();
        let of = |name: &str| tickets.issue(Grant { principal: Principal::named(name, Scope::Read), ..grant() });
        for name in 0..TICKETS_MAX / TICKETS_PER_PRINCIPAL_MAX {
            let name = name.to_string();
            (0..TICKETS_PER_PRINCIPAL_MAX).for_each(|_| drop(of(&name).expect("room")));
            assert!(matches!(of(&name), Err(ActionError::Limit { limit: 128, .. })));
        }
        assert!(matches!(of("other"), Err(ActionError::Limit { limit: 1_024, .. })));
        assert_eq!(format!("{tickets:?}"), "Tickets(…)");
    }
}
