//! Progress notifications while a call waits; ends the wait if the client cancels it.
//!
//! The first notification is sent at once (it makes proxies send their headers); later ones only show that the call is
//! alive.

use std::time::{Duration, Instant};

use axum::http::request::Parts;
use rmcp::model::{CallToolResponse, ErrorData, ProgressNotificationParam};
use rmcp::service::{RequestContext, RoleServer};
use tracing::Instrument;

use super::text::seconds;
use crate::traces;
use ptyd_core::approval_wait::ApprovalWait;

/// Rare enough to cost nothing, and often enough for every client's idle timeout.
const EVERY: Duration = Duration::from_secs(5);

/// Performs the work; a cancelled request drops it, which ends the wait and never the program.
pub(super) async fn while_waiting(
    context: &RequestContext<RoleServer>,
    tool: &str,
    approval: Option<&ApprovalWait>,
    work: impl Future<Output = CallToolResponse>,
) -> Result<CallToolResponse, ErrorData> {
    let span = traces::tool_call(tool, &context.meta, context.extensions.get::<Parts>());
    let begun = Instant::now();
    let token = context.meta.get_progress_token();
    let tell = async |progress: f64, message: String| {
        if let Some(token) = &token {
            let word = ProgressNotificationParam::new(token.clone(), progress).with_message(message);
            // A disconnected client is noticed elsewhere.
            let _ = context.peer.notify_progress(word).await;
        }
    };
    tell(0.0, "started".to_owned()).await;
    let mut work = std::pin::pin!(work.instrument(span.clone()));
    let mut approval_begins = std::pin::pin!(async {
        match approval {
            Some(approval) => approval.begins().await,
            None => std::future::pending().await,
        }
    });
    let mut is_told = token.is_none();
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                traces::called(&span, &done);
                return Ok(done);
            }
            // rmcp sends nothing for a cancelled request, so this text is never sent.
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
            id = &mut approval_begins, if !is_told => {
                is_told = true;
                tell(begun.elapsed().as_secs_f64(), format!("waiting for approval {id}")).await;
            }
            () = tokio::time::sleep(EVERY), if token.is_some() => {
                let waited = begun.elapsed();
                let message = match approval.and_then(ApprovalWait::approval) {
                    Some(id) => format!("waiting for approval {id}"),
                    None => format!("running {}", seconds(waited)),
                };
                tell(waited.as_secs_f64(), message).await;
            }
        }
    }
}
