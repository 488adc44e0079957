//! The scanner gives the same results wherever its input is cut.

use proptest::prelude::*;

use super::*;

fn scan(bytes: &[u8]) -> (Vec<ScanEvent>, Scanner) {
    let mut scanner = Scanner::new(0);
    let mut found = Vec::new();
    scanner.feed(bytes, &mut |item| found.push(item));
    (found, scanner)
}

fn queries(bytes: &[u8]) -> Vec<Query> {
    scan(bytes)
        .0
        .into_iter()
        .filter_map(|found| match found {
            ScanEvent::Query { query, .. } => Some(query),
            ScanEvent::Marker { .. } => None,
        })
        .collect()
}

fn answers(bytes: &[u8]) -> String {
    let answer = |query: Query| query.answer(|| (4, 9), (80, 24));
    let bytes: Vec<u8> = queries(bytes).into_iter().flat_map(answer).collect();
    String::from_utf8(bytes).unwrap()
}

fn nonce(word: &str) -> Nonce {
    Nonce::parse(word.as_bytes()).unwrap()
}

#[test]
fn a_marker_is_found_with_either_terminator_and_with_its_exact_range() {
    let (found, scanner) = scan(b"ab\x1b]7337;C;a.1\x07out\x1b]7337;D;B\x1b\\$ ");
    assert_eq!(
        found,
        [
            ScanEvent::Marker { kind: MarkerKind::Start, nonce: nonce("a.1"), from: 2, to: 15 },
            ScanEvent::Marker { kind: MarkerKind::End, nonce: nonce("B"), from: 18, to: 30 },
        ]
    );
    assert_eq!((scanner.position(), scanner.held_from()), (32, 32));
}

#[test]
fn text_that_only_looks_like_a_marker_is_not_found() {
    let long = format!("\x1b]7337;C;{}\x07", "a".repeat(65));
    for text in [
        "\x1b]7337;C;\x07",
        "\x1b]7337;C;a b\x07",
        "\x1b]7337;E;a\x07",
        "\x1b]7337;C;a\x18",
        "\x1b]7337;C;a\x1b[m",
        "\x1bP7337;C;a\x1b\\",
        "\u{9d}7337;C;a\x07",
        "]7337;C;a\x07",
        &long,
    ] {
        assert_eq!(scan(text.as_bytes()).0, [], "{text:?}");
    }
}

#[test]
fn a_marker_is_found_behind_a_sequence_that_the_program_left_unfinished() {
    for unfinished in ["\x1b", "\x1b[3", "\x1b]0;tit", "\x1bPq", "\x1b(", "\x1b]0;x\x1b"] {
        let text = format!("{unfinished}\x1b]7337;D;n\x07");
        let from = unfinished.len() as u64;
        assert_eq!(
            scan(text.as_bytes()).0,
            [ScanEvent::Marker { kind: MarkerKind::End, nonce: nonce("n"), from, to: from + 11 }],
            "{text:?}"
        );
    }
}

#[test]
fn every_question_has_its_answer() {
    for (question, answer) in [
        ("\x1b[c", "\x1b[?62;22c"),
        ("\x1b[0c", "\x1b[?62;22c"),
        ("\x1b[>c", "\x1b[>0;276;0c"),
        ("\x1b[5n", "\x1b[0n"),
        ("\x1b[6n", "\x1b[5;10R"),
        ("\x1b[?6n", "\x1b[?5;10R"),
        ("\x1b[>q", concat!("\x1bP>|ptyd(", env!("CARGO_PKG_VERSION"), ")\x1b\\")),
        ("\x1b[?2004$p", "\x1b[?2004;2$y"),
        ("\x1b[?7$p", "\x1b[?7;1$y"),
        ("\x1b[?1049h\x1b[?47$p", "\x1b[?47;1$y"),
        ("\x1b[?2026$p", "\x1b[?2026;0$y"),
        ("\x1b[4$p", "\x1b[4;0$y"),
        ("\x1b]11;?\x07", "\x1b]11;rgb:0000/0000/0000\x07"),
        ("\x1b]10;?;?\x1b\\", "\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\\x1b]11;rgb:0000/0000/0000\x1b\\"),
        ("\x1b]4;1;?\x07", "\x1b]4;1;rgb:cdcd/0000/0000\x07"),
        ("\x1b]4;196;?\x07", "\x1b]4;196;rgb:ffff/0000/0000\x07"),
        ("\x1bP+q544e\x1b\\", "\x1bP0+r\x1b\\"),
        ("\x1bP$qm\x1b\\", "\x1bP0$r\x1b\\"),
        ("\x1b[14t", "\x1b[4;384;640t"),
        ("\x1b[18t", "\x1b[8;24;80t"),
    ] {
        assert_eq!(answers(question.as_bytes()), answer, "{question:?}");
    }
    assert_eq!(queries(b"\x1b[?u"), [Query::KittyKeyboard]);
    assert_eq!(answers(b"\x1b[?u"), "");
}

