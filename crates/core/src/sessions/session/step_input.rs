//! The inputs of a session's steps.

use wire::FromHolder;

use super::requests::Request;
use crate::host::holders::Traces;

/// An input of the session's state machine.
#[derive(Debug)]
pub(super) enum StepInput {
    /// Frames that were received can be handled.
    Frames,
    /// There are events or output that were not read.
    Unread,
    /// The frames and the output of this turn were handled.
    Settled,
    Request(Box<Request>),
    Received(Vec<FromHolder>),
    /// The connection to the holder broke, and there is another one.
    Reconnected,
    /// The connection to the holder is lost, and the holder lives.
    Adrift,
    /// The holder has ended, so its files have their last length.
    LastTail,
    /// All output of the holder that has ended was read; what it left in its folder.
    HolderGone(Option<Traces>),
    /// So many events were published so far.
    Published {
        count: u64,
    },
    Time,
}
