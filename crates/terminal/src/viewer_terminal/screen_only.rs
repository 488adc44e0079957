//! Output that reaches no further than the screen of the terminal that shows it.

use super::numbers;
use crate::sequence::{Piece, Splitter};

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
    // An escape character that ends nothing begins the next sequence, which is judged for itself.
    if part.starts_with(b"\x1b") && part != b"\x1b\\" && std::mem::replace(overlong, Overlong::None) == Overlong::Passes
    {
        out.push(CAN);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use alacritty_terminal::vte::{Params, Parser, Perform};

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
    fn dropping_sequences_leaves_and_makes_no_c1_control() {
        for bytes in
            [&b"a\xc2\x9d52;c;QQ==\xc2\x9c"[..], b"\xc2\xc2\x9d\x9d52;c", b"\xc2\x1b]52;c;eA==\x07\x9d52;c;QQ==\x07"]
        {
            let shown = ScreenOnly::default().feed(bytes);
            let has_c1 = shown.windows(2).any(|pair| pair[0] == BEFORE_C1 && (0x80..=0x9f).contains(&pair[1]));
            assert!(!has_c1, "{:?}", String::from_utf8_lossy(&shown));
            assert_eq!(ScreenOnly::default().feed(&shown), shown);
        }
    }

    /// The commands that reach beyond the screen, as a terminal's parser finds them.
    #[derive(Default)]
    struct Parsed {
        beyond: Vec<String>,
    }

    impl Parsed {
        fn of(bytes: &[u8]) -> Self {
            let mut parsed = Self::default();
            Parser::new().advance(&mut parsed, bytes);
            parsed
        }

        fn check(&mut self, stays: bool, command: impl FnOnce() -> String) {
            if !stays {
                self.beyond.push(command());
            }
        }
    }

    impl Perform for Parsed {
        fn osc_dispatch(&mut self, params: &[&[u8]], _bell_terminated: bool) {
            let number = std::str::from_utf8(params[0]).ok().and_then(|number| number.parse::<u16>().ok());
            let stays = match number {
                Some(9) => {
                    params.get(1).is_none_or(|first| !first.first().is_some_and(u8::is_ascii_digit) || *first == b"4")
                }
                Some(777) => params.get(1) == Some(&&b"notify"[..]),
                Some(number) => !matches!(number, 3 | 6 | 46 | 50..=52 | 99 | 1337 | 5113),
                None => params[0].is_empty() && params.len() == 1,
            };
            self.check(stays, || format!("OSC {params:?}"));
        }

        fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignored: bool, action: char) {
            let first = params.iter().next().map_or(0, |param| param[0]);
            let stays = match (intermediates, action) {
                (_, 'i') | ([b'"'], 'p') => false,
                ([], 't') => matches!(first, 22 | 23),
                ([b'?'], 'h' | 'l') => !params.iter().any(|param| param[0] == VT52),
                _ => true,
            };
            self.check(stays, || format!("CSI {intermediates:?} {params:?} {action}"));
        }

        fn hook(&mut self, params: &Params, intermediates: &[u8], _ignored: bool, action: char) {
            let stays = matches!((intermediates, action), ([], 'q') | ([b'$' | b'+'], 'q') | ([b'='], 's'));
            self.check(stays, || format!("DCS {intermediates:?} {params:?} {action}"));
        }

        fn esc_dispatch(&mut self, intermediates: &[u8], _ignored: bool, byte: u8) {
            let stays = !matches!(intermediates, [b'%' | b' ', ..]);
            self.check(stays, || format!("ESC {intermediates:?} {}", char::from(byte)));
        }
    }

    /// Pieces of sequences of every kind, and text.
    fn fragment() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
        use proptest::prelude::*;
        let known: [&[u8]; 38] = [
            b"\x1b",
            b"\x1b]",
            b"\x1b[",
            b"\x1bP",
            b"\x1b_G",
            b"\x1b^",
            b"\x1bX",
            b"\x1b\\",
            b"\x07",
            b"\x18",
            b"\x1a",
            b"\x7f",
            b"\0",
            b"52;c;",
            b"1337;File=",
            b"5113;",
            b"0;",
            b"8;;",
            b"9;",
            b"777;",
            b";",
            b"5i",
            b"?5i",
            b"21t",
            b"22;0t",
            b"8;1;1t",
            b"?2l",
            b"?1049h",
            b"31m",
            b"\"p",
            b"$q",
            b"q",
            b"%@",
            b"\xc2\x9d",
            b"\xc2\x9c",
            b"\xc2",
            b"\x9d",
            "\u{e9}".as_bytes(),
        ];
        prop_oneof![
            8 => proptest::sample::select(known.map(<[u8]>::to_vec).to_vec()),
            2 => "[ -~]{1,5}".prop_map(String::into_bytes),
            1 => proptest::collection::vec(any::<u8>(), 1..4),
            1 => (1usize..6_000).prop_map(|long| vec![b'A'; long]),
        ]
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(if std::env::var_os("PTYD_TEST_FULL").is_some() { 100_000 } else { 2_000 }))]

        #[test]
        // promise: cli-3
        fn a_terminal_finds_nothing_that_reaches_beyond_its_screen_in_random_bytes(
            fragments in proptest::collection::vec(fragment(), 1..24),
            cuts in proptest::collection::vec(0usize..200, 0..6),
        ) {
            let bytes = fragments.concat();
            let (mut screen, mut shown, mut rest) = (ScreenOnly::default(), Vec::new(), bytes.as_slice());
            for cut in cuts {
                let (part, behind) = rest.split_at(cut.min(rest.len()));
                shown.extend(screen.feed(part));
                rest = behind;
            }
            shown.extend(screen.feed(rest));
            let parsed = Parsed::of(&shown);
            proptest::prop_assert!(parsed.beyond.is_empty(), "{:?} in {:?}", parsed.beyond, String::from_utf8_lossy(&shown));
        }
    }

    #[test]
    fn a_long_picture_that_is_aborted_swallows_nothing() {
        let picture = [b"\x1bPq".as_slice(), &[b'~'; 5_000]].concat();
        let shown = ScreenOnly::default().feed(&[picture.as_slice(), b"\x1b]52;c;QQ==\x07text"].concat());
        assert!(shown == [picture.as_slice(), b"\x18text"].concat());
        // Nor does another long sequence pass as its end.
        let clipboard = [b"\x1b]52;c;".as_slice(), &[b'Q'; 5_000], b"\x1b\\"].concat();
        let bytes = [picture.as_slice(), &clipboard, b"text"].concat();
        for cut in [1, 5_003, 5_004, 5_005, 9_000, 10_000, bytes.len() - 5] {
            let mut screen = ScreenOnly::default();
            let shown = [screen.feed(&bytes[..cut]), screen.feed(&bytes[cut..])].concat();
            assert!(shown == [picture.as_slice(), b"\x18text"].concat(), "cut at {cut}");
        }
        // A terminal may obey a control character inside of it.
        for control in [&b"\x01"[..], b"\x7f", b"\xc2\x9d"] {
            let bytes = [picture.as_slice(), control, b"~~\x1b\\text"].concat();
            for cut in [5_002, 5_003, 5_004, bytes.len() - 5] {
                let mut screen = ScreenOnly::default();
                let shown = [screen.feed(&bytes[..cut]), screen.feed(&bytes[cut..])].concat();
                assert!(shown == [picture.as_slice(), b"\x18text"].concat(), "{control:?} cut at {cut}");
            }
        }
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
}
