//! The text of a range of output: hand-overs, paint, hidden text, and then the budget.

use journal::MaskedText;

use super::budget::head_and_tail;
use super::range::read;
use super::text_source::TextSource;
use crate::action::{Budget, Omitted, TextView};
use crate::limits::RENDER_BYTES_MAX;

/// Renders a range as a terminal shows it, cut to the budget in characters.
pub(crate) fn text(source: &mut TextSource<'_>, from: u64, to: u64, budget: Budget) -> std::io::Result<TextView> {
    if from >= to {
        return Ok(TextView { from: to, to, ..TextView::default() });
    }
    let (asked, reader) = (from, source.reader);
    let from = from.max(reader.first()?.0).min(to);
    let mut view = if to - from <= RENDER_BYTES_MAX {
        let slice = read(reader, from, to)?;
        let end = slice.from + slice.bytes.len() as u64;
        let whole = source.side(&slice.bytes, slice.from)?;
        if budget.holds(&whole.text.text) {
            TextView {
                head: without_slant(whole.text.text, &slice.bytes),
                from: slice.from,
                to,
                escaped: whole.text.escaped,
                crlf_lines: whole.text.crlf_lines,
                unseen: whole.unseen,
                omitted: (end < to).then(|| Omitted { freed: to - end, from: end, to, first_line: 0, last_line: 0 }),
                ..TextView::default()
            }
        } else {
            head_and_tail(source, (from, to), budget.chars)?
        }
    } else {
        head_and_tail(source, (from, to), budget.chars)?
    };
    if asked < view.from {
        let (lost_from, lost_to) = (asked, view.from);
        // Retention removed the front. The head is left out, too, so that there is one omitted range and not two; how
        // many lines were removed is unknown.
        let head = std::mem::take(&mut view.head);
        let to = match &view.omitted {
            Some(omitted) => omitted.to,
            None => {
                view.tail = head;
                lost_to
            }
        };
        view.omitted = Some(Omitted { freed: lost_to - lost_from, from: lost_from, to, first_line: 0, last_line: 0 });
        view.from = lost_from;
    }
    Ok(view)
}

/// With OPOST off (`stty raw`) a newline does not return to the left margin, so the indentation of an empty last line
/// is not output.
fn without_slant(mut text: MaskedText, bytes: &[u8]) -> MaskedText {
    let line = text.rfind('\n').map_or(0, |i| i + 1);
    if bytes.last() == Some(&b'\n') && text[line..].trim().is_empty() {
        text.truncate(line);
    }
    text
}

/// Removes the prompt, which is the unfinished last line, from output that came while the shell was idle.
pub(crate) fn without_prompt(text: &mut TextView) {
    let last = if text.omitted.is_some() { &mut text.tail } else { &mut text.head };
    let end = last.rfind('\n').map_or(0, |i| i + 1);
    last.truncate(end);
}
