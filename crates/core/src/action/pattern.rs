//! Patterns: the regular expressions of requests, compiled and matched within their principal's share.

use std::ops::Deref;
use std::sync::Arc;

use journal::MaskedText;
use regex::{Regex, RegexBuilder};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::ActionError;
use crate::block_in_place::block_in_place;
use crate::lane::Lane;
use crate::limits::{
    COSTLY_PATTERN_WEIGHT, PATTERN_BYTES_MAX, PATTERN_CACHE_BYTES_MAX, PATTERN_CLASSES_MAX, PATTERN_LENGTH_MAX,
    PATTERNS_PER_PRINCIPAL_MAX, PLAIN_PATTERN_BYTES_MAX,
};

/// A compiled pattern, in which `^` and `$` match at line ends. It is counted among those of its principal until its
/// last clone is dropped.
#[derive(Clone)]
pub struct Pattern {
    regex: Regex,
    is_plain: bool,
    _permit: Option<Arc<Permit>>,
}

impl Pattern {
    /// The work of matching it against so many characters, in characters of a plain pattern.
    pub(crate) fn work(&self, characters: usize) -> usize {
        if self.is_plain { characters } else { characters.saturating_mul(COSTLY_PATTERN_WEIGHT) }
    }
}

impl Deref for Pattern {
    type Target = Regex;

    fn deref(&self) -> &Regex {
        &self.regex
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.regex.fmt(f)
    }
}

/// One principal's share for patterns: its lane, in which they are compiled and matched, and a number of them in open requests.
#[derive(Debug)]
pub struct PatternShare {
    lane: Arc<Lane>,
    permits: Semaphore,
}

impl Default for PatternShare {
    fn default() -> Self {
        Self::in_lane(Arc::default())
    }
}

/// The permit of one pattern.
struct Permit(Arc<PatternShare>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.permits.add_permits(1);
    }
}

impl PatternShare {
    /// The share of the principal with this lane.
    pub(crate) fn in_lane(lane: Arc<Lane>) -> Self {
        Self { lane, permits: Semaphore::new(PATTERNS_PER_PRINCIPAL_MAX) }
    }

    /// The turn for costly work: one piece at a time.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        self.lane.turn().await
    }

    /// Compiles the pattern of this field, in a turn. A text whose compilation would take very long is refused first; an
    /// error begins with `intro`.
    pub async fn compile(
        self: &Arc<Self>,
        field: &'static str,
        intro: &str,
        text: &str,
    ) -> Result<Pattern, ActionError> {
        let invalid = |why: String| ActionError::Invalid { field, problem: format!("{intro}{why}") };
        if text.len() > PATTERN_LENGTH_MAX {
            return Err(invalid(format!("a pattern may have at most {PATTERN_LENGTH_MAX} bytes")));
        }
        let classes = classes(text);
        if classes > PATTERN_CLASSES_MAX {
            return Err(invalid(format!(
                "{classes} character classes; a pattern may have at most {PATTERN_CLASSES_MAX}"
            )));
        }
        let mut builder = RegexBuilder::new(text);
        builder.multi_line(true).size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_CACHE_BYTES_MAX);
        let is_plain = is_plain(text);
        let (regex, permit) = if is_plain {
            (builder.build(), None)
        } else {
            let _turn = self.turn().await;
            let permit = if is_large(text) { Some(self.permit()?) } else { None };
            (block_in_place(|| builder.build()), permit)
        };
        let regex = regex.map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => invalid(format!(
                "larger than {} KiB when compiled; repeat less, or write [0-9A-Za-z_] for \\w and [0-9] for \\d",
                limit >> 10
            )),
            // Its last line has the reason, below a drawing of the place.
            error => {
                invalid(error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned())
            }
        })?;
        Ok(Pattern { regex, is_plain, _permit: permit })
    }

    fn permit(self: &Arc<Self>) -> Result<Arc<Permit>, ActionError> {
        let permit = self.permits.try_acquire().map_err(|_| ActionError::Limit {
            what: "the number of patterns with a character class, a `.` or a counted repetition (waitFor, gone:, q) in open requests of this principal",
            limit: PATTERNS_PER_PRINCIPAL_MAX as u64,
            hint: "let some of them end, or join several patterns into one with |",
        })?;
        permit.forget();
        Ok(Arc::new(Permit(Arc::clone(self))))
    }

    /// The first match of this pattern, looked for in a turn.
    pub async fn find(&self, pattern: &Pattern, text: &MaskedText) -> Option<MaskedText> {
        let find = || pattern.find(text).map(|found| text.part(found.range()));
        if pattern.is_plain {
            return find();
        }
        let _turn = self.turn().await;
        block_in_place(find)
    }
}

