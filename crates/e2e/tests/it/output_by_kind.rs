//! Output by kind and by command: what a read, a long poll and a stream of events give, and what they refuse.

use api::{ErrorCode, Output, OutputKind, OutputQuery};
use e2e::{Server, eventually};

fn query(kind: OutputKind) -> OutputQuery {
    OutputQuery { kind: Some(kind), ..OutputQuery::default() }
}

#[tokio::test]
// promise: output-12
async fn stretches_of_both_kinds_are_all_the_output_and_each_has_only_its_own() {
    let server = Server::start();
    let shell = server.session().await;
    for word in ["one", "two", "three"] {
        shell.gives(&format!("echo {word}")).await;
    }
    let mut stretches = Vec::new();
    let mut texts = [Vec::new(), Vec::new()];
    for (i, kind) in [OutputKind::Command, OutputKind::Background].into_iter().enumerate() {
        let mut since = Some("o:0".to_owned());
        while let Some(from) = since.take() {
            let output = shell.output(&OutputQuery { since: Some(from), ..query(kind) }).await;
            if output.from_offset < output.next_offset {
                stretches.push((output.from_offset, output.next_offset));
                texts[i].push(output.text.expect("text"));
                since = Some(format!("o:{}", output.next_offset));
            }
        }
    }
    assert_eq!(texts[0], ["one\n", "two\n", "three\n"]);
    let prompts = texts[1].concat();
    assert!(prompts.contains("echo three") && !prompts.lines().any(|line| line == "three"), "{prompts:?}");
    stretches.sort_unstable();
    let end = shell.output(&OutputQuery::default()).await.end_offset;
    let (mut at, mut marks) = (0, 0);
    for (from, to) in stretches {
        marks += usize::from(from != at);
        at = to;
    }
    assert_eq!((at, marks), (end, 0), "nothing is left out and nothing is in both");
    shell.ends().await;
    let ended = shell.output(&query(OutputKind::Command)).await;
    assert_eq!((ended.text.as_deref(), ended.is_final), (Some("one\n"), false), "the ended session tells the same");
}

#[tokio::test]
// promise: output-12
async fn a_long_poll_for_a_kind_waits_for_output_of_that_kind() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("mkfifo pipe; echo before").await;
    let end = shell.output(&OutputQuery::default()).await.end_offset;
    let since = Some(format!("o:{end}"));
    let waiting = OutputQuery { since: since.clone(), wait_ms: Some(20_000), ..query(OutputKind::Command) };
    let (other, writer) = (shell.clone(), server.session().await);
    let (found, ..) = tokio::join!(
        shell.output(&waiting),
        // Neither a line typed at the prompt nor bytes without text may end the wait.
        other.gives("printf '\\e[1m'; cat pipe"),
        async {
            eventually("its bytes are there", async || (shell.look().await.journal.end_offset > end + 4).then_some(()))
                .await;
            eventually("it runs", async || shell.look().await.current_command).await;
            writer.gives("echo after >pipe").await
        }
    );
    assert_eq!(found.text.as_deref(), Some("after\n"));
    let silent = OutputQuery { since, wait_ms: Some(100), ..query(OutputKind::Command) };
    let ended = shell.output(&OutputQuery { since: Some(format!("o:{}", found.next_offset)), ..silent }).await;
    assert_eq!((ended.text.as_deref(), ended.from_offset), (Some(""), ended.end_offset));
}

#[tokio::test]
// promise: output-12
async fn a_long_poll_for_a_command_returns_no_later_output() {
    let server = Server::start();
    let shell = server.session().await;
    let quiet = shell.begin("read -s answer").await;
    let of_command =
        OutputQuery { command_id: Some(quiet.id.clone()), wait_ms: Some(20_000), ..OutputQuery::default() };
    let other = shell.clone();
    let (found, _) = tokio::join!(shell.output(&of_command), other.types("secret"));
    let done = shell.command(&quiet.id).await;
    // It has printed nothing, and the prompt behind it is not its own.
    assert_eq!((found.text.as_deref(), Some(found.next_offset)), (Some(""), done.end_offset));
    // A command without output has nothing to wait for once it has ended.
    let silent = shell.run("true").await;
    let of_command = OutputQuery { wait_ms: Some(3_600_000), ..of_command };
    let nothing = shell.output(&OutputQuery { command_id: Some(silent.id), ..of_command }).await;
    assert_eq!((nothing.text.as_deref(), nothing.from_offset == nothing.next_offset), (Some(""), true));
}

#[tokio::test]
// promise: output-12
async fn filters_that_do_not_go_together_are_refused_by_field() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("true").await;
    let http = &mut server.connect();
    let at = format!("/terminals/{}/output", shell.id);
    let refused = |field: &str| (422, ErrorCode::InvalidField.as_str().to_owned(), field.to_owned());
    for (query, field) in [
        ("?kind=command&commandId=c1", "kind"),
        ("?kind=command&view=screen", "kind"),
        ("?since=o:0&commandId=c1", "since"),
        ("?kind=stdout", "kind"),
        ("/stream?commandId=c1", "commandId"),
        ("/stream?maxLines=1", "maxLines"),
        ("/stream?view=screen", "view"),
        ("/stream?maxBytes=65537", "maxBytes"),
        ("/stream?waitMs=15001", "waitMs"),
    ] {
        let reply = http.ask("GET", &format!("{at}{query}"), "").expect("an answer");
        assert_eq!(reply.problem(), refused(field), "{query}");
    }
}

#[tokio::test]
// promise: output-12
async fn a_stream_of_events_keeps_to_its_kind() {
    let server = Server::start();
    let shell = server.session().await;
    shell.gives("echo one").await;
    shell.gives("echo two").await;
    shell.ends().await;
    let http = &mut server.connect();
    let path = format!("/terminals/{}/output/stream?kind=command", shell.id);
    let reply = http.ask("GET", &path, "").expect("an answer");
    let body = String::from_utf8(reply.body).expect("text");
    let outputs = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let outputs: Vec<Output> = outputs.map(|data| serde_json::from_str(data).expect("an output")).collect();
    let texts: Vec<_> = outputs.iter().map(|output| output.text.clone().unwrap_or_default()).collect();
    assert_eq!(texts, ["one\n", "two\n", ""], "and then the end");
    assert_eq!(outputs.iter().map(|output| output.is_final).collect::<Vec<_>>(), [false, false, true]);
}
