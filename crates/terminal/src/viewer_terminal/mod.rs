//! Output in a person's own terminal: it reaches no further than the screen, changes made there are undone afterwards, and a
//! terminal with one screen for the output is not switched to another.

mod screen_only;

use std::collections::BTreeSet;

pub use screen_only::ScreenOnly;

use crate::sequence::{Piece, Splitter};

/// Private modes that are off in a new terminal and change its keys, mouse or screen.
const OFF_IN_FRESH: [u16; 19] =
    [1, 5, 6, 9, 45, 66, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031];
/// Private modes that are on.
const ON_IN_FRESH: [u16; 2] = [7, 25];
/// The three modes for the alternate screen.
const ALTERNATE: [u16; 3] = [47, 1047, 1049];
/// Insert mode, and automatic carriage return.
const ANSI_MODES: [u16; 2] = [4, 20];
/// More levels of the keyboard protocol than any program pushes; a terminal keeps no more.
const KEYBOARD_LEVELS_MAX: u16 = 64;

/// Tracks the output to a terminal, and how to restore its earlier modes.
#[derive(Clone, Debug)]
pub struct Changes {
    splitter: Splitter,
    state: State,
}

impl Default for Changes {
    fn default() -> Self {
        Self { splitter: Splitter::new(0), state: State::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// Private modes that differ from a new terminal.
    modes: BTreeSet<u16>,
    ansi_modes: BTreeSet<u16>,
    /// The mode that activated the alternate screen.
    alternate: Option<u16>,
    keypad: bool,
    margins: bool,
    pen: bool,
    charset: bool,
    cursor_style: bool,
    other_keys: bool,
    keyboard_flags: bool,
    prints: bool,
    /// Pushed levels of the keyboard protocol, on the primary and the alternate screen.
    keyboard_levels: [u16; 2],
    /// The OSC commands that set colours.
    colours: BTreeSet<u16>,
}

impl Changes {
    /// Tracks bytes written to the terminal.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { splitter, state } = self;
        splitter.feed(bytes, &mut |_, piece| match piece {
            Piece::Text(text) => {
                if let Some(last) = memchr::memrchr2(0x0e, 0x0f, text) {
                    state.charset = text[last] == 0x0e;
                }
            }
            Piece::Sequence(sequence) => state.sequence(sequence),
            Piece::Broken(_) | Piece::Overlong(_) => {}
        });
    }

    /// Bytes that undo all changes; empty if there were none. The alternate screen is left only if it was entered.
    pub fn undo(&mut self) -> Vec<u8> {
        let mut out = String::new();
        // An unfinished sequence would swallow the following bytes.
        if self.splitter.held_from() < self.splitter.position() {
            out.push('\u{18}');
        }
        out.push_str(&std::mem::take(&mut self.state).undo());
        self.splitter = Splitter::new(0);
        out.into_bytes()
    }
}

impl State {
    fn sequence(&mut self, sequence: &[u8]) {
        match sequence {
            [_, b'c'] => *self = Self::default(),
            [_, b'='] => self.keypad = true,
            [_, b'>'] => self.keypad = false,
            [_, b'(', set] => self.charset = *set != b'B',
            [_, b'[', body @ .., last] => self.control(body, *last),
            [_, b']', body @ ..] => self.colour(body),
            _ => {}
        }
    }

