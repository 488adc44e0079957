//! Runs one test suite: shows its output while it runs, and reads which tests passed, failed and did not run.

use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead as _, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How long a suite that has ended may still be printing. A process that a test left behind can hold the pipe open for
/// ever, and would otherwise hold us too.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The signals that tests send, and that a process which was started in the background by a script ignores for ever.
const DEFAULT_SIGNALS: [(&str, u32); 4] = [("HUP", 1), ("INT", 2), ("QUIT", 3), ("PIPE", 13)];

/// The result of a suite.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, did not end in time, or could not be run.
    pub failed: u64,
    /// Tests that say of themselves that they cannot pass, and why.
    pub known_failures: u64,
    /// Tests that were left out by their own word.
    pub not_run: u64,
    /// Tests that the filter left out.
    pub filtered: u64,
}

impl Count {
    /// A suite that could not even begin.
    pub const BROKEN: Self = Self { failed: 1, ..Self::NOTHING };
    /// No test at all.
    pub const NOTHING: Self = Self { passed: 0, failed: 0, known_failures: 0, not_run: 0, filtered: 0 };

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            known_failures: self.known_failures + other.known_failures,
            not_run: self.not_run + other.not_run,
            filtered: self.filtered + other.filtered,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, what) in [
            (self.known_failures, "known to fail"),
            (self.not_run, "not run"),
            (self.filtered, "left out by the filter"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// A test that did not run, or not wholly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LeftOut {
    /// Its name, as its runner has it.
    pub test: String,
    /// Its own word.
    pub why: String,
    /// Whether a part of it ran.
    pub in_part: bool,
}

/// A suite's count, and the names that belong to it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// The number.
    pub count: Count,
    /// Tests that failed.
    pub failed: BTreeSet<String>,
    /// Tests that did not run, or not wholly.
    pub left_out: BTreeSet<LeftOut>,
}

impl From<Count> for Report {
    fn from(count: Count) -> Self {
        Self { count, ..Self::default() }
    }
}

impl Report {
    /// Both together.
    pub fn plus(mut self, other: Self) -> Self {
        self.count = self.count.plus(other.count);
        self.failed.extend(other.failed);
        self.left_out.extend(other.left_out);
        self
    }

    /// Takes in what tests have said of themselves: one that did not run has passed for its runner, or failed for want of
    /// what it needs, and is neither.
    pub fn with_notes(mut self, notes: impl IntoIterator<Item = LeftOut>) -> Self {
        for note in notes {
            let is_named = |name: &str| name == note.test || name.ends_with(&format!(" {}", note.test));
            let is_new = self.left_out.insert(note.clone());
            if note.in_part || !is_new {
                continue;
            }
            self.count.not_run += 1;
            match self.failed.iter().find(|name| is_named(name)).cloned() {
                Some(name) => {
                    self.failed.remove(&name);
                    self.count.failed = self.count.failed.saturating_sub(1);
                }
                None => self.count.passed = self.count.passed.saturating_sub(1),
            }
        }
        self
    }
}

/// The form of a test runner's summary.
#[derive(Clone, Copy, Debug)]
pub enum Runner {
    /// `cargo nextest run`: one line for everything.
    Nextest,
    /// `cargo test`: one line for each test program.
    Libtest,
    /// `pytest -rfEsx`: one line at the end, behind one for each test that did not just pass.
    Pytest,
    /// `node --test --test-reporter=tap`: a line for each outcome, at the end.
    Node,
}

impl Runner {
    fn count(self, printed: &str) -> Count {
        let mut lines = printed.lines();
        match self {
            Self::Nextest => lines.rfind(|line| is_nextest_summary(line)).map(nextest).unwrap_or_default(),
            Self::Libtest => lines
                .filter(|line| line.starts_with("test result: "))
                .map(|line| Count {
                    passed: number_before(line, "passed"),
                    failed: number_before(line, "failed"),
                    filtered: number_before(line, "ignored") + number_before(line, "filtered"),
                    ..Count::NOTHING
                })
                .fold(Count::default(), Count::plus),
            Self::Node => {
                let of = |outcome: &str| {
                    let mark = format!("# {outcome} ");
                    lines.clone().filter_map(|line| line.strip_prefix(&mark)?.parse::<u64>().ok()).sum::<u64>()
                };
                Count {
                    passed: of("pass"),
                    failed: of("fail") + of("cancelled"),
                    not_run: of("skipped") + of("todo"),
                    ..Count::NOTHING
                }
            }
            Self::Pytest => {
                // A run of more than a minute has its time a second time, in parentheses.
                let is_summary = |line: &&str| {
                    line.contains(" in ")
                        && line.trim_end_matches(['=', ' ']).ends_with(['s', ')'])
                        && ["passed", "failed", "error", "errors", "skipped", "deselected", "xfailed"]
                            .iter()
                            .any(|word| number_before(line, word) > 0)
                };
                lines
                    .rfind(is_summary)
                    .map(|line| Count {
                        passed: number_before(line, "passed"),
                        failed: ["failed", "error", "errors", "xpassed"]
                            .map(|word| number_before(line, word))
                            .iter()
                            .sum(),
                        known_failures: number_before(line, "xfailed"),
                        not_run: number_before(line, "skipped"),
                        filtered: number_before(line, "deselected"),
                    })
                    .unwrap_or_default()
            }
        }
    }

