//! Adoption: how sessions get their actor again after a restart of the server or a fault, and what follows the end of an actor.
//!
//! Sessions from before this server are adopted in the background. A session counts as live as long as its holder
//! lives, whether the holder answers or not. It is recorded as ended only once its holder is known to have ended, or no
//! process can be found that holds it.
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use wire::{PROTOCOL, ToHolder};

use super::seat::{SessionFiles, seat};
use super::state::Adopting;
use crate::host::Identity;
use crate::host::holders::{self, Liveness, NoGreeting, SessionFolder, greeting, speaks_another_protocol};
use crate::limits::{self, FAULT_PAUSE, FAULTS_MAX};
use crate::principal::Detach;
use crate::sessions::concurrency_limits::SessionPlace;
use crate::sessions::ended::unwitnessed_end;
use crate::sessions::resource_limits;
use crate::sessions::services::Services;
use crate::sessions::session::{Actor, Session};
use crate::sessions::shared::Shared;
use crate::sessions::unreachable::{Hindrance, Unreachable, does_not_answer};

/// A timeout that never expires.
const FOR_EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The result of one attempt.
enum AdoptionResult {
    /// The session has its actor, or is recorded as ended.
    Settled,
    /// The attempt is to be repeated.
    Not(Hindrance, String),
}

/// Adopts a session again whose actor ended before the session did.
async fn adopt_again(services: Arc<Services>, shared: Arc<Shared>, met: Option<Identity>) {
    let (id, folder) = (shared.id.clone(), SessionFolder::clone(&shared.folder));
    let adopting = Adopting::new(id, folder, Some(shared.row(None)), met);
    drop(shared);
    adopt(services, adopting).await;
}

