//! The 64-byte header of the events file: magic, version, and the journal's first offset.
//!
//! Only this module knows the layout: magic (8 bytes), version (u32), zero (u32), `first` (u64), the complement of
//! `first` (u64), zeros. The header is here and not in the journal, so that a journal is the plain bytes of the
//! terminal.

use crate::Offset;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// The offset of the first record.
pub(crate) const HEADER_BYTES: u64 = 64;

const MAGIC: [u8; 8] = *b"ptydevnt";
const VERSION: u32 = 1;
const FIRST_AT: u64 = 16;

/// A writer needs nanoseconds to store both halves of `first`; if they still disagree after this many reads, the file
/// is damaged.
const LOOKS_MAX: u32 = 100;

/// Writes the header of a session whose journal begins at zero.
pub(crate) fn write(file: &File) -> io::Result<()> {
    let mut bytes = [0u8; HEADER_BYTES as usize];
    let fields = MAGIC.into_iter().chain(VERSION.to_le_bytes()).chain([0; 4]).chain(first_pair(Offset::ZERO));
    for (slot, byte) in bytes.iter_mut().zip(fields) {
        *slot = byte;
    }
    file.write_all_at(&bytes, 0)
}

/// Refuses a file that is not an events file of a supported version.
pub(crate) fn check(file: &File) -> io::Result<()> {
    let mut magic = [0u8; 8];
    let mut version = [0u8; 4];
    file.read_exact_at(&mut magic, 0)?;
    file.read_exact_at(&mut version, 8)?;
    if magic != MAGIC {
        return Err(damaged("this is not an events file"));
    }
    if u32::from_le_bytes(version) != VERSION {
        return Err(damaged("this events file has a version we cannot read"));
    }
    Ok(())
}

/// The journal's first offset: everything before it may already be a hole.
pub(crate) fn first(file: &File) -> io::Result<Offset> {
    for _ in 0..LOOKS_MAX {
        let mut pair = [0u8; 16];
        file.read_exact_at(&mut pair, FIRST_AT)?;
        let pair = u128::from_le_bytes(pair);
        let (first, complement) = (pair as u64, (pair >> 64) as u64);
        if complement == !first {
            return Ok(Offset(first));
        }
        // Linux does not guarantee reads to be atomic with writes; the complement shows when to read again.
        std::thread::yield_now();
    }
    Err(damaged("the events file's header is damaged"))
}

/// Publishes the journal's first offset in one write; the two halves verify each other.
pub(crate) fn set_first(file: &File, first: Offset) -> io::Result<()> {
    file.write_all_at(&first_pair(first), FIRST_AT)
}

fn first_pair(first: Offset) -> [u8; 16] {
    (u128::from(first.0) | (u128::from(!first.0) << 64)).to_le_bytes()
}

fn damaged(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
