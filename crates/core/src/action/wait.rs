//! Waits: the conditions that end them, in the notation of clients (`until`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::error::ActionError;
use super::pattern::{Pattern, PatternShare};
use crate::limits::{IGNORED_WAIT, TASK_TOTAL, TIMEOUT_MAX, UNTIL_MAX};

/// The conditions that end a wait; the first one to be met does. The end of the command and of the session always end
/// it.
#[derive(Debug, Clone)]
pub struct Wait {
    /// This expression matches the plain text since the call began, or the screen of a full-screen program.
    pub pattern: Option<Pattern>,
    /// One of these conditions is met.
    pub until: Vec<Until>,
    /// The program wants input. With a pattern: a question of the program stands for a moment, and the pattern did not match
    /// it; with another condition it is ignored.
    pub input_wanted: bool,
    /// The program listens on a TCP port and has fallen silent: a server is ready (ignored if there is a pattern or another
    /// condition).
    pub listens: bool,
    /// The caller sends a person to a page for a secret: where a program reads one, a wait that may become a task does at
    /// once.
    pub asks_person: bool,
    /// No new output for this long.
    pub quiet: Option<Duration>,
    /// The timeout, as the caller gave it.
    pub timeout: Duration,
    /// The part of it that was over before the request was made.
    pub waited: Duration,
    /// The caller takes the answer later, as a task, if the wait takes long.
    pub task: Option<TaskOffer>,
}

/// The offer of a caller to take the answer of a long wait later, as a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TaskOffer {
    /// The timeout that the request has if no task can be made of it, unless the caller named one; without one of the
    /// caller, silence ends the task, too.
    pub(crate) default_timeout: Option<Duration>,
    /// The request is answered after this time; the server's settings have it.
    pub(crate) grace: Option<Duration>,
    /// The time after its timeout in which a task still waits: the server is ending the command then.
    pub(crate) ending: Duration,
}

/// All conditions in one sentence, for errors.
const VALID: &str = "listening, listening:PORT, file:PATH, gone:REGEX, bell, quiet:MILLISECONDS or input";

/// A condition that ends a wait.
#[derive(Debug, Clone)]
pub enum Until {
    /// A process of the session listens on this TCP port, or on any.
    Listening(Option<u16>),
    /// This file exists. A relative path is relative to the shell's directory.
    File(PathBuf),
    /// The screen no longer shows this.
    Gone(Pattern),
    /// The bell rings.
    Bell,
    /// The program wants input, even if there are other conditions.
    Input,
}

/// The condition in the grammar.
impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listening(None) => f.write_str("listening"),
            Self::Listening(Some(port)) => write!(f, "listening:{port}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Gone(pattern) => write!(f, "gone:{}", pattern.as_str()),
            Self::Bell => f.write_str("bell"),
            Self::Input => f.write_str("input"),
        }
    }
}

/// Whether a caller takes the answer of a long wait later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// It does not.
    #[default]
    None,
    /// As a task.
    Tasks,
    /// As a task that may ask a person to open an address.
    TasksThatAsk,
}

impl Wait {
    /// A wait that only the timeout ends, or the end of the command or session.
    pub fn at_most(timeout: Duration) -> Self {
        Self {
            pattern: None,
            until: Vec::new(),
            input_wanted: false,
            listens: false,
            asks_person: false,
            quiet: None,
            timeout,
            waited: Duration::ZERO,
            task: None,
        }
    }

    /// The wait behind an interrupt that this program ignores: long enough to see whether it still asks something.
    pub(crate) fn shortened_by(mut self, ignored_by: Option<&str>) -> Self {
        if ignored_by.is_some() && self.pattern.is_none() && self.until.is_empty() {
            self.timeout = self.timeout.min(self.waited + IGNORED_WAIT);
            self.task = None;
        }
        self
    }

    /// The rest of the timeout, or the time until the request is answered with a task.
    pub(crate) fn left(&self) -> Duration {
        self.grace().map_or(self.timeout, |grace| grace.min(self.timeout)).saturating_sub(self.waited)
    }

    /// The time after which the request is answered with a task, if that is before the timeout.
    pub(crate) fn grace(&self) -> Option<Duration> {
        self.task?.grace.filter(|grace| *grace < self.timeout)
    }

    /// Offers to take the answer later. Without a timeout of the caller the wait then has a long one. Conditions that
    /// compare with a state which only the request saw make no task.
    pub fn or_as_task(mut self, has_timeout: bool, tasks: TaskSupport) -> Self {
        let is_task = tasks != TaskSupport::None;
        if is_task && self.until.iter().all(|until| matches!(until, Until::Listening(_) | Until::Input)) {
            self.task =
                Some(TaskOffer { default_timeout: (!has_timeout).then_some(self.timeout), ..TaskOffer::default() });
            self.asks_person = tasks == TaskSupport::TasksThatAsk;
            self.timeout = if has_timeout { self.timeout } else { TASK_TOTAL };
        }
        self
    }

