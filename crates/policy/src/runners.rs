//! Programs and builtins that run what their arguments say, or change what later words mean.

use crate::words::{Word, base_name};

/// A program that runs another one, which stands behind its own options.
struct Runner {
    name: &'static str,
    /// Its one-letter options that take the next word, if nothing is attached to them.
    with_value: &'static str,
    /// The same of long ones.
    long_with_value: &'static [&'static str],
    /// How many words stand before the program that are not options.
    before: usize,
    /// Variables may stand before the program.
    has_assignments: bool,
}

const fn runner(name: &'static str, with_value: &'static str, before: usize) -> Runner {
    Runner { name, with_value, long_with_value: &[], before, has_assignments: false }
}

const RUNNERS: [Runner; 35] = [
    Runner {
        name: "env",
        with_value: "uCS",
        long_with_value: &["--unset", "--chdir", "--split-string"],
        before: 0,
        has_assignments: true,
    },
    Runner {
        name: "sudo",
        with_value: "ugpCrtTUDhR",
        long_with_value: &["--user", "--group", "--prompt", "--chdir", "--host", "--role", "--type", "--chroot"],
        before: 0,
        has_assignments: true,
    },
    runner("doas", "uC", 0),
    runner("nice", "n", 0),
    runner("nohup", "", 0),
    runner("setsid", "", 0),
    runner("stdbuf", "ioe", 0),
    Runner {
        name: "timeout",
        with_value: "sk",
        long_with_value: &["--signal", "--kill-after"],
        before: 1,
        has_assignments: false,
    },
    runner("ionice", "cnp", 0),
    runner("chrt", "", 1),
    runner("taskset", "", 1),
    runner("chroot", "", 1),
    runner("unshare", "", 0),
    runner("nsenter", "t", 0),
    runner("time", "fo", 0),
    runner("command", "", 0),
    runner("builtin", "", 0),
    runner("exec", "a", 0),
    Runner {
        name: "xargs",
        with_value: "adEILnPs",
        long_with_value: &["--arg-file", "--delimiter", "--max-args", "--max-procs", "--replace", "--max-chars"],
        before: 0,
        has_assignments: false,
    },
    runner("parallel", "j", 0),
    runner("flock", "wE", 1),
    runner("strace", "efopsuaEIOPSX", 0),
    runner("ltrace", "efopsuaAnFl", 0),
    runner("busybox", "", 0),
    runner("toybox", "", 0),
    runner("runuser", "uggGcs", 0),
    runner("setpriv", "", 0),
    runner("prlimit", "", 0),
    runner("systemd-run", "pupMEt", 0),
    runner("systemd-inhibit", "", 0),
    runner("firejail", "", 0),
    runner("fakeroot", "", 0),
    runner("xvfb-run", "nsef", 0),
    runner("dbus-run-session", "", 0),
    runner("catchsegv", "", 0),
];

/// Programs that read a script from their `-c`, or from standard input.
const SHELLS: [&str; 12] =
    ["sh", "bash", "rbash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "su", "runuser", "script"];

/// A command or a script that another command runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    /// A command of these words.
    Command(Vec<Word>),
    /// A script with this text.
    Script(String),
}

/// Finds the commands that a command of these words runs.
pub(crate) fn inner(words: &[Word]) -> Vec<Inner> {
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    let Some(program) = program.text().map(base_name) else { return Vec::new() };
    let mut found = Vec::new();
    if let Some(runner) = RUNNERS.iter().find(|runner| runner.name == program) {
        let inside = runner.inside(arguments);
        if !inside.is_empty() {
            found.push(Inner::Command(inside.to_vec()));
        }
    }
    if SHELLS.contains(&program) {
        found.extend(script_of_shell(arguments));
    }
    match program {
        "env" => found.extend(split_string(arguments)),
        "find" | "fd" | "fdfind" => found.extend(executed_by_find(arguments)),
        "eval" | "watch" | "parallel" => found.extend(joined(arguments)),
        "trap" => found.extend(arguments.first().and_then(Word::text).map(|text| Inner::Script(text.to_owned()))),
        "alias" => {
            let values = arguments.iter().filter_map(|word| word.text()?.split_once('='));
            found.extend(values.map(|(_, value)| Inner::Script(value.to_owned())));
        }
        _ => {}
    }
    found
}

