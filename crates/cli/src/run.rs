//! `ptyd run`: runs a command in a session of its own (or a given one), with its output on stdout and its exit code as
//! our own.
//!
//! A person at a terminal types at the program and sees its bytes; data on standard input is passed to the program;
//! without either, a program that wants input is mentioned once. A pipe gets the output as text.

use std::cell::Cell;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use api::{
    CommandExecution, CommandStatus, CreateRequest, EndedBy, ErrorCode, ExecuteRequest, Foreground, NumberOrName,
    OutputView, SignalRequest, TerminalSession, WaitRequest,
};
use clap::Args;
use client::{Client, ClientError};
use terminal::LineText;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;

use crate::attached_terminal::{self, TypingEnd};
use crate::completion;
use crate::detach_key::{DetachKey, DetachScanner};
use crate::exit::Failure;
use crate::follow::{self, Patience};
use crate::paths::Paths;
use crate::piped_stdin::{Input, StdinPipe};
use crate::sessions::{self, StartOptions};
use crate::{print, shim, tty, units};

/// The options of `run`.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// Run in this session [default: a new session that ends with the command]
    #[arg(long, short, conflicts_with_all = ["cwd", "shell", "env", "size"])]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Run the command in the session's nested shell, such as one over ssh or in a container; ptyd prints the output when the
    /// command has ended
    #[arg(long, requires = "session")]
    inside: bool,
    #[command(flatten)]
    start: StartOptions,
    /// Give up after this long, such as 90s or 5m, with exit code 124 [default: never]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    timeout: Option<Duration>,
    /// If the session's policy asks for a person's approval, wait for it this long, at most 10m [default: fail at
    /// once]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    approval_timeout: Option<Duration>,
    /// Print the result as JSON when the command has ended, instead of its output
    #[arg(long)]
    json: bool,
    /// Print every byte [default: text to a pipe or file; to a terminal, only output that affects its screen]
    #[arg(long)]
    raw: bool,
    /// Start the command in a session that stays, print the session's id, and do not wait
    #[arg(long, short, conflicts_with_all = ["session", "timeout", "json", "raw", "approval_timeout"])]
    detach: bool,
    /// With --detach: give the session this name
    #[arg(long, requires = "detach")]
    name: Option<String>,
    #[command(flatten)]
    habits: RunHabits,
    // No flag of `ptyd run`: a shell prefix sets it, because nobody else reads the output of its command.
    #[arg(skip)]
    ends_without_reader: bool,
    // No flag of `ptyd run`: `ptyd record` sets it, because its own stdout takes the recording.
    #[arg(skip)]
    quiet: bool,
    /// The command: one word is a line for the shell; several words are a program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

/// Options of other tools that change nothing here: a command always has a terminal, and its session always goes with it.
#[derive(Debug, Default, Args)]
struct RunHabits {
    #[arg(short = 'i', hide = true)]
    _interactive: bool,
    #[arg(short = 't', hide = true)]
    _tty: bool,
    #[arg(long = "rm", hide = true)]
    _removes: bool,
}

/// The options of `exec`.
#[derive(Debug, Args)]
pub struct ExecOptions {
    /// The session: its id, a unique beginning of its id, or its name
    #[arg(add = completion::sessions())]
    session: String,
    /// Give up after this long, such as 90s or 5m, with exit code 124 [default: never]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    timeout: Option<Duration>,
    #[command(flatten)]
    habits: RunHabits,
    /// The command: one word is a line for the shell; several words are a program and its arguments
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

impl ExecOptions {
    /// The same as `run` with a session.
    pub fn into_run(self) -> RunOptions {
        let ExecOptions { session, timeout, command, .. } = self;
        RunOptions { session: Some(session), ..RunOptions::alone(command, StartOptions::default(), timeout, false) }
    }
}

impl RunOptions {
    /// Whether its session stays.
    pub fn stays(&self) -> bool {
        self.detach
    }

    /// Runs a line in this session.
    pub fn line(session: String, line: String) -> Self {
        Self {
            session: Some(session),
            ends_without_reader: true,
            ..Self::alone(vec![line], StartOptions::default(), None, false)
        }
    }

