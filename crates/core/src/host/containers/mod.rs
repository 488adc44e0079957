//! The containers of sessions: each is started by its engine's command line, with our own first process in it, which connects to
//! this server. The session's holder gets that connection, enters the container by it, and the container ends with it.
//!
//! A container has a folder in the state directory from before its start until it is known to be removed, so that a later server
//! removes what an earlier one could not.

use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use wire::Rules;

use self::engine::EngineError;
use self::mounts::MountSources;
use super::holder_program::{holder, holder_is_static};
use crate::ids::SessionId;
use crate::limits;
use crate::mutex::locked;

mod engine;
mod files;
mod mounts;

pub(crate) use engine::{ContainerSettings, usual as usual_engine};
pub(crate) use files::ContainerFiles;

/// Where the folder with our program, the socket and the session's secrets is in every container.
pub(crate) const IN_CONTAINER: &str = "/.ptyd";
/// The part of a container's folder that is mounted there.
const MOUNTED: &str = "mounted";
const PROGRAM: &str = "ptyd-init";
const SOCKET: &str = "socket";
const SECRETS: &str = "secrets";
const SCRIPTS: &str = "shell-integration";
/// The file with the engine's program.
const ENGINE: &str = "engine";
/// The longest first line of a first process: some numbers.
const LINE_BYTES_MAX: u64 = 4 << 10;
/// The longest environment that is read of it.
const ENVIRONMENT_BYTES_MAX: u64 = 1 << 20;

/// The containers of this server.
#[derive(Debug)]
pub(crate) struct Containers {
    /// The folder of the containers' folders.
    folder: PathBuf,
    /// The sessions whose containers earlier servers have started.
    earlier: Mutex<Vec<SessionId>>,
}

/// A container that has started, for its session's holder and shell.
#[derive(Debug)]
pub(crate) struct StartedContainer {
    /// The connection of its first process, by which the holder enters it. The container ends when it is closed.
    pub(crate) connection: OwnedFd,
    pub(crate) files: ContainerFiles,
    /// User, group and groups; empty where the container has one user alone.
    pub(crate) identity: Vec<u32>,
    /// The variables of the image, with a locale whose characters are the terminal's if it names none.
    pub(crate) environment: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The files that a container gets besides its image's and the mounted ones.
#[derive(Debug)]
pub(crate) struct GivenFiles<'a> {
    /// The names and contents of secrets.
    pub(crate) secrets: &'a [(String, String)],
    /// A folder, and the files below it that the shells read.
    pub(crate) scripts: (&'a Path, &'a [PathBuf]),
}

impl Containers {
    pub(crate) fn of(state_dir: &Path) -> Self {
        let folder = state_dir.join("containers");
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let earlier = entries.filter_map(|entry| SessionId::parse(entry.file_name().to_str()?).ok()).collect();
        Self { folder, earlier: Mutex::new(earlier) }
    }

    /// The path in its container of a secret that a session is given as a file.
    pub(crate) fn secret(name: &str) -> PathBuf {
        Path::new(IN_CONTAINER).join(SECRETS).join(name)
    }

    /// The folder in every container with the scripts of the shells.
    pub(crate) fn scripts() -> PathBuf {
        Path::new(IN_CONTAINER).join(SCRIPTS)
    }

    /// Starts the container of a new session, or says why it cannot be; then its caller ends what there is of it. Blocks.
    pub(crate) fn start(
        &self,
        id: &SessionId,
        settings: &ContainerSettings,
        rules: &Rules,
        given: &GivenFiles<'_>,
    ) -> Result<StartedContainer, String> {
        if !holder_is_static() {
            return Err("this build of ptyd has a dynamically linked holder, and an image lacks the \
                 libraries of this machine; build ptyd with a static C library"
                .to_owned());
        }
        if !engine::is_installed(&settings.engine) {
            return Err(engine::missing(&settings.engine));
        }
        let own = self.folder.join(id.as_str());
        let listener = self.prepare(&own, settings, given).map_err(|e| format!("its folder: {e}"))?;
        start_in(&own, &listener, id, settings, rules)
    }

