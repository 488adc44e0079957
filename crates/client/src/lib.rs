//! The Rust client over api.
