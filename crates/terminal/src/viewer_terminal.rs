//! Output in a person's own terminal: it reaches no further than the screen, changes made there are undone afterwards, and a
//! terminal with one screen for the output is not switched to another.

use std::collections::BTreeSet;

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

/// OSC commands that change the screen or its title, point to a place (7, 8), or notify (9, 777).
const OSC_OF_A_SCREEN: [u16; 11] = [0, 1, 2, 4, 5, 7, 8, 9, 133, 633, 777];
/// Their colours, the pointer's shape, and what resets them.
const OSC_COLOURS: [std::ops::RangeInclusive<u16>; 4] = [10..=19, 22..=22, 104..=105, 110..=119];
/// Escape sequences of one letter: the cursor, tabs, the keypad, character sets, a reset, and the end of a string.
const ESC_OF_A_SCREEN: &[u8] = b"78=>DEHMNOZcno|}~\\";
/// Control sequences by their private marker, their intermediate bytes and their last byte.
const CSI_OF_A_SCREEN: [(&[u8], &[u8], &[u8]); 11] = [
    (b"", b"", b"@ABCDEFGHIJKLMPSTXZ`abcdefghlmnrsu"),
    (b"?", b"", b"JKSchlnrsu"),
    (b">", b"", b"cmqu"),
    (b"=", b"", b"cu"),
    (b"<", b"", b"u"),
    (b"", b"!", b"p"),
    (b"", b" ", b"q@A"),
    (b"", b"$", b"prtvxz{"),
    (b"?", b"$", b"p"),
    (b"", b"'", b"}~"),
    (b"", b"*", b"xy"),
];
/// The private mode that makes a terminal a VT52, for which nothing here holds.
const VT52: u16 = 2;
/// The first byte of U+0080 to U+00BF in UTF-8. The characters up to U+009F are controls, which some terminals obey.
const BEFORE_C1: u8 = 0xc2;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Drops from output what would reach beyond the screen of the terminal that shows it: its clipboard, files, printer and keys, its
/// window, and what it would answer with text of the output. Everything that a screen shows passes.
#[derive(Debug)]
pub struct ScreenOnly {
    splitter: Splitter,
    overlong: Overlong,
    /// The text ended in the first byte of what may be a C1 control.
    is_half: bool,
}

/// The fate of a sequence that is too long to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overlong {
    None,
    Passes,
    Dropped,
}

impl Default for ScreenOnly {
    fn default() -> Self {
        Self { splitter: Splitter::new(0), overlong: Overlong::None, is_half: false }
    }
}

impl ScreenOnly {
    /// The bytes to show next.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        let Self { splitter, overlong, is_half } = self;
        splitter.feed(bytes, &mut |_, piece| {
            if let Piece::Overlong(part) = piece {
                put_half(is_half, &mut out);
                return go_on_with(overlong, part, &mut out);
            }
            // A long picture without an end would swallow the text behind it.
            if std::mem::replace(overlong, Overlong::None) == Overlong::Passes {
                out.push(CAN);
            }
            match piece {
                Piece::Text(text) => without_c1(text, is_half, &mut out),
                Piece::Sequence(sequence) => {
                    put_half(is_half, &mut out);
                    if stays_on_screen(sequence) {
                        out.extend_from_slice(sequence);
                    }
                }
                // Terminals obey an OSC that was aborted. Of anything else, text behind it could make a whole sequence.
                Piece::Broken(sequence) => {
                    put_half(is_half, &mut out);
                    let is_cancelled = matches!(sequence, [.., 0x18 | 0x1a]);
                    if sequence.get(1) == Some(&b']') && !is_cancelled && stays_on_screen(sequence) {
                        out.extend_from_slice(sequence);
                        out.push(BEL);
                    }
                }
                Piece::Overlong(_) => {}
            }
        });
        out
    }
}

/// Passes the next part of a long picture on, or drops it with everything else that is long. A picture is ASCII.
fn go_on_with(overlong: &mut Overlong, part: &[u8], out: &mut Vec<u8>) {
    if *overlong == Overlong::None {
        let has_begun = part.starts_with(b"\x1bP") || part.starts_with(b"\x1b_G") && part.contains(&b';');
        *overlong = if has_begun && stays_on_screen(part) { Overlong::Passes } else { Overlong::Dropped };
    }
    if *overlong != Overlong::Passes {
        return;
    }
    if part.ends_with(b"\x1b\\") {
        *overlong = Overlong::None;
    } else if part.iter().skip(1).any(|byte| !is_of_a_picture(*byte)) || part.len() == 1 && !is_of_a_picture(part[0]) {
        *overlong = Overlong::Dropped;
        return out.push(CAN);
    }
    out.extend_from_slice(part);
}

fn is_of_a_picture(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0x20..=0x7e)
}

fn put_half(is_half: &mut bool, out: &mut Vec<u8>) {
    if std::mem::take(is_half) {
        out.extend_from_slice(REPLACEMENT);
    }
}

