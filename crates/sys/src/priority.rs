//! The scheduling priority of threads.

use rustix::process::nice;

/// The nice value of a thread of low priority, beside the process's: next to a thread of normal priority it gets a tenth
/// of a processor, so it still ends on a busy machine.
const LOW: i32 = 10;

/// Gives the calling thread a low priority, for good: only a privileged process may raise a priority again.
pub fn lower_this_thread() {
    // On Linux this changes the calling thread alone (sched(7), "The nice value"). A filter of system calls
    // may refuse it; then the thread keeps its priority.
    let _ = nice(LOW);
}

#[cfg(test)]
mod tests {
    use rustix::process::getpriority_process;

    use super::*;

    #[test]
    fn only_the_calling_thread_has_the_low_priority() {
        let priority = || getpriority_process(None).expect("a priority");
        let before = priority();
        let lowered = std::thread::spawn(move || {
            lower_this_thread();
            priority()
        });
        assert_eq!((lowered.join().expect("no panic"), priority()), ((before + LOW).min(19), before));
    }
}
