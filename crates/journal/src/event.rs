//! What can happen in a session, and how each record's payload is laid out: both directions of the format in one file.
//!
//! The format only ever grows. A kind's fields keep their places for ever, new ones go behind them, a decoder ignores
//! what it does not know, and a kind that it does not know is handed on as it is. Integers are little-endian.

use crate::Offset;

/// What a record is about. A number and not an enum, because a newer holder may write kinds that we do not know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind(pub u8);

impl Kind {
    /// The shell was started.
    pub const STARTED: Self = Self(1);
    /// A command was accepted: from here on it is the session's to run, once.
    pub const ACCEPTED: Self = Self(2);
    /// The shell reported over the attestation socket.
    pub const ATTESTED: Self = Self(3);
    /// The terminal has another size.
    pub const RESIZED: Self = Self(4);
    /// Somebody typed.
    pub const INPUT: Self = Self(5);
    /// The terminal's queries up to an offset were answered.
    pub const ANSWERED: Self = Self(6);
    /// The shell ended.
    pub const EXITED: Self = Self(7);
    /// Something is wrong with the session's own storage or pipes, or is right again.
    pub const TROUBLE: Self = Self(8);
    /// The session is being ended.
    pub const ENDING: Self = Self(9);
    /// Old output was freed.
    pub const RETAINED: Self = Self(10);
    /// A signal was sent.
    pub const SIGNALLED: Self = Self(11);
    /// The session ran into one of its limits.
    pub const LIMITED: Self = Self(12);
    /// A command was accepted that runs by being typed.
    pub const TYPED: Self = Self(13);
    /// A command ended that the shell did not report.
    pub const JUDGED: Self = Self(14);

    /// Whether this may be among the last words of a session, for which room is kept when the disk is full.
    #[must_use]
    pub fn is_last_word(self) -> bool {
        matches!(self, Self::EXITED | Self::TROUBLE | Self::ENDING)
    }
}

/// What the trouble is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TroubleKind(pub u8);

impl TroubleKind {
    /// The disk is full; the program is blocked until there is room.
    pub const DISK_FULL: Self = Self(1);
    /// The last trouble is over.
    pub const RECOVERED: Self = Self(2);
    /// The kernel would not splice; bytes are copied instead.
    pub const SPLICE_REFUSED: Self = Self(3);
    /// The file system would not punch; old output is kept.
    pub const PUNCH_REFUSED: Self = Self(4);
}

/// Why a session is being ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndReason(pub u8);

impl EndReason {
    /// Somebody asked for it, and the programs get time to leave.
    pub const ASKED: Self = Self(1);
    /// Somebody asked for it, at once.
    pub const FORCED: Self = Self(2);
    /// The holder itself cannot go on.
    pub const HOLDER: Self = Self(3);
}

