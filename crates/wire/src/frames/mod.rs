//! The wire between a server and a holder, both directions in one file.
//!
//! A frame is `length u32 | kind u8 | payload`, numbers little-endian, the length counting kind and payload. The wire
//! only grows: kinds and trailing fields may be added, a decoder ignores what it does not know, and [`ToHolder::Kill`] is kind 1
//! with an empty payload for ever, so that any server can end any holder. A change that is not an addition gets another [`PROTOCOL`].

pub use foreground::Activity;
use foreground::{Modes, Observation};
use journal::Offset;

/// The protocol that both ends announce in their Hello. A server takes on no holder whose protocol it does not know; a later server
/// that speaks another one knows the earlier ones as well.
pub const PROTOCOL: u16 = 5;
/// The largest frame that either end accepts: a command of 1 MiB, the line that is typed for it, and room for what comes with
/// them.
pub const FRAME_BYTES_MAX: usize = (2 << 20) + (4 << 10);

/// A caller's idempotency key: eight bytes that stand for the key, eight for the request's body. All zero means none.
pub type Key = [u8; 16];
/// The key that means "no key".
pub const NO_KEY: Key = [0; 16];

/// Whether both are made of the same key of a caller's; the requests' bodies may differ.
#[must_use]
pub fn is_same_name(one: &Key, other: &Key) -> bool {
    *one != NO_KEY && one.first_chunk::<8>() == other.first_chunk::<8>()
}

/// The value of an answer to [`ToHolder::Type`] whose line was typed in part: the command's number and the bytes typed. The
/// number is 0 if nothing was recorded.
#[must_use]
pub fn typed_in_part(value: u64) -> (u32, u64) {
    ((value >> 32) as u32, value & u64::from(u32::MAX))
}

/// The value for this command of which so many bytes were typed.
#[must_use]
pub fn in_part(command: u32, bytes: usize) -> u64 {
    u64::from(command) << 32 | u64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
}

/// A frame from a server. Requests carry a sequence number that comes back in [`FromHolder::Done`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToHolder {
    /// End the session now. Kind 1, eternal.
    Kill,
    /// The first frame: who is there. Only one that attaches takes the session over from an earlier server.
    Hello {
        /// The sender's protocol.
        protocol: u16,
        /// False for a mere look, which changes nothing.
        attaches: bool,
    },
    /// Run a command: check that the shell is ready, record the acceptance, stage the text, press the key.
    Run {
        /// Comes back in the answer.
        seq: u32,
        /// The same key again is answered with the same command.
        key: Key,
        /// How long to wait for the prompt, in milliseconds.
        patience_ms: u32,
        /// The command, up to 1 MiB, without NUL.
        text: Vec<u8>,
    },
    /// Type bytes at the terminal.
    Input {
        /// Comes back in the answer.
        seq: u32,
        /// The same key again is not typed again.
        key: Key,
        /// Keep the bytes out of the events even if the terminal echoes.
        is_secret: bool,
        /// How long to wait for a program that does not read, in milliseconds without progress.
        patience_ms: u32,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Change the terminal's size.
    Resize {
        /// Comes back in the answer.
        seq: u32,
        /// Cells.
        cols: u16,
        /// Cells.
        rows: u16,
    },
    /// Send a signal.
    Signal {
        /// Comes back in the answer.
        seq: u32,
        /// The processes that get it.
        target: Target,
        /// Its number.
        signo: i32,
    },
    /// The terminal's answer to a query that the program made.
    Answer {
        /// The offset in the journal where the query ends; an answer to an earlier one than the last is a duplicate.
        query: Offset,
        /// The bytes that a terminal would send.
        bytes: Vec<u8>,
    },
    /// End the session: CONT and the first signal, then TERM, then KILL, for the whole tree.
    Terminate {
        /// Comes back when nothing is left.
        seq: u32,
        /// The first signal, usually HUP; KILL ends it at once.
        signo: i32,
        /// How long to wait after each step, in milliseconds.
        grace_ms: u32,
    },
    /// Press the key that makes the shell say whether its hooks are still there.
    Report {
        /// Comes back in the answer.
        seq: u32,
    },
    /// The session ran into a limit: keep that on record.
    Limited {
        /// The limit's number, which only servers understand.
        limit: u8,
        /// The command that ran then, 0 for none.
        command: u32,
        /// How often that happened, in all.
        count: u64,
    },
    /// Are you there?
    Ping {
        /// Comes back in the answer.
        seq: u32,
    },
    /// Type the line of a command that no key of ours hands over, and keep the command on record.
    Type {
        /// Comes back in the answer, whose value is the command's number, or that of [`typed_in_part`].
        seq: u32,
        /// The same key again is answered with the same command.
        key: Key,
        /// As of [`Self::Input`].
        patience_ms: u32,
        /// It is for a shell inside the session's own.
        is_inside: bool,
        /// By which the marks in its line are known.
        nonce: u64,
        /// The command.
        text: Vec<u8>,
        /// The line that is typed for it.
        line: Vec<u8>,
    },
    /// A command has ended without the shell's report: keep that on record. The numbers are understood by servers only.
    Judge {
        /// The command.
        command: u32,
        /// The status of its end.
        status: u8,
        /// The evidence of its end.
        boundary: u8,
        /// The shell's hooks are gone, and commands are typed from now on.
        is_hookless: bool,
        /// The end of its output in the journal.
        end: Offset,
        /// When, in microseconds of Unix time.
        time_us: u64,
        /// In words.
        why: Vec<u8>,
    },
}

