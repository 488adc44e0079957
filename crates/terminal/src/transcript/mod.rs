//! Transcripts: output as the plain text that a person would have read, in logical lines.
//!
//! Output that only prints is its own text, at every width: lines are not cut or padded at the right margin, and a tab
//! stays a tab. Carriage returns, backspaces, erasures and cursor movements are applied; colours, titles, markers and
//! full-screen paint leave nothing. `\r\n` is a line end, and the text ends with one exactly if the output did.
//!
//! Two paths lead to the same text. `emulated` feeds a virtual terminal (`avt`), which is always right and slow.
//! `plain` takes whole plain lines as long as nothing has moved the cursor, which is the case for most output;
//! otherwise it hands as much text to the terminal as could still change. A property test verifies that both give the
//! same.

mod emulated;
mod lines;
mod plain;

use crate::sequence::{Piece, Splitter};
use crate::utf8::{Decoded, Utf8};
use emulated::{Emulated, Size};
use lines::Lines;
use plain::Plain;

/// The text of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The lines. Of control characters they have tabs, and those of C1 that came as characters (U+0080 to U+009F). Blanks
    /// and tabs at a line's end are kept where they were written; in the last, unfinished line, those before the cursor.
    pub text: String,
    /// How many bytes are shown as `\xNN`, because they are not text: most control characters, some
    /// noncharacters, invalid UTF-8.
    pub escaped: u64,
    /// How many lines a program ended with CR LF.
    pub crlf_lines: u64,
}

/// Rows that stay changeable if the real number is unknown. More is safer: a program that paints progress on forty rows
/// moves the cursor up by forty.
const ROWS_DEFAULT: u16 = 100;
/// A wide character needs two columns.
const COLS_MIN: u16 = 2;
const SIDE_MAX: u16 = 1000;

/// Converts consecutive chunks of output into [`Text`].
pub struct Transcript {
    splitter: Splitter,
    utf8: Utf8,
    line_ends: LineEnds,
    writer: Writer,
}

/// Counts the lines that a program ended with CR LF: the terminal puts another CR before the LF.
#[derive(Default)]
struct LineEnds {
    /// How many CRs came last, at most two.
    returns: usize,
    crlf_lines: u64,
}

impl LineEnds {
    fn feed(&mut self, text: &[u8]) {
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let printed = line.strip_suffix(b"\n");
            let rest = printed.unwrap_or(line);
            let returns = rest.iter().rev().take_while(|byte| **byte == b'\r').count();
            let returns = if returns < rest.len() { returns } else { returns + self.returns };
            self.crlf_lines += u64::from(printed.is_some() && returns > 1);
            self.returns = if printed.is_some() { 0 } else { returns.min(2) };
        }
    }
}

/// The part that receives text and sequences.
struct Writer {
    size: Size,
    /// Text that cannot change any more and was not taken yet.
    finished: Lines,
    way: Engine,
    escaped: u64,
    /// A sequence came last.
    follows_sequence: bool,
    /// The program has a second character set to switch to.
    has_second_charset: bool,
    /// Off in tests that compare the two paths.
    may_be_plain: bool,
}

enum Engine {
    Plain(Plain),
    Emulated(Box<Emulated>),
}

impl Transcript {
    /// A transcript of a terminal with `cols` columns.
    pub fn new(cols: u16) -> Self {
        Self::with_size(cols, ROWS_DEFAULT)
    }

    /// A transcript of a terminal with a known number of rows. Right for programs that address rows absolutely without
    /// the alternate screen.
    pub fn with_size(cols: u16, rows: u16) -> Self {
        let size =
            Size { cols: usize::from(cols.clamp(COLS_MIN, SIDE_MAX)), rows: usize::from(rows.clamp(1, SIDE_MAX)) };
        Self {
            splitter: Splitter::for_text(),
            utf8: Utf8::default(),
            line_ends: LineEnds::default(),
            writer: Writer {
                size,
                finished: Lines::default(),
                way: Engine::Plain(Plain::new(size, None)),
                escaped: 0,
                follows_sequence: false,
                has_second_charset: false,
                may_be_plain: true,
            },
        }
    }

