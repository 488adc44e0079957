//! Lists sessions: live ones from what their actors have published, ended ones from the store, a page at a time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use crate::action::{ActionError, List, Outcome, SessionPage, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::principal::Principal;
use crate::sessions::handle::Handle;
use crate::sessions::known_sessions::may_see;
use crate::sessions::services::Services;
use crate::sessions::session::Request;
use crate::sessions::session_metadata::SessionMetadata;
use crate::sessions::timeline::time;
use crate::sessions::unreachable::Unreachable;
use crate::store::SessionQuery;

/// A session in a list, before its page is known.
enum Listed {
    /// Its actor has published this status.
    Published(Handle, SessionStatus),
    View(Box<SessionView>),
}

impl Listed {
    fn status(&self) -> SessionStatus {
        match self {
            Self::Published(_, status) => *status,
            Self::View(view) => view.status,
        }
    }

    fn order(&self) -> (SystemTime, &SessionId) {
        match self {
            Self::Published(handle, _) => (time(handle.shared.meta.created_us), &handle.shared.id),
            Self::View(view) => (view.created_at, &view.id),
        }
    }
}

pub(in crate::sessions) async fn list(
    services: &Arc<Services>,
    principal: &Principal,
    list: &List,
) -> Result<Outcome, ActionError> {
    services.sessions.adopted().await;
    if list.status == Some(SessionStatus::Terminated) {
        return list_ended(services, principal, list).await;
    }
    let is_asked_for = |meta: &SessionMetadata| {
        may_see(principal, meta)
            && list.owner.as_ref().is_none_or(|owner| *owner == meta.owner)
            && list.name.as_ref().is_none_or(|name| meta.name.is(name))
    };
    let (handles, mut unreachable) = services.sessions.everything_live();
    let (mut all, mut holders) = (Vec::new(), HashMap::new());
    for handle in handles {
        if !is_asked_for(&handle.shared.meta) {
            unreachable.remove(&handle.shared.id);
        } else if let Some(listed) = looked_at(services, &handle, published_status(&handle), &mut holders).await {
            unreachable.remove(&handle.shared.id);
            all.push(listed);
        }
    }
    for unreachable in unreachable.values().filter(|u| is_asked_for(&u.meta)) {
        all.push(Listed::View(Box::new(unreachable.view())));
    }
    let mut is_degraded = false;
    if let Some(directory) = &services.directory {
        let (others, is_whole) = directory.others(principal, list.owner.as_deref()).await;
        services.server_events.metrics.called_directory("list", is_whole);
        let is_named = |view: &SessionView| list.name.is_none() || view.name == list.name;
        all.extend(others.into_iter().filter(is_named).map(|view| Listed::View(Box::new(view))));
        is_degraded = !is_whole;
    }
    let is_asked_for = |status: SessionStatus| match list.status {
        None => status != SessionStatus::Terminated,
        wanted => wanted == Some(status),
    };
    all.retain(|listed| is_asked_for(listed.status()));
    let mut total = all.len();
    let mut page = Vec::new();
    for mut listed in page_of(all, list) {
        if let Listed::Published(handle, _) = &listed {
            match looked_at(services, handle, whole_status(handle), &mut holders).await {
                Some(now) => listed = now,
                None => {
                    total -= 1;
                    continue;
                }
            }
        }
        let view = match listed {
            Listed::View(view) => Some(*view),
            Listed::Published(handle, _) => {
                let (view, holder) = handle.published().unzip();
                holders.extend(holder.map(|holder| (handle.shared.id.clone(), holder)));
                view
            }
        };
        // It changes while it is listed.
        let view = view.filter(|view| is_asked_for(view.status));
        total -= usize::from(view.is_none());
        page.extend(view);
    }
    services.sessions.count_usage(page.iter_mut().filter_map(|v| holders.get(&v.id).map(|holder| (v, *holder)))).await;
    Ok(Outcome::Sessions(SessionPage { sessions: page, total, is_degraded }))
}

