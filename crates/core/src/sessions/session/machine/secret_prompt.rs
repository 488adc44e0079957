//! The prompt at which a program reads a secret: since when it stands, and what a person types there.

use tokio::sync::oneshot;

use crate::action::Foreground;
use crate::sessions::session::machine::context::Context;
use crate::sessions::session::machine::foreground::state::ForegroundState;
use crate::sessions::session::requests::SecretPrompt;

/// The present prompt for a secret. Its number changes when the program reads no more, and with every input: what is
/// typed for one prompt must not reach the next.
#[derive(Debug, Default)]
pub(crate) struct SecretPrompts {
    number: u64,
    /// The process that reads.
    reader: Option<u32>,
    /// Those who wait for the end of the present prompt.
    over: Vec<oneshot::Sender<()>>,
}

impl SecretPrompts {
    /// Notes which program reads a secret, if one does.
    pub(crate) fn note_secret_prompt(&mut self, cx: &Context, foreground: &ForegroundState) {
        let asks = foreground.foreground(cx) == Foreground::PasswordWanted;
        // Where no process decides, as on another machine's terminal, the job's first one reads.
        let reader = foreground.state.filter(|_| asks).map(|s| if s.pid == 0 { s.group } else { s.pid });
        if reader != self.reader {
            self.reader = reader;
            self.number += 1;
            for waiting in self.over.drain(..) {
                let _ = waiting.send(());
            }
        }
    }

    /// The prompt at which a program reads a secret now.
    pub(crate) fn secret_prompt(&self, cx: &Context) -> Option<SecretPrompt> {
        let Self { number, reader, .. } = self;
        let pid = (*reader)?;
        let text = cx.unfinished_line(cx.timeline.output().scanner.position());
        let command = cx.timeline.log().newest_running().and_then(|id| cx.timeline.log().command(id));
        Some(SecretPrompt { number: *number, pid, text, command: command.map(|command| command.text.clone()) })
    }

    /// Answers when this prompt is over.
    pub(crate) fn ask_secret_over(&mut self, number: u64, reply: oneshot::Sender<()>) {
        self.over.retain(|waiting| !waiting.is_closed());
        if self.number == number && self.reader.is_some() {
            self.over.push(reply);
        } else {
            let _ = reply.send(());
        }
    }
}
