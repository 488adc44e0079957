//! From the journal to what is shown: text within a budget, raw bytes, the stream for a terminal.

use std::borrow::Cow;
use std::path::Path;

use journal::{Offset, Read, Reader};
use terminal::Budget;

use super::loader::{self, Echo};
use crate::action::{Omitted, TextView};
use crate::limits::RENDER_BYTES_MAX;

/// How much is read at once while lines are counted.
const COUNT_CHUNK: usize = 256 << 10;

/// A range of the journal; what retention took from its head is left out.
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
                // Only what lies behind the gap is in one piece.
                slice.bytes.clear();
                at = next.0;
                slice.from = at;
            }
            Read::End => {
                slice.bytes.truncate(had);
                break;
            }
        }
    }
    Ok(slice)
}

/// What has to be known of a range to render it, besides its bytes.
#[derive(Debug, Default)]
pub(crate) struct Begins {
    /// It has prompts in it, at which these commands were given.
    pub(crate) echoes: Echoes,
    /// A program had the whole screen when it began.
    pub(crate) in_paint: bool,
}

/// Renders a range as a person would have seen it, cut to so many characters.
pub(crate) fn text(
    reader: &Reader,
    from: u64,
    to: u64,
    cols: u16,
    budget: usize,
    begins: &Begins,
) -> std::io::Result<TextView> {
    let first = reader.first()?.0;
    let lost = (from < first).then(|| (from, first.min(to)));
    let from = from.max(first).min(to);
    let mut view = if to - from <= RENDER_BYTES_MAX {
        let mut slice = read(reader, from, to)?;
        show_commands(&mut slice.bytes, slice.from, &begins.echoes);
        if begins.in_paint {
            slice.bytes.splice(0..0, *b"\x1b[?1049h");
        }
        let whole = terminal::render(&slice.bytes, cols);
        if fits(&whole.text, budget) {
            TextView {
                head: without_slant(whole.text, &slice.bytes),
                from: slice.from,
                to,
                escaped: whole.escaped,
                unseen: terminal::unseen(&slice.bytes),
                ..TextView::default()
            }
        } else {
            head_and_tail(reader, (from, to), cols, budget, &begins.echoes)?
        }
    } else {
        head_and_tail(reader, (from, to), cols, budget, &begins.echoes)?
    };
    if let Some((lost_from, lost_to)) = lost {
        // What retention took is left out at the very front; how many lines that were is not known any more.
        let tail = std::mem::take(&mut view.head);
        match &mut view.omitted {
            Some(o) => (o.bytes, o.from) = (o.bytes + (lost_to - lost_from), lost_from),
            None => {
                view.tail = tail;
                view.omitted = Some(Omitted {
                    bytes: lost_to - lost_from,
                    first_line: 0,
                    last_line: 0,
                    from: lost_from,
                    to: lost_to,
                });
            }
        }
        view.from = lost_from;
    }
    Ok(view)
}

/// With OPOST off (`stty raw`) a newline does not return to the left margin. Nothing was written on the line that it
/// begins, so its indentation is not output.
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

/// Splits in the bytes, at line ends, so that what is left out is an exact range that can be read later.
fn head_and_tail(
    reader: &Reader,
    (from, to): (u64, u64),
    cols: u16,
    budget: usize,
    echoes: &Echoes,
) -> std::io::Result<TextView> {
    let half = (budget / 2).max(1) as u64;
    let head = read(reader, from, (from + half).min(to))?;
    let head_len = head.bytes.iter().rposition(|b| *b == b'\n').map_or_else(|| whole_chars(&head.bytes), |i| i + 1);
    let head_end = head.from + head_len as u64;
    let tail_from = to.saturating_sub(half).max(head_end);
    let mut tail = read(reader, tail_from, to)?;
    let cut = match tail.bytes.iter().position(|b| *b == b'\n') {
        Some(i) if tail_from > head_end && i + 1 < tail.bytes.len() => i + 1,
        _ => tail.bytes.iter().take(3).take_while(|b| **b & 0xc0 == 0x80).count(),
    };
    tail.bytes.drain(..cut);
    tail.from += cut as u64;
    let lines_before = lines(reader, head.from, head_end)?;
    let lines_omitted = lines(reader, head_end, tail.from)?;
    let mut head_bytes = head.bytes[..head_len].to_vec();
    show_commands(&mut head_bytes, head.from, echoes);
    show_commands(&mut tail.bytes, tail.from, echoes);
    let head_text = terminal::render(&head_bytes, cols);
    let tail_text = terminal::render(&tail.bytes, cols);
    let share = Budget { chars: budget / 2 };
    let mut unseen = terminal::unseen(&head_bytes);
    unseen += terminal::unseen(&tail.bytes);
    Ok(TextView {
        // Escapes may make the text longer than its bytes; the budget holds all the same.
        head: within(&head_text.text, share, true),
        tail: within(&tail_text.text, share, false),
        omitted: (tail.from > head_end).then(|| Omitted {
            bytes: tail.from - head_end,
            first_line: lines_before + 1,
            last_line: lines_before + lines_omitted.max(1),
            from: head_end,
            to: tail.from,
        }),
        from: head.from,
        to,
        escaped: head_text.escaped + tail_text.escaped,
        unseen,
    })
}

