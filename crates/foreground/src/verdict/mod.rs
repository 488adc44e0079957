//! The second table: what the activity means together with the output and what the shell has reported.

use crate::activity::Activity;
use crate::observation::Modes;

/// The session's facts besides the kernel's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Situation {
    /// Nothing runs: the shell is at its prompt, and nothing was typed there.
    pub is_idle: bool,
    /// A job of the shell is stopped.
    pub has_stopped_job: bool,
    /// A program paints the whole screen, alternate or main.
    pub paints: bool,
    /// The last line of the output is unfinished.
    pub line_is_open: bool,
    /// The shell has reported a prompt.
    pub prompt_seen: bool,
    /// The shell sends no reports: the kernel alone shows when it reads commands.
    pub is_heuristic: bool,
    /// A command was handed over and has not ended.
    pub has_command: bool,
    /// A command of any channel runs.
    pub runs: bool,
    /// The command that runs uses the shell's editor.
    pub uses_editor: bool,
    /// A command was typed or handed over, and its shell may not have read it.
    pub is_typed: bool,
    /// The unfinished line has ended for a while as an earlier question of the same program did.
    pub asks_as_before: bool,
}

/// The verdict on the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing runs.
    Idle,
    /// A program runs and wants nothing.
    Running,
    /// A program wants input.
    InputWanted,
    /// A program wants a line that is not shown.
    PasswordWanted,
    /// A program has the whole screen.
    Fullscreen {
        /// It waits for a key.
        asks: bool,
    },
    /// The program that has the terminal is stopped by a signal.
    Stopped,
}

/// The newest activity with the modes of its terminal, if it is known, and the situation.
struct Sight {
    seen: Option<(Activity, Modes)>,
    now: Situation,
}

impl Sight {
    fn does(&self, activity: Activity) -> bool {
        self.seen.is_some_and(|(seen, _)| seen == activity)
    }

    fn modes(&self) -> Modes {
        self.seen.map_or(Modes::default(), |(_, modes)| modes)
    }
}

/// The result of a rule.
enum Says {
    Is(Verdict),
    /// It asks: for a password where the line is not shown.
    Asks,
    DoesNotAsk,
}

struct Rule {
    name: &'static str,
    applies: fn(&Sight) -> bool,
    says: Says,
}

/// The states that do not depend on whether a program asks.
const STATES: [Rule; 3] = [
    Rule {
        name: "at its prompt, with a stopped job",
        applies: |s| s.now.is_idle && s.now.has_stopped_job,
        says: Says::Is(Verdict::Stopped),
    },
    Rule { name: "at its prompt", applies: |s| s.now.is_idle, says: Says::Is(Verdict::Idle) },
    Rule { name: "what runs is stopped", applies: |s| s.does(Activity::Stopped), says: Says::Is(Verdict::Stopped) },
];

/// Not asked for a program that has the whole screen, which is told as such.
const UNKNOWN: [Rule; 2] = [
    Rule { name: "nothing is known", applies: |s| s.seen.is_none(), says: Says::Is(Verdict::Running) },
    Rule { name: "typed, and not read yet", applies: |s| s.now.is_typed, says: Says::Is(Verdict::Running) },
];

/// Whether it asks. Many programs poll the terminal without wanting input: one that wants input has left its line
/// unfinished, and one that has taken the whole screen waits for a key.
const QUESTIONS: [Rule; 9] = [
    Rule { name: "a program reads", applies: |s| s.does(Activity::Reads), says: Says::Asks },
    Rule { name: "the shell's read", applies: |s| s.does(Activity::ShellReads), says: Says::Asks },
    Rule {
        name: "a command uses the editor",
        applies: |s| s.does(Activity::Editor) && s.now.uses_editor,
        says: Says::Asks,
    },
    Rule {
        // Before the first prompt it is not known whether the editor is the shell's prompt.
        name: "the editor, and no command",
        applies: |s| s.does(Activity::Editor) && !s.now.has_command && (s.now.prompt_seen || s.now.is_heuristic),
        says: Says::Asks,
    },
    Rule {
        name: "polls behind an open line",
        applies: |s| s.does(Activity::Polls) && s.now.line_is_open,
        says: Says::Asks,
    },
    Rule {
        name: "wakes up soon, and asks as before",
        applies: |s| s.does(Activity::PollsForATime) && s.now.line_is_open && s.now.asks_as_before,
        says: Says::Asks,
    },
    Rule {
        name: "polls in front of its screen",
        applies: |s| s.does(Activity::Polls) && s.now.paints,
        says: Says::Asks,
    },
    Rule {
        // A program that wakes up by a time limit has other work, such as a spinner behind its line.
        name: "wakes up soon, in front of its screen",
        applies: |s| s.does(Activity::PollsForATime) && s.now.paints,
        says: Says::Asks,
    },
    Rule {
        // Another user's program (su, sudo): only the terminal's modes are visible, and no echo means a password.
        name: "hidden, and the line is not shown",
        applies: |s| s.does(Activity::Unknown) && s.modes().hide_a_line(),
        says: Says::Asks,
    },
];

/// The rule where no other applies.
const DOES_NOT_ASK: Rule = Rule { name: "does not ask", applies: |_| true, says: Says::DoesNotAsk };

/// The names of all rules.
pub fn verdict_rules() -> impl Iterator<Item = &'static str> {
    STATES.iter().chain(&UNKNOWN).chain(&QUESTIONS).chain([&DOES_NOT_ASK]).map(|rule| rule.name)
}

/// The verdict on the foreground, and its rule; for a program that has the whole screen, the rule that says whether
/// it asks.
#[must_use]
pub fn verdict(seen: Option<(Activity, Modes)>, now: Situation) -> (Verdict, &'static str) {
    let sight = Sight { seen, now };
    let find = |rules: &'static [Rule]| rules.iter().find(|rule| (rule.applies)(&sight));
    let unknown: &[Rule] = if now.paints { &[] } else { &UNKNOWN };
    let rule = find(&STATES).or_else(|| find(unknown)).or_else(|| find(&QUESTIONS)).unwrap_or(&DOES_NOT_ASK);
    let asks = matches!(rule.says, Says::Asks);
    let verdict = match rule.says {
        Says::Is(verdict) => verdict,
        Says::Asks | Says::DoesNotAsk if now.paints => Verdict::Fullscreen { asks },
        Says::Asks if sight.modes().hide_a_line() => Verdict::PasswordWanted,
        // A shell that sends no reports, and reads.
        Says::Asks if now.is_heuristic && !now.runs => Verdict::Idle,
        Says::Asks => Verdict::InputWanted,
        Says::DoesNotAsk => Verdict::Running,
    };
    (verdict, rule.name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