/// A record's payload, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the variants say it; the fields are their names")]
pub enum Record<'a> {
    /// The shell was started in a terminal of this size.
    Started { holder_pid: u32, shell_pid: u32, cols: u16, rows: u16 },
    /// A command was accepted under its caller's idempotency key.
    Accepted { id: u32, nonce: u64, key: [u8; 16], text: &'a [u8] },
    /// The shell's report, verbatim.
    Attested { report: &'a [u8] },
    /// The terminal has this size now.
    Resized { cols: u16, rows: u16 },
    /// Somebody typed `len` bytes; what they were is left out when they were secret.
    Input { key: [u8; 16], len: u32, is_secret: bool, bytes: &'a [u8] },
    /// Queries up to this offset were answered.
    Answered { query: Offset },
    /// The shell's status as `wait` gave it, where its output ended, and how many reports were dropped as not its own.
    Exited { wait_status: i32, end: Offset, dropped_records: u64 },
    /// What is wrong, the kernel's number for it, and words.
    Trouble { what: TroubleKind, errno: i32, text: &'a [u8] },
    /// Why the session is being ended, and words.
    Ending { reason: EndReason, text: &'a [u8] },
    /// The journal begins here now.
    Retained { first: Offset },
    /// Signal `signo` was sent to `target`, with what result.
    Signalled { target: i32, signo: i32, errno: i32 },
    /// Limit number `limit` was hit so many times in all while this command ran, 0 for none.
    Limited { limit: u8, command: u32, count: u64 },
    /// A command's line is typed, at the session's program or at a shell inside it; the marks in it carry the nonce.
    Typed { id: u32, is_inside: bool, nonce: u64, key: [u8; 16], text: &'a [u8] },
    /// How a command ended of which the shell said nothing, how sure that is, whether the shell has lost its hooks, and words.
    Judged { command: u32, status: u8, boundary: u8, is_hookless: bool, end: Offset, time_us: u64, why: &'a [u8] },
}

impl<'a> Record<'a> {
    /// The record's kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Started { .. } => Kind::STARTED,
            Self::Accepted { .. } => Kind::ACCEPTED,
            Self::Attested { .. } => Kind::ATTESTED,
            Self::Resized { .. } => Kind::RESIZED,
            Self::Input { .. } => Kind::INPUT,
            Self::Answered { .. } => Kind::ANSWERED,
            Self::Exited { .. } => Kind::EXITED,
            Self::Trouble { .. } => Kind::TROUBLE,
            Self::Ending { .. } => Kind::ENDING,
            Self::Retained { .. } => Kind::RETAINED,
            Self::Signalled { .. } => Kind::SIGNALLED,
            Self::Limited { .. } => Kind::LIMITED,
            Self::Typed { .. } => Kind::TYPED,
            Self::Judged { .. } => Kind::JUDGED,
        }
    }

    /// The payload in two parts, the numbers and the bytes, so that a long text is not copied.
    pub(crate) fn encode(&self) -> (Fixed, &'a [u8]) {
        let fixed = Fixed::default();
        match *self {
            Self::Started { holder_pid, shell_pid, cols, rows } => (
                fixed
                    .with(&holder_pid.to_le_bytes())
                    .with(&shell_pid.to_le_bytes())
                    .with(&cols.to_le_bytes())
                    .with(&rows.to_le_bytes()),
                &[],
            ),
            Self::Accepted { id, nonce, key, text } => {
                (fixed.with(&id.to_le_bytes()).with(&nonce.to_le_bytes()).with(&key), text)
            }
            Self::Attested { report } => (fixed, report),
            Self::Resized { cols, rows } => (fixed.with(&cols.to_le_bytes()).with(&rows.to_le_bytes()), &[]),
            Self::Input { key, len, is_secret, bytes } => (
                fixed.with(&key).with(&len.to_le_bytes()).with(&[u8::from(is_secret)]),
                // The last wall before the disk: a secret is left out here even where a caller forgot to.
                if is_secret { &[] } else { bytes },
            ),
            Self::Answered { query } => (fixed.with(&query.0.to_le_bytes()), &[]),
            Self::Exited { wait_status, end, dropped_records } => (
                fixed.with(&wait_status.to_le_bytes()).with(&end.0.to_le_bytes()).with(&dropped_records.to_le_bytes()),
                &[],
            ),
            Self::Trouble { what, errno, text } => (fixed.with(&[what.0]).with(&errno.to_le_bytes()), text),
            Self::Ending { reason, text } => (fixed.with(&[reason.0]), text),
            Self::Retained { first } => (fixed.with(&first.0.to_le_bytes()), &[]),
            Self::Signalled { target, signo, errno } => {
                (fixed.with(&target.to_le_bytes()).with(&signo.to_le_bytes()).with(&errno.to_le_bytes()), &[])
            }
            Self::Limited { limit, command, count } => {
                (fixed.with(&[limit]).with(&command.to_le_bytes()).with(&count.to_le_bytes()), &[])
            }
            Self::Typed { id, is_inside, nonce, key, text } => {
                (fixed.with(&id.to_le_bytes()).with(&[u8::from(is_inside)]).with(&nonce.to_le_bytes()).with(&key), text)
            }
            Self::Judged { command, status, boundary, is_hookless, end, time_us, why } => (
                fixed
                    .with(&command.to_le_bytes())
                    .with(&[status, boundary, u8::from(is_hookless)])
                    .with(&end.0.to_le_bytes())
                    .with(&time_us.to_le_bytes()),
                why,
            ),
        }
    }

    /// Understands a payload; none when the kind is unknown or the payload too short for it.
    #[must_use]
    pub fn decode(kind: Kind, payload: &'a [u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        Some(match kind {
            Kind::STARTED => Self::Started {
                holder_pid: u32::from_le_bytes(fields.take()?),
                shell_pid: u32::from_le_bytes(fields.take()?),
                cols: u16::from_le_bytes(fields.take()?),
                rows: u16::from_le_bytes(fields.take()?),
            },
            Kind::ACCEPTED => Self::Accepted {
                id: u32::from_le_bytes(fields.take()?),
                nonce: u64::from_le_bytes(fields.take()?),
                key: fields.take()?,
                text: fields.0,
            },
            Kind::ATTESTED => Self::Attested { report: fields.0 },
            Kind::RESIZED => {
                Self::Resized { cols: u16::from_le_bytes(fields.take()?), rows: u16::from_le_bytes(fields.take()?) }
            }
            Kind::INPUT => Self::Input {
                key: fields.take()?,
                len: u32::from_le_bytes(fields.take()?),
                is_secret: fields.take()? != [0],
                bytes: fields.0,
            },
            Kind::ANSWERED => Self::Answered { query: Offset(u64::from_le_bytes(fields.take()?)) },
            Kind::EXITED => Self::Exited {
                wait_status: i32::from_le_bytes(fields.take()?),
                end: Offset(u64::from_le_bytes(fields.take()?)),
                dropped_records: u64::from_le_bytes(fields.take()?),
            },
            Kind::TROUBLE => Self::Trouble {
                what: TroubleKind(u8::from_le_bytes(fields.take()?)),
                errno: i32::from_le_bytes(fields.take()?),
                text: fields.0,
            },
            Kind::ENDING => Self::Ending { reason: EndReason(u8::from_le_bytes(fields.take()?)), text: fields.0 },
            Kind::RETAINED => Self::Retained { first: Offset(u64::from_le_bytes(fields.take()?)) },
            Kind::SIGNALLED => Self::Signalled {
                target: i32::from_le_bytes(fields.take()?),
                signo: i32::from_le_bytes(fields.take()?),
                errno: i32::from_le_bytes(fields.take()?),
            },
            Kind::LIMITED => Self::Limited {
                limit: u8::from_le_bytes(fields.take()?),
                command: u32::from_le_bytes(fields.take()?),
                count: u64::from_le_bytes(fields.take()?),
            },
            Kind::TYPED => Self::Typed {
                id: u32::from_le_bytes(fields.take()?),
                is_inside: fields.take()? != [0],
                nonce: u64::from_le_bytes(fields.take()?),
                key: fields.take()?,
                text: fields.0,
            },
            Kind::JUDGED => Self::Judged {
                command: u32::from_le_bytes(fields.take()?),
                status: u8::from_le_bytes(fields.take()?),
                boundary: u8::from_le_bytes(fields.take()?),
                is_hookless: fields.take()? != [0],
                end: Offset(u64::from_le_bytes(fields.take()?)),
                time_us: u64::from_le_bytes(fields.take()?),
                why: fields.0,
            },
            _ => return None,
        })
    }
}

/// One record as it lies in the events file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// What it is about.
    pub kind: Kind,
    /// When it was written, in microseconds of Unix time.
    pub time_us: u64,
    /// Where the journal ended then.
    pub offset: Offset,
    /// What it says; see [`Event::record`].
    pub payload: Vec<u8>,
    /// Where the record begins in the events file.
    pub at: u64,
    /// Where the record ends in the events file, and the next one begins.
    pub end: u64,
}

impl Event {
    /// The payload, understood; none when it is of a kind that we do not know.
    #[must_use]
    pub fn record(&self) -> Option<Record<'_>> {
        Record::decode(self.kind, &self.payload)
    }
}

/// The numbers of a payload, on the stack: the holder allocates nothing for a record.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Fixed {
    bytes: [u8; 32],
    len: usize,
}

impl Fixed {
    fn with(mut self, field: &[u8]) -> Self {
        for (slot, byte) in self.bytes.iter_mut().skip(self.len).zip(field) {
            *slot = *byte;
        }
        self.len += field.len();
        debug_assert!(self.len <= self.bytes.len());
        self
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// What is left of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}
