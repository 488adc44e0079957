//! `ptyd attach`: uses a session from this terminal. Its screen is painted once, then its stream is shown from that
//! offset on; typed bytes are sent unchanged.
//!
//! The attachment uses the terminal's alternate screen, so leaving restores the earlier contents. When the program
//! switches screens, the visible one is painted.
//!
//! Three loops run side by side (typing, watching, resizing), and the first that ends determines the result. All of
//! them survive a restart of the server: the offset and the idempotency keys keep anything from happening twice.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use api::{Dimensions, ErrorCode, OutputView, SessionStatus, TakeRequest, TerminalSession};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use client::{Client, ClientError};
use terminal::OneScreen;
use terminal::quote;
use tokio::signal::unix::{SignalKind, signal};

use crate::attached_terminal::{self, TypingEnd};
use crate::completion;
use crate::detach_key::{DetachKey, DetachScanner};
use crate::exit::Failure;
use crate::follow::{self, Patience};
use crate::print;
use crate::sessions::Habits;
use crate::{sessions, tty};

/// The options of `attach`.
#[derive(Debug, Args)]
pub struct AttachOptions {
    /// The session: its id, a unique beginning of its id, or its name [default: the only live session, else you choose]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Detach with these keys; the session keeps running
    #[arg(long, value_name = "KEYS", default_value = DetachKey::USUAL)]
    detach_key: DetachKey,
    /// Only watch: send no input, and do not resize the session
    #[arg(long, short)]
    read_only: bool,
    /// Take the keyboard: until you detach, nobody else types into the session
    #[arg(long, conflicts_with = "read_only")]
    take: bool,
    /// With --take: take the keyboard even from somebody who has it
    #[arg(long, requires = "take")]
    force: bool,
    /// Pass all output on to this terminal, including output that can reach its clipboard, files or printer
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    habits: Habits,
}

/// Whether one session shows another, or is it: by its own `ptyd attach`, or by that of a session that it shows. Only
/// the command lines of its processes reveal where an attached terminal is.
async fn shows(client: &Client, session: &str, other: &str) -> Result<bool, Failure> {
    let mut open = vec![session.to_owned()];
    let mut seen = BTreeSet::new();
    let mut all = None;
    while let Some(next) = open.pop() {
        if next == other {
            return Ok(true);
        }
        if !seen.insert(next.clone()) {
            continue;
        }
        // A session that has ended meanwhile shows nothing.
        let processes = client.processes(&next).await.map(|list| list.processes).unwrap_or_default();
        for viewer in processes.iter().filter(|process| process.name == "ptyd") {
            let known = match &all {
                Some(known) => known,
                None => all.insert(client.list(None).await?.terminals),
            };
            let words = viewer.command_line.split(' ').skip_while(|word| *word != "attach").skip(1);
            open.extend(words.filter_map(|word| sessions::choose(known, word).ok()?).map(|session| session.id));
        }
    }
    Ok(false)
}

/// The only live session, or the one of several that the person at this terminal chooses.
async fn chosen(client: &Client) -> Result<TerminalSession, Failure> {
    let all = sessions::known(client, false).await?;
    if all.len() < 2 {
        return sessions::find_or_only(client, None).await;
    }
    for (number, session) in all.iter().enumerate() {
        let runs = sessions::state(session.foreground);
        print::note(format_args!("{:>3}  {}  {runs}  {}", number + 1, called(session), session.cwd));
    }
    print::lines("Attach to (number or name): ");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let text = line.trim();
    let chosen = match text.parse::<usize>() {
        // An id that happens to begin with the number is not meant.
        Ok(number) => {
            let named = || all.iter().find(|session| session.name.as_deref() == Some(text));
            number.checked_sub(1).and_then(|at| all.get(at)).or_else(named).cloned()
        }
        Err(_) => sessions::choose(&all, text)?,
    };
    chosen.ok_or_else(|| Failure::usage("you chose none of them"))
}

