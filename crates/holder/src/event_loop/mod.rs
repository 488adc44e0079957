//! The holder's event loop: one thread, one poll(2), and the same order of steps in every turn.
//!
//! ```text
//! bytes into the journal → attestation drained → records appended → children reaped → requests → tail published
//! ```
//! The tail is published last, so a reader that reads up to it finds every marker's record already there. Every turn
//! serves the control connections and a turn is bounded, so no flood of output can starve them.

mod attestation;
mod input;
mod marker_lookup;
mod peers;
mod requests;
mod wait;

use std::collections::VecDeque;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use journal::{EndReason, EventsWriter, Kind, Offset, Record, Retained, Retention, TroubleKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{WaitOptions, wait};
use sys::{pty, signal, socket, spawn, time};
use wait::Ready;

use crate::connection::Connection;
use crate::folder::Folder;
use crate::foreground_sampler::Sampler;
use crate::input_queue::{InputDone, InputQueue};
use crate::output_pump::{Pump, Turn};
use crate::output_throttle::Throttle;
use crate::prompt_marks::{MARK_BYTES_MAX, PromptMark, PromptSequence};
use crate::shell_state::{Phase, ShellState};
use crate::termination::{self, Progress, Scope, Termination};
use wire::Claim;
use wire::Spec;
use wire::{ATTESTATION_FD, COMMAND_FD, SCRIPT_FD, SOCKET_FILE};
use wire::{Foreground, FromHolder, Hello, Key, NO_KEY, PROTOCOL, State, Status, Tail, Target, ToHolder, is_same_name};

/// The private keys, bound in every keymap by the scripts in shell-integration/: load the staged command and accept it.
const KEY_RUN: &[u8] = b"\x1b\x1f\x1b\x1e";
/// The private key that makes the shell report.
const KEY_REPORT: &[u8] = b"\x1b[7338~";
/// Datagrams drained per turn: more than the socket can queue, so a turn always reaches the end of the queue as it was
/// when the turn began.
const DATAGRAMS_MAX: usize = 4096;
/// The longest datagram: bash flushes its output when its buffer is full, which is BUFSIZ at most (stdio.h).
const DATAGRAM_BYTES_MAX: usize = 8192;
/// Retry interval while the disk is full.
const FULL_RETRY_US: u64 = 200_000;
/// Output read after the shell's exit: more than a terminal holds (tty_buffer.c, n_tty.c). Anything beyond it is
/// written by a process that outlived the shell.
const LAST_BYTES_MAX: u64 = 1 << 20;
/// The most that a PTY buffers before its writer blocks (pty.c, n_tty.c), with a margin.
const HELD_BYTES_MAX: usize = 16 << 10;
/// Retry interval for a hung-up terminal: a daemon may open it again.
const HUNG_UP_RETRY_US: u64 = 200_000;
/// A shell that waits for a line and sends no prompt mark for this long is at a prompt without a mark.
const UNFINISHED_US: u64 = 300_000;
/// How often a waiting command polls whether the line editor has the terminal; no event reports that.
const READY_RETRY_US: u64 = 50;
/// The same for a shell whose state is read from /proc.
const LINE_RETRY_US: u64 = 200;
/// Output of a command that was just started is announced together with the command's end, if that comes within this
/// time.
const COALESCE_US: u64 = 1_500;
/// A report waits this long for its marker, which is on its way through the terminal, to be announced together with it.
const MARKER_US: u64 = 500;
/// How many of the newest bytes are searched for a marker that came together with its report: only a prompt follows it.
const MARKER_SOUGHT_BYTES: usize = 4096;
/// If the tty would echo a query reply, the reply waits this long for the program to disable echo. Not all programs do.
const ANSWER_PATIENCE_US: u64 = 100_000;
/// How often the tty's echo flag is polled for that; no event reports it.
const ANSWER_RETRY_US: u64 = 1_000;
/// Query replies that may be queued.
const ANSWERS_MAX: usize = 256;
/// How long a command waits for a line that was typed at the prompt to end. Most lines end within a moment; one that
/// does not counts as a running program, and the command is refused.
const TYPED_PATIENCE_US: u64 = 500_000;
/// For this long after a key, output is announced at once.
const TYPING_US: u64 = 100_000;
/// After this long without output the pump shrinks its pipe or buffer.
const QUIET_US: u64 = 2_000_000;
/// The grace period of the session's programs when the holder itself ends the session.
const GRACE_US: u64 = 1_000_000;
/// How long shutdown waits for the last frames to be sent.
const FAREWELL_US: u64 = 300_000;

/// A command that waits for the shell's prompt.
struct WaitingCommand {
    /// Clients and sequence numbers: of the first request, and of later ones with the same idempotency key.
    from: Vec<(u64, u32)>,
    key: Key,
    text: Vec<u8>,
    since: u64,
    until: u64,
    /// Since when the shell has waited for a line without a prompt mark.
    seen_at_line: Option<u64>,
}

struct Holder {
    spec: Spec,
    leader: OwnedFd,
    attestation: OwnedFd,
    /// The other end is closed everywhere (`exec 97>&-`), so poll(2) would always report the socket as ready.
    is_unattested: bool,
    /// Bytes still to be sent to the shell: the secret and the path of the staged command.
    greeting: VecDeque<u8>,
    signals: OwnedFd,
    listener: UnixListener,
    folder: Folder,
    clients: Vec<Connection>,
    next_client: u64,
    journal: journal::Writer,
    events: EventsWriter,
    /// Reports that could not be appended yet; while there are any, no tail is published.
    held: VecDeque<(u64, Vec<u8>)>,
    pump: Pump,
    pace: Throttle,
    /// The command for which throttled output was last recorded.
    paced: Option<u32>,
    /// The command whose output is being moved. Output that is moved on the way to an end marker still belongs to the
    /// ended command.
    passing_of: u32,
    prompt: ShellState,
    /// For a shell that reports by prompt marks in its output: the sequence, and the offset up to which output was
    /// searched.
    prompts: Option<(PromptSequence, Offset)>,
    /// Input requests that are not in the input queue yet.
    asked: VecDeque<input::InputRequest>,
    keyboard: InputQueue,
    sampler: Sampler,
    command_file: std::fs::File,
    /// The command's text, for a shell that reads it from a named file.
    text_file: Option<std::fs::File>,
    waiting: Option<WaitingCommand>,
    shell_pid: u32,
    /// The shell's wait status, and whether the exit is recorded.
    exit: Option<(i32, bool)>,
    ending: Option<Termination>,
    /// The requests that asked for termination and are answered when it is complete.
    termination_callers: Vec<(u64, u32)>,
    /// Termination was requested: from then on the exit no longer waits for disk space.
    is_end_asked: bool,
    /// It is recorded that the exit waits for disk space.
    is_exit_delayed: bool,
    is_over: bool,
    published: Tail,
    answered: Offset,
    /// The value of `answered` in the newest record.
    answered_on_record: Offset,
    /// Query replies that wait: the offset where the query ended, the deadline of the wait, and the reply.
    answers: VecDeque<(Offset, u64, Vec<u8>)>,
    /// Output before this offset was written before the newest prompt.
    prompt_at: Offset,
    /// The journal's end at the beginning of this turn.
    turn_from: Offset,
    /// When to try the terminal again after the disk was full or the terminal hung up.
    retry_at: Option<u64>,
    is_full: bool,
    has_more: bool,
    quiet_at: Option<u64>,
    /// There was no output for a while: return the memory that the last turns used.
    gives_back: bool,
    announce_by: Option<u64>,
    /// The marker of the newest end has not arrived; it will be behind this offset.
    expects_marker: Option<Offset>,
    /// The next published tail includes the marker of the newest end.
    has_marker: bool,
    typed_at: u64,
    /// Until then no client waits for output: it stays in the terminal and is moved in one piece.
    idle_until: u64,
}

/// Runs the holder of the session in this folder until the session is over.
pub fn run(folder: &Path) -> io::Result<()> {
    // The claim comes first: a server that finds the folder without one concludes that the session never began.
    sys::fault::stall("begin");
    Claim::take(folder)?;
    sys::fault::stall("claimed");
    prepare_process()?;
    let spec = Spec::load(folder)?;
    limit_open_files(spec.open_files);
    // Before the shell starts, so that its SIGCHLD cannot be missed.
    let signals = signal::descriptor(&[signal::TERM, signal::CHLD, signal::IO])?;
    let server = server_on_standard_input()?;
    let terminal = pty::Pty::open(spec.cols, spec.rows)?;
    let attestation = socket::Attestation::pair()?;
    // A memfd: a full disk must not keep a command from running, and truncating a file on disk costs more than
    // everything else that a command needs here.
    let command_file = std::fs::File::from(rustix::fs::memfd_create("command", rustix::fs::MemfdFlags::CLOEXEC)?);
    // The shell takes longer to start than everything else here, so it is started first.
    let given = Inherited { command_file: &command_file, theirs: attestation.theirs };
    let (shell_pid, server) = start_shell(&spec, terminal.follower, given, server)?;
    // The shell has its copies; the holder does not need these fields again.
    let spec = Spec { argv: Vec::new(), env: Vec::new(), meta: Vec::new(), ..spec };
    let parts = (spec, signals, server, terminal.leader, attestation.ours, command_file);
    let mut holder = Holder::of_shell(shell_pid, folder, &terminal.path, parts).inspect_err(|_| {
        // Without a holder the shell would be orphaned.
        let _ = signal::send(shell_pid.cast_signed(), signal::KILL);
    })?;
    while !holder.is_over {
        holder.turn()?;
        // Outside of `turn`, so that the stack pages it used can be returned.
        if std::mem::take(&mut holder.gives_back) {
            sys::memory::give_back();
        }
    }
    holder.shut_down();
    Ok(())
}

/// The connection of the server that started this holder becomes the first client; the descriptor must not stay open
/// twice.
fn server_on_standard_input() -> io::Result<Connection> {
    // Close-on-exec: a program that inherited it could send frames to the server in the holder's name.
    let stream = UnixStream::from(rustix::io::fcntl_dupfd_cloexec(io::stdin().as_fd(), 3)?);
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Connection::new(0, stream, true, time::monotonic_us())
}

/// Starts the shell, or sends the server the error.
fn start_shell(
    spec: &Spec,
    follower: OwnedFd,
    given: Inherited<'_>,
    mut server: Connection,
) -> io::Result<(u32, Connection)> {
    let program = match bounded(spec) {
        Ok(program) => program,
        Err(e) => {
            let errno = e.raw_os_error().unwrap_or(0).unsigned_abs();
            server.send(&not_started(spawn::Step::Group, errno));
            return Err(e);
        }
    };
    if let Some(uid) = spec.identity.first() {
        // The other user's programs also open their terminal by name.
        rustix::fs::fchown(&follower, Some(rustix::process::Uid::from_raw(*uid)), None)?;
    }
    let at = i32::try_from(spec.handover.attestation_fd).ok().filter(|fd| *fd > 2).unwrap_or(ATTESTATION_FD);
    let readable = given.to_another_user(spec)?;
    let mut extra: Vec<_> = readable.iter().map(|(file, at)| (file.as_fd(), *at)).collect();
    // Last, because one of the others may occupy this descriptor number.
    extra.extend(spec.handover.has_hooks().then(|| (given.theirs.as_fd(), at)));
    match spawn::on_terminal(&program, follower.as_fd(), &extra) {
        Ok(pid) => Ok((pid, server)),
        Err(e) => {
            server.send(&not_started(e.step, e.errno.unsigned_abs()));
            Err(io::Error::from_raw_os_error(e.errno))
        }
    }
}

/// Descriptors that the shell inherits besides its terminal.
struct Inherited<'a> {
    command_file: &'a std::fs::File,
    /// The shell's end of the attestation socket.
    theirs: OwnedFd,
}

