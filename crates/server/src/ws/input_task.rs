//! Types the input of one client, in order. The task outlives the connection: input that was accepted is typed, or its
//! failure is reported.

use std::sync::Arc;

use tokio::sync::mpsc;

use ptyd_core::action::{Action, ActionError, Outcome};
use ptyd_core::dispatch::Dispatcher;
use ptyd_core::ids::SessionId;
use ptyd_core::lane::Lane;
use ptyd_core::limits::INPUTS_WAITING_MAX;
use ptyd_core::principal::Principal;

/// An input with its key and its number; the client has numbered it, or else learns only of a failure.
type Input = (String, Option<u64>, Vec<u8>);
/// The result of an input.
pub(super) type Typed = (Option<u64>, Result<(), ActionError>);

/// The connection's end of both channels.
pub(super) struct InputTask {
    inputs: mpsc::Sender<Input>,
    typed: mpsc::Receiver<Typed>,
}

impl InputTask {
    /// Starts a task for this client; it ends when its work is done and the connection is gone.
    pub(super) fn start(dispatcher: Dispatcher, principal: Principal, session: SessionId, lane: Arc<Lane>) -> Self {
        let (inputs, mut waiting) = mpsc::channel::<Input>(INPUTS_WAITING_MAX);
        let (tell, typed) = mpsc::channel::<Typed>(INPUTS_WAITING_MAX);
        tokio::spawn(async move {
            while let Some((key, seq, bytes)) = waiting.recv().await {
                let action = Action::Type { session: session.clone(), bytes, key };
                let result = match lane.small(Box::pin(dispatcher.dispatch(&principal, action))).await {
                    Ok(Outcome::Typed(_)) => Ok(()),
                    Ok(other) => Err(ActionError::Internal { why: format!("typing was answered with {other:?}") }),
                    Err(error) => Err(error),
                };
                // A disconnected client learns the result when it sends the same input again.
                let _ = tell.send((seq, result)).await;
            }
        });
        Self { inputs, typed }
    }

    /// Whether there is room for another input; if not, the connection is not read.
    pub(super) fn has_room(&self) -> bool {
        self.inputs.capacity() > 0
    }

    /// Accepts an input. The holder remembers its key, so that it is typed once, whatever connection it comes over.
    pub(super) fn take(&self, key: String, seq: Option<u64>, bytes: Vec<u8>) -> Result<(), ActionError> {
        let gone = |_| ActionError::Internal { why: "the input task has ended".to_owned() };
        self.inputs.try_send((key, seq, bytes)).map_err(gone)
    }

    /// The next result.
    pub(super) async fn done(&mut self) -> Typed {
        match self.typed.recv().await {
            Some(typed) => typed,
            None => std::future::pending().await,
        }
    }
}