/// The part of a side that fits; a line says how much does not.
fn within(text: &str, share: Budget, is_head: bool) -> String {
    if fits(text, share.chars) {
        return text.to_owned();
    }
    let kept = text.chars().count().saturating_sub(share.chars);
    let note = format!("[… {kept} characters of escaped bytes not shown; use the raw view]");
    let cut = terminal::cut(text, Budget { chars: share.chars * 2 });
    let side = if is_head { cut.head } else { text.get(text.len().saturating_sub(share.chars)..).unwrap_or(cut.tail) };
    let side: String = side.chars().take(share.chars).collect();
    if is_head { format!("{side}\n{note}\n") } else { format!("{note}\n{side}") }
}

/// The longest prefix that ends with a whole UTF-8 character.
fn whole_chars(bytes: &[u8]) -> usize {
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

/// How many line ends there are in a range.
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
            Read::Gap { to: next, .. } => at = next.0,
            Read::End => break,
        }
    }
    Ok(count)
}

/// What a terminal should be fed: without our attested markers and without the queries that ptyd answers itself.
/// The slice must begin and end between sequences ([`terminal::Scanner::held_from`] of the live scanner).
pub(crate) fn stream(slice: &Slice, is_attested: impl Fn(u64, u64) -> bool, echoes: &Echoes) -> Vec<u8> {
    let mut scanner = terminal::Scanner::new(slice.from);
    let mut is_ours = |_: &terminal::Nonce, range: std::ops::Range<u64>| is_attested(range.start, range.end);
    let parts = terminal::strip(&mut scanner, &slice.bytes, &mut is_ours);
    let mut out = Vec::with_capacity(slice.bytes.len());
    for part in parts {
        // Where a line stands is counted with what is taken out.
        let mut bytes = part.bytes.to_vec();
        show_commands(&mut bytes, part.from, echoes);
        out.extend(bytes);
    }
    out
}

/// Says that a range before the text was left out on request.
pub(crate) fn say_left_out(reader: &Reader, text: &mut TextView, from: u64, to: u64) -> std::io::Result<()> {
    let left_out = lines(reader, from, to)?;
    match &mut text.omitted {
        // Head and tail of what was kept: the head goes too, so that one range is left out and not two.
        Some(o) => {
            (o.bytes, o.first_line, o.last_line) = (o.to - from, 1, o.last_line + left_out);
            o.from = from;
            text.head.clear();
        }
        None => {
            text.tail = std::mem::take(&mut text.head);
            text.omitted = Some(Omitted { bytes: to - from, first_line: 1, last_line: left_out.max(1), from, to });
        }
    }
    text.from = from;
    Ok(())
}

/// The stretches between one command's output and the next one's, with what is run there: only in them does the editor
/// show the loader's line. The same words in a command's output are output.
pub(crate) type Echoes = Vec<(std::ops::Range<u64>, String)>;

/// Shows commands as they were given where the editor showed the loader's line; `from` is the offset of the first byte.
fn show_commands(bytes: &mut Vec<u8>, from: u64, echoes: &Echoes) {
    let mut at = 0;
    let mut found = Vec::new();
    while let Some(line) = echoes.first().and_then(|_| loader::find(&bytes[at..])) {
        let place = (from + (at + line.start) as u64, from + (at + line.end) as u64);
        if let Some((_, given)) = echoes.iter().find(|(prompt, _)| prompt.contains(&place.0)) {
            found.push(Echo { from: place.0, to: place.1, given: loader::as_typed(given).into() });
        }
        at += line.end;
    }
    if let Cow::Owned(shown) = loader::show(bytes, from, &found) {
        *bytes = shown;
    }
}

/// A line of text at a prompt, with the command as it was given where the editor showed the loader's line.
pub(super) fn as_given<'a>(line: &'a str, given: &str) -> Cow<'a, str> {
    match loader::find(line.as_bytes()) {
        Some(range) => {
            let first = given.trim_end().lines().next().unwrap_or_default();
            format!("{}{first}{}", &line[..range.start], &line[range.end..]).into()
        }
        None => line.into(),
    }
}

/// A prompt's bytes, with the command as it was given where the editor showed the loader's line.
pub(super) fn prompt_as_given(prompt: &[u8], given: &str) -> Vec<u8> {
    let mut bytes = prompt.to_vec();
    show_commands(&mut bytes, 0, &vec![(0..u64::MAX, given.to_owned())]);
    bytes
}

/// Takes the prompt, which is the unfinished last line, from output that came while the shell was idle.
pub(crate) fn without_prompt(text: &mut TextView) {
    let last = if text.omitted.is_some() { &mut text.tail } else { &mut text.head };
    let end = last.rfind('\n').map_or(0, |i| i + 1);
    last.truncate(end);
}

/// The file that holds every byte.
pub(crate) fn log_file(folder: &Path) -> std::path::PathBuf {
    folder.join(journal::JOURNAL_FILE)
}
