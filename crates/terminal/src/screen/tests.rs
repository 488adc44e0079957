//! The contents of the screen; and a snapshot continues exactly like its screen.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, CursorStyle};
use proptest::prelude::*;

use super::*;

fn screen(cols: u16, rows: u16, bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(cols, rows);
    screen.feed(bytes);
    screen
}

#[test]
fn it_shows_what_a_person_would_see() {
    let screen = screen(12, 3, b"one\r\n\x1b[31mtwo\x1b[0m\ttab\r\nthree 3  \x1b[2;2H\x1b[?25l");
    assert_eq!(screen.text(), ["one", "two     tab", "three 3"]);
    assert_eq!(screen.cursor(), Cursor { row: 1, col: 1, visible: false });
}

#[test]
// promise: screen-6
fn inverse_text_is_reported_with_its_place() {
    let menu = screen(20, 3, "one\r\n \x1b[7m  世two \x1b[27m x \x1b[7m \x1b[0m\r\n\x1b[7mlast".as_bytes());
    let rows = menu.text();
    let told = |span: Span| (span.row, span.col, rows[usize::from(span.row)][span.bytes].to_owned());
    let told: Vec<_> = menu.inverse().into_iter().map(told).collect();
    assert_eq!(told, [(1, 3, "世two".to_owned()), (2, 0, "last".to_owned())]);
}

#[test]
// promise: screen-6
fn a_row_looks_different_when_only_its_colours_do() {
    let looks = |text: &str| screen(10, 3, text.as_bytes()).row_marks();
    let plain = looks("one\r\ntwo\r\nthree");
    let differ = |text: &str| (0..3).filter(|row| looks(text).get(*row) != plain.get(*row)).collect::<Vec<_>>();
    assert_eq!(differ("one\r\n\x1b[44mtwo\x1b[0m\r\nthree"), [1]);
    assert_eq!(differ("\x1b[31mone\x1b[0m\r\ntwo\r\n\x1b[1mthree"), [0, 2]);
    assert_eq!(differ("one\r\ntwo\x1b[31m  \x1b[0m\r\nthree"), [0; 0], "a blank has no ink");
}

#[test]
fn characters_cut_anywhere_are_whole_and_invalid_bytes_are_marked() {
    let mut screen = Screen::new(10, 1);
    for byte in "é€😀".bytes().chain(*b"\xff\xe2\x82z") {
        screen.feed(&[byte]);
    }
    assert_eq!(screen.text(), ["é€😀\u{fffd}\u{fffd}z"]);
}

#[test]
fn the_older_names_of_the_alternate_screen_work_too() {
    for mode in [47, 1047, 1049] {
        let mut screen = screen(8, 2, format!("below\x1b[?{mode}h\x1b[Hvim").as_bytes());
        assert_eq!(screen.text(), ["vim", ""]);
        screen.feed(format!("\x1b[?{mode}l").as_bytes());
        assert_eq!(screen.text(), ["below", ""]);
    }
}

#[test]
fn half_a_wide_character_becomes_a_blank() {
    assert_eq!(screen(8, 1, "a世b\x1b[1;3H\x1b[X".as_bytes()).text(), ["a  b"]);
    assert_eq!(screen(8, 1, "a世b\x1b[1;2H\x1b[P".as_bytes()).text(), ["a b"]);
}

#[test]
fn combining_characters_are_bounded() {
    let stack = "a".to_owned() + &"\u{301}".repeat(100);
    assert_eq!(screen(8, 1, stack.as_bytes()).text(), ["a".to_owned() + &"\u{301}".repeat(8)]);
}

#[test]
fn a_snapshot_is_plain_escape_sequences() {
    let mut screen = screen(10, 2, b"\x1b[1;32mok\x1b[0m\r\n$ \x1b[?2004h\x1b[3");
    assert_eq!(
        String::from_utf8(screen.ansi()).unwrap(),
        "\x1bc\x1b[1;1H\x1b[0;1;32mok\x1b[2;1H\x1b[0m$\x1b[2;3H\x1b[?2004h\x1b[3"
    );
}

/// All of a screen that anything to come can depend on.
#[derive(Debug, PartialEq)]
struct State {
    rows: Vec<Vec<Cell>>,
    /// The cursor, the saved cursor and those of the other screen, as text: position, pen, character sets.
    cursors: [String; 4],
    below: Vec<Vec<Cell>>,
    mode: TermMode,
    style: CursorStyle,
    tabs: Vec<bool>,
    margins: (usize, usize),
    shifted: bool,
    titles: Vec<Option<String>>,
    keyboards: [model::Keyboard; 2],
    colours: Vec<Option<(u8, u8, u8)>>,
    unfinished: Vec<u8>,
}