    fn control(&mut self, body: &[u8], last: u8) {
        match (body, last) {
            ([b'?', modes @ ..], b'h' | b'l') => numbers(modes).for_each(|mode| self.private(mode, last == b'h')),
            (modes, b'h' | b'l') => numbers(modes).filter(|mode| ANSI_MODES.contains(mode)).for_each(|mode| {
                if last == b'h' {
                    self.ansi_modes.insert(mode);
                } else {
                    self.ansi_modes.remove(&mode);
                }
            }),
            ([b'!'], b'p') => {
                let is_kept = |mode: &u16| !matches!(mode, 1 | 6 | 7 | 25 | 66);
                self.modes.retain(is_kept);
                self.ansi_modes.clear();
                (self.keypad, self.margins, self.pen, self.charset) = (false, false, false, false);
            }
            ([.., b' '], b'q') => self.cursor_style = numbers(&body[..body.len() - 1]).any(|style| style > 0),
            ([b'>', rest @ ..], b'm') => {
                let mut given = numbers(rest);
                if given.next() == Some(4) {
                    self.other_keys = given.next().is_some_and(|level| level > 0);
                }
            }
            (b"5" | b"4", b'i') => self.prints = body == b"5",
            ([b'=', rest @ ..], b'u') => self.keyboard_flags = numbers(rest).next().is_some_and(|flags| flags > 0),
            ([b'>', ..], b'u') => {
                let levels = self.levels();
                *levels = (*levels + 1).min(KEYBOARD_LEVELS_MAX);
            }
            ([b'<', rest @ ..], b'u') => {
                let levels = self.levels();
                *levels = levels.saturating_sub(numbers(rest).next().unwrap_or(1).max(1));
            }
            ([] | [b'0'..=b'9' | b';', ..], b'r') => self.margins = numbers(body).any(|margin| margin > 0),
            ([] | [b'0'..=b'9' | b';' | b':', ..], b'm') => {
                // The last reset and everything behind it counts; parts of a colour are never less than what they
                // change.
                self.pen = numbers(body).last().is_some_and(|last| last > 0)
                    || numbers(body).any(|part| part == 38 || part == 48);
            }
            _ => {}
        }
    }

    fn levels(&mut self) -> &mut u16 {
        &mut self.keyboard_levels[usize::from(self.alternate.is_some())]
    }

    fn private(&mut self, mode: u16, is_set: bool) {
        if ALTERNATE.contains(&mode) {
            self.alternate = is_set.then_some(mode);
            self.keyboard_levels[1] = 0;
        } else if OFF_IN_FRESH.contains(&mode) || ON_IN_FRESH.contains(&mode) {
            if is_set == OFF_IN_FRESH.contains(&mode) {
                self.modes.insert(mode);
            } else {
                self.modes.remove(&mode);
            }
        }
    }

    /// Colours of the palette (4), of text (10), background (11), cursor (12) and the like; a query changes none.
    fn colour(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        let (command, what) = text.split_once(';').unwrap_or((&text, ""));
        let digits = command.trim_end_matches(|c: char| !c.is_ascii_digit());
        match digits.parse() {
            Ok(command @ (4 | 5 | 10..=19)) if !what.contains('?') => drop(self.colours.insert(command)),
            Ok(reset @ (104 | 105 | 110..=119)) => drop(self.colours.remove(&(reset - 100))),
            _ => {}
        }
    }