    /// The names of the tests that failed.
    fn failed(self, printed: &str) -> BTreeSet<String> {
        let first_word = |rest: &str| rest.split(" - ").next().unwrap_or(rest).trim().to_owned();
        let lines = printed.lines();
        match self {
            // Failed tests are repeated after the count: `FAIL [ 1.2s] (3/9) e2e::it life::a_name`.
            Self::Nextest => lines
                .skip_while(|line| !is_nextest_summary(line))
                .skip(1)
                .filter(|line| line.contains('['))
                .filter_map(|line| {
                    let (_, behind) = line.split_once("] ")?;
                    let names = behind.trim_start().trim_start_matches(|c: char| "(/)0123456789 ".contains(c));
                    (!names.is_empty()).then(|| names.to_owned())
                })
                .collect(),
            Self::Libtest => lines
                .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
                .map(str::to_owned)
                .collect(),
            Self::Pytest => lines
                .filter_map(|line| line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")))
                .filter(|rest| rest.contains(".py"))
                .map(first_word)
                .collect(),
            Self::Node => lines
                .filter_map(|line| line.trim_start().strip_prefix("not ok "))
                .filter_map(|rest| rest.split_once(" - "))
                .map(|(_, name)| name.to_owned())
                .collect(),
        }
    }

    /// The tests that did not run by the runner's word; what Rust's tests say of themselves is noted elsewhere.
    fn left_out(self, printed: &str) -> BTreeSet<LeftOut> {
        let left_out = |test: &str, why: &str| LeftOut { test: test.to_owned(), why: why.to_owned(), in_part: false };
        let lines = printed.lines();
        match self {
            Self::Nextest | Self::Libtest => BTreeSet::new(),
            // `SKIPPED [2] crates/e2e/mcp/test_x.py:74: why`
            Self::Pytest => lines
                .filter_map(|line| line.strip_prefix("SKIPPED [")?.split_once("] "))
                .filter_map(|(_, rest)| rest.split_once(": "))
                .map(|(place, why)| left_out(place, why))
                .collect(),
            Self::Node => lines
                .filter_map(|line| line.trim_start().strip_prefix("ok ")?.split_once(" # SKIP"))
                .map(|(name, why)| left_out(name.split_once(" - ").map_or(name, |(_, name)| name), why.trim()))
                .collect(),
        }
    }
}

fn is_nextest_summary(line: &str) -> bool {
    line.trim_start().starts_with("Summary [")
}

/// Runs a suite and counts.
pub fn run(command: &mut Command, runner: Runner) -> Result<Report> {
    let (printed, status) = tee(command, &mut std::io::stdout())?;
    Ok(judge(runner, &printed, status))
}

/// Runs a suite that is mostly empty: it prints only when there was something to run.
pub fn run_if_any(command: &mut Command, runner: Runner) -> Result<Report> {
    let (printed, status) = tee(command, &mut std::io::sink())?;
    let report = judge(runner, &printed, status);
    if report.count.passed + report.count.failed > 0 {
        print!("{printed}");
    }
    Ok(report)
}

fn judge(runner: Runner, printed: &str, status: ExitStatus) -> Report {
    let mut count = runner.count(printed);
    // pytest calls it an error when the filter leaves nothing; whether that is one is for the caller to say.
    let is_empty = matches!(runner, Runner::Pytest) && status.code() == Some(5);
    if !status.success() && count.failed == 0 && !is_empty {
        // It did not compile, or the runner itself broke: that must not look like a suite without failures.
        count.failed = 1;
    }
    Report { count, failed: runner.failed(printed), left_out: runner.left_out(printed) }
}

/// The signals that this process ignores because the one that started it did, as `nohup` and a script's `&` do.
fn ignored() -> Vec<&'static str> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let is_ignored = |number: u32| mask >> (number - 1) & 1 == 1;
    DEFAULT_SIGNALS.into_iter().filter(|(_, number)| is_ignored(*number)).map(|(name, _)| name).collect()
}

/// The same command with these signals as they are by default; what is ignored would stay so in every shell of every test.
fn heeding(command: &Command, signals: &[&str]) -> Command {
    use std::os::unix::process::CommandExt as _;
    let mut heeding = Command::new("env");
    heeding.arg(format!("--default-signal={}", signals.join(","))).arg("--").arg(command.get_program());
    heeding.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => heeding.env(name, value),
            None => heeding.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        heeding.current_dir(folder);
    }
    // If the caller had these signals ignored, the tests should continue, too: out of the group that such a signal is sent to.
    heeding.process_group(0);
    heeding
}

