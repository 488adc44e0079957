//! The text of search results for a model: matching lines with their numbers, and the position to continue at.

use super::text::{self, AnswerContext, Facts, grouped};
use ptyd_core::action::{Budget, FoundView, HiddenText, SessionView};

/// The lines that fit an answer, and where to continue; if one does not fit, the next search begins with it.
pub(super) fn shown(
    session: &SessionView,
    found: &FoundView,
    budget: Budget,
    context: &AnswerContext<'_>,
) -> (String, u64) {
    let (mut lines, mut chars, mut next, mut has_more) = (String::new(), 0, found.next, found.has_more);
    let (mut count, mut written_out) = (0, 0);
    for hit in &found.matches {
        chars += hit.text.chars().count();
        if chars > budget.chars && count > 0 {
            (next, has_more) = (hit.offset, true);
            break;
        }
        lines += &format!("{}: {}\n", hit.line, text::visible(&hit.text, &mut written_out));
        count += 1;
    }
    let mut facts = Facts::default();
    let matching = text::counted(count, "matching line", "matching lines");
    facts.add(format!("{matching} in {}", grouped(found.lines)));
    text::unseen(HiddenText::default(), written_out).into_iter().for_each(|note| facts.add(note));
    if has_more {
        facts.add("more may follow: search again with since");
    }
    text::metadata(&mut facts, session, context);
    facts.add(format!("next o:{next}"));
    (lines + &facts.line(), next)
}
