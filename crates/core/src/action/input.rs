//! Input that is typed at the terminal.

use super::budget::Budget;
use super::wait::Wait;
use crate::ids::{CommandId, SessionId};

/// A request to type input.
#[derive(Debug, Clone)]
pub struct Input {
    /// The session.
    pub session: SessionId,
    /// The input; key names are parsed by the protocols ([`crate::keys`]).
    pub bytes: InputBytes,
    /// Keep the bytes out of every record.
    pub is_secret: bool,
    /// A person has allowed it without seeing it, because a program asked for a password: it is typed as a secret, so only
    /// where the terminal does not echo.
    pub is_hidden: bool,
    /// The wait afterwards; `None` answers once the input is typed.
    pub wait: Option<Wait>,
    /// The idempotency key: a repeated request with it is not typed again.
    pub key: Option<String>,
    /// How many characters of output to give at most.
    pub budget: Budget,
    /// Leave its echo out of the answer, where that is known to be one.
    pub without_echo: bool,
    /// The command that it is meant for: once that has ended, it is not typed at the shell's prompt.
    pub meant_for: Option<CommandId>,
}

/// The input to type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputBytes {
    /// These bytes, unchanged.
    Raw(Vec<u8>),
    /// Named keys, which depend on the terminal's modes at the moment of typing.
    Keys(Vec<crate::keys::Key>),
    /// Text as from a clipboard, in bracketed paste mode if the program has enabled it.
    Paste {
        /// The text.
        text: String,
        /// Whether Enter follows.
        enters: bool,
    },
}

impl InputBytes {
    /// Text as a person hands it over. A block with indented lines is a paste: typed, an editor that indents by itself would indent
    /// it twice. So is text with a TAB inside a line: typed, a line editor would complete a word. A TAB at the end of the text is that
    /// key. Other text is typed, because some programs run each line of what is typed and none of a paste (gdb).
    pub fn of_text(text: String) -> Self {
        let lines = text.split(['\n', '\r']);
        let has_tab = lines.clone().any(|line| line.trim_end_matches('\t').trim_start_matches('\t').contains('\t'));
        let is_block = lines.skip(1).any(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        // Other control characters are keys.
        if !(is_block || has_tab) || text.contains(|c: char| c.is_control() && !"\t\r\n".contains(c)) {
            return Self::Raw(text.into_bytes());
        }
        // Inside of a paste the last line end would be text; behind it, it is Enter.
        let block = text.strip_suffix("\r\n").or_else(|| text.strip_suffix(['\n', '\r']));
        let enters = block.is_some();
        Self::Paste { text: block.map(str::to_owned).unwrap_or(text), enters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_with_indented_lines_and_a_tab_inside_are_a_paste_and_other_text_is_typed() {
        for text in [
            "",
            "\t",
            "\t\t",
            "cd pro\t",
            "cd pro\t\t",
            "\tname\r",
            "y\r",
            "  y\r",
            "print 1\rprint 2\r",
            "if x:\r  \r",
            "a\r\n\r\n",
            "ia\r  b\r\u{1b}:wq\r",
        ] {
            assert_eq!(InputBytes::of_text(text.to_owned()), InputBytes::Raw(text.into()), "{text:?}");
        }
        for (text, pasted, enters) in [
            ("for x in y:\r  z()\r", "for x in y:\r  z()", true),
            ("f() {\n\tx\n}\r\n", "f() {\n\tx\n}", true),
            ("def f():\n  x\n\n", "def f():\n  x\n", true),
            ("def f():\n  x", "def f():\n  x", false),
            ("select 'x\ty'\r", "select 'x\ty'", true),
            ("a\tb", "a\tb", false),
        ] {
            let expected = InputBytes::Paste { text: pasted.to_owned(), enters };
            assert_eq!(InputBytes::of_text(text.to_owned()), expected);
        }
    }
}
