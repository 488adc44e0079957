//! Lists of sessions: the living from their actors, the ended from the store, a page at a time.

use std::collections::{HashMap, HashSet};

use super::manager::{Manager, may_see};
use super::session::Request;
use crate::action::{ActionError, List, Outcome, SessionStatus, SessionView};
use crate::identity::Principal;
use crate::ids::SessionId;
use crate::store::SessionRow;

impl Manager {
    pub(super) async fn list(&self, who: &Principal, list: &List) -> Result<Outcome, ActionError> {
        let mut views = Vec::new();
        let mut holders = HashMap::new();
        if list.status != Some(SessionStatus::Terminated) {
            for handle in self.handles().into_iter().filter(|h| may_see(who, &h.shared)) {
                // One that ends this very moment is not live any more.
                if let Ok(snapshot) = handle.ask(Request::Look).await {
                    holders.insert(snapshot.view.id.clone(), snapshot.holder_pid);
                    views.push(snapshot.view);
                }
            }
        } else {
            // When the shell has gone and the holder still clears up, the session is no live one any more.
            let (mut live, mut clearing_up) = (HashSet::new(), HashSet::new());
            for handle in self.handles() {
                let snapshot = handle.ask(Request::Look).await;
                let is_live = snapshot.is_ok_and(|s| s.view.status != SessionStatus::Terminated);
                let ids = if is_live { &mut live } else { &mut clearing_up };
                ids.insert(handle.shared.id.to_string());
            }
            let store = self.store();
            let rows = tokio::task::spawn_blocking(move || {
                store.flush();
                store.sessions().unwrap_or_default()
            });
            let rows = rows.await.unwrap_or_default();
            let has_ended = |r: &&SessionRow| r.ended_us.is_some() || clearing_up.contains(&r.id);
            let ids = rows.iter().filter(has_ended).filter(|r| !live.contains(&r.id));
            let ids: Vec<SessionId> = ids.filter_map(|r| SessionId::parse(&r.id).ok()).collect();
            let mine = |row: &SessionRow| who.is_admin() || row.owner == who.name;
            let visible: Vec<SessionId> =
                ids.into_iter().filter(|id| rows.iter().any(|r| r.id == id.as_str() && mine(r))).collect();
            let total = visible.len();
            // Only the page that is asked for is read from its folders.
            if list.owner.is_none() {
                for id in visible.iter().skip(list.offset).take(list.limit) {
                    views.extend(self.show(who, id).await);
                }
                return Ok(Outcome::Sessions(views, total));
            }
            for id in &visible {
                views.extend(self.show(who, id).await);
            }
        }
        views
            .retain(|v| list.owner.as_ref().is_none_or(|o| *o == v.owner) && list.status.is_none_or(|s| s == v.status));
        if list.status.is_none() {
            views.retain(|v| v.status != SessionStatus::Terminated);
        }
        views.sort_by(|a, b| a.created_at.cmp(&b.created_at).then_with(|| a.id.cmp(&b.id)));
        let total = views.len();
        let mut page: Vec<SessionView> = views.into_iter().skip(list.offset).take(list.limit).collect();
        self.count_usage(page.iter_mut().filter_map(|v| holders.get(&v.id).map(|holder| (v, *holder)))).await;
        Ok(Outcome::Sessions(page, total))
    }
}
