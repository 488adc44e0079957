//! The scanner: the cheap pass over every output byte of a live session.
//!
//! The scanner finds sequences on which the server must act at once (our markers, queries to the terminal), and tracks
//! the state that replies depend on: modes, title, whether a line is unfinished. It draws nothing. Text without ESC is
//! skipped at the speed of memchr.

use std::ops::Range;

use memchr::memchr_iter;

use crate::plain_runs::{PlainRun, PlainRuns};
use crate::query::{Colour, ModeState, Query, Terminator};
use crate::sequence::{Piece, Splitter};
use crate::utf8::unfinished_character;

/// The longest title: titles are shown in lists.
const TITLE_CHARS_MAX: usize = 256;

/// How many keyboard flags a program may push; the oldest are dropped first, as the protocol allows.
const KEYBOARDS_MAX: usize = 16;

/// The longest nonce of a marker.
const NONCE_BYTES_MAX: usize = 64;

/// A sequence on which the server acts; `from..to` is its byte range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanEvent {
    /// One of our markers, or a forged one: only [`Boundaries`](crate::Boundaries) can tell.
    Marker {
        /// Start or end of a command.
        kind: MarkerKind,
        /// The nonce shared with its record.
        nonce: Nonce,
        /// The offset of its ESC.
        from: u64,
        /// The offset behind its terminator.
        to: u64,
    },
    /// A query that the server answers once.
    Query {
        /// The query.
        query: Query,
        /// The offset of its ESC.
        from: u64,
        /// The offset behind its last byte.
        to: u64,
    },
}

/// The end of a command that a marker or record marks: its start or its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MarkerKind {
    /// `C`: the command's output begins.
    Start,
    /// `D`: the command's output has ended.
    End,
}

/// The nonce shared by a marker and its record: 1 to 64 bytes of `[0-9A-Za-z.]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nonce(Box<[u8]>);

impl Nonce {
    /// Checks length and alphabet.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'.';
        ((1..=NONCE_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(is_word)).then(|| Self(bytes.into()))
    }

    /// The nonce as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Terminal modes that affect how keys and commands are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// The alternate screen is active.
    pub alt_screen: bool,
    /// Cursor keys are sent as `ESC O A`, not `ESC [ A`.
    pub application_cursor: bool,
    /// Bracketed paste is enabled.
    pub bracketed_paste: bool,
    /// Mouse buttons are reported.
    pub mouse: bool,
    /// Mouse reports use SGR's form, which has no largest column.
    pub sgr_mouse: bool,
    /// The flags of the kitty keyboard protocol that the program has set.
    pub kitty: u8,
}

/// Finds markers and queries in consecutive chunks of output.
#[derive(Clone, Debug)]
pub struct Scanner {
    splitter: Splitter,
    facts: Facts,
    runs: PlainRuns,
    /// The last bytes of the text, how many, and where they end: a character may begin in them.
    last: ([u8; 3], usize, u64),
}

impl Scanner {
    /// A scanner whose first byte will be the one at `offset`.
    pub fn new(offset: u64) -> Self {
        Self {
            splitter: Splitter::new(offset),
            facts: Facts::default(),
            runs: PlainRuns::new(offset),
            last: ([0; 3], 0, 0),
        }
    }