impl Runner {
    /// The words of the program that it runs.
    fn inside<'a>(&self, arguments: &'a [Word]) -> &'a [Word] {
        let mut rest = arguments;
        let mut before = self.before;
        while let Some((word, behind)) = rest.split_first() {
            // A word that is not known is most likely a value or an option.
            let Some(text) = word.text() else {
                rest = behind;
                continue;
            };
            if text == "--" {
                rest = behind;
            } else if text.starts_with("--") {
                rest = if self.long_with_value.contains(&text) { behind.get(1..).unwrap_or_default() } else { behind };
            } else if let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) {
                // `-u root`; in `-uroot` the value is attached.
                let takes_next = letters.chars().next_back().is_some_and(|last| self.with_value.contains(last))
                    && !letters.chars().rev().skip(1).any(|c| self.with_value.contains(c));
                rest = if takes_next { behind.get(1..).unwrap_or_default() } else { behind };
            } else if self.has_assignments && text.contains('=') {
                rest = behind;
            } else if before > 0 {
                before -= 1;
                rest = behind;
            } else {
                return rest;
            }
        }
        &[]
    }
}

/// The script behind `-c`, also in a group of letters such as `-lc`.
fn script_of_shell(arguments: &[Word]) -> Option<Inner> {
    let is_c = |word: &Word| {
        let letters = word.text().and_then(|text| text.strip_prefix(['-', '+'])).unwrap_or_default();
        (!letters.starts_with('-') && letters.contains('c')) || word.is("--command")
    };
    let at = arguments.iter().position(is_c)?;
    let is_option = |word: &&Word| word.begins("-") || word.begins("+");
    let script = arguments.get(at + 1..)?.iter().find(|word| !is_option(word));
    script.and_then(Word::text).map(|text| Inner::Script(text.to_owned()))
}

/// `env -S 'rm -rf /'`.
fn split_string(arguments: &[Word]) -> Option<Inner> {
    for (at, word) in arguments.iter().enumerate() {
        let Some(text) = word.text() else { continue };
        if let Some(value) = text.strip_prefix("--split-string=") {
            return Some(Inner::Script(value.to_owned()));
        }
        let is_short = text.starts_with('-') && !text.starts_with("--");
        match text.split_once('S').filter(|_| is_short) {
            Some((_, "")) => return arguments.get(at + 1)?.text().map(|text| Inner::Script(text.to_owned())),
            Some((_, value)) => return Some(Inner::Script(value.to_owned())),
            None if text == "--split-string" => {
                return arguments.get(at + 1)?.text().map(|text| Inner::Script(text.to_owned()));
            }
            None => {}
        }
    }
    None
}

/// The commands behind `-exec` and its like.
fn executed_by_find(arguments: &[Word]) -> Vec<Inner> {
    const EXECUTE: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        if word.text().is_some_and(|text| EXECUTE.contains(&text)) {
            let behind = arguments.get(at + 1..).unwrap_or_default();
            let end = behind.iter().position(|word| word.is(";") || word.is("+")).unwrap_or(behind.len());
            found.push(Inner::Command(behind.get(..end).unwrap_or_default().to_vec()));
        }
    }
    found
}

/// Words that a builtin joins to a script; without its options.
fn joined(arguments: &[Word]) -> Option<Inner> {
    let words: Vec<&str> = arguments.iter().filter_map(Word::text).skip_while(|text| text.starts_with('-')).collect();
    (!words.is_empty()).then(|| Inner::Script(words.join(" ")))
}

/// Builtins of bash that leave everything behind them as it was.
const HARMLESS: [&str; 20] = [
    ":", "true", "false", "echo", "pwd", "cd", "pushd", "popd", "dirs", "type", "kill", "umask", "ulimit", "times",
    "exit", "logout", "fg", "bg", "disown", "help",
];

/// Builtins of bash that change what later words mean, run text, or keep what they read.
const CHANGING: [&str; 35] = [
    ".",
    "source",
    "alias",
    "unalias",
    "bind",
    "builtin",
    "caller",
    "command",
    "compgen",
    "complete",
    "compopt",
    "declare",
    "typeset",
    "enable",
    "eval",
    "exec",
    "export",
    "fc",
    "getopts",
    "hash",
    "history",
    "let",
    "local",
    "mapfile",
    "readarray",
    "read",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "suspend",
    "trap",
    "unset",
    "break",
];

/// Whether a command of these words changes what later ones mean.
pub(crate) fn changes_meaning(words: &[Word]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let Some(program) = program.text() else { return true };
    match program {
        _ if HARMLESS.contains(&program) => false,
        _ if CHANGING.contains(&program) => true,
        "continue" => true,
        _ => names_variables(program, arguments),
    }
}

/// Whether a builtin may take one of its arguments for the name of a variable: bash runs what stands in the brackets of
/// `NAME[…]`, so no rule that matches words can prove such a command.
pub(crate) fn runs_a_subscript(words: &[Word]) -> bool {
    let Some((Word::Literal(program), arguments)) = words.split_first() else { return false };
    names_variables(program, arguments)
}

/// Builtins that run what stands in an argument, whether in brackets, as arithmetic or by an option.
const EVALUATING: [&str; 11] =
    ["compgen", "complete", "declare", "getopts", "let", "local", "mapfile", "read", "readarray", "typeset", "unset"];

