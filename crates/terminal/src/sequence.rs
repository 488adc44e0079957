//! The splitter of control sequences: bytes in, text and whole sequences out.
//!
//! Only this module decides where a sequence begins and ends. The rules are those of the `vte` state machine, with these
//! additions for endless hostile input: a sequence longer than [`SEQUENCE_BYTES_MAX`] is skipped without being kept,
//! and C1 bytes (0x80–0x9f) never introduce a sequence, because they are parts of UTF-8 characters. An OSC may have line ends, as
//! the title of a command of several lines has. One that is aborted or overlong has ended with its first line, and the rest is
//! text, so that an OSC without a terminator hides nothing behind it.
//!
//! For a text, a line end also ends the other sequences that have no end of their own (see [`Splitter::for_text`]).

use memchr::{memchr, memchr2};

/// The longest sequence that is kept whole. A marker has 90 bytes, a hyperlink or clipboard rarely some hundred; longer
/// ones (pictures) are irrelevant here, and must not hold output back from viewers.
pub const SEQUENCE_BYTES_MAX: usize = 4096;

const ESC: u8 = 0x1b;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;
const BEL: u8 = 0x07;

/// A piece of the output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// Bytes outside of any sequence, cut wherever the input was cut.
    Text(&'a [u8]),
    /// A whole sequence, from its ESC to its final byte or terminator.
    Sequence(&'a [u8]),
    /// A sequence aborted by another ESC, CAN or SUB; the CAN or SUB is its last byte, the ESC is not. Of an OSC its first
    /// line; for a text, also of the other sequences.
    Broken(&'a [u8]),
    /// Bytes of a sequence that is too long to be kept, from its beginning, cut anywhere but behind its beginning.
    Overlong(&'a [u8]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    EscapeIntermediate,
    Csi,
    /// OSC ends at BEL, too; DCS, SOS, PM and APC only at ST.
    String {
        is_osc: bool,
    },
    /// An ESC inside a string: the first half of its terminator, or the start of another sequence.
    StringEscape,
}

/// Splits a stream of bytes into [`Piece`]s, and tracks the offset of each.
#[derive(Clone, Debug)]
pub(crate) struct Splitter {
    state: State,
    /// The unfinished sequence. One byte longer than the limit when the limit is exceeded, so that feeding these bytes
    /// to a new splitter brings it into the same state.
    pending: Vec<u8>,
    /// The length of the unfinished sequence, kept or not.
    pending_len: usize,
    position: u64,
    /// The bytes of the sequences that were aborted.
    broken: u64,
    /// Line ends also end sequences other than OSC.
    is_for_text: bool,
}

impl Splitter {
    pub(crate) fn new(offset: u64) -> Self {
        Self {
            state: State::Ground,
            pending: Vec::new(),
            pending_len: 0,
            position: offset,
            broken: 0,
            is_for_text: false,
        }
    }

    /// A splitter for a text, in which an unfinished sequence hides nothing behind its line. A screen has no such rule: its
    /// parser obeys a line end inside a CSI, and continues.
    pub(crate) fn for_text() -> Self {
        Self { is_for_text: true, ..Self::new(0) }
    }

    /// Offset of the next byte to be fed.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The offset of the first byte whose meaning is still open, or else the position.
    pub(crate) fn held_from(&self) -> u64 {
        if self.is_overlong() { self.position } else { self.position - self.pending_len as u64 }
    }

    /// How many bytes the unfinished sequence has so far, kept or not.
    pub(crate) fn unfinished_len(&self) -> usize {
        self.pending_len
    }

    /// How many bytes are in sequences that were aborted, and in one that has not ended.
    pub(crate) fn unfinished_bytes(&self) -> u64 {
        self.broken + self.first_line().unwrap_or(self.pending_len) as u64
    }

    /// The output has ended: a string that is not finished has ended with its first line.
    pub(crate) fn end(mut self, sink: &mut impl FnMut(u64, Piece<'_>)) {
        if self.first_line().is_some() {
            self.emit(sink, false);
        }
    }

    /// The length of the first line of an unfinished string that has more, and must end with its line.
    fn first_line(&self) -> Option<usize> {
        let ends_with_line = match self.pending.get(1) {
            Some(b']') => true,
            Some(b'X' | b'^' | b'_') => self.is_for_text,
            Some(b'P') => self.is_for_text && !is_sixel(&self.pending),
            _ => false,
        };
        if ends_with_line && !self.is_overlong() { memchr2(b'\r', b'\n', &self.pending) } else { None }
    }

    /// Bytes that bring a new splitter into this one's state.
    pub(crate) fn unfinished(&self) -> Vec<u8> {
        let mut bytes = self.pending.clone();
        if self.state == State::StringEscape && bytes.last() != Some(&ESC) {
            bytes.push(ESC);
        }
        bytes
    }

    /// Splits the next bytes; `sink` gets each piece with the offset of its first byte.
    pub(crate) fn feed(&mut self, bytes: &[u8], sink: &mut impl FnMut(u64, Piece<'_>)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Ground {
                let text = memchr(ESC, rest).unwrap_or(rest.len());
                if text > 0 {
                    let from = self.position;
                    self.position += text as u64;
                    sink(from, Piece::Text(&rest[..text]));
                }
                if text < rest.len() {
                    self.begin();
                    rest = &rest[text + 1..];
                } else {
                    rest = &[];
                }
            } else if self.step(rest[0], sink) {
                rest = &rest[1..];
            }
        }
    }

    fn is_overlong(&self) -> bool {
        self.pending_len > SEQUENCE_BYTES_MAX
    }

    /// Starts a sequence at an ESC, which is the next byte.
    fn begin(&mut self) {
        self.pending.clear();
        self.pending_len = 0;
        self.push(ESC);
        self.state = State::Escape;
    }

    fn push(&mut self, byte: u8) {
        if self.pending.len() <= SEQUENCE_BYTES_MAX {
            self.pending.push(byte);
        }
        self.pending_len += 1;
        self.position += 1;
    }

    /// Processes one byte inside a sequence. False if the byte does not belong to it and must be processed again.
    fn step(&mut self, byte: u8, sink: &mut impl FnMut(u64, Piece<'_>)) -> bool {
        match (self.state, byte) {
            (State::StringEscape, b'\\') => self.finish(byte, sink),
            (State::StringEscape, _) => {
                self.restart_at_last_escape(sink);
                false
            }
            (State::String { .. }, ESC) => self.go_on(byte, State::StringEscape, sink),
            (State::String { is_osc: true }, BEL) => self.finish(byte, sink),
            (_, ESC) => {
                self.emit(sink, false);
                self.begin();
                true
            }
            (State::Escape, b'[') => self.go_on(byte, State::Csi, sink),
            (State::Escape, b']') => self.go_on(byte, State::String { is_osc: true }, sink),
            (State::Escape, b'P' | b'X' | b'^' | b'_') => self.go_on(byte, State::String { is_osc: false }, sink),
            (State::Escape, 0x20..=0x2f) => self.go_on(byte, State::EscapeIntermediate, sink),
            (State::Escape | State::EscapeIntermediate, 0x30..=0x7e) | (State::Csi, 0x40..=0x7e) => {
                self.finish(byte, sink)
            }
            (State::Escape, _) => {
                // A lone ESC: emulators drop it. The byte itself is text again.
                self.emit(sink, false);
                false
            }
            (State::Csi | State::EscapeIntermediate, b'\r' | b'\n') if self.is_for_text => {
                self.emit(sink, false);
                false
            }
            (_, CAN | SUB) => {
                self.push(byte);
                self.pass_on(&[byte], sink);
                self.emit(sink, false);
                true
            }
            (_, _) if self.pending_len == SEQUENCE_BYTES_MAX && self.first_line().is_some() => {
                self.emit(sink, false);
                false
            }
            (state, _) => self.go_on(byte, state, sink),
        }
    }

    fn go_on(&mut self, byte: u8, state: State, sink: &mut impl FnMut(u64, Piece<'_>)) -> bool {
        self.push(byte);
        self.state = state;
        // The ESC may begin the next sequence.
        if state != State::StringEscape {
            self.pass_on(&[byte], sink);
        }
        true
    }

    fn finish(&mut self, byte: u8, sink: &mut impl FnMut(u64, Piece<'_>)) -> bool {
        self.push(byte);
        match self.state {
            State::StringEscape => self.pass_on(&[ESC, byte], sink),
            _ => self.pass_on(&[byte], sink),
        }
        self.emit(sink, true);
        true
    }

    /// Passes the newest bytes of an overlong sequence on; with the first of them all before.
    fn pass_on(&mut self, newest: &[u8], sink: &mut impl FnMut(u64, Piece<'_>)) {
        if !self.is_overlong() {
            return;
        }
        let before = self.pending_len - newest.len();
        if before > SEQUENCE_BYTES_MAX {
            return sink(self.position - newest.len() as u64, Piece::Overlong(newest));
        }
        let all = [&self.pending[..before], newest].concat();
        sink(self.position - all.len() as u64, Piece::Overlong(&all));
    }

    /// The ESC that was taken for half a terminator begins a new sequence instead.
    fn restart_at_last_escape(&mut self, sink: &mut impl FnMut(u64, Piece<'_>)) {
        self.pending_len -= 1;
        self.pending.truncate(self.pending_len);
        self.position -= 1;
        self.emit(sink, false);
        self.begin();
    }

    fn emit(&mut self, sink: &mut impl FnMut(u64, Piece<'_>), whole: bool) {
        self.state = State::Ground;
        let from = self.position - self.pending_len as u64;
        let fits = !self.is_overlong();
        let first_line = if whole { None } else { self.first_line() };
        self.broken += if whole { 0 } else { first_line.unwrap_or(self.pending_len) as u64 };
        self.pending_len = 0;
        if let Some(first_line) = first_line {
            let (line, rest) = self.pending.split_at(first_line);
            sink(from, Piece::Broken(line));
            let rest = rest.strip_suffix(&[CAN]).or_else(|| rest.strip_suffix(&[SUB])).unwrap_or(rest);
            sink(from + first_line as u64, Piece::Text(rest));
        } else if fits {
            sink(from, if whole { Piece::Sequence(&self.pending) } else { Piece::Broken(&self.pending) });
        }
        self.pending.clear();
    }
}

/// Whether a DCS is a picture, whose data may have line ends.
fn is_sixel(sequence: &[u8]) -> bool {
    let mut body = sequence.iter().skip(2);
    body.find(|byte| !matches!(byte, b'0'..=b'9' | b';')) == Some(&b'q')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Owned {
        Text(u64, Vec<u8>),
        Sequence(u64, Vec<u8>),
        Broken(u64, Vec<u8>),
        Overlong(u64, Vec<u8>),
    }

    fn feed(splitter: &mut Splitter, bytes: &[u8], pieces: &mut Vec<Owned>) {
        splitter.feed(bytes, &mut |from, piece| match (piece, pieces.last_mut()) {
            // Text is cut where the input was cut; what it says is the same.
            (Piece::Text(text), Some(Owned::Text(_, before))) => before.extend_from_slice(text),
            (Piece::Text(text), _) => pieces.push(Owned::Text(from, text.to_vec())),
            (Piece::Sequence(bytes), _) => pieces.push(Owned::Sequence(from, bytes.to_vec())),
            (Piece::Broken(bytes), _) => pieces.push(Owned::Broken(from, bytes.to_vec())),
            (Piece::Overlong(bytes), Some(Owned::Overlong(begun, before))) if *begun + before.len() as u64 == from => {
                before.extend_from_slice(bytes)
            }
            (Piece::Overlong(bytes), _) => pieces.push(Owned::Overlong(from, bytes.to_vec())),
        });
    }

    fn split(bytes: &[u8]) -> Vec<Owned> {
        let mut pieces = Vec::new();
        feed(&mut Splitter::new(0), bytes, &mut pieces);
        pieces
    }

    #[test]
    fn an_escape_aborts_the_sequence_before_it() {
        assert_eq!(
            split(b"a\x1b\x1b]0;x\x1b[1\x1b[m\x1bPq\x18b\x1b\ne"),
            [
                Owned::Text(0, b"a".to_vec()),
                Owned::Broken(1, b"\x1b".to_vec()),
                Owned::Broken(2, b"\x1b]0;x".to_vec()),
                Owned::Broken(7, b"\x1b[1".to_vec()),
                Owned::Sequence(10, b"\x1b[m".to_vec()),
                Owned::Broken(13, b"\x1bPq\x18".to_vec()),
                Owned::Text(17, b"b".to_vec()),
                Owned::Broken(18, b"\x1b".to_vec()),
                Owned::Text(19, b"\ne".to_vec()),
            ]
        );
    }

    #[test]
    // promise: output-8
    fn an_osc_without_an_end_hides_nothing_behind_its_first_line() {
        assert_eq!(
            split(b"\x1b]0;never\r\nb\x1bPq\nc\x1b\\\x1b]0;two\nlines\x07d\x1b]e\nf\x18"),
            [
                Owned::Broken(0, b"\x1b]0;never".to_vec()),
                Owned::Text(9, b"\r\nb".to_vec()),
                Owned::Sequence(12, b"\x1bPq\nc\x1b\\".to_vec()),
                Owned::Sequence(19, b"\x1b]0;two\nlines\x07".to_vec()),
                Owned::Text(33, b"d".to_vec()),
                Owned::Broken(34, b"\x1b]e".to_vec()),
                Owned::Text(37, b"\nf".to_vec()),
            ]
        );
        // An ESC at the limit begins the next one.
        let full = [b"\x1b]0;n\n".as_slice(), &[b'x'; SEQUENCE_BYTES_MAX - 6], b"\x1b[1mb"].concat();
        let text = full[5..SEQUENCE_BYTES_MAX].to_vec();
        let [broken, rest, bold, after] = split(&full).try_into().expect("four pieces");
        assert_eq!((broken, rest), (Owned::Broken(0, full[..5].to_vec()), Owned::Text(5, text)));
        let at = SEQUENCE_BYTES_MAX as u64;
        assert_eq!((bold, after), (Owned::Sequence(at, b"\x1b[1m".to_vec()), Owned::Text(at + 4, b"b".to_vec())));
        let endless = [b"\x1b]0;never\n".as_slice(), &[b'x'; 5000]].concat();
        assert_eq!(split(&endless), [Owned::Broken(0, endless[..9].to_vec()), Owned::Text(9, endless[9..].to_vec())]);
        let mut ended = Vec::new();
        let mut splitter = Splitter::new(0);
        feed(&mut splitter, b"\x1b]0;never\nb", &mut ended);
        assert_eq!((ended.as_slice(), splitter.held_from(), splitter.unfinished_bytes()), (&[][..], 0, 9));
        splitter.end(&mut |from, piece| match piece {
            Piece::Text(text) => ended.push(Owned::Text(from, text.to_vec())),
            Piece::Sequence(_) | Piece::Broken(_) | Piece::Overlong(_) => {}
        });
        assert_eq!(ended, [Owned::Text(9, b"\nb".to_vec())]);
    }

    #[test]
    // promise: output-8
    fn for_a_text_an_unfinished_sequence_hides_nothing_behind_its_line() {
        let shown = |mut splitter: Splitter, bytes: &[u8]| {
            let mut text = Vec::new();
            let mut keep = |_, piece: Piece<'_>| {
                if let Piece::Text(bytes) = piece {
                    text.extend_from_slice(bytes);
                }
            };
            splitter.feed(bytes, &mut keep);
            let unfinished = splitter.unfinished_bytes();
            splitter.end(&mut keep);
            (String::from_utf8(text).expect("it is ASCII"), unfinished)
        };
        for (bytes, text, unfinished) in [
            ("x\x1b[38;5\r\nyes", "x\r\nyes", 6),
            ("x\x1b(\nyes", "x\nyes", 2),
            ("x\x1b[", "x", 2),
            ("x\x1b_a\r\nyes", "x\r\nyes", 3),
            ("x\x1b^a\nyes\x1b[m", "x\nyes", 3),
            ("x\x1bXa\nyes\x18", "x\nyes", 3),
            ("x\x1bP+q1\nyes", "x\nyes", 5),
            ("x\x1bP0;1q#\nno", "x", 10),
            ("x\x1b_a\nb\x1b\\yes", "xyes", 0),
        ] {
            assert_eq!(shown(Splitter::for_text(), bytes.as_bytes()), (text.to_owned(), unfinished), "{bytes:?}");
        }
        assert_eq!(shown(Splitter::new(0), b"x\x1b[38;5\r\nyes").0, "xes");
    }

    #[test]
    // promise: output-8
    fn an_overlong_string_is_not_text_and_holds_nothing_back() {
        let mut splitter = Splitter::new(7);
        let mut pieces = Vec::new();
        feed(&mut splitter, b"\x1b]", &mut pieces);
        assert_eq!(splitter.held_from(), 7);
        feed(&mut splitter, &[b'x'; SEQUENCE_BYTES_MAX], &mut pieces);
        assert_eq!(splitter.held_from(), splitter.position());
        feed(&mut splitter, b"\x1b\\after", &mut pieces);
        let string = [b"\x1b]".as_slice(), &[b'x'; SEQUENCE_BYTES_MAX], b"\x1b\\"].concat();
        let after = Owned::Text(7 + 4 + SEQUENCE_BYTES_MAX as u64, b"after".to_vec());
        assert_eq!(pieces, [Owned::Overlong(7, string), after]);
    }

    fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            3 => Just(ESC),
            4 => prop::sample::select(&b"[]P\\_(0mc;?\x07\x18\x1a\n"[..]),
            2 => any::<u8>(),
        ];
        let short = prop::collection::vec(byte, 0..40);
        let overlong = (4090usize..4100).prop_map(|len| vec![b'x'; len]);
        prop::collection::vec(prop_oneof![8 => short, 1 => overlong], 0..5).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn the_pieces_are_the_same_wherever_the_input_is_cut(bytes in hostile_bytes(), cut in any::<prop::sample::Index>()) {
            let whole = split(&bytes);
            let at = cut.index(bytes.len() + 1);
            let mut splitter = Splitter::new(0);
            let mut pieces = Vec::new();
            feed(&mut splitter, &bytes[..at], &mut pieces);
            prop_assert!(splitter.held_from() <= splitter.position());

            // A splitter that is brought into the same state by the unfinished bytes goes on in the same way.
            let unfinished = splitter.unfinished();
            let mut resumed = Splitter::new(splitter.position() - unfinished.len() as u64);
            let is_kept = |piece: &Owned| !matches!(piece, Owned::Overlong(..));
            let mut nothing = Vec::new();
            feed(&mut resumed, &unfinished, &mut nothing);
            prop_assert!(!nothing.iter().any(is_kept));
            let mut pieces_after_resume = pieces.clone();

            feed(&mut splitter, &bytes[at..], &mut pieces);
            prop_assert_eq!(&pieces, &whole);
            prop_assert_eq!(splitter.position(), bytes.len() as u64);
            feed(&mut resumed, &bytes[at..], &mut pieces_after_resume);
            // Of a sequence that is too long, no more than its beginning is known then.
            pieces_after_resume.retain(is_kept);
            let kept: Vec<_> = whole.into_iter().filter(is_kept).collect();
            prop_assert_eq!(pieces_after_resume, kept);
        }
    }
}
