//! Attested boundaries: where a command's output begins and ends.
//!
//! A boundary needs two witnesses. The *record* came over the attestation socket, so the shell itself sent it; the
//! *marker* is in the output, so it gives the position. They share a nonce that is unknown before the record is there.
//! Only this module joins them, and it keeps three rules:
//!
//! * a marker without a waiting record is plain output and stays in every view;
//! * a nonce is used once, so a marker that is printed again later means nothing;
//! * each `D` record ends exactly one command, even when its marker never comes.
//!
//! The third rule needs a solution for lost markers (a program closed the terminal, or overwrote them). Markers come in
//! the order of their records, because one shell writes both. So when a later marker comes, the records before it have
//! lost theirs, and their ends are placed where that marker begins. One record may be overtaken: a start is recorded
//! when the command is handed over, and the shell may first run lines that were typed ahead; such a start waits until a
//! command as new as its own ends. [`Boundaries::expire`] does the same at an offset of the caller's choice, and when
//! more than [`WAITING_MAX`] records wait the oldest end is placed at the last known boundary.

use std::collections::VecDeque;
use std::ops::Range;

use crate::scan::{MarkerKind, Nonce};

/// How many records may wait for their markers. A shell writes each marker right behind its record, so more than one or
/// two waiting ones mean lost markers; the bound keeps a confused shell from growing the server's memory.
pub const WAITING_MAX: usize = 16;

/// A record from the attestation socket, whose sender the holder has checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// `C`: a command started.
    Started {
        /// The nonce of its marker.
        nonce: Nonce,
        /// The command.
        id: u32,
    },
    /// `D`: a prompt came back.
    Ended {
        /// The nonce of its marker.
        nonce: Nonce,
        /// The details of the end.
        end: End,
    },
    /// `P`: the shell's PATH changed.
    Path(Vec<u8>),
    /// `M`: a prompt was painted, without further information.
    Prompt {
        /// The nonce of its marker.
        nonce: Nonce,
    },
}

/// The details of an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The command; 0 for the very first prompt or a typed line.
    pub id: u32,
    /// Its exit code.
    pub exit: i32,
    /// The exit codes of its pipeline's parts.
    pub pipestatus: Vec<i32>,
    /// Unusual circumstances.
    pub flags: Flags,
    /// The shell's directory now, byte for byte.
    pub cwd: Vec<u8>,
}

/// Unusual circumstances of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`: the command was incomplete and was refused before it ran.
    pub incomplete: bool,
    /// `l`: the hooks had been lost and were installed again.
    pub hooks_lost: bool,
    /// `n`: the command's text did not run to its end (a syntax error, or an interrupt).
    pub not_run_to_end: bool,
    /// `c`: the command was interrupted before it began; nothing of it ran.
    pub not_begun: bool,
    /// `b`: the end was reported by a prompt mark in the output, and not by a report of the shell.
    pub in_band: bool,
    /// `e`: the shell ends with the next command that fails (`set -e`).
    pub errexit: bool,
}

/// A known position in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// A command's output begins at `at`.
    Started {
        /// The command.
        id: u32,
        /// The offset of the first output byte, behind the marker.
        at: u64,
        /// The attested marker, which views leave out.
        marker: Range<u64>,
    },
    /// A command's output has ended.
    Ended {
        /// The details of the end.
        end: End,
        /// The offset behind the last output byte, where the marker begins.
        output_end: u64,
        /// The offset behind the marker.
        at: u64,
        /// The attested marker, which views leave out; `None` if it never came.
        marker: Option<Range<u64>>,
    },
    /// A prompt without an end.
    Prompt {
        /// Its marker, which views leave out.
        marker: Range<u64>,
    },
}

impl Boundary {
    /// The range that views leave out.
    pub fn marker(&self) -> Option<Range<u64>> {
        match self {
            Self::Started { marker, .. } | Self::Prompt { marker } => Some(marker.clone()),
            Self::Ended { marker, .. } => marker.clone(),
        }
    }
}