    /// Makes its folder. Other users of the machine cannot enter it; those of the container see the mounted part.
    fn prepare(&self, own: &Path, settings: &ContainerSettings, given: &GivenFiles<'_>) -> io::Result<UnixListener> {
        let program = self.program()?;
        let mounted = own.join(MOUNTED);
        std::fs::DirBuilder::new().mode(0o700).create(own)?;
        std::fs::write(own.join(ENGINE), &settings.engine)?;
        let open = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
        std::fs::create_dir(&mounted)?;
        open(&mounted, 0o755)?;
        std::fs::hard_link(program, mounted.join(PROGRAM))?;
        let scripts = mounted.join(SCRIPTS);
        std::fs::create_dir(&scripts)?;
        open(&scripts, 0o755)?;
        let (from, files) = given.scripts;
        for (file, inside) in files.iter().filter_map(|file| Some((file, file.strip_prefix(from).ok()?))) {
            if let Some(folder) = inside.parent().map(|folder| scripts.join(folder)) {
                std::fs::create_dir_all(&folder)?;
                open(&folder, 0o755)?;
            }
            std::fs::hard_link(file, scripts.join(inside))?;
        }
        if !given.secrets.is_empty() {
            let folder = mounted.join(SECRETS);
            std::fs::create_dir(&folder)?;
            open(&folder, 0o755)?;
            for (name, value) in given.secrets {
                std::fs::write(folder.join(name), value)?;
                open(&folder.join(name), 0o444)?;
            }
        }
        let listener = sys::socket::listen_in(&mounted, SOCKET)?;
        open(&mounted.join(SOCKET), 0o666)?;
        Ok(listener)
    }

    /// Our program as a file, which each container has a link to.
    fn program(&self) -> io::Result<PathBuf> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let bytes = holder();
        let path = self.folder.join(PROGRAM);
        if std::fs::metadata(&path).is_ok_and(|m| m.is_file()) && std::fs::read(&path)? == bytes {
            return Ok(path);
        }
        let draft = self.folder.join(format!(".{PROGRAM}-{}", SessionId::random(0)));
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(&draft)?;
        io::Write::write_all(&mut file, &bytes)?;
        file.set_permissions(std::fs::Permissions::from_mode(0o755))?;
        // An image's kernel does not execute a file that is open for writing (ETXTBSY).
        drop(file);
        std::fs::rename(&draft, &path)?;
        Ok(path)
    }

    /// Ends and removes the container of a session, if it has one here that is not known to be removed. Blocks.
    pub(crate) fn end(&self, id: &SessionId) {
        let own = self.folder.join(id.as_str());
        let Ok(engine) = std::fs::read_to_string(own.join(ENGINE)) else {
            // Its start failed before the engine ran.
            let _ = std::fs::remove_dir_all(&own);
            return;
        };
        match engine::remove(&engine, id, &own.join("stderr")) {
            Ok(()) => drop(std::fs::remove_dir_all(&own)),
            Err(why) => tracing::warn!(session = %id, why, "its container may be left; the next server tries again"),
        }
    }

    /// The sessions whose containers earlier servers have started, once.
    pub(crate) fn take_earlier(&self) -> Vec<SessionId> {
        std::mem::take(&mut *locked(&self.earlier))
    }
}