impl Inherited<'_> {
    /// Descriptors for a shell that runs as another user and cannot open these files by path: it has no access to the
    /// session's folders nor to the holder's /proc entries. They are read-only, and nothing in them is secret.
    fn to_another_user(&self, spec: &Spec) -> io::Result<Vec<(std::fs::File, i32)>> {
        if spec.handover.script.is_empty() {
            return Ok(Vec::new());
        }
        let script = std::fs::File::open(Path::new(std::ffi::OsStr::from_bytes(&spec.handover.script)))?;
        // The other user opens it again for every command.
        rustix::fs::fchmod(self.command_file, rustix::fs::Mode::from_raw_mode(0o444))?;
        let command = std::fs::File::open(format!("/proc/self/fd/{}", self.command_file.as_raw_fd()))?;
        Ok(vec![(script, SCRIPT_FD), (command, COMMAND_FD)])
    }
}

/// The program of the shell with its limits, cgroups and identity.
fn bounded(spec: &Spec) -> io::Result<spawn::Program> {
    let program = spawn::Program::new(&spec.program, &spec.argv, &spec.env, &spec.cwd, spec.umask)?;
    let join = |door: &Vec<u8>| std::fs::File::options().write(true).open(Path::new(std::ffi::OsStr::from_bytes(door)));
    let groups = spec.groups.iter().map(join).collect::<io::Result<_>>()?;
    let limits =
        [(spawn::Resource::OpenFiles, spec.open_files_max), (spawn::Resource::AddressSpace, spec.address_space_max)];
    let program = program.bounded(limits.into_iter().filter(|(_, most)| *most > 0).collect(), groups);
    Ok(match spec.identity.as_slice() {
        [uid, gid, groups @ ..] => program.owned_by(spawn::Identity { uid: *uid, gid: *gid, groups: groups.to_vec() }),
        _ => program,
    })
}