/// The processes that a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The foreground process group, through the terminal where it takes signals.
    Foreground,
    /// Every process of the session.
    Session,
    /// One process, which must belong to the session.
    Process(u32),
}

/// How input is shown that was typed: the same before and after it was written, all at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ShownBy {
    /// It is not shown, or nobody can tell.
    #[default]
    Unknown = 0,
    /// The terminal echoes it as it is written.
    Terminal = 1,
    /// A line editor has the terminal, and paints it.
    Editor = 2,
}

impl ShownBy {
    fn of(number: u8) -> Self {
        match number {
            1 => Self::Terminal,
            2 => Self::Editor,
            _ => Self::Unknown,
        }
    }
}

/// A frame from a holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromHolder {
    /// The answer to [`ToHolder::Hello`].
    Hello(Hello),
    /// Journal and events may be read up to here.
    Tail(Tail),
    /// The facts about the foreground, of which the server makes a state by its own rules.
    Observed(Observed),
    /// The answer to a request.
    Done {
        /// The request.
        seq: u32,
        /// The result.
        status: Status,
        /// The command's id, or how many bytes or processes; see the request.
        value: u64,
        /// How the typed input is shown.
        shown_by: ShownBy,
    },
    /// Another server has taken over; this connection ends.
    Displaced,
}

/// The holder, its shell and its present state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// The holder's protocol.
    pub protocol: u16,
    /// Its process.
    pub holder_pid: u32,
    /// The shell, 0 before it runs.
    pub shell_pid: u32,
    /// Cells.
    pub cols: u16,
    /// Cells.
    pub rows: u16,
    /// The command that runs, 0 for none.
    pub command: u32,
    /// The published tail.
    pub tail: Tail,
}

/// The published ends: a reader goes up to here and no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tail {
    /// The journal's end.
    pub journal: Offset,
    /// The events' end, a position in their file.
    pub events: u64,
}

/// The foreground and its terminal, as one end's rules understand the facts of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The kind of process that has the terminal, and the event it waits for.
    pub foreground: Activity,
    /// ICANON is on.
    pub canonical: bool,
    /// ECHO is on.
    pub echo: bool,
    /// ISIG is on.
    pub isig: bool,
    /// The foreground process group.
    pub group: u32,
    /// The process that decided, 0 when none did.
    pub pid: u32,
    /// Queries up to here were answered before.
    pub answered: Offset,
}

impl State {
    /// The state that these facts are, by this program's rules.
    #[must_use]
    pub fn of(facts: &Observation) -> Self {
        let reading = foreground::activity(facts);
        Self {
            foreground: reading.activity,
            canonical: reading.modes.canonical,
            echo: reading.modes.echo,
            isig: facts.modes.isig,
            group: facts.group,
            pid: reading.pid,
            answered: Offset::ZERO,
        }
    }

    /// The modes of the terminal, as far as they are told.
    #[must_use]
    pub fn modes(&self) -> Modes {
        let Self { canonical, echo, isig, .. } = *self;
        Modes { canonical, echo, isig, ..Modes::default() }
    }
}