fn cells(grid: &alacritty_terminal::grid::Grid<Cell>) -> Vec<Vec<Cell>> {
    let rows = grid.screen_lines();
    (0..rows)
        .map(|line| {
            let mut row = grid[Line(line as i32)][..].to_vec();
            for cell in &mut row {
                *cell = comparable(cell);
            }
            row
        })
        .collect()
}

/// Without what nothing depends on: the memory of a tab and of a gap, numbers of links, an empty box of extras.
fn comparable(cell: &Cell) -> Cell {
    let mut cell = cell.clone();
    if cell.c == '\t' {
        cell.c = ' ';
    }
    cell.flags.remove(Flags::LEADING_WIDE_CHAR_SPACER);
    if let Some(link) = cell.hyperlink().filter(|link| link.id().ends_with("_alacritty")) {
        // A link without an id gets a new number each time it is drawn.
        cell.set_hyperlink(Some(Hyperlink::new(Some("none"), link.uri().to_owned())));
    }
    let extra = cell.extra.take();
    if let Some(extra) = extra
        && *extra != Default::default()
    {
        cell.extra = Some(extra);
    }
    cell
}

fn state(screen: &mut Screen) -> State {
    let describe = |cursor: &alacritty_terminal::grid::Cursor<Cell>| {
        let template = comparable(&cursor.template);
        let (point, charsets, wrap) = (cursor.point, cursor.charsets, cursor.input_needs_wrap);
        format!("{point:?} {template:?} {charsets:?} {wrap}")
    };
    let is_alternate = screen.model.has(TermMode::ALT_SCREEN);
    let (below, other, other_saved) = screen.model.with_other_grid(|grid| {
        let below = if is_alternate { cells(grid) } else { Vec::new() };
        // The alternate screen's cursor is set anew on entry.
        let cursor = if is_alternate { describe(&grid.cursor) } else { String::new() };
        (below, cursor, describe(&grid.saved_cursor))
    });
    let (term, mirror) = (&screen.model.term, &screen.model.mirror);
    let grid = term.grid();
    let mut unfinished = screen.utf8.unfinished().to_vec();
    unfinished.extend(screen.splitter.unfinished());
    let mut titles = mirror.titles.clone();
    titles.push(mirror.title.clone());
    State {
        rows: cells(grid),
        cursors: [describe(&grid.cursor), describe(&grid.saved_cursor), other, other_saved],
        below,
        mode: *term.mode(),
        style: term.cursor_style(),
        tabs: mirror.tabs.clone(),
        margins: mirror.margins,
        shifted: mirror.charset == alacritty_terminal::vte::ansi::CharsetIndex::G1,
        titles,
        keyboards: mirror.keyboards.clone(),
        colours: (0..alacritty_terminal::term::color::COUNT)
            .map(|index| term.colors()[index].map(|colour| (colour.r, colour.g, colour.b)))
            .collect(),
        unfinished,
    }
}

/// The lines in which two states differ: whole ones are pages long.
fn difference(left: &State, right: &State) -> String {
    let (left, right) = (format!("{left:#?}"), format!("{right:#?}"));
    let pairs = left.lines().zip(right.lines()).enumerate();
    pairs
        .filter(|(_, (left, right))| left != right)
        .map(|(line, (left, right))| format!("{line}: resumed {left} / live {right}\n"))
        .collect()
}

