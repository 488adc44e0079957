//! The grammar of answers, whole texts at a time: every form that docs/text-format.md shows is here.

use std::time::SystemTime;

use super::*;
use crate::mcp::host::Host;
use crate::mcp::reported_state::ReportedState;
use crate::mcp::test_support::{command, constant, report as done};
use ptyd_core::action::{ConfinementTier, Enforcer, KeptLimit, Limit, MaskedText, MissedEnd, SessionExit, Span, Tools};

fn host() -> Host {
    Host { user: "alice".to_owned(), name: "box".to_owned() }
}

fn python(path: &str) -> Tools {
    Tools { python: Some(path.into()), ..Tools::default() }
}

/// The text for a caller that knows the session, ten seconds after the epoch.
fn rendered(what: &Report) -> String {
    let (host, shown) = (host(), reported());
    report(what, &context(&host, Some(&shown)))
}

fn reported() -> ReportedState {
    ReportedState { cwd: "/app".into(), tools: python("/usr/bin/python3"), running: None, screen: None, password: None }
}

fn context<'a>(host: &'a Host, shown: Option<&'a ReportedState>) -> AnswerContext<'a> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(10);
    AnswerContext {
        host,
        shown,
        now,
        quiet: None,
        names_command: false,
        has_read_tool: true,
        password: PasswordPlace::Told,
    }
}

fn running(foreground: Foreground, ended_by: EndedBy, output: &str) -> Report {
    let mut report = done(output);
    report.session.foreground = foreground;
    report.ended_by = ended_by;
    report.command = Some(CommandView {
        status: CommandStatus::Running,
        exit_code: None,
        completed_at: None,
        lasted: None,
        ..command()
    });
    report
}

fn with(report: &Report, change: impl FnOnce(&mut Report)) -> Report {
    let mut changed = report.clone();
    change(&mut changed);
    changed
}

#[test]
fn a_result_is_the_output_and_then_only_unusual_facts() {
    assert_eq!(rendered(&done("hi\n")), "hi\n[exit 0]");
    assert_eq!(rendered(&done("no newline")), "no newline\n[exit 0 · no newline at the end]");
    assert_eq!(rendered(&done("")), "[exit 0]");
}

#[test]
// promise: shell-7
fn changes_since_the_last_answer_are_facts() {
    let mut report = done("");
    report.session.cwd = "/srv/a\nb".into();
    report.session.tools = python("/app/.venv/bin/python");
    let command = report.command.as_mut().expect("one");
    command.exit_code = Some(2);
    command.lasted = Some(Duration::from_millis(3_400));
    assert_eq!(rendered(&report), "[exit 2 · 3.4s · cwd /srv/a\\nb · python /app/.venv/bin/python]");
    report.session.tools.python = None;
    report.session.tools.node = Some("/opt/node".into());
    assert_eq!(rendered(&report), "[exit 2 · 3.4s · cwd /srv/a\\nb · python none · node /opt/node]");
}

#[test]
fn the_first_answer_of_a_session_has_the_whole_metadata() {
    let host = host();
    let whole = "session s0-k3v9q2m7xa · pid 4711 · user alice · host box · cwd /app · python /usr/bin/python3";
    assert_eq!(report(&done("hi\n"), &context(&host, None)), format!("hi\n[exit 0 · {whole}]"));
}

#[test]
fn signals_and_failed_parts_of_a_pipeline_are_named() {
    let interrupted = with(&done(""), |r| {
        let command = r.command.as_mut().expect("one");
        (command.exit_code, command.signal) = (Some(130), Some(2));
    });
    assert_eq!(rendered(&interrupted), "[exit 130 · INT]");
    let piped = with(&done(""), |r| r.command.as_mut().expect("one").pipestatus = vec![1, 0]);
    assert_eq!(rendered(&piped), "[exit 0 · pipestatus 1|0]");
}

