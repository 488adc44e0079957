//! Event records: their kinds, and the layout of their payloads; encoder and decoder of the format are in one file.
//!
//! The format only grows. Fields keep their places for ever, new ones are added behind them, a decoder ignores unknown
//! fields, and records of unknown kinds are passed on unchanged. Integers are little-endian.

use crate::Offset;

/// The kind of a record: a number and not an enum, because a newer holder may write kinds that this version does not
/// know.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Kind(pub u8);

impl Kind {
    /// The shell was started.
    pub const STARTED: Self = Self(1);
    /// A command was accepted: from here on the session runs it, exactly once.
    pub const ACCEPTED: Self = Self(2);
    /// The shell sent a report over the attestation socket.
    pub const ATTESTED: Self = Self(3);
    /// The terminal was resized.
    pub const RESIZED: Self = Self(4);
    /// Input was typed.
    pub const INPUT: Self = Self(5);
    /// The terminal's queries up to an offset were answered.
    pub const ANSWERED: Self = Self(6);
    /// The shell ended.
    pub const EXITED: Self = Self(7);
    /// A problem with the session's own storage or pipes began, or is over.
    pub const TROUBLE: Self = Self(8);
    /// Termination of the session began.
    pub const ENDING: Self = Self(9);
    /// Old output was freed.
    pub const RETAINED: Self = Self(10);
    /// A signal was sent.
    pub const SIGNALLED: Self = Self(11);
    /// The session hit one of its limits.
    pub const LIMITED: Self = Self(12);
    /// A command was accepted that is typed as a line.
    pub const TYPED: Self = Self(13);
    /// A server judged that a command ended whose end the shell did not report.
    pub const JUDGED: Self = Self(14);
    /// The wall clock was set.
    pub const CLOCK_SET: Self = Self(15);

    /// Whether this kind may be among the last records of a session, for which room is reserved on a full disk.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::EXITED | Self::TROUBLE | Self::ENDING)
    }
}

/// The kinds of trouble.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TroubleKind(pub u8);

impl TroubleKind {
    /// The disk is full; the program is blocked until there is room.
    pub const DISK_FULL: Self = Self(1);
    /// The newest trouble is over.
    pub const RECOVERED: Self = Self(2);
    /// The kernel refused splice(2); bytes are copied instead.
    pub const SPLICE_REFUSED: Self = Self(3);
    /// The file system refused to punch a hole; old output is kept.
    pub const PUNCH_REFUSED: Self = Self(4);
    /// Another process has cut the journal; everything before the record's offset was given up.
    pub const JOURNAL_CUT: Self = Self(5);
}

/// Why a session is terminated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EndReason(pub u8);

impl EndReason {
    /// A client requested it, with a grace period for the programs.
    pub const ASKED: Self = Self(1);
    /// A client requested it, at once.
    pub const FORCED: Self = Self(2);
    /// The holder itself cannot continue.
    pub const HOLDER: Self = Self(3);
}

/// A decoded record.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the variants say it; the fields are their names")]
pub enum Record<'a> {
    /// The shell was started in a terminal of this size.
    Started { holder_pid: u32, shell_pid: u32, cols: u16, rows: u16 },
    /// A command was accepted with its caller's idempotency key.
    Accepted { id: u32, nonce: u64, key: [u8; 16], text: &'a [u8] },
    /// The shell's report, unchanged.
    Attested { report: &'a [u8] },
    /// The terminal's new size.
    Resized { cols: u16, rows: u16 },
    /// Input of `len` bytes was typed, with so many line ends in them; the bytes of a secret are left out.
    Input { key: [u8; 16], len: u32, ends: u32, is_secret: bool, bytes: &'a [u8] },
    /// Queries up to this offset were answered.
    Answered { query: Offset },
    /// The shell's wait(2) status, the end of its output, how many reports were dropped because they were not its own, how
    /// many processes it left, which are ended, and the names of some of them.
    Exited { wait_status: i32, end: Offset, dropped_records: u64, left: u32, names: &'a [u8] },
    /// The kind of trouble, its errno, and a text.
    Trouble { what: TroubleKind, errno: i32, text: &'a [u8] },
    /// The reason of the termination, and a text.
    Ending { reason: EndReason, text: &'a [u8] },
    /// The journal begins here from now on.
    Retained { first: Offset },
    /// Signal `signo` was sent to `target`, with this result.
    Signalled { target: i32, signo: i32, errno: i32 },
    /// Limit number `limit` was hit this many times in total while this command ran, 0 for none.
    Limited { limit: u8, command: u32, count: u64 },
    /// A command is typed as a line, into the session's program or a nested shell; its markers carry the nonce.
    Typed { id: u32, is_inside: bool, nonce: u64, key: [u8; 16], text: &'a [u8] },
    /// The end of a command that the shell did not report, how certain it is, whether the shell has lost its hooks, and
    /// a text.
    Judged { command: u32, status: u8, boundary: u8, is_hookless: bool, end: Offset, time_us: u64, why: &'a [u8] },
    /// The wall clock was set by this much since the record before.
    ClockSet { by_us: i64 },
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
            Self::ClockSet { .. } => Kind::CLOCK_SET,
        }
    }

    /// The payload in two parts, numbers and bytes, so that a long text is not copied.
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
            Self::Input { key, len, ends, is_secret, bytes } => (
                fixed.with(&key).with(&len.to_le_bytes()).with(&ends.to_le_bytes()).with(&[u8::from(is_secret)]),
                // The last safeguard before the disk: a secret is left out even if a caller forgot to.
                if is_secret { &[] } else { bytes },
            ),
            Self::Answered { query } => (fixed.with(&query.0.to_le_bytes()), &[]),
            Self::Exited { wait_status, end, dropped_records, left, names } => (
                fixed
                    .with(&wait_status.to_le_bytes())
                    .with(&end.0.to_le_bytes())
                    .with(&dropped_records.to_le_bytes())
                    .with(&left.to_le_bytes()),
                names,
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
            Self::ClockSet { by_us } => (fixed.with(&by_us.to_le_bytes()), &[]),
        }
    }

    /// Decodes a payload; `None` if the kind is unknown or the payload too short.
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
                ends: u32::from_le_bytes(fields.take()?),
                is_secret: fields.take()? != [0],
                bytes: fields.0,
            },
            Kind::ANSWERED => Self::Answered { query: Offset(u64::from_le_bytes(fields.take()?)) },
            Kind::EXITED => Self::Exited {
                wait_status: i32::from_le_bytes(fields.take()?),
                end: Offset(u64::from_le_bytes(fields.take()?)),
                dropped_records: u64::from_le_bytes(fields.take()?),
                left: u32::from_le_bytes(fields.take()?),
                names: fields.0,
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
            Kind::CLOCK_SET => Self::ClockSet { by_us: i64::from_le_bytes(fields.take()?) },
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

/// A record of the events file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its kind.
    pub kind: Kind,
    /// When it was written, in microseconds of Unix time.
    pub time_us: u64,
    /// The journal's end at that time.
    pub offset: Offset,
    /// The payload; see [`Event::record`].
    pub payload: Vec<u8>,
    /// The offset of the record in the events file.
    pub at: u64,
    /// The offset of the next record in the events file.
    pub end: u64,
}

impl Event {
    /// The decoded payload; `None` for an unknown kind.
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

/// The remaining bytes of a payload.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }
}
