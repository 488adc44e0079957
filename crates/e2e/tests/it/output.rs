//! Output: huge and exact, noisy and clean, in any encoding, and after the end.

use api::{ErrorCode, ExecuteRequest, OutputQuery, SessionStatus};
use e2e::{Server, count, eventually, footprint, seq};

#[tokio::test]
// promise: output-1
async fn huge_output_is_exact_and_bounded_and_disturbs_nobody() {
    let server = Server::start();
    let (shell, other) = (server.session().await, server.session().await);
    let lines = count(300_000, 5_000_000);
    let whole = seq(lines);
    let before = footprint(server.pid()).resident_bytes;
    let flood = shell.begin(&format!("seq 1 {lines}")).await;
    let done = shell.end_of(&flood).await;
    assert_eq!((done.exit_code, done.output_size), (Some(0), whole.len() as u64));
    assert!(shell.bytes_of(&done).await == whole, "every byte, in order");
    let grown = footprint(server.pid()).resident_bytes.saturating_sub(before);
    assert!(grown < 64 << 20, "memory grew by {} KiB", grown >> 10);

    // The bytes of a flood without an end are the clock: a busy machine slows down both.
    let flood = shell.begin("yes").await;
    let printed = async || shell.look().await.journal.end_offset;
    for _ in 0..20 {
        let before = printed().await;
        assert_eq!(other.gives("true").await, (0, String::new()));
        let meanwhile = printed().await - before;
        assert!(meanwhile < 8 << 20, "another session waited while {} MiB came", meanwhile >> 20);
    }
    shell.signal("INT").await;
    assert_eq!(shell.end_of(&flood).await.exit_code, Some(130));

    let text = done.output.expect("it has output");
    let omitted = done.omitted.expect("it does not fit");
    assert!(
        text.chars().count() < 31_000 && text.starts_with("1\n2\n3\n") && text.ends_with(&format!("\n{lines}\n")),
        "head and tail"
    );
    let head_and_tail: usize = text.lines().filter(|line| !line.starts_with('[')).count();
    assert_eq!(
        head_and_tail as u64 + omitted.last_line - omitted.first_line + 1,
        lines as u64,
        "every line is counted"
    );
    let left_out = shell.bytes(omitted.from_offset, omitted.to_offset).await;
    assert_eq!(omitted.bytes, left_out.len() as u64);
    let first = format!("{}\r\n", omitted.first_line);
    let last = format!("\r\n{}\r\n", omitted.last_line);
    assert!(left_out.starts_with(first.as_bytes()) && left_out.ends_with(last.as_bytes()), "the range is the lines");
}

#[tokio::test]
// promise: output-4
async fn a_reader_sees_one_line_as_a_person_would() {
    let server = Server::start();
    let shell = server.session().await;
    let table = [
        ("for i in $(seq 1000); do printf '\\rprogress %d' $i; done; echo", "progress 1000\n"),
        ("printf 'abc\\b\\bX\\n'", "aXc\n"),
        ("printf '\\033[31mred\\033[0m plain\\n'", "red plain\n"),
        ("printf '\\033]0;a title\\007shown\\n'", "shown\n"),
        ("printf 'gone\\r\\033[Khere\\n'", "here\n"),
        ("printf 'no newline'", "no newline"),
        ("printf 'x\\033[38;5'; echo; echo yes", "x\nyes\n"),
        ("printf 'x\\033_a\\nyes\\n'", "x\nyes\n"),
        ("printf '\\033[?1049hpaint\\033[2J\\033[?1049lback\\n'", "back\n"),
    ];
    for (command, seen) in table {
        assert_eq!(shell.gives(command).await, (0, seen.to_owned()), "{command}");
    }
    let raw = shell.run("printf 'a\\033[31mb\\rc\\000\\377d\\n'").await;
    assert_eq!(shell.bytes_of(&raw).await, b"a\x1b[31mb\rc\0\xffd\r\n");
}