/// The facts of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// As of [`State`].
    pub answered: Offset,
    /// The holder's rules make another state of it than of the facts before, or something has happened since. Else only
    /// more time has passed without output.
    pub is_new: bool,
    /// The facts; in the frame they are text, to which words and lines may be added.
    pub facts: Observation,
}

impl Observed {
    /// The state that these facts are, by this program's rules.
    #[must_use]
    pub fn state(&self) -> State {
        State { answered: self.answered, ..State::of(&self.facts) }
    }
}

/// The bytes with which a line editor may accept a line: newline, return, C-o, C-d, C-c.
pub const ENDS_LINE: [u8; 5] = [b'\n', b'\r', 0x0f, 0x04, 0x03];

/// How many lines these bytes end.
#[must_use]
pub fn line_ends(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.iter().filter(|byte| ENDS_LINE.contains(byte)).count()).unwrap_or(u32::MAX)
}

/// The result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done; the value is the request's.
    Ok = 0,
    /// A command runs already; the value is its id.
    Busy = 1,
    /// The shell is not at its prompt and did not get there in time.
    NotReady = 2,
    /// This key was here before; the value is what it got then.
    Duplicate = 3,
    /// A person has typed a line at the prompt that has not ended yet.
    Typed = 4,
    /// The line is too long for the terminal and cannot be split; the value is the limit.
    LineTooLong = 5,
    /// The session is ending or has ended.
    Ended = 6,
    /// The program does not read; the value is how many bytes were taken.
    Stalled = 7,
    /// The system refused; the value is the errno.
    Failed = 8,
    /// No such process in this session.
    NoProcess = 9,
    /// This key was here before, with another body.
    KeyReused = 10,
    /// It is a secret, and the terminal shows what is typed; nothing of it was.
    WouldEcho = 11,
}

mod kind {
    pub const KILL: u8 = 0x01;
    pub const HELLO: u8 = 0x02;
    pub const RUN: u8 = 0x10;
    pub const INPUT: u8 = 0x11;
    pub const RESIZE: u8 = 0x12;
    pub const SIGNAL: u8 = 0x13;
    pub const ANSWER: u8 = 0x14;
    pub const TERMINATE: u8 = 0x15;
    pub const REPORT: u8 = 0x16;
    pub const PING: u8 = 0x17;
    pub const LIMITED: u8 = 0x18;
    pub const TYPE: u8 = 0x19;
    pub const JUDGE: u8 = 0x1a;
    pub const FROM_HELLO: u8 = 0x82;
    pub const TAIL: u8 = 0x83;
    pub const OBSERVED: u8 = 0x84;
    pub const DONE: u8 = 0x85;
    pub const DISPLACED: u8 = 0x86;
}

