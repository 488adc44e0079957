//! Paths of a Linux machine that matter to a confined session: secrets, what users share, the system's own.

/// Files and folders with secrets, in any home.
pub(crate) const HOME_SECRETS: [&str; 43] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/op",
    ".config/containers",
    ".config/google-chrome",
    ".config/chromium",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/fish/fish_history",
    ".mozilla",
    ".thunderbird",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".viminfo",
    ".Xauthority",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
];

/// Secrets of the machine, and places that sessions and users share.
pub(crate) const HIDDEN: [&str; 18] = [
    "/home",
    "/root",
    "/tmp",
    "/var/tmp",
    "/run",
    "/dev",
    "/boot",
    "/mnt",
    "/media",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers.d",
    "/var/lib/docker",
    "/var/lib/containers",
];

/// Folders of the system.
pub(crate) const SYSTEM: [&str; 15] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/run", "/sbin", "/sys",
    "/usr", "/var",
];

/// Folders that as a whole belong to no project, beside [`HIDDEN`].
pub(crate) const ABOVE_PROJECTS: [&str; 1] = ["/srv"];

/// The usual names of folders of programs: a shell outside may have each of them on its PATH.
pub(crate) const PROGRAM_FOLDERS: [&str; 3] = ["bin", "sbin", ".bin"];

/// Git's folder of a project. Where it is a file, it names that folder.
pub(crate) const GIT: &str = ".git";

/// The settings of a project by which programs outside run something when its user works there.
pub(crate) const PROJECT_SETTINGS: [&str; 6] =
    [".envrc", ".mcp.json", ".vscode", ".git/config", ".git/config.worktree", ".git/hooks"];

/// The folders with the addresses of name servers; they are inside of hidden ones.
pub(crate) const NAME_SERVERS: [&str; 2] = ["/run/systemd/resolve", "/run/resolvconf"];

pub(crate) use sys::sandbox::{OWN as OWN_OF_SANDBOX, TEMPORARY};

/// The devices that every program may open.
pub(crate) const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];
