//! One suite of tests: run it, show what it prints while it prints it, and count what passed and failed.

use anyhow::{Context as _, Result};
use std::fmt;
use std::io::{BufRead as _, BufReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How long a suite that has ended may still be printing. A process that a test left behind can hold the pipe open for
/// ever, and would otherwise hold us too.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a suite came to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed, did not end in time, or could not be run.
    pub failed: u64,
    /// Tests that were left out, by the filter or by their own word.
    pub not_run: u64,
}

impl Count {
    /// A suite that could not even begin.
    pub const BROKEN: Self = Self { passed: 0, failed: 1, not_run: 0 };

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            not_run: self.not_run + other.not_run,
        }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// How a test runner writes down what it counted.
#[derive(Clone, Copy, Debug)]
pub enum Runner {
    /// `cargo nextest run`: one line for everything.
    Nextest,
    /// `cargo test`: one line for each test program.
    Libtest,
    /// `pytest`: one line at the end.
    Pytest,
    /// `node --test --test-reporter=tap`: a line for each outcome, at the end.
    Node,
}

impl Runner {
    fn count(self, printed: &str) -> Count {
        let mut lines = printed.lines();
        match self {
            Self::Nextest => {
                lines.rfind(|line| line.trim_start().starts_with("Summary [")).map(nextest).unwrap_or_default()
            }
            Self::Libtest => lines
                .filter(|line| line.starts_with("test result: "))
                .map(|line| Count {
                    passed: number_before(line, "passed"),
                    failed: number_before(line, "failed"),
                    not_run: number_before(line, "ignored") + number_before(line, "filtered"),
                })
                .fold(Count::default(), Count::plus),
            Self::Node => {
                let of = |outcome: &str| {
                    let mark = format!("# {outcome} ");
                    lines.clone().filter_map(|line| line.strip_prefix(&mark)?.parse::<u64>().ok()).sum::<u64>()
                };
                Count { passed: of("pass"), failed: of("fail") + of("cancelled"), not_run: of("skipped") + of("todo") }
            }
            Self::Pytest => {
                // A run of more than a minute has its time a second time, in parentheses.
                let is_summary = |line: &&str| {
                    line.contains(" in ")
                        && line.trim_end_matches(['=', ' ']).ends_with(['s', ')'])
                        && ["passed", "failed", "error", "errors", "skipped", "deselected"]
                            .iter()
                            .any(|word| number_before(line, word) > 0)
                };
                lines
                    .rfind(is_summary)
                    .map(|line| Count {
                        passed: number_before(line, "passed") + number_before(line, "xfailed"),
                        failed: ["failed", "error", "errors", "xpassed"]
                            .map(|word| number_before(line, word))
                            .iter()
                            .sum(),
                        not_run: number_before(line, "skipped") + number_before(line, "deselected"),
                    })
                    .unwrap_or_default()
            }
        }
    }
}

/// Runs a suite and counts.
pub fn run(command: &mut Command, runner: Runner) -> Result<Count> {
    let (printed, status) = tee(command, &mut std::io::stdout())?;
    Ok(judge(runner, &printed, status))
}

/// Runs a suite that is mostly empty: it prints only when there was something to run.
pub fn run_if_any(command: &mut Command, runner: Runner) -> Result<Count> {
    let (printed, status) = tee(command, &mut std::io::sink())?;
    let count = judge(runner, &printed, status);
    if count.passed + count.failed > 0 {
        print!("{printed}");
    }
    Ok(count)
}

fn judge(runner: Runner, printed: &str, status: ExitStatus) -> Count {
    let mut count = runner.count(printed);
    // pytest calls it an error when the filter leaves nothing; whether that is one is for the caller to say.
    let is_empty = matches!(runner, Runner::Pytest) && status.code() == Some(5);
    if !status.success() && count.failed == 0 && !is_empty {
        // It did not compile, or the runner itself broke: that must not look like a suite without failures.
        count.failed = 1;
    }
    count
}

/// Runs a command, passes on what it prints, and returns that and how it ended.
fn tee(command: &mut Command, shown: &mut impl Write) -> Result<(String, ExitStatus)> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    // The command holds the pipe's other end until it is told to hold something else.
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
    Count { passed, failed: run.saturating_sub(passed), not_run: number_before(line, "skipped") }
}

fn number_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches([',', ';', '=', '(', ')'])).collect();
    let at = words.iter().position(|found| *found == word);
    at.and_then(|at| words.get(at.checked_sub(1)?)).and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(passed: u64, failed: u64, not_run: u64) -> Count {
        Count { passed, failed, not_run }
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
        assert_eq!(of("=== 1 failed, 12 passed, 2 skipped, 1 error in 3.21s ==="), count(12, 2, 2));
        assert_eq!(of("12 passed in 3.21s"), count(12, 0, 0));
        assert_eq!(of("== 304 passed, 3 skipped, 1 xfailed in 64.34s (0:01:04) =="), count(305, 0, 3));
        assert_eq!(of("no tests ran in 0.01s"), count(0, 0, 0));
    }

    #[test]
    fn what_node_counted_is_read() {
        let printed =
            "ok 1 - a\n1..9\n# tests 9\n# pass 4\n# fail 1\n# cancelled 2\n# skipped 1\n# todo 1\n# duration_ms 4.5\n";
        assert_eq!(Runner::Node.count(printed), count(4, 3, 2));
        assert_eq!(Runner::Node.count("SyntaxError\n"), count(0, 0, 0));
    }

    #[test]
    fn a_suite_that_breaks_before_it_counts_has_failed() {
        let broken = |runner, script| run_if_any(Command::new("sh").args(["-c", script]), runner).unwrap();
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
}
