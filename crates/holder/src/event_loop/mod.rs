//! The holder's event loop: one thread, one poll(2), and the same order of steps in every turn.
//!
//! ```text
//! bytes into the journal → attestation drained → records appended → children reaped → requests → tail published
//! ```
//! The tail is published last, so a reader that reads up to it finds every marker's record already there. Every turn
//! serves the control connections and a turn is bounded, so no flood of output can starve them. Each part of the state
//! has a type of its own; the modules here only connect them.

mod ending;
mod input_record;
mod ready;
mod reports;
mod requests;
mod run_command;
mod send_signal;
mod type_input;
mod wait;

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use journal::Record;
use sys::sandbox::Sandbox;
use sys::{signal, socket, time};
use wire::{Activity, Claim, FromHolder, Hello, Observed, PROTOCOL, SOCKET_FILE, Spec, Status};

use crate::attestation::Attestation;
use crate::attestation_socket::AttestationSocket;
use crate::connection::Connection;
use crate::connections::{Caller, Connections};
use crate::folder::Folder;
use crate::foreground_sampler::{Sample, Sampler};
use crate::handover::CommandHandover;
use crate::input::{Input, UncertainSignal};
use crate::memory_kills::MemoryKills;
use crate::nonces::Nonces;
use crate::output_backpressure::Output;
use crate::output_pump::Until;
use crate::prompt_marks::MarkSearch;
use crate::publication::Publication;
use crate::query_replies::QueryReplies;
use crate::records::Records;
use crate::session_end::SessionEnd;
use crate::shell_state::{Phase, ShellState};
use crate::staging::Staging;
use crate::startup::{self, Inherited};
use crate::terminal::Terminal;
use ready::Ready;

struct Holder {
    terminal: Terminal,
    signals: OwnedFd,
    folder: Folder,
    connections: Connections,
    records: Records,
    publication: Publication,
    output: Output,
    attestation_socket: AttestationSocket,
    attestation: Attestation,
    /// For a shell that reports by prompt marks in its output.
    marks: Option<MarkSearch>,
    shell: ShellState,
    handover: CommandHandover,
    nonces: Nonces,
    input: Input,
    uncertain_signal: Option<UncertainSignal>,
    replies: QueryReplies,
    sampler: Sampler,
    end: SessionEnd,
    memory_kills: MemoryKills,
    /// Its first process ends with this.
    _container: Option<Sandbox>,
}

/// Runs the holder of the session in this folder until the session is over.
///
/// Its stack frame stays while the holder waits for its next event, which is nearly always: whatever is large is in a
/// function of its own.
///
/// `connection` is the server's, and is closed once the shell has started.
pub fn run(folder: &Path, connection: &mut Option<OwnedFd>) -> io::Result<()> {
    let mut holder = start(folder)?;
    *connection = None;
    while !holder.end.is_over() {
        let ready = holder.wait_for_something()?;
        holder.turn(&ready);
        // Outside of `turn`, so that the stack pages it used can be returned.
        if holder.output.take_gives_back() {
            sys::memory::give_back();
        }
    }
    holder.shut_down();
    Ok(())
}

/// Starts the shell, and takes over its terminal.
#[inline(never)]
fn start(folder: &Path) -> io::Result<Box<Holder>> {
    // The claim comes first: a server that finds the folder without one concludes that the session never began.
    sys::fault::stall("begin");
    Claim::take(folder)?;
    sys::fault::stall("claimed");
    startup::prepare_process()?;
    let spec = Spec::load(folder)?;
    startup::limit_open_files(spec.open_files);
    // Before the shell starts, so that its SIGCHLD cannot be missed.
    let signals = signal::descriptor(&[signal::TERM, signal::CHLD, signal::IO])?;
    let mut server = startup::server_on_standard_input()?;
    let sandbox = startup::begin_sandbox(&spec, folder, &mut server)?;
    let attestation = socket::Attestation::pair()?;
    let command = Staging::of(&spec.handover, folder)?;
    let pty = startup::open_terminal(&spec, sandbox.as_ref(), &mut server)?;
    // The shell takes longer to start than everything else here, so it is started first.
    let given = Inherited { command: command.descriptor(), theirs: attestation.theirs };
    let terminal = (pty.path.as_c_str(), pty.follower);
    let (shell_pid, server) = startup::start_shell(&spec, folder, terminal, sandbox.as_ref(), given, server)?;
    let terminal = Terminal::new(pty.leader, shell_pid, (spec.cols, spec.rows));
    let container = sandbox.filter(Sandbox::is_container);
    let parts = Parts { signals, server, terminal, attestation: attestation.ours, command, container };
    let holder = Holder::of_shell(spec, folder, &pty.path, parts).inspect_err(|_| {
        // Without a holder the shell would be orphaned.
        let _ = signal::send(shell_pid.cast_signed(), signal::KILL);
    })?;
    Ok(Box::new(holder))
}