/// One step of a realistic program, and often something hard: wide characters at the margin, wraps, modes.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let number = 0u16..14;
    let fixed = prop::sample::select(vec![
        "\r\n",
        "\r",
        "\n",
        "\x08",
        "\t",
        "\x07",
        "\x0e",
        "\x0f",
        "\x1b7",
        "\x1b8",
        "\x1b[s",
        "\x1b[u",
        "\x1bM",
        "\x1bD",
        "\x1bE",
        "\x1bH",
        "\x1b[g",
        "\x1b[3g",
        "\x1b=",
        "\x1b>",
        "\x1b(0",
        "\x1b(B",
        "\x1b)0",
        "\x1b#8",
        "\x1b[H\x1b[2J",
        "\x1b[J",
        "\x1b[1J",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2K",
        "\x1b[0m",
        "\x1b[1;31m",
        "\x1b[7;4:3;58;5;9m",
        "\x1b[38;2;1;2;3;48;5;200m",
        "\x1b[97;104m",
        "\x1b[2;3;9m",
        "\x1b[22;24m",
        "\x1b[41m",
        "\x1b[4h",
        "\x1b[4l",
        "\x1b[?6h",
        "\x1b[?6l",
        "\x1b[?7l",
        "\x1b[?7h",
        "\x1b[?25l",
        "\x1b[?25h",
        "\x1b[?1h",
        "\x1b[?1000h",
        "\x1b[?1002;1006h",
        "\x1b[?1006l",
        "\x1b[?2004h",
        "\x1b[?1004h",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?47h",
        "\x1b[?1048h",
        "\x1b[?1048l",
        "\x1b[?2026h",
        "\x1b[?2026l",
        "\x1b[?3h",
        "\x1b[20h",
        "\x1b[r",
        "\x1bc",
        "\x1b]0;a title\x07",
        "\x1b]2;other\x1b\\",
        "\x1b[22t",
        "\x1b[23t",
        "\x1b]8;id=a;http://x/y;z\x07",
        "\x1b]8;;\x07",
        "\x1b]8;;file://y\x1b\\",
        "\x1b]4;3;rgb:11/22/33\x07",
        "\x1b]11;#102030\x07",
        "\x1b]104\x07",
        "\x1b[>1u",
        "\x1b[=5u",
        "\x1b[<u",
        "\x1b[4 q",
        "\x1b[0 q",
        "\x1b[6n",
        "\x1bPq#1\x1b\\",
        "\x1b]0;broken",
        "\x1b[3",
        "\x1b",
        "\x18",
    ]);
    let text = prop::sample::select(vec![
        "a",
        "plain text",
        "wraps around the margin",
        "é",
        "世",
        "世界",
        "e\u{301}",
        "👍",
        "qqq",
        "   ",
        "~\x1b[3b",
        "\u{9b}",
    ]);
    prop_oneof![
        6 => fixed.prop_map(|part| part.as_bytes().to_vec()),
        5 => text.prop_map(|part| part.as_bytes().to_vec()),
        3 => (number.clone(), number.clone()).prop_map(|(row, col)| format!("\x1b[{row};{col}H").into_bytes()),
        1 => (number.clone(), number.clone()).prop_map(|(top, bottom)| format!("\x1b[{top};{bottom}r").into_bytes()),
        4 => (number.clone(), prop::sample::select(&b"ABCDEFGILMPSTXZ@d"[..]))
            .prop_map(|(count, last)| format!("\x1b[{count}{}", last as char).into_bytes()),
        2 => ("[?>=<]?", number.clone(), number, 0x40u8..0x7f)
            .prop_map(|(prefix, one, two, last)| format!("\x1b[{prefix}{one};{two}{}", char::from(last)).into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 1..4),
    ]
}

/// One step of a program that prints lines.
fn plain_part() -> impl Strategy<Value = Vec<u8>> {
    let fixed = prop::sample::select(vec![
        "\r\n",
        "\n",
        "\r",
        "\x08",
        "\t",
        "\x07",
        "\x0b",
        "\x1b[K",
        "\x1b[1K",
        "\x1b[2K",
        "\x1b[m",
        "\x1b[0m",
        "\x1b[0;7m",
        "\x1b[1;31m",
        "\x1b[39m",
        "\x1b[41m",
        "\x1b[7;4:3;58;5;9m",
        "\x1b[2;3;9m",
        "\x1b[3C",
        "\x1b[2D",
        "\x1b[5G",
        "\x1b[2X",
        "\x1b[2P",
        "\x1b[2@",
    ]);
    let text = prop::sample::select(vec![
        "a",
        "plain text",
        "wraps around the margin",
        "é",
        "世",
        "世界",
        "e\u{301}",
        "\u{301}",
        "👍",
        "   ",
        "\u{9b}",
        "\u{85}",
    ]);
    prop_oneof![
        4 => Just(b"\r\n".to_vec()),
        4 => fixed.prop_map(|part| part.as_bytes().to_vec()),
        4 => text.prop_map(|part| part.as_bytes().to_vec()),
        1 => prop::collection::vec(0x80u8.., 1..3),
    ]
}

