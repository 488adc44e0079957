//! Performs each primitive action by the function of its file in `actions/`.

use std::sync::Arc;

use tokio::time::Instant;

use super::actions::{
    commands, create, default_session, drain, environment, execute, idempotency, input, list, missed_ends,
    named_secrets, output, processes, purge, recording_extent, rename, resize, restart, screen, search_range, secret,
    signals, take_over, task, terminate, tokens, wait_from_cursor, watch,
};
use super::approvals::record_decision;
use super::on_disk::on_disk;
use super::services::Services;
use super::target::Target;
use crate::action::{Action, ActionError, CapabilitiesView, ConfinementTier, EndReason, Outcome, SecretRefusal};
use crate::principal::Principal;

/// Performs one action. Only the dispatcher calls this.
pub(crate) async fn perform(
    services: &Arc<Services>,
    principal: &Principal,
    action: &Action,
    mut target: Option<Target>,
) -> Result<Outcome, ActionError> {
    let key = target.as_ref().and_then(Target::key);
    let mut is_again = false;
    loop {
        let (session, reason) = match attempt(services, principal, action, target).await {
            Err(ActionError::Ended { session, reason }) => (session, reason),
            result => return result,
        };
        // The same request has ended it, perhaps; its records say so.
        if let Some(key) = key
            && let Some(result) = idempotency::performed_before(services, principal, action, key).await
        {
            return result;
        }
        match reason {
            // The actor ended before it took the request: the session is an ended one now, and is tried again as such.
            EndReason::DuringRequest if !is_again => target = Target::of(services, principal, action).await?,
            // A new default session whose start-up file exits has just ended, too; its records say how.
            EndReason::DuringRequest => {
                let live = services.sessions.live(principal, &session).await;
                return Err(live.map_or_else(|error| error, |handle| handle.why_gone()));
            }
            reason => return Err(ActionError::Ended { session, reason }),
        }
        is_again = true;
    }
}

/// Performs an action that runs or types something in its session.
async fn run_or_type(
    services: &Arc<Services>,
    principal: &Principal,
    action: &Action,
    target: Target,
) -> Result<Outcome, ActionError> {
    let report = match action {
        Action::Execute(request) => execute::execute(services, principal, request, target).await?,
        Action::Input(request) => input::input(services, principal, request, target).await?,
        Action::Type { bytes, key, .. } => return watch::types(bytes, key, target).await.map(Outcome::Typed),
        _ => return Err(unprepared()),
    };
    Ok(Outcome::Report(Box::new(report)))
}

fn unprepared() -> ActionError {
    ActionError::Internal { why: "an action was not prepared by the dispatcher; this is a bug".to_owned() }
}