/// Asks where the cursor is and what the terminal is, and reads everything that comes back.
const ASKER: &str = "import os, select, sys, termios, tty\nbefore = termios.tcgetattr(0)\ntty.setraw(0)\n\
                     os.write(1, b'\\x1b[6n\\x1b[c')\ncame = b''\nwhile select.select([0], [], [], 5 if came.count(b'\\x1b') < 2 else 0.3)[0]:\n  \
                     came += os.read(0, 100)\ntermios.tcsetattr(0, termios.TCSANOW, before)\nprint(came)\n";

#[tokio::test]
// promise: output-5
async fn a_query_to_the_terminal_is_answered_once() {
    let server = Server::start();
    let shell = server.session().await;
    std::fs::write(server.home().file("ask.py"), ASKER).expect("written");
    let expected = regex::Regex::new(r"^b'\\x1b\[\d+;\d+R\\x1b\[\?[\d;]+c'\n$").expect("a pattern");
    let command = shell.begin("python3 ask.py").await;
    let output = shell.end_of(&command).await.output.unwrap_or_default();
    assert!(expected.is_match(&output), "{output:?}");
    // Another server replays the output, and answers nothing again.
    server.kill9();
    server.again();
    assert_eq!(shell.gives("IFS= read -rs -t 0 && echo something was typed").await.0, 1);
}

/// Asks 20,000 times where the cursor is, and reads every answer.
const ASKS_MUCH: &str = "import os, termios, tty\nbefore = termios.tcgetattr(0)\ntty.setraw(0)\nfor i in range(200):\n  \
                         os.write(1, b'\\x1b[6n' * 100)\n  came = 0\n  while came < 100:\n    \
                         came += os.read(0, 4096).count(b'R')\ntermios.tcsetattr(0, termios.TCSANOW, before)\nprint('all')\n";

#[tokio::test]
// promise: output-5
async fn a_program_that_asks_the_terminal_over_and_over_does_not_fill_the_disk() {
    let server = Server::start();
    let shell = server.session().await;
    std::fs::write(server.home().file("asks.py"), ASKS_MUCH).expect("written");
    let events = server.home().state().join("sessions").join(&shell.id).join("events");
    let size = || std::fs::metadata(&events).expect("it is there").len();
    let before = size();
    let (code, output) = shell.gives("python3 asks.py").await;
    assert!(code == 0 && output.ends_with("all\n"), "{output:?}");
    let grown = size() - before;
    assert!(grown < 4096, "{grown} bytes of events for 20,000 answers");
}

#[tokio::test]
async fn characters_survive_every_cut_and_other_bytes_are_escaped() {
    let server = Server::start();
    let shell = server.session().await;
    assert_eq!(
        shell.gives(r"printf '\xf0\x9f'; sleep 0.1; printf '\x98\x80\xc3'; sleep 0.1; printf '\xa9\n'").await.1,
        "😀é\n"
    );
    let odd = shell.run(r"printf 'a\xffb\xc3(\n'").await;
    assert_eq!((odd.output.as_deref(), odd.escaped), (Some("a\\xffb\\xc3(\n"), 2));
    let noise = shell
        .run_as(ExecuteRequest {
            command: format!("head -c {} /dev/urandom", count(65_536, 1 << 20)),
            timeout: Some(30.0),
            ..Default::default()
        })
        .await;
    assert_eq!(noise.exit_code, Some(0), "{noise:?}");
    assert_eq!(shell.gives("echo sane").await, (0, "sane\n".to_owned()));
}

/// Prints one line of 6,000 coloured words.
const COLOURS: &str = "print(''.join('\\x1b[38;5;%dmw%04d\\x1b[0m\\x1b]8;;http://x/%d\\x1b\\\\界\\x1b]8;;\\x1b\\\\ ' % (i % 256, i, i) for i in range(6000)))\n";

