//! Reads JUnit reports. Every runner here writes one, so one reader knows which tests passed, failed or did not run.

use anyhow::{Context as _, Result};
use roxmltree::{Document, Node};

/// The characters of a failure's message that are kept.
const MESSAGE_MAX: usize = 1_000;

/// One test of a report.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Its suite and its own name: `e2e::it crash::a_holder_dies`.
    pub name: String,
    /// The seconds that it took.
    pub seconds: f64,
    /// Its result.
    pub outcome: Outcome,
}

/// The result of one test.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed, did not end in time, or could not be set up; this is the beginning of its message.
    Failed(String),
    /// It is marked as one that cannot pass yet.
    KnownFailure,
    /// It skipped itself, for this reason.
    NotRun(String),
}

/// Reads a whole report.
pub fn read(text: &str) -> Result<Vec<Case>> {
    let document = Document::parse(text).context("a JUnit report that is not XML")?;
    Ok(document.descendants().filter(|node| node.has_tag_name("testcase")).map(case).collect())
}

fn case(node: Node<'_, '_>) -> Case {
    let name = node.attribute("name").unwrap_or_default();
    // nextest and pytest name the program or the module; node names every test `test`.
    let name = match node.attribute("classname") {
        None | Some("" | "test") => name.to_owned(),
        Some(module) if module.contains("::") || !module.contains('.') => format!("{module} {name}"),
        Some(module) => format!("{module}::{name}"),
    };
    let seconds = node.attribute("time").and_then(|time| time.parse().ok()).unwrap_or_default();
    Case { name, seconds, outcome: outcome(node) }
}

fn outcome(case: Node<'_, '_>) -> Outcome {
    let is_wrong = |node: Node<'_, '_>| node.has_tag_name("failure") || node.has_tag_name("error");
    if let Some(wrong) = case.children().find(|node| is_wrong(*node)) {
        return Outcome::Failed(message(wrong));
    }
    let Some(skipped) = case.children().find(|node| node.has_tag_name("skipped")) else { return Outcome::Passed };
    if skipped.attribute("type") == Some("pytest.xfail") {
        return Outcome::KnownFailure;
    }
    Outcome::NotRun(skipped.attribute("message").unwrap_or_default().to_owned())
}

/// The message of a failure, without its backtrace. nextest repeats the first line of it in an attribute, and pytest has it
/// only there.
fn message(wrong: Node<'_, '_>) -> String {
    let (first, text) = (wrong.attribute("message").unwrap_or_default(), wrong.text().unwrap_or_default());
    let whole = if text.starts_with(first) { text } else { first };
    whole.split("stack backtrace:").next().unwrap_or_default().trim().chars().take(MESSAGE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(text: &str) -> Vec<(String, Outcome)> {
        read(text).unwrap().into_iter().map(|case| (case.name, case.outcome)).collect()
    }

    #[test]
    fn a_report_of_nextest_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="nextest-run" tests="3"><testsuite name="e2e::it" tests="3">
            <testcase name="life::one" classname="e2e::it" time="0.417"/>
            <testcase name="life::two" classname="e2e::it" time="2.5"><failure type="test timeout"/></testcase>
            <testcase name="three" classname="e2e::it"><failure message="panicked at a.rs">panicked at a.rs
left: 1
stack backtrace: many</failure></testcase>
            </testsuite><testsuite name="journal"><testcase name="a" classname="journal" time="0"/></testsuite></testsuites>"#;
        let expected = [
            ("e2e::it life::one", Outcome::Passed),
            ("e2e::it life::two", Outcome::Failed(String::new())),
            ("e2e::it three", Outcome::Failed("panicked at a.rs\nleft: 1".to_owned())),
            ("journal a", Outcome::Passed),
        ];
        assert_eq!(outcomes(text), expected.map(|(name, outcome)| (name.to_owned(), outcome)));
        assert_eq!(read(text).unwrap()[1].seconds.to_string(), "2.5");
    }

    #[test]
    fn a_report_of_pytest_is_read() {
        let text = r#"<testsuites><testsuite name="pytest">
            <testcase classname="crates.e2e.mcp.test_x" name="test_y[bash - 1]" time="1.25" />
            <testcase classname="test_x" name="test_alone" time="0.1"><error message="at setup">trace</error></testcase>
            <testcase classname="a.test_x" name="test_z"><skipped type="pytest.skip" message="it takes 30 s">f.py:7</skipped></testcase>
            <testcase classname="a.test_x" name="test_q"><skipped type="pytest.xfail" message="not yet" /></testcase>
            </testsuite></testsuites>"#;
        let expected = [
            ("crates.e2e.mcp.test_x::test_y[bash - 1]", Outcome::Passed),
            ("test_x test_alone", Outcome::Failed("at setup".to_owned())),
            ("a.test_x::test_z", Outcome::NotRun("it takes 30 s".to_owned())),
            ("a.test_x::test_q", Outcome::KnownFailure),
        ];
        assert_eq!(outcomes(text), expected.map(|(name, outcome)| (name.to_owned(), outcome)));
    }

    #[test]
    fn a_report_of_node_is_read() {
        let text = r#"<testsuites><testsuite name="pages"><testcase name="a page shows it" classname="test" time="0.5"/>
            <testcase name="a page" classname="test"><skipped type="skipped" message="there is no browser"/></testcase>
            </testsuite><testcase name="alone" classname="test"><failure type="testCodeFailure" message="x"/></testcase></testsuites>"#;
        let expected = [
            ("a page shows it", Outcome::Passed),
            ("a page", Outcome::NotRun("there is no browser".to_owned())),
            ("alone", Outcome::Failed("x".to_owned())),
        ];
        assert_eq!(outcomes(text), expected.map(|(name, outcome)| (name.to_owned(), outcome)));
    }

    #[test]
    fn a_report_that_was_cut_short_is_an_error() {
        assert!(read("<testsuites><testsuite><testcase name=").is_err());
    }
}
