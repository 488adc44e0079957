//! Condenses output for a model without leaving out anything that a person at the terminal would see.
//!
//! Repeated lines are folded and very long ones are cut, both with their count; invisible characters are written out.
//! Nothing else is removed or changed.

use terminal::quote::is_unseen;

use super::size::grouped;
use ptyd_core::action::{is_folded, runs_of_lines};

/// A longer line is cut in its middle. Text written by people is shorter, and the raw view has the rest.
const LINE_CHARS_MAX: usize = 10_000;
/// The characters kept at either end.
const LINE_CHARS_KEPT: usize = 2_000;

/// The text, and how many characters of it were written out.
pub(super) fn economical(text: &str) -> (String, usize) {
    let mut out = String::with_capacity(text.len());
    let mut written_out = 0;
    let mut runs = runs_of_lines(text).peekable();
    while let Some((line, repeats)) = runs.next() {
        let shown = shortened(line);
        let shown = visible(shown.as_deref().unwrap_or(line), &mut written_out);
        if !is_folded(line, repeats) {
            // The last of them may lack its line end.
            (1..repeats).for_each(|_| out.push_str(&shown));
            out.push_str(if text.ends_with('\n') || runs.peek().is_some() {
                &shown
            } else {
                shown.trim_end_matches('\n')
            });
        } else {
            out.push_str(&shown);
            out.push_str(&format!("[… the same line {} more times]\n", grouped(repeats as u64 - 1)));
        }
    }
    (out, written_out)
}

/// A very long line without its middle.
fn shortened(line: &str) -> Option<String> {
    let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
    let count = if line.len() > LINE_CHARS_MAX { line.chars().count() } else { 0 };
    if count <= LINE_CHARS_MAX {
        return None;
    }
    let head: String = line.chars().take(LINE_CHARS_KEPT).collect();
    let tail: String = line.chars().skip(count - LINE_CHARS_KEPT).collect();
    let left_out = grouped((count - 2 * LINE_CHARS_KEPT) as u64);
    Some(format!("{head}[… {left_out} characters of this line omitted; the raw view has them]{tail}{end}"))
}

/// The line with invisible characters written as `\u{…}`.
pub(in crate::mcp) fn visible(line: &str, written_out: &mut usize) -> String {
    if line.is_ascii() {
        return line.to_owned();
    }
    let mut out = String::with_capacity(line.len());
    let mut before = '\0';
    for c in line.chars() {
        if is_unseen(c, before) {
            *written_out += 1;
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}

/// True if most of this text represents bytes that are not text: a picture, an archive, a program.
pub(super) fn is_binary(text: &str) -> bool {
    /// A text may have a few such bytes; a short one may consist of them.
    const ESCAPED_MIN: usize = 64;
    let escaped = escapes(text).count();
    escaped >= ESCAPED_MIN && escaped * ESCAPE_BYTES * 2 > text.len()
}

/// The lines before the first such byte, and the text after the last one.
pub(super) fn around_binary(text: &str) -> (&str, &str) {
    let (Some(first), Some(last)) = (escapes(text).next(), escapes(text).last()) else { return (text, "") };
    let lines_before = text.get(..first).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let after = text.get(last + ESCAPE_BYTES..).unwrap_or_default();
    (text.get(..lines_before).unwrap_or_default(), if after.trim().is_empty() { "" } else { after })
}

/// The length of `\xNN`, which represents a byte that is not text: a control character that moves nothing, or 80 or more.
const ESCAPE_BYTES: usize = 4;

/// The positions of such bytes.
fn escapes(text: &str) -> impl Iterator<Item = usize> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_escape = move |bytes: &[u8]| match bytes {
        [b'\\', b'x', b'8' | b'9' | b'a'..=b'f' | b'1', last] => is_hex(*last),
        [b'\\', b'x', b'0', last] => matches!(last, b'0'..=b'6' | b'b' | b'c' | b'e' | b'f'),
        [b'\\', b'x', b'7', last] => *last == b'f',
        _ => false,
    };
    let is_one = move |(at, bytes): (usize, &[u8])| is_escape(bytes).then_some(at);
    text.as_bytes().windows(ESCAPE_BYTES).enumerate().filter_map(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        economical(text).0
    }

    #[test]
    // promise: output-9
    fn lines_that_repeat_are_folded_and_counted() {
        let many = "retry\n".repeat(1_200);
        assert_eq!(text(&format!("a\n{many}b\n")), "a\nretry\n[… the same line 1,199 more times]\nb\n");
        let (few, enough) = ("x\n".repeat(9), "x\n".repeat(10));
        for kept in [few.clone() + "y", few.trim_end().to_owned(), few.clone()] {
            assert_eq!(text(&kept), kept);
        }
        assert_eq!(text(&enough), "x\n[… the same line 9 more times]\n");
        assert_eq!(text(enough.trim_end()), "x\n[… the same line 9 more times]\n");
        // Blank lines are cheap, and a count of nothing does not help.
        let blanks = format!("a{}b", "\n".repeat(40));
        assert_eq!(text(&blanks), blanks);
        assert_eq!(text(""), "");
    }

    #[test]
    // promise: output-9
    fn a_very_long_line_keeps_its_ends() {
        let long = format!("{}{}", "a".repeat(6_000), "é".repeat(6_000));
        let cut = text(&format!("b\n{long}\nc\n"));
        let (head, tail) = ("a".repeat(2_000), "é".repeat(2_000));
        assert_eq!(
            cut,
            format!("b\n{head}[… 8,000 characters of this line omitted; the raw view has them]{tail}\nc\n")
        );
        let fits = "é".repeat(10_000) + "\n";
        assert_eq!(text(&fits), fits);
    }

    #[test]
    // promise: output-10
    fn invisible_characters_are_written_out_and_emoji_stay() {
        let (shown, count) = economical("rm \u{202e}txt\u{e0041}\u{e0042} \u{200b}x\u{feff}\n");
        assert_eq!((shown.as_str(), count), ("rm \\u{202e}txt\\u{e0041}\\u{e0042} \\u{200b}x\\u{feff}\n", 5));
        let (shown, count) = economical("\u{9b}31mred\u{85}\n");
        assert_eq!((shown.as_str(), count), ("\\u{9b}31mred\\u{85}\n", 2));
        let (shown, count) = economical("a\u{fe01}\u{fe02}b ❤\u{fe0f}\u{e0101}");
        assert_eq!((shown.as_str(), count), ("a\\u{fe01}\\u{fe02}b ❤\u{fe0f}\\u{e0101}", 3));
        let honest = "👨\u{200d}👩\u{200d}👧 ❤\u{fe0f} né\u{301} שלום می\u{200c}خواهم 1\u{fe0f}\u{20e3}";
        assert_eq!(economical(honest), (honest.to_owned(), 0));
    }

    #[test]
    fn output_is_binary_when_most_of_it_is_not_text() {
        let noise = "\\x89\\xff".repeat(50);
        assert!(is_binary(&noise));
        assert!(is_binary(&format!("{noise}{}", "x".repeat(300))));
        assert!(!is_binary(&format!("{noise}{}", "x".repeat(500))));
        assert!(!is_binary("\\x89\\xff"));
        assert!(!is_binary(&"\\xampp\\x41".repeat(100)), "no such byte has that number");
        assert_eq!(
            around_binary(&format!("C:\\xampp\nis: {noise}done\nuse \\xampp\n")),
            ("C:\\xampp\n", "done\nuse \\xampp\n")
        );
        assert_eq!(around_binary(&format!("{noise}\n")), ("", ""));
    }
}
