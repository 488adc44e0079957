//! Starts the shell on its terminal: with its limits, cgroups and identity, and with the descriptors that it inherits.

use std::collections::VecDeque;
use std::ffi::CStr;
use std::fs::Permissions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sys::confinement::{Confinement, Namespaces, Rules};
use sys::pty::Pty;
use sys::sandbox::{Layout, Sandbox};
use sys::spawn::SpawnError;
use sys::{signal, spawn, time};
use wire::{ATTESTATION_FD, COMMAND_FD, FromHolder, SCRIPT_FD, ShownBy, Spec, Status, TEMPORARY_FOLDER};

use crate::connection::Connection;
use crate::staging::Staging;

/// The connection of the server that started this holder becomes the first client; the descriptor must not stay open
/// twice.
pub(crate) fn server_on_standard_input() -> io::Result<Connection> {
    // Close-on-exec: a program that inherited it could send frames to the server in the holder's name.
    let stream = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Connection::new(0, stream, true, time::monotonic_us())
}

/// The connection of the container's first process comes as standard output. A pidfd of that process takes its place, where
/// servers and this holder find it ([`sys::process::first_in_container`]).
fn container_on_standard_output() -> io::Result<Sandbox> {
    let container = Sandbox::of_container(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?)?;
    rustix::stdio::dup2_stdout(container.process())?;
    rustix::io::fcntl_setfd(rustix::stdio::stdout(), rustix::io::FdFlags::CLOEXEC)?;
    Ok(container)
}

/// The container of a session that has one, or else begins to make its sandbox or its mounts if it is confined, or sends the
/// server the error. Where the machine refuses mounts alone, there are none.
pub(crate) fn begin_sandbox(spec: &Spec, folder: &Path, server: &mut Connection) -> io::Result<Option<Sandbox>> {
    let Some(rules) = &spec.confinement else { return Ok(None) };
    let (mode, only_mounts) = match rules.namespaces {
        Namespaces::Own => (0o1777, false),
        Namespaces::Shared => (0o700, true),
        Namespaces::Container => {
            let entered = container_on_standard_output();
            return entered.map(Some).map_err(|e| report(failed(spawn::Step::Namespaces, &e), server));
        }
    };
    let temporary = temporary_folder(folder, mode).map_err(|e| report(failed(spawn::Step::Mounts, &e), server))?;
    let prepared = Layout::prepare(rules, Some(&temporary)).map_err(|e| failed(spawn::Step::Mounts, &e));
    let begun = prepared.and_then(|mut layout| Sandbox::begin(&mut layout));
    if only_mounts {
        return Ok(begun.ok().filter(|sandbox| sandbox.wait().is_ok()));
    }
    begun.map(Some).map_err(|e| report(e, server))
}

/// Opens the session's terminal, that of a sandbox among its own devices.
pub(crate) fn open_terminal(spec: &Spec, sandbox: Option<&Sandbox>, server: &mut Connection) -> io::Result<Pty> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", wire::NO_TERMINAL));
    let Some(sandbox) = with_devices(sandbox) else { return Pty::open(spec.cols, spec.rows).map_err(named) };
    sandbox.wait().map_err(|e| report(e, server))?;
    Pty::open_at(&sandbox.root().join("dev/pts/ptmx"), spec.cols, spec.rows).map_err(named)
}

/// A sandbox or container, which has its own devices.
fn with_devices(sandbox: Option<&Sandbox>) -> Option<&Sandbox> {
    sandbox.filter(|sandbox| !sandbox.has_only_mounts())
}

/// Sends the server the error.
fn report(e: SpawnError, server: &mut Connection) -> io::Error {
    server.send(&not_started(e.step, e.errno.unsigned_abs()));
    io::Error::from_raw_os_error(e.errno)
}

fn failed(step: spawn::Step, e: &io::Error) -> SpawnError {
    SpawnError { step, errno: e.raw_os_error().unwrap_or(0) }
}