    /// Reads the next output bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { splitter, utf8, line_ends, writer } = self;
        splitter.feed(bytes, &mut |_, piece| take(piece, utf8, line_ends, writer));
    }

    /// Takes the text that cannot change any more. Memory stays bounded for endless output if this is called regularly.
    /// The pieces join to the whole text; a very long line may come in several.
    pub fn take_finished(&mut self) -> String {
        self.writer.finished.take()
    }

    /// The text that was not taken yet: finished lines, then lines that may still change.
    pub fn peek(&self) -> String {
        let mut lines = self.writer.finished.clone();
        self.writer.write_rest(&mut lines);
        lines.take()
    }

    /// How many bytes have been escaped so far.
    pub fn escaped(&self) -> u64 {
        self.writer.escaped
    }

    /// The remaining text. Bytes of an incomplete character are escaped.
    pub fn finish(mut self) -> Text {
        let Self { splitter, utf8, line_ends, writer } = &mut self;
        splitter.clone().end(&mut |_, piece| take(piece, utf8, line_ends, writer));
        utf8.flush(&mut |decoded| writer.text(decoded));
        Text { text: self.peek(), escaped: self.writer.escaped, crlf_lines: self.line_ends.crlf_lines }
    }
}

fn take(piece: Piece<'_>, utf8: &mut Utf8, line_ends: &mut LineEnds, writer: &mut Writer) {
    match piece {
        Piece::Text(text) => {
            line_ends.feed(text);
            utf8.feed(text, &mut |decoded| writer.text(decoded));
        }
        Piece::Sequence(sequence) => {
            line_ends.returns = 0;
            utf8.flush(&mut |decoded| writer.text(decoded));
            writer.sequence(sequence);
        }
        Piece::Broken(_) => utf8.flush(&mut |decoded| writer.text(decoded)),
        Piece::Overlong(_) => {}
    }
}

/// The text of complete output.
pub fn render(bytes: &[u8], cols: u16) -> Text {
    let mut transcript = Transcript::new(cols);
    transcript.feed(bytes);
    transcript.finish()
}

/// How much text must come before it is worth checking whether the plain path is possible again.
const PLAIN_BYTES_MIN: usize = if cfg!(test) { 1 } else { 512 };

impl Writer {
    fn text(&mut self, decoded: Decoded<'_>) {
        match decoded {
            Decoded::Str(text) if needs_cleaning(text) => self.clean_text(text),
            Decoded::Str(text) => self.visible_text(text),
            Decoded::Invalid(bytes) => bytes.iter().for_each(|byte| self.escape(*byte)),
        }
        self.follows_sequence = false;
    }

    fn escape(&mut self, byte: u8) {
        self.escaped += 1;
        self.visible_text(&format!("\\x{byte:02x}"));
    }

