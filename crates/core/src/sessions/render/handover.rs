//! The stage that shows commands in the place of the lines that handed them over.
//!
//! A command is recorded (`Accepted`, `Typed`) before anything of it is typed, and the marker with its nonce begins its
//! output. Between these two offsets, and nowhere else, an editor paints the line of ours that hands it over. The region
//! may begin before the shell has painted its prompt, and bash paints a part of the prompt again. So this stage searches
//! the region for the beginning of the line; it never looks at output outside of the region. A line typed into a nested
//! shell is all that is in its region. bash's builtins paint no line: their key prints the mark `A` in its place.
//!
//! The place of a line is found from the journal, and not from the bytes at hand. So every reader finds the same place,
//! wherever it begins, and however its bytes are cut.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use journal::{EventsReader, Offset, Read, Reader};
use memchr::memmem;
use terminal::PaintedText;

use crate::host::holders::MaskedFolder;
use crate::sessions::timeline::handover::{Handover, RecentHandovers};

/// The longest region that is read: a line of ours as an editor paints it, with room for a prompt of many rows.
const REGION_BYTES_MAX: usize = 64 << 10;
/// Most regions are shorter.
const REGION_BYTES: usize = 2 << 10;
/// A marker is shorter.
const MARK_BYTES: usize = 96;
/// If the output ends with this many characters of a line of ours, they count as the line's beginning.
const CHARACTERS_MIN: usize = 3;

/// The beginnings and ends of the lines that the scripts in shell-integration/ put into the editor, or that are typed at shells
/// without an editor of ours. A line is added here, and none is removed: sessions outlive the version that started them.
const LINES: [(&str, &str); 10] = [
    ("{ __ptyd_begin && :; } 2>/dev/null;", "__ptyd_finish && :"),
    ("__ptyd_pass ", "__ptyd_finish && :"),
    ("\\builtin eval -- \"$__ptyd_text\"", "__ptyd_finish && :"),
    ("{ __ptyd_code=$?; \\unsetopt xtrace;", "__ptyd_finish && :; } 2>/dev/null"),
    ("{ \\builtin \\eval \"${", "__ptyd_finish && :"),
    ("builtin eval '__ptyd_begin; ", "__ptyd_finish'"),
    ("__ptyd_begin; ", "__ptyd_finish"),
    ("\\__ptyd_c ", "\"$__ptyd_l\""),
    ("source /proc/", "#__ptyd_"),
    ("printf '\\033]7337;C;", "\"'\"$PPID"),
];
/// bash's short line, the only one that stands for itself.
const SHORT_LINE: &str = "__ptyd";
/// Part of every line.
const IN_ALL: &str = "ptyd";

impl Handover {
    fn word(&self) -> String {
        if self.is_inside { format!("{:016x}", self.nonce) } else { self.nonce.to_string() }
    }

    /// Whether its region may reach into a range; the region ends before the next hand-over.
    fn is_in(&self, next: Option<&Self>, from: u64, to: u64) -> bool {
        self.from < to && self.to.or(next.map(|next| next.from)).is_none_or(|end| end > from)
    }

    /// The bytes that are not shown, what is shown instead, and the end of the region if its marker is there.
    fn cuts(&self, next: Option<&Self>, reader: &Reader) -> io::Result<(Vec<Cut>, Option<u64>)> {
        let bound = self.to.or(next.map(|next| next.from));
        let region = Region::read(reader, self, bound)?;
        let mut cuts = region.marks();
        // A program that is not a shell has read the line and printed no marker: then the line is what it was given.
        let is_refused = self.is_inside && region.marker.is_none() && bound.is_some();
        cuts.extend(self.line(&region).filter(|_| !is_refused));
        cuts.sort_by_key(|cut| cut.from);
        // The marker's last byte stands behind its nonce.
        let end = region.marker.as_ref().map(|marker| region.from + marker.end as u64 + 1);
        Ok((cuts, end))
    }