/// Runs a command, passes on what it prints, and returns that and how it ended.
fn tee(command: &mut Command, shown: &mut impl Write) -> Result<(String, ExitStatus)> {
    let ignored = ignored();
    if !ignored.is_empty() {
        *command = heeding(command, &ignored);
    }
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    // The command holds the pipe's other end until it is given another stdout.
    command.stdout(Stdio::null()).stderr(Stdio::null());

    let (sender, lines) = mpsc::sync_channel(256);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(reader);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    let mut printed = Vec::new();
    loop {
        match lines.recv_timeout(LAST_WORDS) {
            Ok(line) => {
                shown.write_all(&line)?;
                printed.extend(line);
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) if child.try_wait()?.is_some() => break,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
    let status = child.wait()?;
    Ok((String::from_utf8_lossy(&printed).into_owned(), status))
}

/// Tests that were started and did not pass have failed, whatever word is used for it. A runner that was cut short says
/// `7/9 tests run`: the other two did not pass either.
fn nextest(line: &str) -> Count {
    let started = line.split_whitespace().find_map(|word| word.rsplit_once('/').and_then(|(_, all)| all.parse().ok()));
    let run: u64 = started.unwrap_or_else(|| number_before(line, "test").max(number_before(line, "tests")));
    let passed = number_before(line, "passed");
    Count { passed, failed: run.saturating_sub(passed), filtered: number_before(line, "skipped"), ..Count::NOTHING }
}

fn number_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches([',', ';', '=', '(', ')'])).collect();
    let at = words.iter().position(|found| *found == word);
    at.and_then(|at| words.get(at.checked_sub(1)?)).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(passed: u64, failed: u64, filtered: u64) -> Count {
        Count { passed, failed, filtered, ..Count::NOTHING }
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn left_out(test: &str, why: &str, in_part: bool) -> LeftOut {
        LeftOut { test: test.to_owned(), why: why.to_owned(), in_part }
    }

    #[test]
    fn what_nextest_counted_is_read() {
        let of = |line: &str| Runner::Nextest.count(&format!("x\n{line}\nerror: test run failed\n"));
        assert_eq!(of("     Summary [   1.2s] 20 tests run: 20 passed (1 slow), 3 skipped"), count(20, 0, 3));
        assert_eq!(
            of("     Summary [   1.2s] 9 tests run: 6 passed, 2 failed, 1 timed out, 0 skipped"),
            count(6, 3, 0)
        );
        assert_eq!(of("     Summary [   1.2s] 7/9 tests run: 6 passed, 1 failed, 0 skipped"), count(6, 3, 0));
        assert_eq!(of("     Summary [   0.1s] 1 test run: 1 passed, 0 skipped"), count(1, 0, 0));
    }

    #[test]
    fn what_cargo_test_counted_is_added_up() {
        let printed = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.0s\n\
                       test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.0s\n";
        assert_eq!(Runner::Libtest.count(printed), count(4, 2, 3));
    }

    #[test]
    fn what_pytest_counted_is_read() {
        let of = |line: &str| Runner::Pytest.count(&format!("..F\n{line}\n"));
        assert_eq!(
            of("=== 1 failed, 12 passed, 2 skipped, 1 error in 3.21s ==="),
            Count { not_run: 2, ..count(12, 2, 0) }
        );
        assert_eq!(of("12 passed in 3.21s"), count(12, 0, 0));
        assert_eq!(
            of("== 304 passed, 3 skipped, 1 xfailed in 64.34s (0:01:04) =="),
            Count { known_failures: 1, not_run: 3, ..count(304, 0, 0) }
        );
        assert_eq!(of("no tests ran in 0.01s"), count(0, 0, 0));
    }

    #[test]
    fn what_node_counted_is_read() {
        let printed =
            "ok 1 - a\n1..9\n# tests 9\n# pass 4\n# fail 1\n# cancelled 2\n# skipped 1\n# todo 1\n# duration_ms 4.5\n";
        assert_eq!(Runner::Node.count(printed), Count { not_run: 2, ..count(4, 3, 0) });
        assert_eq!(Runner::Node.count("SyntaxError\n"), count(0, 0, 0));
    }

    #[test]
    fn a_suite_that_breaks_before_it_counts_has_failed() {
        let broken = |runner, script| run_if_any(Command::new("sh").args(["-c", script]), runner).unwrap().count;
        assert_eq!(broken(Runner::Libtest, "echo 'error: it does not compile' >&2; exit 101"), Count::BROKEN);
        assert_eq!(broken(Runner::Pytest, "echo '4 deselected in 0.04s'; exit 5"), count(0, 0, 4));
        assert_eq!(broken(Runner::Pytest, "exit 4"), Count::BROKEN);
    }

    #[test]
    fn a_process_that_a_test_left_behind_does_not_hold_the_suite() {
        let script = "(sleep 30; echo late) & echo 'test result: ok. 1 passed; 0 failed;'; echo $!";
        let (printed, status) = tee(Command::new("sh").args(["-c", script]), &mut std::io::sink()).unwrap();
        let pid = printed.lines().last().unwrap().to_owned();
        Command::new("kill").arg(pid).status().unwrap();
        assert_eq!((Runner::Libtest.count(&printed), status.success()), (count(1, 0, 0), true));
    }

    #[test]
    fn what_failed_is_named_as_its_runner_names_it() {
        let nextest = "        FAIL [   0.4s] (1/3) e2e::it life::one\n--- STDOUT\ntest life::one ... FAILED\n\
                       ────\n     Summary [   2.5s] 3 tests run: 1 passed, 1 failed, 1 timed out, 2 skipped\n\
                               FAIL [   0.417s] (1/3) e2e::it life::one\n     TIMEOUT [ 300.0s] (3/3) holder pump::two\n\
                       error: test run failed\n";
        assert_eq!(Runner::Nextest.failed(nextest), names(&["e2e::it life::one", "holder pump::two"]));
        let libtest = "test a::b ... ok\ntest a::c ... FAILED\nfailures:\n    a::c\n";
        assert_eq!(Runner::Libtest.failed(libtest), names(&["a::c"]));
        let pytest = "FAILED crates/e2e/mcp/test_x.py::test_y[bash] - AssertionError: a - b\nERROR f/test_z.py::test_q\nFAILED (failures=1)\n";
        assert_eq!(
            Runner::Pytest.failed(pytest),
            names(&["crates/e2e/mcp/test_x.py::test_y[bash]", "f/test_z.py::test_q"])
        );
        assert_eq!(Runner::Node.failed("ok 1 - a\nnot ok 2 - a page shows it\n"), names(&["a page shows it"]));
    }

    #[test]
    fn what_did_not_run_is_named_with_its_reason() {
        let pytest = "SKIPPED [2] crates/e2e/mcp/test_x.py:74: it takes 30 s: PTYD_TEST_FULL=1\n";
        let expected = left_out("crates/e2e/mcp/test_x.py:74", "it takes 30 s: PTYD_TEST_FULL=1", false);
        assert_eq!(Runner::Pytest.left_out(pytest), BTreeSet::from([expected]));
        let node = "    ok 2 - a page # SKIP there is no browser\n";
        assert_eq!(Runner::Node.left_out(node), BTreeSet::from([left_out("a page", "there is no browser", false)]));
    }

    #[test]
    // promise: check-1
    fn a_test_that_says_that_it_did_not_run_has_neither_passed_nor_failed() {
        let ran =
            Report { count: count(5, 2, 0), failed: names(&["e2e::it a::two", "e2e::it b::two"]), ..Report::default() };
        let notes = [
            left_out("a::one", "only root", false),
            left_out("a::one", "only root", false),
            left_out("a::two", "there is no zsh", false),
            left_out("a::three", "no conda", true),
        ];
        let report = ran.with_notes(notes);
        assert_eq!(report.count, Count { not_run: 2, ..count(4, 1, 0) });
        assert_eq!((report.failed, report.left_out.len()), (names(&["e2e::it b::two"]), 3));
    }

    #[test]
    // promise: check-2
    fn a_signal_that_was_ignored_when_we_began_is_heeded_by_the_tests() {
        // As a script's `&` and `nohup` do to their programs; the shell's own child is the process that is asked.
        let asks = "grep SigIgn /proc/self/status";
        let mut plain = Command::new("sh");
        plain.args(["-c", asks]).env("KEPT", "1").env_remove("HOME").current_dir("/");
        let heeding = heeding(&plain, &["HUP", "INT"]);
        let words: Vec<_> = heeding.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(words, ["--default-signal=HUP,INT", "--", "sh", "-c", asks]);
        assert_eq!((heeding.get_envs().count(), heeding.get_current_dir()), (2, Some("/".as_ref())));
        // Its words, where both are ignored.
        let quoted = "env --default-signal=HUP,INT -- sh -c 'grep SigIgn /proc/self/status'";
        let told = |script: &str| {
            let output = Command::new("sh").args(["-c", script]).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            u64::from_str_radix(text.trim().trim_start_matches("SigIgn:").trim(), 16).unwrap() & 3
        };
        assert_eq!(told(&format!("trap '' HUP INT; {asks}")), 3);
        assert_eq!(told(&format!("trap '' HUP INT; {quoted}")), 0);
    }
}
