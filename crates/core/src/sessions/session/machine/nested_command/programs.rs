//! The programs into which a command may be typed: shells at their prompt, and programs behind which one may be.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// A program that reads the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    Shell,
    /// A shell that takes commands in a line editor; only its `read` takes lines from the kernel.
    EditingShell,
    /// It passes the keys on, to another machine, user or namespace: nobody here sees who reads them.
    Carrier,
    Other,
}

const SHELLS: [&str; 12] =
    ["sh", "dash", "ash", "busybox", "ksh", "ksh93", "mksh", "lksh", "oksh", "yash", "posh", "hush"];
const EDITING_SHELLS: [&str; 4] = ["bash", "rbash", "zsh", "fish"];
const CARRIERS: [&str; 38] = [
    "ssh",
    "autossh",
    "sshpass",
    "mosh-client",
    "telnet",
    "su",
    "sudo",
    "doas",
    "runuser",
    "pkexec",
    "login",
    "sg",
    "newgrp",
    "machinectl",
    "systemd-run",
    "docker",
    "podman",
    "nerdctl",
    "ctr",
    "crictl",
    "kubectl",
    "oc",
    "k3s",
    "lxc",
    "lxc-attach",
    "incus",
    "distrobox",
    "toolbox",
    "flatpak",
    "vagrant",
    "virsh",
    "adb",
    "session-manager",
    "script",
    "nsenter",
    "unshare",
    "chroot",
    "bwrap",
];

/// Whether the line editor of this program indents each line as the one before it, even if it asks for no pastes. Python's
/// own editor asks for pastes since it indents.
pub(crate) fn indents_lines(file_name: &OsStr) -> bool {
    file_name.as_bytes().starts_with(b"pypy")
}

impl Program {
    /// The program of this name, which the kernel cuts after 15 bytes.
    pub(crate) fn of(name: &str) -> Self {
        let name = name.strip_prefix('-').unwrap_or(name);
        if SHELLS.contains(&name) {
            Self::Shell
        } else if EDITING_SHELLS.contains(&name) {
            Self::EditingShell
        } else if CARRIERS.contains(&name) || name.starts_with("session-manager") {
            Self::Carrier
        } else {
            Self::Other
        }
    }

    pub(crate) fn is_shell(self) -> bool {
        matches!(self, Self::Shell | Self::EditingShell)
    }

    /// Whether this unfinished line looks like its prompt. A question of a start-up file ends differently, and in most
    /// shells `>` asks for the rest of a command.
    pub(crate) fn shows_prompt(self, name: &str, line: &str) -> bool {
        let last = line.trim_end().chars().next_back();
        last.is_some_and(|last| "$#%❯➜»λ".contains(last) || last == '>' && name.trim_start_matches('-') == "fish")
    }

    /// Whether it may be a shell at its prompt. `canonical`: the terminal is in line mode; `bytes`: the size of the read, if it
    /// is known. A `read` takes its line from the kernel, most shells' byte by byte.
    pub(crate) fn may_be_at_prompt(self, canonical: bool, bytes: Option<u64>, command_line: &str) -> bool {
        match self {
            Self::Shell | Self::EditingShell if runs_a_script(command_line) => false,
            Self::Shell => !canonical || bytes.is_none_or(|bytes| bytes > 1),
            Self::EditingShell => !canonical || command_line.contains("--noediting"),
            Self::Carrier => true,
            Self::Other => false,
        }
    }
}

/// Whether a shell was started with a script or a command (`-c`), which it runs without a prompt.
fn runs_a_script(command_line: &str) -> bool {
    let mut words = command_line.split_ascii_whitespace().skip(1).peekable();
    // busybox is given the name of the shell.
    if command_line.split_ascii_whitespace().next().is_some_and(|word| word.ends_with("busybox")) {
        words.next();
    }
    let mut has_script = false;
    while let Some(word) = words.next() {
        match word.strip_prefix(['-', '+']) {
            // These take a word.
            Some("-rcfile" | "-init-file" | "o" | "O" | "C" | "-init-command") => drop(words.next()),
            Some(long) if long.starts_with('-') => has_script |= long == "-command",
            Some(short) => has_script |= short.contains('c') || short.contains("C="),
            None => has_script = true,
        }
        if has_script {
            break;
        }
    }
    has_script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: inside-4
    fn ptyd_types_only_at_a_shells_prompt_or_a_program_that_may_pass_keys_to_one() {
        let may = |name: &str, canonical, bytes, line: &str| Program::of(name).may_be_at_prompt(canonical, bytes, line);
        for (name, canonical, bytes, line) in [
            ("bash", false, None, "bash --norc"),
            ("bash", false, None, "/bin/bash --rcfile /tmp/rc"),
            ("bash", false, None, "-bash"),
            ("bash", true, Some(1024), "bash --norc --noediting"),
            ("zsh", false, None, "zsh -f"),
            ("fish", false, None, "fish -N"),
            ("dash", true, Some(8192), "dash"),
            ("busybox", false, None, "busybox sh"),
            ("mksh", false, Some(1), "mksh"),
            ("ssh", false, None, "ssh host"),
            ("ssh", true, None, "ssh host"),
            ("docker", false, None, "docker exec -it x sh"),
        ] {
            assert!(may(name, canonical, bytes, line), "{line}");
        }
        for (name, canonical, bytes, line) in [
            ("python3", false, None, "python3"),
            ("node", false, None, "node"),
            ("npm init", false, None, "npm init"),
            ("cat", true, Some(8192), "cat"),
            ("bash", true, Some(4096), "bash"),
            ("bash", false, None, "bash ask.sh"),
            ("bash", false, None, "bash -c read -e x"),
            ("dash", true, Some(1), "dash"),
            ("dash", true, Some(8192), "dash -c x"),
            ("bash", false, None, "bash -ic read -e x"),
            ("bash", false, None, "bash -lic read -e x"),
            ("bash", false, None, "bash -i ask.sh"),
            ("zsh", false, None, "zsh -ic vared x"),
        ] {
            assert!(!may(name, canonical, bytes, line), "{line}");
        }
    }
}
