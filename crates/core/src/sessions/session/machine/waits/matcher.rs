//! The pattern of a wait, and the plain text that it is matched against. This text excludes the prompt at which the call
//! typed, and the echo of its input.

use std::borrow::Cow;
use std::sync::Arc;

use journal::{MaskedText, Masks};
use terminal::Transcript;

use crate::action::Pattern;
use crate::limits::PATTERN_TEXT_MAX;

/// A pattern and the plain text that it is matched against.
pub(crate) struct Matcher {
    pub(crate) pattern: Pattern,
    masks: Masks,
    transcript: Transcript,
    cols: u16,
    /// The newest part of the finished lines.
    text: String,
    /// The beginning of a finished line whose end has not come.
    open: String,
    echo: Echo,
}

impl Matcher {
    pub(crate) fn new(pattern: Pattern, cols: u16, masks: Masks) -> Self {
        let (text, open, echo) = Default::default();
        Self { pattern, masks, transcript: Transcript::new(cols), cols, text, open, echo }
    }

    /// How many characters are matched again with new output.
    pub(crate) fn known(&self) -> usize {
        self.text.len()
    }

    /// Discards the text: the command's own output begins here. Only input for the command is echoed behind it.
    pub(crate) fn restart(&mut self, has_input: bool) {
        self.transcript = Transcript::new(self.cols);
        self.text.clear();
        self.open.clear();
        let Echo { text, typed, is_unfinished, has_new_editor, .. } = std::mem::take(&mut self.echo);
        if has_input {
            self.echo = Echo { text, typed, is_unfinished, has_new_editor, ..Echo::default() };
        }
    }

    /// The call typed this.
    pub(crate) fn leaves_out(&mut self, mut echo: Echo) {
        // Of a line that names only a part of a match, the rest is the program's own, and not a prompt.
        echo.has_new_editor &= self.pattern.is_match(&echo.text);
        // An editor paints the prompt again, and counts the columns from there.
        self.transcript.feed(echo.prompt.as_bytes());
        self.echo = echo;
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Option<MaskedText> {
        self.transcript.feed(bytes);
        self.open.push_str(&self.transcript.take_finished());
        if let Some(end) = self.open.rfind('\n') {
            let finished: String = self.open.drain(..=end).collect();
            self.text.push_str(&self.echo.leave_out(&finished));
        }
        // A prompt has no line end, so the unfinished line counts too. The lines before it may still change.
        let unfinished = format!("{}{}", self.open, self.transcript.peek());
        let seen = self.masks.text(format!("{}{}", self.text, self.echo.clone().leave_out(&unfinished)));
        let found = self.pattern.find(&seen).map(|found| seen.part(found.range()));
        if self.text.len() > PATTERN_TEXT_MAX {
            let cut = (self.text.len() - PATTERN_TEXT_MAX / 2..self.text.len())
                .find(|i| self.text.is_char_boundary(*i))
                .unwrap_or(self.text.len());
            self.text.drain(..cut);
        }
        found
    }
}

/// The echo of typed lines, each at the end of a line, from the kernel or from the program's line editor. If the kernel
/// echoes a line before the editor has the terminal, the editor paints it again behind its prompt. All other output that
/// says the same afterwards is the program's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Echo {
    /// The unfinished line of the output where it was typed.
    prompt: String,
    /// The line of the prompt has ended.
    is_below_prompt: bool,
    /// The typed text.
    text: Arc<str>,
    /// The typed lines without blanks, which an editor may wrap or expand.
    typed: Arc<[String]>,
    /// How many of them have come.
    came: usize,
    /// The last of them was typed without its end, so that output may follow it in its line.
    is_unfinished: bool,
    /// A program that waits in an editor of its own shows the first line that it is given at once, or never.
    is_at_once: bool,
    /// The prompt behind which an editor paints lines again, without blanks.
    editor_prompt: String,
    /// An editor may begin, and paint lines again behind a prompt that is not known yet.
    has_new_editor: bool,
    /// How many lines an editor has painted again.
    repainted: usize,
}