fn without_c1(text: &[u8], is_half: &mut bool, out: &mut Vec<u8>) {
    for byte in text {
        match (*is_half, *byte) {
            (true, 0x80..=0x9f) => put_half(is_half, out),
            (true, 0xa0..=0xbf) => {
                *is_half = false;
                out.extend_from_slice(&[BEFORE_C1, *byte]);
            }
            (_, BEFORE_C1) => {
                put_half(is_half, out);
                *is_half = true;
            }
            (_, other) => {
                put_half(is_half, out);
                out.push(other);
            }
        }
    }
}

/// Whether a sequence, or the beginning of a long one, changes nothing but the screen. Parsers pass over control characters inside of
/// one, and some obey C1 controls there, so it has neither.
fn stays_on_screen(sequence: &[u8]) -> bool {
    let body = sequence.get(1..).unwrap_or_default();
    let body = body.strip_suffix(b"\x1b\\").or_else(|| body.strip_suffix(&[BEL])).unwrap_or(body);
    let is_picture = matches!(body, [b'P' | b'_', ..]);
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != 0x7f || is_picture && matches!(byte, b'\r' | b'\n');
    let has_c1 = body.windows(2).any(|pair| pair[0] == BEFORE_C1 && (0x80..=0x9f).contains(&pair[1]));
    if !body.iter().all(is_plain) || has_c1 || body.last() == Some(&BEFORE_C1) {
        return false;
    }
    match body {
        [b']', body @ ..] => osc_stays(body),
        // Pictures (sixel), questions about settings and capabilities, and synchronized updates.
        [b'P', body @ ..] => {
            let command = body.iter().position(|byte| !byte.is_ascii_digit() && *byte != b';').unwrap_or(body.len());
            match body.split_at(command) {
                (_, [b'q', ..]) | ([], b"=1s" | b"=2s") => true,
                ([], [b'$', b'q', setting @ ..]) => matches!(setting, b"m" | b"r" | b"s" | b" q" | b"\"q" | b"\"p"),
                ([], [b'+', b'q', names @ ..]) => names.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b';'),
                _ => false,
            }
        }
        // Pictures whose bytes are here, and not in a file or in memory that the terminal would read.
        [b'_', b'G', body @ ..] => {
            let control = body.split(|byte| *byte == b';').next().unwrap_or_default();
            !control.split(|byte| *byte == b',').any(|key| matches!(key, [b't', b'=', medium] if *medium != b'd'))
        }
        // The stack of titles is the terminal's own.
        [b'[', body @ .., b't'] => {
            matches!(body, b"22;0" | b"22;1" | b"22;2" | b"23;0" | b"23;1" | b"23;2" | b"22" | b"23")
        }
        [b'[', body @ .., last] => csi_stays(body, *last),
        [b'(' | b')' | b'*' | b'+', set] => set.is_ascii_graphic(),
        [b'#', _] => true,
        [one] => ESC_OF_A_SCREEN.contains(one),
        _ => false,
    }
}

fn csi_stays(body: &[u8], last: u8) -> bool {
    let (private, rest) = match body {
        [b'?' | b'>' | b'=' | b'<', rest @ ..] => body.split_at(body.len() - rest.len()),
        _ => (&[][..], body),
    };
    let digits = rest.iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b';' | b':')).count();
    let (numbers_of, between) = rest.split_at(digits);
    let is_vt52 = private == b"?" && matches!(last, b'h' | b'l') && numbers(numbers_of).any(|mode| mode == VT52);
    let is_known = |(marker, intermediate, finals): &(&[u8], &[u8], &[u8])| {
        *marker == private && *intermediate == between && finals.contains(&last)
    };
    !is_vt52 && CSI_OF_A_SCREEN.iter().any(is_known)
}