/// The end of an attachment.
enum Ending {
    /// By the detach keys.
    Detached,
    /// By the session's end; with its reason as text.
    Ended(String),
    /// This terminal was closed, or we got a signal to stop.
    Stopped,
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Detached => f.write_str("detached; the session keeps running"),
            Self::Ended(how) => write!(f, "session ended {how}"),
            Self::Stopped => f.write_str("stopped; the session keeps running"),
        }
    }
}

/// The time for which `attach` waits at its end for the server to restore the session's size.
const FAREWELL: Duration = Duration::from_secs(2);

/// Attaches until the session ends or this terminal detaches.
pub async fn attach(client: Client, options: &AttachOptions) -> Result<ExitCode, Failure> {
    if !tty::is_interactive() {
        return Err(Failure::usage("attach needs a terminal; use logs and send in scripts"));
    }
    let client = &client.named(format!("attach-{}-{}", std::process::id(), jiff::Timestamp::now().as_nanosecond()));
    let session = match &options.session {
        Some(text) => sessions::find(client, text).await?,
        None => chosen(client).await?,
    };
    if session.status == SessionStatus::Terminated {
        return Err(Failure::new(format!("session {} has ended; `ptyd logs` shows its output", session.id)));
    }
    if let Ok(here) = std::env::var("PTYD_SESSION")
        && shows(client, &session.id, &here).await?
    {
        let how = if session.id == here { "is session" } else { "is shown in session" };
        return Err(Failure::usage(format!(
            "this terminal {how} {}, and would show itself endlessly; attach from another terminal",
            session.id
        )));
    }
    if options.take {
        client.take(&session.id, &TakeRequest { force: options.force, ..TakeRequest::default() }).await?;
    } else if let Some(driver) = session.driver.as_ref().filter(|_| !options.read_only) {
        let (name, until) = (quote::line(&driver.name), &driver.until);
        print::note(format_args!("ptyd: {name} has taken the keyboard until {until}; --take --force takes it"));
    }
    print::note(format_args!(
        "[{}: {}{} detaches]",
        called(&session),
        match (options.read_only, options.take) {
            (true, _) => "read-only; ",
            (false, true) => "you have the keyboard; ",
            (false, false) => "",
        },
        options.detach_key
    ));
    let attachment = Attachment { client, session: &session.id, fitted: Cell::new(None), fits: !options.read_only };
    let mut term = signal(SignalKind::terminate())?;
    let mut hup = signal(SignalKind::hangup())?;
    let changes = attached_terminal::size_changes()?;
    let ending = {
        let _raw = tty::Raw::enter()?;
        let display = tty::Display::whole(options.raw)?;
        let keyboard = DetachScanner::new(options.detach_key.clone());
        let typing = attached_terminal::typing(client, &session.id, keyboard, options.read_only, Patience::default());
        tokio::select! {
            left = typing => left.map(|left| match left {
                TypingEnd::Detached => Ending::Detached,
                TypingEnd::Gone => Ending::Stopped,
            }),
            ending = attachment.watching(&display) => ending,
            failure = attached_terminal::resizing(changes, Patience::default(), async || attachment.fit().await) => Err(failure),
            failure = attachment.driving(), if options.take => Err(failure),
            _ = term.recv() => Ok(Ending::Stopped),
            _ = hup.recv() => Ok(Ending::Stopped),
        }
    };
    if options.take {
        let _ = tokio::time::timeout(FAREWELL, client.give_back(&session.id, false)).await;
    }
    if !matches!(ending, Ok(Ending::Ended(_))) {
        let _ = tokio::time::timeout(FAREWELL, attachment.give_size_back(session.dimensions)).await;
    }
    print::note(format_args!("[{}: {}]", called(&session), ending?));
    Ok(ExitCode::SUCCESS)
}

fn called(session: &TerminalSession) -> String {
    quote::line(session.name.as_deref().unwrap_or(&session.id)).into_owned()
}

/// One attachment.
struct Attachment<'a> {
    client: &'a Client,
    session: &'a str,
    /// Whether the session is resized to this terminal.
    fits: bool,
    /// The size that it was given.
    fitted: Cell<Option<Dimensions>>,
}

/// The result of one request of the watching loop.
enum Step {
    Screen(api::Screen),
    Output(api::Output),
}

