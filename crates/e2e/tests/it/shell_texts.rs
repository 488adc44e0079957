//! Input and output of every shell: texts of any shape, secrets, noise, and disturbing settings.

use api::{Boundary, CommandStatus, EndedBy, ErrorCode, ExecuteRequest, Foreground, InputRequest, WaitRequest};
use e2e::shells::{Dialect, Trial, each};
use e2e::{count, eventually, passes};

#[tokio::test]
// promise: send-1
async fn every_byte_of_a_text_arrives() {
    each("7 every byte of a command arrives", async |t| {
        let line = "0123456789abcde\n";
        for text in [
            "\tleading\ttab\n".to_owned(),
            "!! !$ !echo a!b ^a^b^\n".to_owned(),
            "dos\r\nline\r\n".to_owned(),
            "a trailing backslash\\\n".to_owned(),
            "äöü € 𝄞 \u{301} it's\n".to_owned(),
            "x".repeat(6_000) + "\n",
            line.repeat((1 << 20) / line.len() - 100),
        ] {
            let shown: String = text.chars().take(20).collect();
            let command = if t.dialect.is_fish() {
                format!("printf %s {} > arrived", t.dialect.quoted(&text))
            } else {
                format!("cat > arrived <<'END'\n{text}END")
            };
            assert_eq!(t.gives(&command).await, t.is(0, ""), "{shown:?}");
            let arrived = std::fs::read_to_string(t.folder.join("arrived")).expect("written");
            let of = (arrived.len(), text.len());
            assert!(arrived == text, "{:?}: {shown:?}: {of:?} bytes arrived", t.dialect);
        }
    })
    .await;
}

async fn tells(t: &Trial<'_>, command: &str) -> (CommandStatus, Option<i32>, String) {
    let done = t.shell.run(command).await;
    (done.status, done.exit_code, done.output.unwrap_or_default())
}

/// An unfinished text is refused at once, has not succeeded, and leaves a shell that works.
async fn is_refused(t: &Trial<'_>, unfinished: &str) {
    let done = t.shell.run(unfinished).await;
    let told = (done.status, done.error.as_deref().is_some_and(|e| e.contains("incomplete")));
    assert_eq!(told, (CommandStatus::Failed, true), "{:?}: {unfinished:?}: {done:?}", t.dialect);
    assert_eq!(t.gives("echo next").await, t.is(0, "next\n"), "after {unfinished:?}");
}