/// Starts the shell, or sends the server the error.
pub(crate) fn start_shell(
    spec: &Spec,
    folder: &Path,
    (terminal, follower): (&CStr, OwnedFd),
    sandbox: Option<&Sandbox>,
    given: Inherited<'_>,
    mut server: Connection,
) -> io::Result<(u32, Connection)> {
    let program = prepared(spec, folder, terminal, sandbox).map_err(|e| report(e, &mut server))?;
    if let (Some(uid), None) = (spec.identity.first(), sandbox) {
        // The other user's programs also open their terminal by name.
        rustix::fs::fchown(&follower, Some(rustix::process::Uid::from_raw(*uid)), None)?;
    }
    let at = i32::try_from(spec.handover.attestation_fd).ok().filter(|fd| *fd > 2).unwrap_or(ATTESTATION_FD);
    let script = inherited_script(spec)?;
    let mut extra: Vec<_> = script.iter().map(|file| (file.as_fd(), SCRIPT_FD)).collect();
    extra.extend(given.command.map(|file| (file.as_fd(), COMMAND_FD)));
    // Last, because one of the others may occupy this descriptor number.
    extra.extend(spec.handover.has_hooks().then(|| (given.theirs.as_fd(), at)));
    let started = spawn::on_terminal(&program, follower.as_fd(), &extra);
    // The shell is in the mounts, and keeps them.
    sandbox.filter(|sandbox| sandbox.has_only_mounts()).into_iter().for_each(Sandbox::end);
    match started {
        Ok(pid) => Ok((pid, server)),
        Err(e) => Err(report(e, &mut server)),
    }
}

/// Descriptors that the shell inherits besides its terminal.
pub(crate) struct Inherited<'a> {
    /// The staged command, open for reading only; the shell shares its offset.
    pub(crate) command: Option<&'a std::fs::File>,
    /// The shell's end of the attestation socket.
    pub(crate) theirs: OwnedFd,
}

/// The script for a shell that cannot open it in the server's folders: one of another user, or a confined one. The descriptor is
/// read-only, and nothing in the file is secret.
fn inherited_script(spec: &Spec) -> io::Result<Option<std::fs::File>> {
    if spec.handover.script.is_empty() {
        return Ok(None);
    }
    std::fs::File::open(Path::new(std::ffi::OsStr::from_bytes(&spec.handover.script))).map(Some)
}

/// The program of the shell with all that it is started with, or the step that failed.
fn prepared(
    spec: &Spec,
    folder: &Path,
    terminal: &CStr,
    sandbox: Option<&Sandbox>,
) -> Result<spawn::Program, SpawnError> {
    let program = bounded(spec, &environment(spec, folder)).map_err(|e| failed(spawn::Step::Group, &e))?;
    let Some(rules) = &spec.confinement else { return Ok(program) };
    let confined = confinement(rules.clone(), spec, folder, terminal, with_devices(sandbox));
    let program = program.confined(confined.map_err(|e| failed(spawn::Step::Confinement, &e))?);
    Ok(match sandbox {
        Some(sandbox) => program.inside(sandbox),
        None => program,
    })
}

/// The program of the shell with its limits, cgroups and identity.
fn bounded(spec: &Spec, env: &[Vec<u8>]) -> io::Result<spawn::Program> {
    let program = spawn::Program::new(&spec.program, &spec.argv, env, &spec.cwd, spec.umask)?;
    let join = |door: &Vec<u8>| std::fs::File::options().write(true).open(Path::new(std::ffi::OsStr::from_bytes(door)));
    let groups = spec.groups.iter().map(join).collect::<io::Result<_>>()?;
    // The limit of the user counts, too: none may be raised.
    let tasks =
        getrlimit(Resource::Nproc).maximum.map_or(spec.hard_limits.tasks, |most| spec.hard_limits.tasks.min(most));
    let limits = [
        (spawn::Resource::OpenFiles, spec.hard_limits.open_files),
        (spawn::Resource::AddressSpace, spec.hard_limits.address_space),
        (spawn::Resource::Tasks, tasks),
    ];
    let program = program.bounded(limits.into_iter().filter(|(_, most)| *most > 0).collect(), groups);
    Ok(match spec.identity.as_slice() {
        [uid, gid, groups @ ..] => program.owned_by(spawn::Identity { uid: *uid, gid: *gid, groups: groups.to_vec() }),
        _ => program,
    })
}

/// Makes the folder for temporary files of a confined session.
fn temporary_folder(folder: &Path, mode: u32) -> io::Result<PathBuf> {
    let temporary = folder.join(TEMPORARY_FOLDER);
    std::fs::DirBuilder::new().mode(0o700).create(&temporary)?;
    // The mask may have taken some of it; nobody else can enter the session's folder.
    std::fs::set_permissions(&temporary, Permissions::from_mode(mode))?;
    temporary.canonicalize()
}

