//! The echo of typed lines at the beginning of the output behind them. The answer to the call that typed them omits it.
//!
//! Text is omitted only if it is known to be an echo. Either the terminal echoed at that moment; or a line editor had the
//! terminal, and painted the typed line behind its prompt and nothing else. All other text stays, because the program may
//! have printed it.

use wire::ShownBy;

use super::range::Slice;

/// A longer text stays: an editor wraps it, and the terminal is read while it is written.
const TYPED_BYTES_MAX: usize = 3_000;
/// A prompt has fewer bytes.
const PROMPT_BYTES: u64 = 2_048;
/// So much is read for an editor's line, with its colours and repaints.
const PAINTED_BYTES_MAX: u64 = 16 << 10;

/// Where the echo of these bytes ends in this range of the output; its beginning if it does not begin with their echo.
pub(crate) fn end(
    shown_by: ShownBy,
    bytes: &[u8],
    (from, to): (u64, u64),
    cols: u16,
    read: impl Fn(u64, u64) -> std::io::Result<Slice>,
) -> u64 {
    let Some(typed) = lines(bytes) else { return from };
    let part = |from, to| read(from, to).ok().filter(|slice| slice.from == from).map(|slice| slice.bytes);
    let length = match shown_by {
        ShownBy::Unknown => None,
        ShownBy::Terminal => {
            // Each line end is echoed as two bytes.
            let longest = (bytes.len() + typed.matches('\n').count()) as u64;
            part(from, to.min(from + longest)).and_then(|output| echoed(&typed, &output))
        }
        ShownBy::Editor => {
            let before = part(from.saturating_sub(PROMPT_BYTES), from);
            let output = part(from, to.min(from + PAINTED_BYTES_MAX));
            before.zip(output).and_then(|(before, output)| painted(&typed, &before, &output, cols))
        }
    };
    from + length.unwrap_or(0) as u64
}

/// The typed lines, each with its end; `None` if it is anything else than whole lines of plain text.
fn lines(bytes: &[u8]) -> Option<String> {
    let typed = std::str::from_utf8(bytes).ok().filter(|typed| typed.len() <= TYPED_BYTES_MAX)?;
    let typed = typed.replace(['\r'], "\n");
    let is_plain = typed.ends_with('\n') && !typed.chars().any(|c| c.is_control() && c != '\n');
    (is_plain && !typed.trim().is_empty()).then_some(typed)
}

/// How long the terminal's echo is at the beginning of this output.
fn echoed(typed: &str, output: &[u8]) -> Option<usize> {
    [typed.replace('\n', "\r\n"), typed.to_owned()]
        .iter()
        .find(|echo| output.starts_with(echo.as_bytes()))
        .map(String::len)
}

/// How long the line is that an editor has painted behind its prompt, at the beginning of this output.
///
/// Without a prompt, or without anything behind the line, it may be the answer of a program that shows nothing of its
/// input.
fn painted(typed: &str, before: &[u8], output: &[u8], cols: u16) -> Option<usize> {
    let length = memchr::memchr(b'\n', output)? + 1;
    let (line, rest) = output.split_at(length);
    let prompted = terminal::render(before, cols).text;
    let has_prompt = !prompted.is_empty() && !prompted.ends_with('\n');
    if !has_prompt || typed.matches('\n').count() != 1 || terminal::render(rest, cols).text.trim().is_empty() {
        return None;
    }
    let shown = terminal::render(&[before, line].concat(), cols).text;
    (shown.strip_prefix(prompted.as_str()) == Some(typed)).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output that is left behind these bytes, which were typed where the output ended with `before`.
    fn left<'a>(shown_by: ShownBy, typed: &str, before: &str, output: &'a str) -> &'a str {
        let journal = [before, output].concat().into_bytes();
        let read = |from: u64, to: u64| Ok(Slice { from, bytes: journal[from as usize..to as usize].to_vec() });
        let (from, to) = (before.len() as u64, journal.len() as u64);
        &output[(end(shown_by, typed.as_bytes(), (from, to), 80, read) - from) as usize..]
    }

    #[test]
    // promise: output-11
    fn the_terminals_echo_of_whole_lines_is_omitted_and_nothing_else() {
        for (typed, output, rest) in [
            ("hi\n", "hi\r\nhi\r\n", "hi\r\n"),
            ("hi\r", "hi\r\n", ""),
            ("hi\n", "hi\n there", " there"),
            ("a\nbé\n", "a\r\nbé\r\na\r\nbé\r\n", "a\r\nbé\r\n"),
            // Output came before it, or between.
            ("hi\n", "tick\r\nhi\r\n", "tick\r\nhi\r\n"),
            ("a\nb\n", "a\r\na\r\nb\r\n", "a\r\na\r\nb\r\n"),
            // A part of it.
            ("hi\n", "h", "h"),
            ("hi\n", "hi", "hi"),
            ("hi\n", "high\r\n", "high\r\n"),
            // No whole line, a key, nothing.
            ("hi", "hi\r\n", "hi\r\n"),
            ("\t\n", "\t\r\n", "\t\r\n"),
            ("\x04\n", "^D\r\n", "^D\r\n"),
            ("\n", "\r\n", "\r\n"),
        ] {
            assert_eq!(left(ShownBy::Terminal, typed, "", output), rest, "{typed:?}");
            assert_eq!(left(ShownBy::Unknown, typed, "", output), output, "`stty -echo; cat`: {typed:?}");
        }
    }

    #[test]
    // promise: output-11
    fn a_line_that_an_editor_paints_behind_its_prompt_is_omitted() {
        let repainted = "\x1b[1G\x1b[0J>>> 6*\x1b[32m7\x1b[m\x1b[8G\r\n42\r\n>>> ";
        for (before, output, rest) in [
            ("x\r\n>>> ", "6*7\r\n42\r\n>>> ", "42\r\n>>> "),
            ("x\r\n>>> ", repainted, "42\r\n>>> "),
            ("\x1b[?2004h>>> ", "6*7\r\n\x1b[?2004l\r42\r\n", "\x1b[?2004l\r42\r\n"),
        ] {
            assert_eq!(left(ShownBy::Editor, "6*7\r", before, output), rest, "{output:?}");
        }
        for (before, output) in [
            // `stty raw -echo; cat` has no prompt, and a program that repeats its input prints nothing else.
            ("", "6*7\r\n42\r\n"),
            ("x\r\n", "6*7\r\n42\r\n"),
            (">>> ", "6*7\r\n"),
            (">>> ", "6*7\r\n\x1b[?2004l\r"),
            (">>> ", "6*7 = 42\r\n>>> "),
            (">>> ", "\r\n42\r\n>>> "),
            (">>> ", "\rbusy\r\n>>> 6*7\r\n42\r\n"),
        ] {
            assert_eq!(left(ShownBy::Editor, "6*7\r", before, output), output, "{before:?}");
        }
        let output = "6*7\r\n42\r\n>>> 1\r\n1\r\n>>> ";
        assert_eq!(
            left(ShownBy::Editor, "6*7\r1\r", ">>> ", output),
            output,
            "of several lines the first is not the echo"
        );
    }
}
