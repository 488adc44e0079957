//! Attested boundaries: where a command's output begins and ends.
//!
//! A boundary needs two witnesses. The *record* came over the attestation socket, so the shell itself sent it; the
//! *marker* stands in the output, so it says where. They share a nonce that nobody can know before the record is there.
//! Only this module joins them, and it keeps three rules:
//!
//! * a marker without a waiting record is plain output and stays in every view;
//! * a nonce is used once, so a marker that is printed again later means nothing;
//! * each `D` record ends exactly one command, even when its marker never comes.
//!
//! The third rule needs a way out for lost markers (a program closed the terminal, or wrote over it). Markers come in the
//! order of their records, because one shell writes both. So when a later marker comes, the records before it have lost
//! theirs, and their ends are put where that marker begins. One record may be overtaken: a start is recorded when the
//! command is handed over, and the shell may first run what a person had typed ahead; such a start waits until a command
//! as new as its own ends. [`Boundaries::expire`] does the same at an offset of the
//! caller's choice, and when more than [`WAITING_MAX`] records wait the oldest end is put at the last known boundary.

use std::collections::VecDeque;
use std::ops::Range;

use crate::scan::{MarkerKind, Nonce};

/// How many records may wait for their markers. A shell writes each marker right behind its record, so more than one or
/// two waiting means that markers are lost; the bound is there so that a confused shell cannot grow the server.
pub const WAITING_MAX: usize = 16;

/// What the shell said over the attestation socket. The holder has checked who said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// `C`: a command started.
    Started {
        /// Joins the record with its marker.
        nonce: Nonce,
        /// The command.
        id: u32,
    },
    /// `D`: a prompt came back.
    Ended {
        /// Joins the record with its marker.
        nonce: Nonce,
        /// What is known of the end.
        end: End,
    },
    /// `P`: the shell's PATH changed.
    Path(Vec<u8>),
    /// `M`: a prompt was drawn of which nothing else is to be told.
    Prompt {
        /// Joins the record with its marker.
        nonce: Nonce,
    },
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The command; 0 is the very first prompt or something a person typed.
    pub id: u32,
    /// Its exit code.
    pub exit: i32,
    /// The exit codes of its pipeline's parts.
    pub pipestatus: Vec<i32>,
    /// What was unusual.
    pub flags: Flags,
    /// The directory the shell is in now, byte for byte.
    pub cwd: Vec<u8>,
}

/// What was unusual about an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// `i`: the command was incomplete and refused before it ran.
    pub incomplete: bool,
    /// `l`: the hooks had been lost and were installed again.
    pub hooks_lost: bool,
    /// `n`: the command's text did not run to its end (a syntax error, or an interrupt).
    pub not_run_to_end: bool,
    /// `b`: the shell's prompt said so in the output, and no report of the shell's own.
    pub in_band: bool,
}

