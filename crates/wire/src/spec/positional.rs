//! Reads a spec as earlier versions wrote it: fields in a fixed order, each version with more of them at the end.

use super::fields::{Handover, HandoverMethod, Spec};
use crate::frames::Decoder;

/// The end of the newest such spec, behind the checksum of its fields. The versions before wrote neither.
const SUMMED: [u8; 8] = *b"spec-crc";

pub(super) fn decode(bytes: &[u8]) -> Option<Spec> {
    let Some((fields, sum)) = bytes.strip_suffix(&SUMMED).and_then(<[u8]>::split_last_chunk) else {
        return decode_fields(bytes, false);
    };
    (crc32fast::hash(fields) == u32::from_le_bytes(*sum)).then(|| decode_fields(fields, true)).flatten()
}

fn decode_fields(bytes: &[u8], is_summed: bool) -> Option<Spec> {
    let mut d = Decoder::new(bytes);
    let mut spec = Spec {
        session: String::from_utf8(d.bytes()?.to_vec()).ok()?,
        program: d.bytes()?.to_vec(),
        argv: d.list()?,
        env: d.list()?,
        cwd: d.bytes()?.to_vec(),
        umask: d.u32()?,
        cols: d.u16()?,
        rows: d.u16()?,
        ..Spec::default()
    };
    let has_hooks = d.bool()?;
    (spec.journal_bytes_max, spec.may_splice) = (d.u64()?, d.bool()?);
    (spec.keeps_descendants, spec.meta, spec.open_files) = (d.bool()?, d.bytes()?.to_vec(), d.u64()?);
    let (mut attestation_fd, mut line, mut is_in_band, mut script) = (0, Vec::new(), false, Vec::new());
    // A spec may end before any of these groups: the version that wrote it did not know them yet.
    if !d.is_empty() {
        (spec.groups, spec.open_files_max, spec.address_space_max) = (d.list()?, d.u64()?, d.u64()?);
    }
    if !d.is_empty() {
        (attestation_fd, line) = (d.u32()?, d.bytes()?.to_vec());
    }
    if !d.is_empty() {
        spec.identity = ids(d.bytes()?)?;
    }
    if !d.is_empty() {
        spec.output_rate = d.u64()?;
    }
    if !d.is_empty() {
        is_in_band = d.bool()?;
    }
    if !d.is_empty() {
        script = d.bytes()?.to_vec();
    }
    let method = match (has_hooks, is_in_band) {
        (false, _) => HandoverMethod::Typed,
        (true, true) => HandoverMethod::InBand,
        (true, false) if line.is_empty() => HandoverMethod::Keys,
        (true, false) => HandoverMethod::Line(line),
    };
    spec.handover = Handover { method, attestation_fd, script, short_line: Vec::new() };
    // Only a checksum distinguishes a later version's fields from damage.
    (d.is_empty() || is_summed).then_some(spec)
}

/// Uid, gid and all groups; later layouts have the same value.
pub(super) fn ids(value: &[u8]) -> Option<Vec<u32>> {
    let (ids, rest) = value.as_chunks();
    rest.is_empty().then(|| ids.iter().map(|id| u32::from_le_bytes(*id)).collect())
}
