//! Requests to a live session, and their answers.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use tokio::sync::oneshot;
use wire::{Key, ShownBy, Target};

use super::fullscreen::Fullscreen;
use crate::action::{
    ActionError, CommandView, EndedBy, InputBytes, MaskedText, ProcessView, ScreenView, SessionView, SignalView,
    TargetShell, Wait,
};
use crate::ids::CommandId;
use crate::principal::{Principal, Typist};
use crate::sessions::timeline::handover::RecentHandovers;

/// The client that runs or types something, and how long its request waits at most while another client drives.
#[derive(Debug)]
pub(crate) struct Typing {
    pub(crate) by: Typist,
    pub(crate) patience: Duration,
    /// Resolved when the caller goes away, for a request whose own work continues then.
    pub(crate) caller: Option<oneshot::Receiver<Infallible>>,
}

impl Typing {
    /// The typing of this caller.
    pub(crate) fn of(principal: &Principal) -> Self {
        Self { by: principal.typist(), patience: principal.keyboard_patience, caller: None }
    }

    /// The same, and what the caller keeps for as long as it is there.
    pub(crate) fn with_caller(self) -> (Self, oneshot::Sender<Infallible>) {
        let (stays, caller) = oneshot::channel();
        (Self { caller: Some(caller), ..self }, stays)
    }

    fn poll_caller_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(caller) = &mut self.caller else { return Poll::Pending };
        if caller.is_terminated() || Pin::new(caller).poll(cx).is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Input that a caller wants typed.
#[derive(Debug)]
pub(crate) struct NewInput {
    pub(crate) bytes: InputBytes,
    pub(crate) key: Key,
    pub(crate) is_secret: bool,
    pub(crate) meant_for: Option<CommandId>,
    pub(crate) typing: Typing,
    pub(crate) wait: Option<Wait>,
    pub(crate) typed: oneshot::Sender<Result<Typed, ActionError>>,
}

/// A request to a live session.
#[derive(Debug)]
pub(crate) enum Request {
    Look(oneshot::Sender<Snapshot>),
    Commands(oneshot::Sender<(Snapshot, Vec<CommandView>)>),
    /// The use of this key.
    KeyUse(Key, oneshot::Sender<KeyUse>),
    Run {
        text: Vec<u8>,
        key: Key,
        patience_ms: u32,
        wait: Option<Wait>,
        shell: TargetShell,
        allowed_in: Option<PathBuf>,
        typing: Typing,
        started: oneshot::Sender<Result<Started, ActionError>>,
    },
    Input(NewInput),
    /// The prompt at which a program reads a secret now.
    SecretPrompt(oneshot::Sender<Option<SecretPrompt>>),
    /// Answers when the prompt of this number is over.
    SecretOver(u64, oneshot::Sender<()>),
    /// Types a secret at this prompt, if it still stands.
    Secret {
        prompt: SecretPrompt,
        line: Vec<u8>,
        typing: Typing,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    },
    /// Waits for this command, or for the running one.
    Wait {
        wait: Wait,
        command: Option<u32>,
        from: Option<u64>,
        reply: oneshot::Sender<Finished>,
    },
    /// Takes the keyboard.
    Take {
        by: Typist,
        lasts: Duration,
        forces: bool,
        hold: Option<oneshot::Receiver<Infallible>>,
        reply: oneshot::Sender<Result<(), ActionError>>,
    },
    /// Returns the keyboard.
    GiveBack {
        by: Typist,
        forces: bool,
        reply: oneshot::Sender<Result<(), ActionError>>,
    },
    Resize {
        cols: u16,
        rows: u16,
        reply: oneshot::Sender<Result<(), ActionError>>,
    },
    /// The answer names a foreground program if all of them ignore an interrupt.
    Signal {
        target: Target,
        signo: i32,
        reply: oneshot::Sender<Result<Option<String>, ActionError>>,
    },
    Terminate {
        signo: i32,
        grace_ms: u32,
        reply: oneshot::Sender<Result<Ended, ActionError>>,
    },
    /// The screen, for a viewer that follows from there or for a single snapshot; built in turns, so that no other
    /// request waits for it.
    Picture(oneshot::Sender<ScreenSnapshot>),
    /// How far viewers may read, and which markers before that are attested.
    ViewerLimit(oneshot::Sender<ViewerLimit>),
    /// The journal's offset at this time.
    At(SystemTime, oneshot::Sender<u64>),
    /// Offsets, each with the time when the journal had reached it.
    Times(oneshot::Sender<VecDeque<(u64, u64)>>),
    Processes(oneshot::Sender<Vec<ProcessView>>),
    Signals(oneshot::Sender<Vec<SignalView>>),
    Prompt(oneshot::Sender<()>),
}

impl Request {
    /// The wait that is part of the request.
    pub(super) fn wait(&self) -> Option<&Wait> {
        match self {
            Self::Run { wait, .. } | Self::Input(NewInput { wait, .. }) => wait.as_ref(),
            Self::Wait { wait, .. } => Some(wait),
            Self::Look(_)
            | Self::Commands(_)
            | Self::Resize { .. }
            | Self::Signal { .. }
            | Self::Terminate { .. }
            | Self::Picture(_)
            | Self::ViewerLimit(_)
            | Self::At(..)
            | Self::Times(_)
            | Self::Processes(_)
            | Self::Signals(_)
            | Self::SecretPrompt(_)
            | Self::SecretOver(..)
            | Self::Secret { .. }
            | Self::KeyUse(..)
            | Self::Take { .. }
            | Self::GiveBack { .. }
            | Self::Prompt(_) => None,
        }
    }

