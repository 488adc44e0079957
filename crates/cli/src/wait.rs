//! `ptyd wait`: waits for the end of what runs in a session, or for another event there.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use api::{EndedBy, WaitAnswer, WaitRequest};
use clap::Args;
use client::Client;

use crate::completion;
use crate::exit::{self, Failure};
use crate::follow::Patience;
use crate::sessions::{self, wire_name};
use crate::{print, units};

const AFTER_HELP: &str = "It prints why it returned: ended (with the exit code of the command or of the last line \
 typed with `send`, or `unknown`), matched, quiet, input_wanted, stopped or exited.\n\
    Exit codes: 0 the awaited event came, or nothing ran; 1 the exit code of the command, or of the last line typed with `send`, is not 0; 6 the program wants input; 7 it is \
    stopped; 8 the session has ended; 124 timed out.";

/// The options of `wait`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct WaitOptions {
    /// The session: its id, a unique beginning of its id, or its name [default: the only live session]
    #[arg(add = completion::sessions())]
    session: Option<String>,
    /// Also return when the output has text that matches this regular expression
    #[arg(long = "for", value_name = "REGEX")]
    text: Option<String>,
    /// Also return on this condition: listening, listening:PORT, file:PATH, gone:REGEX, bell, quiet:MILLISECONDS or input; repeat
    /// the option for several
    #[arg(long, value_name = "CONDITION")]
    until: Vec<String>,
    /// Continue to wait when the program wants input
    #[arg(long)]
    through_questions: bool,
    /// Give up after this long, such as 90s or 5m [default: never]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    timeout: Option<Duration>,
    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
}

/// One request waits this long at most.
const TURN: Duration = Duration::from_secs(600);

/// Waits, and prints why the wait is over.
pub async fn wait(client: &Client, options: &WaitOptions) -> Result<ExitCode, Failure> {
    let session = sessions::find_or_only(client, options.session.as_deref()).await?;
    let begun = Instant::now();
    let mut patience = Patience::default();
    loop {
        let left = options.timeout.map(|most| most.saturating_sub(begun.elapsed()));
        let turn = left.map_or(TURN, |left| left.min(TURN));
        let request = WaitRequest {
            wait_for: options.text.clone(),
            until: options.until.clone(),
            input_wanted: !options.through_questions,
            timeout: Some(turn.as_secs_f64()),
            max_chars: Some(0),
            ..WaitRequest::default()
        };
        let answer = patience.ask(async || client.wait(&session.id, &request).await).await?;
        let is_over = options.timeout.is_some_and(|most| begun.elapsed() >= most);
        if answer.ended_by == EndedBy::TimedOut && !is_over {
            continue;
        }
        if options.json {
            print::json(&answer)?;
        } else {
            print::line(words(&answer))?;
        }
        return Ok(code(&answer));
    }
}

/// Names the event that ended the wait, with the exit code of the command or line that ended.
pub fn words(answer: &WaitAnswer) -> String {
    let came = wire_name(&answer.ended_by);
    match exit_code(answer) {
        Some(Some(code)) if answer.ended_by == EndedBy::Ended => format!("{came} {code}"),
        Some(None) if answer.ended_by == EndedBy::Ended => format!("{came} unknown"),
        _ => came,
    }
}

/// The exit code of the command, `Some(None)` if it is unknown, or of a typed line whose code the shell reported.
fn exit_code(answer: &WaitAnswer) -> Option<Option<i32>> {
    answer.command.as_ref().map(|command| command.exit_code).or(answer.line_exit_code.map(Some))
}

/// The exit code that says what came.
pub fn code(answer: &WaitAnswer) -> ExitCode {
    let ended = exit_code(answer);
    match answer.ended_by {
        EndedBy::Ended if !matches!(ended, None | Some(Some(0))) => ExitCode::FAILURE,
        EndedBy::Accepted | EndedBy::Ended | EndedBy::Matched | EndedBy::Quiet => ExitCode::SUCCESS,
        EndedBy::InputWanted => ExitCode::from(exit::INPUT_WANTED),
        EndedBy::Stopped => ExitCode::from(exit::STOPPED),
        EndedBy::Exited => ExitCode::from(exit::EXITED),
        EndedBy::TimedOut => ExitCode::from(exit::TIMED_OUT),
    }
}