impl Echo {
    /// The echo of these bytes behind this prompt.
    pub(crate) fn of(bytes: &[u8], prompt: String, is_at_once: bool) -> Self {
        let text = String::from_utf8_lossy(bytes).replace("\x1b[200~", "").replace("\x1b[201~", "");
        let is_unfinished = !text.ends_with(['\r', '\n']);
        // A key is shown in a way that only its reader knows, or not at all.
        let is_text = |line: &&str| !line.chars().any(|c| c.is_control() && c != '\t');
        let typed: Vec<String> = text.split(['\r', '\n']).filter(is_text).map(squeezed).collect();
        let typed = typed.into_iter().filter(|line| !line.is_empty()).collect();
        let text = text.replace('\r', "\n").into();
        Self { prompt, text, typed, is_unfinished, is_at_once, ..Self::default() }
    }

    /// The same if an editor may paint the lines once more, behind a prompt like this one.
    pub(crate) fn painted_again_behind(self, editor_prompt: &str) -> Self {
        Self { editor_prompt: squeezed(editor_prompt), ..self }
    }

    /// The same if the terminal has echoed the lines, and an editor that paints them again may begin.
    pub(crate) fn painted_again_by_new_editor(self, has_new_editor: bool) -> Self {
        Self { has_new_editor, ..self }
    }

    /// No echo comes: only the prompt is omitted.
    pub(crate) fn none(prompt: String) -> Self {
        Self { prompt, ..Self::default() }
    }

    /// The text, which begins with a line, without prompt and echo.
    fn leave_out<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let has_editor = self.has_new_editor || !self.editor_prompt.is_empty();
        let may_be_repainted = has_editor && self.repainted < self.typed.len();
        if self.is_below_prompt && self.came == self.typed.len() && !may_be_repainted {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let (content, end) = line.strip_suffix('\n').map_or((line, ""), |content| (content, "\n"));
            out.push_str(self.without_echo(self.without_prompt(content), !end.is_empty()).as_ref());
            out.push_str(end);
            self.is_below_prompt |= !end.is_empty();
        }
        Cow::Owned(out)
    }

    fn without_prompt<'a>(&self, line: &'a str) -> &'a str {
        if self.is_below_prompt {
            return line;
        }
        line.strip_prefix(self.prompt.as_str()).or_else(|| line.strip_prefix(self.prompt.trim_end())).unwrap_or(line)
    }

    fn without_echo<'a>(&mut self, line: &'a str, is_whole: bool) -> &'a str {
        if let Some(prompt) = self.repainted_behind(line, is_whole) {
            // The blank at the end of the prompt stays.
            let painted = after(line, prompt).trim_start();
            return &line[..line.len() - painted.len()];
        }
        let Some(typed) = self.typed.get(self.came) else { return line };
        let shown = squeezed(line);
        let is_last = self.came + 1 == self.typed.len();
        if self.is_unfinished && is_last && shown.starts_with(typed.as_str()) && shown.len() > typed.len() {
            self.came += 1;
            return after(line, typed.len());
        }
        if is_whole {
            let kept = shown.len().saturating_sub(typed.len());
            // The end of a longer word is the program's own.
            let is_word_end = |at: usize| {
                let [before, after] = [shown[..at].chars().next_back(), shown[at..].chars().next()];
                before.zip(after).is_some_and(|(a, b)| a.is_alphanumeric() && b.is_alphanumeric())
            };
            if shown.ends_with(typed.as_str()) && !is_word_end(kept) {
                self.came += 1;
                return before(line, kept);
            }
            if self.is_at_once && self.came == 0 && !shown.is_empty() {
                self.came = self.typed.len();
            }
            return line;
        }
        before(line, shown.len() - begun(&shown, typed))
    }

    /// If an editor has painted, or begins to paint, an echoed line again here: the length of the prompt in this line,
    /// without blanks.
    fn repainted_behind(&mut self, line: &str, is_whole: bool) -> Option<usize> {
        let typed = self.typed[..self.came].get(self.repainted)?;
        let shown = squeezed(line);
        let prompt = self.prompt_before(typed, &shown)?;
        let painted = &shown[prompt..];
        if is_whole && painted == typed {
            self.repainted += 1;
            return Some(prompt);
        }
        // The prompt alone is output that a pattern may wait for.
        (!is_whole && !painted.is_empty() && typed.starts_with(painted)).then_some(prompt)
    }

    /// The length of the prompt in this line, behind which the typed line may stand.
    fn prompt_before(&self, typed: &str, shown: &str) -> Option<usize> {
        let known = Some(&self.editor_prompt).filter(|prompt| !prompt.is_empty());
        known.and_then(|prompt| prompt_length(shown, prompt)).or_else(|| {
            let length = shown.len() - begun(shown, typed);
            // A prompt ends with a sign, as a rule.
            let is_prompt = shown[..length].ends_with(|c: char| !c.is_alphanumeric());
            (self.has_new_editor && is_prompt).then_some(length)
        })
    }
}

