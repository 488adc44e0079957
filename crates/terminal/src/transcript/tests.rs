//! The transcript of output is the text that a person has read, wherever the output is cut, on the plain and the emulated path.

use proptest::prelude::*;

use super::*;

fn read(output: &str) -> String {
    let text = render(output.as_bytes(), 20);
    assert_eq!(text.escaped, 0, "{output:?}");
    text.text
}

#[test]
fn lines_stay_exactly_as_they_were_printed() {
    for (output, text) in [
        ("", ""),
        ("a", "a"),
        ("a\r\n", "a\n"),
        ("a\r\n\r\n\r\n", "a\n\n\n"),
        ("\r\n\r\na", "\n\na"),
        ("written   \r\nblanks  \t\r\n\t\r\n   \r\n", "written   \nblanks  \t\n\t\n   \n"),
        ("erased   \x1b[3D\x1b[K\r\nskipped\x1b[5C\r\n", "erased\nskipped\n"),
        ("name? ", "name? "),
        ("\x1b[1mname?\x1b[0m ", "name? "),
        ("a\tb\r\n", "a\tb\n"),
        ("a\tb\rX\r\n", "X\tb\n"),
        ("a\tb\rXYZ\r\n", "XYZ     b\n"),
        ("a\tb\r\tc\r\n", "a\tc\n"),
        ("painted over\r\tc\r\n", "painted cver\n"),
        ("a\tb\x1b[5GX\r\n", "a   X   b\n"),
        ("a\tb\x1b[1G\x1b[P\r\n", "       b\n"),
        ("\x1bH\ta\r\n", "        a\n"),
        ("x\t", "x\t"),
        ("x\t\r", "x"),
        ("stairs\n down\r\n", "stairs\n       down\n"),
    ] {
        assert_eq!(read(output), text, "{output:?}");
    }
}

#[test]
fn wrapped_lines_are_whole_again() {
    let long = "0123456789".repeat(7);
    assert_eq!(read(&format!("{long}\r\nx")), format!("{long}\nx"));
    let wide = "世界".repeat(13);
    assert_eq!(read(&format!("{wide}\r\n")), format!("{wide}\n"));
    let endless = "ab c".repeat(2_000);
    assert_eq!(read(&format!("{endless}\r\n")), format!("{endless}\n"));
    // The column that a wide character leaves empty is a blank once the character is written over.
    assert_eq!(read("0123456789012345678世\rab\r\n"), "0123456789012345678 ab\n");
}

#[test]
fn progress_leaves_its_last_state() {
    let mut output = String::new();
    for percent in 0..=1_000 {
        output += &format!("\rprogress {percent}");
    }
    assert_eq!(read(&(output + "\r\n")), "progress 1000\n");
    assert_eq!(read("50%\r\x1b[Kdone\r\n"), "done\n");
    assert_eq!(read("one\r\ntwo\r\n\x1b[2A\x1b[KONE\r\n\x1b[KTWO\r\n"), "ONE\nTWO\n");
    assert_eq!(read("typo\x08\x08\x08ry\x1b[K\r\n"), "try\n");
}

#[test]
fn colours_titles_markers_and_paint_leave_nothing() {
    assert_eq!(
        read("\x1b]0;title\x07\x1b[1;31mred\x1b[0m\x1b]7337;D;n\x07 \x1bPq#1;2\x1b\\x\x1b(B\x1b[?2004h\x07\r\n"),
        "red x\n"
    );
    assert_eq!(read("before\r\n\x1b[?1049h\x1b[H\x1b[2Jpaint\x1b[5;5Hmore\x1b[?1049lafter\r\n"), "before\nafter\n");
    assert_eq!(read("before\r\n\x1b[?1049h\x1b[Hpaint"), "before\n");
    assert_eq!(read("before\r\n\x1b[H\x1b[2Jafter\r\n"), "before\nafter\n");
    assert_eq!(read("before\r\n\x1bcafter\r\n"), "before\nafter\n");
}