#[test]
fn an_answer_and_a_setting_are_not_taken_for_a_question() {
    for text in [
        "\x1b[?62;22c",
        "\x1b[0n",
        "\x1b[5;10R",
        "\x1b]11;#ffffff\x07",
        "\x1b]10;?;#ffffff\x07",
        "\x1b]4;1;?;2;#ffffff\x07",
        "\x1b]13;?\x07",
        "\x1b[22t",
        "\x1b[m",
    ] {
        assert_eq!(queries(text.as_bytes()), [], "{text:?}");
    }
}

#[test]
fn modes_follow_the_program_and_a_full_reset_clears_them() {
    let all = Modes {
        alt_screen: true,
        application_cursor: true,
        bracketed_paste: true,
        mouse: true,
        sgr_mouse: true,
        kitty: 1,
    };
    let (_, mut scanner) = scan(b"\x1b[?1;1049;25h\x1b[?2004h\x1b[?1002;1006h\x1b[>1u\x1b]2;vim\x07\x07");
    assert_eq!(scanner.modes(), all);
    assert_eq!((scanner.title(), scanner.bells()), (Some("vim"), 1));
    scanner.feed(b"\x1b[?1047l", &mut |_| {});
    assert_eq!(scanner.modes(), Modes { alt_screen: false, kitty: 0, ..all });
    scanner.feed(b"\x1bc", &mut |_| {});
    assert_eq!(scanner.modes(), Modes::default());
    assert_eq!(scanner.title(), None);
}

#[test]
fn keyboard_flags_are_a_stack_of_each_screen() {
    let (_, mut scanner) = scan(b"\x1b[>1u");
    let mut after = |bytes: &[u8]| {
        scanner.feed(bytes, &mut |_| {});
        scanner.modes().kitty
    };
    assert_eq!([after(b""), after(b"\x1b[>9u"), after(b"\x1b[=2;2u"), after(b"\x1b[=1;3u")], [1, 9, 11, 10]);
    assert_eq!([after(b"\x1b[?1049h"), after(b"\x1b[=4u"), after(b"\x1b[?1049l")], [0, 4, 10]);
    assert_eq!([after(b"\x1b[<u"), after(b"\x1b[<5u"), after(b"\x1b[=8u"), after(b"\x1bc")], [1, 0, 8, 0]);
}

#[test]
fn a_title_is_cut_and_holds_no_controls() {
    let title = format!("\x1b]0;a\nb{}\x07", "é".repeat(300));
    let (_, scanner) = scan(title.as_bytes());
    assert_eq!(scanner.title(), Some(&*format!("ab{}", "é".repeat(254))));
}

#[test]
// promise: output-4
fn text_ends_before_a_character_that_has_not_come_whole() {
    let long = ["\u{e9}".as_bytes(), b"\xc3\x1bP", &[b'x'; 5000], b"\x1b\\"].concat();
    for (output, missing) in [
        (&b"a"[..], 0),
        (b"a\xe6", 1),
        (b"a\xe6\x97", 2),
        ("a\u{65e5}".as_bytes(), 0),
        (b"\xf0\x9f\x98", 3),
        (b"a\xff", 0),
        (b"a\xe6\x1b[m", 0),
        (&long, 0),
    ] {
        for cut in 0..=output.len() {
            let mut scanner = Scanner::new(7);
            scanner.feed(&output[..cut], &mut |_| {});
            scanner.feed(&output[cut..], &mut |_| {});
            assert_eq!(scanner.position() - scanner.text_to(), missing, "{:?}", output.escape_ascii().to_string());
        }
    }
}

#[test]
fn a_line_is_open_while_the_cursor_is_behind_text() {
    for (output, is_open) in [
        ("", false),
        ("name? ", true),
        ("name? \x1b[0m\x1b[K", true),
        ("done\r\n", false),
        ("done\r\n\x1b[?2004h\t\x07", false),
        (" 50%\r", false),
        ("~> \x1b[K\r\x1b[3C", true),
        ("\r\x1b[KPassword:", true),
        ("ü", true),
    ] {
        assert_eq!(scan(output.as_bytes()).1.line_is_open(), is_open, "{output:?}");
    }
}

#[test]
fn strip_removes_only_queries_and_attested_markers() {
    let bytes = b"a\x1b[6nb\x1b]7337;C;mine\x07c\x1b]7337;C;forged\x07\x1b[";
    let mut scanner = Scanner::new(100);
    let parts = strip(&mut scanner, bytes, &mut |word, _| *word == nonce("mine"));
    assert_eq!(
        parts,
        [
            Part { from: 100, bytes: b"a" },
            Part { from: 105, bytes: b"b" },
            Part { from: 120, bytes: b"c\x1b]7337;C;forged\x07\x1b[" },
        ]
    );
    assert_eq!(scanner.position(), 100 + bytes.len() as u64);
}

