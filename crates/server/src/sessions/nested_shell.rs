//! A command for a shell inside the session's: the line that is typed at it, and the marks by which that line tells
//! where its output is and how it ended.
//!
//! The line is the same for sh, bash, zsh, ksh, dash, busybox and fish, for nobody knows what reads on another machine:
//! ```text
//!  printf C-mark; eval '<sh only>' 'eval "$(printf TEXT)"'; eval printf D-mark '$?<sh only>' '$status' '<sh only>'
//! ```
//! A word that holds `$PPID`, which fish does not have, is no word at all in fish. `command eval` keeps the errors that
//! would throw the rest of the line away in sh; zsh calls it `builtin eval`. The text is octal wherever a shell or an
//! editor could make something of it. A mark needs the byte ESC, which is nowhere in what is typed: no echo is one.

use std::fmt::Write as _;

use terminal::{MarkerKind, Nonce};

use crate::limits::INSIDE_LINE_BYTES_MAX;

/// A command that was typed at a shell inside and has not ended.
#[derive(Debug)]
pub(crate) struct NestedCommand {
    pub(crate) id: u32,
    pub(crate) nonce: u64,
    /// The same as the marks have it.
    word: String,
    pub(crate) has_begun: bool,
}

/// What a mark of it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NestedMark {
    Begins,
    Ends(i32),
}

impl NestedCommand {
    /// With a nonce that nobody can know before it is typed.
    pub(crate) fn new(id: u32) -> Self {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).expect("invariant: the kernel gives random bytes");
        Self::known(id, u64::from_le_bytes(bytes))
    }

    /// One that was typed with this nonce.
    pub(crate) fn known(id: u32, nonce: u64) -> Self {
        Self { id, nonce, word: format!("{nonce:016x}"), has_begun: false }
    }

    /// The line without its end; how long it is where that is too long to be typed.
    pub(crate) fn line(&self, text: &str) -> Result<String, usize> {
        let nonce = &self.word;
        let line = format!(
            r#" printf '\033]7337;C;{nonce}\007';eval '__ptyd=${{ZSH_VERSION+builtin}};: '$PPID';${{__ptyd:-command}}' 'eval "$(printf '\''{}'\'')"';eval printf "'\033]7337;D;{nonce}.%s\007'" '"$?";unset __ptyd;: '$PPID"'" '$status' "'"$PPID"#,
            as_format(text),
        );
        if line.len() > INSIDE_LINE_BYTES_MAX { Err(line.len()) } else { Ok(line) }
    }

    /// What this mark says, if it is one of this command's and not told before.
    pub(crate) fn hears(&self, kind: MarkerKind, nonce: &Nonce) -> Option<NestedMark> {
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

/// A text as a format of printf. A blank before it keeps a leading `-` from being an option.
fn as_format(text: &str) -> String {
    let mut format = " ".to_owned();
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
    fn what_is_typed_is_one_line_of_plain_characters_without_a_mark() {
        let inside = NestedCommand::new(1);
        let line = inside.line("echo 'a\\b' 100% \"$x\"\n\tcat <<E\né!\u{1b}]7337;D;1\u{7}\nE\n").expect("short");
        assert!(line.bytes().all(|b| (0x20..0x7f).contains(&b)), "{line:?}");
        let text = r#"printf '\'' echo \047a\134b\047 100%% "$x"\012\011cat <<E\012\303\251\041\033]7337;D;1\007\012E\012'\''"#;
        assert!(line.contains(text), "{line}");
        assert_eq!(inside.line(&"x".repeat(4_000)).map_err(|len| len > INSIDE_LINE_BYTES_MAX), Err(true));
    }

    #[test]
    fn only_its_own_marks_are_heard_and_each_in_its_turn() {
        let mut inside = NestedCommand::new(1);
        let nonce = |word: &str| Nonce::parse(word.as_bytes()).expect("a word");
        let (own, end) = (nonce(&inside.word), nonce(&format!("{}.3", inside.word)));
        assert_eq!(inside.hears(MarkerKind::End, &end), None, "before it has begun");
        assert_eq!(inside.hears(MarkerKind::Start, &nonce("4711")), None);
        assert_eq!(inside.hears(MarkerKind::Start, &own), Some(NestedMark::Begins));
        inside.has_begun = true;
        assert_eq!(inside.hears(MarkerKind::Start, &own), None, "printed again");
        assert_eq!(inside.hears(MarkerKind::End, &nonce("4711.3")), None);
        assert_eq!(inside.hears(MarkerKind::End, &end), Some(NestedMark::Ends(3)));
    }
}