    /// The client that runs or types something with it; `None` if it does neither.
    pub(super) fn typing(&self) -> Option<&Typing> {
        match self {
            Self::Run { typing, .. } | Self::Input(NewInput { typing, .. }) | Self::Secret { typing, .. } => {
                Some(typing)
            }
            Self::Look(_)
            | Self::Commands(_)
            | Self::KeyUse(..)
            | Self::SecretPrompt(_)
            | Self::SecretOver(..)
            | Self::Wait { .. }
            | Self::Take { .. }
            | Self::GiveBack { .. }
            | Self::Resize { .. }
            | Self::Signal { .. }
            | Self::Terminate { .. }
            | Self::Picture(_)
            | Self::ViewerLimit(_)
            | Self::At(..)
            | Self::Times(_)
            | Self::Processes(_)
            | Self::Signals(_)
            | Self::Prompt(_) => None,
        }
    }

    /// Refuses a request that would run or type something.
    pub(super) fn refuse_typing(self, why: ActionError) {
        match self {
            Self::Run { started, .. } => drop(started.send(Err(why))),
            Self::Input(NewInput { typed, .. }) | Self::Secret { typed, .. } => drop(typed.send(Err(why))),
            // Its reply is dropped, and none of them is ever refused.
            _ => {}
        }
    }

    /// Whether the caller of a request that would run or type something is gone. A task that waits for that has to poll again.
    pub(super) fn is_abandoned(&mut self) -> bool {
        self.poll_gone(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Ready once it is gone.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (answered, typing) = match self {
            Self::Run { started, typing, .. } => (started.poll_closed(cx), typing),
            Self::Input(NewInput { typed, typing, .. }) | Self::Secret { typed, typing, .. } => {
                (typed.poll_closed(cx), typing)
            }
            _ => return Poll::Pending,
        };
        if answered.is_ready() { answered } else { typing.poll_caller_gone(cx) }
    }
}

/// The earlier use of a request's idempotency key.
#[derive(Debug)]
pub(crate) enum KeyUse {
    Unused,
    /// This request, for which this command was accepted.
    Command(u32),
    /// This request, which the holder has and has not answered yet.
    Underway,
    OtherRequest,
}

/// Tells a caller that its command was accepted.
pub(super) type StartReply = oneshot::Sender<Result<Started, ActionError>>;

/// An accepted command, and the channel on which its wait answers.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) id: u32,
    /// It was accepted long ago and has ended; only the history has it.
    pub(crate) is_history: bool,
    pub(crate) finished: Option<oneshot::Receiver<Finished>>,
}

/// The state of a session that a viewer needs.
#[derive(Debug, Default)]
pub(crate) struct ViewerLimit {
    /// The end of the last complete control sequence.
    pub(crate) to: u64,
    /// Viewers may be sent bytes up to here.
    pub(crate) stream_to: u64,
    /// Text may be read up to here: not a part of a character that has not come whole.
    pub(crate) text_to: u64,
    /// The ranges of attested markers.
    pub(crate) markers: Vec<(u64, u64)>,
    pub(crate) handovers: RecentHandovers,
    /// The shell has exited, and the holder is ending its descendants.
    pub(crate) has_exited: bool,
}

/// A screen, and the position from which a viewer that shows it continues.
#[derive(Debug)]
pub(crate) struct ScreenSnapshot {
    pub(crate) screen: ScreenView,
    /// Height in cells.
    pub(crate) rows: u16,
    /// The number of events before it.
    pub(crate) count: u64,
}

/// A prompt at which a program reads a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SecretPrompt {
    /// Changes with each prompt and with each input.
    pub(crate) number: u64,
    /// The process that reads.
    pub(crate) pid: u32,
    /// The unfinished line.
    pub(crate) text: String,
    /// The text of the command that runs.
    pub(crate) command: Option<Arc<str>>,
}

/// Accepted input, and the channel on which its wait answers.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(crate) accepted: usize,
    pub(crate) is_at_prompt: bool,
    pub(crate) from: u64,
    pub(crate) shown_by: ShownBy,
    /// The program that ignores the interrupt that was typed.
    pub(crate) ignored_by: Option<String>,
    pub(crate) finished: Option<oneshot::Receiver<Finished>>,
}

/// A wait that is over.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) ended_by: EndedBy,
    pub(crate) from: u64,
    pub(crate) waited: Duration,
    pub(crate) matched: Option<MaskedText>,
    pub(crate) accepted_bytes: Option<usize>,
    /// The exit code of the last line that was typed at the prompt, if the wait was for such lines and the shell reported it.
    pub(crate) line_exit: Option<i32>,
    pub(crate) snapshot: Snapshot,
}

/// A session that was ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) killed: u64,
    pub(crate) left: u64,
}

/// A session as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) view: SessionView,
    /// The command that the request was about.
    pub(crate) command: Option<CommandView>,
    pub(crate) paint: Fullscreen,
    /// The newest command was refused because the shell was not at its prompt.
    pub(crate) was_not_ready: bool,
    /// The offset at which background output begins while no command runs.
    pub(crate) background_from: u64,
    /// The boundary before the command that the request was about, the offset at which it was accepted, and that of its
    /// own output.
    pub(crate) before_command: [u64; 3],
    /// Viewers may be sent bytes up to here.
    pub(crate) shown_to: u64,
    /// The last line of the output is unfinished.
    pub(crate) line_is_open: bool,
    /// The parent of all processes of the session.
    pub(crate) holder_pid: u32,
    /// The hand-overs in the output that the request was about.
    pub(crate) handovers: RecentHandovers,
}