/// The frame that reports why the shell could not be started.
fn not_started(step: spawn::Step, errno: u32) -> FromHolder {
    FromHolder::Done { seq: 0, status: Status::Failed, value: u64::from(step as u8) << 32 | u64::from(errno) }
}

/// Gives the holder a session of its own, so that no terminal hang-up and no group signal reaches it, and makes it the
/// subreaper of its descendants.
fn prepare_process() -> io::Result<()> {
    sys::process::keep_descriptors_to_ourselves();
    // Fails only for a group leader, for which nothing needs to change.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let _ = rustix::thread::set_name(c"ptyd-holder");
    for signo in [signal::HUP, signal::INT, signal::QUIT, signal::TSTP] {
        signal::ignore(signo);
    }
    Ok(())
}

/// Restores the user's own limit for the shell: the server raised its limit for its many sessions.
fn limit_open_files(soft: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if soft > 0 {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // Lowering is always allowed (setrlimit(2)).
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), maximum });
    }
}

/// 128 bits from the kernel, in hexadecimal.
fn secret() -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = [0u8; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().flat_map(|b| format!("{b:02x}").into_bytes()).collect())
}

/// A random start of the prompt mark sequence.
fn seed() -> io::Result<u32> {
    let mut bytes = [0; 4];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u32::from_le_bytes(bytes) & 0x7fff_ffff)
}