    /// Adds these conditions; their patterns are compiled in turns of this share.
    pub async fn until(mut self, patterns: &Arc<PatternShare>, words: &[String]) -> Result<Self, ActionError> {
        let invalid = |problem| ActionError::Invalid { field: "until", problem };
        if words.len() > UNTIL_MAX {
            return Err(invalid(format!("{} words; at most {UNTIL_MAX}", words.len())));
        }
        for word in words {
            let until = match word.strip_prefix("gone:").filter(|text| !text.is_empty()) {
                Some(text) => Until::Gone(patterns.compile("until", "gone: not a regular expression: ", text).await?),
                None => match self.condition(word).map_err(invalid)? {
                    Some(until) => until,
                    None => continue,
                },
            };
            self.until.push(until);
        }
        Ok(self)
    }

    /// A condition without a pattern; none where it is the silence, which is kept here.
    fn condition(&mut self, word: &str) -> Result<Option<Until>, String> {
        let (name, value) = word.split_once(':').map_or((word, None), |(name, value)| (name, Some(value)));
        Ok(Some(match (name, value) {
            ("listening", None) => Until::Listening(None),
            ("listening", Some(port)) => match port.parse() {
                Ok(port) if port > 0 => Until::Listening(Some(port)),
                _ => return Err(format!("{word:?}: a port is a number from 1 to 65535")),
            },
            ("file", Some(path)) if !path.is_empty() => Until::File(PathBuf::from(path)),
            ("bell", None) => Until::Bell,
            ("input", None) => Until::Input,
            ("quiet", Some(ms)) => {
                let time = ms.parse().ok().map(Duration::from_millis).filter(|time| *time <= TIMEOUT_MAX);
                let time =
                    time.ok_or_else(|| format!("{word:?}: milliseconds, at most {}", TIMEOUT_MAX.as_millis()))?;
                self.quiet = Some(self.quiet.map_or(time, |before| before.min(time)));
                return Ok(None);
            }
            _ => {
                return Err(format!(
                    "{:?} is not a condition; valid: {VALID}",
                    word.chars().take(60).collect::<String>()
                ));
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::tests::at_once;
    use super::*;

    fn parsed(words: &[String]) -> Result<Wait, String> {
        at_once(Wait::at_most(Duration::ZERO).until(&Arc::default(), words)).map_err(|error| error.to_string())
    }

    fn parsed_one(word: &str) -> Result<Wait, String> {
        parsed(&[word.to_owned()])
    }

    #[test]
    fn every_word_is_read() {
        for (word, shown) in [
            ("listening", "[Listening(None)]"),
            ("listening:5173", "[Listening(Some(5173))]"),
            ("file:dist/a b.js", "[File(\"dist/a b.js\")]"),
            ("gone:Loading: \\d+", "[Gone(Regex(\"Loading: \\\\d+\"))]"),
            ("bell", "[Bell]"),
            ("input", "[Input]"),
            ("quiet:250", "[]"),
        ] {
            assert_eq!(format!("{:?}", parsed_one(word).expect("valid").until), shown);
        }
        assert_eq!(parsed_one("quiet:250").expect("valid").quiet, Some(Duration::from_millis(250)));
    }

    #[test]
    // promise: wait-5
    fn an_unknown_condition_is_refused_with_the_valid_ones() {
        for (word, problem) in [
            ("ready", format!("\"ready\" is not a condition; valid: {VALID}")),
            ("file:", format!("\"file:\" is not a condition; valid: {VALID}")),
            ("bell:1", format!("\"bell:1\" is not a condition; valid: {VALID}")),
            ("listening:0", "\"listening:0\": a port is a number from 1 to 65535".to_owned()),
            ("listening:http", "\"listening:http\": a port is a number from 1 to 65535".to_owned()),
            ("quiet:soon", "\"quiet:soon\": milliseconds, at most 86400000".to_owned()),
        ] {
            assert_eq!(parsed_one(word).expect_err("refused"), format!("until: {problem}"));
        }
        assert!(parsed_one("gone:(").expect_err("refused").starts_with("until: gone: not a regular expression"));
        let many = vec!["bell".to_owned(); UNTIL_MAX + 1];
        assert_eq!(parsed(&many).expect_err("too many"), "until: 17 words; at most 16");
    }
}
