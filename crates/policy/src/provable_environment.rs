//! The environment with which a shell may be started, so that its commands mean what they say.

/// A variable of a request that changes nothing that a command does, whatever its value is.
pub fn harmless_variable(name: &str) -> bool {
    matches!(name, "TZ" | "TERM" | "COLORTERM" | "NO_COLOR" | "CLICOLOR" | "FORCE_COLOR" | "CI" | "COLUMNS" | "LINES")
}

/// Why the commands of a bash with this environment may mean something else than they say, if that is so.
pub fn doubtful_environment<'a>(variables: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Option<String> {
    let mut has_path = false;
    for (name, value) in variables {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let is_code = name.starts_with(b"BASH_FUNC_")
            || name.starts_with(b"LD_")
            || matches!(name, b"SHELLOPTS" | b"BASHOPTS" | b"PROMPT_COMMAND" | b"PS0" | b"PS4" | b"BASH_ENV" | b"ENV");
        if is_code {
            return Some(format!("its environment has {}", shown()));
        }
        if name == b"PATH" {
            has_path = true;
            if !value.split(|b| *b == b':').all(|folder| folder.starts_with(b"/")) {
                return Some("its PATH has a folder that is not absolute".to_owned());
            }
        }
    }
    (!has_path).then(|| "its environment has no PATH".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_that_runs_code_or_adds_the_directory_to_path_is_unproven() {
        let of = |all: &[(&'static str, &'static str)]| {
            doubtful_environment(all.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
        };
        assert_eq!(of(&[("PATH", "/usr/bin:/bin"), ("HOME", "/x")]), None);
        for doubtful in [("PATH", "/bin:"), ("PATH", ".:/bin"), ("LD_PRELOAD", "x"), ("BASH_FUNC_ls%%", "() { :; }")] {
            assert!(of(&[("PATH", "/bin"), doubtful]).is_some(), "{doubtful:?}");
        }
        assert!(of(&[]).is_some());
        assert!(harmless_variable("TZ") && !harmless_variable("PATH") && !harmless_variable("GIT_PAGER"));
    }
}
