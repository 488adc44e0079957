//! Renders a session's output for its readers, in stages; each reader uses the stages that it needs.
//!
//! ```text
//!              markers    handover    paint    hidden text    budget
//! text                        x         x           x           x
//! search                      x         x
//! stream          x           x                                      viewers, and the stream of REST
//! recording       x           x
//! screen                      x                                      drawn_screen.rs
//! ```
//! Paint leaves no marker, and hidden text is counted by `terminal`. The text for models is condensed further in
//! `mcp/text/`, which folds lines that repeat.

pub(super) mod budget;
pub(crate) mod drawn_screen;
pub(super) mod handover;
mod paint;
pub(super) mod range;
pub(super) mod recording;
pub(super) mod search;
pub(crate) mod stored_screen;
pub(super) mod stream;
pub(super) mod text;
pub(crate) mod text_source;
pub(super) mod typed_echo;