fn output() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        prop::sample::select(vec![
            "\x1b]7337;C;n1.x\x07",
            "\x1b]7337;D;n2\x1b\\",
            "\x1b[6n",
            "\x1b[c",
            "\x1b[?1049;2004h",
            "\x1b[?1049l",
            "\x1b]0;title\x07",
            "\x1b]11;?\x1b\\",
            "\x1bP+q41\x1b\\",
            "\x1b[31m",
            "\x1bc",
            "\r\n",
            "\r",
            "text ",
            "é",
            "\x07",
            "\x1b",
        ])
        .prop_map(|part| part.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(part, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    // promise: output-8
    fn the_finds_are_the_same_at_every_cut(bytes in output()) {
        let (whole, whole_scanner) = scan(&bytes);
        for at in 0..=bytes.len() {
            let mut found = Vec::new();
            let mut scanner = Scanner::new(0);
            scanner.feed(&bytes[..at], &mut |item| found.push(item));
            // No find reaches into what was let through to viewers before it was known.
            let held_from = scanner.held_from();
            let known = found.len();
            scanner.clone().feed(&bytes[at..], &mut |item| found.push(item));
            prop_assert_eq!(&found, &whole);
            for item in &found[known..] {
                let (ScanEvent::Marker { from, .. } | ScanEvent::Query { from, .. }) = item;
                prop_assert!(*from >= held_from);
            }

            scanner.feed(&bytes[at..], &mut |_| {});
            prop_assert_eq!(scanner.modes(), whole_scanner.modes());
            prop_assert_eq!(scanner.title(), whole_scanner.title());
            prop_assert_eq!(scanner.bells(), whole_scanner.bells());
            prop_assert_eq!(scanner.line_is_open(), whole_scanner.line_is_open());
        }
    }

    #[test]
    fn stripping_in_pieces_gives_the_same_text_as_stripping_at_once(
        bytes in output(), cut in any::<prop::sample::Index>(),
    ) {
        let join = |parts: Vec<Part<'_>>| parts.into_iter().flat_map(|part| part.bytes.to_vec()).collect::<Vec<u8>>();
        let whole = join(strip(&mut Scanner::new(0), &bytes, &mut |_, _| true));
        let mut live = Scanner::new(0);
        live.feed(&bytes[..cut.index(bytes.len() + 1)], &mut |_| {});
        let at = live.held_from() as usize;

        let mut viewer = Scanner::new(0);
        let mut shown = join(strip(&mut viewer, &bytes[..at], &mut |_, _| true));
        shown.extend(join(strip(&mut viewer, &bytes[at..], &mut |_, _| true)));
        prop_assert_eq!(shown, whole);
    }
}

#[test]
// promise: screen-2, screen-3
fn a_program_that_paints_the_main_screen_is_known_by_its_keys_and_its_cursor() {
    let paints = |output: &[u8]| {
        let mut scanner = Scanner::new(0);
        scanner.resize(3);
        scanner.feed(output, &mut |_| {});
        scanner.paints_main_from()
    };
    assert_eq!(paints(b"one\x1b[?1h\x1b=\x1b[H\x1b[2Jtop"), Some(3));
    assert_eq!(paints(b"\x1b[?1h\x1b[?1h\x1b[12d"), Some(0));
    assert_eq!(paints(b"\x1b[H\x1b[2J\x1b[?1h\x1b="), None, "cleared before: less -X");
    assert_eq!(paints(b"\x1b[H\x1b[2J"), None, "clear");
    assert_eq!(paints(b"\x1b[?1h\x1b=\x1b[Htop\x1b[?1l\x1b>\x1b[13;1H"), None, "it has left");
    assert_eq!(paints(b"\x1b[?1h\x1b[?1049h\x1b[H"), None, "the alternate screen is another thing");
    assert_eq!(paints(b"\x1b[?1h\x1b[Ha\nb\nc\n\x1b[Ha\nb\nc\n"), Some(0));
    assert_eq!(paints(b"\x1b[?1h\x1b[Ha\nb\nc\nd\n"), None, "it scrolls: text, of which a screen shows the end only");
    assert_eq!(paints(b"\x1b[?1h\x1b[Ha\nb\nc\nd\n\x1b[H"), Some(16), "and paints again");
    assert_eq!(paints(b"\x1b[?1h\x1b[2;2H\x1bc"), None);
    assert_eq!(paints(b"\x1b[?1h\x1b[2;2H\x1b]7337;D;abc\x07"), None, "its command has ended");
}
