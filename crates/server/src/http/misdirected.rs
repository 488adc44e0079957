//! A request whose body names another node: the route that has read the body gives it back, and the layer around all routes
//! forwards it.

use bytes::Bytes;

/// On a request: this server forwards what is for another node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forwarding;

/// On an answer: nothing was done, because the request is for this node.
#[derive(Debug, Clone)]
pub(crate) struct Misdirected {
    pub(crate) node: u16,
    pub(crate) body: Bytes,
}
