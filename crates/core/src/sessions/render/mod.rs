//! Renders a session's output for its readers, in stages of which each reader takes those that it needs.
//!
//! ```text
//!           markers    handover    paint    hidden text    budget
//! text                    x          x          x            x       output_text.rs
//! search                  x          x                               search.rs
//! stream       x          x                                          output.rs, viewer_cursor.rs
//! recording    x          x                                          recording.rs
//! screen                  x                                          session/snapshot.rs
//! ```

pub(super) mod handover;
pub(super) mod stream;
