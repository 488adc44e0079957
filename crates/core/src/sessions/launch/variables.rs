//! The variables of a new session's shell: those that it inherits, and which names a request may set.

use std::os::unix::ffi::OsStringExt;

use crate::action::{ActionError, Create};

/// Variables of the server or client that are meaningless or wrong in a new terminal.
const NOT_INHERITED: [&[u8]; 21] = [
    b"TMUX",
    b"TMUX_PANE",
    b"STY",
    b"WINDOW",
    b"COLUMNS",
    b"LINES",
    b"TERMCAP",
    // Variables that systemd sets for a service (systemd.exec(5)): a program that used them would write to the server's
    // journal stream or answer for the server's watchdog.
    b"INVOCATION_ID",
    b"NOTIFY_SOCKET",
    b"LISTEN_FDS",
    b"LISTEN_FDNAMES",
    b"LISTEN_PID",
    b"JOURNAL_STREAM",
    b"SYSTEMD_EXEC_PID",
    b"WATCHDOG_PID",
    b"WATCHDOG_USEC",
    b"MAINPID",
    b"MANAGERPID",
    b"OLDPWD",
    b"SHLVL",
    b"_",
];

/// The prefix of our own variables: the server's settings, and those for our scripts.
pub(in crate::sessions) const RESERVED: &str = "PTYD_";

pub(super) fn base_environment(request: &Create) -> Vec<(Vec<u8>, Vec<u8>)> {
    let base: Vec<(Vec<u8>, Vec<u8>)> = match &request.base_env {
        Some(env) => env.as_ref().clone(),
        None => std::env::vars_os().map(|(n, v)| (n.into_vec(), v.into_vec())).collect(),
    };
    base.into_iter()
        .filter(|(n, v)| {
            let is_clean = !n.is_empty() && !n.contains(&0) && !n.contains(&b'=') && !v.contains(&0);
            // Our own settings are for the server; its token must never reach a shell.
            is_clean && !n.starts_with(RESERVED.as_bytes()) && !NOT_INHERITED.contains(&n.as_slice())
        })
        .collect()
}

pub(super) fn get<'a>(env: &'a [(Vec<u8>, Vec<u8>)], name: &[u8]) -> Option<&'a [u8]> {
    env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
}

pub(super) fn set(env: &mut Vec<(Vec<u8>, Vec<u8>)>, name: &[u8], value: &[u8]) {
    match env.iter_mut().find(|(n, _)| n == name) {
        Some((_, old)) => *old = value.to_vec(),
        None => env.push((name.to_vec(), value.to_vec())),
    }
}

pub(super) fn check_variable(name: &str, value: &str) -> Result<(), ActionError> {
    let starts_well = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    let is_name = starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        let problem = format!("{name:?} is not a variable's name (letters, digits, underscores; not a digit first)");
        return Err(ActionError::Invalid { field: "env", problem });
    }
    if name.starts_with(RESERVED) {
        let problem = format!("{name}: names that begin with {RESERVED} are ptyd's own and do not reach sessions");
        return Err(ActionError::Invalid { field: "env", problem });
    }
    if value.contains('\0') {
        return Err(ActionError::Invalid { field: "env", problem: format!("the value of {name} holds a NUL byte") });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn variables_from_the_servers_own_parent_are_not_inherited() {
        let names = [
            "HOME",
            "TMUX",
            "INVOCATION_ID",
            "NOTIFY_SOCKET",
            "LISTEN_FDS",
            "LISTEN_FDNAMES",
            "LISTEN_PID",
            "JOURNAL_STREAM",
            "SYSTEMD_EXEC_PID",
            "WATCHDOG_PID",
            "WATCHDOG_USEC",
            "MAINPID",
            "MANAGERPID",
            "PTYD_TOKEN",
        ];
        let all = names.map(|n| (n.as_bytes().to_vec(), b"x".to_vec())).to_vec();
        let request = Create { base_env: Some(Arc::new(all)), ..Create::default() };
        assert_eq!(base_environment(&request), [(b"HOME".to_vec(), b"x".to_vec())]);
    }
}