#[test]
fn bytes_that_are_not_text_are_escaped_and_counted() {
    assert_eq!(
        render(b"a\xffb\0\xe2\x82\r\n\x7f\xc2\x9b31mC1\xc3", 20),
        Text { text: "a\\xffb\\x00\\xe2\\x82\n\\x7f\u{9b}31mC1\\xc3".to_owned(), escaped: 6, crlf_lines: 0 }
    );
    assert_eq!(
        render(b"k1\x01v1\x0b\x0c\x0e\x0f\x1f\x07.\r\n\x1b[m\x0fx\xf0\x9f\xbf\xbe", 9),
        Text {
            text: "k1\\x01v1\\x0b\\x0c\\x0e\\x0f\\x1f.\nx\\xf0\\x9f\\xbf\\xbe".to_owned(),
            escaped: 10,
            crlf_lines: 0
        }
    );
    // A program with a second character set draws with it.
    assert_eq!(render(b"\x1b)0\x0eqq\x0fq\x01", 9).text, "──q\\x01");
    // One character in a line as any, which goes on over the right margin and is written over.
    assert_eq!(
        render("ab\u{85}cdefgh\u{9b}ij\u{80}\u{9f}\r\n\u{9d}0;t\r.\r\n\u{fdcf}\u{fdd0}\u{fdf0}".as_bytes(), 8),
        Text {
            text: "ab\u{85}cdefgh\u{9b}ij\u{80}\u{9f}\n.0;t\n\u{fdcf}\\xef\\xb7\\x90\u{fdf0}".to_owned(),
            escaped: 3,
            crlf_lines: 0
        }
    );
}

#[test]
fn finished_text_comes_out_early_and_in_bounded_memory() {
    let mut transcript = Transcript::with_size(20, 5);
    let (mut text, mut longest) = (String::new(), 0);
    for number in 0..10_000 {
        transcript.feed(format!("line {number}\r\n").as_bytes());
        let finished = transcript.take_finished();
        text += &finished;
        longest = longest.max(transcript.peek().len());
    }
    for _ in 0..10_000 {
        transcript.feed(b"endless \xe2\x82\xac ");
        text += &transcript.take_finished();
        longest = longest.max(transcript.peek().len());
    }
    assert!(longest < 300, "{longest} bytes were kept");
    text += &transcript.finish().text;
    let expected: String = (0..10_000).map(|number| format!("line {number}\n")).collect();
    assert_eq!(text, expected + &"endless € ".repeat(10_000));
}

#[test]
// promise: output-8
fn lines_that_a_program_ends_with_cr_lf_are_counted_wherever_the_output_is_cut() {
    let output = b"a\r\r\nb\r\n\r\r\nc\r\r\r\n\x1b[1m\r\x1b[m\r\nd\r\r";
    for cut in 0..output.len() {
        let mut transcript = Transcript::new(9);
        transcript.feed(&output[..cut]);
        transcript.feed(&output[cut..]);
        assert_eq!(transcript.finish().crlf_lines, 3, "cut at {cut}");
    }
}

/// Parts of output with text, tabs, colours and line ends, and the text of each.
fn printed() -> impl Strategy<Value = Vec<(String, String)>> {
    let text = prop::sample::select(vec![
        "\t",
        "\t",
        "\t\t",
        " ",
        "  ",
        "a",
        "bc",
        "defghijk",
        "日",
        "本語",
        "é",
        "e\u{301}",
        "\u{200d}",
        "👩\u{200d}💻",
        "🏴",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "\u{fffe}",
        "\u{10ffff}",
        "\u{e000}",
        "\\x01",
    ]);
    let seen = text.prop_map(|text| (text.to_owned(), text.to_owned()));
    let styles = vec!["\x1b[1;31m", "\x1b[m", "\x1b]0;title\x07", "\x1b]8;;x\x1b\\", "\x1b(B", "\x07", "\x1b[?25l"];
    let unseen = prop::sample::select(styles).prop_map(|style| (style.to_owned(), String::new()));
    let end = Just(("\r\n".to_owned(), "\n".to_owned()));
    let long = (1usize..60).prop_map(|len| ("x".repeat(len), "x".repeat(len)));
    prop::collection::vec(prop_oneof![8 => seen, 3 => unseen, 3 => end, 1 => long], 0..60)
}

