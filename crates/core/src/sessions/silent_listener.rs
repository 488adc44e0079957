//! A server that is ready: the command's program listens on a TCP port and has fallen silent.
//!
//! The check begins only after a command has run for a moment, and looks at processes only after its output has paused. So
//! a quick command costs nothing more.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::action::{Foreground, Wait};
use crate::limits::{LISTENER_EVERY_MAX, LISTENER_EVERY_MIN, LISTENER_SILENT};
use crate::mutex::locked;
use crate::sessions::handle::Handle;
use crate::sessions::session::Request;

/// Whether this wait ends when the program listens and is silent.
pub(super) fn ends(wait: Option<&Wait>) -> bool {
    wait.is_some_and(|wait| wait.listens && wait.pattern.is_none() && wait.until.is_empty())
}

/// Waits until the foreground job listens and has been silent for a while, and returns its ports. A test suite that
/// opens ports prints meanwhile, or leaves its line unfinished.
pub(super) async fn ready(handle: &Handle) -> String {
    let mut silent: Option<(u64, Instant)> = None;
    // The job and its ports that were open at the look before: a port of a moment is not a server's.
    let mut open = locked(&handle.shared.server).clone();
    // A server that was told before is looked at at once.
    let mut first = open.is_some().then_some(Duration::ZERO);
    let mut pause = LISTENER_EVERY_MIN;
    loop {
        tokio::time::sleep_until(Instant::now() + first.take().unwrap_or(pause)).await;
        // The end of the session ends the wait by itself.
        let Ok(now) = handle.ask(Request::Look).await else { return std::future::pending().await };
        let since = match silent {
            Some((end, since)) if end == now.view.end_offset => since,
            // A server that was looked at may have been silent for long.
            None => {
                let quiet = now.view.last_activity.elapsed().unwrap_or_default();
                Instant::now().checked_sub(quiet).unwrap_or_else(Instant::now)
            }
            Some(_) => {
                pause = LISTENER_EVERY_MIN;
                open = None;
                Instant::now()
            }
        };
        silent = Some((now.view.end_offset, since));
        if since.elapsed() < LISTENER_SILENT || now.line_is_open || now.view.foreground != Foreground::Running {
            continue;
        }
        let before = std::mem::replace(&mut open, ports(handle, now.holder_pid, now.view.pid).await);
        let mut lasting: Vec<u16> = match (&before, &open) {
            (Some((earlier, before)), Some((job, now))) if earlier == job => {
                now.intersection(before).copied().collect()
            }
            _ => Vec::new(),
        };
        if !lasting.is_empty() {
            *locked(&handle.shared.server) = open;
            lasting.sort_unstable();
            return lasting.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        }
        let has_ports = open.as_ref().is_some_and(|(_, ports)| !ports.is_empty());
        pause = if has_ports { LISTENER_EVERY_MIN } else { (pause * 2).min(LISTENER_EVERY_MAX) };
    }
}

/// The job that has the terminal, unless the shell itself has it, and its ports.
async fn ports(handle: &Handle, holder: u32, shell: Option<u32>) -> Option<(u32, HashSet<u16>)> {
    let host = Arc::clone(&handle.shared.backends.host);
    let look = move || {
        let shell = shell?;
        let group = host.process(shell)?.foreground_group.filter(|group| *group != shell)?;
        Some((group, host.ports_of_job(holder, group)))
    };
    handle.shared.lane().look(look).await.flatten()
}
