//! The input of `ptyd run` and `ptyd record`: a person's keys, data from a pipe or a file, or a message that there is
//! none.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use e2e::{Person, Server, eventually};

fn feeds(command: &mut Command, input: &[u8]) -> (Vec<u8>, String, Option<i32>) {
    let mut child = piped(command);
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    // Beside, because a program that does not read takes no more than a pipe holds.
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().expect("it ends");
    let _ = writer.join().expect("it does not panic");
    (output.stdout, String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it can be executed")
}

/// Every byte there is, without a line end at the end.
fn every_byte(times: usize) -> Vec<u8> {
    (0..=255u8).cycle().take(256 * times).collect()
}

#[tokio::test]
// promise: cli-1
async fn a_pipe_is_the_programs_input_and_ends() {
    let server = Server::start();
    let gives = |command: &str, input: &[u8]| {
        let (out, err, code) = feeds(&mut server.ptyd(&["run", command]), input);
        (String::from_utf8_lossy(&out).into_owned(), err, code)
    };
    let told = |out: &str, code: i32| (out.to_owned(), String::new(), Some(code));
    assert_eq!(gives("cat", b"data\n"), told("data\n", 0));
    assert_eq!(gives("cat", b"no line end"), told("no line end", 0));
    assert_eq!(gives("cat", b""), told("", 0));
    assert_eq!(gives("wc -l; (exit 7)", b"1\n2\n"), told("2\n", 7));
    assert_eq!(gives("read a; read b; echo \"$b $a\"", b"x\ny\n"), told("y x\n", 0));
    assert_eq!(gives("cat <<END -\nhere\nEND", b"unread"), told("here\n", 0));
    // Keys of the terminal are data here, and so is what no line of a terminal could hold.
    let bytes = every_byte(20_000);
    let (sum, err, code) = gives("wc -c; md5sum", &bytes);
    assert_eq!((sum.as_str(), err.as_str(), code), ("5120000\nd41d8cd98f00b204e9800998ecf8427e  -\n", "", Some(0)));
    let (sum, ..) = gives("md5sum", &bytes);
    let file = server.home().file("bytes");
    std::fs::write(&file, &bytes).expect("ours");
    let expected = Command::new("md5sum").stdin(File::open(&file).expect("ours")).output().expect("it is there");
    assert_eq!(sum.as_bytes(), expected.stdout);
    let output = server.ptyd(&["run", "md5sum"]).stdin(File::open(&file).expect("ours")).output().expect("it runs");
    assert_eq!(output.stdout, expected.stdout, "a file is read as a pipe is");
    let left = std::fs::read_dir(server.home().socket().parent().expect("a folder")).expect("ours").flatten();
    let left: Vec<_> =
        left.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with("stdin-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
// promise: cli-1
async fn a_program_that_does_not_read_its_input_still_ends() {
    let server = Server::start();
    let (out, err, code) = feeds(&mut server.ptyd(&["run", "echo done; (exit 3)"]), &vec![b'x'; 10 << 20]);
    assert_eq!((out.as_slice(), err.as_str(), code), (&b"done\n"[..], "", Some(3)));
    let (out, _, code) = feeds(&mut server.ptyd(&["run", "head -c 3"]), &vec![b'x'; 10 << 20]);
    assert_eq!((out.as_slice(), code), (&b"xxx"[..], Some(0)));
    // Nor does an input that never ends hold it up.
    let mut child = piped(&mut server.ptyd(&["run", "echo done"]));
    let stdin = child.stdin.take();
    assert!(child.wait().expect("it ends").success());
    drop(stdin);
    // Nor a socket that stays open, which is what Node gives its children.
    for command in ["echo hi", "echo hi; sleep 0.3"] {
        let (_ours, theirs) = UnixStream::pair().expect("a pair");
        let mut run = server.ptyd(&["run", command]);
        let output = run.stdin(OwnedFd::from(theirs)).output().expect("it ends");
        assert_eq!((output.stdout.as_slice(), output.status.code()), (&b"hi\n"[..], Some(0)), "{command}");
    }
    // Nor a command that its shell does not understand.
    let (_, _, code) = feeds(&mut server.ptyd(&["run", "echo 'never closed' ) ("]), b"data");
    assert!(code.is_some_and(|code| code > 0), "{code:?}");
    assert_eq!(server.client().list(None).await.expect("a list").total, 0);
}

#[tokio::test]
// promise: cli-1
async fn a_run_that_is_terminated_ends_its_command_in_a_session_that_stays() {
    let server = Server::start();
    let shell = server.session().await;
    let list = "sleep 1000; echo went on > after";
    let run = server.ptyd(&["run", "-s", &shell.id, list]).stdin(Stdio::null()).spawn().expect("it runs");
    let begun = eventually("the command runs", async || shell.look().await.current_command).await;
    rustix::process::kill_process(rustix::process::Pid::from_child(&run), rustix::process::Signal::TERM).expect("sent");
    assert!(!run.wait_with_output().expect("it ends").status.success());
    let ended = eventually("it ends", async || shell.command(&begun).await.exit_code).await;
    assert_eq!(ended, 130);
    assert_eq!(shell.gives("ls after").await.0, 2, "the rest of the list is not run");
    // A TERM could end a shell inside, so a command there that ignores the interrupt goes on.
    shell.gives("mkfifo pipe").await;
    e2e::inside::enters(&shell, "bash --norc").await;
    let deaf = "bash -c 'trap \"\" INT; read <pipe; echo went on'";
    let run = server.ptyd(&["run", "-s", &shell.id, "--inside", deaf]).stdin(Stdio::null()).spawn().expect("it runs");
    let writer = server.session().await;
    writer.gives("exec 3>pipe").await;
    rustix::process::kill_process(rustix::process::Pid::from_child(&run), rustix::process::Signal::TERM).expect("sent");
    assert!(!run.wait_with_output().expect("it ends").status.success());
    let begun = shell.look().await.current_command.expect("it goes on");
    writer.gives("echo >&3").await;
    let ended =
        eventually("it ends", async || Some(shell.command(&begun).await).filter(|it| it.exit_code.is_some())).await;
    assert_eq!((ended.exit_code, ended.output.as_deref()), (Some(0), Some("went on\n")));
}

#[tokio::test]
// promise: cli-1
async fn every_shell_that_can_passes_the_input_to_its_commands() {
    let server = Server::start();
    for shell in ["bash", "zsh", "fish", "dash", "mksh", "sh"] {
        let (out, err, code) = feeds(&mut server.ptyd(&["run", "--shell", shell, "cat"]), b"one\ntwo");
        assert_eq!((String::from_utf8_lossy(&out).as_ref(), code), ("one\ntwo", Some(0)), "{shell}: {err}");
    }
    let (_, err, code) = feeds(&mut server.ptyd(&["run", "--shell", "python3", "print(1)"]), b"data");
    assert!(code == Some(2) && err.contains("cannot be passed to a command of python3"), "{code:?} {err}");
    // In a session that is there the shell goes on with its own terminal.
    let shell = server.session().await;
    let (out, _, code) = feeds(&mut server.ptyd(&["run", "--session", &shell.id, "cd /usr; cat"]), b"data");
    assert_eq!((out.as_slice(), code), (&b"data"[..], Some(0)));
    assert_eq!(shell.gives("pwd; test -t 0").await, (0, "/usr\n".to_owned()));
}

#[tokio::test]
// promise: cli-4
async fn without_an_input_it_is_said_once_that_the_program_wants_one() {
    let server = Server::start();
    for (asks, answer, way) in [
        ("read -p 'q? ' x; read y; echo got $x$y", &["a", "b"][..], "`ptyd send s0-"),
        ("read -rsp 'Password: ' x; echo; echo ${#x}", &["12345"], "`ptyd send --secret s0-"),
    ] {
        let mut child = server
            .ptyd(&["run", asks])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be executed");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("text");
        let told = ["the program wants input", way, "Until then this command waits", "C-c", "--timeout"];
        assert!(told.iter().all(|words| said.contains(words)), "{said}");
        let id = said.split("attach ").nth(1).and_then(|rest| rest.split('`').next()).expect("an id").to_owned();
        for line in answer {
            let shell = e2e::Session::new(server.client().clone(), id.clone());
            shell.types(line).await;
        }
        let output = child.wait_with_output().expect("it ends");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && (out.ends_with("got ab\n") || out.ends_with("5\n")), "{out}");
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut stderr, &mut rest).expect("text");
        assert_eq!(rest, "", "once");
    }
}

fn modes(person: &Person) -> String {
    format!("{:?}", person.modes())
}

#[tokio::test]
// promise: cli-3
async fn a_person_types_at_the_program_and_has_the_terminal_back() {
    let server = Server::start();
    let mut witness = Person::starts(&server.ptyd(&["ls"]), 80, 24);
    witness.leaves();
    let fresh = modes(&witness);
    let script =
        "read -p 'name? ' n; echo got:$n; cat; stty size; trap 'echo caught; exit 9' INT; echo ready; sleep 60 & wait";
    let mut person = Person::starts(&server.ptyd(&["run", &format!("bash -c {}", quoted(script))]), 90, 25);
    person.sees("name? ");
    assert_ne!(modes(&person), fresh, "raw, so that keys are the program's");
    person.types(b"Ada\r");
    person.sees("got:Ada\r\n");
    person.types(b"line\r");
    person.sees("line\r\nline\r\n");
    person.resizes(101, 33);
    eventually("the session has the new size", async || {
        let all = server.client().list(None).await.expect("a list").terminals;
        (all[0].dimensions == api::Dimensions { cols: 101, rows: 33 }).then_some(())
    })
    .await;
    // The end of input, and an interrupt, are keys as well.
    person.types(b"\x04");
    person.sees("33 101\r\n");
    person.sees("ready\r\n");
    person.types(b"\x03");
    person.sees("caught\r\n");
    assert_eq!(person.leaves().code(), Some(9));
    assert_eq!(modes(&person), fresh);
    assert_eq!(server.client().list(None).await.expect("a list").total, 0);
}

#[tokio::test]
// promise: cli-3
async fn a_full_screen_program_works_and_restores_the_screen_even_after_a_detach() {
    let server = Server::start();
    std::fs::write(server.home().file("text"), "first line\nsecond line\n").expect("ours");
    let mut person = Person::starts(&server.ptyd(&["run", "vim -u NONE -i NONE text"]), 80, 24);
    person.sees("\x1b[?1049h");
    person.sees("second line");
    person.types(b"Gonew line\x1b:wq\r");
    person.sees("\x1b[?1049l");
    assert_eq!(person.leaves().code(), Some(0));
    assert_eq!(
        std::fs::read_to_string(server.home().file("text")).expect("ours"),
        "first line\nsecond line\nnew line\n"
    );
    // A program that is left behind has not tidied up.
    let mut person =
        Person::starts(&server.ptyd(&["run", "printf '\\033[?1049h\\033[?1000h\\033[?25lhere'; cat"]), 80, 24);
    person.sees("here");
    person.types(b"\x1c\x1c");
    person.sees("\x1b[?25h\x1b[?1000l\x1b[?1049l");
    assert_eq!(person.leaves().code(), Some(1));
    assert_eq!(server.client().list(None).await.expect("a list").total, 0);
}

#[tokio::test]
async fn a_recording_is_made_of_what_a_person_does() {
    let server = Server::start();
    let command = server.ptyd(&["record", "-o", "demo.cast", "--", "read -p 'name? ' n; echo hello $n"]);
    let mut person = Person::starts(&command, 80, 24);
    person.sees("name? ");
    person.types(b"Ada\r");
    person.sees("hello Ada\r\n");
    person.sees("recorded in demo.cast");
    assert_eq!(person.leaves().code(), Some(0));
    let cast = std::fs::read_to_string(server.home().file("demo.cast")).expect("a recording");
    assert!(cast.contains("hello Ada"), "{cast}");
    let (_, err, code) = feeds(&mut server.ptyd(&["record", "-o", "fed.cast", "--", "cat"]), b"fed\n");
    let cast = std::fs::read_to_string(server.home().file("fed.cast")).expect("a recording");
    assert!(code == Some(0) && cast.contains("fed\\r\\n"), "{err} {cast}");
}

#[tokio::test]
async fn a_job_in_the_background_of_a_persons_shell_is_not_stopped() {
    let server = Server::start();
    let ptyd = server.ptyd(&[]);
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "-i"]).env_clear().envs(server.home().environment()).env("PS1", "host> ");
    let mut person = Person::starts(&shell, 80, 24);
    person.sees("host> ");
    let program = ptyd.get_program().to_string_lossy().into_owned();
    person.types(format!("{program} run 'echo from the back; (exit 4)' & wait $!; echo code $?\r").as_bytes());
    person.sees("from the back\r");
    person.sees("code 4\r\n");
    person.types(b"exit\r");
    person.leaves();
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
