//! Types what one visitor sends, in order, and outlives the visit: what was taken from a socket is typed, or it is said
//! that it was not.

use tokio::sync::mpsc;

use crate::action::{Action, ActionError, Outcome};
use crate::auth::principal::Principal;
use crate::dispatch::Dispatcher;
use crate::ids::SessionId;
use crate::limits::INPUTS_WAITING_MAX;

/// Something to type, and its number.
type Input = (u64, Vec<u8>);
/// How that went.
pub(super) type Typed = (u64, Result<(), ActionError>);

/// The visitor's end of both ways.
pub(super) struct InputTask {
    inputs: mpsc::Sender<Input>,
    typed: mpsc::Receiver<Typed>,
}

impl InputTask {
    /// Starts a task for this visitor; it ends when its work is done and the visitor has gone.
    pub(super) fn start(dispatcher: Dispatcher, principal: Principal, session: SessionId, client: &str) -> Self {
        let (inputs, mut waiting) = mpsc::channel::<Input>(INPUTS_WAITING_MAX);
        let (tell, typed) = mpsc::channel::<Typed>(INPUTS_WAITING_MAX);
        let client = client.to_owned();
        tokio::spawn(async move {
            while let Some((seq, bytes)) = waiting.recv().await {
                // The holder remembers the key, so that a number is typed once, whatever connection it comes over.
                let key = format!("ws:{client}:{seq}");
                let action = Action::Type { session: session.clone(), bytes, key };
                let result = match Box::pin(dispatcher.dispatch(&principal, action)).await {
                    Ok(Outcome::Typed(_)) => Ok(()),
                    Ok(other) => Err(ActionError::Internal { why: format!("typing was answered with {other:?}") }),
                    Err(error) => Err(error),
                };
                // Whoever has gone finds out when it sends the same again.
                let _ = tell.send((seq, result)).await;
            }
        });
        Self { inputs, typed }
    }

    /// Whether one more can be taken; if not, the visitor's connection waits.
    pub(super) fn has_room(&self) -> bool {
        self.inputs.capacity() > 0
    }

    /// Takes one.
    pub(super) fn take(&self, seq: u64, bytes: Vec<u8>) -> Result<(), ActionError> {
        let gone = |_| ActionError::Internal { why: "the typist has gone".to_owned() };
        self.inputs.try_send((seq, bytes)).map_err(gone)
    }

    /// The next that is done.
    pub(super) async fn done(&mut self) -> Typed {
        match self.typed.recv().await {
            Some(typed) => typed,
            None => std::future::pending().await,
        }
    }
}
