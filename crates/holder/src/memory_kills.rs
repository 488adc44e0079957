//! The kernel's kills for the session's memory limit. The server counts them while the session lives. If the shell was killed, the
//! holder counts last, because the control group ends with the session.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use sys::cgroup::Group;

#[derive(Debug)]
pub(crate) struct MemoryKills {
    /// The `cgroup.procs` files of the session's control groups.
    doors: Vec<PathBuf>,
    /// The recorded kills of each command.
    recorded: Vec<(u32, u64)>,
}

impl MemoryKills {
    pub(crate) fn new(doors: &[Vec<u8>]) -> Self {
        let doors = doors.iter().map(|door| PathBuf::from(std::ffi::OsString::from_vec(door.clone()))).collect();
        Self { doors, recorded: Vec::new() }
    }

    /// This many kills are on record for this command.
    pub(crate) fn recorded(&mut self, command: u32, count: u64) {
        match self.recorded.iter_mut().find(|(id, _)| *id == command) {
            Some((_, known)) => *known = count.max(*known),
            None => self.recorded.push((command, count)),
        }
    }

    /// The kills that no other command has on record, if there are more than this one has.
    pub(crate) fn unrecorded(&self, command: u32) -> Option<u64> {
        let all = Group::behind(&self.doors).counts().oom_kills;
        let of_others: u64 = self.recorded.iter().filter(|(id, _)| *id != command).map(|(_, count)| count).sum();
        let known = self.recorded.iter().find(|(id, _)| *id == command).map_or(0, |(_, count)| *count);
        Some(all.saturating_sub(of_others)).filter(|count| *count > known)
    }
}
