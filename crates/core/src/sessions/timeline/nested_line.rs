//! The line that runs a command in a nested shell, and the markers by which it reports where its output begins and how
//! it ended.
//!
//! The line is the same for sh, bash, zsh, ksh, dash, busybox and fish, because the shell on another machine is unknown:
//! ```text
//!  printf C-mark; eval '<sh only>' 'eval "$(printf TEXT)"'; eval printf D-mark '$?<sh only>' '$status' '<sh only>'
//! ```
//! A word that contains `$PPID`, which fish does not have, disappears in fish. `command eval` survives the errors after
//! which sh would discard the rest of the line; zsh calls it `builtin eval`. Bash is told to forget the line. The text is
//! octal wherever a shell or an editor could interpret it. A marker needs the byte ESC, which the typed line does not
//! contain, so its echo is not a marker.

use std::fmt::Write as _;

use terminal::{MarkerKind, Nonce};

use crate::limits::INSIDE_LINE_BYTES_MAX;

/// A command that was typed into a nested shell and has not ended.
#[derive(Debug)]
pub(crate) struct NestedLine {
    pub(crate) id: u32,
    pub(crate) nonce: u64,
    /// The nonce as it is in the markers.
    word: String,
    pub(crate) has_begun: bool,
}

/// The meaning of one of its markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NestedMark {
    Begins,
    Ends(i32),
}

impl NestedLine {
    /// With a fresh nonce, unknown to any program before the line is typed. The holder numbers the command.
    pub(crate) fn new() -> Self {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        Self::known(0, u64::from_le_bytes(bytes))
    }

    /// A command that was typed with this nonce.
    pub(crate) fn known(id: u32, nonce: u64) -> Self {
        Self { id, nonce, word: format!("{nonce:016x}"), has_begun: false }
    }

    /// The line without its line end; an error with its length if it is too long to be typed.
    pub(crate) fn line(&self, text: &str) -> Result<String, usize> {
        let nonce = &self.word;
        // A blank before the text keeps a leading `-` from being an option of printf.
        let line = format!(
            r#" printf '\033]7337;C;{nonce}\007';eval 'case ${{BASH_VERSION+$(history 1)}} in *{nonce}*)history -d -1 2>/dev/null;esac;__ptyd=${{ZSH_VERSION+builtin}};: '$PPID';${{__ptyd:-command}}' 'eval "$(printf '\'' {}'\'')"';eval printf "'\033]7337;D;{nonce}.%s\007'" '"$?";unset __ptyd;: '$PPID"'" '$status' "'"$PPID"#,
            as_format(text),
        );
        if line.len() > INSIDE_LINE_BYTES_MAX { Err(line.len()) } else { Ok(line) }
    }

    /// The meaning of this marker, if it is the next one of this command, which it then has passed.
    pub(crate) fn take_mark(&mut self, kind: MarkerKind, nonce: &Nonce) -> Option<NestedMark> {
        let mark = self.meaning_of(kind, nonce)?;
        self.has_begun |= mark == NestedMark::Begins;
        Some(mark)
    }

    /// The meaning of this marker, if it is the next one of this command.
    pub(crate) fn meaning_of(&self, kind: MarkerKind, nonce: &Nonce) -> Option<NestedMark> {
        let word = nonce.as_str();
        match kind {
            MarkerKind::Start => (word == self.word && !self.has_begun).then_some(NestedMark::Begins),
            MarkerKind::End => {
                let status = word.strip_prefix(self.word.as_str())?.strip_prefix('.')?.parse().ok()?;
                self.has_begun.then_some(NestedMark::Ends(status))
            }
        }
    }
}

/// The text as a part of a format of printf.
pub(crate) fn as_format(text: &str) -> String {
    let mut format = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => format.push_str("%%"),
            b'\'' | b'\\' | b'!' | 0..=0x1f | 0x7f.. => {
                let _ = write!(format, "\\{byte:03o}");
            }
            _ => format.push(char::from(byte)),
        }
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: inside-4
    fn a_nested_command_is_one_line_of_plain_characters_without_a_mark() {
        let inside = NestedLine::new();
        let line = inside.line("echo 'a\\b' 100% \"$x\"\n\tcat <<E\né!\u{1b}]7337;D;1\u{7}\nE\n").expect("short");
        assert!(line.bytes().all(|b| (0x20..0x7f).contains(&b)), "{line:?}");
        let text = r#"printf '\'' echo \047a\134b\047 100%% "$x"\012\011cat <<E\012\303\251\041\033]7337;D;1\007\012E\012'\''"#;
        assert!(line.contains(text), "{line}");
        assert_eq!(inside.line(&"x".repeat(4_000)).map_err(|len| len > INSIDE_LINE_BYTES_MAX), Err(true));
    }

    #[test]
    // promise: inside-2
    fn only_its_own_marks_count_and_each_in_its_turn() {
        let mut inside = NestedLine::new();
        let nonce = |word: &str| Nonce::parse(word.as_bytes()).expect("a word");
        let (own, end) = (nonce(&inside.word), nonce(&format!("{}.3", inside.word)));
        assert_eq!(inside.meaning_of(MarkerKind::End, &end), None, "before it has begun");
        assert_eq!(inside.meaning_of(MarkerKind::Start, &nonce("4711")), None);
        assert_eq!(inside.meaning_of(MarkerKind::Start, &own), Some(NestedMark::Begins));
        inside.has_begun = true;
        assert_eq!(inside.meaning_of(MarkerKind::Start, &own), None, "printed again");
        assert_eq!(inside.meaning_of(MarkerKind::End, &nonce("4711.3")), None);
        assert_eq!(inside.meaning_of(MarkerKind::End, &end), Some(NestedMark::Ends(3)));
    }
}
