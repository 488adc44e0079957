//! Checks of what a session tells about the limits that it hit.

use api::{CommandExecution, CommandStatus, Enforcer, Limit, SessionStatus};

use crate::{Session, in_part};

/// The session lives, and its record names the limit and the command.
pub async fn check_hit(shell: &Session, done: &CommandExecution, limit: Limit) {
    assert_eq!((done.status, &done.limits_hit), (CommandStatus::Completed, &vec![limit]), "{done:?}");
    let session = shell.look().await;
    let hits: Vec<_> = session.limits_hit.iter().map(|hit| (hit.limit, hit.command_id.clone())).collect();
    assert_eq!((session.status, hits), (SessionStatus::Running, vec![(limit, Some(done.id.clone()))]));
    assert_eq!(shell.gives("echo alive").await, (0, "alive\n".to_owned()));
}

/// Whether the kernel keeps it for all processes together; where it cannot, that is printed.
pub async fn in_group(shell: &Session, limit: Limit) -> bool {
    let enforcer = shell.look().await.limits_enforced_by[&limit];
    let is_group = enforcer == Enforcer::Cgroup;
    if !is_group {
        in_part(format!("no control group can be made here: {limit:?} is enforced by {enforcer:?}"));
    }
    is_group
}

/// The kernel has killed `head -c 400M /dev/zero | tail` for its memory, or refused it more, and its shell goes on.
pub async fn check_memory_hog(shell: &Session, done: &CommandExecution) {
    if in_group(shell, Limit::MemoryMb).await {
        assert_eq!(done.exit_code, Some(137));
        check_hit(shell, done, Limit::MemoryMb).await;
    } else {
        assert_eq!(done.exit_code, Some(1));
    }
    assert_eq!(shell.gives("echo alive").await, (0, "alive\n".to_owned()));
}