    fn line(&self, region: &Region) -> Option<Cut> {
        let hidden = region.line(self.is_inside)?;
        let mut shown = as_typed(&self.given).into_bytes();
        shown.extend(terminal::painted::mode_switches(&region.bytes[hidden.clone()]));
        if region.marker.as_ref().is_some_and(|marker| marker.start <= hidden.end) {
            shown.extend(b"\r\n");
        }
        let [from, to] = [hidden.start, hidden.end].map(|at| region.from + at as u64);
        Some(Cut { from, to, shown: shown.into() })
    }
}

/// The output of a region, as far as it is in the journal.
struct Region {
    /// The offset at which it should begin.
    begins: u64,
    /// The offset of its first byte.
    from: u64,
    bytes: Vec<u8>,
    /// The marker that ends it.
    marker: Option<Range<usize>>,
    /// The mark in the place of a line that is not painted.
    unpainted: Option<Range<usize>>,
}

impl Region {
    fn read(reader: &Reader, handover: &Handover, to: Option<u64>) -> io::Result<Self> {
        let word = handover.word();
        let limit = to.unwrap_or(u64::MAX).min(handover.from + REGION_BYTES_MAX as u64);
        let marker = format!("\x1b]7337;C;{word}");
        let mut region =
            Self { begins: handover.from, from: handover.from, bytes: Vec::new(), marker: None, unpainted: None };
        for most in [REGION_BYTES, REGION_BYTES_MAX] {
            if !region.fill(reader, most, limit)? {
                break;
            }
            region.marker = memmem::find(&region.bytes, marker.as_bytes()).map(|at| at..at + marker.len());
            if region.marker.is_some() {
                break;
            }
        }
        if region.marker.is_none() && region.is_headless() {
            // The unfinished sequence may end within the marker.
            let marker = format!("{marker}\x07");
            let rest = (1..marker.len()).find(|at| region.bytes.starts_with(&marker.as_bytes()[*at..]));
            region.marker = rest.map(|at| 0..marker.len() - at);
        }
        let accepted = format!("\x1b]7337;A;{word}\x07");
        region.unpainted = memmem::find(&region.bytes, accepted.as_bytes()).map(|at| at..at + accepted.len());
        Ok(region)
    }

    /// Continues to read until there are this many bytes; false if there is nothing more.
    fn fill(&mut self, reader: &Reader, most: usize, limit: u64) -> io::Result<bool> {
        let had = self.bytes.len();
        while self.bytes.len() < most {
            let len = self.bytes.len();
            self.bytes.resize(most, 0);
            match reader.read(Offset(self.from + len as u64), Offset(limit), &mut self.bytes[len..])? {
                Read::Bytes(n) => self.bytes.truncate(len + n),
                Read::Gap { to, .. } => {
                    self.bytes.clear();
                    self.from = to.0;
                }
                Read::Cut { .. } | Read::End => {
                    self.bytes.truncate(len);
                    break;
                }
            }
        }
        Ok(self.bytes.len() > had)
    }

    /// The beginning is no longer in the journal.
    fn is_headless(&self) -> bool {
        self.from > self.begins
    }

    /// The markers in it, also those that a prompt has painted again.
    fn marks(&self) -> Vec<Cut> {
        let end = self.marker.as_ref().map_or(0, |marker| marker.end + 1).min(self.bytes.len());
        marks(&self.bytes[..end], self.from)
    }