#[test]
fn a_limit_that_a_command_reached_is_named_with_its_effect() {
    let with_limit = |limit, value| {
        with(&done(""), |r| {
            r.command.as_mut().expect("one").limits_hit = vec![limit];
            r.session.limits = vec![KeptLimit { limit, value, enforcer: Enforcer::Server }];
        })
    };
    assert_eq!(rendered(&with_limit(Limit::MemoryMb, 256.0)), "[exit 0 · hit its limit memoryMb 256]");
    let slowed = with_limit(Limit::OutputMbPerSecond, 0.1);
    assert_eq!(rendered(&slowed), "[exit 0 · was slowed down by its limit outputMbPerSecond 0.1]");
}

#[test]
fn a_wanted_password_says_where_a_person_types_it() {
    let (host, shown) = (host(), reported());
    let asks = running(Foreground::PasswordWanted, EndedBy::InputWanted, "");
    let said = |password| {
        let context = AnswerContext { password, ..context(&host, Some(&shown)) };
        report(&asks, &context).rsplit(" · ").next().unwrap_or_default().to_owned()
    };
    assert_eq!(said(PasswordPlace::Told), "wants a password]");
    assert_eq!(
        said(PasswordPlace::Page("http://127.0.0.1:7893/ask/AbC".to_owned())),
        "wants a password: a person types it at http://127.0.0.1:7893/ask/AbC or with ptyd send --secret s0-k3v9q2m7xa; do \
         not ask for it here]"
    );
    assert_eq!(
        said(PasswordPlace::CommandLine),
        "wants a password: a person types it with ptyd send --secret s0-k3v9q2m7xa; do not ask for it here]"
    );
}

#[test]
fn the_answer_for_a_running_command_says_why_the_wait_ended_and_where() {
    let asks = running(Foreground::PasswordWanted, EndedBy::InputWanted, "Password: ");
    assert_eq!(
        rendered(&asks),
        "Password: \n[still running · 10s · session s0-k3v9q2m7xa · command c7 · wants a password]"
    );
    let stopped = running(Foreground::Stopped, EndedBy::Stopped, "");
    assert_eq!(
        rendered(&stopped),
        "[still running · 10s · session s0-k3v9q2m7xa · command c7 · stopped; kill -CONT resumes it]"
    );
    let late = running(Foreground::Running, EndedBy::TimedOut, "");
    assert_eq!(rendered(&late), "[still running · 10s · session s0-k3v9q2m7xa · command c7 · timeout]");
    let ready =
        with(&running(Foreground::Running, EndedBy::Matched, "ready\n"), |r| r.matched = Some("re\"ady\n".into()));
    assert_eq!(
        rendered(&ready),
        "ready\n[still running · 10s · session s0-k3v9q2m7xa · command c7 · matched \"re\\\"ady\\n\"]"
    );
    let (host, shown) = (host(), reported());
    let soft = AnswerContext { quiet: Some(Duration::from_secs(30)), ..context(&host, Some(&shown)) };
    assert_eq!(
        report(&running(Foreground::Running, EndedBy::Quiet, ""), &soft),
        "[still running · 10s · session s0-k3v9q2m7xa · command c7 · no new output for 30s]"
    );
}

#[test]
fn an_end_that_nobody_attested_says_so() {
    let guessed = with(&done(""), |r| {
        let command = r.command.as_mut().expect("one");
        (command.exit_code, command.boundary) = (None, Boundary::Heuristic);
    });
    assert_eq!(rendered(&guessed), "[ended, exit code unknown · boundary heuristic]");
    let failed = with(&done(""), |r| {
        let command = r.command.as_mut().expect("one");
        (command.exit_code, command.status, command.error) =
            (None, CommandStatus::Failed, Some("incomplete command".to_owned()));
    });
    assert_eq!(rendered(&failed), "[failed: incomplete command]");
}

#[test]
fn a_dead_shell_is_reported_with_the_cause() {
    let dead = with(&done("bye\n"), |r| {
        r.session.status = SessionStatus::Terminated;
        r.session.exit = Some(SessionExit {
            code: Some(3),
            signal: None,
            reason: "the shell exited".to_owned(),
            at: SystemTime::UNIX_EPOCH,
        });
        r.command.as_mut().expect("one").status = CommandStatus::Terminated;
    });
    assert_eq!(rendered(&dead), "bye\n[session ended · exit 3 · the shell exited]");
}

