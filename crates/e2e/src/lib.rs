//! End-to-end tests with real shells.