    /// Scans the next bytes.
    pub fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(ScanEvent)) {
        let Self { splitter, facts, runs, last } = self;
        splitter.feed(bytes, &mut |from, piece| match piece {
            Piece::Text(text) => {
                facts.text(text);
                runs.text(from, text);
                if last.2 != from {
                    last.1 = 0;
                }
                for byte in &text[text.len().saturating_sub(3)..] {
                    (last.0, last.1) = ([last.0[1], last.0[2], *byte], (last.1 + 1).min(3));
                }
                last.2 = from + text.len() as u64;
            }
            Piece::Sequence(sequence) => {
                let to = from + sequence.len() as u64;
                facts.at = from;
                runs.sequence(from, sequence);
                match facts.sequence(sequence) {
                    Some(Meaning::Marker(kind, nonce)) => sink(ScanEvent::Marker { kind, nonce, from, to }),
                    Some(Meaning::Query(query)) => sink(ScanEvent::Query { query, from, to }),
                    None => {}
                }
            }
            Piece::Broken(sequence) => runs.go_on_at(from + sequence.len() as u64),
            Piece::Overlong(_) => {}
        });
    }

    /// The long parts of the output of which a screen keeps only the last rows, oldest first.
    pub fn plain_runs(&self) -> impl Iterator<Item = PlainRun> {
        self.runs.all()
    }

    /// Offset of the next byte to be fed.
    pub fn position(&self) -> u64 {
        self.splitter.position()
    }

    /// The offset of the first byte that may still turn out to be part of a marker or query, or
    /// [`position`](Self::position). Viewers are served up to here.
    pub fn held_from(&self) -> u64 {
        self.splitter.held_from()
    }

    /// Like [`held_from`](Self::held_from), but before an incomplete character at the end.
    pub fn text_to(&self) -> u64 {
        let (bytes, len, to) = &self.last;
        let cut = if *to == self.position() { unfinished_character(&bytes[3 - len..]) } else { 0 };
        self.held_from() - cut as u64
    }

    /// The modes as of [`held_from`](Self::held_from).
    pub fn modes(&self) -> Modes {
        Modes {
            alt_screen: self.facts.modes.has(ALT_SCREEN),
            application_cursor: self.facts.modes.has(1),
            bracketed_paste: self.facts.modes.has(2004),
            mouse: [1000, 1002, 1003].into_iter().any(|number| self.facts.modes.has(number)),
            sgr_mouse: self.facts.modes.has(1006),
            kitty: self.facts.keyboards[usize::from(self.facts.modes.has(ALT_SCREEN))].flags(),
        }
    }

    /// How often the alternate screen was entered.
    pub fn alternate_screens(&self) -> u64 {
        self.facts.alternate_screens
    }

    /// The title that the program has set, at most 256 characters.
    pub fn title(&self) -> Option<&str> {
        self.facts.title.as_deref()
    }

    /// Since which offset a program without the alternate screen (top, dialog) paints the main one: it has enabled
    /// application keys (terminfo's smkx) and has positioned the cursor. That ends when it disables them, with its
    /// command, and after more line feeds than the screen has rows: a screen shows only the last ones.
    pub fn paints_main_from(&self) -> Option<u64> {
        self.facts.paints_main_from
    }

    /// The program that painted the main screen is gone without disabling application keys.
    pub fn end_main_paint(&mut self) {
        self.facts.gives_keys_back();
    }

    /// Sets the number of rows from here on.
    pub fn resize(&mut self, rows: u16) {
        self.facts.rows = rows;
    }

    /// How often the bell has rung.
    pub fn bells(&self) -> u64 {
        self.facts.bells
    }

    /// Whether the cursor is behind text: text was written since the last line feed or carriage return.
    ///
    /// Blanks are text here, because a prompt may end with one. Tabs, other controls and escape sequences are not: a
    /// program that only coloured or erased has asked for nothing. A carriage return closes the line, because progress
    /// bars end with one and prompts do not, unless the cursor then moves to the right, as in fish.
    pub fn line_is_open(&self) -> bool {
        self.facts.line_is_open
    }
}

enum Meaning {
    Marker(MarkerKind, Nonce),
    Query(Query),
}

#[derive(Clone, Debug, Default)]
struct Facts {
    modes: PrivateModes,
    alternate_screens: u64,
    title: Option<String>,
    line_is_open: bool,
    /// The offset of the present sequence.
    at: u64,
    /// Whether application cursor keys are enabled; and since when, until the cursor is positioned.
    is_application: bool,
    application_from: Option<u64>,
    paints_main_from: Option<u64>,
    /// Line feeds since the cursor was positioned.
    lines: usize,
    rows: u16,
    bells: u64,
    /// For the primary and the alternate screen.
    keyboards: [Keyboard; 2],
}

/// A stack of kitty keyboard flags; the newest applies.
#[derive(Clone, Debug, Default)]
struct Keyboard(Vec<u8>);

impl Keyboard {
    fn flags(&self) -> u8 {
        self.0.last().copied().unwrap_or_default()
    }

    /// `CSI > flags u`, `CSI < count u` and `CSI = flags ; how u`.
    fn follow(&mut self, kind: u8, first: Option<u16>, how: Option<u16>) {
        let flags = first.and_then(|flags| u8::try_from(flags).ok()).unwrap_or_default();
        match kind {
            b'>' => {
                if self.0.len() == KEYBOARDS_MAX {
                    self.0.remove(0);
                }
                self.0.push(flags);
            }
            b'<' => self.0.truncate(self.0.len().saturating_sub(usize::from(first.unwrap_or(1)))),
            _ => {
                let before = self.0.pop().unwrap_or_default();
                self.0.push(match how {
                    Some(2) => before | flags,
                    Some(3) => before & !flags,
                    _ => flags,
                });
            }
        }
    }
}

