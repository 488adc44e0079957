//! The MCP handler's interface to the rest of the server: the dispatcher, and notice of clients that connect and
//! disconnect.
//!
//! A trait, so that tests can run the handler without a shell; [`Dispatcher`] is the only real implementation.

use std::collections::BTreeMap;

pub(super) use ptyd_core::action::Boxed;
use ptyd_core::action::Dispatch;
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::ids::SessionId;
use ptyd_core::principal::{Detach, Principal};

/// The server as the handler sees it.
pub(super) trait Server: Dispatch + 'static {
    /// The number of this server in the ids.
    fn node(&self) -> u16;
    /// Whether the server is stopping: its connections end soon, and the next server starts soon.
    fn is_stopping(&self) -> bool;
    /// Waits until the server stops.
    fn stopping(&self) -> Boxed<'static, ()>;
    /// A stdio client has connected.
    fn client_here(&self, client: &str);
    /// A stdio client of an earlier server has read so far.
    fn resume_reading<'a>(&'a self, principal: &'a Principal, read_to: &'a BTreeMap<SessionId, u64>) -> Boxed<'a, ()>;
    /// A stdio client has disconnected.
    fn client_gone(&self, client: &str, grace: Detach);
}

impl Server for Dispatcher {
    fn node(&self) -> u16 {
        self.node()
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping()
    }

    fn stopping(&self) -> Boxed<'static, ()> {
        Box::pin(self.stopping())
    }

    fn client_here(&self, client: &str) {
        self.client_here(client);
    }

    fn resume_reading<'a>(&'a self, principal: &'a Principal, read_to: &'a BTreeMap<SessionId, u64>) -> Boxed<'a, ()> {
        Box::pin(self.resume_reading(principal, read_to))
    }

    fn client_gone(&self, client: &str, grace: Detach) {
        self.client_gone(client, grace);
    }
}