/// These rules with our script and the folder for temporary files besides, and with the terminal, unless it is a sandbox's own.
fn confinement(
    mut rules: Rules,
    spec: &Spec,
    folder: &Path,
    terminal: &CStr,
    sandbox: Option<&Sandbox>,
) -> io::Result<Confinement> {
    if let (Namespaces::Container, Some(container)) = (rules.namespaces, sandbox) {
        return Confinement::prepare_in_container(&rules, &container.root(), &path(&spec.handover.script));
    }
    let script = Some(path(&spec.handover.script)).filter(|script| script.is_absolute());
    rules.readable.extend(script.map(|script| sys::confinement::resolved(&script)));
    rules.writable.push(folder.join(TEMPORARY_FOLDER).canonicalize()?);
    rules.devices.extend(sandbox.is_none().then(|| path(terminal.to_bytes())));
    Confinement::prepare(&rules, sandbox.map(Sandbox::root).as_deref())
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// The shell's environment; a confined one has its own folder for temporary files, which zsh finds by a variable of its own. A
/// container has what its image has.
fn environment(spec: &Spec, folder: &Path) -> Vec<Vec<u8>> {
    let mut env = spec.env.clone();
    let of_machine = spec.confinement.as_ref().filter(|rules| rules.namespaces != Namespaces::Container);
    if let Some(rules) = of_machine {
        let is_own = rules.namespaces == Namespaces::Own;
        let temporary = if is_own { PathBuf::from("/tmp") } else { folder.join(TEMPORARY_FOLDER) };
        for (name, value) in [(b"TMPDIR=".as_slice(), temporary.clone()), (b"TMPPREFIX=", temporary.join("zsh"))] {
            env.retain(|entry| !entry.starts_with(name));
            env.push([name, value.as_os_str().as_bytes()].concat());
        }
    }
    env
}

/// The frame that reports why the shell could not be started.
fn not_started(step: spawn::Step, errno: u32) -> FromHolder {
    let value = u64::from(step as u8) << 32 | u64::from(errno);
    FromHolder::Done { seq: 0, status: Status::Failed, value, shown_by: ShownBy::Unknown }
}

/// Gives the holder a session of its own, so that no terminal hang-up and no group signal reaches it, and makes it the
/// subreaper of its descendants.
pub(crate) fn prepare_process() -> io::Result<()> {
    sys::process::keep_descriptors_to_ourselves();
    // Fails only for a group leader, for which nothing needs to change.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let _ = rustix::thread::set_name(c"ptyd-holder");
    for signo in [signal::HUP, signal::INT, signal::QUIT, signal::TSTP, signal::PIPE] {
        signal::ignore(signo);
    }
    Ok(())
}

/// Restores the user's own limit for the shell: the server raised its limit for its many sessions.
pub(crate) fn limit_open_files(soft: u64) {
    if soft > 0 {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // Lowering is always allowed (setrlimit(2)).
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum });
    }
}

/// 128 bits from the kernel in as few characters as a shell reads unchanged, because each is a datagram.
pub(crate) fn secret() -> io::Result<Vec<u8>> {
    const DIGITS: &[u8; 64] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.";
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    let number = u128::from_le_bytes(bytes);
    Ok((0..128).step_by(6).filter_map(|bits| DIGITS.get((number >> bits) as usize % DIGITS.len()).copied()).collect())
}

/// A random start of the prompt mark sequence.
pub(crate) fn seed() -> io::Result<u32> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_le_bytes(bytes) & 0x7fff_ffff)
}

/// Whether prompt marks in the output are evaluated.
pub(crate) fn speaks_by_prompts(spec: &Spec) -> bool {
    spec.handover.is_in_band() || spec.handover.line().is_some()
}

/// The bytes sent to the shell at its start: the secret, the name of the staged command unless the shell has a short line, and,
/// with prompt marks, the start of their sequence.
pub(crate) fn greeting(secret: &[u8], command: &Staging, spec: &Spec, seed: u32) -> VecDeque<u8> {
    if !spec.handover.has_hooks() {
        return VecDeque::new();
    }
    // The script of a shell with a short line knows the descriptor.
    let has_short_line = !spec.handover.short_line.is_empty();
    let name = if has_short_line { String::new() } else { format!("{}\n", command.name()) };
    let seed = if speaks_by_prompts(spec) { format!("{seed}\n") } else { String::new() };
    [secret, b"\n", name.as_bytes(), seed.as_bytes()].concat().into()
}