    /// Runs it in a session of its own.
    pub fn alone(command: Vec<String>, start: StartOptions, timeout: Option<Duration>, quiet: bool) -> Self {
        Self {
            session: None,
            inside: false,
            start,
            timeout,
            approval_timeout: None,
            json: false,
            raw: false,
            ends_without_reader: false,
            quiet,
            detach: false,
            name: None,
            habits: RunHabits::default(),
            command,
        }
    }
}

/// The time within which a shell must show its first prompt.
const FIRST_PROMPT: Duration = Duration::from_secs(10);

/// The first wait. The offset of a command's output is known once the shell has reported its start, which takes a
/// millisecond; output that comes earlier is shown afterwards.
const START: Duration = Duration::from_millis(50);

/// The time to wait after an interrupt for an answer in transit.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The signals that end this process, caught from its creation on, so that none is lost and no session remains.
struct Leaving {
    interrupts: Signal,
    terminations: Signal,
    hangups: Signal,
}

impl Leaving {
    fn catch() -> io::Result<Self> {
        Ok(Self {
            interrupts: signal(SignalKind::interrupt())?,
            terminations: signal(SignalKind::terminate())?,
            hangups: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one of them; returns whether it was an interrupt, which may be meant for the program.
    async fn asked(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupts.recv() => true,
            _ = self.terminations.recv() => false,
            _ = self.hangups.recv() => false,
        }
    }
}

/// The state of a run: requests are repeated at the next server if one dies, and the idempotency key keeps anything
/// from happening twice.
struct Runner<'a> {
    client: &'a Client,
    paths: &'a Paths,
    key: String,
    /// The source of the program's input.
    input: Input,
    /// True once it was mentioned that the program wants input.
    has_asked: Cell<bool>,
}

/// Runs the command.
pub async fn run(client: &Client, paths: &Paths, options: &RunOptions) -> Result<ExitCode, Failure> {
    let request = options.start.request(client, options.name.clone())?;
    if options.detach {
        let session = client.create(&request, None).await?;
        sessions::begin(client, &session, &options.command).await?;
        print::line(&session.id)?;
        return Ok(ExitCode::SUCCESS);
    }
    run_and(client, paths, options, &request, async |_| Ok(())).await
}

/// Runs the command, and calls `done` before its own session ends, however the command ended.
pub async fn run_and(
    client: &Client,
    paths: &Paths,
    options: &RunOptions,
    request: &CreateRequest,
    and: impl AsyncFnOnce(&TerminalSession) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let text = sessions::command_of(&options.command);
    let mut leaving = Leaving::catch()?;
    let key = format!("run-{}", shim::random_name()?);
    let input = match Input::find() {
        // Without visible output a person cannot answer.
        Input::Person if options.json || options.quiet => Input::None,
        found => found,
    };
    let runner = Runner { client, paths, key, input, has_asked: Cell::new(false) };
    if let Some(given) = &options.session {
        let session = sessions::find(client, given).await?;
        return runner.within(&session, &text, options, &mut leaving).await;
    }
    let session = runner.made(request, &mut leaving).await?;
    let result = runner.within(&session, &text, options, &mut leaving).await;
    let done = tokio::select! {
        done = and(&session) => done,
        _ = leaving.asked() => Err(Failure::new("interrupted")),
    };
    runner.end(&session, result.is_err(), &mut leaving).await;
    // The command's own failure is more important than a failure after it.
    result.and_then(|code| done.map(|()| code))
}

impl Runner<'_> {
    /// A key of its own for each request.
    fn session_key(&self) -> String {
        format!("{}-session", self.key)
    }

    fn patience(&self) -> Patience {
        Patience::that_starts(self.paths)
    }

    /// Creates our own session.
    async fn made(&self, request: &CreateRequest, leaving: &mut Leaving) -> Result<TerminalSession, Failure> {
        let mut patience = self.patience();
        let making = patience.ask(async || self.client.create(request, Some(&self.session_key())).await);
        tokio::pin!(making);
        tokio::select! {
            made = &mut making => return made,
            _ = leaving.asked() => {}
        }
        // The session may exist already, and only the answer has its id.
        if let Ok(Ok(session)) = tokio::time::timeout(LAST_WORDS, making).await {
            self.end(&session, true, leaving).await;
        }
        Err(Failure::new("interrupted"))
    }

    /// Ends our own session, also through the next server.
    async fn end(&self, session: &TerminalSession, force: bool, leaving: &mut Leaving) {
        let mut patience = self.patience();
        let ended = tokio::select! {
            ended = patience.ask(async || self.client.terminate(&session.id, force, None).await) => ended.map(drop),
            _ = leaving.asked() => Err(Failure::new("interrupted")),
        };
        if let Err(why) = ended {
            print::note(format_args!("ptyd: {} may not have ended: {why}", session.id));
        }
    }