fn output() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(vec![
        "\r",
        "\n",
        "\x08",
        "\t",
        "\x1b[K",
        "\x1b[2K",
        "\x1b[A",
        "\x1b[3A",
        "\x1b[B",
        "\x1b[5C",
        "\x1b[H",
        "\x1b[J",
        "\x1b[2J",
        "\x1b[31m",
        "\x1b[0m",
        "\x1b]0;t\x07",
        "\x1b[?25l",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[2;3r",
        "\x1b[r",
        "\x1b7",
        "\x1b8",
        "\x1bc",
        "\x1b[4h",
        "\x1b[?7l",
        "\x1b(0",
        "\x1b(B",
        "\x0e",
        "\x0f",
        "\x1b[L",
        "\x1b[M",
        "\x1b[2P",
        "\x1b[X",
        "\x1b[2@",
        "\x1bM",
        "世",
        "é",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{fdd5}",
        "\r\r\n",
    ]);
    let line = "[a-c ]{0,14}";
    prop::collection::vec(
        prop_oneof![
            4 => line.prop_map(|line| line + "\r\n"),
            1 => prop::collection::vec("[a-c ]{0,3}", 1..20).prop_map(|lines| lines.join("\r\n")),
            3 => special.prop_map(str::to_owned),
            1 => line.prop_map(|line| line.to_owned()),
            2 => ("[?>]?", 0u16..30, 0u16..30, 0x40u8..0x7f).prop_map(|(prefix, one, two, last)| {
                format!("\x1b[{prefix}{one};{two}{}", char::from(last))
            }),
        ]
        .prop_map(String::into_bytes)
        .boxed()
        .prop_union(prop::collection::vec(any::<u8>(), 0..3).boxed()),
        0..16,
    )
    .prop_map(|parts| parts.concat())
}

fn slowly(bytes: &[u8], cols: u16, rows: u16) -> Text {
    let mut transcript = Transcript::with_size(cols, rows);
    transcript.writer.may_be_plain = false;
    transcript.writer.emulate();
    transcript.feed(bytes);
    transcript.finish()
}

/// The text of output that comes in pieces, taken as it is finished.
fn in_pieces(bytes: &[u8], cols: u16, rows: u16, cuts: &[prop::sample::Index]) -> Text {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let mut transcript = Transcript::with_size(cols, rows);
    let mut text = String::new();
    for chunk in [&bytes[..cuts[0]], &bytes[cuts[0]..cuts[1]], &bytes[cuts[1]..]] {
        transcript.feed(chunk);
        text += &transcript.take_finished();
    }
    let rest = transcript.finish();
    Text { text: text + &rest.text, ..rest }
}

/// 100,000 with `PTYD_TEST_FULL=1`.
fn cases(few: u32) -> ProptestConfig {
    ProptestConfig::with_cases(if std::env::var_os("PTYD_TEST_FULL").is_some() { 100_000 } else { few })
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    // promise: output-8
    fn printed_text_is_exact_at_every_width_and_cut(
        parts in printed(), (cols, rows) in (2u16..40, 1u16..12), cuts in prop::collection::vec(any::<prop::sample::Index>(), 2),
        progress in any::<bool>(),
    ) {
        let (before, left) = if progress { ("1\r2\r3\r\n", "3\n") } else { ("", "") };
        let (mut bytes, mut expected) = (before.to_owned(), left.to_owned());
        parts.iter().for_each(|(printed, text)| {
            bytes += printed;
            expected += text;
        });
        let bytes = bytes.as_bytes();
        prop_assert_eq!(&in_pieces(bytes, cols, rows, &cuts).text, &expected, "{}", bytes.escape_ascii().to_string());
        prop_assert_eq!(slowly(bytes, cols, rows).text, expected, "{}", bytes.escape_ascii().to_string());
    }

    #[test]
    // promise: output-8
    fn the_fast_path_and_every_cut_equal_the_terminal(
        bytes in output(), (cols, rows) in (2u16..12, 1u16..6), cuts in prop::collection::vec(any::<prop::sample::Index>(), 2),
    ) {
        let slow = slowly(&bytes, cols, rows);
        prop_assert_eq!(in_pieces(&bytes, cols, rows, &cuts), slow, "{}", bytes.escape_ascii().to_string());
    }
}
