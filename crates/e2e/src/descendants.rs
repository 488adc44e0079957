//! The processes of a session beside its shell.

use crate::{Pid, Server, Session, eventually, marked};

/// Jobs, daemons in sessions of their own, and orphans.
pub const SPAWN: &str =
    "sleep 777 & setsid sleep 778 & (nohup sleep 779 >/dev/null 2>&1 &) ; setsid -f sleep 780; sleep 0.1";

/// The sleeping descendants of a home, by their command line.
pub fn sleepers(server: &Server) -> Vec<(String, Pid)> {
    let mut found: Vec<_> = marked(server.home().path()).into_iter().map(|pid| (pid.command_line(), pid)).collect();
    found.retain(|(line, _)| line.starts_with("sleep 7"));
    found.sort();
    found
}

/// Starts four sleeping descendants in a session.
pub async fn spawned(server: &Server, shell: &Session) -> Vec<Pid> {
    shell.gives(SPAWN).await;
    let found = eventually("four of them", async || Some(sleepers(server)).filter(|found| found.len() == 4)).await;
    found.into_iter().map(|(_, pid)| pid).collect()
}

/// The holder of a session: the parent of its shell.
pub async fn holder(shell: &Session) -> Pid {
    let pid = shell.look().await.pid.expect("it lives");
    Pid::new(pid).parent().expect("somebody started it")
}
