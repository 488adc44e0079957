//! Thousands of mixed commands in every shell, made from a seed, each with the output and the code that it must give.
//!
//! `cargo xtask test --full shell_mixes` runs 10,000 in each; `PTYD_TEST_SEED` repeats a run.

use api::{Boundary, CommandStatus};
use e2e::shells::{ALL, Dialect};
use e2e::{Random, Server, count, join_all};

/// A text, and what must come of it.
#[derive(Debug, PartialEq)]
struct Mixed {
    text: String,
    output: String,
    code: i32,
}

/// Makes statements of one shell.
struct Mixer {
    random: Random,
    dialect: Dialect,
    made: usize,
}

impl Mixer {
    fn word(&mut self) -> String {
        const WORDS: [&str; 8] = ["alpha", "beta", "é€", "x y", "-n-", "!!", "a'b", "\\t"];
        let pick = WORDS[usize::try_from(self.random.below(8)).unwrap_or(0)];
        format!("{pick}{}", self.made)
    }

    fn code(&mut self) -> i32 {
        i32::try_from(self.random.below(120)).unwrap_or(0)
    }

    /// Statements that every shell has, and then those of the shell's family.
    fn statement(&mut self) -> Mixed {
        self.made += 1;
        let (word, code, fish) = (self.word(), self.code(), self.dialect.is_fish());
        let quoted = self.dialect.quoted(&word);
        let of = |text: String, output: String, code: i32| Mixed { text, output, code };
        let line = format!("{word}\n");
        match self.random.below(19) {
            0 => of(format!("printf '%s\\n' {quoted}"), line, 0),
            1 => of(format!("printf %s {quoted}; echo"), line, 0),
            2 => of(self.dialect.code(code), String::new(), code),
            3 => of(format!("printf '%s\\n' {quoted} | cat | cat"), line, 0),
            4 => of("false".into(), String::new(), 1),
            // It would explain at length, to the terminal.
            5 if fish => of("sh -c no-such-command-at-all 2>/dev/null".into(), String::new(), 127),
            5 => of("no-such-command-at-all 2>/dev/null".into(), String::new(), 127),
            6 => of("sh -c 'kill -TERM $$' 2>/dev/null".into(), String::new(), 143),
            7 => of(format!("seq {} | tail -n 1", code + 1), format!("{}\n", code + 1), 0),
            8 => of("sh -c 'sleep 0.01 & echo started; exit 3'".into(), "started\n".into(), 3),
            9 => of("sh -c 'set -e; echo in; false; echo not'".into(), "in\n".into(), 1),
            10 if fish => of(format!("set w {quoted}; printf '%s\\n' $w"), line, 0),
            10 => of(format!("cat <<'X' | cat\n{word}\nX"), line, 0),
            11 if fish => of("for i in a b\n  echo $i\nend".into(), "a\nb\n".into(), 0),
            11 => of("for i in a b; do\n  echo $i\ndone".into(), "a\nb\n".into(), 0),
            12 => {
                let function = self.dialect.function(&format!("f{}", self.made), "from f");
                of(format!("{function}\nf{}", self.made), "from f\n".into(), 0)
            }
            13 if fish => of(format!("alias g{0} 'echo g'\ng{0}", self.made), "g\n".into(), 0),
            13 => of(format!("alias g{0}='echo g'\neval g{0}", self.made), "g\n".into(), 0),
            14 if fish => of("begin; echo in; false; end".into(), "in\n".into(), 1),
            14 => of(format!("(echo in; exit {code})"), "in\n".into(), code),
            15 if fish => of("if false; echo no; else; echo yes; end".into(), "yes\n".into(), 0),
            15 => of("if false; then echo no; else echo yes; fi".into(), "yes\n".into(), 0),
            16 if fish => of("begin; sleep 0.01 & wait; end >/dev/null 2>&1; echo w".into(), "w\n".into(), 0),
            16 => of("(sleep 0.01 & wait); echo w".into(), "w\n".into(), 0),
            17 if fish => of("echo one \\\n  two".into(), "one two\n".into(), 0),
            17 => of("(set -e; echo in; false; echo not)".into(), "in\n".into(), 1),
            _ => of("cd /usr; cd - >/dev/null; true".into(), String::new(), 0),
        }
    }

    /// One to three of them as one text.
    fn text(&mut self) -> Mixed {
        let mut all = self.statement();
        for _ in 0..self.random.below(3) {
            let next = self.statement();
            all.text.push('\n');
            all.text.push_str(&next.text);
            all.output.push_str(&next.output);
            all.code = next.code;
        }
        all
    }
}

/// The output without a shell's own notices of jobs that a signal ended.
fn without_notices(output: &str) -> String {
    output.split_inclusive('\n').filter(|line| !line.contains("erminated")).collect()
}

#[test]
fn the_same_seed_gives_the_same_texts() {
    let made = |dialect| {
        let mut mixer = Mixer { random: Random::of(7), dialect, made: 0 };
        (0..50).map(|_| mixer.text()).collect::<Vec<_>>()
    };
    assert_eq!(made(Dialect::Fish), made(Dialect::Fish));
    assert_ne!(made(Dialect::Fish), made(Dialect::Dash));
}

#[tokio::test]
// promise: shell-2
async fn mixed_commands_each_give_their_own_output_and_code_and_none_is_missed() {
    let server = Server::start();
    let commands = count(120, 10_000);
    let run = async |dialect: Dialect| {
        let shell = dialect.session(&server).await;
        let mut mixer = Mixer { random: Random::seeded(), dialect, made: 0 };
        for number in 0..commands {
            let mixed = mixer.text();
            let done = shell.run(&mixed.text).await;
            let output = without_notices(&done.output.unwrap_or_default());
            let told = (done.status, done.exit_code, output, done.boundary);
            let right = (CommandStatus::Completed, Some(mixed.code), mixed.output, Boundary::Attested);
            assert_eq!(told, right, "{dialect:?} {number}: {:?}", mixed.text);
        }
        let ran = server.client().commands(&shell.id).await.expect("known").total;
        assert_eq!(ran, commands, "{dialect:?}");
    };
    join_all(ALL.map(run)).await;
}