    fn undo(self) -> String {
        let mut out = String::new();
        let mut put = |text: &str| out.push_str(text);
        if self.margins {
            // Resetting margins moves the cursor.
            put("\x1b7\x1b[r\x1b8");
        }
        for mode in &self.modes {
            put(&format!("\x1b[?{mode}{}", if ON_IN_FRESH.contains(mode) { 'h' } else { 'l' }));
        }
        for mode in &self.ansi_modes {
            put(&format!("\x1b[{mode}l"));
        }
        for (is_changed, undone) in [
            (self.keypad, "\x1b>"),
            (self.charset, "\x0f\x1b(B"),
            (self.cursor_style, "\x1b[0 q"),
            (self.other_keys, "\x1b[>4m"),
            (self.keyboard_flags, "\x1b[=0u"),
            (self.prints, "\x1b[4i"),
        ] {
            if is_changed {
                put(undone);
            }
        }
        for colour in &self.colours {
            put(&format!("\x1b]{}\x1b\\", colour + 100));
        }
        if self.pen {
            put("\x1b[0m");
        }
        let [primary, alternate] = self.keyboard_levels;
        if alternate > 0 {
            put(&format!("\x1b[<{alternate}u"));
        }
        if let Some(mode) = self.alternate {
            put(&format!("\x1b[?{mode}l"));
        }
        if primary > 0 {
            put(&format!("\x1b[<{primary}u"));
        }
        out
    }
}

/// The numbers between semicolons; an empty one is 0.
fn numbers(body: &[u8]) -> impl Iterator<Item = u16> {
    body.split(|byte| *byte == b';').map(|number| {
        let digits = number.split(|byte| *byte == b':').next().unwrap_or_default();
        digits
            .iter()
            .fold(0u16, |sum, digit| sum.saturating_mul(10).saturating_add(u16::from(digit.wrapping_sub(b'0'))))
    })
}

/// Output for a terminal that shows it on one screen, whatever screens the program switches between.
#[derive(Debug)]
pub struct OneScreen {
    splitter: Splitter,
    /// An unfinished sequence.
    held: Vec<u8>,
}

impl Default for OneScreen {
    fn default() -> Self {
        Self { splitter: Splitter::new(0), held: Vec::new() }
    }
}

impl OneScreen {
    /// The bytes to show next. `None` if the program switched screens or reset the terminal: then another screen is
    /// visible, which must be painted as a whole, and followed by a new value of this type.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut switches = false;
        self.splitter.feed(bytes, &mut |_, piece| {
            if let Piece::Sequence(sequence) = piece {
                switches |= is_reset(sequence) || switched(sequence).is_some();
            }
        });
        self.held.extend_from_slice(bytes);
        let open = usize::try_from(self.splitter.position() - self.splitter.held_from()).unwrap_or(usize::MAX);
        let shown = self.held.len().saturating_sub(open);
        let rest = self.held.split_off(shown);
        (!switches).then(|| std::mem::replace(&mut self.held, rest))
    }

    /// A [snapshot](crate::Screen::ansi) for such a terminal, with only its visible screen.
    pub fn paint(snapshot: &[u8], is_alternate: bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(snapshot.len());
        let mut on_alternate = false;
        Splitter::new(0).feed(snapshot, &mut |_, piece| match piece {
            Piece::Sequence(sequence) if is_reset(sequence) => {}
            Piece::Sequence(sequence) => match switched(sequence) {
                Some(is_set) => on_alternate = is_set,
                // Titles and colours belong to both.
                None if on_alternate == is_alternate || sequence.starts_with(b"\x1b]") => {
                    out.extend_from_slice(sequence)
                }
                None => {}
            },
            Piece::Text(bytes) | Piece::Broken(bytes) if on_alternate == is_alternate => out.extend_from_slice(bytes),
            Piece::Text(_) | Piece::Broken(_) | Piece::Overlong(_) => {}
        });
        out
    }
}

fn is_reset(sequence: &[u8]) -> bool {
    sequence == b"\x1bc"
}