/// Draws the output as a reader does that passes over the runs, from where a screen was drawn already; and how many bytes it drew.
fn passing_over(mut screen: Screen, at: usize, bytes: &[u8], runs: &[crate::PlainRun]) -> (Screen, usize) {
    let (mut at, mut drawn) = (at, 0);
    for run in runs {
        let [from, to, coloured_to] = [run.from, run.to, run.coloured_to].map(|offset| offset as usize);
        if at < from {
            screen.feed(&bytes[at..from]);
            (drawn, at) = (drawn + from - at, from);
        }
        let (_, rows) = screen.size();
        if at < to
            && screen.scrolls_whole()
            && let Some(begin) = crate::plain_runs::last_rows(&bytes[at..to], rows)
        {
            let begin = at + begin;
            screen.pass_over(&crate::plain_runs::colours(&bytes[from..begin.min(coloured_to.max(from))]).0);
            at = begin;
        }
    }
    screen.feed(&bytes[at.min(bytes.len())..]);
    (screen, drawn + bytes.len().saturating_sub(at))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("PTYD_TEST_FULL").is_some() { 20_000 } else { 200 }))]

    #[test]
    // promise: output-8
    fn a_screen_that_skips_plain_runs_equals_one_that_draws_them(
        blocks in prop::collection::vec((prop::collection::vec(part(), 0..8), prop::collection::vec(plain_part(), 0..80)), 1..4),
        end in prop::collection::vec(part(), 0..6),
        (cols, rows) in (2u16..14, 1u16..7),
        resize in prop::option::of((2u16..14, 1u16..7)),
        cut in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let mut bytes = blocks.iter().flat_map(|(any, plain)| [any.concat(), plain.concat()]).collect::<Vec<_>>().concat();
        bytes.extend(end.concat());
        let cut = cut.index(bytes.len() + 1);
        bytes.truncate(to.index(bytes.len() + 1).max(cut));
        let mut scanner = crate::Scanner::new(0);
        scanner.feed(&bytes, &mut |_| {});
        let runs: Vec<_> = scanner.plain_runs().collect();
        let begun = || {
            let mut begun = screen(cols, rows, &bytes[..cut]);
            if let Some((cols, rows)) = resize {
                begun.resize(cols, rows);
            }
            begun
        };
        let mut whole = begun();
        whole.feed(&bytes[cut..]);
        let (mut passed, _) = passing_over(begun(), cut, &bytes, &runs);
        let (left, right) = (state(&mut passed), state(&mut whole));
        prop_assert!(left == right, "from {cut} of {:?}, {runs:?}:\n{}", bytes.escape_ascii().to_string(), difference(&left, &right));
    }
}

#[test]
// promise: output-8
fn a_screen_draws_as_much_of_a_long_flood_as_of_a_short_one() {
    let drawn = |lines: usize| {
        let bytes: String = (0..lines).map(|n| format!("\x1b[3{}mline {n}\x1b[0m\r\n", n % 8)).collect();
        let mut scanner = crate::Scanner::new(0);
        scanner.feed(bytes.as_bytes(), &mut |_| {});
        passing_over(Screen::new(80, 24), 0, bytes.as_bytes(), &scanner.plain_runs().collect::<Vec<_>>()).1
    };
    assert!(drawn(100_000) < 2 * drawn(100), "{} bytes and {}", drawn(100_000), drawn(100));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    // promise: output-8
    fn a_snapshot_continues_like_its_screen(
        parts in prop::collection::vec(part(), 1..24),
        (cols, rows) in (2u16..14, 1u16..7),
    ) {
        let bytes = parts.concat();
        let mut whole = screen(cols, rows, &bytes);
        let at_end = state(&mut whole);
        let mut live = Screen::new(cols, rows);
        for at in 0..=bytes.len() {
            let mut resumed = screen(cols, rows, &live.ansi());
            let (left, right) = (state(&mut resumed), state(&mut live));
            prop_assert!(left == right, "right after byte {at} of {:?}:\n{}", bytes.escape_ascii().to_string(), difference(&left, &right));
            resumed.feed(&bytes[at..]);
            let left = state(&mut resumed);
            prop_assert!(left == at_end, "going on after byte {at} of {:?}:\n{}", bytes.escape_ascii().to_string(), difference(&left, &at_end));
            if let Some(byte) = bytes.get(at) {
                live.feed(&[*byte]);
            }
        }
        prop_assert_eq!(state(&mut live), at_end);
    }

    #[test]
    // promise: output-8
    fn hostile_bytes_and_sizes_never_fail(
        steps in prop::collection::vec(
            (prop::collection::vec(part(), 0..12), prop::collection::vec(any::<u8>(), 0..60), 0u16..40, 0u16..20),
            1..8,
        ),
    ) {
        let mut screen = Screen::new(1, 1);
        for (parts, noise, cols, rows) in steps {
            screen.feed(&parts.concat());
            screen.feed(&noise);
            let snapshot = screen.ansi();
            Screen::new(cols, rows).feed(&snapshot);
            screen.resize(cols, rows);
            prop_assert_eq!(screen.text().len(), usize::from(screen.size().1));

            let mut resumed = Screen::new(cols, rows);
            resumed.feed(&screen.ansi());
            let (left, right) = (state(&mut resumed), state(&mut screen));
            prop_assert!(left == right, "at {cols}x{rows}:\n{}", difference(&left, &right));
        }
    }
}

