//! Finding the user's own shell.

use std::path::Path;

use super::kind::Kind;
use super::start::Wanted;
use crate::host::Host;

/// The user's own shell: from `SHELL`, or else from the user database; bash if that shell lacks our integration or the
/// features of an interactive shell.
pub(super) fn users_own(host: &dyn Host, wanted: &Wanted<'_>) -> String {
    let told = wanted.own_shell.and_then(|s| std::str::from_utf8(s).ok()).map(str::to_owned);
    let own = told.filter(|s| host.resolve_program(s, None).is_some()).or_else(|| host.login_shell());
    own.filter(|s| is_other_for_people(host, s)).unwrap_or_else(|| "bash".to_owned())
}

/// Not bash, which is found like any program, nor a service's `/bin/sh`, nor `nologin`.
fn is_other_for_people(host: &dyn Host, shell: &str) -> bool {
    let real = host.real_path(Path::new(shell)).unwrap_or_default();
    let kind = real.file_name().map_or(Kind::Other, |name| Kind::of(&name.to_string_lossy()));
    shell.starts_with('/')
        && matches!(kind, Kind::Zsh | Kind::Fish)
        && real.to_str().is_some_and(|real| host.resolve_program(real, None).is_some())
}
