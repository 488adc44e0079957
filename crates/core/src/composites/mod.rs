//! Composite actions: each expands into primitive ones, and every primitive goes through the dispatcher.
//!
//! Nothing in here knows the services, so whatever a composite does to a session is authorized and recorded in one
//! place, with its session, its text or keys, and its caller.

mod await_output;
mod await_sessions;
mod caller;
mod dialogue;
mod limited_commands;
mod named_actions;
mod startup;
mod terminal_tool;
#[cfg(test)]
mod tests;
mod time_limit;

use crate::action::{Action, ActionError, Composite, Outcome};
pub use caller::Caller;
pub use limited_commands::TimeLimits;

/// Performs a composite action.
pub async fn expand(caller: Caller<'_>, action: Composite) -> Result<Outcome, ActionError> {
    match action {
        Composite::Create(request) => {
            let created = startup::start(caller, Action::Start(request)).await?;
            Ok(Outcome::Session(Box::new(created.session)))
        }
        Composite::Execute(execute) => {
            time_limit::run(caller, *execute).await.map(|report| Outcome::Report(Box::new(report)))
        }
        Composite::NamedAction { session, name, key } => named_actions::perform(caller, session, name, key).await,
        Composite::Terminal(call) => {
            terminal_tool::call(caller, &call).await.map(|view| Outcome::Terminal(Box::new(view)))
        }
        Composite::Dialogue(dialogue) => {
            dialogue::play(caller, *dialogue).await.map(|view| Outcome::Dialogue(Box::new(view)))
        }
        Composite::AwaitOutput(request) => {
            await_output::wait(caller, *request, true).await.map(|awaited| Outcome::Awaited(Box::new(awaited)))
        }
        Composite::AwaitSessions(request) => await_sessions::wait(caller, request).await.map(Outcome::AwaitedSessions),
    }
}
