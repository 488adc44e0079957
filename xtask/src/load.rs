//! Busy loops beside the tests: a test that passes beside them does not depend on a quiet machine.

use anyhow::{Context as _, Result};
use std::process::{Child, Command, Stdio};

/// A loop that ends with its parent, however that ends.
const LOOP: &str = "while kill -0 $PPID 2>/dev/null; do i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; done";

/// Processes that do nothing but take processor time, until this is dropped.
#[derive(Debug)]
pub struct BusyLoops(Vec<Child>);

impl BusyLoops {
    /// Starts this many.
    pub fn start(count: usize) -> Result<Self> {
        let mut loops = Self(Vec::new());
        for _ in 0..count {
            let mut shell = Command::new("sh");
            shell.args(["-c", LOOP]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            loops.0.push(shell.spawn().context("cannot start a busy loop")?);
        }
        Ok(loops)
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // It fails only for a loop that has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_loops_run_until_they_are_dropped() {
        let mut loops = BusyLoops::start(2).unwrap();
        let pids: Vec<u32> = loops.0.iter().map(Child::id).collect();
        assert!(loops.0.iter_mut().all(|child| child.try_wait().unwrap().is_none()));
        drop(loops);
        assert!(pids.iter().all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()));
    }
}
