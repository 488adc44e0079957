//! Another process cannot change the text of a command that is staged for a shell: what ran is what was asked for.
//!
//! A process of the session opens each descriptor of the staged command that its holder and its shell have, and tries every call
//! that changes a file, while the command runs and while the shell is stopped before it has read the command.

use api::{Boundary, CommandStatus, CreateRequest};
use e2e::{Server, Session, eventually};

/// Arguments: the shell's pid, and a path for "the shell is stopped" (or `-`: the command runs already). Prints how many descriptors
/// it has opened, and which calls have changed one.
const SWAPPER: &str = r#"
import ctypes, fcntl, mmap, os, signal, sys, time

ASKED, OTHER = b"echo asked-for", b"echo swapped!!"
shell, stopped = int(sys.argv[1]), sys.argv[2]
holder = int(open(f"/proc/{shell}/stat").read().rsplit(")", 1)[1].split()[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p


def descriptors():
    for pid in holder, shell:
        for number in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{number}"
            try:
                if "memfd:command" in os.readlink(path):
                    yield path
            except FileNotFoundError:
                # The shell had it open for a moment.
                pass


def write(path, at):
    os.pwrite(os.open(path, os.O_WRONLY), OTHER, at)


def mapped(path, at):
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, os.fstat(fd).st_size) as memory:
        memory[at : at + len(OTHER)] = OTHER


def protect(path, at):
    size = os.stat(path).st_size
    place = libc.mmap(None, ctypes.c_size_t(size), 1, 1, os.open(path, os.O_RDWR), ctypes.c_long(0))
    if libc.mprotect(ctypes.c_void_p(place), ctypes.c_size_t(size), 3) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.memmove(place + at, OTHER, len(OTHER))


def shrink(path, at):
    os.ftruncate(os.open(path, os.O_RDWR), at)


def grow(path, at):
    os.ftruncate(os.open(path, os.O_RDWR), os.stat(path).st_size + 1)


def truncate(path, at):
    os.open(path, os.O_RDWR | os.O_TRUNC)


def punch(path, at):
    if libc.fallocate(os.open(path, os.O_RDWR), 3, ctypes.c_long(0), ctypes.c_long(at + 99)) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


def swap():
    paths, changed, has_text = list(descriptors()), [], False
    for path in paths:
        os.chmod(path, 0o666)
        at = os.pread(os.open(path, os.O_RDONLY), 99999, 0).rfind(ASKED)
        has_text = has_text or at >= 0
        for way in write, mapped, protect, shrink, grow, truncate, punch:
            try:
                way(path, max(at, 0))
                changed.append(way.__name__)
            except (OSError, ValueError):
                pass
    return f"descriptors {len(paths) > 0}, text {has_text}, changed {sorted(set(changed))}"


def contents():
    for path in descriptors():
        with open(path, "rb") as file:
            yield file.read(9999)


if stopped == "-":
    print(swap())
    sys.exit()
# A daemon, of which the shell says nothing.
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
# It stops the shell at its prompt, which is where the editor reads keys: behind the end of this command, as the test knows.
while not os.path.exists(stopped + ".go"):
    time.sleep(0.001)
while open(f"/proc/{shell}/stat").read().rsplit(")", 1)[1].split()[5] != str(shell) or "S" != open(
    f"/proc/{shell}/stat"
).read().rsplit(")", 1)[1].split()[0]:
    time.sleep(0.001)
os.kill(shell, signal.SIGSTOP)
try:
    open(stopped, "w").close()
    end = time.monotonic() + 20
    while not any(ASKED in text for text in contents()) and time.monotonic() < end:
        time.sleep(0.001)
    said = swap()
    # This process inherits the descriptor from the shell, and shares its offset.
    for number in range(3, 100):
        try:
            if "memfd:command" in os.readlink(f"/proc/self/fd/{number}"):
                os.lseek(number, 3, os.SEEK_SET)
        except OSError:
            pass
finally:
    os.kill(shell, signal.SIGCONT)
with open(stopped + ".said", "w") as file:
    file.write(said)
"#;

async fn session(server: &Server, shell: &str) -> (Session, String) {
    let swapper = server.home().file("swapper.py");
    std::fs::write(&swapper, SWAPPER).expect("written");
    let shell_pid = if shell == "fish" { "$fish_pid" } else { "$$" };
    let request = CreateRequest { shell: Some(shell.to_owned()), ..CreateRequest::default() };
    (server.session_with(request).await, format!("python3 {} {shell_pid}", swapper.display()))
}

/// While the command runs: a shell that reads its text piece by piece has not read the end yet.
async fn the_text_that_runs_stays(shell: &str) {
    let server = Server::start();
    let (session, swapper) = session(&server, shell).await;
    let done = session.run(&format!("{swapper} -\n{}echo asked-for", ": nothing to do\n".repeat(2_000))).await;
    let told = (done.status, done.exit_code, done.boundary, done.output.as_deref());
    let said = "descriptors True, text True, changed []\nasked-for\n";
    assert_eq!(told, (CommandStatus::Completed, Some(0), Boundary::Attested, Some(said)), "{shell}");
}

/// Between staging and reading. A shell that takes lines is handed nothing while it is stopped.
async fn the_text_that_waits_stays(shell: &str) {
    let server = Server::start();
    let (session, swapper) = session(&server, shell).await;
    let stopped = server.home().file("stopped");
    for round in 0..2 {
        let _ = std::fs::remove_file(&stopped);
        session.gives(&format!("{swapper} {}", stopped.display())).await;
        std::fs::write(stopped.with_extension("go"), "").expect("written");
        eventually("the shell is stopped", async || stopped.exists().then_some(())).await;
        let done = session.run("echo asked-for").await;
        let told = (done.status, done.exit_code, done.boundary, done.output.as_deref());
        let asked = (CommandStatus::Completed, Some(0), Boundary::Attested, Some("asked-for\n"));
        assert_eq!(told, asked, "{shell}, round {round}");
        let said = stopped.with_extension("said");
        let said =
            eventually("the swapper has tried", async || std::fs::read_to_string(&said).ok().filter(|s| !s.is_empty()))
                .await;
        assert_eq!(said, "descriptors True, text True, changed []", "{shell}, round {round}");
        for file in ["said", "go"] {
            std::fs::remove_file(stopped.with_extension(file)).expect("there");
        }
    }
}

#[tokio::test]
// promise: end-2
async fn no_process_changes_the_text_that_runs_in_a_shell_with_keys() {
    for shell in ["bash", "zsh", "fish"] {
        the_text_that_runs_stays(shell).await;
    }
}

#[tokio::test]
// promise: end-2
async fn no_process_changes_the_text_that_runs_in_a_shell_that_takes_lines() {
    for shell in ["dash", "busybox", "mksh"] {
        the_text_that_runs_stays(shell).await;
    }
}

#[tokio::test]
// promise: end-2
async fn no_process_changes_the_text_that_waits_for_bash() {
    the_text_that_waits_stays("bash").await;
}

#[tokio::test]
// promise: end-2
async fn no_process_changes_the_text_that_waits_for_zsh() {
    the_text_that_waits_stays("zsh").await;
}

#[tokio::test]
// promise: end-2
async fn no_process_changes_the_text_that_waits_for_fish() {
    the_text_that_waits_stays("fish").await;
}