/// Leaves a session alone that this server cannot read, until its holder has ended.
async fn leave_alone(services: Arc<Services>, shared: Arc<Shared>, why: String) {
    let (id, folder) = (shared.id.clone(), SessionFolder::clone(&shared.folder));
    let adopting = Adopting::new(id, folder, Some(shared.row(None)), None);
    drop(shared);
    mark_as(&services, &adopting, Hindrance::Faulty, why);
    if let Liveness::Alive(holder) = services.backends.holders.liveness(&adopting.folder, None) {
        let mut stopping = services.sessions.stop_signal();
        tokio::select! {
            _ = services.backends.holders.ends_within(holder, FOR_EVER) => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
    }
    adopt(services, adopting).await;
}

/// Adopts a session, or records its end; retries until one of both succeeds.
pub(in crate::sessions) async fn adopt(services: Arc<Services>, mut adopting: Adopting) {
    let mut pause = limits::ADOPT_AGAIN_MIN;
    let mut stopping = services.sessions.stop_signal();
    let mut place = tokio::select! {
        place = session_place(&services, &mut adopting) => place,
        _ = stopping.wait_for(|stopping| *stopping) => return,
    };
    loop {
        let tried = tokio::select! {
            tried = try_to_adopt(&services, &mut adopting, &mut place) => tried,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        let (unreachable_reason, why) = match tried {
            AdoptionResult::Settled => break,
            AdoptionResult::Not(unreachable_reason, why) => (unreachable_reason, why),
        };
        if unreachable_reason != Hindrance::Silent || adopting.since.elapsed() >= limits::ADOPT_PATIENCE {
            mark_as(&services, &adopting, unreachable_reason, why);
            services.sessions.adoption.unexamined.is_settled(&mut adopting);
        }
        let ends = async {
            match services.backends.holders.liveness(&adopting.folder, adopting.met) {
                Liveness::Alive(holder) if unreachable_reason == Hindrance::Silent => {
                    services.backends.holders.ends_within(holder, pause).await
                }
                // Damage does not heal, and a holder keeps its protocol: only its end changes anything.
                Liveness::Alive(holder) => services.backends.holders.ends_within(holder, FOR_EVER).await,
                _ => false,
            }
        };
        let paused = async {
            if !ends.await {
                tokio::time::sleep_until(Instant::now() + pause).await;
            }
        };
        tokio::select! {
            () = paused => {}
            _ = stopping.wait_for(|stopping| *stopping) => return,
        }
        pause = (pause * 2).min(limits::ADOPT_AGAIN_MAX);
    }
    services.sessions.unmark(&adopting.id);
    services.sessions.adoption.unexamined.is_settled(&mut adopting);
}

/// Waits until the server has descriptors for the session; `None` if its holder has ended meanwhile.
async fn session_place(services: &Services, adopting: &mut Adopting) -> Option<SessionPlace> {
    let places = &services.launcher.places;
    if let Ok(place) = places.take() {
        return Some(place);
    }
    mark_as(services, adopting, Hindrance::Silent, places.why());
    services.sessions.adoption.unexamined.is_settled(adopting);
    let mut next = std::pin::pin!(places.next());
    loop {
        // To wait for the holder's end itself would take a descriptor.
        match tokio::time::timeout(limits::ADOPT_AGAIN_MAX, &mut next).await {
            Ok(place) => return place,
            Err(_)
                if matches!(services.backends.holders.liveness(&adopting.folder, adopting.met), Liveness::Alive(_)) => {
            }
            Err(_) => return None,
        }
    }
}

fn mark_as(services: &Services, adopting: &Adopting, unreachable_reason: Hindrance, why: String) {
    let Adopting { id, folder, row, met, .. } = adopting;
    let unreachable = Unreachable::new(id, folder.clone(), row.as_ref(), (unreachable_reason, why), *met);
    services.create_keys.remember_key(&unreachable.meta, id);
    services.sessions.mark(unreachable);
}

async fn try_to_adopt(
    services: &Arc<Services>,
    adopting: &mut Adopting,
    place: &mut Option<SessionPlace>,
) -> AdoptionResult {
    let (mut connection, met) = match services.backends.holders.connect(&adopting.folder) {
        Ok(connected) => connected,
        Err(e) if holders::is_passing(&e) => {
            return AdoptionResult::Not(Hindrance::Silent, format!("its holder cannot be reached now: {e}"));
        }
        Err(e) => return without_socket(services, adopting, &e).await,
    };
    adopting.met = met.or(adopting.met);
    if met.is_some_and(|holder| services.backends.holders.is_above_this_server(holder)) {
        let why = "this server runs inside this session, and a holder refuses programs of its own session; start the \
                   server outside of it";
        mark_as(services, adopting, Hindrance::Silent, why.to_owned());
        services.sessions.adoption.unexamined.is_settled(adopting);
        return AdoptionResult::Not(Hindrance::Silent, why.to_owned());
    }
    connection.send(&ToHolder::Hello { protocol: PROTOCOL, attaches: true });
    let greeted = {
        let mut greeting = std::pin::pin!(greeting(&mut connection));
        match tokio::time::timeout_at(adopting.since + limits::ADOPT_PATIENCE, &mut greeting).await {
            Ok(greeted) => greeted,
            Err(_) => {
                mark_as(services, adopting, Hindrance::Silent, does_not_answer(adopting.met));
                services.sessions.adoption.unexamined.is_settled(adopting);
                // The Hello comes when the holder continues; its end ends the connection.
                greeting.await
            }
        }
    };
    let early = match greeted {
        Ok(early) => early,
        Err(NoGreeting::Foreign(protocol)) => {
            return AdoptionResult::Not(Hindrance::Foreign, speaks_another_protocol(protocol));
        }
        Err(NoGreeting::Refused(_) | NoGreeting::Ended(_)) => {
            return AdoptionResult::Not(Hindrance::Silent, "the connection to its holder broke".to_owned());
        }
    };
    let opened = SessionFiles::open(&services.backends, &adopting.id, &adopting.folder);
    services.server_events.metrics.adopted(opened.is_ok());
    let opened = match opened {
        Ok(opened) => opened,
        Err(e) if holders::is_passing(&e) => {
            return AdoptionResult::Not(Hindrance::Silent, format!("its folder cannot be opened now: {e}"));
        }
        Err(e) => return AdoptionResult::Not(Hindrance::Damaged, format!("its files are damaged: {e}")),
    };
    let (handle, actor) = seat(services, opened, connection, early, adopting.row.as_ref());
    run(services, actor, place.take());
    check_client(services, &handle.shared);
    if adopting.row.is_none() {
        // The store was lost, and the actor has only the newest commands.
        let (services, id) = (Arc::clone(services), adopting.id.clone());
        let _ = tokio::task::spawn_blocking(move || drop(unwitnessed_end::record(&services, &id))).await;
    }
    sys::fault::point("adopt");
    AdoptionResult::Settled
}

/// A client from before the restart counts as disconnected until it connects again. It has some time for that, because its
/// `ptyd mcp` lives on and looks for this server.
fn check_client(services: &Services, shared: &Shared) {
    let Some(client) = &shared.meta.client else { return };
    if !services.clients.knows(client) {
        let detach = match shared.meta.detach {
            Detach::Keep => Detach::Keep,
            Detach::After(grace) => Detach::After(grace.max(sys::fault::scaled(limits::CLIENT_RETURNS))),
        };
        services.clients.disconnected(client, detach);
    }
}

/// No process listens on the socket: the holder has ended, does not listen yet, or its socket was removed.
async fn without_socket(services: &Arc<Services>, adopting: &Adopting, error: &io::Error) -> AdoptionResult {
    let liveness = services.backends.holders.liveness(&adopting.folder, adopting.met);
    match liveness {
        Liveness::Alive((pid, _)) => {
            let why = format!("its holder (process {pid}) cannot be reached at its socket: {error}");
            return AdoptionResult::Not(Hindrance::Silent, why);
        }
        Liveness::MayLive(why) => {
            let why = format!("its holder cannot be reached at its socket ({error}), and may live: {why}");
            return AdoptionResult::Not(Hindrance::Silent, why);
        }
        Liveness::NeverBegan => {
            if let Err(e) = unwitnessed_end::give_up(&services.backends, &adopting.folder) {
                return AdoptionResult::Not(Hindrance::Silent, format!("its holder is about to begin: {e}"));
            }
            tracing::info!(session = %adopting.id, "removed: its creation was cut short before anything ran in it");
        }
        Liveness::Dead(dead)
            if unwitnessed_end::is_unborn(&services.backends, &adopting.folder, adopting.row.as_ref()) =>
        {
            let (services, id, folder) = (Arc::clone(services), adopting.id.clone(), adopting.folder.clone());
            let removed = tokio::task::spawn_blocking(move || {
                unwitnessed_end::remove_unborn(&services.backends, &id, &folder, dead)
            })
            .await;
            if let Ok(Err(e)) = removed {
                return AdoptionResult::Not(Hindrance::Silent, format!("its folder cannot be removed: {e}"));
            }
            tracing::info!(session = %adopting.id, "removed: its holder has ended before it recorded anything");
        }
        Liveness::Dead(_) | Liveness::Copy(_) | Liveness::Unknown(_) => {
            let (services, id, row) = (Arc::clone(services), adopting.id.clone(), adopting.row.clone());
            let _ = tokio::task::spawn_blocking(move || unwitnessed_end::bury(&services, &id, row, liveness)).await;
        }
    }
    AdoptionResult::Settled
}

fn actor_ended(services: &Services, session: &Session) {
    if session.cx.is_over() {
        resource_limits::remove_group(&*services.backends.host, &session.cx.shared.spec);
        session.cx.shared.remove_secret_files();
        services.backends.end_container(&session.cx.shared.id, &session.cx.shared.meta);
    }
    services.sessions.remove(&session.cx.shared.id);
    if session.cx.is_over() {
        services.approvals.forget_session(&session.cx.shared.id);
    }
    services.read_cursors.has_ended(&session.cx.shared.id);
}

/// Runs the actor of a session.
pub(super) fn run(services: &Arc<Services>, actor: Box<Actor>, place: Option<SessionPlace>) {
    tokio::spawn(watch_over(Arc::clone(services), actor, place, services.sessions.stop_signal()));
}

/// Runs the actor to its end, and adopts its session again if that has not ended. Boxed because the future is
/// recursive; what follows the actor's end is boxed so that it takes no memory before.
fn watch_over(
    services: Arc<Services>,
    actor: Box<Actor>,
    place: Option<SessionPlace>,
    stopping: watch::Receiver<bool>,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        let shared = Arc::clone(&actor.session.cx.shared);
        let ended = tokio::spawn(actor.run(stopping)).await;
        drop(place);
        match ended {
            Ok(actor) if actor.session.cx.is_adrift() && !services.sessions.is_stopping() => {
                let met = actor.session.cx.holder();
                drop(actor);
                // Two servers that displace each other must not do so in a busy loop.
                tokio::time::sleep_until(Instant::now() + FAULT_PAUSE).await;
                Box::pin(adopt_again(services, shared, met)).await;
            }
            Ok(actor) => actor_ended(&services, &actor.session),
            Err(fault) if fault.is_panic() => match services.sessions.adoption.pause_after_fault(&shared.id) {
                Some(pause) => {
                    tracing::error!(session = %shared.id, ?pause, "the session's task panicked (a bug in ptyd); the session is adopted again");
                    // A session that fails at once must not keep a CPU busy.
                    tokio::time::sleep_until(Instant::now() + pause).await;
                    Box::pin(adopt_again(services, shared, None)).await;
                }
                None => {
                    tracing::error!(session = %shared.id, "the session's task panicked (a bug in ptyd) {FAULTS_MAX} times in a row");
                    let why = format!(
                        "reading its output crashed this server's session task {FAULTS_MAX} times in a row (a bug in ptyd); \
                         the raw bytes can be read (view=raw), and another version may read the rest"
                    );
                    Box::pin(leave_alone(services, shared, why)).await;
                }
            },
            // The runtime is shutting down.
            Err(_) => {}
        }
    })
}