impl ToHolder {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::frame();
        match self {
            Self::Kill => e.u8(kind::KILL),
            Self::Hello { protocol, attaches } => e.u8(kind::HELLO).u16(*protocol).bool(*attaches),
            Self::Run { seq, key, patience_ms, text } => e.u8(kind::RUN).u32(*seq).raw(key).u32(*patience_ms).raw(text),
            Self::Input { seq, key, is_secret, patience_ms, bytes } => {
                e.u8(kind::INPUT).u32(*seq).raw(key).bool(*is_secret).u32(*patience_ms).raw(bytes)
            }
            Self::Resize { seq, cols, rows } => e.u8(kind::RESIZE).u32(*seq).u16(*cols).u16(*rows),
            Self::Signal { seq, target, signo } => {
                let (what, pid) = match target {
                    Target::Foreground => (0, 0),
                    Target::Session => (1, 0),
                    Target::Process(pid) => (2, *pid),
                };
                e.u8(kind::SIGNAL).u32(*seq).u8(what).u32(pid).u32(signo.unsigned_abs())
            }
            Self::Answer { query, bytes } => e.u8(kind::ANSWER).u64(query.0).raw(bytes),
            Self::Terminate { seq, signo, grace_ms } => {
                e.u8(kind::TERMINATE).u32(*seq).u32(signo.unsigned_abs()).u32(*grace_ms)
            }
            Self::Report { seq } => e.u8(kind::REPORT).u32(*seq),
            Self::Limited { limit, command, count } => e.u8(kind::LIMITED).u8(*limit).u32(*command).u64(*count),
            Self::Ping { seq } => e.u8(kind::PING).u32(*seq),
            Self::Type { seq, key, patience_ms, is_inside, nonce, text, line } => e
                .u8(kind::TYPE)
                .u32(*seq)
                .raw(key)
                .u32(*patience_ms)
                .bool(*is_inside)
                .u64(*nonce)
                .bytes(text)
                .bytes(line),
            Self::Judge { command, status, boundary, is_hookless, end, time_us, why } => e
                .u8(kind::JUDGE)
                .u32(*command)
                .u8(*status)
                .u8(*boundary)
                .bool(*is_hookless)
                .u64(end.0)
                .u64(*time_us)
                .bytes(why),
        };
        e.take()
    }

    /// Reads kind and payload; `None` for a kind that is not known or a payload that is too short.
    pub fn decode(frame: &[u8]) -> Option<Self> {
        let mut d = Decoder::new(frame);
        Some(match d.u8()? {
            kind::KILL => Self::Kill,
            kind::HELLO => Self::Hello { protocol: d.u16()?, attaches: d.bool()? },
            kind::RUN => Self::Run { seq: d.u32()?, key: d.key()?, patience_ms: d.u32()?, text: d.rest().to_vec() },
            kind::INPUT => Self::Input {
                seq: d.u32()?,
                key: d.key()?,
                is_secret: d.bool()?,
                patience_ms: d.u32()?,
                bytes: d.rest().to_vec(),
            },
            kind::RESIZE => Self::Resize { seq: d.u32()?, cols: d.u16()?, rows: d.u16()? },
            kind::SIGNAL => {
                let seq = d.u32()?;
                let (what, pid) = (d.u8()?, d.u32()?);
                let target = match what {
                    0 => Target::Foreground,
                    1 => Target::Session,
                    2 => Target::Process(pid),
                    _ => return None,
                };
                Self::Signal { seq, target, signo: i32::try_from(d.u32()?).ok()? }
            }
            kind::ANSWER => Self::Answer { query: Offset(d.u64()?), bytes: d.rest().to_vec() },
            kind::TERMINATE => {
                Self::Terminate { seq: d.u32()?, signo: i32::try_from(d.u32()?).ok()?, grace_ms: d.u32()? }
            }
            kind::REPORT => Self::Report { seq: d.u32()? },
            kind::LIMITED => Self::Limited { limit: d.u8()?, command: d.u32()?, count: d.u64()? },
            kind::PING => Self::Ping { seq: d.u32()? },
            kind::TYPE => Self::Type {
                seq: d.u32()?,
                key: d.key()?,
                patience_ms: d.u32()?,
                is_inside: d.bool()?,
                nonce: d.u64()?,
                text: d.bytes()?.to_vec(),
                line: d.bytes()?.to_vec(),
            },
            kind::JUDGE => Self::Judge {
                command: d.u32()?,
                status: d.u8()?,
                boundary: d.u8()?,
                is_hookless: d.bool()?,
                end: Offset(d.u64()?),
                time_us: d.u64()?,
                why: d.bytes()?.to_vec(),
            },
            _ => return None,
        })
    }
}

impl FromHolder {
    /// The whole frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::frame();
        match self {
            Self::Hello(h) => e
                .u8(kind::FROM_HELLO)
                .u16(h.protocol)
                .u32(h.holder_pid)
                .u32(h.shell_pid)
                .u16(h.cols)
                .u16(h.rows)
                .u32(h.command)
                .u64(h.tail.journal.0)
                .u64(h.tail.events),
            Self::Tail(t) => e.u8(kind::TAIL).u64(t.journal.0).u64(t.events),
            Self::Observed(o) => {
                e.u8(kind::OBSERVED).u64(o.answered.0).bool(o.is_new).raw(o.facts.to_string().as_bytes())
            }
            Self::Done { seq, status, value, shown_by } => {
                e.u8(kind::DONE).u32(*seq).u8(*status as u8).u64(*value).u8(*shown_by as u8)
            }
            Self::Displaced => e.u8(kind::DISPLACED),
        };
        e.take()
    }

    /// Reads kind and payload; `None` for a kind that is not known or a payload that is too short.
    pub fn decode(frame: &[u8]) -> Option<Self> {
        let mut d = Decoder::new(frame);
        Some(match d.u8()? {
            kind::FROM_HELLO => Self::Hello(Hello {
                protocol: d.u16()?,
                holder_pid: d.u32()?,
                shell_pid: d.u32()?,
                cols: d.u16()?,
                rows: d.u16()?,
                command: d.u32()?,
                tail: Tail { journal: Offset(d.u64()?), events: d.u64()? },
            }),
            kind::TAIL => Self::Tail(Tail { journal: Offset(d.u64()?), events: d.u64()? }),
            kind::OBSERVED => Self::Observed(Observed {
                answered: Offset(d.u64()?),
                is_new: d.bool()?,
                facts: std::str::from_utf8(d.rest()).ok()?.parse().ok()?,
            }),
            kind::DONE => Self::Done {
                seq: d.u32()?,
                status: Status::of(d.u8()?),
                value: d.u64()?,
                shown_by: ShownBy::of(d.u8()?),
            },
            kind::DISPLACED => Self::Displaced,
            _ => return None,
        })
    }
}

