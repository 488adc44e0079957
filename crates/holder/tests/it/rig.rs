//! Test support: a holder with a terminal of its own, whose server is the test.

use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;
use wire::{Frames, FromHolder, Handover, HandoverMethod, Hello, PROTOCOL, Spec, ToHolder};

/// After this long something counts as hanging, on the busiest machine too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a holder.
pub struct Caller {
    stream: UnixStream,
    frames: Frames,
}

impl Caller {
    fn new(stream: UnixStream) -> Self {
        Self { stream, frames: Frames::default() }
    }

    pub fn sends(&mut self, frame: &ToHolder) {
        self.stream.write_all(&frame.encode()).unwrap();
    }

    /// The next frames; `None` when the holder has closed, or says nothing for so long.
    pub fn hears(&mut self, longest: Duration) -> Option<Vec<FromHolder>> {
        self.stream.set_read_timeout(Some(longest)).unwrap();
        let mut buffer = [0; 4096];
        let n = self.stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
        self.frames.push(&buffer[..n]);
        let mut whole = Vec::new();
        while let Some(frame) = self.frames.next_frame().unwrap() {
            whole.extend(FromHolder::decode(frame));
        }
        Some(whole)
    }

    /// Says hello, and is answered.
    pub fn greets(&mut self, attaches: bool) -> Hello {
        self.greets_if_placed(attaches).expect("an answer, and not the end")
    }

    /// `None` if the holder has closed: a caller that has said nothing for a while gives its place to the next.
    pub fn greets_if_placed(&mut self, attaches: bool) -> Option<Hello> {
        self.stream.write_all(&ToHolder::Hello { protocol: PROTOCOL, attaches }.encode()).ok()?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let frames = self.hears(PATIENCE)?;
            if let Some(hello) =
                frames.into_iter().find_map(|f| if let FromHolder::Hello(h) = f { Some(h) } else { None })
            {
                return Some(hello);
            }
        }
        panic!("no answer within {PATIENCE:?}");
    }
}

/// A holder and the folder of its session.
pub struct Held {
    dir: TempDir,
    child: Child,
    /// The connection that it was started with.
    pub server: Caller,
}

impl Held {
    /// A session in which sh(1) runs this script, with job control as at a prompt. `$0` is the holder's socket.
    pub fn running(script: &str) -> Self {
        Self::behind(&[], script)
    }

    /// The same behind a program and its arguments that start the holder.
    pub fn behind(behind: &[&str], script: &str) -> Self {
        Self::of(behind, |spec, folder| {
            let script = format!("set -m\n{script}");
            let socket = folder.join(wire::SOCKET_FILE).into_os_string().into_encoded_bytes();
            spec.argv = vec![b"sh".to_vec(), b"-c".to_vec(), script.into_bytes(), socket];
        })
    }

    /// A session of dash, which is handed commands as lines; its prompt queries the cursor's position, as busybox's editor does.
    pub fn dash() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shell-integration/sh.sh");
        Self::of(&[], |spec, folder| {
            let start_up = folder.with_file_name("start-up.sh");
            std::fs::write(&start_up, "PS1='\x1b[6n$ '\n").unwrap();
            spec.program = b"/bin/dash".to_vec();
            spec.argv = vec![b"dash".to_vec(), b"-i".to_vec()];
            spec.env.extend(
                [("ENV", script), ("PTYD_ENV", start_up)]
                    .map(|(name, path)| format!("{name}={}", path.display()).into_bytes()),
            );
            let line = br#" \__ptyd_c {};\eval "$__ptyd_l""#.to_vec();
            spec.handover = Handover { method: HandoverMethod::Line(line), attestation_fd: 9, ..Handover::default() };
        })
    }

    fn of(behind: &[&str], change: impl FnOnce(&mut Spec, &Path)) -> Self {
        let dir = TempDir::new().unwrap();
        let folder = dir.path().join("session");
        std::fs::create_dir(&folder).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut spec = Spec {
            session: "s".to_owned(),
            program: b"/bin/sh".to_vec(),
            env: vec![format!("PATH={path}").into_bytes()],
            cwd: b"/".to_vec(),
            umask: 0o022,
            cols: 80,
            rows: 24,
            may_splice: true,
            ..Spec::default()
        };
        change(&mut spec, &folder);
        spec.store(&folder).unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        let words: Vec<&str> = behind.iter().copied().chain([env!("CARGO_BIN_EXE_ptyd-holder")]).collect();
        let child = Command::new(words[0])
            .args(&words[1..])
            .arg(&folder)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // As from a server; a pipe would be taken for a container that does not end.
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut held = Self { dir, child, server: Caller::new(ours) };
        held.server.greets(true);
        held
    }

    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("session")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Another connection.
    pub fn call(&self) -> Caller {
        Caller::new(UnixStream::connect(self.folder().join(wire::SOCKET_FILE)).unwrap())
    }

    pub fn journal(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder().join(journal::JOURNAL_FILE)).unwrap()).into_owned()
    }

    /// Waits until the terminal shows these words, and gives all that it shows.
    pub fn shows(&mut self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.journal();
            if shown.contains(words) {
                return shown;
            }
            assert!(begun.elapsed() < PATIENCE, "no {words:?} within {PATIENCE:?}: {shown}");
            assert!(self.server.hears(PATIENCE).is_some(), "the holder has gone without {words:?}: {shown}");
        }
    }

    /// The processor time that the holder has used.
    pub fn processor_time(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).unwrap();
        Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
    }

    /// Whether the holder ends within this time.
    pub fn ends_within(&self, longest: Duration) -> bool {
        ends_within(self.child.id(), longest)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.server.stream.write_all(&ToHolder::Kill.encode());
        if !self.ends_within(PATIENCE) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Whether a process ends within this time, or has ended.
pub fn ends_within(pid: u32, longest: Duration) -> bool {
    let pid = Pid::from_raw(pid.cast_signed());
    let Some(fd) = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return true };
    let left = Timespec::try_from(longest).unwrap();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&left)).unwrap() > 0
}
