//! Hides the line that our integration puts into the shell's editor to run a command; viewers, screens and recordings
//! show the command instead.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use memchr::memmem;
use regex::bytes::Regex;

/// The lines that the scripts in shell-integration/ put into the editor, or that are typed at shells without our
/// editor, with `{}` for a command's id and nonce; a longer line that contains a shorter one comes first.
const LINES: [&str; 7] = [
    "{ __ptyd_begin && :; } 2>/dev/null; \\builtin eval -- \"$__ptyd_text\"; __ptyd_finish && :",
    "\\builtin eval -- \"$__ptyd_text\"; __ptyd_finish && :",
    "{ \\builtin \\eval \"${__ptyd_text:__ptyd_begin()}\"; } always { \\__ptyd_cut; }; \\__ptyd_finish && :",
    "__ptyd_begin; builtin eval $__ptyd_text; __ptyd_finish",
    "\\__ptyd_c {};\\command . \"$__ptyd_f\";__ptyd_r=$?.$__ptyd_i;\\__ptyd_d",
    // From sessions of an earlier version.
    "\\__ptyd_c {};\\command . \"$__ptyd_f\";__ptyd_r=$?;\\__ptyd_d",
    "source /proc/{}/fd/{} #__ptyd_",
];
/// Part of every line, and rare in other output.
const IN_ALL: &[u8] = b"__ptyd_";

/// Part of the line of the editor that paints it a second time, in colours.
const PAINTED_TWICE: &str = "__ptyd_begin; builtin eval";

/// The bytes that an editor writes between the characters of a line that is coloured or wraps.
const BETWEEN: &str = r"(?: \r|\r\n?|\x1b\[[0-9;?]*[A-Za-z]|\x1b\(B)*";

/// The same lines as editors paint them; fish goes back and paints its line a second time.
static PAINTED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let character = |c: char| regex::escape(c.encode_utf8(&mut [0; 4]));
    let part = |text: &str| text.chars().map(character).collect::<Vec<_>>().join(BETWEEN);
    let painted = |line: &&str| {
        let numbers = format!("(?:[0-9 ]{BETWEEN})+");
        let once = line.split("{}").map(part).collect::<Vec<_>>().join(&numbers);
        Regex::new(&format!("(?-u){once}(?: ?{BETWEEN}{once})?"))
    };
    LINES.iter().filter_map(|line| painted(line).ok()).collect()
});

/// The range of a loader's line in the journal, and the command that is shown instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HandoverEcho {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) given: Arc<str>,
}

/// Finds the loader's line in the bytes of a prompt, once for each time the editor painted it whole; `from` is the
/// offset of the first byte.
pub(crate) fn echoes(bytes: &[u8], from: u64, given: &str) -> Vec<HandoverEcho> {
    let given: Arc<str> = as_typed(given).into();
    let mut at = 0;
    let next = || {
        let line = find(bytes.get(at..)?)?;
        let echo = HandoverEcho {
            from: from + (at + line.start) as u64,
            to: from + (at + line.end) as u64,
            given: given.clone(),
        };
        at += line.end;
        Some(echo)
    };
    std::iter::from_fn(next).collect()
}

/// The beginning of a typed line in a shell whose editor scrolls a line longer than its row and paints it piece by
/// piece.
static SCROLLED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)\\__ptyd_c [0-9 ]+[^\n]*<\x08+[^\n]*[^\r\n]").ok());

/// The range of the first loader's line in these bytes.
pub(crate) fn find(bytes: &[u8]) -> Option<Range<usize>> {
    memmem::find(bytes, IN_ALL)?;
    let literal = LINES
        .iter()
        .filter(|line| !line.contains(PAINTED_TWICE))
        .filter_map(|l| memmem::find(bytes, l.as_bytes()).map(|at| at..at + l.len()));
    let literal = literal.min_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let painted = || PAINTED.iter().chain(&*SCROLLED).find_map(|line| line.find(bytes));
    literal.or_else(|| painted().map(|found| found.range()))
}

/// A command as a terminal would echo it.
pub(crate) fn as_typed(given: &str) -> String {
    let mut shown = String::with_capacity(given.len());
    for c in given.trim_end().chars() {
        match c {
            '\n' => shown.push_str("\r\n"),
            '\t' => shown.push('\t'),
            c if c.is_ascii_control() => shown.extend(['^', char::from(c as u8 ^ 0x40)]),
            c if c.is_control() => {}
            c => shown.push(c),
        }
    }
    shown
}