    /// The bytes of the line.
    fn line(&self, is_inside: bool) -> Option<Range<usize>> {
        let end = self.marker.as_ref().map(|marker| marker.start);
        if self.is_headless() {
            return self.marker.as_ref().map(|marker| 0..marker.end);
        }
        if let (true, Some(end)) = (is_inside, end) {
            return Some(0..end);
        }
        if self.unpainted.is_some() {
            return self.unpainted.clone();
        }
        let bytes = &self.bytes[..end.unwrap_or(self.bytes.len())];
        let painted = PaintedText::new(bytes);
        let begins = LINES.iter().filter_map(|(begin, end)| Some((painted.first(begin)?.start, *end)));
        let begin = begins.min_by_key(|(at, _)| *at);
        let is_whole = |found: &Range<usize>| bytes.get(found.end) != Some(&b'_');
        let short = painted.first(SHORT_LINE).filter(is_whole);
        // Where bash left a command to the load key, its short line stands before the other one.
        let begin = begin.map(|(from, words)| (short.as_ref().map_or(from, |short| short.start.min(from)), words));
        match (begin, end) {
            (Some((from, words)), _) if let Some(last) = painted.last(words, from) => Some(from..last.end),
            (Some((from, _)), Some(_)) => Some(from..line_end(bytes).max(from)),
            // Without a marker, the line of a command that has not begun, or never will.
            (Some((from, _)), None) => {
                Some(from..memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |n| from + n))
            }
            (None, _) if short.is_some() => short,
            (None, Some(_)) => {
                let from = painted.first(IN_ALL)?.start;
                let row = memchr::memrchr(b'\n', &bytes[..from]).map_or(0, |at| at + 1);
                Some(row..line_end(bytes).max(row))
            }
            (None, None) => {
                let begun = |(begin, _): &(&str, &str)| painted.unfinished(begin, CHARACTERS_MIN);
                let from = LINES.iter().find_map(begun).or_else(|| painted.unfinished(SHORT_LINE, CHARACTERS_MIN));
                from.map(|from| from..bytes.len())
            }
        }
    }
}

/// The marker in which this offset is.
fn mark_around(reader: &Reader, at: u64) -> io::Result<Option<Cut>> {
    let mut bytes = [0; 2 * MARK_BYTES];
    let from = at.saturating_sub(MARK_BYTES as u64);
    let Read::Bytes(n) = reader.read(Offset(from), Offset(at + MARK_BYTES as u64), &mut bytes)? else {
        return Ok(None);
    };
    let behind = usize::try_from(at - from).unwrap_or(n).min(n);
    let Some(begin) = memchr::memrchr(0x1b, &bytes[..behind]) else { return Ok(None) };
    let mut found = marks(&bytes[begin..n], from + begin as u64).into_iter();
    Ok(found.find(|mark| mark.from < at && mark.to > at))
}

/// The markers in bytes that begin at this offset.
fn marks(bytes: &[u8], from: u64) -> Vec<Cut> {
    let mut marks = Vec::new();
    terminal::Scanner::new(from).feed(bytes, &mut |found| {
        if let terminal::ScanEvent::Marker { from, to, .. } = found {
            marks.push(Cut { from, to, shown: Arc::default() });
        }
    });
    marks
}

/// The place of the last line end.
fn line_end(bytes: &[u8]) -> usize {
    let end = memchr::memrchr(b'\n', bytes).unwrap_or(bytes.len());
    bytes[..end].iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1)
}

/// A command as a terminal would echo it.
fn as_typed(given: &str) -> String {
    let mut shown = String::with_capacity(given.len());
    for c in given.trim_end().chars() {
        match c {
            '\n' => shown.push_str("\r\n"),
            '\t' => shown.push('\t'),
            c if c.is_ascii_control() => shown.extend(['^', char::from(c as u8 ^ 0x40)]),
            c if c.is_control() => {}
            c => shown.push(c),
        }
    }
    shown
}

/// A range of the journal that is not shown, and the bytes that are shown instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cut {
    from: u64,
    to: u64,
    shown: Arc<[u8]>,
}

/// The cuts in a range of output, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cuts(Vec<Cut>);

impl Cuts {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the first of them begins.
    pub(crate) fn first(&self) -> Option<u64> {
        self.0.iter().map(|cut| cut.from).min()
    }