async fn attempt(
    services: &Arc<Services>,
    principal: &Principal,
    action: &Action,
    target: Option<Target>,
) -> Result<Outcome, ActionError> {
    if let Some(target) = target {
        return run_or_type(services, principal, action, target).await;
    }
    match action {
        Action::Composite(_) | Action::Execute(_) | Action::Input(_) | Action::Type { .. } => Err(unprepared()),
        Action::Start(request) => {
            create::create(services, principal, request).await.map(|c| Outcome::Created(Box::new(c)))
        }
        Action::Restart(session) => {
            restart::restart(services, principal, session).await.map(|c| Outcome::Created(Box::new(c)))
        }
        Action::StartupDone { session, failed } => {
            create::startup_done(services, principal, session, failed).await.map(|s| Outcome::Session(Box::new(s)))
        }
        Action::List(list) => list::list(services, principal, list).await,
        Action::FindSession(text) => services.sessions.find_session(principal, text).await.map(Outcome::SessionId),
        Action::Show(id) => Ok(Outcome::Session(Box::new(services.sessions.show(principal, id).await?))),
        Action::Terminate(terminate) => {
            let ended = if terminate.purges {
                purge::purge(services, principal, terminate).await
            } else {
                terminate::terminate(services, principal, terminate).await
            };
            ended.map(|ended| Outcome::Terminated(Box::new(ended)))
        }
        Action::Rename { session, name } => {
            rename::rename(services, principal, session, name).await.map(|s| Outcome::Session(Box::new(s)))
        }
        Action::Resize { session, cols, rows } => {
            resize::resize(services, principal, session, *cols, *rows).await.map(|s| Outcome::Session(Box::new(s)))
        }
        Action::Signal { session, target, signo } => {
            signals::signal(services, principal, session, *target, *signo).await
        }
        Action::FindNamedAction { session, name } => {
            input::named_action(services, principal, session, name).await.map(Outcome::NamedAction)
        }
        Action::Processes(session) => processes::processes(services, principal, session).await.map(Outcome::Processes),
        Action::Environment(session) => {
            environment::environment(services, principal, session).await.map(|e| Outcome::Environment(Box::new(e)))
        }
        Action::Signals(session) => signals::signals(services, principal, session).await.map(Outcome::Signals),
        Action::Commands { session, limit, offset } => {
            commands::commands(services, principal, session, *limit, *offset).await
        }
        Action::Command { session, command, budget } => {
            commands::command(services, principal, session, *command, *budget)
                .await
                .map(|r| Outcome::Report(Box::new(r)))
        }
        Action::AskSecret(session) => {
            let request = secret::ask_secret(services, principal, session).await?;
            Ok(Outcome::SecretRequest(request.map(Box::new)))
        }
        Action::ShowSecretRequest(name) => {
            let request = secret::show_secret_request(services, principal, name).await?;
            Ok(Outcome::SecretRequest(Some(Box::new(request))))
        }
        Action::TypeSecret { name, secret } => {
            secret::type_secret(services, principal, name, secret).await.map(Outcome::Typed)
        }
        Action::Take(take) => take_over::take(services, principal, take).await,
        Action::GiveBack { session, forces } => {
            take_over::give_back(services, principal, session, *forces).await.map(|s| Outcome::Session(Box::new(s)))
        }
        Action::Watch { session, since } => watch::watch(services, principal, session, *since).await,
        Action::Ticket { place, may_write } => watch::ticket(services, principal, place.clone(), *may_write).await,
        Action::LogIn(_) => Ok(Outcome::Recorded),
        Action::Wait { session, wait, command, budget, moves_cursor } => {
            let wait =
                wait_from_cursor::wait(services, principal, session, wait.clone(), *command, *budget, *moves_cursor);
            wait.await.map(|r| Outcome::Report(Box::new(r)))
        }
        Action::Output(read) => output::output(services, principal, read).await.map(Outcome::Output),
        Action::Search(search) => search_range::search(services, principal, search).await.map(Outcome::Found),
        Action::Recording(session, version) => {
            recording_extent::recording(services, principal, session, *version).await.map(Outcome::Recording)
        }
        Action::Screen(session) => {
            let handle = services.sessions.live(principal, session).await?;
            screen::screen(&services.read_cursors, principal, &handle).await.map(Outcome::Screen)
        }
        Action::Task(task) => task::task(services, principal, task).await.map(|t| Outcome::Task(Box::new(t))),
        Action::TellTask { task, text } => {
            task::tell_task(services, principal, task, text).await.map(|t| Outcome::Task(Box::new(t)))
        }
        Action::AnswerTask { task, key, reply } => {
            task::answer_task(services, principal, task, *key, *reply).await.map(|t| Outcome::Task(Box::new(t)))
        }
        Action::CancelTask(task) => {
            task::cancel_task(services, principal, task).await.map(|t| Outcome::Task(Box::new(t)))
        }
        Action::Locate(locate) => default_session::locate(services, principal, locate).await.map(Outcome::Located),
        Action::Unread { session, budget } => {
            default_session::unread(services, principal, session, *budget).await.map(|r| Outcome::Report(Box::new(r)))
        }
        Action::Missed(read) => Ok(Outcome::Missed(missed_ends::missed(services, principal, read).await)),
        Action::Earlier(earlier) => default_session::earlier(services, principal, earlier).await,
        Action::FinalCommands(session) => default_session::final_commands(services, principal, session).await,
        Action::Events(read) => {
            let stopping = services.sessions.stop_signal();
            services.server_events.read(principal, read, stopping).await.map(Outcome::Events)
        }
        Action::Tokens => Ok(Outcome::Tokens(services.tokens.list())),
        Action::MakeToken(request) => tokens::make(services, principal, request).await.map(Outcome::FreshToken),
        Action::RevokeToken { name } => tokens::revoke(services, principal, name).await.map(Outcome::Token),
        Action::NamedSecrets => named_secrets::named_secrets(services, principal).await.map(Outcome::NamedSecrets),
        Action::SetSecret { name, value } => {
            named_secrets::set_secret(services, principal, name, value).await.map(Outcome::NamedSecret)
        }
        Action::RemoveSecret { name } => {
            named_secrets::remove_secret(services, principal, name).await.map(Outcome::NamedSecret)
        }
        Action::Approvals => Ok(Outcome::Approvals(services.approvals.list(principal, Instant::now()))),
        Action::AskApproval(id) => {
            let page = services.approvals.page(principal, id, Instant::now());
            Ok(Outcome::ApprovalPage(page.filter(|_| services.settings.secret_page)))
        }
        Action::ShowApproval(name) => {
            let view = services.approvals.on_page(principal, name, Instant::now());
            let view = view.ok_or(ActionError::SecretRefused(SecretRefusal::Unknown))?;
            Ok(Outcome::Approval(Box::new(view)))
        }
        Action::DecideApproval { id, decision } => {
            let decided = record_decision::decide_approval(services, principal, id, *decision).await?;
            Ok(Outcome::Approval(Box::new(decided)))
        }
        Action::Capabilities => {
            let host = Arc::clone(&services.backends.host);
            let tier = move |tier| (tier, host.confinement_hindrance(tier));
            let confinement = on_disk(move || Ok(ConfinementTier::ALL.map(tier).to_vec())).await?;
            Ok(Outcome::Capabilities(CapabilitiesView { confinement }))
        }
        Action::SetDrain(is_draining) => drain::set(services, *is_draining).await.map(Outcome::Drain),
        Action::Drain(read) => drain::read(services, read).await.map(Outcome::Drain),
        Action::Audit(read) => services.server_events.audit.read(read).await.map(Outcome::Audit),
    }
}
