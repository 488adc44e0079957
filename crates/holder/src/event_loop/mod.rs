//! The holder's event loop: one thread, one poll(2), and the same order of steps in every turn.
//!
//! ```text
//! bytes into the journal → attestation drained → records appended → children reaped → requests → tail published
//! ```
//! The tail is published last, so a reader that reads up to it finds every marker's record already there. Every turn
//! serves the control connections and a turn is bounded, so no flood of output can starve them. Each part of the state
//! acts for itself, with the context that all of them use.

mod begin;
mod context;
mod ending;
mod holder;
mod input_record;
mod reports;
mod requests;
mod run_command;
mod send_signal;
mod type_input;
mod wait;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Runs the holder of the session in this folder until the session is over.
///
/// Its stack frame stays while the holder waits for its next event, which is nearly always: whatever is large is in a
/// function of its own.
///
/// `connection` is the server's, and is closed once the shell has started.
pub fn run(folder: &Path, connection: &mut Option<OwnedFd>) -> io::Result<()> {
    let mut holder = begin::begin(folder)?;
    *connection = None;
    while !holder.context.end.is_over() {
        let ready = holder.wait_for_something()?;
        holder.turn(&ready);
        // Outside of `turn`, so that the stack pages it used can be returned.
        if holder.context.output.take_gives_back() {
            sys::memory::give_back();
        }
    }
    holder.shut_down();
    Ok(())
}