impl Attachment<'_> {
    async fn fit(&self) -> Result<(), ClientError> {
        if self.fits {
            self.fitted.set(attached_terminal::fit(self.client, self.session).await?);
        }
        Ok(())
    }

    /// Keeps the keyboard for as long as this process lives: also after a restart of the server. Ends with an error, or when the
    /// keyboard is lost.
    async fn driving(&self) -> Failure {
        let mut patience = Patience::default();
        let hold = TakeRequest { hold: true, ..TakeRequest::default() };
        loop {
            match self.client.take(self.session, &hold).await {
                Ok(TerminalSession { driver: Some(driver), .. }) => {
                    let who = quote::line(&driver.name);
                    return Failure::new(format!("{who} has taken the keyboard; the session keeps running"));
                }
                // The watching loop tells how the session has ended.
                Ok(_) => return std::future::pending().await,
                Err(e) if e.code() == Some(ErrorCode::SessionEnded) => return std::future::pending().await,
                Err(e) => {
                    if let Err(failure) = patience.after(e).await {
                        return failure;
                    }
                }
            }
        }
    }

    /// Restores the session's earlier size, unless another client has changed it since.
    async fn give_size_back(&self, before: Dimensions) -> Result<(), ClientError> {
        let Some(ours) = self.fitted.get().filter(|ours| *ours != before) else { return Ok(()) };
        if self.client.session(self.session).await?.dimensions == ours {
            self.client.resize(self.session, before).await?;
        }
        Ok(())
    }

    async fn watching(&self, display: &tty::Display) -> Result<Ending, Failure> {
        let (client, session) = (self.client, self.session);
        let mut patience = Patience::default();
        let mut from = None;
        let mut one_screen = OneScreen::default();
        loop {
            let step: Result<_, ClientError> = async {
                match from {
                    Some(offset) => follow::next(client, session, offset, OutputView::Stream).await.map(Step::Output),
                    None => {
                        self.fit().await?;
                        client.screen(session).await.map(Step::Screen)
                    }
                }
            }
            .await;
            match step {
                Ok(Step::Screen(screen)) => {
                    let paint = STANDARD.decode(&screen.ansi_base64).map_err(Failure::new)?;
                    display.paint(&OneScreen::paint(&paint, screen.alternate))?;
                    (from, one_screen) = (Some(screen.offset), OneScreen::default());
                }
                // Freed bytes cannot be shown: the present screen can.
                Ok(Step::Output(output)) if output.gap.is_some() => from = None,
                Ok(Step::Output(output)) => {
                    let is_over = output.is_final && output.next_offset >= output.end_offset;
                    from = Some(output.next_offset);
                    match one_screen.feed(&follow::bytes(output)?) {
                        Some(shown) => display.show(&shown)?,
                        None => from = None,
                    }
                    if is_over && let Some(how) = self.how_it_ended(&mut patience).await? {
                        return Ok(Ending::Ended(how));
                    }
                }
                Err(e) if e.code() == Some(ErrorCode::SessionEnded) => {
                    if let Some(how) = self.how_it_ended(&mut patience).await? {
                        return Ok(Ending::Ended(how));
                    }
                }
                Err(e) => {
                    patience.after(e).await?;
                    continue;
                }
            }
            patience.rewarded();
        }
    }

    /// How the session ended, as text; `None` if it has not: a stopping server reports its released sessions as over.
    async fn how_it_ended(&self, patience: &mut Patience) -> Result<Option<String>, Failure> {
        let session = loop {
            match self.client.session(self.session).await {
                Ok(session) => break session,
                Err(e) => patience.after(e).await?,
            }
        };
        let words = session.exit.map(|e| match (e.exit_code, e.signal) {
            (Some(code), _) => format!("with code {code}"),
            (None, Some(signal)) => format!("by signal {signal}"),
            (None, None) => format!("({})", e.reason),
        });
        let ended = session.status == SessionStatus::Terminated;
        Ok(ended.then(|| words.unwrap_or_else(|| "for an unknown reason".to_owned())))
    }
}