impl Facts {
    fn text(&mut self, text: &[u8]) {
        self.bells += memchr_iter(0x07, text).count() as u64;
        if self.paints_main_from.is_some() {
            self.lines += memchr_iter(b'\n', text).count();
            self.paints_main_from = self.paints_main_from.filter(|_| self.lines <= usize::from(self.rows));
        }
        for &byte in text.iter().rev() {
            match byte {
                b'\n' | b'\r' | 0x0b | 0x0c => {
                    self.line_is_open = false;
                    return;
                }
                0x20..=0x7e | 0x80.. => {
                    self.line_is_open = true;
                    return;
                }
                _ => {}
            }
        }
    }

    fn gives_keys_back(&mut self) {
        (self.is_application, self.application_from, self.paints_main_from) = (false, None, None);
    }

    fn sequence(&mut self, sequence: &[u8]) -> Option<Meaning> {
        match sequence {
            [_, b'[', body @ .., last] => self.csi(body, *last).map(Meaning::Query),
            [_, b']', body @ .., 0x07] => self.osc(body, Terminator::Bell),
            [_, b']', body @ .., 0x1b, b'\\'] => self.osc(body, Terminator::St),
            [_, b'P', b'+', b'q', ..] => Some(Meaning::Query(Query::TerminfoValue)),
            [_, b'P', b'$', b'q', ..] => Some(Meaning::Query(Query::Setting)),
            [_, b'c'] => {
                self.modes = PrivateModes::default();
                self.gives_keys_back();
                self.keyboards = <[Keyboard; 2]>::default();
                self.title = None;
                None
            }
            _ => None,
        }
    }

    fn csi(&mut self, body: &[u8], last: u8) -> Option<Query> {
        match (body, last) {
            (b"" | b"0", b'c') => Some(Query::PrimaryAttributes),
            (b">" | b">0", b'c') => Some(Query::SecondaryAttributes),
            (b"5", b'n') => Some(Query::Status),
            (b"6", b'n') => Some(Query::CursorPosition),
            (b"?6", b'n') => Some(Query::ExtendedCursorPosition),
            (b">" | b">0", b'q') => Some(Query::Version),
            (b"?", b'u') => Some(Query::KittyKeyboard),
            ([kind @ (b'>' | b'<' | b'='), numbers @ ..], b'u') => {
                let mut numbers = numbers.split(|byte| *byte == b';').map(number_of);
                let (first, how) = (numbers.next().flatten(), numbers.next().flatten());
                self.keyboards[usize::from(self.modes.has(ALT_SCREEN))].follow(*kind, first, how);
                None
            }
            (b"14", b't') => Some(Query::SizeInPixels),
            (b"18", b't') => Some(Query::SizeInCharacters),
            ([b'?', number @ .., b'$'], b'p') => number_of(number).map(|number| Query::Mode {
                number,
                is_private: true,
                state: self.modes.state(number),
            }),
            ([number @ .., b'$'], b'p') => {
                number_of(number).map(|number| Query::Mode { number, is_private: false, state: ModeState::Unknown })
            }
            ([b'0'..=b'9', ..], b'C') => {
                self.line_is_open = true;
                None
            }
            ([b'?', numbers @ ..], b'h' | b'l') => {
                for number in numbers.split(|byte| *byte == b';').filter_map(number_of) {
                    let was_alternate = self.modes.has(ALT_SCREEN);
                    self.modes.set(number, last == b'h');
                    self.alternate_screens += u64::from(!was_alternate && self.modes.has(ALT_SCREEN));
                    match (number, last) {
                        (1, b'h') if !self.is_application => {
                            (self.is_application, self.application_from) = (true, Some(self.at));
                        }
                        (1, b'l') => self.gives_keys_back(),
                        _ => {}
                    }
                }
                None
            }
            (_, b'H' | b'f' | b'd') => {
                if self.is_application && !self.modes.has(ALT_SCREEN) {
                    self.lines = 0;
                    let from = self.application_from.take().unwrap_or(self.at);
                    self.paints_main_from.get_or_insert(from);
                }
                None
            }
            _ => None,
        }
    }