#[test]
// promise: output-3
fn omitted_output_is_counted_and_named_with_the_call_that_reads_it() {
    let cut = with(&done(""), |r| {
        let omitted = Omitted { freed: 0, first_line: 121, last_line: 1904, from: 1234, to: 49_447 };
        r.output =
            TextView { head: "first\n".into(), omitted: Some(omitted), tail: "last\n".into(), ..TextView::default() };
    });
    assert_eq!(
        rendered(&cut),
        "first\n[… 48,213 bytes omitted: lines 121–1904; get_terminal_output {\"session_id\":\"s0-k3v9q2m7xa\",\
         \"command_id\":\"c7\",\"since\":\"o:1234\"}]\nlast\n[exit 0]"
    );
    let freed = with(&cut, |r| {
        r.output.head.truncate(0);
        let omitted = Omitted { freed: 1_000, first_line: 0, last_line: 0, from: 1234, to: 49_447 };
        r.output.omitted = Some(omitted);
    });
    assert_eq!(
        rendered(&freed),
        "[… 48,213 bytes omitted: the first 1,000 are no longer kept; get_terminal_output {\"session_id\":\"s0-k3v9q2m7xa\",\
         \"command_id\":\"c7\",\"since\":\"o:2234\"}]\nlast\n[exit 0]"
    );
    let all = with(&freed, |r| r.output.omitted.as_mut().expect("one").freed = 48_213);
    assert_eq!(rendered(&all), "[… 48,213 bytes omitted: no longer kept]\nlast\n[exit 0]");
    let (host, shown) = (host(), reported());
    let without = AnswerContext { has_read_tool: false, ..context(&host, Some(&shown)) };
    assert_eq!(
        report(&cut, &without),
        "first\n[… 48,213 bytes omitted: lines 121–1904; bytes 1234–49447 of /state/sessions/s0/journal]\nlast\n[exit 0]"
    );
    let confined = with(&cut, |r| r.session.confinement = Some(ConfinementTier::Sandbox));
    assert_eq!(
        report(&confined, &without),
        "first\n[… 48,213 bytes omitted: lines 121–1904; bytes 1234–49447 of /state/sessions/s0/journal, which a confined \
         session cannot read: send long output to a file of your own]\nlast\n[exit 0]"
    );
}

#[test]
fn text_that_a_person_would_not_have_seen_is_counted() {
    let odd = with(&done("a\u{202e}b\n"), |r| {
        r.output.unseen = HiddenText { concealed: 12, links: 1, clipboard: 2, unfinished: 9 };
    });
    assert_eq!(
        rendered(&odd),
        "a\\u{202e}b\n[exit 0 · 1 invisible character shown as \\u{…} · 12 characters were concealed from people · \
         1 link target not shown · 2 clipboard writes not shown · 9 bytes of unfinished sequences not shown]"
    );
}

#[test]
// promise: output-9
fn binary_output_is_summarized_with_the_call_that_returns_it() {
    let picture = with(&done(""), |r| {
        let head = constant("\\x89PNG".repeat(99) + "\\x89");
        r.output = TextView { head, escaped: 100, from: 7, to: 50_007, ..TextView::default() };
    });
    let beginning = "\\\\x89PNG".repeat(5) + "\\\\x89P";
    let how = r#"get_terminal_output {"session_id":"s0-k3v9q2m7xa","since":"o:7","view":"raw"}"#;
    assert_eq!(
        rendered(&picture),
        format!("[… 50,000 bytes of binary output, beginning \"{beginning}\"; {how}]\n[exit 0]")
    );
    // A program's output before and after it is not part of it.
    let among = with(&picture, |r| r.output.head = constant(format!("saved\nto: {}done\nbye\n", r.output.head)));
    let beginning = format!("to: {}\\\\", "\\\\x89PNG".repeat(5));
    assert_eq!(
        rendered(&among),
        format!("saved\n[… binary output among 50,000 bytes, beginning \"{beginning}\"; {how}]\ndone\nbye\n[exit 0]")
    );
    // If text is omitted, both ends are exact.
    let cut = with(&picture, |r| {
        r.output.omitted = Some(Omitted { freed: 0, first_line: 1, last_line: 9, from: 107, to: 40_107 });
        r.output.tail = "the end\n".into();
    });
    let told_cut = rendered(&cut);
    assert!(told_cut.starts_with("[… binary output among 100 bytes, beginning"), "{told_cut}");
    assert!(told_cut.ends_with("]\nthe end\n[exit 0]"), "{told_cut}");
    let ends = with(&cut, |r| std::mem::swap(&mut r.output.head, &mut r.output.tail));
    assert!(rendered(&ends).starts_with("the end\n[… 40,000 bytes omitted"), "{}", rendered(&ends));
    assert!(rendered(&ends).contains("]\n[… binary output among 9,900 bytes, beginning"), "{}", rendered(&ends));
    let all = with(&cut, |r| r.output.tail = r.output.head.clone());
    assert!(rendered(&all).starts_with("[… 50,000 bytes of binary output, beginning"), "{}", rendered(&all));
}