fn names_variables(program: &str, arguments: &[Word]) -> bool {
    let may_be =
        |option: &str| arguments.iter().any(|word| !matches!(word, Word::Literal(text) if !text.starts_with(option)));
    match program {
        // `%n` stores a number in a variable, as `-v` stores the text.
        "printf" => may_be("-v") || arguments.iter().any(|word| word.text().is_none_or(stores_a_count)),
        "test" | "[" => may_be("-v") || may_be("-R"),
        "wait" => may_be("-p"),
        "jobs" => may_be("-x"),
        _ => EVALUATING.contains(&program),
    }
}

/// Whether a format of printf may have a `%n`, with flags, a width or a length.
fn stores_a_count(format: &str) -> bool {
    let is_n = |rest: &str| {
        rest.trim_start_matches(|c: char| !c.is_ascii_alphabetic() || "hlLqjzt".contains(c)).starts_with('n')
    };
    // An escape such as `\\045` can make the percent sign.
    let has_percent = |at: (usize, &str)| is_n(format.get(at.0 + 1..).unwrap_or_default());
    format.match_indices('%').any(has_percent) || ["\\0", "\\1", "\\x", "\\u", "\\U"].iter().any(|e| format.contains(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        text.split_whitespace().map(|word| Word::Literal(word.replace('_', " "))).collect()
    }

    fn said(text: &str) -> Vec<String> {
        let one = |inner: Inner| match inner {
            Inner::Command(words) => words.iter().filter_map(Word::text).collect::<Vec<_>>().join(" "),
            Inner::Script(text) => format!("script {text}"),
        };
        inner(&words(text)).into_iter().map(one).collect()
    }

    #[test]
    // promise: policy-3
    fn the_command_of_a_runner_is_found_behind_its_own_options() {
        for (text, expected) in [
            ("env -i A=1 B=2 rm -r x", "rm -r x"),
            ("env -u HOME rm", "rm"),
            ("env -S rm_-rf_x", "script rm -rf x"),
            ("sudo -u root -n rm x", "rm x"),
            ("sudo -uroot --user x A=1 /bin/rm x", "/bin/rm x"),
            ("timeout -s KILL 5 rm", "rm"),
            ("timeout --signal=KILL 5 rm", "rm"),
            ("nice -n 5 rm", "rm"),
            ("nice -5 rm", "rm"),
            ("xargs -0 -I {} rm {}", "rm {}"),
            ("command -p rm", "rm"),
            ("exec -a x rm", "rm"),
            ("busybox rm x", "rm x"),
            ("/usr/bin/nohup rm", "rm"),
            ("find . -name x -exec rm {} ;", "rm {}"),
            ("find . -execdir rm {} + -ok mv a b ;", "rm {} / mv a b"),
            ("sh -c rm_x", "script rm x"),
            ("bash -lc rm_x", "script rm x"),
            ("bash --norc -e -c -- rm_x", "script rm x"),
            ("su -c rm_x root", "script rm x"),
            ("eval rm x", "script rm x"),
            ("trap rm_x EXIT", "script rm x"),
            ("alias a=rm_x", "script rm x"),
            ("ls rm", ""),
        ] {
            assert_eq!(said(text).join(" / "), expected, "{text}");
        }
    }

    #[test]
    // promise: policy-2
    fn builtins_that_change_later_words_are_known_by_their_arguments() {
        for text in [
            "alias a=b",
            "export A=b",
            ". x",
            "eval x",
            "printf -v PATH x",
            "printf -vPATH x",
            "test -v a",
            "jobs -x ls",
        ] {
            assert!(changes_meaning(&words(text)), "{text}");
        }
        for text in ["ls", "echo -v", "printf %s x", "test -f a", "cd x", "exit 1", "git -v"] {
            assert!(!changes_meaning(&words(text)), "{text}");
        }
        assert!(changes_meaning(&[Word::Literal("printf".into()), Word::Glob(String::new())]));
        for text in [
            "printf -v a[0] x",
            "printf %n PATH",
            "printf %-5lln_%s PATH",
            "test -v a[0]",
            "test 1 -eq 1 -a -v a[0]",
            "test -R a",
            "read a[0]",
            "declare a[0]=1",
            "let a[0]",
            "compgen -C rm",
            "unset a[0]",
            "mapfile -C rm -c 1",
        ] {
            assert!(runs_a_subscript(&words(text)), "{text}");
        }
        for text in ["printf %s\\n a", "printf %d-%s 1 n", "printf 100%", "test -f a", "test 1 -eq 2", "printf name"] {
            assert!(!runs_a_subscript(&words(text)), "{text}");
        }
        assert!(!changes_meaning(&[Word::Literal("cat".into()), Word::Glob(String::new())]));
    }
}