fn osc_stays(body: &[u8]) -> bool {
    let digits = body.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = body.split_at(digits);
    match numbers(number).next().filter(|_| digits > 0 && rest.first().is_none_or(|next| *next == b';')) {
        // Terminals of Windows run programs and more with a number behind it; 4 is a bar of progress.
        Some(9) => !matches!(rest, [b';', b'0'..=b'9', ..]) || rest.starts_with(b";4;"),
        Some(777) => rest.starts_with(b";notify;"),
        Some(number) => {
            OSC_OF_A_SCREEN.contains(&number) || OSC_COLOURS.iter().any(|colours| colours.contains(&number))
        }
        None => false,
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
    fn what_changed_nothing_is_followed_by_nothing() {
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
    fn what_was_left_on_is_switched_off_and_the_screen_left_only_if_it_was_taken() {
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
    // promise: cli-3
    fn nothing_that_reaches_beyond_the_screen_passes() {
        let long = |begin: &[u8], end: &[u8]| [begin, &[b'A'; 9_000], end].concat();
        for beyond in [
            b"\x1b]52;c;cm0gLXJmIH4=\x07".to_vec(),
            b"\x1b]52;c;?\x1b\\".to_vec(),
            b"\x1b]052;c;AA\x07".to_vec(),
            b"\x1b]1337;File=inline=1:AAAA\x07".to_vec(),
            b"\x1b]1337;RequestUpload=format=tgz\x07".to_vec(),
            b"\x1b]5113;ac=send\x07".to_vec(),
            b"\x1b]9;7;calc\x07".to_vec(),
            b"\x1b]l;title\x07".to_vec(),
            b"\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\".to_vec(),
            b"\x1bP0;1|17/726d\x1b\\".to_vec(),
            b"\x1bPtmux;\x1b\x1b]52;c;cm0=\x07".to_vec(),
            b"\x1b[5\x1b]52;c;?\x07".to_vec(),
            b"\x1b]52;c;AA\x18".to_vec(),
            b"\x1b".to_vec(),
            b"\x1b]5\x002;c;QQ==\x07".to_vec(),
            b"\x1b]1\x00337;File=x:QQ==\x07".to_vec(),
            b"\x1b]0;a\xc2\x9c\xc2\x9d5\x07".to_vec(),
            b"\x1b[\xc2\x9d52;c".to_vec(),
            b"\x1b%@".to_vec(),
            b"\x1b G".to_vec(),
            b"\x1b[?2l".to_vec(),
            b"\x1b[61\"p".to_vec(),
            b"\x1bP$qecho x\x1b".to_vec(),
            b"\x1b]777;run;x\x07".to_vec(),
            [b"\x1b[".as_slice(), &[b'0'; 5_000], b"5i"].concat(),
            [b"\x1b_G".as_slice(), &b"q=2,".repeat(1_100), b"a=T,t=f;L2V0\x1b\\"].concat(),
            b"\x1b[5i".to_vec(),
            b"\x1b[?5i".to_vec(),
            b"\x1b[21t".to_vec(),
            b"\x1b[8;1;1t".to_vec(),
            long(b"\x1b]52;c;", b"\x07"),
            long(b"\x1b]1337;File=:", b"\x1b\\"),
        ] {
            for cut in 0..=beyond.len() {
                let mut screen = ScreenOnly::default();
                let text = [b"a", &beyond[..cut]].concat();
                let mut shown = screen.feed(&text);
                shown.extend(screen.feed(&[&beyond[cut..], b"\x1b[mz"].concat()));
                // The second half of a terminator may be left over.
                let shown = String::from_utf8_lossy(&shown).replace("\u{1b}\\", "");
                assert_eq!(shown, "a\u{1b}[mz", "{:?} cut at {cut}", String::from_utf8_lossy(&beyond));
            }
        }
    }

    #[test]
    // promise: cli-3
    fn no_c1_control_is_left_or_made_by_what_is_dropped() {
        for bytes in
            [&b"a\xc2\x9d52;c;QQ==\xc2\x9c"[..], b"\xc2\xc2\x9d\x9d52;c", b"\xc2\x1b]52;c;eA==\x07\x9d52;c;QQ==\x07"]
        {
            let shown = ScreenOnly::default().feed(bytes);
            let has_c1 = shown.windows(2).any(|pair| pair[0] == BEFORE_C1 && (0x80..=0x9f).contains(&pair[1]));
            assert!(!has_c1, "{:?}", String::from_utf8_lossy(&shown));
            assert_eq!(ScreenOnly::default().feed(&shown), shown);
        }
    }

    #[test]
    fn a_long_picture_that_is_aborted_swallows_nothing() {
        let picture = [b"\x1bPq".as_slice(), &[b'~'; 5_000]].concat();
        let shown = ScreenOnly::default().feed(&[picture.as_slice(), b"\x1b]52;c;QQ==\x07text"].concat());
        assert!(shown == [picture.as_slice(), b"\x18text"].concat());
    }

    #[test]
    // promise: cli-3
    fn text_colours_titles_and_pictures_pass_to_the_byte() {
        let long = [b"\x1bPq".as_slice(), &[b'~'; 9_000], b"\x1b\\"].concat();
        for shown in [
            b"plain \xc2\xa0\xc3\xa9 \xff\r\n\x1b[1;31mred\x1b[m\x1b[?1049h\x1b[2J\x1b(0q\x1b7".to_vec(),
            b"\x1b]0;title\x07\x1b]2;t\x1b\\\x1b]8;;https://a.example\x07a\x1b]8;;\x07\x1b]11;#000000\x07\x1b]104\x07"
                .to_vec(),
            b"\x1b]9;done\x07\x1b]9;4;1;50\x07\x1b]777;notify;a;b\x07\x1b]133;A\x07\x1b[22;2t\x1b[23;2t".to_vec(),
            b"\x1b_Ga=T,f=24,s=1,v=1;AAAA\x1b\\\x1b[>1u\x1b[?2026h\x1b[c\x1b=".to_vec(),
            long,
        ] {
            for cut in 0..=shown.len() {
                let mut screen = ScreenOnly::default();
                let parts = [screen.feed(&shown[..cut]), screen.feed(&shown[cut..])].concat();
                assert!(parts == shown, "cut at {cut}: {}", String::from_utf8_lossy(&parts));
            }
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
    fn a_snapshot_paints_the_screen_that_is_to_be_seen_and_switches_to_none() {
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