#[test]
fn a_full_screen_program_is_its_rows_and_its_cursor() {
    let vim = with(&running(Foreground::Fullscreen, EndedBy::Quiet, ""), |r| {
        r.screen = Some(ScreenView {
            rows: ["hello", "", "~", ""].map(MaskedText::from).to_vec(),
            cursor_row: 0,
            cursor_col: 4,
            cursor_visible: true,
            title: "vim\x1b]0".into(),
            cols: 80,
            inverse: Vec::new(),
            marks: Vec::new(),
            is_title_new: true,
            changed: None,
            moved: None,
            is_alternate: true,
            painter: Default::default(),
            ansi: Vec::new(),
            at: 5,
        });
    });
    assert_eq!(
        rendered(&vim),
        "hello\n\n~\n[still running · 10s · session s0-k3v9q2m7xa · command c7 · full-screen · screen 80×4 · cursor row 1 \
         column 5 · title \"vim\\e]0\"]"
    );
    let typed = with(&vim, |r| {
        let screen = r.screen.as_mut().expect("one");
        screen.rows = ["one", "two", "three", "four", "five"].map(MaskedText::from).to_vec();
        (screen.changed, screen.is_title_new) = (Some(vec![1, 4]), false);
        screen.inverse = [0, 1].map(|row| Span { row, col: 0, bytes: 0..2 }).to_vec();
    });
    let (host, mut shown) = (host(), reported());
    assert_eq!(
        rendered(&typed),
        "2: two\n5: five\n[still running · 10s · session s0-k3v9q2m7xa · command c7 · full-screen · cursor row 1 column 5 · \
         inverse row 2 \"tw\" · only changed rows]"
    );
    shown.running = Some(CommandId(7));
    let still = with(&typed, |r| r.screen.as_mut().expect("one").changed = Some(Vec::new()));
    assert_eq!(
        report(&still, &context(&host, Some(&shown))),
        "[still running · full-screen · cursor row 1 column 5 · no row changed]"
    );
    let asks = running(Foreground::InputWanted, EndedBy::InputWanted, "7\n>>> ");
    assert_eq!(report(&asks, &context(&host, Some(&shown))), "7\n>>> \n[still running · wants input]");
    let waits = with(&vim, |r| r.ended_by = EndedBy::InputWanted);
    assert!(rendered(&waits).contains(" · full-screen · wants input · screen 80×4"), "{}", rendered(&waits));
}

