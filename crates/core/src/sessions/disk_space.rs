//! Disk space: the sessions that wait for it, how much is free, and the messages to the operator.

use std::sync::atomic::Ordering;

use super::registry::Registry;

impl Registry {
    /// The number of sessions that wait for disk space.
    pub(super) fn stalled(&self) -> usize {
        self.handles().iter().filter(|handle| handle.shared.stalled.load(Ordering::Acquire)).count()
    }

    /// The reason why the server is degraded, if it is.
    pub(crate) fn trouble(&self) -> Option<String> {
        let stalled = match self.stalled() {
            0 => None,
            1 => Some("1 session waits for room on the disk".to_owned()),
            count => Some(format!("{count} sessions wait for room on the disk")),
        };
        let damaged = self.store().is_damaged().then(|| "store.db is damaged and is being rebuilt".to_owned());
        let all: Vec<String> = [stalled, damaged].into_iter().flatten().collect();
        (!all.is_empty()).then(|| format!("{}; docs/operations.md has the remedies", all.join("; ")))
    }

    /// The disk space free for users other than root, and the size of the disk. Blocks on the disk.
    pub(crate) fn room(&self) -> Option<(u64, u64)> {
        let disk = rustix::fs::statvfs(self.folder()).ok()?;
        Some((disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize)))
    }
}
