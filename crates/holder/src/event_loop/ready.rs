//! The descriptors that poll(2) reported as ready.

/// The ready descriptors; the terminal and the attestation socket are read in every turn.
pub(super) struct Ready {
    pub(super) signals: bool,
    pub(super) newcomers: bool,
    pub(super) clients: Vec<bool>,
}