/// Whether prompt marks in the output are evaluated.
fn speaks_by_prompts(spec: &Spec) -> bool {
    spec.handover.is_in_band() || spec.handover.line().is_some()
}

/// The bytes sent to the shell at its start: the secret, the path of the staged command (the holder's own descriptor,
/// which the same user may open) and, with prompt marks, the start of their sequence.
fn greeting(secret: &[u8], command_file: &std::fs::File, spec: &Spec, seed: u32) -> VecDeque<u8> {
    if !spec.handover.has_hooks() {
        return VecDeque::new();
    }
    let path = match spec.handover.script.is_empty() {
        true => format!("/proc/{}/fd/{}", std::process::id(), command_file.as_raw_fd()),
        false => format!("/proc/self/fd/{COMMAND_FD}"),
    };
    let seed = if speaks_by_prompts(spec) { format!("{seed}\n") } else { String::new() };
    [secret, b"\n", path.as_bytes(), b"\n", seed.as_bytes()].concat().into()
}

impl Holder {
    fn of_shell(
        shell_pid: u32,
        folder: &Path,
        path: &CStr,
        (spec, signals, server, leader, attestation, command_file): (
            Spec,
            OwnedFd,
            Connection,
            OwnedFd,
            OwnedFd,
            std::fs::File,
        ),
    ) -> io::Result<Self> {
        // Watched first, so that no removal is missed.
        let home = Folder::watched(folder, time::monotonic_us())?;
        let events = EventsWriter::create(folder)?;
        let retention = match spec.journal_bytes_max {
            0 => Retention::UNLIMITED,
            n => Retention::newest(n),
        };
        let journal = journal::Writer::create(folder, retention)?;
        let listener = socket::listen_in(folder, SOCKET_FILE)?;
        listener.set_nonblocking(true)?;
        let text_file = spec.handover.is_in_band().then(|| requests::text_file(folder)).transpose()?;
        let secret = secret()?;
        let seed = seed()?;
        let greeting = greeting(&secret, &command_file, &spec, seed);
        let takes_lines = spec.handover.line().is_some();
        let mut holder = Self {
            leader,
            attestation,
            is_unattested: false,
            greeting,
            signals,
            listener,
            folder: home,
            clients: vec![server],
            next_client: 1,
            journal,
            events,
            held: VecDeque::new(),
            pump: Pump::new(spec.may_splice),
            pace: Throttle::new(spec.output_rate, time::monotonic_us()),
            paced: None,
            passing_of: 0,
            prompt: ShellState::new(secret),
            prompts: speaks_by_prompts(&spec).then(|| (PromptSequence::new(seed), Offset::ZERO)),
            asked: VecDeque::new(),
            keyboard: InputQueue::default(),
            sampler: Sampler::new(path, takes_lines),
            command_file,
            text_file,
            waiting: None,
            shell_pid,
            exit: None,
            ending: None,
            termination_callers: Vec::new(),
            is_end_asked: false,
            is_exit_delayed: false,
            is_over: false,
            published: Tail::default(),
            answered: Offset::ZERO,
            answered_on_record: Offset::ZERO,
            answers: VecDeque::new(),
            prompt_at: Offset::ZERO,
            turn_from: Offset::ZERO,
            retry_at: None,
            is_full: false,
            has_more: false,
            quiet_at: None,
            gives_back: false,
            announce_by: None,
            expects_marker: None,
            has_marker: false,
            typed_at: 0,
            idle_until: 0,
            spec,
        };
        let (cols, rows) = (holder.spec.cols, holder.spec.rows);
        let started = Record::Started { holder_pid: std::process::id(), shell_pid, cols, rows };
        holder.events.record(time::wall_us(), Offset::ZERO, &started)?;
        holder.published = Tail { journal: Offset::ZERO, events: holder.events.end() };
        holder.sampler.schedule_look(time::monotonic_us());
        let hello = holder.hello();
        holder.each_attached(|c| c.send(&hello));
        Ok(holder)
    }

