//! Counts output that a person at a terminal would not see, with which it could address only the reader of the text.

use crate::sequence::{Piece, Splitter};

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiddenText {
    /// Characters that are concealed (SGR 8), or in the colour of their background, but for a punctuation mark by itself, which
    /// says nothing: htop paints the brackets around its tabs so. They are in the text.
    pub concealed: u64,
    /// Addresses of links (OSC 8). They are not in the text.
    pub links: u64,
    /// Writes to the clipboard (OSC 52). They are not in the text.
    pub clipboard: u64,
    /// Bytes of control sequences that were aborted or have not ended. They are not in the text.
    pub unfinished: u64,
}

impl std::ops::AddAssign for HiddenText {
    fn add_assign(&mut self, other: Self) {
        self.concealed += other.concealed;
        self.links += other.links;
        self.clipboard += other.clipboard;
        self.unfinished += other.unfinished;
    }
}

/// Counts them in output that begins in no particular colour.
pub fn unseen(bytes: &[u8]) -> HiddenText {
    let mut found = HiddenText::default();
    if memchr::memchr(0x1b, bytes).is_none() {
        return found;
    }
    // Not with the splitter, which keeps no sequence as long as a clipboard may be.
    found.clipboard = memchr::memmem::find_iter(bytes, b"\x1b]52;").count() as u64;
    let mut pen = Pen::default();
    let mut run = Run::default();
    let mut splitter = Splitter::for_text();
    splitter.feed(bytes, &mut |_, piece| match piece {
        Piece::Text(text) if pen.is_invisible() => run.add(text),
        Piece::Text(_) => found.concealed += std::mem::take(&mut run).counted(),
        Piece::Sequence([_, b'[', body @ .., b'm']) => pen.take(body),
        Piece::Sequence([_, b']', b'8', b';', body @ ..]) => {
            // The end of a link is a link with an empty address.
            let address = body.iter().position(|byte| *byte == b';').map_or(&body[..0], |at| &body[at + 1..]);
            found.links += u64::from(!matches!(address, [] | [0x07] | [0x1b, b'\\']));
        }
        Piece::Sequence([_, b']', b'5', b'2', b';', body @ ..]) => {
            let asks = body.ends_with(b";?\x07") || body.ends_with(b";?\x1b\\");
            found.clipboard -= u64::from(asks);
        }
        Piece::Sequence(_) | Piece::Broken(_) | Piece::Overlong(_) => {}
    });
    found.concealed += run.counted();
    found.unfinished = splitter.unfinished_bytes();
    found
}

/// Concealed characters with nothing shown between them.
#[derive(Debug, Default)]
struct Run {
    characters: u64,
    has_text: bool,
}

impl Run {
    fn add(&mut self, text: &[u8]) {
        // Continuation bytes are not characters of their own.
        for byte in text.iter().filter(|byte| **byte > b' ' && **byte & 0xc0 != 0x80) {
            self.characters += 1;
            self.has_text |= !byte.is_ascii_punctuation();
        }
    }

    fn counted(self) -> u64 {
        if self.characters == 1 && !self.has_text { 0 } else { self.characters }
    }
}

/// The present colours.
#[derive(Debug, Default)]
struct Pen {
    is_concealed: bool,
    is_bold: bool,
    foreground: Option<Colour>,
    background: Option<Colour>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Indexed(u16),
    Rgb(u16, u16, u16),
}

impl Pen {
    fn is_invisible(&self) -> bool {
        // Terminals show the eight colours brighter in bold.
        let foreground = match self.foreground {
            Some(Colour::Indexed(dark @ 0..=7)) if self.is_bold => Some(Colour::Indexed(dark + 8)),
            other => other,
        };
        self.is_concealed || foreground.is_some() && foreground == self.background
    }

