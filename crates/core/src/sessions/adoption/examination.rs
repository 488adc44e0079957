//! Examines the sessions from before this server, once it has started: each is adopted, or recorded as ended.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::adopt;
use super::state::Adopting;
use crate::ids::SessionId;
use crate::sessions::services::Services;
use crate::store::{SessionRow, StoreError};

/// How many sessions are examined at once: enough for two processors, and few enough that a request behind them is answered
/// within milliseconds. With 32, a request took twice as long, and the whole adoption as long as with 6.
const EXAMINED_AT_ONCE: usize = 6;
/// An examination that takes longer continues on its own, so a holder that does not answer delays no other session.
const EXAMINED_SOON: Duration = Duration::from_millis(20);

/// Begins to adopt every session with a folder. `KnownSessions::adopted` waits until each has been examined.
pub(in crate::sessions) fn adopt_all(services: &Arc<Services>) {
    let rows = rows_before(services);
    services.backends.holders.remove_trials();
    services.backends.end_earlier_containers();
    let folders = folders_of(services, &rows);
    services.create_keys.remember(&services.backends.holders, &rows);
    let mut rows: HashMap<String, SessionRow> = rows.into_iter().map(|row| (row.id.clone(), row)).collect();
    let (settled, unsettled) = watch::channel(());
    let folders = folders.into_iter().map(|id| {
        let (row, folder) = (rows.remove(id.as_str()), services.backends.holders.folder(&id));
        Adopting::new(id, folder, row, None)
    });
    // Those whose end is on record are examined last.
    let (ended, live): (Vec<_>, Vec<_>) = folders.partition(Adopting::has_ended_before);
    let all = live.len() + ended.len();
    for adopting in live.into_iter().chain(ended) {
        services.sessions.adoption.unexamined.add(adopting, unsettled.clone());
    }
    drop(unsettled);
    for _ in 0..EXAMINED_AT_ONCE.min(all) {
        tokio::spawn(examine_all(Arc::clone(services)));
    }
    let (store, adoption) = (Arc::clone(&services.history.store), services.sessions.adoption.is_done.clone());
    tokio::spawn(async move {
        settled.closed().await;
        store.mark_filled();
        adoption.send_replace(true);
    });
}

/// Examines sessions from before this server, one after the other, until none is left.
async fn examine_all(services: Arc<Services>) {
    while let (Some(mut adopting), false) =
        (services.sessions.adoption.unexamined.next(), services.sessions.is_stopping())
    {
        if adopting.has_ended_before() && !services.backends.holders.is_listening(&adopting.folder) {
            services.sessions.adoption.unexamined.is_settled(&mut adopting);
            continue;
        }
        adopting.since = Instant::now();
        let mut adopted: Pin<Box<dyn Future<Output = ()> + Send>> =
            Box::pin(adopt::adopt(Arc::clone(&services), *adopting));
        if tokio::time::timeout(EXAMINED_SOON, &mut adopted).await.is_err() {
            tokio::spawn(adopted);
        }
    }
}

/// The sessions in the store; none if it cannot be read, and then each is added again from its folder.
fn rows_before(services: &Services) -> Vec<SessionRow> {
    let store = Arc::clone(&services.history.store);
    let rows = store.sessions().or_else(|e| match e {
        StoreError::Damaged(_) => store.begin_anew().map(|()| Vec::new()),
        StoreError::Unavailable(_) => Err(e),
    });
    rows.unwrap_or_else(|e| {
        tracing::warn!(error = %e, "the history is not known; every session is read from its folder");
        Vec::new()
    })
}

/// The sessions that have a folder. A row whose folder was deleted while no server ran is removed.
fn folders_of(services: &Services, rows: &[SessionRow]) -> Vec<SessionId> {
    let folders = services.backends.holders.all().unwrap_or_else(|e| {
        tracing::error!(folder = %services.backends.holders.sessions().display(), error = %e, "no session is taken on");
        // If the directory cannot be read, no row is removed.
        rows.iter().filter_map(|r| SessionId::parse(&r.id).ok()).collect()
    });
    let there: HashSet<&str> = folders.iter().map(SessionId::as_str).collect();
    rows.iter().filter(|r| !there.contains(r.id.as_str())).for_each(|gone| services.history.store.forget(&gone.id));
    folders
}
