//! The stage that cuts text to a budget of characters: its beginning, its end, and the exact range between them.

use journal::Reader;

use super::range::{lines, read, whole_text};
use super::text_source::TextSource;
use crate::action::{Omitted, TextView};

/// Splits the bytes at line ends, so that the omitted part is an exact range that can be read later.
pub(super) fn head_and_tail(
    source: &mut TextSource<'_>,
    (from, to): (u64, u64),
    budget: usize,
) -> std::io::Result<TextView> {
    let (share, half, reader) = (budget / 2, (budget / 2).max(1) as u64, source.reader);
    let head = read(reader, from, (from + half).min(to))?;
    let mut head_len = head.bytes.len();
    let head_side = loop {
        let bytes = &head.bytes[..head_len];
        head_len = bytes.iter().rposition(|b| *b == b'\n').map_or_else(|| whole_text(bytes), |i| i + 1);
        let side = source.side(&bytes[..head_len], head.from)?;
        match fewer(head_len, &side.text.text, share) {
            Some(fewer) => head_len = fewer,
            None => break side,
        }
    };
    let head_end = head.from + head_len as u64;
    let tail_from = to.saturating_sub(half).max(head_end);
    // The bytes before tell whether the tail begins inside a sequence.
    let tail = read(reader, tail_from.saturating_sub(terminal::SEQUENCE_BYTES_MAX as u64).max(head_end), to)?;
    let mut tail_at = usize::try_from(tail_from.saturating_sub(tail.from)).unwrap_or(usize::MAX).min(tail.bytes.len());
    source.in_paint = false;
    let tail_side = loop {
        let bytes = &tail.bytes[tail_at..];
        tail_at += match bytes.iter().position(|b| *b == b'\n') {
            Some(i) if tail.from + tail_at as u64 > head_end && i + 1 < bytes.len() => i + 1,
            _ => terminal::rest_of_unfinished(&tail.bytes[..tail_at], bytes),
        };
        let side = source.side(&tail.bytes[tail_at..], tail.from + tail_at as u64)?;
        match fewer(tail.bytes.len() - tail_at, &side.text.text, share) {
            Some(fewer) => tail_at = tail.bytes.len() - fewer,
            None => break side,
        }
    };
    let mut unseen = head_side.unseen;
    unseen += tail_side.unseen;
    let tail_from = tail.from + tail_at as u64;
    let lines_before = lines(reader, head.from, head_end)?;
    let lines_omitted = lines(reader, head_end, tail_from)?;
    Ok(TextView {
        head: head_side.text.text,
        tail: tail_side.text.text,
        omitted: (tail_from > head_end).then(|| Omitted {
            freed: 0,
            first_line: lines_before + 1,
            last_line: lines_before + lines_omitted.max(1),
            from: head_end,
            to: tail_from,
        }),
        from: head.from,
        to,
        escaped: head_side.text.escaped + tail_side.text.escaped,
        crlf_lines: head_side.text.crlf_lines + tail_side.text.crlf_lines,
        unseen,
    })
}

/// How many bytes to try next if the text of `bytes` exceeds its share: an invalid byte is shown as four characters.
fn fewer(bytes: usize, text: &str, share: usize) -> Option<usize> {
    let chars = text.chars().count();
    (chars > share).then(|| (bytes * share / chars).min(bytes * 15 / 16))
}

/// Marks a range before the text as omitted on request.
pub(crate) fn say_left_out(reader: &Reader, text: &mut TextView, from: u64, to: u64) -> std::io::Result<()> {
    let left_out = lines(reader, from, to)?;
    let head = std::mem::take(&mut text.head);
    let (to, last_line) = match &text.omitted {
        // The kept text has a head and a tail: the head is left out, too, so that there is one omitted range and not
        // two.
        Some(omitted) => (omitted.to, omitted.last_line + left_out),
        None => {
            text.tail = head;
            (to, left_out.max(1))
        }
    };
    let freed = reader.first()?.0.clamp(from, to) - from;
    let (first_line, last_line) = if freed > 0 { (0, 0) } else { (1, last_line) };
    text.omitted = Some(Omitted { freed, first_line, last_line, from, to });
    text.from = from;
    Ok(())
}