/// The length of the longest end of this text with which the typed line begins.
fn begun(shown: &str, typed: &str) -> usize {
    let is_begun =
        |len: &usize| shown.is_char_boundary(shown.len() - len) && typed.starts_with(&shown[shown.len() - len..]);
    (1..=shown.len().min(typed.len())).rev().find(is_begun).unwrap_or(0)
}

/// The length of the prompt at the beginning of this text. Numbers may differ, because prompts count.
fn prompt_length(text: &str, prompt: &str) -> Option<usize> {
    let mut rest = text;
    let mut wanted = prompt;
    while let Some(c) = wanted.chars().next() {
        let is_digit = |c: char| c.is_ascii_digit();
        if is_digit(c) {
            rest = rest.strip_prefix(is_digit)?.trim_start_matches(is_digit);
            wanted = wanted.trim_start_matches(is_digit);
        } else {
            rest = rest.strip_prefix(c)?;
            wanted = &wanted[c.len_utf8()..];
        }
    }
    Some(text.len() - rest.len())
}

/// The text without blanks.
fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The place in the line behind this many bytes that are not blanks.
fn place(line: &str, squeezed: usize) -> usize {
    let mut left = squeezed;
    for (at, c) in line.char_indices() {
        if left == 0 {
            return at;
        }
        left = left.saturating_sub(if c.is_whitespace() { 0 } else { c.len_utf8() });
    }
    line.len()
}

fn before(line: &str, squeezed: usize) -> &str {
    line.get(..place(line, squeezed)).unwrap_or(line)
}