impl Status {
    /// A number of a later protocol is a refusal.
    fn of(number: u8) -> Self {
        [
            Self::Ok,
            Self::Busy,
            Self::NotReady,
            Self::Duplicate,
            Self::Typed,
            Self::LineTooLong,
            Self::Ended,
            Self::Stalled,
            Self::Failed,
            Self::NoProcess,
            Self::KeyReused,
            Self::WouldEcho,
        ]
        .get(usize::from(number))
        .copied()
        .unwrap_or(Self::Failed)
    }
}

/// Cuts a byte stream into frames.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    taken: usize,
}

/// The other end sent a frame beyond [`FRAME_BYTES_MAX`]; the connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameTooLarge;

impl Frames {
    /// Adds what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next whole frame (kind and payload).
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameTooLarge> {
        let waiting = self.bytes.get(self.taken..).unwrap_or_default();
        let Some(length) = Decoder::new(waiting).u32() else {
            self.tidy();
            return Ok(None);
        };
        let length = length as usize;
        if length > FRAME_BYTES_MAX {
            return Err(FrameTooLarge);
        }
        if waiting.len() < 4 + length {
            self.tidy();
            return Ok(None);
        }
        let start = self.taken + 4;
        self.taken = start + length;
        Ok(self.bytes.get(start..start + length))
    }

    /// Gives memory back: a holder lives for days, and one large command must not stay in it.
    fn tidy(&mut self) {
        /// The most that the buffer of a quiet connection keeps.
        const KEPT_BYTES: usize = 4096;
        self.bytes.drain(..self.taken.min(self.bytes.len()));
        self.taken = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }
}

/// Writes fields one after the other; in a frame the length comes first and is filled in at the end.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
    is_frame: bool,
}

impl Encoder {
    fn frame() -> Self {
        Self { bytes: vec![0; 4], is_frame: true }
    }

    pub(crate) fn raw(&mut self, v: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(v);
        self
    }

    pub(crate) fn u8(&mut self, v: u8) -> &mut Self {
        self.raw(&[v])
    }

    pub(crate) fn bool(&mut self, v: bool) -> &mut Self {
        self.u8(u8::from(v))
    }

    pub(crate) fn u16(&mut self, v: u16) -> &mut Self {
        self.raw(&v.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, v: u32) -> &mut Self {
        self.raw(&v.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, v: u64) -> &mut Self {
        self.raw(&v.to_le_bytes())
    }

    /// Length and bytes.
    pub(crate) fn bytes(&mut self, v: &[u8]) -> &mut Self {
        self.u32(u32::try_from(v.len()).unwrap_or(u32::MAX)).raw(v)
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        if self.is_frame {
            let length = u32::try_from(self.bytes.len() - 4).unwrap_or(u32::MAX).to_le_bytes();
            for (slot, byte) in self.bytes.iter_mut().zip(length) {
                *slot = byte;
            }
        }
        std::mem::take(&mut self.bytes)
    }
}

/// Reads fields one after the other; every method is `None` once the bytes have run out.
#[derive(Debug)]
pub(crate) struct Decoder<'a>(&'a [u8]);

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    pub(crate) fn bool(&mut self) -> Option<bool> {
        self.u8().map(|b| b != 0)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn key(&mut self) -> Option<Key> {
        self.array()
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let n = self.u32()? as usize;
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]
mod tests;