/// A live session, by the status that its actor has published, or else by its answer. `None` if it has just ended.
async fn looked_at(
    services: &Services,
    handle: &Handle,
    published: Option<SessionStatus>,
    holders: &mut HashMap<SessionId, u32>,
) -> Option<Listed> {
    if let Some(status) = published {
        return Some(Listed::Published(handle.clone(), status));
    }
    match handle.ask(Request::Look).await {
        Ok(snapshot) => {
            holders.insert(snapshot.view.id.clone(), snapshot.holder_pid);
            Some(Listed::View(Box::new(snapshot.view)))
        }
        // The session lives, and a new actor is about to start.
        Err(ActionError::Restarting) if !services.sessions.is_stopping() => {
            Some(Listed::View(Box::new(Unreachable::without_actor(&handle.shared).view())))
        }
        // A session that ends at this very moment is no longer live.
        Err(_) => None,
    }
}

async fn list_ended(services: &Arc<Services>, principal: &Principal, list: &List) -> Result<Outcome, ActionError> {
    // Once the shell has exited, the session is not live, even while the holder still ends descendants.
    let (mut living, mut ending) = (Vec::new(), Vec::new());
    let (handles, unreachable) = services.sessions.everything_live();
    living.extend(unreachable.keys().map(ToString::to_string));
    for handle in handles {
        let status = match whole_status(&handle) {
            Some(status) => Some(status),
            None => match handle.ask(Request::Look).await {
                Ok(snapshot) => Some(snapshot.view.status),
                Err(ActionError::Restarting) => None,
                Err(_) => Some(SessionStatus::Terminated),
            },
        };
        let ids = if status == Some(SessionStatus::Terminated) { &mut ending } else { &mut living };
        ids.push(handle.shared.id.to_string());
    }
    let owner = match &list.owner {
        _ if !principal.is_admin() => Some(principal.name.clone()),
        owner => owner.clone(),
    };
    if list.owner.as_ref().is_some_and(|wanted| owner.as_ref() != Some(wanted)) {
        return Ok(Outcome::Sessions(SessionPage::default()));
    }
    let (name, limit, offset, is_newest_first) = (list.name.clone(), list.limit, list.offset, list.is_newest_first);
    let (ids, total) = services
        .history
        .query(move |store| {
            store.ended(&SessionQuery {
                owner: owner.as_deref(),
                name: name.as_deref(),
                living: &living,
                ending: &ending,
                is_newest_first,
                limit,
                offset,
            })
        })
        .await?;
    // Only the requested page is read from folders.
    let mut views = Vec::new();
    for id in ids.iter().filter_map(|id| SessionId::parse(id).ok()) {
        let (reader, principal) = (Arc::clone(services), principal.clone());
        let read = async move { reader.sessions.show(&principal, &id).await };
        // The same patience as for the store: a whole journal is read for each session.
        views.extend(services.history.in_time(("a session's folder", limits::STORE_PATIENCE), read).await?);
    }
    Ok(Outcome::Sessions(SessionPage { sessions: views, total, is_degraded: false }))
}

/// The sessions of the page, in their order. Only those up to its end are sorted.
fn page_of(mut all: Vec<Listed>, list: &List) -> Vec<Listed> {
    let order = |a: &Listed, b: &Listed| match list.is_newest_first {
        true => b.order().cmp(&a.order()),
        false => a.order().cmp(&b.order()),
    };
    let end = list.offset.saturating_add(list.limit);
    if end < all.len() {
        all.select_nth_unstable_by(end, order);
        all.truncate(end);
    }
    all.sort_by(order);
    all.drain(..list.offset.min(all.len()));
    all
}

/// The published status of a session; `None` if its actor has to be asked, because it is in a turn or gone.
fn published_status(handle: &Handle) -> Option<SessionStatus> {
    // Read first: what was answered before this moment is published if the actor is not in a turn.
    if handle.shared.is_in_turn.load(Ordering::Acquire) || handle.mailbox.is_closed() {
        return None;
    }
    Some(handle.feed.borrow().summary.as_ref()?.status)
}

/// The same for a listed session. `None` also if its journal was cut, because its actor has to notice that.
fn whole_status(handle: &Handle) -> Option<SessionStatus> {
    let status = published_status(handle)?;
    let end = handle.feed.borrow().summary.as_ref()?.end_offset;
    (!handle.shared.has_less_than(end)).then_some(status)
}
