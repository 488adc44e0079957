//! The ptyd binary.
fn main() {}