    async fn within(
        &self,
        session: &TerminalSession,
        text: &str,
        options: &RunOptions,
        leaving: &mut Leaving,
    ) -> Result<ExitCode, Failure> {
        let running = self.one(session, text, options, leaving);
        match options.timeout {
            Some(most) => tokio::time::timeout(most, running).await.unwrap_or_else(|_| {
                Err(Failure::timed_out(format!("the command was still running after {} s", most.as_secs_f64())))
            }),
            None => running.await,
        }
    }

    async fn one(
        &self,
        session: &TerminalSession,
        text: &str,
        options: &RunOptions,
        leaving: &mut Leaving,
    ) -> Result<ExitCode, Failure> {
        let (runs, begun, interrupted) = (Cell::new(false), Notify::new(), Cell::new(false));
        let feed = match self.input {
            Input::Data if options.inside => {
                return Err(Failure::usage(
                    "standard input cannot be passed to a command in a nested shell; run it with </dev/null",
                ));
            }
            Input::Data if self.client.is_elsewhere() => {
                return Err(Failure::usage(
                    "standard input cannot be passed to a command on another machine; run it with </dev/null",
                ));
            }
            Input::Data if session.confinement.is_some() => {
                return Err(Failure::usage(
                    "a command of a confined session cannot read standard input, because it does not reach ptyd's named pipe; run it with </dev/null, and let it read a file of its workspace",
                ));
            }
            Input::Data => Some(StdinPipe::make(&self.paths.socket, &session.shell)?),
            Input::Person | Input::None => None,
        };
        let text = feed.as_ref().map_or_else(|| text.to_owned(), |feed| feed.given_to(text));
        let following = async {
            if let Some(feed) = &feed {
                feed.begin();
            }
            let command = self.accepted(session, &text, options).await?;
            runs.set(true);
            begun.notify_one();
            if interrupted.get() {
                self.interrupt(session).await;
            }
            let done = if self.input == Input::Person {
                self.used(session, &command, options).await?
            } else {
                let done = self.followed(session, &command, options).await;
                // Without its reader, a command of the host's own shell would end by SIGPIPE.
                if done.is_err() && options.ends_without_reader {
                    self.interrupt(session).await;
                }
                done?
            };
            if options.json {
                let whole = async || self.client.command(&done.session_id, &done.id, 1_000_000).await;
                print::json(&self.patience().ask(whole).await?)?;
            }
            self.code(&done).await
        };
        tokio::pin!(following);
        loop {
            tokio::select! {
                done = &mut following => return done,
                // The first interrupt is passed to the program, as if typed; a second one leaves a program that does
                // not end.
                is_interrupt = leaving.asked() => {
                    if !is_interrupt {
                        // Our own session ends with its command; another's goes on without it.
                        if options.session.is_some() {
                            let begins = tokio::time::timeout(LAST_WORDS, begun.notified());
                            tokio::select! {
                                _ = &mut following => return Err(Failure::new("terminated")),
                                begins = begins, if !runs.get() => if begins.is_err() {
                                    return Err(Failure::new("terminated"));
                                },
                                () = std::future::ready(()), if runs.get() => {}
                            }
                            // C-c comes first: after a TERM a shell goes on with the next command of a list. In a shell inside,
                            // TERM would end that shell.
                            self.interrupt(session).await;
                            let is_over = tokio::time::timeout(LAST_WORDS, &mut following).await.is_ok();
                            if !is_over && !options.inside {
                                self.signal(session, "TERM").await;
                            }
                        }
                        return Err(Failure::new("terminated"));
                    }
                    if interrupted.replace(true) {
                        return Err(Failure::new("interrupted"));
                    }
                    if runs.get() {
                        self.interrupt(session).await;
                    }
                }
            }
        }
    }

    /// Follows the command to its end, and prints its output.
    async fn followed(
        &self,
        session: &TerminalSession,
        command: &CommandExecution,
        options: &RunOptions,
    ) -> Result<CommandExecution, Failure> {
        if options.json || options.quiet {
            return self.finished(command).await;
        }
        let mut printer = Printer::find(options.raw, session.dimensions.cols);
        // Until the nested shell has reported where the output begins, output is an echo of the typed line.
        let inside = if options.inside { Some(self.finished(command).await?) } else { None };
        let done = self.printed(inside.as_ref().unwrap_or(command), &mut printer).await?;
        printer.finish()?;
        Ok(done)
    }