/// Has the engine run the container with this folder of its own, and waits for its first process.
fn start_in(
    own: &Path,
    listener: &UnixListener,
    id: &SessionId,
    settings: &ContainerSettings,
    rules: &Rules,
) -> Result<StartedContainer, String> {
    let mounted = own.join(MOUNTED);
    let inside = Path::new(IN_CONTAINER);
    let first = [&inside.join(PROGRAM), Path::new(wire::FIRST_IN_CONTAINER), &inside.join(SOCKET)];
    let arguments = settings.run(id, (&mounted, inside), rules, &first)?;
    let sources = MountSources::open(rules)?;
    let run = engine::run(&settings.engine, &arguments, &own.join("stderr"), limits::CONTAINER_START);
    run.map_err(|e| {
        if matches!(e, EngineError::NotExecuted(_)) {
            // There is no container to remove, and nothing that could remove one.
            let _ = std::fs::remove_dir_all(own);
        }
        e.reason()
    })?;
    sys::fault::point("container");
    let silent = |e: &dyn std::fmt::Display| {
        let (engine, runtime) = (&settings.engine, settings.runtime.as_deref().unwrap_or("its usual runtime"));
        format!(
            "{engine} ({runtime}) has started it, but its first process does not connect to this server: {e}; \
             ptyd cannot use a runtime with a kernel of its own (gVisor, Kata), or an engine on another machine"
        )
    };
    let mut connection = accepted(listener).map_err(|e| silent(&e))?;
    let line = first_line(&mut connection).map_err(|e| silent(&e))?;
    // Nothing else is ever accepted here.
    let _ = std::fs::remove_file(mounted.join(SOCKET));
    let pid = sys::socket::peer(&connection).map_err(|e| silent(&e))?.pid;
    let refused = |e: io::Error| {
        format!(
            "its processes cannot be entered: {e}; if the engine runs containers as another user, root must \
             start the server"
        )
    };
    // Not of a program that only speaks for it, such as the kernel of gVisor.
    let which = |path: &Path| std::fs::metadata(path).map(|m| (m.dev(), m.ino()));
    let runs = which(Path::new(&format!("/proc/{pid}/exe"))).map_err(refused)?;
    let is_first = sys::process::innermost_pid(pid) == Some(1);
    if !is_first || runs != which(&mounted.join(PROGRAM)).map_err(refused)? {
        return Err(silent(&"another process has connected"));
    }
    sources.check(pid)?;
    let environment = environment(pid).map_err(refused)?;
    let identity: Vec<u32> = line.split_ascii_whitespace().map_while(|id| id.parse().ok()).collect();
    Ok(StartedContainer {
        connection: connection.into(),
        files: ContainerFiles::of_process(pid),
        identity,
        environment,
    })
}

/// Why no container can be started here, as far as it shows without one; `None` if an engine answers. Blocks.
pub(crate) fn hindrance() -> Option<String> {
    if !holder_is_static() {
        return Some("needs a statically linked holder, which this build of ptyd lacks".to_owned());
    }
    engine::hindrance()
}

/// Waits for the first process, which has connected before its engine says that it runs, or is about to.
fn accepted(listener: &UnixListener) -> io::Result<UnixStream> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let longest = Timespec::try_from(limits::CONTAINER_CONNECTS).map_err(io::Error::other)?;
    match rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&longest)))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => listener.accept().map(|(stream, _)| stream),
    }
}

fn first_line(connection: &mut UnixStream) -> io::Result<String> {
    connection.set_read_timeout(Some(limits::CONTAINER_CONNECTS))?;
    let mut line = Vec::new();
    // It sends nothing else, so nothing behind the line is lost.
    BufReader::new(connection.take(LINE_BYTES_MAX)).read_until(b'\n', &mut line)?;
    match line.ends_with(b"\n") {
        true => Ok(String::from_utf8_lossy(&line).into_owned()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The variables of the container's first process: those of its image, and some of its engine.
fn environment(pid: u32) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut bytes = Vec::new();
    std::fs::File::open(format!("/proc/{pid}/environ"))?.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes)?;
    let variables = bytes.split(|b| *b == 0).filter_map(|entry| {
        let at = entry.iter().position(|b| *b == b'=').filter(|at| *at > 0)?;
        Some((entry[..at].to_vec(), entry[at + 1..].to_vec()))
    });
    Ok(variables.collect())
}
