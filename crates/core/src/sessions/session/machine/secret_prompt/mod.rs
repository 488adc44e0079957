//! The prompt at which a program reads a secret: which one it is, and the secret that a person types there.

pub(super) mod state;
mod steps;