    /// The bytes with commands instead of our lines; `from` is the offset of the first byte. A line that begins before
    /// these bytes was replaced in the bytes before.
    pub(crate) fn apply<'a>(&self, bytes: &'a [u8], from: u64) -> Cow<'a, [u8]> {
        let end = from + bytes.len() as u64;
        let mut here = self.0.iter().filter(|cut| cut.from < end && cut.to > from).peekable();
        if here.peek().is_none() {
            return Cow::Borrowed(bytes);
        }
        let index = |offset: u64| usize::try_from(offset.clamp(from, end) - from).unwrap_or(bytes.len());
        let mut shown = Vec::with_capacity(bytes.len());
        let mut at = from;
        for cut in here {
            shown.extend_from_slice(&bytes[index(at)..index(cut.from.max(at))]);
            if cut.from >= from {
                shown.extend_from_slice(&cut.shown);
            }
            at = cut.to.max(at);
        }
        shown.extend_from_slice(&bytes[index(at)..]);
        Cow::Owned(shown)
    }
}

/// Finds the hand-overs of a session for one of its readers: in memory, or else in the session's events.
#[derive(Debug, Default)]
pub(crate) struct Handovers {
    pub(crate) recent: RecentHandovers,
    recorded: Option<HandoverRecords>,
    /// A reader that begins within a marker gets no part of it.
    has_begun: bool,
}

impl Handovers {
    pub(crate) fn new(recent: RecentHandovers) -> Self {
        Self { recent, ..Self::default() }
    }

    /// The cuts in a range of the session in this folder. Reading forward is cheapest.
    pub(crate) fn cuts(&mut self, folder: &MaskedFolder, reader: &Reader, from: u64, to: u64) -> io::Result<Cuts> {
        let handovers = if from >= self.recent.known_from {
            &*self.recent.handovers
        } else {
            let recorded = match self.recorded.take().filter(|recorded| recorded.passed <= from) {
                Some(recorded) => recorded,
                None => HandoverRecords::open(folder)?,
            };
            self.recorded.insert(recorded).between(from, to)?
        };
        let mut cuts = Vec::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            cuts.extend(mark_around(reader, from)?);
        }
        let mut newest = None;
        for (i, handover) in handovers.iter().enumerate() {
            let next = handovers.get(i + 1);
            if handover.is_in(next, from, to) {
                let (own, end) = handover.cuts(next, reader)?;
                cuts.extend(own.into_iter().filter(|cut| cut.to > from && cut.from < to));
                newest = end;
            }
        }
        // The newest one has no next one that bounds its region: it is read once, and not for each piece behind it.
        if let Some(last) = self.recorded.as_mut().and_then(|recorded| recorded.near.back_mut()) {
            last.to = last.to.or(newest.filter(|end| *end > last.from));
        }
        Ok(Cuts(cuts))
    }
}

/// Reads the recorded hand-overs of a session forward.
#[derive(Debug)]
struct HandoverRecords {
    events: Option<EventsReader>,
    /// The newest ones that were read.
    near: VecDeque<Handover>,
    /// All events before this offset were read.
    read_to: u64,
    /// Those that end before this offset were given up.
    passed: u64,
}

impl HandoverRecords {
    fn open(folder: &MaskedFolder) -> io::Result<Self> {
        Ok(Self {
            events: crate::sessions::replay_order::events(folder)?,
            near: VecDeque::new(),
            read_to: 0,
            passed: 0,
        })
    }

    /// Those whose regions may reach into a range, perhaps with others around them.
    fn between(&mut self, from: u64, to: u64) -> io::Result<&[Handover]> {
        self.passed = from;
        while self.read_to < to
            && let Some(events) = &mut self.events
            && let Some(event) = events.next(u64::MAX)?
        {
            self.read_to = event.offset.0;
            self.near.extend(Handover::of(&event));
            self.forget(from);
        }
        self.forget(from);
        Ok(self.near.make_contiguous())
    }