    /// The same with the person at this terminal, who types and reads.
    async fn used(
        &self,
        session: &TerminalSession,
        command: &CommandExecution,
        options: &RunOptions,
    ) -> Result<CommandExecution, Failure> {
        let changes = attached_terminal::size_changes()?;
        let fits = options.session.is_none();
        let resizing = async {
            if !fits {
                return std::future::pending().await;
            }
            let fit = async || attached_terminal::fit(self.client, &session.id).await.map(drop);
            if tty::size().is_some_and(|size| size != session.dimensions)
                && let Err(failure) = self.patience().ask(fit).await
            {
                return failure;
            }
            attached_terminal::resizing(changes, self.patience(), fit).await
        };
        let typing = async {
            let keyboard = DetachScanner::new(DetachKey::default());
            match attached_terminal::typing(self.client, &session.id, keyboard, false, self.patience()).await {
                Ok(TypingEnd::Gone) => std::future::pending().await,
                Ok(TypingEnd::Detached) if fits => Failure::new("detached; the command was ended"),
                Ok(TypingEnd::Detached) => {
                    Failure::new(format!("detached; the command keeps running in {}", session.id))
                }
                Err(failure) => failure,
            }
        };
        let _raw = tty::Raw::enter()?;
        tokio::select! {
            done = self.followed(session, command, options) => done,
            failure = typing => Err(failure),
            failure = resizing => Err(failure),
        }
    }

    async fn interrupt(&self, session: &TerminalSession) {
        self.signal(session, "INT").await;
    }

    async fn signal(&self, session: &TerminalSession, name: &str) {
        let request = SignalRequest { signal: NumberOrName::Name(name.to_owned()), target: None };
        let _ = self.client.signal(&session.id, &request).await;
    }

    /// Submits the command; a new shell may not be at its prompt yet.
    async fn accepted(
        &self,
        session: &TerminalSession,
        text: &str,
        options: &RunOptions,
    ) -> Result<CommandExecution, Failure> {
        let is_ours = options.session.is_none();
        let mut request = ExecuteRequest {
            command: text.to_owned(),
            timeout: Some(START.as_secs_f64()),
            max_chars: Some(0),
            inside: options.inside,
            ..ExecuteRequest::default()
        };
        let begun = std::time::Instant::now();
        let mut patience = self.patience();
        loop {
            match self.client.execute(&session.id, &request, Some(&self.key)).await {
                Ok(command) => return Ok(command),
                Err(e) if e.code() == Some(ErrorCode::SessionNotReady) && begun.elapsed() < FIRST_PROMPT => {
                    follow::moment().await;
                }
                // The first answer names the approval; the next one comes with the decision.
                Err(e)
                    if e.code() == Some(ErrorCode::ApprovalNeeded)
                        && request.approval_timeout.is_none()
                        && options.approval_timeout.is_some() =>
                {
                    let failure =
                        Failure::from(e).advising("; send the same request again", "this command waits for it");
                    print::note(format_args!("ptyd: {failure}"));
                    request.approval_timeout = options.approval_timeout.map(|time| time.as_secs_f64());
                }
                // The approval ends with the session of this one command.
                Err(e) if e.code() == Some(ErrorCode::ApprovalNeeded) && is_ours => {
                    let advice = match request.approval_timeout {
                        None => "wait for it with --approval-timeout 5m, or use a session (ptyd run -s)",
                        Some(_) => "nobody decided in this time: wait for longer, or use a session (ptyd run -s)",
                    };
                    return Err(Failure::from(e).advising("; waiting for approval ", advice));
                }
                // A server that died had accepted it, and it has ended its shell since: no other command runs in this
                // session.
                Err(e) if e.code() == Some(ErrorCode::SessionEnded) && is_ours => {
                    let all = patience.ask(async || self.client.commands(&session.id).await).await?;
                    return all.commands.into_iter().next().ok_or_else(|| e.into());
                }
                Err(e) => patience.after(e).await?,
            }
        }
    }

    /// Prints exactly the command's bytes as they come, until it has ended.
    async fn printed(&self, command: &CommandExecution, printer: &mut Printer) -> Result<CommandExecution, Failure> {
        let client = self.client;
        let mut next = command.start_offset;
        let ended = self.finished(command);
        tokio::pin!(ended);
        let mut patience = self.patience();
        let done = loop {
            let chunk = tokio::select! {
                done = &mut ended => break done?,
                chunk = follow::next(client, &command.session_id, next, OutputView::Stream) => chunk,
            };
            // The chunk may begin before the command's output or extend beyond it; only its state after the read shows
            // that.
            let looked = match chunk {
                Ok(chunk) => client.command(&command.session_id, &command.id, 0).await.map(|now| (chunk, now)),
                Err(e) => Err(e),
            };
            let chunk = match looked {
                Ok((_, now)) if now.status != CommandStatus::Running => break now,
                Ok((_, now)) if now.start_offset > next => {
                    next = now.start_offset;
                    continue;
                }
                Ok((chunk, _)) => chunk,
                Err(e) => {
                    patience.after(e).await?;
                    continue;
                }
            };
            patience.rewarded();
            say_gap(&chunk);
            next = chunk.next_offset;
            printer.print(&follow::bytes(chunk)?)?;
        };
        next = next.max(done.start_offset);
        let end = done.end_offset.unwrap_or(next);
        let mut view = OutputView::Stream;
        while next < end {
            let chunk =
                patience.ask(async || follow::until(client, &command.session_id, next, end, view).await).await?;
            say_gap(&chunk);
            // An unfinished sequence of the command is held back as long as it could become a marker; now it cannot.
            if chunk.next_offset <= next {
                if view == OutputView::Raw {
                    break;
                }
                view = OutputView::Raw;
                continue;
            }
            next = chunk.next_offset;
            printer.print(&follow::bytes(chunk)?)?;
        }
        Ok(done)
    }

