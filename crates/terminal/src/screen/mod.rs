//! The live screen of a session: what a person would see now, and a snapshot from which any terminal can continue.
//!
//! Only this module and its children know `alacritty_terminal`. Three layers keep its state correct: the splitter and
//! decoder hold back unfinished input, so that the emulator only sees whole characters and whole sequences; `model`
//! mirrors the emulator's private state and keeps hostile output from making it panic or grow without bound; `snapshot`
//! writes all of it as escape sequences.
//!
//! A synchronized update (mode 2026) is drawn as it comes: delaying it needs a clock, and there is none here.

mod cells;
mod handler;
mod masked;
mod model;
mod repair;
mod snapshot;

use alacritty_terminal::vte::ansi::{Processor, Timeout};

use crate::sequence::{Piece, Splitter};
use crate::utf8::{Decoded, Utf8};
pub use masked::Mask;
use model::Model;
pub use model::{Cursor, Span};

/// A screen without scrollback.
///
/// Sizes are clamped to 2…1000 columns and 1…1000 rows: a wide character needs two columns, and the emulator assumes
/// that there is room for one.
pub struct Screen {
    splitter: Splitter,
    utf8: Utf8,
    processor: Processor<Never>,
    model: Model,
}

/// Ends any sequence.
const CAN: u8 = 0x18;
const COLS_MIN: u16 = 2;
const SIDE_MAX: u16 = 1000;

fn clamp(cols: u16, rows: u16) -> (usize, usize) {
    let cols = cols.clamp(COLS_MIN, SIDE_MAX);
    let rows = rows.clamp(1, SIDE_MAX);
    (usize::from(cols), usize::from(rows))
}

impl Screen {
    /// A blank screen.
    pub fn new(cols: u16, rows: u16) -> Self {
        let (cols, rows) = clamp(cols, rows);
        Self {
            splitter: Splitter::new(0),
            utf8: Utf8::default(),
            processor: Processor::new(),
            model: Model::new(cols, rows),
        }
    }

    /// Draws the next output bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { splitter, utf8, processor, model } = self;
        splitter.feed(bytes, &mut |_, piece| {
            let mut draw = |decoded: Decoded<'_>| match decoded {
                Decoded::Str(text) => processor.advance(model, text.as_bytes()),
                Decoded::Invalid(_) => processor.advance(model, "\u{fffd}".as_bytes()),
            };
            match piece {
                Piece::Text(text) => utf8.feed(text, &mut draw),
                Piece::Sequence(sequence) => {
                    utf8.flush(&mut draw);
                    if let Some(count) = repetitions(sequence) {
                        model.repeat(count);
                    } else if !is_ignored_string(sequence) {
                        processor.advance(model, sequence);
                    }
                }
                Piece::Broken(sequence) => {
                    utf8.flush(&mut draw);
                    if !is_ignored_string(sequence) {
                        processor.advance(model, sequence);
                        // An OSC aborted by another sequence still takes effect in every emulator; one aborted by CAN
                        // has ended already. CAN ends any other open sequence.
                        let end = if sequence.get(1) == Some(&b']') { 0x07 } else { 0x18 };
                        if !matches!(sequence, [.., 0x18 | 0x1a]) {
                            processor.advance(model, &[end]);
                        }
                    }
                }
                Piece::Overlong(_) => {}
            }
        });
    }

    /// Whether the rows of a [plain run](crate::plain_runs) scroll through the whole screen.
    pub fn scrolls_whole(&self) -> bool {
        self.model.scrolls_whole()
    }

    /// Passes over the beginning of a plain run: only its colours are fed. The next bytes begin with the carriage return
    /// that [`last_rows`](crate::plain_runs::last_rows) has found.
    pub fn pass_over(&mut self, colours: &[u8]) {
        // A sequence that a run breaks off has ended with what it sets, such as a title.
        self.feed(&[CAN]);
        self.feed(colours);
    }

    /// Changes the size; rewraps the lines of the primary screen.
    pub fn resize(&mut self, cols: u16, rows: u16) {
        let (cols, rows) = clamp(cols, rows);
        self.model.resize(cols, rows);
    }

    /// The size as (columns, rows), after clamping.
    pub fn size(&self) -> (u16, u16) {
        let (cols, rows) = self.model.size();
        (cols as u16, rows as u16)
    }

    /// The rows as text, without trailing blanks.
    pub fn text(&self) -> Vec<String> {
        self.model.text()
    }

    /// The rows as text. A row that continues in the next one keeps its blanks, so that a mask finds what goes over both.
    pub fn unbroken_text(&self) -> Vec<String> {
        self.model.unbroken_text()
    }

    /// Text in reverse video, row by row, without blanks.
    pub fn inverse(&self) -> Vec<Span> {
        self.model.inverse()
    }

    /// A hash of each row's appearance, including colours, valid only in this process.
    pub fn row_marks(&self) -> Vec<u64> {
        self.model.row_marks()
    }

    /// The cursor.
    pub fn cursor(&self) -> Cursor {
        self.model.cursor()
    }

    /// The window's title.
    pub fn title(&self) -> Option<&str> {
        self.model.title()
    }

    /// Bytes that repaint this screen in any terminal of the same size, and restore its whole state: modes, margins,
    /// tabs, character sets, pen, saved cursor, the screen below the alternate one, and the beginning of an unfinished
    /// sequence or character.
    ///
    /// They begin with a full reset, so they also repair a terminal in an unknown state.
    pub fn ansi(&mut self) -> Vec<u8> {
        self.masked_ansi(None)
    }

    /// The same with the texts of cells, titles and links masked as they were rendered. `mask` keeps the length of a text. Each
    /// cell that it changes is painted as an asterisk, in the colours of the cell.
    pub fn masked_ansi(&mut self, mask: Mask<'_>) -> Vec<u8> {
        let mut bytes = snapshot::write(&mut self.model, mask);
        bytes.extend_from_slice(self.utf8.unfinished());
        bytes.extend(self.splitter.unfinished());
        bytes
    }
}

/// DCS, SOS, PM and APC draw nothing here.
fn is_ignored_string(sequence: &[u8]) -> bool {
    matches!(sequence.get(1), Some(b'P' | b'X' | b'^' | b'_'))
}

/// The count of a REP (`CSI … b`); 0 for a malformed one, so that the parser never gets it.
fn repetitions(sequence: &[u8]) -> Option<usize> {
    let [0x1b, b'[', body @ .., b'b'] = sequence else {
        return None;
    };
    let mut parameters = body.split(|byte| *byte == b';');
    let count = parameters.next()?.iter().try_fold(0usize, |count, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(count.saturating_mul(10).saturating_add(digit as usize))
    });
    Some(count.map_or(0, |count| count.max(1)))
}

/// There is no clock, so no synchronized update is ever open.
#[derive(Default)]
struct Never;

impl Timeout for Never {
    fn set_timeout(&mut self, _: std::time::Duration) {}
    fn clear_timeout(&mut self) {}
    fn pending_timeout(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