    // Not inlined, so that its stack frame is gone when the memory below it is returned.
    #[inline(never)]
    fn turn(&mut self) -> io::Result<()> {
        let ready = self.wait_for_something()?;
        let now = time::monotonic_us();
        self.greet();
        self.turn_from = self.journal.end();
        self.move_bytes(now);
        self.drain_attestation(now);
        self.on_prompt_marks(now);
        if ready.signals || self.exit.is_some() {
            self.reap(now);
        }
        if self.folder.is_due(now) {
            self.check_folder(now);
        }
        self.write_input(now);
        self.start_input(now);
        self.send_query_replies(now);
        self.start_waiting_command(now);
        self.look(now);
        self.serve_clients(&ready, now);
        self.go_on_ending(now);
        self.publish(now);
        // The server cannot use the held frames before the marker arrives; waking it now would take the CPU time that
        // the marker's path needs.
        let may_wait = now < self.idle_until || self.expects_marker.is_some() && self.held.is_empty();
        for client in self.clients.iter_mut().filter(|c| !(may_wait && c.is_held())) {
            client.flush();
        }
        self.clients.retain(|c| !c.is_over());
        Ok(())
    }

    /// Sends one byte per datagram: bash reads this socket one byte at a time, and the kernel drops the rest of a
    /// datagram that was read in part.
    fn greet(&mut self) {
        while let Some(byte) = self.greeting.front() {
            match rustix::net::send(&self.attestation, &[*byte], rustix::net::SendFlags::DONTWAIT) {
                Ok(_) => {
                    self.greeting.pop_front();
                }
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => break,
                Err(_) => self.greeting.clear(),
            }
        }
    }