    /// The command once it has ended.
    async fn finished(&self, command: &CommandExecution) -> Result<CommandExecution, Failure> {
        let client = self.client;
        let mut patience = self.patience();
        loop {
            let looked: Result<_, ClientError> = async {
                let now = client.command(&command.session_id, &command.id, 0).await?;
                if now.status == CommandStatus::Running {
                    let input_wanted = self.input != Input::Person && !self.has_asked.get();
                    let request = WaitRequest { input_wanted, ..wait_for_end() };
                    let answer = client.wait(&command.session_id, &request).await?;
                    if answer.ended_by == EndedBy::InputWanted && input_wanted {
                        self.asks(&command.session_id, answer.foreground);
                    }
                }
                Ok(now)
            }
            .await;
            match looked {
                Ok(now) if now.status != CommandStatus::Running => return Ok(now),
                Ok(_) => patience.rewarded(),
                // The session ended during the wait: the command's record says how.
                Err(e) if e.code() == Some(ErrorCode::SessionEnded) => {}
                Err(e) => patience.after(e).await?,
            }
        }
    }

    /// Mentions once how to send input to a program that wants some, and how to end the wait.
    fn asks(&self, session: &str, foreground: Foreground) {
        self.has_asked.set(true);
        let send = match foreground {
            Foreground::PasswordWanted => format!("ptyd send --secret {session}"),
            _ => format!("ptyd send {session} TEXT"),
        };
        print::note(format_args!(
            "ptyd: the program wants input: type it with `{send}`, or use `ptyd attach {session}`. Until then this \
             command waits; C-c interrupts the program, and --timeout limits the wait"
        ));
    }

    /// The command's exit code; that of its shell if the shell ended with it.
    async fn code(&self, done: &CommandExecution) -> Result<ExitCode, Failure> {
        let as_u8 = |code: i32| ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1));
        if let Some(code) = done.exit_code {
            return Ok(as_u8(code));
        }
        if done.status == CommandStatus::Terminated {
            let exit = self.patience().ask(async || self.client.session(&done.session_id).await).await?.exit;
            let signo = exit.as_ref().and_then(|e| e.signal.as_deref()).and_then(sys::signal::parse);
            if let Some(code) = exit.as_ref().and_then(|e| e.exit_code).or(signo.map(|s| 128 + s)) {
                return Ok(as_u8(code));
            }
        }
        Err(Failure::new(done.error.clone().unwrap_or_else(|| "the exit code is unknown".to_owned())))
    }
}

fn say_gap(chunk: &api::Output) {
    if let Some(gap) = chunk.gap {
        print::note(format_args!("ptyd: {} bytes of output are no longer kept", gap.to - gap.from));
    }
}

fn wait_for_end() -> WaitRequest {
    WaitRequest { timeout: Some(3_600.0), max_chars: Some(0), ..WaitRequest::default() }
}

/// The destination of the command's output.
enum Printer {
    /// A terminal: the bytes, with their changes to the terminal undone afterwards.
    Shown(Box<tty::Display>),
    /// A pipe or a file, as text.
    Text(Box<LineText>),
    /// The bytes, unchanged.
    Raw,
}

impl Printer {
    fn find(raw: bool, cols: u16) -> Self {
        match (tty::is_shown(), raw) {
            (true, _) => Self::Shown(Box::new(tty::Display::inline(raw))),
            (false, false) => Self::Text(Box::new(LineText::new(cols))),
            (false, true) => Self::Raw,
        }
    }

    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Shown(display) => display.show(bytes),
            Self::Text(text) => write(&text.feed(bytes)),
            Self::Raw => write(bytes),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Text(text) => write(&text.finish()),
            Self::Shown(_) | Self::Raw => Ok(()),
        }
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}
