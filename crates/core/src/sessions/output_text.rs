//! Renders a range of the output as text within a budget.

use std::path::Path;

use journal::{Offset, Read, Reader};
use terminal::{HiddenText, Text, Transcript};

use super::render::handover::Handovers;
use crate::action::{Omitted, TextView};
use crate::limits::RENDER_BYTES_MAX;

/// Bytes read at once while lines are counted.
const COUNT_CHUNK: usize = 256 << 10;

/// A range of the journal, without the part at its front that retention has removed, or the part behind it that another
/// process has cut away.
pub(crate) struct Slice {
    pub(crate) from: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a range, never past `to`.
pub(crate) fn read(reader: &Reader, from: u64, to: u64) -> std::io::Result<Slice> {
    let mut at = from;
    let mut slice = Slice { from, bytes: Vec::new() };
    while at < to {
        let want = usize::try_from(to - at).unwrap_or(usize::MAX).min(1 << 20);
        let had = slice.bytes.len();
        slice.bytes.resize(had + want, 0);
        match reader.read(Offset(at), Offset(to), &mut slice.bytes[had..])? {
            Read::Bytes(n) => {
                slice.bytes.truncate(had + n);
                at += n as u64;
            }
            Read::Gap { to: next, .. } => {
                // Only the bytes behind the gap are contiguous.
                slice.bytes.clear();
                at = next.0;
                slice.from = at;
            }
            Read::Cut { .. } if had > 0 => {
                slice.bytes.truncate(had);
                break;
            }
            Read::Cut { to: next, .. } => {
                slice.bytes.clear();
                (at, slice.from) = (next.0, next.0);
            }
            Read::End => {
                slice.bytes.truncate(had);
                break;
            }
        }
    }
    Ok(slice)
}

/// The output that is rendered, and what that takes besides the range.
#[derive(Debug)]
pub(crate) struct TextSource<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) reader: &'a Reader,
    pub(crate) handovers: Handovers,
    pub(crate) cols: u16,
    /// The range begins while a program uses the whole screen.
    pub(crate) in_paint: bool,
}

/// A side of the text, with what is told about it.
struct TextSide {
    text: Text,
    unseen: HiddenText,
}

impl TextSource<'_> {
    /// Renders bytes of the output: hand-overs, then paint, then hidden text.
    fn side(&mut self, bytes: &[u8], from: u64) -> std::io::Result<TextSide> {
        let cuts = self.handovers.cuts(self.folder, self.reader, from, from + bytes.len() as u64)?;
        let bytes = cuts.apply(bytes, from);
        Ok(TextSide { text: plain(&bytes, self.cols, self.in_paint), unseen: terminal::unseen(&bytes) })
    }
}

/// The text of output, which begins with the paint of a program that uses the whole screen, or with none.
pub(super) fn plain(bytes: &[u8], cols: u16, in_paint: bool) -> Text {
    let mut transcript = Transcript::new(cols);
    if in_paint {
        transcript.feed(b"\x1b[?1049h");
    }
    transcript.feed(bytes);
    transcript.finish()
}