/// Reads one record, its trailing NUL removed:
///
/// ```text
/// C;<secret>;<nonce>;<id>
/// D;<secret>;<nonce>;<id>;<exit>;<pipestatus, blanks between>;<flags>;<cwd, raw, to the end>
/// P;<secret>;<PATH, raw, to the end>
/// M;<secret>;<nonce>
/// ```
///
/// The secret was checked by the holder and is skipped. Unknown flags are skipped, too: a newer shell integration may
/// send more.
pub fn parse_record(bytes: &[u8]) -> Option<Record> {
    match bytes.split_first()? {
        (b'C', _) => {
            let [_, _, nonce, id] = fields(bytes)?;
            Some(Record::Started { nonce: Nonce::parse(nonce)?, id: number(id)? })
        }
        (b'D', _) => {
            let [_, _, nonce, id, exit, pipestatus, flags, cwd] = fields(bytes)?;
            let pipestatus = pipestatus
                .split(|byte| *byte == b' ')
                .filter(|part| !part.is_empty())
                .map(number)
                .collect::<Option<Vec<i32>>>()?;
            Some(Record::Ended {
                nonce: Nonce::parse(nonce)?,
                end: End {
                    id: number(id)?,
                    exit: number(exit)?,
                    pipestatus,
                    flags: Flags {
                        incomplete: flags.contains(&b'i'),
                        hooks_lost: flags.contains(&b'l'),
                        not_run_to_end: flags.contains(&b'n'),
                        not_begun: flags.contains(&b'c'),
                        in_band: flags.contains(&b'b'),
                        errexit: flags.contains(&b'e'),
                    },
                    cwd: cwd.to_vec(),
                },
            })
        }
        (b'P', _) => {
            let [_, _, path] = fields(bytes)?;
            Some(Record::Path(path.to_vec()))
        }
        (b'M', _) => {
            let [_, _, nonce] = fields(bytes)?;
            Some(Record::Prompt { nonce: Nonce::parse(nonce)? })
        }
        _ => None,
    }
}

/// Exactly N fields; the last one takes the rest, including semicolons. The first must be a single letter.
fn fields<const N: usize>(bytes: &[u8]) -> Option<[&[u8]; N]> {
    let fields: Vec<&[u8]> = bytes.splitn(N, |byte| *byte == b';').collect();
    let fields: [&[u8]; N] = fields.try_into().ok()?;
    (fields[0].len() == 1).then_some(fields)
}

fn number<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[derive(Clone, Debug)]
struct PendingRecord {
    nonce: Nonce,
    what: PendingKind,
    /// Output that may have had its marker was removed before it was read; this is where the output continues.
    gap_to: Option<u64>,
}

#[derive(Clone, Debug)]
enum PendingKind {
    Start(u32),
    End(End),
    Prompt,
}

/// Joins records with their markers.
#[derive(Clone, Debug, Default)]
pub struct Boundaries {
    waiting: VecDeque<PendingRecord>,
    /// The offset behind the last attested marker.
    known_to: u64,
}

impl Boundaries {
    /// No waiting records, no known boundary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record. Returns a boundary only if too many records wait: the oldest one then expires, and its end is
    /// placed at the last known boundary. An expired start yields nothing; a PATH is not a boundary.
    pub fn record(&mut self, record: Record) -> Option<Boundary> {
        let waiting = match record {
            Record::Started { nonce, id } => (nonce, PendingKind::Start(id)),
            Record::Ended { nonce, end } => (nonce, PendingKind::End(end)),
            Record::Prompt { nonce } => (nonce, PendingKind::Prompt),
            Record::Path(_) => return None,
        };
        let (nonce, what) = waiting;
        self.waiting.push_back(PendingRecord { nonce, what, gap_to: None });
        if self.waiting.len() <= WAITING_MAX {
            return None;
        }
        // Not the start: lines typed ahead may end many times before the command begins.
        let first = |is: fn(&PendingKind) -> bool| self.waiting.iter().position(|waiting| is(&waiting.what));
        let oldest = first(|what| matches!(what, PendingKind::Prompt))
            .or_else(|| first(|what| matches!(what, PendingKind::End(_))));
        let oldest = oldest.unwrap_or(0);
        self.waiting.remove(oldest)?.given_up(self.known_to)
    }