    fn clean_text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find(needs_cleaning_char) {
            if at > 0 {
                self.visible_text(&rest[..at]);
            }
            let mut characters = rest[at..].chars();
            match characters.next() {
                Some(shift @ (SHIFT_OUT | SHIFT_IN)) if self.selects_charset(at) => {
                    self.visible_text(shift.encode_utf8(&mut [0; 1]));
                }
                Some(control) if control.is_ascii_control() => self.escape(control as u8),
                Some(control @ '\u{80}'..='\u{9f}') => {
                    self.visible_text(lines::stand_in(control).encode_utf8(&mut [0; 4]))
                }
                Some(stand_in) => stand_in.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.escape(byte)),
                None => {}
            }
            rest = characters.as_str();
            self.follows_sequence = false;
        }
        if !rest.is_empty() {
            self.visible_text(rest);
        }
    }

    /// Whether a shift at this place of the text selects a character set: there are two, or it resets the set together with
    /// the colours, as ncurses does.
    fn selects_charset(&self, at: usize) -> bool {
        self.has_second_charset || self.follows_sequence && at == 0
    }

    /// Text without controls that move nothing, with stand-ins for C1.
    fn visible_text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            match &mut self.way {
                Engine::Plain(plain) => {
                    let taken = plain.take(rest, &mut self.finished);
                    rest = &rest[taken..];
                    if !rest.is_empty() {
                        self.emulate();
                    }
                }
                Engine::Emulated(emulated) => {
                    // The rest of this line, and of as many more as make the check for the plain path worthwhile.
                    let line_end = if self.may_be_plain {
                        memchr::memchr(b'\n', &rest.as_bytes()[rest.len().min(PLAIN_BYTES_MIN) - 1..])
                    } else {
                        None
                    };
                    let block = line_end.map_or(rest.len(), |at| at + rest.len().min(PLAIN_BYTES_MIN));
                    emulated.text(&rest[..block], &mut self.finished);
                    rest = &rest[block..];
                    if rest.len() >= PLAIN_BYTES_MIN && emulated.is_at_fresh_line(&self.finished) {
                        self.pass_by();
                    }
                }
            }
        }
    }

    fn sequence(&mut self, sequence: &[u8]) {
        self.follows_sequence = true;
        self.has_second_charset |= matches!(sequence, [_, b')', set] if *set != b'B');
        let changes_nothing = match &self.way {
            Engine::Plain(plain) => plain.is_unchanged_by(sequence),
            Engine::Emulated(_) => false,
        };
        if changes_nothing || leaves_text_alone(sequence) {
            return;
        }
        // A sequence that is not ASCII has no effect.
        if let Ok(sequence) = std::str::from_utf8(sequence) {
            self.emulate();
            if let Engine::Emulated(emulated) = &mut self.way {
                emulated.sequence(sequence, &mut self.finished);
            }
        }
    }

    /// Leaves the plain path: the terminal gets the text that could still change.
    fn emulate(&mut self) {
        if let Engine::Plain(plain) = &mut self.way {
            let emulated = plain.replay(&mut self.finished);
            self.way = Engine::Emulated(emulated);
        }
    }

    /// Takes the plain path again; the terminal keeps the rows above.
    fn pass_by(&mut self) {
        let fresh = Engine::Plain(Plain::new(self.size, None));
        if let Engine::Emulated(above) = std::mem::replace(&mut self.way, fresh) {
            self.way = Engine::Plain(Plain::new(self.size, Some(above)));
        }
    }

    fn write_rest(&self, lines: &mut Lines) {
        match &self.way {
            Engine::Plain(plain) => plain.write_rest(lines),
            Engine::Emulated(emulated) => emulated.write_rest(lines),
        }
    }
}

const SHIFT_OUT: char = '\x0e';
const SHIFT_IN: char = '\x0f';

/// Controls that move nothing are shown; the terminal would drop them. So are vertical tabs and form feeds, which nobody
/// prints to move a cursor. C1 is kept, because other terminals execute it.
fn needs_cleaning_char(character: char) -> bool {
    matches!(
        character,
        '\0'..='\x06' | '\x0b' | '\x0c' | '\x0e'..='\x1f' | '\u{7f}'..='\u{9f}'
            | lines::STAND_IN_FIRST..=lines::STAND_IN_LAST | lines::TAB_HEAD | lines::TAB_REST
    )
}

fn needs_cleaning(text: &str) -> bool {
    // C1 is 0xc2 0x80–0x9f in UTF-8, a stand-in 0xef 0xb7, the cells of a tab 0xf0 0x9f 0xbf: most text is cleared without
    // being decoded.
    let may_begin = |byte: &u8| matches!(byte, 0..=0x06 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f | 0xc2 | 0xef | 0xf0);
    text.as_bytes().iter().any(may_begin) && text.contains(needs_cleaning_char)
}

/// Whether the sequence changes only colours, titles or keys, never the text.
fn leaves_text_alone(sequence: &[u8]) -> bool {
    match sequence {
        [_, b']' | b'P' | b'X' | b'^' | b'_', ..] | [_, b'=' | b'>'] => true,
        [_, b'[', body @ .., last] => {
            let is_private = matches!(body.first(), Some(b'<'..=b'?'));
            match last {
                b'm' | b'n' | b'c' | b'q' | b't' => true,
                b'p' => body.contains(&b'$'),
                b'u' => is_private,
                b'h' | b'l' if body.first() == Some(&b'?') => {
                    body[1..].split(|byte| *byte == b';').all(|mode| HARMLESS_MODES.contains(&mode))
                }
                _ => false,
            }
        }
        _ => false,
    }
}

/// Private modes of keys, mouse, pasting, the cursor's appearance and timing.
const HARMLESS_MODES: [&[u8]; 13] =
    [b"1", b"12", b"25", b"1000", b"1002", b"1003", b"1004", b"1005", b"1006", b"1007", b"1015", b"2004", b"2026"];

#[cfg(test)]
mod tests;