    fn forget(&mut self, from: u64) {
        while self.near.get(1).is_some_and(|next| next.from <= from) {
            self.near.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use journal::{EventsWriter, Record};

    const BASH: &str = " \\builtin eval -- \"$__ptyd_text\"; __ptyd_finish && :";
    const OUT: &str = "out __ptyd_finish && :\r\n";

    /// A session's folder: hand-overs with what was painted for each, and output behind it.
    struct Folder {
        dir: tempfile::TempDir,
        bytes: Vec<u8>,
        recent: Vec<Handover>,
    }

    impl Folder {
        fn of(painted: &[(&str, bool)]) -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            let mut events = EventsWriter::create(dir.path()).expect("events");
            let (mut bytes, mut recent) = (b"$".to_vec(), Vec::new());
            for (i, (region, is_inside)) in painted.iter().enumerate() {
                let (id, nonce, from) = (i as u32 + 1, 70 + i as u64, bytes.len() as u64);
                let text = format!("ls {i}");
                let (key, text_bytes) = ([0; 16], text.as_bytes());
                let record = match is_inside {
                    true => Record::Typed { id, is_inside: true, nonce, key, text: text_bytes },
                    false => Record::Accepted { id, nonce, key, text: text_bytes },
                };
                events.record(1, Offset(from), &record).expect("recorded");
                let mut handover =
                    Handover { from, to: None, nonce, is_inside: *is_inside, given: text.as_str().into() };
                bytes.extend(region.as_bytes());
                bytes.extend(format!("\x1b]7337;C;{}\x07", handover.word()).as_bytes());
                handover.to = Some(bytes.len() as u64);
                recent.push(handover);
                bytes.extend(OUT.as_bytes());
            }
            events.release().expect("released");
            let folder = Self { dir, bytes, recent };
            folder.write(&folder.bytes);
            folder
        }

        fn write(&self, bytes: &[u8]) {
            std::fs::write(self.dir.path().join(journal::JOURNAL_FILE), bytes).expect("written");
        }

        fn shown_by(&self, handovers: &mut Handovers, from: usize, to: usize) -> String {
            let reader = Reader::open(self.dir.path(), journal::Masks::default()).expect("readable");
            let cuts = handovers
                .cuts(&MaskedFolder::of_test(self.dir.path()), &reader, from as u64, to as u64)
                .expect("readable");
            String::from_utf8_lossy(&cuts.apply(&self.bytes[from..to], from as u64)).into_owned()
        }

        fn shown(&self, from: usize, to: usize) -> String {
            self.shown_by(&mut Handovers::default(), from, to)
        }
    }

    /// Paint of a hand-over, and the part of it that is shown.
    fn paints() -> Vec<(String, String)> {
        let whole = |line: &str| (format!(" {line}\r\n\x1b[?2004l\r"), " ls 0\r\n\x1b[?2004l\r".to_owned());
        let zsh =
            "{ \\builtin \\eval \"${__ptyd_text:__ptyd_begin()}\"; } always { $__ptyd_cut; }; $__ptyd_finish && :";
        let traced = "{ __ptyd_code=$?; \\unsetopt xtrace; } 2>/dev/null; { \\builtin \\eval \"${__ptyd_text}\"; } always { { \\__ptyd_cut; } \
                      2>/dev/null; }; { \\__ptyd_finish && :; } 2>/dev/null";
        let typed = "\\__ptyd_c 12 15437122521296011965;\\eval \"$__ptyd_l\"";
        let nu = "source\x1b[0m \x1b[36m/proc/18843/fd/11\x1b[0m #__ptyd_";
        let fish = "__ptyd_begin; builtin eval $__ptyd_text; __ptyd_finish \r\x1b[73C\x1b[55D\x1b[34m__ptyd_begin\x1b[32m;\x1b[30m\
                    \x1b(B\x1b[m \x1b[34mbuiltin eval \x1b[96m$__ptyd_text\x1b[32m; \x1b[34m__ptyd_finish";
        let fish_eval = "builtin eval '__ptyd_begin; builtin eval $__ptyd_text; __ptyd_finish' \r\x1b[82C\x1b[70D\x1b[34mbuiltin\x1b[30m\x1b(B\x1b[m \
                         \x1b[34meval\x1b[30m\x1b(B\x1b[m \x1b[33m'__ptyd_begin; builtin eval $__ptyd_text; __ptyd_finish'";
        let careful = format!("{{ __ptyd_begin && :; }} 2>/dev/null; __ptyd_pass 1 | __ptyd_pass 0;{BASH}");
        let lines = [BASH.trim_start(), SHORT_LINE, &careful, zsh, traced, typed, fish, fish_eval];
        let mut all: Vec<_> = lines.into_iter().map(whole).collect();
        for between in [" \r", "\r\n", "\x1b[0m\x1b[32m"] {
            for at in [4, 22, 40, 46] {
                let line = if at == 46 { typed } else { BASH.trim_start() };
                all.push(whole(&format!("{}{between}{}", &line[..at], &line[at..])));
            }
        }
        let twice = format!("{nu}\x1b8\x1b[6n\x1b[18;1H\x1b[J> \x1b[1;36m{nu}");
        all.push(whole(&twice));
        // bash left the command to the load key.
        let left = format!(" {SHORT_LINE}\r\n\x1b[?2004l\r\x1b[?2004h$ {BASH}\r\n");
        all.push((left, " ls 0\x1b[?2004l\x1b[?2004h\r\n".to_owned()));
        // A job in the background prints before the line ends.
        all.push((format!(" {SHORT_LINE}tick\r\n\r\n"), " ls 0tick\r\n\r\n".to_owned()));
        // The editor scrolls a line that is longer than its row.
        let scrolled =
            "\\__ptyd_c 2 41\r\\__ptyd_c 2 41      <\x08\x08\x085426\r26;\\eval \"$_    <\x08\x08\x08_ptyd_l\"";
        all.push((format!("#  {scrolled}\r\r\n"), "#  ls 0\r\r\n".to_owned()));
        // A prompt that is painted late, and once more.
        all.push((format!(" \x1b[K$ \r\x1b[K$ {BASH}\r\n"), " \x1b[K$ \r\x1b[K$  ls 0\r\n".to_owned()));
        // bash's builtins paint no line.
        let mark = "\x1b]7337;A;70\x07";
        all.push((format!("\r\x1b[K$ {mark}\r\n\x1b[?2004l\r"), "\r\x1b[K$ ls 0\r\n\x1b[?2004l\r".to_owned()));
        // Of an unknown line its row is hidden.
        all.push((" two\r\nrows$ call_ptyd now\r\nmore\r\n".to_owned(), " two\r\nls 0\r\n".to_owned()));
        all.push((" no line is painted\r\n".to_owned(), " no line is painted\r\n".to_owned()));
        all
    }

    #[test]
    // promise: output-15
    fn a_command_replaces_its_hand_over_line_however_that_is_painted_and_cut() {
        for (painted, expected) in paints() {
            let folder = Folder::of(&[(&painted, false)]);
            let end = folder.bytes.len();
            let whole = folder.shown(0, end);
            assert_eq!(whole, format!("${expected}{OUT}"), "{painted:?}");
            for cut in 0..=end {
                let mut handovers = Handovers::default();
                let parts = [(0, cut), (cut, end)].map(|(from, to)| folder.shown_by(&mut handovers, from, to));
                assert_eq!(parts.concat(), whole, "{painted:?} cut at {cut}");
            }
        }
    }

    #[test]
    // promise: output-15
    fn a_line_typed_inside_is_hidden_with_all_that_its_shell_paints_for_it() {
        let painted = " pri\r\x1b[4Cprintf '\\033]7337;C;\x1b[?2004l\x1b[A\r\n\x1b]0; printf\x07";
        let folder = Folder::of(&[(painted, true)]);
        assert_eq!(folder.shown(0, folder.bytes.len()), format!("$ls 0\x1b[?2004l\r\n{OUT}"));
    }

    #[test]
    fn a_line_that_a_nested_program_consumed_is_shown() {
        let painted = " printf '\\033]7337;C;46\\007' \"'\"$PPID\r\n";
        let folder = Folder::of(&[(painted, true)]);
        let end = painted.len() + 1;
        let mut handover = folder.recent[0].clone();
        folder.write(&folder.bytes[..end]);
        for (to, shown) in [(None, "$ls 0\r\n".to_owned()), (Some(end as u64), format!("${painted}"))] {
            handover.to = to;
            let recent = RecentHandovers { known_from: 0, handovers: Arc::new(vec![handover.clone()]) };
            let seen = folder.shown_by(&mut Handovers::new(recent), 0, end);
            assert_eq!(seen.replace(' ', ""), shown.replace(' ', ""), "its end is {to:?}");
        }
    }

    #[test]
    // promise: output-15
    fn memory_and_events_agree_and_output_is_never_mistaken_for_a_line() {
        let region = format!(" {BASH}\r\n");
        let folder = Folder::of(&[(&region, false), (&region, true), (&region, false), (&region, false)]);
        let end = folder.bytes.len();
        let whole = folder.shown(0, end);
        assert_eq!(whole.matches("__ptyd").count(), 4, "what was printed is there: {whole:?}");
        let memory = |from: usize| RecentHandovers {
            known_from: folder.recent[from].from,
            handovers: Arc::new(folder.recent[from..].to_vec()),
        };
        for known in 0..4 {
            let mut handovers = Handovers::new(memory(known));
            for from in (0..end).rev() {
                let rest = folder.shown_by(&mut handovers, from, end);
                assert_eq!(rest, folder.shown(from, end), "from {from} with all from {known} on in memory");
            }
        }
        for step in [1, 7, 50] {
            let mut handovers = Handovers::default();
            let mut pieces = (0..end).step_by(step).map(|at| folder.shown_by(&mut handovers, at, end.min(at + step)));
            assert_eq!(pieces.by_ref().collect::<String>(), whole, "in pieces of {step}");
        }
    }

    #[test]
    // promise: output-15
    fn nothing_of_a_line_is_shown_wherever_the_journal_was_cut() {
        let region = format!(" \r\x1b[K$ {BASH}\r\n");
        let folder = Folder::of(&[(&region, false)]);
        let (end, line) = (folder.bytes.len(), folder.bytes.len() - OUT.len());
        let shows_ours = |shown: &str| shown.replace(OUT, "").chars().filter(|c| "_{}\\7".contains(*c)).count() > 1;
        for at in 2..line {
            // The end is gone.
            folder.write(&folder.bytes[..at]);
            let shown = folder.shown(0, at);
            // A terminal shows nothing of an unfinished marker.
            let shown = shown.split("\x1b]").next().unwrap_or_default();
            assert!(!shows_ours(shown), "up to {at}: {shown:?}");
        }
        // The beginning was given up.
        folder.write(&folder.bytes);
        let events = EventsWriter::open(folder.dir.path()).expect("events");
        for first in 2..line {
            events.publish_first(Offset(first as u64)).expect("published");
            let shown = folder.shown(first, end);
            assert!(!shows_ours(&shown) && shown.ends_with(OUT), "from {first}: {shown:?}");
        }
    }

    #[test]
    fn a_command_cannot_speak_to_the_viewers_terminal() {
        assert_eq!(as_typed("a\tb\n\x1b]0;x\x07\u{9b}2J\n\n"), "a\tb\r\n^[]0;x^G2J");
    }
}