    fn move_bytes(&mut self, now: u64) {
        if self.retry_at.is_some_and(|at| at > now) {
            return;
        }
        self.retry_at = None;
        let before = self.journal.end();
        if self.pace.awaited().is_none() {
            self.passing_of = self.prompt.command();
        }
        let most = self.pace.allowance(now);
        self.has_more = most > 0 && self.pump_once(now, most) == Turn::More && self.pace.held_until().is_none();
        if let Some(errno) = self.pump.refused.take() {
            self.trouble(TroubleKind::SPLICE_REFUSED, errno.raw_os_error(), b"copying instead");
        }
        if self.journal.end() > before {
            self.quiet_at = Some(now + QUIET_US);
            self.sampler.wrote(now);
            self.schedule_look(now);
            match self.journal.retain(&self.events, self.published.journal) {
                Ok(Retained::From(first)) => self.note(&Record::Retained { first }),
                Ok(Retained::Refused(errno)) => {
                    self.trouble(TroubleKind::PUNCH_REFUSED, errno.raw_os_error(), b"old output is kept");
                }
                Ok(Retained::All) | Err(_) => {}
            }
        } else if self.quiet_at.is_some_and(|at| at <= now) {
            self.quiet_at = None;
            self.pump.rest();
            self.gives_back = true;
        }
    }

    /// One turn of the pump; records when the disk becomes full and when it has room again.
    fn pump_once(&mut self, now: u64, most: usize) -> Turn {
        let before = self.journal.end();
        let turn = match self.pump.turn(self.leader.as_fd(), &mut self.journal, most) {
            Turn::Cut => self.give_up_journal(),
            turn => turn,
        };
        self.count_throttled(self.journal.end().since(before), now);
        match turn {
            Turn::Full(errno) => {
                self.retry_at = Some(now + FULL_RETRY_US);
                if !self.is_full {
                    self.is_full = true;
                    self.trouble(
                        TroubleKind::DISK_FULL,
                        errno.raw_os_error(),
                        b"the journal cannot grow; the program waits",
                    );
                }
            }
            Turn::Drained | Turn::More | Turn::Cut | Turn::HungUp if self.is_full => {
                self.is_full = false;
                self.trouble(TroubleKind::RECOVERED, 0, b"there is room again; nothing was lost");
            }
            Turn::HungUp => self.retry_at = Some(now + HUNG_UP_RETRY_US),
            Turn::Drained | Turn::More | Turn::Cut => {}
        }
        turn
    }

    /// Another process has cut the journal: the output goes on at its offset, and what was before it is told as missing.
    fn give_up_journal(&mut self) -> Turn {
        if let Err(e) = self.journal.give_up(&self.events) {
            return Turn::Full(rustix::io::Errno::from_io_error(&e).unwrap_or(rustix::io::Errno::IO));
        }
        self.trouble(TroubleKind::JOURNAL_CUT, 0, b"another process has cut the journal");
        Turn::More
    }

    /// Reads everything that the terminal holds. False if the journal cannot take all of it now and no client asked for
    /// termination, so that the exit must wait for room.
    fn takes_the_rest(&mut self, now: u64) -> bool {
        let enough = self.journal.end().plus(LAST_BYTES_MAX);
        while self.pump_once(now, usize::MAX) == Turn::More && self.journal.end() < enough {}
        !self.is_full || self.is_end_asked
    }