/// Whether a sequence enters the alternate screen or leaves it.
fn switched(sequence: &[u8]) -> Option<bool> {
    match sequence {
        [_, b'[', b'?', modes @ .., last @ (b'h' | b'l')] => {
            numbers(modes).any(|mode| ALTERNATE.contains(&mode)).then_some(*last == b'h')
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Screen;

    fn undone(bytes: &[u8]) -> String {
        let mut changes = Changes::default();
        changes.feed(bytes);
        String::from_utf8(changes.undo()).expect("text")
    }

    #[test]
    fn output_that_changed_nothing_is_followed_by_nothing() {
        for harmless in [
            &b"plain text\r\n"[..],
            b"\x1b[31mred\x1b[0m\x1b[1;4mbold\x1b[m",
            b"\x1b[?25l\x1b[2K\x1b[?25h",
            b"\x1b[?1049h\x1b[?1h\x1b=\x1b[5;10r\x1b[r\x1b[?1l\x1b>\x1b[?1049l",
            b"\x1b]0;title\x07\x1b]11;?\x07\x1b[>1u\x1b[<u\x1b[>4;2m\x1b[>4m",
            b"\x1b[?2004h\x1b[?1003h\x1bc",
            b"\x0eqqq\x0f",
        ] {
            assert_eq!(undone(harmless), "", "{}", String::from_utf8_lossy(harmless));
        }
    }

    #[test]
    fn modes_that_were_left_on_are_switched_off_and_the_screen_is_left_only_if_it_was_taken() {
        assert_eq!(undone(b"\x1b[?2004h\x1b[?25l"), "\x1b[?25h\x1b[?2004l");
        assert_eq!(undone(b"\x1b[?1000;1006h\x1b[1m"), "\x1b[?1000l\x1b[?1006l\x1b[0m");
        assert_eq!(undone(b"\x1b[38;5;0m"), "\x1b[0m");
        assert_eq!(undone(b"\x1b[?1049h\x1b[>1u\x1b[2;5r"), "\x1b7\x1b[r\x1b8\x1b[<1u\x1b[?1049l");
        assert_eq!(undone(b"\x1b[?47h"), "\x1b[?47l");
        assert_eq!(undone(b"\x1b]11;#000000\x07\x1b]4;1;red\x1b\\"), "\x1b]104\x1b\\\x1b]111\x1b\\");
        assert_eq!(undone(b"\x1b[4h\x1b="), "\x1b[4l\x1b>");
        assert_eq!(undone(b"\x1b]0;half a title"), "\x18");
    }

    #[test]
    fn a_change_is_found_wherever_the_bytes_are_cut() {
        let bytes = b"a\x1b[?1049h\x1b[?25lb\x1b[1m";
        for cut in 0..=bytes.len() {
            let mut changes = Changes::default();
            changes.feed(&bytes[..cut]);
            changes.feed(&bytes[cut..]);
            assert_eq!(changes.undo(), b"\x1b[?25h\x1b[0m\x1b[?1049l", "cut at {cut}");
            assert_eq!(changes.undo(), b"", "once");
        }
    }

    #[test]
    fn one_screen_shows_every_byte_until_the_program_switches() {
        let bytes = b"a\x1b[31mb\x1b]0;t\x07c\r\n";
        for cut in 0..=bytes.len() {
            let mut one = OneScreen::default();
            let shown =
                [one.feed(&bytes[..cut]), one.feed(&bytes[cut..])].map(|part| part.expect("no switch")).concat();
            assert_eq!(shown, bytes, "cut at {cut}");
        }
        for switch in [&b"\x1b[?1049h"[..], b"\x1b[?1049l", b"\x1b[?25;47h", b"\x1bc"] {
            let (begin, end) = switch.split_at(1);
            let mut one = OneScreen::default();
            assert_eq!(one.feed(&[b"x", begin].concat()).as_deref(), Some(&b"x"[..]), "the begun sequence is held");
            assert_eq!(one.feed(&[end, b"y"].concat()), None);
        }
        // A sequence that is too long to be kept is shown as received.
        let picture = [b"\x1bPq".as_slice(), &[b'~'; 9_000], b"\x1b\\end"].concat();
        let mut one = OneScreen::default();
        let shown: Vec<u8> = picture.chunks(1_000).flat_map(|part| one.feed(part).expect("no switch")).collect();
        assert!(shown == picture);
    }

    #[test]
    fn a_snapshot_paints_the_visible_screen_and_does_not_switch_screens() {
        for (output, is_alternate) in [
            (&b"first\r\n\x1b[?1049hinner\x1b[3;4Hx\x1b[?1000h"[..], true),
            (b"first\r\n\x1b[?1049hinner\x1b7\x1b[?1049lsecond\x1b[?2004h", false),
            (b"\x1b]2;title\x07only\x1b[2;3r", false),
        ] {
            let mut screen = Screen::new(20, 5);
            screen.feed(output);
            let paint = OneScreen::paint(&screen.ansi(), is_alternate);
            assert_eq!(OneScreen::default().feed(&paint).as_deref(), Some(paint.as_slice()), "it switches nothing");
            let mut shown = Screen::new(20, 5);
            shown.feed(&paint);
            assert_eq!((shown.text(), shown.cursor()), (screen.text(), screen.cursor()));
        }
    }
}
