//! The prompt at which a program reads a secret: since when it stands, and what a person types there.

use tokio::sync::oneshot;
use wire::NO_KEY;

use crate::action::{ActionError, Foreground, InputBytes, SecretRefusal};
use crate::sessions::session::machine::secret_prompt::state::SecretPrompts;
use crate::sessions::session::machine::session::Session;
use crate::sessions::session::requests::{SecretPrompt, Typed};

impl Session {
    /// Notes which program reads a secret, if one does.
    pub(in crate::sessions::session::machine) fn note_secret_prompt(&mut self) {
        let asks = self.foreground() == Foreground::PasswordWanted;
        // Where no process decides, as on another machine's terminal, the job's first one reads.
        let reader = self.foreground.state.filter(|_| asks).map(|s| if s.pid == 0 { s.group } else { s.pid });
        let prompts = &mut self.secret_prompts;
        if reader != prompts.reader {
            prompts.reader = reader;
            prompts.number += 1;
            for waiting in prompts.over.drain(..) {
                let _ = waiting.send(());
            }
        }
    }

    /// The prompt at which a program reads a secret now.
    pub(in crate::sessions::session::machine) fn secret_prompt(&self) -> Option<SecretPrompt> {
        let SecretPrompts { number, reader, .. } = &self.secret_prompts;
        let pid = (*reader)?;
        let text = self.cx.unfinished_line(self.cx.timeline.output().scanner.position());
        let command = self.cx.timeline.log().newest_running().and_then(|id| self.cx.timeline.log().command(id));
        Some(SecretPrompt { number: *number, pid, text, command: command.map(|command| command.text.clone()) })
    }

    /// Answers when this prompt is over.
    pub(in crate::sessions::session::machine) fn ask_secret_over(&mut self, number: u64, reply: oneshot::Sender<()>) {
        let prompts = &mut self.secret_prompts;
        prompts.over.retain(|waiting| !waiting.is_closed());
        if prompts.number == number && prompts.reader.is_some() {
            prompts.over.push(reply);
        } else {
            let _ = reply.send(());
        }
    }

    /// Types a secret at this prompt, unless it is over. The holder types it only while the terminal does not echo.
    pub(in crate::sessions::session::machine) fn ask_secret(
        &mut self,
        prompt: &SecretPrompt,
        line: Vec<u8>,
        typed: oneshot::Sender<Result<Typed, ActionError>>,
    ) {
        if self.secret_prompt().as_ref() != Some(prompt) {
            return drop(typed.send(Err(ActionError::SecretRefused(SecretRefusal::Over))));
        }
        self.ask_input(InputBytes::Raw(line), NO_KEY, (true, None), None, typed);
    }
}