    /// Something changed: schedule a foreground sample, unless the shell is at its prompt and no input was typed ahead.
    fn schedule_look(&mut self, now: u64) {
        let has_told = self.prompt.shell == Phase::Ready && !self.prompt.is_only_seen();
        let is_at_rest = has_told && !self.prompt.input_since_handover();
        if is_at_rest || self.exit.is_some() {
            self.sampler.suspend();
        } else {
            self.sampler.schedule_look(now);
        }
    }

    /// The processes that a termination covers.
    fn whom(&self) -> Scope {
        if self.spec.keeps_descendants { Scope::Session(self.shell_pid) } else { Scope::All }
    }

    /// Ends the session if its folder was removed: no client could reach or end it any more.
    fn check_folder(&mut self, now: u64) {
        if self.folder.is_gone(now) {
            self.end_by_itself(b"the session's folder was removed", now);
        }
    }

    /// Ends the session without a client's request.
    fn end_by_itself(&mut self, why: &[u8], now: u64) {
        self.is_end_asked = true;
        if self.ending.is_none() {
            self.refuse_waiting();
            self.note(&Record::Ending { reason: EndReason::HOLDER, text: why });
            self.ending = Some(Termination::asked(signal::HUP, GRACE_US, self.whom(), now));
        }
    }

