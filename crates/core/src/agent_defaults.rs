//! The defaults of a session that a model starts.

/// The name of the profile for such sessions; it replaces [`AGENT_VARIABLES`].
pub const AGENT_PROFILE: &str = "agent";

/// The variables of a session that a model starts: a pager would wait for a key at each page.
pub const AGENT_VARIABLES: [(&str, &str); 7] = [
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("SYSTEMD_PAGER", "cat"),
    ("GH_PAGER", "cat"),
    ("AWS_PAGER", "cat"),
    ("BAT_PAGER", "cat"),
];

/// The shell: models write for bash, whatever their user's shell is.
pub const AGENT_SHELL: &str = "bash";