/// Renders a range as a terminal shows it, cut to the budget in characters.
pub(crate) fn text(source: &mut TextSource<'_>, from: u64, to: u64, budget: usize) -> std::io::Result<TextView> {
    let (asked, reader) = (from, source.reader);
    let from = from.max(reader.first()?.0).min(to);
    let mut view = if to - from <= RENDER_BYTES_MAX {
        let slice = read(reader, from, to)?;
        let end = slice.from + slice.bytes.len() as u64;
        let whole = source.side(&slice.bytes, slice.from)?;
        if fits(&whole.text.text, budget) {
            TextView {
                head: without_slant(whole.text.text, &slice.bytes),
                from: slice.from,
                to,
                escaped: whole.text.escaped,
                unseen: whole.unseen,
                omitted: (end < to).then(|| Omitted { freed: to - end, from: end, to, first_line: 0, last_line: 0 }),
                ..TextView::default()
            }
        } else {
            head_and_tail(source, (from, to), budget)?
        }
    } else {
        head_and_tail(source, (from, to), budget)?
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
fn without_slant(mut text: String, bytes: &[u8]) -> String {
    let line = text.rfind('\n').map_or(0, |i| i + 1);
    if bytes.last() == Some(&b'\n') && text[line..].trim().is_empty() {
        text.truncate(line);
    }
    text
}

fn fits(text: &str, budget: usize) -> bool {
    text.len() <= budget || text.chars().count() <= budget
}

/// Splits the bytes at line ends, so that the omitted part is an exact range that can be read later.
fn head_and_tail(source: &mut TextSource<'_>, (from, to): (u64, u64), budget: usize) -> std::io::Result<TextView> {
    let (share, half, reader) = (budget / 2, (budget / 2).max(1) as u64, source.reader);
    let head = read(reader, from, (from + half).min(to))?;
    let mut head_len = head.bytes.len();
    let head_side = loop {
        let bytes = &head.bytes[..head_len];
        head_len = bytes.iter().rposition(|b| *b == b'\n').map_or_else(|| whole_chars(bytes), |i| i + 1);
        let side = source.side(&bytes[..head_len], head.from)?;
        match fewer(head_len, &side.text.text, share) {
            Some(fewer) => head_len = fewer,
            None => break side,
        }
    };
    let head_end = head.from + head_len as u64;
    let tail = read(reader, to.saturating_sub(half).max(head_end), to)?;
    let mut tail_at = 0;
    source.in_paint = false;
    let tail_side = loop {
        let bytes = &tail.bytes[tail_at..];
        tail_at += match bytes.iter().position(|b| *b == b'\n') {
            Some(i) if tail.from + tail_at as u64 > head_end && i + 1 < bytes.len() => i + 1,
            _ => bytes.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count(),
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
        unseen,
    })
}

/// How many bytes to try next if the text of `bytes` exceeds its share: an invalid byte is shown as four characters.
fn fewer(bytes: usize, text: &str, share: usize) -> Option<usize> {
    let chars = text.chars().count();
    (chars > share).then(|| (bytes * share / chars).min(bytes * 15 / 16))
}

/// The longest prefix that ends with a whole UTF-8 character.
pub(super) fn whole_chars(bytes: &[u8]) -> usize {
    let mut end = bytes.len();
    for back in 1..=bytes.len().min(4) {
        let b = bytes[bytes.len() - back];
        if b & 0xc0 != 0x80 {
            let needed = match b {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xff => 4,
                _ => 1,
            };
            if needed > back {
                end = bytes.len() - back;
            }
            break;
        }
    }
    if end == 0 { bytes.len() } else { end }
}

/// The number of line ends in a range.
fn lines(reader: &Reader, from: u64, to: u64) -> std::io::Result<u64> {
    let mut at = from;
    let mut count = 0;
    let mut buffer = vec![0; COUNT_CHUNK];
    while at < to {
        match reader.read(Offset(at), Offset(to), &mut buffer)? {
            Read::Bytes(n) => {
                count += memchr::memchr_iter(b'\n', &buffer[..n]).count() as u64;
                at += n as u64;
            }
            Read::Gap { to: next, .. } | Read::Cut { to: next, .. } => at = next.0,
            Read::End => break,
        }
    }
    Ok(count)
}

/// Marks a range before the text as left out on request.
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

/// Removes the prompt, which is the unfinished last line, from output that came while the shell was idle.
pub(crate) fn without_prompt(text: &mut TextView) {
    let last = if text.omitted.is_some() { &mut text.tail } else { &mut text.head };
    let end = last.rfind('\n').map_or(0, |i| i + 1);
    last.truncate(end);
}

/// The file with the whole output.
pub(crate) fn log_file(folder: &Path) -> std::path::PathBuf {
    folder.join(journal::JOURNAL_FILE)
}
