//! The screen, drawn on demand. If a look would have to draw much output, the screen is drawn ahead of it.
//!
//! A look skips most of a flood at no cost. Of other output, a thread of low priority draws all but the last megabytes.
//! Neither the flood nor a look at the screen waits for that thread.

pub(in crate::sessions::session) mod state;
mod steps;
