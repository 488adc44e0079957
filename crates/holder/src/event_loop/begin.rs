//! The start of a holder: the shell first, because it takes the longest, and then each part of the holder.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use journal::Record;
use sys::sandbox::Sandbox;
use sys::{signal, socket, time};
use wire::{Claim, SOCKET_FILE, Spec};

use super::context::Context;
use super::ending::Ending;
use super::holder::Holder;
use super::reports::Reports;
use crate::connection::Connection;
use crate::connections::Connections;
use crate::handover::{CommandHandover, CommandKeys};
use crate::output_backpressure::Output;
use crate::records::Records;
use crate::staging::Staging;
use crate::startup::{self, Inherited};
use crate::terminal::Terminal;

/// Starts the shell, and takes over its terminal.
#[inline(never)]
pub(super) fn begin(folder: &Path) -> io::Result<Box<Holder>> {
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
    let holder = with_shell(spec, folder, &pty.path, parts).inspect_err(|_| {
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

fn with_shell(spec: Spec, folder: &Path, tty: &CStr, parts: Parts) -> io::Result<Holder> {
    let Parts { signals, server, terminal, attestation, command, container } = parts;
    let now = time::monotonic_us();
    // Watched first, so that no removal is missed.
    let ending = Ending::watching(folder, signals, &spec, now)?;
    let records = Records::create(folder, spec.journal_bytes_max)?;
    let listener = socket::listen_in(folder, SOCKET_FILE)?;
    listener.set_nonblocking(true)?;
    let (secret, seed) = (startup::secret()?, startup::seed()?);
    let greeting = startup::greeting(&secret, &command, &spec, seed);
    let in_prompts = startup::speaks_by_prompts(&spec).then_some(seed);
    let shell_pid = terminal.shell_pid();
    let output = Output::new(spec.may_splice, spec.output_rate, now);
    let connections = Connections::new(listener, server);
    let keys = CommandKeys::new(spec.handover);
    let mut context = Context::new(terminal, connections, output, records, keys, (tty, spec.keeps_descendants));
    let (cols, rows) = context.terminal.size();
    context.records.append(&Record::Started { holder_pid: std::process::id(), shell_pid, cols, rows })?;
    if let Some(tail) = context.records.tail() {
        context.publication.publish(tail);
    }
    context.schedule_sample(time::monotonic_us());
    let hello = context.hello();
    context.connections.send_attached(&hello);
    Ok(Holder {
        context,
        reports: Reports::new(attestation, greeting, (shell_pid, secret), in_prompts),
        handover: CommandHandover::new(command),
        input: Default::default(),
        signals: Default::default(),
        ending,
        _container: container,
    })
}
