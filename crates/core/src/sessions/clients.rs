//! The stdio clients of this server: which have connected, and when the grace period of one that has disconnected is over.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::limits::CLIENT_RETURNS;
use crate::machine_pause::was_paused;
use crate::mutex::locked;
use crate::principal::Detach;

/// The clients.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    known: Mutex<HashMap<String, Presence>>,
    changed: Notify,
}

#[derive(Debug, Clone, Copy)]
enum Presence {
    Connected,
    /// Disconnected; its sessions end at this time, if ever.
    Gone(Option<Instant>),
}

impl Presence {
    fn ends_at(self) -> Option<Instant> {
        match self {
            Self::Connected => None,
            Self::Gone(ends_at) => ends_at,
        }
    }
}

impl Clients {
    /// The client has connected: its sessions continue.
    pub(crate) fn connected(&self, client: &str) {
        locked(&self.known).insert(client.to_owned(), Presence::Connected);
    }

    /// The client has disconnected: its sessions end after their grace period.
    pub(crate) fn disconnected(&self, client: &str, detach: Detach) {
        let ends_at = match detach {
            Detach::Keep => None,
            // A time beyond the clock's range never comes.
            Detach::After(grace) => Instant::now().checked_add(grace),
        };
        locked(&self.known).insert(client.to_owned(), Presence::Gone(ends_at));
        self.changed.notify_one();
    }

    /// Checks a disconnected client again after this pause, unless it has connected since: one of its sessions has an open
    /// task.
    pub(super) fn later(&self, client: &str, pause: Duration) {
        locked(&self.known).entry(client.to_owned()).or_insert_with(|| Presence::Gone(Some(Instant::now() + pause)));
        self.changed.notify_one();
    }

    /// Gives the clients that could not connect while the machine was paused the time that a restart gives.
    fn spare_the_paused(&self, now: Instant) {
        for presence in locked(&self.known).values_mut() {
            if let Presence::Gone(Some(at)) = presence
                && was_paused(*at, now)
            {
                *at = now + sys::fault::scaled(CLIENT_RETURNS);
            }
        }
    }

    /// Whether this client has connected since the server started.
    pub(super) fn knows(&self, client: &str) -> bool {
        locked(&self.known).contains_key(client)
    }

    /// Whether this client has disconnected.
    pub(super) fn is_gone(&self, client: &str) -> bool {
        matches!(locked(&self.known).get(client), Some(Presence::Gone(_)))
    }

    /// Waits until a client's grace period is over, and forgets that client.
    pub(super) async fn gone(&self) -> String {
        loop {
            self.spare_the_paused(Instant::now());
            let next = {
                let mut known = locked(&self.known);
                let next = known.iter().filter_map(|(client, presence)| Some((presence.ends_at()?, client))).min();
                match next {
                    Some((at, client)) if at <= Instant::now() => {
                        let client = client.clone();
                        known.remove(&client);
                        return client;
                    }
                    next => next.map(|(at, _)| at),
                }
            };
            let over = async {
                match next {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! { () = over => {} () = self.changed.notified() => {} }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_time_to_return_after_a_pause_of_the_machine() {
        let (clients, now) = (Clients::default(), Instant::now());
        let ends_at = |client| locked(&clients.known)[client].ends_at();
        clients.disconnected("gone", Detach::After(Duration::ZERO));
        clients.disconnected("back", Detach::After(Duration::from_secs(600)));
        clients.spare_the_paused(now + Duration::from_secs(1));
        assert!(ends_at("gone").is_some_and(|at| at < now + Duration::from_secs(1)));
        let later = now + Duration::from_secs(3_600);
        clients.spare_the_paused(later);
        assert_eq!(["gone", "back"].map(ends_at), [Some(later + CLIENT_RETURNS); 2]);
    }

    #[tokio::test]
    async fn a_client_that_returns_in_time_is_not_gone_and_the_longest_gone_is_first() {
        let clients = Clients::default();
        let after = |ms| Detach::After(Duration::from_millis(ms));
        clients.disconnected("back", after(0));
        clients.disconnected("late", after(2));
        clients.disconnected("kept", Detach::Keep);
        clients.disconnected("soon", after(1));
        clients.connected("back");
        assert_eq!([clients.gone().await, clients.gone().await], ["soon", "late"]);
        clients.later("back", Duration::ZERO);
        clients.later("late", Duration::from_millis(1));
        assert_eq!(clients.gone().await, "late", "one that is here is not gone");
        let left = ["back", "kept", "soon", "late"].map(|client| clients.knows(client));
        assert_eq!(left, [true, true, false, false]);
        let gone = ["back", "kept", "soon", "never"].map(|client| clients.is_gone(client));
        assert_eq!(gone, [false, true, false, false]);
    }
}