    /// Reaps every child; the shell's exit is the session's end.
    fn reap(&mut self, now: u64) {
        while let Some(signo) = signal::take(&self.signals) {
            match signo {
                signal::TERM => self.end_by_itself(b"the holder got SIGTERM", now),
                signal::IO => self.check_folder(now),
                _ => {}
            }
        }
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid.as_raw_nonzero().get().unsigned_abs() == self.shell_pid && self.exit.is_none() {
                self.exit = Some((status.as_raw(), false));
                self.sampler.suspend();
            }
        }
        let Some((wait_status, false)) = self.exit else {
            return;
        };
        // The shell's last output is in the terminal already, and its last reports are in the socket.
        let is_drained = self.takes_the_rest(now);
        self.drain_attestation(now);
        if !is_drained {
            // The exit record names an end offset, so all output up to it must be in the journal. Until then the
            // writers block as before.
            if !self.is_exit_delayed {
                self.is_exit_delayed = true;
                let words = b"the shell has exited; its last output waits for room on the disk";
                self.trouble(TroubleKind::DISK_FULL, 0, words);
            }
            return;
        }
        if self.is_full {
            self.trouble(TroubleKind::DISK_FULL, 0, b"ended while the disk was full; the last output is lost");
        }
        let end = self.journal.end();
        let exited = Record::Exited { wait_status, end, dropped_records: self.prompt.dropped };
        if self.events.record(time::wall_us(), end, &exited).is_ok() {
            self.exit = Some((wait_status, true));
            self.announce_by = Some(now);
            self.refuse_waiting();
            match &mut self.ending {
                Some(ending) => ending.shell_is_gone(now),
                None if self.spec.keeps_descendants => self.is_over = true,
                None => self.ending = Some(Termination::after_exit(now)),
            }
        } else {
            self.retry_at.get_or_insert(now + FULL_RETRY_US);
        }
    }

    fn look(&mut self, now: u64) {
        if let Some(until) = self.pace.blocked_until() {
            return self.sampler.put_off(until);
        }
        let Some(state) = self.sampler.look(now, self.leader.as_fd(), self.shell_pid) else { return };
        let state = State { answered: self.answered, ..state };
        // At a reported prompt, only the foreground of input that was typed ahead is new to the server.
        let is_typed_ahead = state.group != self.shell_pid || state.foreground == Foreground::ShellReads;
        if self.prompt.shell == Phase::Ready && !is_typed_ahead {
            if state.foreground == Foreground::Editor {
                self.sampler.suspend();
            }
            if !self.prompt.is_only_seen() {
                return;
            }
        }
        if self.pace.held_until().is_some() && !matches!(state.foreground, Foreground::Busy | Foreground::Unknown) {
            self.pump_once(now, HELD_BYTES_MAX);
        }
        // "Input wanted" is published only together with all output written before it.
        self.announce_by = Some(now);
        self.publish(now);
        self.each_attached(|c| c.send(&FromHolder::State(state)));
    }

    /// Publishes the tail: at once if a client waits for it, a little later while a command has just begun.
    fn publish(&mut self, now: u64) {
        let tail = Tail { journal: self.journal.end(), events: self.events.end() };
        if tail == self.published || !self.held.is_empty() {
            // A deadline in the past with nothing to publish would keep the loop spinning.
            self.announce_by = None;
            return;
        }
        // New bytes are published at once, except that bytes before an expected marker are published together with it.
        self.has_marker |= self.expects_marker.is_some_and(|from| tail.journal > from);
        let has_news = tail.journal > self.published.journal && (self.has_marker || self.expects_marker.is_none());
        if !self.is_over && !has_news && self.announce_by.is_none_or(|at| at > now) {
            // Only events are new: publish them with the bytes that belong to them, or after MARKER_US.
            self.announce_by.get_or_insert(now + MARKER_US);
            return;
        }
        // A shell paints its prompt in several pieces. No client waits for these, except while a person types.
        if self.has_marker && self.prompt.shell == Phase::Ready && now > self.typed_at + TYPING_US {
            self.idle_until = now + COALESCE_US;
        }
        (self.expects_marker, self.has_marker) = (None, false);
        self.announce_by = None;
        self.published = tail;
        self.each_attached(|c| c.send(&FromHolder::Tail(tail)));
    }

    /// Answers requests together with the tail they belong to: with the next frame, or when the idle time is over.
    fn answer_later(&mut self, from: &[(u64, u32)], value: u64, now: u64) {
        let tail = Tail { journal: self.journal.end(), events: self.events.end() };
        if self.held.is_empty() {
            self.published = tail;
            self.announce_by = None;
            self.each_attached(|c| c.hold(&FromHolder::Tail(tail)));
        }
        let held = self.held.is_empty() && now < self.idle_until;
        for (client, seq) in from {
            if let Some(client) = self.clients.iter_mut().find(|c| c.id == *client) {
                let done = FromHolder::Done { seq: *seq, status: Status::Ok, value };
                if held { client.hold(&done) } else { client.send(&done) }
            }
        }
    }

    fn each_attached(&mut self, mut f: impl FnMut(&mut Connection)) {
        self.clients.iter_mut().filter(|c| c.is_attached).for_each(&mut f);
    }

    fn answer(&mut self, (client, seq): (u64, u32), status: Status, value: u64) {
        if let Some(client) = self.clients.iter_mut().find(|c| c.id == client) {
            client.send(&FromHolder::Done { seq, status, value });
        }
    }

    /// Appends a record whose loss is acceptable on a full disk; reports and the exit are retried instead.
    fn note(&mut self, record: &Record<'_>) {
        let _ = self.events.record(time::wall_us(), self.journal.end(), record);
    }

    fn trouble(&mut self, what: TroubleKind, errno: i32, text: &[u8]) {
        self.note(&Record::Trouble { what, errno, text });
    }

    /// Shuts down: flushes every frame to the clients, removes the socket and syncs the event log to disk.
    fn shut_down(&mut self) {
        self.folder.remove_socket();
        let until = time::monotonic_us() + FAREWELL_US;
        while self.clients.iter().any(Connection::has_unsent) && time::monotonic_us() < until {
            let mut fds: Vec<PollFd<'_>> =
                self.clients.iter().map(|c| PollFd::from_borrowed_fd(c.fd(), PollFlags::OUT)).collect();
            let wait = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
            let _ = poll(&mut fds, Some(&wait));
            for client in &mut self.clients {
                client.flush();
            }
            self.clients.retain(|c| !c.is_over());
        }
        let _ = self.events.sync();
    }
}