/// The descriptors of a holder whose shell has been started.
struct Parts {
    signals: OwnedFd,
    server: Connection,
    terminal: Terminal,
    attestation: OwnedFd,
    command: Staging,
    container: Option<Sandbox>,
}

impl Holder {
    fn of_shell(spec: Spec, folder: &Path, tty: &CStr, parts: Parts) -> io::Result<Self> {
        let Parts { signals, server, terminal, attestation, command, container } = parts;
        let now = time::monotonic_us();
        // Watched first, so that no removal is missed.
        let home = Folder::watched(folder, now)?;
        let records = Records::create(folder, spec.journal_bytes_max)?;
        let listener = socket::listen_in(folder, SOCKET_FILE)?;
        listener.set_nonblocking(true)?;
        let (secret, seed) = (startup::secret()?, startup::seed()?);
        let greeting = startup::greeting(&secret, &command, &spec, seed);
        let takes_lines = spec.handover.line().is_some();
        let marks = startup::speaks_by_prompts(&spec).then(|| MarkSearch::new(seed));
        let shell_pid = terminal.shell_pid();
        let mut holder = Self {
            terminal,
            signals,
            folder: home,
            connections: Connections::new(listener, server),
            records,
            publication: Publication::default(),
            output: Output::new(spec.may_splice, spec.output_rate, now),
            attestation_socket: AttestationSocket::new(attestation, greeting),
            attestation: Attestation::new(shell_pid, secret),
            marks,
            shell: ShellState::new(),
            handover: CommandHandover::new(spec.handover, command),
            nonces: Nonces::default(),
            input: Input::default(),
            uncertain_signal: None,
            replies: QueryReplies::default(),
            sampler: Sampler::new(tty, takes_lines),
            end: SessionEnd::new(spec.keeps_descendants),
            memory_kills: MemoryKills::new(&spec.groups),
            _container: container,
        };
        let (cols, rows) = holder.terminal.size();
        holder.records.append(&Record::Started { holder_pid: std::process::id(), shell_pid, cols, rows })?;
        if let Some(tail) = holder.records.tail() {
            holder.publication.publish(tail);
        }
        holder.schedule_sample(time::monotonic_us());
        let hello = holder.hello();
        holder.connections.send_attached(&hello);
        Ok(holder)
    }

    // Not inlined, so that its stack frame is gone when the memory below it is returned.
    #[inline(never)]
    fn turn(&mut self, ready: &Ready) {
        let now = time::monotonic_us();
        self.attestation_socket.greet();
        let has_moved = ready.output && self.move_output(now);
        // The shell reports before it prints a mark, so the socket has what belongs to the output that was moved.
        let may_be_marked = has_moved && self.output.may_end_a_mark(&self.records);
        if may_be_marked || ready.reports || self.records.has_waiting_reports() {
            self.drain_attestation(now);
        }
        // The marker of a report that has just come is mostly there: both are published together.
        if has_moved && ready.reports && self.publication.expects_marker() && self.move_output(now) {
            self.drain_attestation(now);
        }
        if has_moved {
            self.note_editor();
        }
        self.output.rest_if_due(now);
        self.on_prompt_marks(now);
        if ready.signals || self.end.has_exited() {
            self.reap(now);
        }
        if self.folder.is_due(now) {
            self.check_folder(now);
        }
        self.write_input(now);
        self.start_input(now);
        self.check_uncertain_signal(now);
        self.send_query_replies(now);
        self.start_waiting_command(now);
        self.press_load_key_again(now);
        self.sample_foreground(now);
        self.serve_clients(ready, now);
        self.go_on_ending(now);
        self.publish(now);
        // The server cannot use the held frames before the marker arrives; waking it now would take the CPU time that
        // the marker's path needs.
        let is_idle = self.publication.idle_until(now).is_some();
        let may_wait = is_idle || self.publication.expects_marker() && !self.records.has_waiting_reports();
        self.connections.flush(may_wait);
    }

    /// Moves output into the journal; true if there was any.
    fn move_output(&mut self, now: u64) -> bool {
        let command = self.shell.command();
        // The pieces of a marker are published together.
        let until = if self.publication.expects_marker() { Until::Empty } else { Until::Pause };
        let has_moved = self.output.turn(self.terminal.leader(), &mut self.records, command, until, now);
        if has_moved {
            self.sampler.wrote(now);
            self.schedule_sample(now);
            self.records.retain(self.publication.published().journal);
        }
        has_moved
    }

