//! The descriptors that poll(2) reported as ready.

/// The ready descriptors.
pub(super) struct Ready {
    pub(super) signals: bool,
    pub(super) newcomers: bool,
    pub(super) clients: Vec<bool>,
    /// The terminal may have output that this turn is to move.
    pub(super) output: bool,
    /// The attestation socket has reports, or is hung up.
    pub(super) reports: bool,
}