    /// Applies an SGR (ECMA-48 8.3.117), with the colours of ITU T.416 in both usual spellings.
    fn take(&mut self, body: &[u8]) {
        let mut fields = body.split(|byte| *byte == b';');
        while let Some(field) = fields.next() {
            let mut parts = field.split(|byte| *byte == b':').map(number);
            let code = parts.next().flatten().unwrap_or(0);
            match code {
                0 => *self = Self::default(),
                1 => self.is_bold = true,
                22 => self.is_bold = false,
                8 => self.is_concealed = true,
                28 => self.is_concealed = false,
                30..=37 => self.foreground = Some(Colour::Indexed(code - 30)),
                90..=97 => self.foreground = Some(Colour::Indexed(code - 82)),
                40..=47 => self.background = Some(Colour::Indexed(code - 40)),
                100..=107 => self.background = Some(Colour::Indexed(code - 92)),
                39 => self.foreground = None,
                49 => self.background = None,
                38 | 48 => {
                    let inner: Vec<Option<u16>> = parts.collect();
                    let colour = match inner.as_slice() {
                        [Some(5), .., index] => index.map(Colour::Indexed),
                        // A colour space may come before.
                        [Some(2), .., r, g, b] => rgb(*r, *g, *b),
                        _ => match fields.next().and_then(number) {
                            Some(5) => fields.next().and_then(number).map(Colour::Indexed),
                            Some(2) => {
                                let mut next = || fields.next().and_then(number);
                                rgb(next(), next(), next())
                            }
                            _ => None,
                        },
                    };
                    if code == 38 {
                        self.foreground = colour;
                    } else {
                        self.background = colour;
                    }
                }
                _ => {}
            }
        }
    }
}

fn rgb(r: Option<u16>, g: Option<u16>, b: Option<u16>) -> Option<Colour> {
    Some(Colour::Rgb(r?, g?, b?))
}

fn number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: output-10
    fn concealed_characters_are_counted_however_they_are_hidden() {
        for (output, count) in [
            ("plain \x1b[31mred\x1b[0m", 0),
            ("a\x1b[8mb c\u{e9}\x1b[28md", 3),
            ("\x1b[1;8;4mxy\x1b[mz", 2),
            ("\x1b[30;40mxy\x1b[39mz", 2),
            ("\x1b[97m\x1b[107mxy", 2),
            ("\x1b[38;5;16;48;5;16mxy", 2),
            ("\x1b[38;2;1;2;3m\x1b[48:2::1:2:3mxy\x1b[48:2::1:2:4mz", 2),
            ("\x1b[38:5:9m\x1b[101mxy", 2),
            ("\x1b[4:3mxy", 0),
            ("\x1b[1;30;40mgrey\x1b[22mx", 1),
            // htop's tabs.
            (
                "\x1b[32m\x1b[42m[\x1b[30m\x1b[42mMain\x1b[32m\x1b[42m]\x1b[39;49m\x1b(B\x1b[m \x1b[34m\x1b[44m[\x1b[30mI/O",
                0,
            ),
            ("a\x1b[8m;\x1b[28mb", 0),
            ("a\x1b[8m;\x1b[28m\x1b[8m;\x1b[28mb", 2),
            ("a\x1b[8m7\x1b[28mb\x1b[8m\u{2022}\x1b[28m", 2),
        ] {
            assert_eq!(
                unseen(output.as_bytes()),
                HiddenText { concealed: count, ..HiddenText::default() },
                "{output:?}"
            );
        }
    }

    #[test]
    // promise: output-10
    fn links_and_clipboard_writes_are_counted_without_their_ends_and_queries() {
        let output =
            "\x1b]8;;https://a\x1b\\a\x1b]8;;\x1b\\ \x1b]8;id=1;b:\x07b\x1b]8;;\x07\x1b]52;c;aGk=\x07\x1b]52;c;?\x07";
        let long = format!("{output}\x1b]52;c;{}\x07", "aGk".repeat(2000));
        assert_eq!(unseen(long.as_bytes()), HiddenText { links: 2, clipboard: 2, ..HiddenText::default() });
    }

    #[test]
    // promise: output-10
    fn the_bytes_of_sequences_without_an_end_are_counted() {
        let endless = "x".repeat(5000);
        for (output, count) in [
            ("a\x1b[1m\x1b]0;t\x07\x1b\\", 0),
            ("a\x1b]0;never\r\nb", 9),
            ("a\x1b]0;never\r\nb\x1b[m", 9),
            ("a\x1b\nb\x1b[1\x18c", 5),
            ("a\x1bPq\nb", 5),
            ("a\x1b[38;5\r\nyes", 6),
            ("a\x1b[", 2),
            (&format!("a\x1bP{endless}"), 5002),
            (&format!("a\x1b_{endless}\x1b[m"), 5002),
        ] {
            assert_eq!(unseen(output.as_bytes()).unfinished, count, "{output:?}");
        }
    }
}
