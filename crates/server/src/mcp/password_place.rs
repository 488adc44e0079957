//! Where a person types a password that a program wants.

/// Where a person types a password that a program wants, as far as the caller was not told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum PasswordPlace {
    /// An earlier answer has said it.
    #[default]
    Told,
    /// At a page, or with the command line.
    Page(String),
    /// With the command line.
    CommandLine,
}
