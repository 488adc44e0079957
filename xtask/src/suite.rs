//! Runs one test suite, shows its output, and reads from its JUnit report which tests passed, failed and did not run.

use crate::junit::{self, Case, Outcome};
use anyhow::{Context as _, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// The signals that tests send, and that a process which was started in the background by a script ignores for ever.
const DEFAULT_SIGNALS: [(&str, u32); 4] = [("HUP", 1), ("INT", 2), ("QUIT", 3), ("PIPE", 13)];

/// The exit code of a pytest that had no test to run.
const PYTEST_RAN_NOTHING: i32 = 5;

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
}

impl Count {
    /// A suite that could not even begin.
    pub const BROKEN: Self = Self { failed: 1, ..Self::NOTHING };
    /// No test at all.
    pub const NOTHING: Self = Self { passed: 0, failed: 0, known_failures: 0, not_run: 0 };

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            known_failures: self.known_failures + other.known_failures,
            not_run: self.not_run + other.not_run,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        for (count, state) in [(self.known_failures, "known to fail"), (self.not_run, "not run")] {
            if count > 0 {
                write!(f, ", {count} {state}")?;
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
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Report {
    /// The number.
    pub count: Count,
    /// Tests that failed, and what they said.
    pub failed: BTreeMap<String, String>,
    /// Tests that did not run, or not wholly.
    pub left_out: BTreeSet<LeftOut>,
    /// The seconds that each test took.
    pub seconds: Vec<(f64, String)>,
}

impl From<Count> for Report {
    fn from(count: Count) -> Self {
        Self { count, ..Self::default() }
    }
}

impl Report {
    /// The report of these tests.
    fn of(cases: Vec<Case>) -> Self {
        let mut report = Self::default();
        for case in cases {
            report.seconds.push((case.seconds, case.name.clone()));
            match case.outcome {
                Outcome::Passed => report.count.passed += 1,
                Outcome::KnownFailure => report.count.known_failures += 1,
                Outcome::Failed(message) => {
                    report.count.failed += 1;
                    report.failed.insert(case.name, message);
                }
                Outcome::NotRun(why) => {
                    report.count.not_run += 1;
                    report.left_out.insert(LeftOut { test: case.name, why, in_part: false });
                }
            }
        }
        report
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
            match self.failed.keys().find(|name| is_named(name)).cloned() {
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

/// Runs a suite whose runner writes this JUnit report.
pub fn run(command: &mut Command, report: &Path) -> Result<Report> {
    if let Some(folder) = report.parent() {
        fs::create_dir_all(folder)?;
    }
    // The report of an earlier run would speak for a runner that breaks before it writes one.
    if report.exists() {
        fs::remove_file(report)?;
    }
    let ignored = ignored();
    if !ignored.is_empty() {
        *command = heeding(command, &ignored);
    }
    let program = command.get_program().to_owned();
    let status = command.stdin(Stdio::null()).status().with_context(|| format!("cannot run {program:?}"))?;
    let text = if report.exists() { fs::read_to_string(report)? } else { String::new() };
    judge(&text, status)
}

fn judge(text: &str, status: ExitStatus) -> Result<Report> {
    let cases = if text.is_empty() { Vec::new() } else { junit::read(text)? };
    // A filter that leaves nothing is an error to pytest; whether it is one is for the caller to say.
    let ran_nothing = cases.is_empty() && status.code() == Some(PYTEST_RAN_NOTHING);
    let mut report = Report::of(cases);
    if !status.success() && report.count.failed == 0 && !ran_nothing {
        // The suite did not compile, or its runner broke: that must not look like a suite without failures.
        report.count.failed = 1;
    }
    Ok(report)
}

/// The signals that this process ignores because the one that started it did, as `nohup` and a script's `&` do.
fn ignored() -> Vec<&'static str> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn count(passed: u64, failed: u64) -> Count {
        Count { passed, failed, ..Count::NOTHING }
    }

    fn failed(all: &[&str]) -> BTreeMap<String, String> {
        all.iter().map(|name| ((*name).to_owned(), String::new())).collect()
    }

    fn left_out(test: &str, why: &str, in_part: bool) -> LeftOut {
        LeftOut { test: test.to_owned(), why: why.to_owned(), in_part }
    }

    /// A suite that is this script; `$1` is the report to write.
    fn ran(script: &str) -> Report {
        let of_this_test = format!("ptyd-suite-{}-{:?}", std::process::id(), std::thread::current().id());
        let folder = std::env::temp_dir().join(of_this_test);
        let report = folder.join("junit.xml");
        let ran = run(Command::new("sh").args(["-c", script, "sh"]).arg(&report), &report);
        let _ = fs::remove_dir_all(&folder);
        ran.unwrap()
    }

    #[test]
    fn a_suite_is_counted_by_its_report() {
        let cases = "<testcase name='a' time='2'/><testcase name='b'><failure/></testcase>\
                     <testcase name='c'><skipped message='no zsh'/></testcase>\
                     <testcase name='d'><skipped type='pytest.xfail'/></testcase>";
        let report = ran(&format!("echo \"<testsuites>{cases}</testsuites>\" >\"$1\"; exit 1"));
        assert_eq!(report.count, Count { passed: 1, failed: 1, known_failures: 1, not_run: 1 });
        assert_eq!((report.failed, report.left_out), (failed(&["b"]), [left_out("c", "no zsh", false)].into()));
        assert_eq!(report.seconds[0], (2.0, "a".to_owned()));
    }

    #[test]
    fn a_suite_that_breaks_before_it_counts_has_failed() {
        let passes = "echo '<testsuites><testcase name=\"a\"/></testsuites>' >\"$1\"";
        assert_eq!(ran("exit 101").count, Count::BROKEN);
        assert_eq!(ran("exit 5").count, Count::NOTHING);
        assert_eq!(ran(&format!("{passes}; exit 0")).count, count(1, 0));
        assert_eq!(ran(&format!("{passes}; exit 5")).count, count(1, 1));
    }

    #[test]
    fn a_process_that_a_test_left_behind_does_not_block_the_suite() {
        let pid = std::env::temp_dir().join(format!("ptyd-suite-left-{}", std::process::id()));
        let report = ran(&format!("sleep 600 & echo $! >{}", pid.display()));
        let kill = Command::new("kill").arg(fs::read_to_string(&pid).unwrap().trim()).status().unwrap();
        fs::remove_file(&pid).unwrap();
        // The process was there to be killed, so the suite has not waited for it.
        assert!(kill.success());
        assert_eq!(report.count, Count::NOTHING);
    }

    #[test]
    // promise: check-1
    fn a_test_that_says_that_it_did_not_run_has_neither_passed_nor_failed() {
        let ran =
            Report { count: count(5, 2), failed: failed(&["e2e::it a::two", "e2e::it b::two"]), ..Report::default() };
        let notes = [
            left_out("a::one", "only root", false),
            left_out("a::one", "only root", false),
            left_out("a::two", "there is no zsh", false),
            left_out("a::three", "no conda", true),
        ];
        let report = ran.with_notes(notes);
        assert_eq!(report.count, Count { not_run: 2, ..count(4, 1) });
        assert_eq!((report.failed, report.left_out.len()), (failed(&["e2e::it b::two"]), 3));
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