fn after(line: &str, squeezed: usize) -> &str {
    line.get(place(line, squeezed)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::pattern::tests::compiled;

    /// The first of these chunks of output with which the pattern matches, behind `>>> ` where this was typed. A program that
    /// does not show it at once may have an editor with another prompt.
    fn matches(pattern: &str, typed: &str, is_at_once: bool, output: &[&str]) -> Option<usize> {
        let mut matcher = Matcher::new(compiled(pattern).expect("valid"), 80, Masks::default());
        let echo = Echo::of(typed.as_bytes(), ">>> ".to_owned(), is_at_once);
        matcher.leaves_out(if is_at_once { echo } else { echo.painted_again_behind("In [9]: ") });
        output.iter().position(|chunk| matcher.feed(chunk.as_bytes()).is_some())
    }

    #[test]
    // promise: wait-2
    fn an_echo_in_pieces_does_not_match_and_the_same_words_of_the_program_do() {
        let long = format!("x = '{}'; print('ready')", "y".repeat(100));
        let wrapped = format!("x = '{} \r{}'; print('ready')", "y".repeat(71), "y".repeat(29));
        for (typed, chunks, is_at_once) in [
            ("print('ready')\r", &["print('re", "ady", "')\r\n", "ready\r\n"][..], true),
            ("ready\n", &["rea", "dy", "\r\n", "ready\r\n"], false),
            // The program was busy, and says something before it reads.
            ("ready\n", &["still at it\r\n>>> ", "ready\r\n", "", "ready"], false),
            // An editor paints the prompt again, and its colours.
            ("ready\r", &["\x1b[1G\x1b[0J>>> re\x1b[32mady\x1b[m\x1b[10G", "\r\n", "", "get ready!\r\n"], true),
            ("a\nready\n", &["a\r\n", "... ready\r\n", ">>> ", "ready\r\n"], false),
            (&format!("{long}\r"), &[&wrapped, "\r\n", "", "ready\r\n"], true),
            // Not finished by Enter: what follows in its line is the program's.
            ("ready", &["re", "ady", "", " ready"], false),
            // The kernel echoed it while the program worked, and then its editor paints it behind the next prompt.
            ("ready\n", &["ready\r\n", "In [10]: re", "ady\r\n", "ready\r\n"], false),
            ("a\nready\n", &["a\r\nready\r\n", "In [10]: a\r\n", "In [11]: ready\r\n", "ready\r\n"], false),
            // Of two lines for an editor that waits, each is painted when it is read.
            ("a\nready\n", &["a\r\n", "1\r\n>>> rea", "dy\r\n", "ready\r\n"], true),
        ] {
            assert_eq!(matches("ready", typed, is_at_once, chunks), Some(3), "{typed:?}");
        }
    }

    #[test]
    // promise: wait-2
    fn the_line_that_a_starting_editor_repaints_does_not_match() {
        let found = |pattern: &str, typed: &str, output: &[&str]| {
            let mut matcher = Matcher::new(compiled(pattern).expect("valid"), 80, Masks::default());
            matcher.leaves_out(
                Echo::of(typed.as_bytes(), String::new(), false)
                    .painted_again_behind("$ ")
                    .painted_again_by_new_editor(true),
            );
            output.iter().position(|chunk| matcher.feed(chunk.as_bytes()).is_some())
        };
        for (typed, chunks) in [
            ("say('ready')\n", &["say('ready')\r\n", "v3.1\r\n>>> say('ready", "')\r\n", "ready\r\n"][..]),
            ("say('ready')\r", &["say('ready')\r\n", "> \x1b[1G\x1b[0J> say('ready')\x1b[15G", "\r\n", "is ready"]),
            ("a\nready\n", &["a\r\nready\r\n", "In [1]: a\r\n  ...: re", "ady\r\n", "ready\r\n"]),
            // A program that repeats the line prints it without a prompt.
            ("ready\n", &["", "", "ready\r\n", "ready\r\n"]),
            ("ready\n", &["ready", "", "\r\n", "get ready\r\n"]),
        ] {
            assert_eq!(found("ready", typed, chunks), Some(3), "{typed:?}");
        }
        // The program has printed the words before the line.
        assert_eq!(found("said: ready", "ready\n", &["ready\r\n", "you said: ready\r\n"]), Some(1));
    }

    #[test]
    // promise: wait-2
    fn input_that_waits_for_a_commands_beginning_is_echoed_behind_it() {
        let mut matcher = Matcher::new(compiled("ready").expect("valid"), 80, Masks::default());
        matcher.leaves_out(Echo::of(b"ready\n", "$ ".to_owned(), true));
        assert_eq!(matcher.feed(b"eval x\r\n"), None);
        matcher.restart(true);
        assert_eq!(matcher.feed(b"ready\r\n"), None);
        assert_eq!(matcher.feed(b"ready\r\n").as_deref(), Some("ready"));
    }

    #[test]
    // promise: wait-2
    fn a_program_that_does_not_echo_matches_at_once() {
        assert_eq!(matches("ready", "get ready\r", true, &["\r\n", "all is ready\r\n"]), Some(1));
        assert_eq!(matches("10 items", "1\n", false, &["10 items\r\n"]), Some(0));
        assert_eq!(matches(": $", "x = 1\r", false, &["x = 1\r\n", "In [10]: "]), Some(1), "the next prompt matches");
        assert_eq!(matches("ready", "\x1b[A\r", true, &["ready"]), Some(0));
        assert_eq!(matches("ready", "ready\n", false, &["already\r\n"]), Some(0), "the end of a longer word");
        assert_eq!(
            matches("ready", "ready\r", true, &["secret\r\n", "ready\r\n"]),
            Some(1),
            "its editor shows nothing"
        );
        assert_eq!(matches("ready", "ready\n", false, &["ready\r\n", "you said: ready\r\n"]), Some(1));
        assert_eq!(
            matches(">>> ", "\r", true, &["\r\n", ">>> "]),
            Some(1),
            "the prompt where it was typed is an old one"
        );
    }
}
