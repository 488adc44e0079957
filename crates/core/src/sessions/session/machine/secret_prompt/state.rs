//! The present prompt for a secret.

use tokio::sync::oneshot;

/// The present prompt for a secret. Its number changes when the program reads no more, and with every input: what is
/// typed for one prompt must not reach the next.
#[derive(Debug, Default)]
pub(crate) struct SecretPrompts {
    pub(super) number: u64,
    /// The process that reads.
    pub(super) reader: Option<u32>,
    /// Those who wait for the end of the present prompt.
    pub(super) over: Vec<oneshot::Sender<()>>,
}
