//! Characters that no command under a policy may hold, because a person who reads it does not see them, or sees them elsewhere.

/// The longest command that is analysed, in bytes.
pub const ANALYSED_BYTES_MAX: usize = 64 * 1024;

/// Why a command cannot be judged, if that is so: its length, or a character that is not what it looks like.
pub fn unfit(text: &str) -> Option<String> {
    if text.len() > ANALYSED_BYTES_MAX {
        return Some(format!(
            "the command has {} bytes, and ptyd judges at most {ANALYSED_BYTES_MAX}; put it into a file instead",
            text.len()
        ));
    }
    let (at, c, kind) = text.chars().enumerate().find_map(|(at, c)| Some((at, c, kind(c)?)))?;
    Some(format!(
        "character {} of the command is U+{:04X}, {kind}; remove it, or write it as an escape in $'…'",
        at + 1,
        u32::from(c)
    ))
}

/// The kind of a character that is refused.
fn kind(c: char) -> Option<&'static str> {
    match c {
        '\t' | '\n' => None,
        '\0' => Some("NUL"),
        '\u{1}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some("a control character"),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some("which changes the direction of text")
        }
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            Some("a blank that a shell does not treat as one")
        }
        '\u{2028}' | '\u{2029}' => Some("a line end that a shell does not treat as one"),
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => Some("which is not visible"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: policy-4
    fn invisible_characters_are_refused_by_name() {
        for (text, said) in [
            ("ls\0", "character 3 of the command is U+0000, NUL"),
            ("ls\r", "U+000D, a control character"),
            ("l\u{1b}[2Js", "character 2 of the command is U+001B"),
            ("ls\u{85}rm", "U+0085, a control character"),
            ("rm\u{a0}x", "U+00A0, a blank"),
            ("ls \u{202e}x", "U+202E, which changes the direction"),
            ("ls\u{2066}", "U+2066, which changes the direction"),
            ("l\u{200b}s", "U+200B, which is not visible"),
            ("ls \u{3164}", "U+3164, which is not visible"),
            ("ls\u{2028}rm", "U+2028, a line end"),
            ("ls \u{e0041}", "U+E0041, which is not visible"),
        ] {
            let why = unfit(text).expect(text);
            assert!(why.contains(said), "{why}");
        }
        assert_eq!(unfit("printf 'é 漢字 🎉\\n'\n\tls"), None);
        assert!(unfit(&"x".repeat(ANALYSED_BYTES_MAX + 1)).is_some_and(|why| why.contains("65537 bytes")));
        assert_eq!(unfit(&"x".repeat(ANALYSED_BYTES_MAX)), None);
    }
}
