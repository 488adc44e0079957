//! The shells in which the cases of docs/shells.md run: each shell's syntax for them, and the features it lacks.
//!
//! A case runs in every shell, or [`SKIPPED`] says why it cannot; the page and this file name the same pairs.

use api::CreateRequest;

use crate::{Server, Session, in_part, is_program, join_all};

/// A shell, and its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// GNU bash.
    Bash,
    /// zsh.
    Zsh,
    /// fish.
    Fish,
    /// dash, for all POSIX shells.
    Dash,
}

/// All of them.
pub const ALL: [Dialect; 4] = [Dialect::Bash, Dialect::Zsh, Dialect::Fish, Dialect::Dash];

/// Cases, as the page has them: the number of the behaviour, and what holds.
pub const CASES: [&str; 22] = [
    "1 a question is not an end",
    "2 exit codes",
    "2 a status for each part of a pipeline",
    "2 names of directories are exact to the byte",
    "3 no output is an end",
    "3 no other process reports an end",
    "4 ptyd reports the shell's death",
    "4 `set -e` ends the shell",
    "5 a busy shell refuses",
    "6 interrupts",
    "6 stopped jobs",
    "7 every byte of a command arrives",
    "8 commands of many lines and unusual forms",
    "8 an unfinished here-document is refused",
    "10 background output",
    "13 input to programs that read lines, and keys by name",
    "14 typed secrets",
    "16 noisy output",
    "17 other encodings in the output",
    "18 waits",
    "20 settings that could confuse ptyd",
    "20 typing by a person",
];

/// The cases that a shell skips, and why.
pub const SKIPPED: [(&str, Dialect, &str); 5] = [
    ("2 a status for each part of a pipeline", Dialect::Dash, "it keeps the last status only"),
    ("4 `set -e` ends the shell", Dialect::Fish, "it has no such option"),
    ("8 an unfinished here-document is refused", Dialect::Zsh, "the end of the text ends it"),
    ("8 an unfinished here-document is refused", Dialect::Fish, "it has no here-documents"),
    ("8 an unfinished here-document is refused", Dialect::Dash, "the end of the text ends it"),
];

impl Dialect {
    /// The shell's program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Dash => "dash",
        }
    }

    /// Whether it is fish.
    pub fn is_fish(self) -> bool {
        self == Self::Fish
    }

    /// A new session of it.
    pub async fn session(self, server: &Server) -> Session {
        let shell = Some(self.name().to_owned());
        server.session_with(CreateRequest { shell, ..CreateRequest::default() }).await
    }

    /// Asks with a prompt, and prints what came.
    pub fn ask(self, prompt: &str) -> String {
        match self {
            Self::Bash => format!("read -p '{prompt}' n; echo got:$n"),
            Self::Zsh => format!("read 'n?{prompt}'; echo got:$n"),
            Self::Fish => format!("read -P '{prompt}' n; echo got:$n"),
            Self::Dash => format!("printf '{prompt}'; read -r n; echo got:$n"),
        }
    }

    /// Asks for a secret, and prints how long it was.
    pub fn ask_secret(self) -> &'static str {
        match self {
            Self::Bash => "read -rsp 'Password: ' p; echo; echo ${#p}",
            Self::Zsh => "read -rs 'p?Password: '; echo; echo ${#p}",
            // Its own `read -s` paints in its editor; a program's question is the same for all.
            Self::Fish => "bash -c 'read -rsp \"Password: \" p; echo; echo ${#p}'",
            Self::Dash => "stty -echo; printf 'Password: '; read -r p; stty echo; echo; echo ${#p}",
        }
    }

    /// Ends with this code.
    pub fn code(self, code: i32) -> String {
        if self.is_fish() { format!("sh -c 'exit {code}'") } else { format!("(exit {code})") }
    }

    /// Kills the shell itself.
    pub fn kills_itself(self, signal: &str) -> String {
        format!("kill -{signal} {}", if self.is_fish() { "$fish_pid" } else { "$$" })
    }

    /// Runs this in the background, where it holds the terminal.
    pub fn background(self, text: &str) -> String {
        if self.is_fish() { format!("sh -c '{text}' &") } else { format!("({text}) &") }
    }

    /// A word that means these characters.
    pub fn quoted(self, text: &str) -> String {
        if self.is_fish() {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    }

    /// A function that prints these words.
    pub fn function(self, name: &str, words: &str) -> String {
        if self.is_fish() {
            format!("function {name}; echo {words}; end")
        } else {
            format!("{name}() {{ echo {words}; }}")
        }
    }
}

/// One shell of a case.
pub struct Trial<'a> {
    /// The server of all trials.
    pub server: &'a Server,
    /// The shell.
    pub dialect: Dialect,
    /// A session of it.
    pub shell: Session,
    /// A folder of its own, in which the shell is.
    pub folder: std::path::PathBuf,
}

impl Trial<'_> {
    /// The exit code and output of a command, with the shell's name for a failure's report.
    pub async fn gives(&self, command: &str) -> (&'static str, i32, String) {
        let (code, output) = self.shell.gives(command).await;
        (self.dialect.name(), code, output)
    }

    /// The same as it is to be.
    pub fn is(&self, code: i32, output: &str) -> (&'static str, i32, String) {
        (self.dialect.name(), code, output.to_owned())
    }
}

/// Runs a case in every shell that has what it needs, all at once.
pub async fn each(case: &str, run: impl AsyncFn(&Trial<'_>)) {
    assert!(CASES.contains(&case), "{case:?} is not on the page");
    let server = Server::start();
    let is_skipped = |dialect| SKIPPED.iter().any(|(skipped, by, _)| *skipped == case && *by == dialect);
    let one = async |dialect: Dialect| {
        let shell = dialect.session(&server).await;
        let folder = server.home().file(dialect.name());
        std::fs::create_dir(&folder).expect("a folder of its own");
        let trial = Trial { server: &server, dialect, shell, folder };
        trial.gives(&format!("cd {}", trial.folder.display())).await;
        run(&trial).await;
    };
    let is_there = |dialect: &Dialect| {
        let is_there = is_program(dialect.name());
        if !is_there {
            in_part(format!("there is no {} on PATH", dialect.name()));
        }
        is_there
    };
    join_all(ALL.into_iter().filter(|dialect| !is_skipped(*dialect)).filter(is_there).map(one)).await;
}