#[tokio::test]
// promise: output-4
async fn a_long_line_is_cut_inside_neither_a_sequence_nor_a_character() {
    let server = Server::start();
    let shell = server.session().await;
    std::fs::write(server.home().file("colours.py"), COLOURS).expect("written");
    let done = shell.run("python3 colours.py").await;
    let expected: String = (0..6000).map(|i| format!("w{i:04}界 ")).chain(["\n".to_owned()]).collect();
    let (start, end) = (done.start_offset, done.end_offset.expect("it has ended"));
    for limit in [997, 4096, 10_007, 65_536] {
        let (mut text, mut next) = (String::new(), start);
        while next < end {
            let query = OutputQuery {
                since: Some(format!("o:{next}")),
                max_bytes: Some(limit.min(end - next)),
                kind: Some(api::OutputKind::Command),
                ..Default::default()
            };
            let page = shell.output(&query).await;
            text += &page.text.expect("it is text");
            next = page.next_offset;
        }
        assert!(text == expected, "pages of {limit} bytes: {text:.200}");
    }
    let shown = done.output.expect("it has output");
    let (head, tail) = shown
        .split_once("[…")
        .and_then(|(head, rest)| Some((head, rest.split_once("]\n")?.1)))
        .expect("a part is omitted");
    assert!(expected.starts_with(head.trim_end_matches('\n')), "{head:.200}");
    assert!(expected.ends_with(tail), "{tail:.200}");
}

#[tokio::test]
// promise: output-6
async fn two_readers_at_any_speed_see_the_same_bytes() {
    let server = Server::start();
    let shell = server.session().await;
    let start = shell.look().await.journal.end_offset;
    let reads = async |limit: u64| {
        let mut all = Vec::new();
        let mut next = start;
        while !all.ends_with(b"LAST\r\n") {
            let query = OutputQuery {
                since: Some(format!("o:{next}")),
                max_bytes: Some(limit),
                view: Some(api::OutputView::Raw),
                wait_ms: Some(10_000),
                ..Default::default()
            };
            let output = shell.output(&query).await;
            assert_eq!((output.from_offset, output.gap), (next, None));
            let to = output.next_offset;
            all.extend(shell.bytes(next, to).await);
            next = to;
            // The prompt follows at once.
            if let Some(at) = all.windows(6).position(|window| window == b"LAST\r\n") {
                all.truncate(at + 6);
            }
        }
        all
    };
    let command = async { shell.gives("seq 1 5000; sleep 0.1; seq 1 5000; echo LAST").await };
    let (slow, quick, _) = tokio::join!(reads(997), reads(1 << 20), command);
    assert!(slow == quick, "{} and {} bytes", slow.len(), quick.len());
    let expected = [seq(5_000), seq(5_000), b"LAST\r\n".to_vec()].concat();
    assert!(quick.ends_with(&expected));
}

#[tokio::test]
// promise: output-7
async fn output_is_there_after_the_end() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("echo before the end").await;
    shell.run("echo last words; exit 7").await;
    let check = async || {
        let session = shell.look().await;
        assert_eq!((session.status, session.exit.expect("how").exit_code), (SessionStatus::Terminated, Some(7)));
        // Final once its holder has gone, which on a busy machine takes a moment longer than a reader is kept waiting for.
        let text = eventually("it is final", async || {
            Some(shell.output(&OutputQuery::default()).await).filter(|text| text.is_final)
        });
        let words = text.await.text.expect("the text view");
        assert!(words.contains("before the end\n") && words.contains("last words\n"), "{words}");
        assert_eq!(server.client().commands(&shell.id).await.expect("known").total, 2);
        assert_eq!(
            shell.command("c2").await.output.as_deref().map(|text| text.starts_with("last words\n")),
            Some(true)
        );
        assert_eq!(shell.refusal("true").await, Some(ErrorCode::SessionEnded));
    };
    check().await;
    server.stop();
    server.again();
    check().await;
}