    /// Reads everything that the terminal holds. False if the journal cannot take all of it now and no client asked for
    /// termination, so that the exit must wait for room.
    fn takes_the_rest(&mut self, now: u64) -> bool {
        self.output.drain(self.terminal.leader(), &mut self.records, now) || !self.end.waits_for_disk()
    }

    /// Something changed: schedule a foreground sample, unless the shell is at its prompt and no input was typed ahead. Behind the
    /// end of a command and before its prompt, a hook may ask something.
    fn schedule_sample(&mut self, now: u64) {
        let has_reported = self.shell.phase() == Phase::Ready && !self.shell.is_sampled_only();
        let is_at_rest = has_reported && !self.shell.input_since_handover();
        let may_run_hooks = self.shell.may_run_hooks() && self.handover.has_private_keys();
        if is_at_rest && !may_run_hooks || self.end.has_exited() {
            self.sampler.suspend();
        } else if is_at_rest || self.shell.phase() == Phase::Starting && self.handover.has_hooks() {
            self.sampler.schedule_before_prompt(now);
        } else {
            self.sampler.schedule_sample(now);
        }
    }

    /// Samples the foreground if it is time, and reports a change.
    fn sample_foreground(&mut self, now: u64) {
        if let Some(until) = self.output.blocked_until() {
            return self.sampler.put_off(until);
        }
        let shell_pid = self.terminal.shell_pid();
        let Some(sample) = self.sampler.sample_if_due(now, self.terminal.leader(), shell_pid) else { return };
        sys::fault::stall("sampled");
        let Sample { mut facts, state, is_new } = sample;
        // At a reported prompt, only these are new to the server: a hook that asks, the editor behind it or behind typed input, and
        // the foreground of input that was typed ahead.
        if self.shell.phase() == Phase::Ready {
            let is_touched = self.shell.input_since_handover();
            let is_read = is_touched && !self.input.is_writing();
            let is_news = match state.foreground {
                Activity::ShellReads => {
                    self.shell.hook_asks();
                    true
                }
                Activity::Editor if state.group == shell_pid => {
                    self.sampler.suspend();
                    self.shell.edits();
                    self.shell.take_hook_asked() || is_read
                }
                Activity::Unknown => is_read,
                _ => state.group != shell_pid && is_touched,
            };
            if !is_news && !self.shell.is_sampled_only() {
                return;
            }
        }
        if state.foreground.waits() {
            if self.output.pass_held(self.terminal.leader(), &mut self.records, now) {
                // The output may be newer than the sample, and give the same state another meaning.
                self.sampler.wrote(now);
                self.schedule_sample(now);
            }
            self.drain_attestation(now);
        }
        if state.foreground.is_a_waiting_shell() {
            facts.rivals = self.sampler.rivals(shell_pid);
        }
        // "Input wanted" is published only together with all output written before it.
        self.publish_now(now);
        let observed = Observed { answered: self.replies.answered(), is_new, facts };
        self.connections.send_attached(&FromHolder::Observed(observed));
    }

    /// Publishes the tail if it is due.
    fn publish(&mut self, now: u64) {
        let is_at_prompt = self.shell.phase() == Phase::Ready;
        if let Some(tail) = self.publication.due(self.records.tail(), self.end.is_over(), is_at_prompt, now) {
            self.connections.send_attached(&FromHolder::Tail(tail));
        }
    }

    /// Publishes the tail without waiting for output that belongs to it.
    fn publish_now(&mut self, now: u64) {
        self.publication.announce_now(now);
        self.publish(now);
    }

    /// Answers requests together with the tail they belong to: with the next frame, or when the idle time is over.
    fn answer_later(&mut self, from: &[Caller], value: u64, now: u64) {
        let tail = self.records.tail();
        if let Some(tail) = tail {
            let tail = self.publication.publish(tail);
            self.connections.hold_attached(&FromHolder::Tail(tail));
        }
        if tail.is_some() && self.publication.idle_until(now).is_some() {
            self.connections.hold_answers(from, Status::Ok, value);
        } else {
            self.connections.answer_all(from, Status::Ok, value);
        }
    }

    fn hello(&self) -> FromHolder {
        let (cols, rows) = self.terminal.size();
        FromHolder::Hello(Hello {
            protocol: PROTOCOL,
            holder_pid: std::process::id(),
            shell_pid: self.terminal.shell_pid(),
            cols,
            rows,
            command: self.shell.command(),
            tail: self.publication.published(),
        })
    }

    /// Shuts down: removes the socket, flushes every frame to the clients, closes the records, and removes temporary files.
    fn shut_down(&mut self) {
        self.folder.remove_socket();
        self.connections.finish();
        self.records.close();
        self.folder.remove_temporary();
    }
}