#[test]
fn the_terminal_tool_reports_the_state_after_a_call_that_ran_nothing() {
    let (host, shown) = (host(), reported());
    let tell = |look, fresh| {
        let view = TerminalView {
            report: done("late\n"),
            fresh,
            look: Some(look),
            missed: Vec::new(),
            soft_timeout: ptyd_core::limits::SOFT_TIMEOUT,
        };
        terminal(&view, &context(&host, Some(&shown)))
    };
    assert_eq!(tell(Look::Idle, None), "late\n[idle · last exit 0]");
    assert_eq!(tell(Look::NothingToInterrupt, None), "late\n[nothing runs; nothing was sent · last exit 0]");
    assert_eq!(
        tell(Look::Reset, Some(Fresh::Reset(Some("sleep 60".to_owned())))),
        "late\n[terminal reset: all previous state is lost · killed \"sleep 60\"]"
    );
    let busy = with(&done(""), |r| {
        let command = r.command.as_mut().expect("there is one");
        (command.command, command.exit_code) = ("make -j8".to_owned(), Some(2));
        (command.start_offset, command.end_offset) = (100, Some(2_000));
    });
    let missed = |read_to, unread: Option<&str>| {
        let unread = unread.map(|text| TextView { head: constant(text), ..TextView::default() });
        let (session, command) = (busy.session.clone(), busy.command.clone().expect("above"));
        let missed = MissedEnd { session, command, read_to, unread };
        let view = TerminalView {
            report: done("hi\n"),
            fresh: None,
            look: None,
            missed: vec![missed],
            soft_timeout: ptyd_core::limits::SOFT_TIMEOUT,
        };
        terminal(&view, &context(&host, Some(&shown)))
    };
    assert_eq!(
        missed(1_000, None),
        "hi\n[exit 0 · command c7 \"make -j8\" has ended: exit 2, 1,000 bytes not read: get_terminal_output \
         {\"session_id\":\"s0-k3v9q2m7xa\",\"command_id\":\"c7\",\"since\":\"o:1000\"}]"
    );
    assert_eq!(
        missed(1_990, Some("two\nlines")),
        "two\nlines\nhi\n[exit 0 · command c7 \"make -j8\" has ended: exit 2, its output is lines 1–2, no newline at the end]"
    );
    assert_eq!(missed(2_000, None), "hi\n[exit 0 · command c7 \"make -j8\" has ended: exit 2]");
    let revived = TerminalView {
        report: done("hi\n"),
        fresh: Some(Fresh::Ended { session: done("").session.id, how: "exit 3".to_owned(), keeps_cwd: false }),
        look: None,
        missed: Vec::new(),
        soft_timeout: ptyd_core::limits::SOFT_TIMEOUT,
    };
    assert_eq!(
        terminal(&revived, &context(&host, Some(&shown))),
        "hi\n[exit 0 · fresh shell, all state is lost: the last one ended (exit 3)]"
    );
}

#[test]
fn answers_name_a_cancelled_call_typing_at_the_prompt_a_gone_directory_and_a_cut_pipeline() {
    let given_up = with(&running(Foreground::Running, EndedBy::TimedOut, ""), |r| r.is_given_up = true);
    assert_eq!(rendered(&given_up).matches(" · its call was cancelled: C-c ends it · timeout]").count(), 1);
    let typed = with(&done("hi\n"), |r| r.is_typed_at_prompt = true);
    assert_eq!(rendered(&typed), "hi\n[exit 0 · typed at the shell's prompt]");
    let line = with(&done("hi\n"), |r| (r.command, r.line_exit, r.is_typed_at_prompt) = (None, Some(3), true));
    assert_eq!(rendered(&line), "hi\n[idle · exit 3 of the last typed line · typed at the shell's prompt]");
    let gone = with(&done(""), |r| r.session.is_cwd_gone = true);
    assert_eq!(rendered(&gone), "[exit 0 · cwd is gone]");
    let cut = |text: &str, codes: &[i32]| {
        rendered(&with(&done(""), |r| {
            let command = r.command.as_mut().expect("there is one");
            (command.command, command.exit_code) = (text.to_owned(), codes.last().copied());
            (command.signal, command.pipestatus) = (Some(15), codes.to_vec());
        }))
    };
    let fact = " · timeout ended the whole pipeline: run it as bash -c '…' to keep the output";
    assert_eq!(cut("timeout 2 make | tail | cat", &[124, 143, 143]), format!("[exit 143 · TERM{fact}]"));
    for (text, codes) in [("timeout 2 make", &[143][..]), ("timeout 2 a | b", &[0, 143]), ("a | b", &[124, 143])] {
        assert!(!cut(text, codes).contains("pipeline"), "{text}");
    }
}
