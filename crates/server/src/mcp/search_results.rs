//! The text of search results for a model: matching lines with their numbers, and the position to continue at.
//!
//! Without a position to search from, the newest matches come first, below the commands that printed them: an agent that searches for
//! `FAILED` means its last run of the tests.

use super::text::{self, AnswerContext, Facts, grouped, quoted};
use ptyd_core::action::{Budget, FoundView, HiddenText, MatchView, SessionView};
use ptyd_core::ids::CommandId;

/// The lines that fit an answer, and where to continue; if one does not fit, the next search begins with it. `newest` is whether
/// the newest matches were asked for, and `command` is the only one that was searched.
pub(super) fn shown(
    session: &SessionView,
    found: &FoundView,
    (newest, command): (bool, Option<CommandId>),
    budget: Budget,
    context: &AnswerContext<'_>,
) -> (String, u64) {
    let mut written_out = 0;
    let mut line = |hit: &MatchView| format!("{}: {}\n", hit.line, text::visible(&hit.text, &mut written_out));
    let (mut lines, mut next, mut has_more) = (String::new(), found.next, found.has_more);
    let mut facts = Facts::default();
    let searched = grouped(found.lines);
    if newest {
        let fitting = fitting(found.matches.iter().rev(), budget);
        let matches = &found.matches[found.matches.len() - fitting..];
        for of_command in matches.chunk_by(|one, other| one.command == other.command).rev() {
            if command.is_none() {
                lines += &heading(found, of_command[0].command);
            }
            lines.extend(of_command.iter().map(&mut line));
        }
        let matching = text::counted(found.matching, "matching line", "matching lines");
        match fitting as u64 == found.matching {
            true => facts.add(format!("{matching} in {searched}")),
            false => {
                facts.add(format!("newest {fitting} of {matching} in {searched}: since \"o:0\" begins with the first"))
            }
        }
    } else {
        let fitting = fitting(found.matches.iter(), budget);
        lines.extend(found.matches[..fitting].iter().map(line));
        if let Some(hit) = found.matches.get(fitting) {
            (next, has_more) = (hit.offset, true);
        }
        facts.add(format!("{} in {searched}", text::counted(fitting as u64, "matching line", "matching lines")));
    }
    text::unseen(HiddenText::default(), written_out).into_iter().for_each(|note| facts.add(note));
    match (has_more, newest) {
        (true, true) => facts.add("older output was not searched: since \"o:0\" begins with the first"),
        (true, false) => facts.add("more may follow: search again with since"),
        (false, _) => {}
    }
    text::metadata(&mut facts, session, context);
    facts.add(format!("next o:{next}"));
    (lines + &facts.line(), next)
}

/// How many of these matches an answer has room for: at least one.
fn fitting<'a>(matches: impl Iterator<Item = &'a MatchView>, budget: Budget) -> usize {
    let mut chars = 0;
    let has_room = |(count, hit): &(usize, &MatchView)| {
        chars += hit.text.chars().count();
        chars <= budget.chars || *count == 0
    };
    matches.enumerate().take_while(has_room).count()
}

/// The line above the matches of this command.
fn heading(found: &FoundView, command: Option<CommandId>) -> String {
    let Some(id) = command else { return "outside of commands:\n".to_owned() };
    match found.commands.iter().find(|(known, _)| *known == id) {
        Some((_, text)) => format!("{id} {}:\n", quoted(text)),
        None => format!("{id}:\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::test_support::constant;

    #[test]
    fn as_many_matches_are_shown_as_fit_and_at_least_one() {
        let hit = |text: &str| MatchView { offset: 0, line: 1, text: constant(text), command: None };
        let hits = [hit("four"), hit("four"), hit("four")];
        for (chars, count) in [(0, 1), (3, 1), (4, 1), (7, 1), (8, 2), (12, 3), (100, 3)] {
            assert_eq!(fitting(hits.iter(), Budget::from(chars)), count, "{chars} characters");
        }
        assert_eq!(fitting(hits[..0].iter(), Budget::from(9)), 0);
    }
}