    fn osc(&mut self, body: &[u8], terminator: Terminator) -> Option<Meaning> {
        match body {
            [b'7', b'3', b'3', b'7', b';', kind @ (b'C' | b'D'), b';', nonce @ ..] => {
                let kind = if *kind == b'C' { MarkerKind::Start } else { MarkerKind::End };
                self.gives_keys_back();
                Nonce::parse(nonce).map(|nonce| Meaning::Marker(kind, nonce))
            }
            [b'0' | b'2', b';', title @ ..] => {
                let title: String = String::from_utf8_lossy(title)
                    .chars()
                    .filter(|character| !character.is_control())
                    .take(TITLE_CHARS_MAX)
                    .collect();
                self.title = (!title.is_empty()).then_some(title);
                None
            }
            _ => colours(body).map(|colours| Meaning::Query(Query::Colours { colours, terminator })),
        }
    }
}

/// The colours of an OSC query. An OSC that also sets a colour is not a query: viewers must get it.
fn colours(body: &[u8]) -> Option<Vec<Colour>> {
    let mut fields = body.split(|byte| *byte == b';');
    let kind = number_of(fields.next()?)?;
    let fields: Vec<&[u8]> = fields.collect();
    if fields.is_empty() {
        return None;
    }
    if kind == 4 {
        fields
            .chunks(2)
            .map(|pair| match pair {
                [index, b"?"] => u8::try_from(number_of(index)?).ok().map(Colour::Palette),
                _ => None,
            })
            .collect()
    } else {
        let dynamic = [Colour::Foreground, Colour::Background, Colour::Cursor];
        let first = usize::from(kind.checked_sub(10)?);
        let asked = dynamic.get(first..first + fields.len())?;
        fields.iter().all(|field| *field == b"?").then(|| asked.to_vec())
    }
}

fn number_of(digits: &[u8]) -> Option<u16> {
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
        .then(|| std::str::from_utf8(digits).ok()?.parse().ok())
        .flatten()
}

/// 47 and 1047 are older forms of the same mode.
const ALT_SCREEN: u16 = 1049;

/// The private modes that are tracked, because keys, viewers or DECRQM depend on them.
const FOLLOWED: [u16; 10] = [1, 7, 25, 1000, 1002, 1003, 1004, 1006, ALT_SCREEN, 2004];

/// One bit for each tracked mode.
#[derive(Clone, Copy, Debug)]
struct PrivateModes(u16);

impl Default for PrivateModes {
    fn default() -> Self {
        let mut modes = Self(0);
        modes.set(7, true); // Lines wrap,
        modes.set(25, true); // and the cursor is visible.
        modes
    }
}

impl PrivateModes {
    fn bit(number: u16) -> Option<u16> {
        let number = if matches!(number, 47 | 1047) { ALT_SCREEN } else { number };
        FOLLOWED.iter().position(|followed| *followed == number).map(|index| 1 << index)
    }

    fn set(&mut self, number: u16, on: bool) {
        match (Self::bit(number), on) {
            (Some(bit), true) => self.0 |= bit,
            (Some(bit), false) => self.0 &= !bit,
            (None, _) => {}
        }
    }

    fn has(self, number: u16) -> bool {
        Self::bit(number).is_some_and(|bit| self.0 & bit != 0)
    }

    fn state(self, number: u16) -> ModeState {
        match Self::bit(number) {
            None => ModeState::Unknown,
            Some(_) if self.has(number) => ModeState::Set,
            Some(_) => ModeState::Reset,
        }
    }
}

/// A visible part of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Offset of the first byte.
    pub from: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// Removes answered queries and attested markers from `bytes`.
///
/// `scanner` must be at the first of the bytes, with nothing held, and is moved behind the last. The bytes should end
/// at the [`held_from`](Scanner::held_from) of the live scanner: a sequence that is cut by their end is shown.
/// `is_ours` says whether the marker with this nonce at this range was attested; a forged one is output like any other.
pub fn strip<'a>(
    scanner: &mut Scanner,
    bytes: &'a [u8],
    is_ours: &mut impl FnMut(&Nonce, Range<u64>) -> bool,
) -> Vec<Part<'a>> {
    let start = scanner.position();
    let index = |offset: u64| offset.saturating_sub(start) as usize;
    let mut parts = Vec::new();
    let mut shown_to = start;
    let mut show = |from: u64, to: u64| {
        if from < to {
            parts.push(Part { from, bytes: &bytes[index(from)..index(to)] });
        }
    };
    scanner.feed(bytes, &mut |found| {
        let (from, to, is_hidden) = match &found {
            ScanEvent::Query { from, to, .. } => (*from, *to, true),
            ScanEvent::Marker { nonce, from, to, .. } => (*from, *to, is_ours(nonce, *from..*to)),
        };
        if is_hidden {
            show(shown_to, from);
            shown_to = to;
        }
    });
    show(shown_to, scanner.position());
    parts
}

#[cfg(test)]
mod tests;
