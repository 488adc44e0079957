//! Searching a session's output: every line once, with its place and its command, quickly.

use api::{ErrorCode, Match, OutputKind, SearchQuery};
use e2e::{Server, Session, count};

fn query(q: &str) -> SearchQuery {
    SearchQuery { q: q.to_owned(), ..SearchQuery::default() }
}

/// The text and the command of each match.
fn brief(matches: &[Match]) -> Vec<(&str, Option<&str>)> {
    matches.iter().map(|m| (m.text.as_str(), m.command_id.as_deref())).collect()
}

async fn stands_there(shell: &Session, found: &Match) {
    let bytes = shell.bytes(found.offset, found.offset + found.text.len() as u64).await;
    assert_eq!(String::from_utf8_lossy(&bytes), found.text, "{found:?}");
}

#[tokio::test]
// promise: output-13
async fn a_search_gives_lines_with_their_place_and_their_command() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("echo needle one; printf '\\033[32mneed\\033[0mle two\\n'; echo hay").await;
    // A job's output after its command's end belongs to no command.
    shell.run("(while [ ! -e go ]; do sleep 0.05; done; echo needle behind; touch gone) &").await;
    shell.gives("touch go; while [ ! -e gone ]; do sleep 0.05; done; echo a needle 3").await;
    let ask = async |query: &SearchQuery| server.client().search(&shell.id, query).await.expect("an answer");
    let check = async || {
        let all = ask(&query("^(a )?needle ..?.?$")).await;
        let expected = [("needle one", Some("c1")), ("needle two", Some("c1")), ("a needle 3", Some("c3"))];
        assert_eq!((brief(&all.matches), all.more, all.gap), (expected.to_vec(), false, None));
        stands_there(&shell, &all.matches[0]).await;
        stands_there(&shell, &all.matches[2]).await;
        let only = ask(&SearchQuery { command_id: Some("c3".into()), ..query("^a needle") }).await;
        assert_eq!(brief(&only.matches), [("a needle 3", Some("c3"))]);
        let given = ask(&SearchQuery { kind: Some(OutputKind::Background), ..query("needle one") }).await;
        let given = brief(&given.matches);
        assert!(
            given.len() == 1 && given[0].0.contains("echo needle one; printf") && given[0].1.is_none(),
            "{given:?}"
        );
        let printed = ask(&SearchQuery { kind: Some(OutputKind::Command), ..query("^echo needle") }).await;
        assert_eq!(printed.matches, [], "a command's own text is not its output");
        let first = ask(&SearchQuery { limit: Some(1), ..query("^needle") }).await;
        assert_eq!((brief(&first.matches), first.more), (vec![("needle one", Some("c1"))], true));
        let rest = SearchQuery { since: Some(format!("o:{}", first.next_offset)), ..query("^needle (one|two)") };
        assert_eq!(brief(&ask(&rest).await.matches), [("needle two", Some("c1"))]);
    };
    check().await;
    server.kill9();
    server.again();
    check().await;
    shell.ends().await;
    check().await;
    for (wrong, code) in [
        (query("("), ErrorCode::InvalidField),
        (SearchQuery { limit: Some(0), ..query("a") }, ErrorCode::InvalidField),
        (SearchQuery { since: Some("o:999999999".into()), ..query("a") }, ErrorCode::InvalidField),
        (SearchQuery { command_id: Some("c99".into()), ..query("a") }, ErrorCode::CommandNotFound),
    ] {
        let refused = server.client().search(&shell.id, &wrong).await.expect_err("refused");
        assert_eq!(refused.code(), Some(code), "{wrong:?}: {refused}");
    }
}

#[tokio::test]
// promise: output-13
async fn a_long_search_finds_every_line_in_time_and_in_bounded_memory() {
    let server = Server::start();
    let shell = server.session().await;
    // 64 MB with the full count.
    let lines = count(500_000, 5_300_000);
    let flood = shell.begin(&format!("seq -f 'line %.0f' 1 {lines}")).await;
    shell.end_of(&flood).await;
    let before = e2e::footprint(server.pid()).resident_bytes;
    let begun = std::time::Instant::now();
    let found = server.client().search(&shell.id, &query("^line [0-9]*99999$")).await.expect("an answer");
    let took = begun.elapsed();
    let expected: Vec<String> = (1..=lines / 100_000).map(|n| format!("line {}", n * 100_000 - 1)).collect();
    assert_eq!(found.matches.iter().map(|m| m.text.clone()).collect::<Vec<_>>(), expected);
    let grown = e2e::footprint(server.pid()).resident_bytes.saturating_sub(before);
    println!("{} bytes in {took:?}, {} KiB", found.end_offset, grown >> 10);
    assert!(grown < 16 << 20, "memory grew by {} KiB", grown >> 10);
}

#[tokio::test]
async fn the_command_line_searches_too() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("seq 1 2500").await;
    let output =
        server.ptyd(&["search", &shell.id, "^.*7$", "--kind", "command"]).output().expect("it can be executed");
    let expected: String = (1..=2_500).filter(|n| n % 10 == 7).map(|n| format!("c1: {n}\n")).collect();
    assert_eq!((String::from_utf8_lossy(&output.stdout), output.status.code()), (expected.into(), Some(0)));
    // Some terminals would obey what a program has printed.
    shell.run(r"printf 'a\302\23331mb\n'").await;
    let output =
        server.ptyd(&["search", &shell.id, "31mb$", "--kind", "command"]).output().expect("it can be executed");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "c2: a\\u{9b}31mb\n");
}
