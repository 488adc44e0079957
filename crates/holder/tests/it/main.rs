//! The holder as a process: what it does with its connections, its folder and its time. One file for each subject.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod answers;
mod callers;
mod folder;
mod looks;
mod refusals;
mod rig;
mod termination;
