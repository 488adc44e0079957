//! Lists sessions: live ones from their actors, ended ones from the store, a page at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::action::{ActionError, List, Outcome, SessionStatus, SessionView};
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;
use crate::principal::Principal;
use crate::sessions::registry::{Registry, may_see};
use crate::sessions::session::Request;
use crate::sessions::unreachable::Unreachable;
use crate::store::SessionQuery;

impl Registry {
    pub(in crate::sessions) async fn list(
        self: &Arc<Self>,
        principal: &Principal,
        list: &List,
    ) -> Result<Outcome, ActionError> {
        self.adopted().await;
        let mut views = Vec::new();
        let mut holders = HashMap::new();
        if list.status != Some(SessionStatus::Terminated) {
            for handle in self.handles().into_iter().filter(|h| may_see(principal, &h.shared.meta)) {
                match handle.ask(Request::Look).await {
                    Ok(snapshot) => {
                        holders.insert(snapshot.view.id.clone(), snapshot.holder_pid);
                        views.push(snapshot.view);
                    }
                    // The session lives, and a new actor is about to start.
                    Err(ActionError::Restarting) if !self.is_stopping() => {
                        views.push(Unreachable::without_actor(&handle.shared).view());
                    }
                    // A session that ends at this very moment is no longer live.
                    Err(_) => {}
                }
            }
            let unreachable: Vec<_> = locked(&self.adoption.unreachable).values().cloned().collect();
            let listed: HashSet<SessionId> = views.iter().map(|view: &SessionView| view.id.clone()).collect();
            let more = unreachable.iter().filter(|u| may_see(principal, &u.meta) && !listed.contains(&u.id));
            views.extend(more.map(|u| u.view()));
        } else {
            // Once the shell has exited, the session is not live, even while the holder still ends descendants.
            let (mut living, mut ending) = (Vec::new(), Vec::new());
            living.extend(locked(&self.adoption.unreachable).keys().map(ToString::to_string));
            for handle in self.handles() {
                let is_live = match handle.ask(Request::Look).await {
                    Ok(snapshot) => snapshot.view.status != SessionStatus::Terminated,
                    Err(error) => matches!(error, ActionError::Restarting),
                };
                let ids = if is_live { &mut living } else { &mut ending };
                ids.push(handle.shared.id.to_string());
            }
            let owner = match &list.owner {
                _ if !principal.is_admin() => Some(principal.name.clone()),
                owner => owner.clone(),
            };
            if list.owner.as_ref().is_some_and(|wanted| owner.as_ref() != Some(wanted)) {
                return Ok(Outcome::Sessions(Vec::new(), 0));
            }
            let (name, limit, offset, is_newest_first) =
                (list.name.clone(), list.limit, list.offset, list.is_newest_first);
            let (ids, total) = self
                .history(move |store| {
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
            for id in ids.iter().filter_map(|id| SessionId::parse(id).ok()) {
                let (registry, principal) = (Arc::clone(self), principal.clone());
                let read = async move { registry.show(&principal, &id).await };
                // The same patience as for the store: a whole journal is read for each session.
                views.extend(self.history.in_time(("a session's folder", limits::STORE_PATIENCE), read).await?);
            }
            return Ok(Outcome::Sessions(views, total));
        }
        views.retain(|v| {
            list.owner.as_ref().is_none_or(|o| *o == v.owner)
                && list.name.as_ref().is_none_or(|n| v.name.as_ref() == Some(n))
                && list.status.is_none_or(|s| s == v.status)
        });
        if list.status.is_none() {
            views.retain(|v| v.status != SessionStatus::Terminated);
        }
        views.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.id.cmp(&b.id)));
        if list.is_newest_first {
            views.reverse();
        }
        let total = views.len();
        let mut page: Vec<SessionView> = views.into_iter().skip(list.offset).take(list.limit).collect();
        self.count_usage(page.iter_mut().filter_map(|v| holders.get(&v.id).map(|holder| (v, *holder)))).await;
        Ok(Outcome::Sessions(page, total))
    }
}