/// A place in the output that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boundary {
    /// A command's output begins at `at`.
    Started {
        /// The command.
        id: u32,
        /// Offset of the first output byte: behind the marker.
        at: u64,
        /// The attested marker, to be taken out of views.
        marker: Range<u64>,
    },
    /// A command's output has ended.
    Ended {
        /// How it ended.
        end: End,
        /// Offset behind the last output byte: where the marker begins.
        output_end: u64,
        /// Offset behind the marker.
        at: u64,
        /// The attested marker, to be taken out of views; none when it never came.
        marker: Option<Range<u64>>,
    },
    /// A prompt, and nothing else.
    Prompt {
        /// Its marker, to be taken out of views.
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
/// The secret was checked by the holder and is skipped. Flags that are not known are too: a newer shell integration may
/// say more.
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
                        in_band: flags.contains(&b'b'),
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

/// Exactly N fields; the last one takes the rest, semicolons included. The first must be a single letter.
fn fields<const N: usize>(bytes: &[u8]) -> Option<[&[u8]; N]> {
    let fields: Vec<&[u8]> = bytes.splitn(N, |byte| *byte == b';').collect();
    let fields: [&[u8]; N] = fields.try_into().ok()?;
    (fields[0].len() == 1).then_some(fields)
}

fn number<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[derive(Clone, Debug)]
struct Waiting {
    nonce: Nonce,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Start(u32),
    End(End),
    Prompt,
}

/// Joins records with markers.
#[derive(Clone, Debug, Default)]
pub struct Boundaries {
    waiting: VecDeque<Waiting>,
    /// Behind the last attested marker.
    known_to: u64,
}

impl Boundaries {
    /// Nothing waits, nothing is known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a record. Yields a boundary only when too many records wait: the oldest is then given up, its end placed at
    /// the last known boundary. A start that is given up yields nothing; a PATH is no boundary.
    pub fn record(&mut self, record: Record) -> Option<Boundary> {
        let waiting = match record {
            Record::Started { nonce, id } => Waiting { nonce, what: What::Start(id) },
            Record::Ended { nonce, end } => Waiting { nonce, what: What::End(end) },
            Record::Prompt { nonce } => Waiting { nonce, what: What::Prompt },
            Record::Path(_) => return None,
        };
        self.waiting.push_back(waiting);
        if self.waiting.len() <= WAITING_MAX {
            return None;
        }
        // Not the start: what a person typed ahead may end many times before the command begins.
        let first = |is: fn(&What) -> bool| self.waiting.iter().position(|waiting| is(&waiting.what));
        let oldest = first(|what| matches!(what, What::Prompt)).or_else(|| first(|what| matches!(what, What::End(_))));
        let oldest = oldest.unwrap_or(0);
        self.waiting.remove(oldest)?.given_up(self.known_to)
    }

    /// Takes a marker that the scanner found. Yields nothing for a forged one. An attested one yields its own boundary
    /// last, behind the ends of commands whose markers were lost before it.
    pub fn marker(&mut self, kind: MarkerKind, nonce: &Nonce, from: u64, to: u64) -> Vec<Boundary> {
        let is_its_record = |waiting: &Waiting| waiting.kind() == kind && waiting.nonce == *nonce;
        let Some(index) = self.waiting.iter().position(is_its_record) else {
            return Vec::new();
        };
        // A prompt's record may be written behind those of what came after it, so it settles nothing.
        if matches!(self.waiting.get(index), Some(Waiting { what: What::Prompt, .. })) {
            self.waiting.remove(index);
            return vec![Boundary::Prompt { marker: from..to }];
        }
        let newest = self.waiting.range(..=index).map(Waiting::settles).max().unwrap_or(0);
        let mut boundaries = Vec::new();
        let mut overtaken = None;
        for lost in self.waiting.drain(..index) {
            match lost.what {
                What::Start(id) if id > newest => overtaken = Some(lost),
                _ => boundaries.extend(lost.given_up(from)),
            }
        }
        let found = self.waiting.pop_front().map(|found| match found.what {
            What::Start(id) => Boundary::Started { id, at: to, marker: from..to },
            What::Prompt => Boundary::Prompt { marker: from..to },
            What::End(end) => Boundary::Ended { end, output_end: from, at: to, marker: Some(from..to) },
        });
        boundaries.extend(found);
        if let Some(start) = overtaken {
            self.waiting.push_front(start);
        }
        self.known_to = to;
        boundaries
    }

    /// Ends the command `id` at `at` because its marker never came, though the kernel says that the shell reads again.
    /// Nothing when no end of this command waits.
    pub fn expire(&mut self, id: u32, at: u64) -> Option<Boundary> {
        let is_its_end = |waiting: &Waiting| matches!(&waiting.what, What::End(end) if end.id == id);
        let index = self.waiting.iter().position(is_its_end)?;
        self.waiting.remove(index)?.given_up(at)
    }

    /// The commands whose end is attested but not placed yet.
    pub fn waiting_ends(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.iter().filter_map(|waiting| match &waiting.what {
            What::End(end) => Some(end.id),
            What::Start(_) | What::Prompt => None,
        })
    }
}

impl Waiting {
    fn kind(&self) -> MarkerKind {
        match self.what {
            What::Start(_) => MarkerKind::Start,
            What::End(_) | What::Prompt => MarkerKind::End,
        }
    }

    /// The newest command whose start cannot come any more once this marker is there. What a person typed is 0.
    fn settles(&self) -> u32 {
        match &self.what {
            What::Start(_) | What::Prompt => 0,
            What::End(end) => end.id,
        }
    }

    /// An end without a marker still is an end; a start without one says nothing about the output.
    fn given_up(self, at: u64) -> Option<Boundary> {
        match self.what {
            What::Start(_) | What::Prompt => None,
            What::End(end) => Some(Boundary::Ended { end, output_end: at, at, marker: None }),
        }
    }
}

#[cfg(test)]
mod tests;
