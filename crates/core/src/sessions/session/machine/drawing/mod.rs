//! The screen, drawn on demand; and ahead of any look where much of the output would have to be drawn for it.
//!
//! Most of a flood is passed over, and costs a look nothing. Of other output, a thread of low priority draws all but the last
//! megabytes: the flood itself, and whoever looks at the screen, never wait for it.

pub(in crate::sessions::session) mod state;
mod steps;