#[tokio::test]
// promise: send-3, shell-1
async fn a_text_of_any_shape_ends_and_leaves_a_usable_shell() {
    each("8 commands of many lines and unusual forms", async |t| {
        let done = |output: &str| (CommandStatus::Completed, Some(0), output.to_owned());
        let fish = t.dialect.is_fish();
        if !fish {
            assert_eq!(tells(t, "cat <<X\n\tone\nX\necho two").await, done("\tone\ntwo\n"), "{:?}", t.dialect);
        }
        let each = if fish { "for i in 1 2\n  echo $i\nend" } else { "for i in 1 2; do\n  echo $i\ndone" };
        assert_eq!(tells(t, each).await, done("1\n2\n"), "{:?}", t.dialect);
        assert_eq!(tells(t, "echo one; \\\necho two").await, done("one\ntwo\n"), "{:?}", t.dialect);
        assert_eq!(tells(t, "echo one\necho two\n\n").await, done("one\ntwo\n"), "{:?}", t.dialect);
        assert_eq!(tells(t, "echo one # and no more").await, done("one\n"), "{:?}", t.dialect);
        assert_eq!(tells(t, "# nothing").await.1, Some(0), "{:?}", t.dialect);
        let open = if fish { "if true" } else { "if true; then" };
        let more: &[_] = if fish { &["echo ("] } else { &["(", "case x in"] };
        for unfinished in [open, "echo 'open", "true &&", "echo x |"].iter().chain(more) {
            // fish takes `&&` and a line end for a whole line.
            if !(fish && *unfinished == "true &&") {
                is_refused(t, unfinished).await;
            }
        }
        let wrong = if fish { "end" } else { "fi" };
        let (_, code, output) = tells(t, wrong).await;
        assert!(code != Some(0) && !output.is_empty(), "{:?}: {output:?}", t.dialect);
        assert_eq!(t.gives("echo next").await, t.is(0, "next\n"));
        // Last, because the shell reports its end at any time.
        let (status, code, _) = tells(t, "sleep 0.1 &").await;
        assert_eq!((status, code), (CommandStatus::Completed, Some(0)), "{:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
async fn an_unfinished_here_document_is_refused() {
    each("8 an unfinished here-document is refused", async |t| is_refused(t, "cat <<X\nnever closed").await).await;
}

#[tokio::test]
async fn background_output_is_not_a_commands_output() {
    each("10 background output", async |t| {
        t.gives("mkfifo gate").await;
        let late = t.dialect.background("read -r line <gate; echo $line");
        let (_, code, output) = t.gives(&format!("{late} echo hi")).await;
        assert_eq!((code, output.ends_with("hi\n")), (0, true), "{:?}: {output:?}", t.dialect);
        // The job has waited for this: the command's answer came first.
        passes(t.folder.join("gate"), "late\n").await;
        eventually("late is in the journal", async || {
            String::from_utf8_lossy(&t.shell.journal().await).contains("late\r\n").then_some(())
        })
        .await;
        let commands = t.server.client().commands(&t.shell.id).await.expect("known").commands;
        for command in commands {
            let output = t.shell.command(&command.id).await.output.unwrap_or_default();
            assert!(!output.contains("late"), "{:?}: {output:?}", t.dialect);
        }
    })
    .await;
}

#[tokio::test]
async fn lines_go_to_a_program_and_names_of_keys_are_commands() {
    each("13 input to programs that read lines, and keys by name", async |t| {
        let python = t.shell.run_until("python3 -q -i -c pass", ">>> ").await;
        for line in ["def f(x):", "    return x + 1", "", "f(41)"] {
            t.shell.sends(format!("{line}\r").as_bytes()).await;
        }
        let answer = WaitRequest { wait_for: Some(r"42\n>>> $".to_owned()), timeout: Some(20.0), ..Default::default() };
        t.shell.wait(&answer).await;
        t.shell.sends(b"\x04").await;
        assert_eq!(t.shell.end_of(&python).await.exit_code, Some(0), "{:?}", t.dialect);
        for name in ["up", "tab"] {
            t.shell.gives(&t.dialect.function(name, &format!("ran {name}"))).await;
            assert_eq!(t.gives(name).await, t.is(0, &format!("ran {name}\n")));
        }
    })
    .await;
}

#[tokio::test]
// promise: send-5, send-6
async fn a_typed_secret_is_in_no_output_and_no_record() {
    each("14 typed secrets", async |t| {
        let secret = format!("hunter2-{}", t.dialect.name());
        let asked = t.shell.run(t.dialect.ask_secret()).await;
        let told = (asked.foreground, asked.output.as_deref());
        assert_eq!(told, (Some(Foreground::PasswordWanted), Some("Password: ")), "{:?}", t.dialect);
        let answer = t.shell.types(&secret).await;
        assert_eq!(answer.output, format!("\n{}\n", secret.len()), "{:?}", t.dialect);
        // A program that a person has started asks for one, too.
        let asks = "sh -c 'stty -echo; echo Secret:; read x; stty echo; echo ${#x} given'\r";
        let by_hand = |text: &str, words: &str| InputRequest {
            input: Some(text.to_owned()),
            wait_for: Some(words.to_owned()),
            timeout: Some(20.0),
            ..InputRequest::default()
        };
        t.shell.input(&by_hand(asks, "^Secret:")).await;
        let given = t.shell.input(&by_hand(&format!("{secret}\r"), r"^\d+ given")).await;
        assert_eq!(given.matched, Some(format!("{} given", secret.len())), "{:?}: {given:?}", t.dialect);
        let session = t.server.home().state().join("sessions").join(&t.shell.id);
        for file in ["journal", "events"] {
            let bytes = std::fs::read(session.join(file)).expect("there");
            assert!(!bytes.windows(secret.len()).any(|w| w == secret.as_bytes()), "{:?}: {file}", t.dialect);
        }
    })
    .await;
}

/// Asks where the cursor is, and prints what comes back.
const ASKER: &str = "import os, select, termios, tty\nold = termios.tcgetattr(0)\ntty.setraw(0)\nos.write(1, b'\\x1b[6n')\n\
                     came = b''\nwhile select.select([0], [], [], None if not came else 0.2)[0]: came += os.read(0, 100)\n\
                     termios.tcsetattr(0, termios.TCSANOW, old)\nprint(came.count(b'R'), len(came) < 12)\n";

#[tokio::test]
// promise: shell-11
async fn noisy_output_appears_as_a_person_would_see_it() {
    each("16 noisy output", async |t| {
        for (command, seen) in [
            ("sh -c 'for i in $(seq 1000); do printf \"\\rprogress %d\" $i; done; echo'", "progress 1000\n"),
            (r"printf 'abc\b\bX\n'", "aXc\n"),
            (r"printf '\033[31mred\033[0m plain\n'", "red plain\n"),
            (r"printf '\033]0;a title\007shown\n'", "shown\n"),
            ("printf 'no newline'", "no newline"),
        ] {
            assert_eq!(t.gives(command).await, t.is(0, seen), "{command}");
        }
        std::fs::write(t.folder.join("ask.py"), ASKER).expect("written");
        assert_eq!(t.gives("python3 ask.py").await, t.is(0, "1 True\n"));
        // The screen shows the command, and nothing of the hand-over.
        t.shell.gives("echo shown").await;
        let rows = t.shell.screen().await;
        let has = |word: &str| rows.iter().any(|row| row.contains(word));
        assert_eq!((has("echo shown"), has("__ptyd")), (true, false), "{:?}: {rows:?}", t.dialect);
        let journal = String::from_utf8_lossy(&t.shell.journal().await).into_owned();
        let titles: Vec<_> = journal.split("\x1b]0;").skip(1).filter_map(|rest| rest.split('\x07').next()).collect();
        assert!(!titles.iter().any(|title| title.contains("__ptyd")), "{:?}: {titles:?}", t.dialect);
        let raw = t.shell.run(r"printf 'a\033[31mb\rc\000\377d\n'").await;
        assert_eq!(t.shell.bytes_of(&raw).await, b"a\x1b[31mb\rc\0\xffd\r\n", "{:?}", t.dialect);
    })
    .await;
}

#[tokio::test]
async fn bytes_of_any_kind_are_returned_exactly() {
    each("17 other encodings in the output", async |t| {
        let cut = r"printf '\360\237'; sleep 0.1; printf '\230\200\n'";
        assert_eq!(t.gives(cut).await, t.is(0, "😀\n"));
        let odd = t.shell.run(r"printf 'a\377b\n'").await;
        assert_eq!((odd.output.as_deref(), odd.escaped), (Some("a\\xffb\n"), 1), "{:?}", t.dialect);
        let noise = t.shell.run("head -c 65536 /dev/urandom").await;
        assert_eq!(noise.exit_code, Some(0), "{:?}: {:?}", t.dialect, noise.error);
        assert_eq!(t.gives("echo sane").await, t.is(0, "sane\n"));
    })
    .await;
}

#[tokio::test]
async fn waits_end_by_their_first_reason() {
    each("18 waits", async |t| {
        let command = t.shell.run_until("sleep 0.2; echo listening on 4711; cat", r"listening on (\d+)").await;
        assert_eq!(command.status, CommandStatus::Running, "{:?}", t.dialect);
        t.shell.sends(b"\x04").await;
        assert_eq!(t.shell.end_of(&command).await.exit_code, Some(0), "{:?}", t.dialect);
        t.gives("mkfifo gate").await;
        let waits = "cat gate".to_owned();
        let running = t.shell.run_as(ExecuteRequest { command: waits, timeout: Some(0.1), ..Default::default() }).await;
        assert_eq!(running.ended_by, Some(EndedBy::TimedOut), "{:?}", t.dialect);
        passes(t.folder.join("gate"), "done\n").await;
        let (one, two) = tokio::join!(t.shell.end_of(&running), t.shell.end_of(&running));
        assert_eq!([one.output.as_deref(), two.output.as_deref()], [Some("done\n"); 2], "{:?}", t.dialect);
    })
    .await;
}

/// The commands with which a user may disturb the hooks of each shell.
fn disturbances(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Bash => &["PROMPT_COMMAND=; PS1='mine> '", "set -u", "stty raw -echo", "IFS=0", "set -o vi"],
        Dialect::Zsh => &[
            "precmd_functions=(); PS1='mine> '",
            "setopt nounset ksharrays shwordsplit",
            "stty raw -echo",
            "IFS=0",
            "bindkey -v",
            "emulate sh",
            "setopt xtrace",
        ],
        Dialect::Fish => &[
            "function fish_prompt; echo 'mine> '; end",
            "functions -e fish_prompt",
            "stty raw -echo",
            "set IFS 0",
            "fish_vi_key_bindings",
        ],
        Dialect::Dash => {
            &["PS1='mine> '", "set -u", "stty raw -echo", "IFS=0", "unset -f __ptyd_d", "set -f", "exec 9>&-"]
        }
    }
}

#[tokio::test]
async fn after_settings_that_disturb_ends_are_right_or_said_to_be_a_guess() {
    each("20 settings that could confuse ptyd", async |t| {
        for disturbance in disturbances(t.dialect) {
            let shell = t.dialect.session(t.server).await;
            shell.run(disturbance).await;
            for (command, code, output) in [("echo one".to_owned(), 0, "one"), (t.dialect.code(7), 7, "")] {
                let done = shell.run(&command).await;
                let told = format!("{:?} after {disturbance:?}: {done:?}", t.dialect);
                assert_ne!(done.status, CommandStatus::Running, "{told}");
                let shown = done.output.clone().unwrap_or_default();
                match done.boundary {
                    Boundary::Attested | Boundary::Nonce => assert_eq!(done.exit_code, Some(code), "{told}"),
                    Boundary::Heuristic => assert_eq!(done.exit_code, None, "{told}"),
                }
                assert!(shown.contains(output), "{told}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_persons_input_disturbs_no_command() {
    each("20 typing by a person", async |t| {
        t.shell.types("echo typed $((40+2))").await;
        eventually("it ran", async || {
            String::from_utf8_lossy(&t.shell.journal().await).contains("echo typed").then_some(())
        })
        .await;
        assert_eq!(t.gives("echo after").await, t.is(0, "after\n"));
        // Half a line is taken away and not run.
        let half = InputRequest { input: Some("touch half".to_owned()), ..InputRequest::default() };
        t.shell.input(&half).await;
        assert_eq!(t.gives("echo whole").await, t.is(0, "whole\n"));
        assert!(!t.folder.join("half").exists(), "{:?}", t.dialect);
        // A line that goes on is not taken away: the command is refused, and C-c helps, as is said.
        t.shell.sends(if t.dialect.is_fish() { b"if true\r" } else { b"if true; then\r" }).await;
        let request = ExecuteRequest { command: "echo no".to_owned(), timeout: Some(0.5), ..Default::default() };
        let refused = t.shell.try_run(&request).await.expect_err("a line that goes on");
        assert_eq!(refused.code(), Some(ErrorCode::SessionNotReady), "{:?}: {refused}", t.dialect);
        assert!(refused.to_string().contains("C-c"), "{:?}: {refused}", t.dialect);
        t.shell.presses(&["C-c"], None).await;
        assert_eq!(t.gives("echo clear").await, t.is(0, "clear\n"));
    })
    .await;
}

#[tokio::test]
// promise: send-5, send-6
async fn a_command_is_never_typed_into_a_program_that_somebody_typed_ahead() {
    each("20 typing by a person", async |t| {
        for round in 0..count(3, 50) {
            let file = format!("taken{round}");
            let reads = format!("sh -c 'read x; echo \"$x\" >{file}; echo got'");
            t.shell.sends(format!("sleep 0.1\r{reads}\r").as_bytes()).await;
            let request = ExecuteRequest { command: "echo agent".to_owned(), timeout: Some(1.0), ..Default::default() };
            let refused = t.shell.try_run(&request).await.expect_err("somebody's program reads");
            assert_eq!(refused.code(), Some(ErrorCode::SessionBusy), "{:?}: {refused}", t.dialect);
            t.shell.sends(b"mine\r").await;
            let taken = eventually("it has read", async || {
                std::fs::read_to_string(t.folder.join(&file)).ok().filter(|text| text.ends_with('\n'))
            });
            assert_eq!(taken.await, "mine\n", "{:?}", t.dialect);
            assert_eq!(t.gives("echo after").await, t.is(0, "after\n"));
        }
    })
    .await;
}

#[tokio::test]
// promise: end-7, end-8
async fn a_text_that_dash_could_not_run_has_not_succeeded() {
    let server = e2e::Server::start();
    for before in ["set -n", "command() { echo mine; }"] {
        let shell = Dialect::Dash.session(&server).await;
        shell.run(before).await;
        let done = shell.run("touch ran; true").await;
        let told = (done.status, done.exit_code);
        assert_ne!(told, (CommandStatus::Completed, Some(0)), "{before}: {done:?}");
    }
    let shell = Dialect::Dash.session(&server).await;
    shell.gives("alias command=echo").await;
    assert_eq!(shell.gives("echo it runs; false").await, (1, "it runs\n".to_owned()));
}

#[tokio::test]
// promise: end-7, end-8
async fn a_path_that_no_datagram_holds_costs_no_end() {
    each("2 exit codes", async |t| {
        if t.dialect.is_fish() {
            return;
        }
        let long = r#"export PATH="$PATH:/$(head -c 230000 /dev/zero | tr '\0' a)"; (exit 3)"#;
        assert_eq!(t.shell.run(long).await.exit_code, Some(3), "{:?}", t.dialect);
        assert_eq!(t.gives("echo on").await, t.is(0, "on\n"));
    })
    .await;
}

#[tokio::test]
async fn a_prompt_that_a_person_has_changed_needs_an_interrupt_once_and_no_more() {
    let server = e2e::Server::start();
    let shell = Dialect::Dash.session(&server).await;
    shell.types("PS1='mine> '").await;
    shell.types("PS2=").await;
    shell.presses(&["C-c"], None).await;
    assert_eq!(shell.gives("echo one").await, (0, "one\n".to_owned()));
    shell.types("true").await;
    assert_eq!(shell.gives("echo two").await, (0, "two\n".to_owned()));
}