/// Masks `SECRET` wherever it stands, also over line ends.
fn mask(text: &mut [u8]) {
    let places: Vec<usize> = (0..text.len()).filter(|at| text[*at] != b'\n').collect();
    let letters: Vec<u8> = places.iter().map(|at| text[*at]).collect();
    for from in memchr::memmem::find_iter(&letters, SECRET) {
        places[from..from + SECRET.len()].iter().for_each(|at| text[*at] = b'*');
    }
}

const SECRET: &[u8] = "hunter2 is-\u{e9}\u{4e16}-key".as_bytes();

proptest! {
    #[test]
    // promise: output-2
    fn a_masked_snapshot_has_no_secret_however_it_was_painted(
        (cols, rows) in (4u16..50, 6u16..9),
        from in 0u16..60,
        cuts in prop::collection::vec((0usize..19, 0usize..7), 0..8),
        (in_alternate, in_title, in_link) in any::<(bool, bool, bool)>(),
    ) {
        let secret = std::str::from_utf8(SECRET).unwrap();
        let mut cuts = cuts;
        cuts.sort();
        let mut bytes = String::new();
        if in_title {
            bytes += "\x1b]2;hunter2 \x01is-\u{e9}\u{4e16}-key\x07\x1b[22t";
        }
        if in_link {
            bytes += "\x1b]8;;http://hunter2 \x01is-\u{e9}\u{4e16}-key\x07link\x1b]8;;\x07";
        }
        bytes += "\x1b[H\r\n";
        bytes += &" ".repeat(usize::from(from % cols));
        for (n, c) in secret.chars().enumerate() {
            for (_, how) in cuts.iter().filter(|(at, _)| *at == n) {
                bytes += match how {
                    0 => "X\x08",
                    1 => "\x1b7\x1b[HX\x1b8",
                    2 => "\x1b[1m",
                    3 => "\x1b[31;7m",
                    4 => "\x1b[0m",
                    5 => "\x1b7\x1b[99B\x1b[99CX\x1b8",
                    _ => "\x1b[s\x1b[A\x1b[u",
                };
            }
            bytes.push(c);
        }
        if in_alternate {
            bytes += "\x1b[?1049hother";
        }
        let mut screen = screen(cols, rows, bytes.as_bytes());
        let masked = screen.masked_ansi(Some(&mask));
        let mut resumed = self::screen(cols, rows, &masked);
        resumed.feed(b"\x1b[?1049l");
        for shown in [String::from_utf8(masked).unwrap(), resumed.text().join(""), resumed.unbroken_text().join("")] {
            prop_assert!(!shown.contains(secret), "{shown:?} of {bytes:?}");
        }
        let clear = screen.ansi();
        prop_assert_eq!(screen.masked_ansi(Some(&|_| {})), clear, "a mask that changes nothing");
    }
}

#[test]
fn the_largest_screen_takes_text_and_snapshots() {
    let mut screen = screen(u16::MAX, u16::MAX, "x".repeat(2_000).as_bytes());
    assert_eq!(screen.size(), (1000, 1000));
    assert_eq!(screen.text()[..2], ["x".repeat(1000), "x".repeat(1000)]);
    assert_eq!(screen.ansi().len(), 2 + 6 + 2_000 + 9 + 1);
}

#[test]
fn colours_are_written_in_the_shortest_exact_form() {
    let mut screen = screen(8, 1, b"\x1b[91;45ma\x1b[38;5;1mb");
    let snapshot = screen.ansi();
    let resumed = self::screen(8, 1, &snapshot);
    let row = &resumed.model.term.grid()[Line(0)];
    assert_eq!(row[alacritty_terminal::index::Column(1)].fg, Color::Indexed(1));
    assert!(snapshot.starts_with(b"\x1bc\x1b[1;1H\x1b[0;91;45ma"));
}