/// Whether a pattern is compiled and matched in less time than its request takes otherwise: it is short, and it has no
/// character class, `.`, counted repetition or flag.
fn is_plain(text: &str) -> bool {
    text.len() <= PLAIN_PATTERN_BYTES_MAX && !is_large(text) && !text.contains("(?")
}

/// Whether a pattern may take more memory than its text: it has a character class, a `.` or a counted repetition.
fn is_large(text: &str) -> bool {
    classes(text) > 0 || text.contains(['.', '{'])
}

/// How many character classes a pattern has at most: `[…]`, `\w`, `\d`, `\s`, `\p{…}` and their opposites.
fn classes(text: &str) -> usize {
    let mut bytes = text.bytes();
    let mut classes = 0;
    while let Some(byte) = bytes.next() {
        let is_class = match byte {
            b'\\' => bytes.next().is_some_and(|name| b"wWdDsSpP".contains(&name)),
            byte => byte == b'[',
        };
        classes += usize::from(is_class);
    }
    classes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    /// The result of a future that has nothing to wait for.
    pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => panic!("it waits"),
        }
    }

    pub(crate) fn compiled(text: &str) -> Result<Pattern, ActionError> {
        at_once(Arc::new(PatternShare::default()).compile("waitFor", "", text))
    }

    #[test]
    fn a_pattern_is_compiled_within_bounds_and_works_by_lines() {
        assert!(compiled("^done$").expect("valid").is_match("a\ndone\nb"));
        for bad in ["(", "(?:a{500}){500}", &"a".repeat(4_097), &r"\d".repeat(65)] {
            assert!(matches!(compiled(bad), Err(ActionError::Invalid { field: "waitFor", .. })), "{bad}");
        }
    }

    #[test]
    // promise: limit-6
    fn costly_patterns_are_compiled_and_matched_one_after_the_other_and_plain_ones_at_once() {
        let share = Arc::new(PatternShare::default());
        let costly = at_once(share.compile("q", "", r"\w")).expect("valid");
        let plain = at_once(share.compile("q", "", "ready")).expect("valid");
        let turn = at_once(share.turn());
        let context = &mut Context::from_waker(Waker::noop());
        let text = "a is ready".into();
        let (mut compiling, mut matching) =
            (Box::pin(share.compile("q", "", r"(?i)busy")), Box::pin(share.find(&costly, &text)));
        assert!(compiling.as_mut().poll(context).is_pending() && matching.as_mut().poll(context).is_pending());
        assert_eq!(at_once(share.find(&plain, &text)).as_deref(), Some("ready"));
        assert!(at_once(share.compile("q", "", "$ $")).is_ok());
        drop(turn);
        assert!(matches!(compiling.as_mut().poll(context), Poll::Ready(Ok(_))));
        assert_eq!(at_once(matching).as_deref(), Some("a"));
    }

    #[test]
    // promise: limit-6
    fn patterns_of_one_principal_are_counted_until_their_last_clone_is_dropped() {
        let share = Arc::new(PatternShare::default());
        let compile = |text: &str| at_once(share.compile("q", "", text));
        let mut patterns: Vec<Pattern> = (0..128).map(|_| compile(r"\d").expect("a place")).collect();
        let is_refused = |text: &str| matches!(compile(text), Err(ActionError::Limit { limit: 128, .. }));
        assert!(is_refused("a.b") && is_refused("a{3}") && compile("busy").is_ok());
        let clone = patterns[0].clone();
        patterns.remove(0);
        assert!(is_refused(r"\d"));
        drop(clone);
        assert!(compile("(?:").is_err() && compile(r"\d{9999999}").is_err(), "these are none");
        assert!(!is_refused(r"\d"));
    }
}