/// The bytes with commands instead of loader's lines; `from` is the offset of the first byte. A line that begins before
/// these bytes was replaced in the bytes before.
pub(crate) fn show<'a>(bytes: &'a [u8], from: u64, echoes: &[HandoverEcho]) -> Cow<'a, [u8]> {
    let end = from + bytes.len() as u64;
    let mut here = echoes.iter().filter(|echo| echo.from < end && echo.to > from).peekable();
    if here.peek().is_none() {
        return Cow::Borrowed(bytes);
    }
    let index = |offset: u64| usize::try_from(offset.clamp(from, end) - from).unwrap_or(bytes.len());
    let mut shown = Vec::with_capacity(bytes.len());
    let mut at = from;
    for echo in here {
        shown.extend_from_slice(&bytes[index(at)..index(echo.from.max(at))]);
        if echo.from >= from {
            shown.extend_from_slice(echo.given.as_bytes());
        }
        at = echo.to;
    }
    shown.extend_from_slice(&bytes[index(at)..]);
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: output-15
    fn a_loaders_line_is_found_also_where_it_was_wrapped_or_coloured() {
        let line = LINES[1];
        let plain = format!("\x1b[K$ {line}\r\n");
        assert_eq!(find(plain.as_bytes()), Some(5..5 + line.len()));
        let longer = format!("$  {}\r\n", LINES[0]);
        assert_eq!(find(longer.as_bytes()), Some(3..3 + LINES[0].len()));
        let (head, tail) = line.split_at(20);
        for between in [" \r", "\r\n", "\x1b[0m\x1b[32m"] {
            let painted = format!("$ {head}{between}{tail}\r\n");
            assert_eq!(find(painted.as_bytes()), Some(2..2 + line.len() + between.len()), "{between:?}");
        }
        assert_eq!(find(format!("{head} {tail}").as_bytes()), None);
    }

    #[test]
    fn every_shells_line_is_found_with_its_numbers_and_where_it_was_painted_twice() {
        assert_eq!(PAINTED.len(), LINES.len());
        let typed = LINES[4].replace("{}", "12 15437122521296011965");
        for line in [LINES[2], LINES[3], &typed] {
            assert_eq!(find(format!("$  {line}\r\n").as_bytes()), Some(3..3 + line.len()), "{line}");
        }
        let cut = typed.replace("1965", "19\r\r\n65");
        assert_eq!(find(format!("$ {cut}\r\r\n").as_bytes()), Some(2..2 + cut.len()));
        let scrolled = "\\__ptyd_c 2 41\r\\__ptyd_c 2 41      <\x08\x08\x085426\r26;\\command     <\x08\x08\x08_ptyd_d";
        assert_eq!(find(format!("#  {scrolled}\r\r\n").as_bytes()), Some(3..3 + scrolled.len()));
        let nu = "source\x1b[0m \x1b[36m/proc/18843/fd/11\x1b[0m #__ptyd_";
        let painted = format!("> \x1b[1;36m{nu}\x1b8\x1b[6n\x1b[18;1H\x1b[J> \x1b[1;36m{nu}\x1b8\r\n");
        let places: Vec<_> = echoes(painted.as_bytes(), 100, "ls").iter().map(|echo| (echo.from, echo.to)).collect();
        let place = |at: Option<usize>| at.map(|at| (100 + at as u64, 100 + (at + nu.len()) as u64));
        assert_eq!(places, [place(painted.find(nu)), place(painted.rfind(nu))].map(Option::unwrap));
        let fish = "__ptyd_begin; builtin eval $__ptyd_text; __ptyd_finish \r\x1b[73C\x1b[55D\x1b[34m__ptyd_begin\x1b[32m;\x1b[30m\
                    \x1b(B\x1b[m \x1b[34mbuiltin eval \x1b[96m$__ptyd_text\x1b[32m; \x1b[34m__ptyd_finish";
        assert_eq!(find(format!("~> \x1b[K {fish}\x1b[30m \r\n").as_bytes()), Some(7..7 + fish.len()));
    }

    #[test]
    // promise: output-15
    fn a_command_is_shown_once_however_the_bytes_are_cut() {
        let echoes = [
            HandoverEcho { from: 12, to: 17, given: "ls".into() },
            HandoverEcho { from: 20, to: 23, given: "a\r\nb".into() },
        ];
        let bytes = b"$ LOADE\n$ LOA\n";
        let whole = b"$ ls\n$ a\r\nb\n";
        assert_eq!(show(bytes, 10, &echoes).as_ref(), whole);
        for cut in 0..=bytes.len() {
            let (head, tail) = bytes.split_at(cut);
            let parts = [show(head, 10, &echoes), show(tail, 10 + cut as u64, &echoes)].concat();
            assert_eq!(parts, whole, "cut at {cut}");
        }
        assert!(matches!(show(bytes, 30, &echoes), Cow::Borrowed(_)));
    }

    #[test]
    fn a_command_cannot_speak_to_the_viewers_terminal() {
        assert_eq!(as_typed("a\tb\n\x1b]0;x\x07\u{9b}2J\n\n"), "a\tb\r\n^[]0;x^G2J");
    }
}