    /// Adds a marker that the scanner found. Returns nothing for a forged one. An attested one yields its own boundary
    /// last, behind the ends of commands whose markers were lost before it.
    pub fn marker(&mut self, kind: MarkerKind, nonce: &Nonce, from: u64, to: u64) -> Vec<Boundary> {
        let is_its_record = |waiting: &PendingRecord| waiting.kind() == kind && waiting.nonce == *nonce;
        let Some(index) = self.waiting.iter().position(is_its_record) else {
            return Vec::new();
        };
        // A prompt's record may be written behind those of later events, so it settles nothing.
        if matches!(self.waiting.get(index), Some(PendingRecord { what: PendingKind::Prompt, .. })) {
            self.waiting.remove(index);
            return vec![Boundary::Prompt { marker: from..to }];
        }
        let newest = self.waiting.range(..=index).map(PendingRecord::settles).max().unwrap_or(0);
        let mut boundaries = Vec::new();
        let mut overtaken = None;
        for lost in self.waiting.drain(..index) {
            match lost.what {
                PendingKind::Start(id) if id > newest => overtaken = Some(lost),
                _ => boundaries.extend(lost.given_up(from)),
            }
        }
        let found = self.waiting.pop_front().map(|found| match found.what {
            PendingKind::Start(id) => Boundary::Started { id, at: to, marker: from..to },
            PendingKind::Prompt => Boundary::Prompt { marker: from..to },
            PendingKind::End(end) => Boundary::Ended { end, output_end: from, at: to, marker: Some(from..to) },
        });
        boundaries.extend(found);
        if let Some(start) = overtaken {
            self.waiting.push_front(start);
        }
        self.known_to = to;
        boundaries
    }

    /// Ends the command `id` at `at` because its marker has not come. If it comes later, it is left out of views like a prompt's. `None`
    /// if no end of this command waits.
    pub fn expire(&mut self, id: u32, at: u64) -> Option<Boundary> {
        let is_its_end = |waiting: &&mut PendingRecord| matches!(&waiting.what, PendingKind::End(end) if end.id == id);
        let expired = self.waiting.iter_mut().find(is_its_end)?;
        let ended = expired.clone();
        expired.what = PendingKind::Prompt;
        ended.given_up(at)
    }

    /// Output up to `offset` was removed before it was read. The markers of waiting records may have been in it, or are still to come:
    /// an end whose marker does not come is placed there.
    pub fn gap(&mut self, offset: u64) {
        self.waiting.iter_mut().for_each(|waiting| waiting.gap_to = waiting.gap_to.or(Some(offset)));
    }

    /// The commands whose end is attested but has no position yet.
    pub fn waiting_ends(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.iter().filter_map(|waiting| match &waiting.what {
            PendingKind::End(end) => Some(end.id),
            PendingKind::Start(_) | PendingKind::Prompt => None,
        })
    }
}

impl PendingRecord {
    fn kind(&self) -> MarkerKind {
        match self.what {
            PendingKind::Start(_) => MarkerKind::Start,
            PendingKind::End(_) | PendingKind::Prompt => MarkerKind::End,
        }
    }

    /// The newest command whose start cannot come any more after this marker; 0 for a typed line.
    fn settles(&self) -> u32 {
        match &self.what {
            PendingKind::Start(_) | PendingKind::Prompt => 0,
            PendingKind::End(end) => end.id,
        }
    }

    /// An expired end still is an end; an expired start says nothing about the output.
    fn given_up(self, at: u64) -> Option<Boundary> {
        let at = self.gap_to.unwrap_or(at);
        match self.what {
            PendingKind::Start(_) | PendingKind::Prompt => None,
            PendingKind::End(end) => Some(Boundary::Ended { end, output_end: at, at, marker: None }),
        }
    }
}

#[cfg(test)]
mod tests;
