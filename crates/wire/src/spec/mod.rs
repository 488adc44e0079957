//! The start of a session: its program and limits, written once by the server into the session's folder, read by the holder, kept for ever.
//!
//! ```text
//! (tag u8 | length u32 | value)*, crc32 u32, "spec-tag"
//! ```
//! A field with its default value is left out, and a reader skips tags that it does not know.

mod fields;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::frames::{Decoder, Encoder};
use crate::{NEW_SPEC_FILE, SPEC_FILE};
pub use fields::{Handover, HandoverMethod, HardLimits, Spec};
use sys::confinement::{Namespaces, Rules};

/// The end of a spec, behind the checksum of its fields.
const TAGGED: [u8; 8] = *b"spec-tag";

/// The longest spec: arguments and environment, of which execve(2) takes 6 MiB at most, and the server's own fields.
const SPEC_BYTES_MAX: usize = 8 << 20;

/// The tags of the fields. A number is never used again.
mod tag {
    pub(super) const SESSION: u8 = 1;
    pub(super) const PROGRAM: u8 = 2;
    pub(super) const ARGV: u8 = 3;
    pub(super) const ENV: u8 = 4;
    pub(super) const CWD: u8 = 5;
    pub(super) const UMASK: u8 = 6;
    pub(super) const COLS: u8 = 7;
    pub(super) const ROWS: u8 = 8;
    pub(super) const JOURNAL_BYTES_MAX: u8 = 9;
    pub(super) const MAY_SPLICE: u8 = 10;
    pub(super) const KEEPS_DESCENDANTS: u8 = 11;
    pub(super) const META: u8 = 12;
    pub(super) const OPEN_FILES: u8 = 13;
    pub(super) const GROUPS: u8 = 14;
    pub(super) const OPEN_FILES_MAX: u8 = 15;
    pub(super) const ADDRESS_SPACE_MAX: u8 = 16;
    pub(super) const IDENTITY: u8 = 17;
    pub(super) const OUTPUT_RATE: u8 = 18;
    /// One byte, see [`super::method_number`].
    pub(super) const HANDOVER_METHOD: u8 = 19;
    pub(super) const HANDOVER_LINE: u8 = 20;
    pub(super) const ATTESTATION_FD: u8 = 21;
    pub(super) const SCRIPT: u8 = 22;
    pub(super) const SHORT_LINE: u8 = 23;
    pub(super) const CONFINEMENT: u8 = 24;
    pub(super) const TASKS_MAX: u8 = 25;
    pub(super) const HOOKS_IN_EDITOR_MODES: u8 = 26;
    pub(super) const SCRIPT_IS_LAST: u8 = 27;
}

impl Spec {
    /// Writes the file, readable only by its owner: the environment may hold secrets.
    pub fn store(&self, folder: &Path) -> io::Result<()> {
        let bytes = self.checked()?;
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(SPEC_FILE))?;
        file.write_all(&bytes)
    }

    /// Puts it in the place of the one that is there: whoever reads the file finds one of the two.
    pub fn replace(&self, folder: &Path) -> io::Result<()> {
        let bytes = self.checked()?;
        let (new, target) = (folder.join(NEW_SPEC_FILE), folder.join(SPEC_FILE));
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&bytes)?;
        file.sync_data()?;
        std::fs::rename(&new, &target)
    }

    fn checked(&self) -> io::Result<Vec<u8>> {
        let bytes = self.encode();
        if bytes.len() > SPEC_BYTES_MAX {
            let why = format!(
                "the session's arguments, environment and settings take {} bytes, and at most {SPEC_BYTES_MAX} are kept",
                bytes.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(bytes)
    }

    /// Reads the file back.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let bytes = journal::read_whole(&folder.join(SPEC_FILE), SPEC_BYTES_MAX as u64)?;
        Self::decode(&bytes)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the session's spec file is damaged"))
    }

    fn encode(&self) -> Vec<u8> {
        let mut fields = Encoder::default();
        fields.field(tag::SESSION, |e| e.raw(self.session.as_bytes()));
        fields.field(tag::PROGRAM, |e| e.raw(&self.program));
        fields.field(tag::ARGV, |e| e.items(&self.argv));
        fields.field(tag::ENV, |e| e.items(&self.env));
        fields.field(tag::CWD, |e| e.raw(&self.cwd));
        fields.number(tag::UMASK, self.umask.into());
        fields.number(tag::COLS, self.cols.into());
        fields.number(tag::ROWS, self.rows.into());
        fields.number(tag::JOURNAL_BYTES_MAX, self.journal_bytes_max);
        fields.number(tag::MAY_SPLICE, self.may_splice.into());
        fields.number(tag::KEEPS_DESCENDANTS, self.keeps_descendants.into());
        fields.field(tag::META, |e| e.raw(&self.meta));
        fields.number(tag::OPEN_FILES, self.open_files);
        fields.field(tag::GROUPS, |e| e.items(&self.groups));
        fields.number(tag::OPEN_FILES_MAX, self.hard_limits.open_files);
        fields.number(tag::ADDRESS_SPACE_MAX, self.hard_limits.address_space);
        fields.number(tag::TASKS_MAX, self.hard_limits.tasks);
        fields.field(tag::IDENTITY, |e| self.identity.iter().fold(e, |e, id| e.u32(*id)));
        fields.number(tag::OUTPUT_RATE, self.output_rate);
        fields.number(tag::HANDOVER_METHOD, method_number(&self.handover.method));
        fields.field(tag::HANDOVER_LINE, |e| e.raw(self.handover.line().unwrap_or_default()));
        fields.number(tag::ATTESTATION_FD, self.handover.attestation_fd.into());
        fields.field(tag::SCRIPT, |e| e.raw(&self.handover.script));
        fields.field(tag::SHORT_LINE, |e| e.raw(&self.handover.short_line));
        fields.number(tag::HOOKS_IN_EDITOR_MODES, self.handover.hooks_in_editor_modes.into());
        fields.number(tag::SCRIPT_IS_LAST, self.handover.script_is_last.into());
        fields.field(tag::CONFINEMENT, |e| self.confinement.iter().fold(e, encode_rules));
        let bytes = fields.take();
        let sum = crc32fast::hash(&bytes);
        [&bytes[..], &sum.to_le_bytes(), &TAGGED].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, sum) = bytes.strip_suffix(&TAGGED)?.split_last_chunk()?;
        (crc32fast::hash(fields) == u32::from_le_bytes(*sum)).then(|| Self::decode_fields(fields)).flatten()
    }

    fn decode_fields(bytes: &[u8]) -> Option<Self> {
        let (mut spec, mut method, mut line) = (Self::default(), 0, Vec::new());
        let mut d = Decoder::new(bytes);
        while !d.is_empty() {
            let (tag, value) = (d.u8()?, d.bytes()?);
            match tag {
                tag::SESSION => spec.session = String::from_utf8(value.to_vec()).ok()?,
                tag::PROGRAM => spec.program = value.to_vec(),
                tag::ARGV => spec.argv = items(value)?,
                tag::ENV => spec.env = items(value)?,
                tag::CWD => spec.cwd = value.to_vec(),
                tag::UMASK => spec.umask = number(value)?,
                tag::COLS => spec.cols = number(value)?,
                tag::ROWS => spec.rows = number(value)?,
                tag::JOURNAL_BYTES_MAX => spec.journal_bytes_max = number(value)?,
                tag::MAY_SPLICE => spec.may_splice = number::<u64>(value)? != 0,
                tag::KEEPS_DESCENDANTS => spec.keeps_descendants = number::<u64>(value)? != 0,
                tag::META => spec.meta = value.to_vec(),
                tag::OPEN_FILES => spec.open_files = number(value)?,
                tag::GROUPS => spec.groups = items(value)?,
                tag::OPEN_FILES_MAX => spec.hard_limits.open_files = number(value)?,
                tag::ADDRESS_SPACE_MAX => spec.hard_limits.address_space = number(value)?,
                tag::TASKS_MAX => spec.hard_limits.tasks = number(value)?,
                tag::IDENTITY => spec.identity = ids(value)?,
                tag::OUTPUT_RATE => spec.output_rate = number(value)?,
                tag::HANDOVER_METHOD => method = number(value)?,
                tag::HANDOVER_LINE => line = value.to_vec(),
                tag::ATTESTATION_FD => spec.handover.attestation_fd = number(value)?,
                tag::SCRIPT => spec.handover.script = value.to_vec(),
                tag::SHORT_LINE => spec.handover.short_line = value.to_vec(),
                tag::HOOKS_IN_EDITOR_MODES => spec.handover.hooks_in_editor_modes = number::<u64>(value)? != 0,
                tag::SCRIPT_IS_LAST => spec.handover.script_is_last = number::<u64>(value)? != 0,
                tag::CONFINEMENT => spec.confinement = Some(rules_of(value)?),
                // A field of a later version.
                _ => {}
            }
        }
        spec.handover.method = method_of(method, line)?;
        Some(spec)
    }
}

/// Whether there is a network, then five lists of paths, then the number of its namespaces.
fn encode_rules<'a>(e: &'a mut Encoder, rules: &Rules) -> &'a mut Encoder {
    e.u8(rules.network.into());
    for paths in [&rules.readable, &rules.writable, &rules.kept, &rules.devices, &rules.hidden] {
        let mut list = Encoder::default();
        let paths: Vec<_> = paths.iter().map(|path| path.as_os_str().as_bytes().to_vec()).collect();
        e.bytes(&list.items(&paths).take());
    }
    e.u8(match rules.namespaces {
        Namespaces::Shared => 0,
        Namespaces::Own => 1,
        Namespaces::Container => 2,
    })
}

fn rules_of(value: &[u8]) -> Option<Rules> {
    let mut d = Decoder::new(value);
    let network = d.u8()? != 0;
    let mut paths = || Some(items(d.bytes()?)?.into_iter().map(|path| OsString::from_vec(path).into()).collect());
    let (readable, writable, kept, devices, hidden) = (paths()?, paths()?, paths()?, paths()?, paths()?);
    let namespaces = match d.u8()? {
        0 => Namespaces::Shared,
        1 => Namespaces::Own,
        2 => Namespaces::Container,
        // Of a later version: a session whose confinement is not known is not started.
        _ => return None,
    };
    Some(Rules { readable, writable, kept, devices, hidden, network, namespaces })
}

fn method_number(method: &HandoverMethod) -> u64 {
    match method {
        HandoverMethod::Typed => 0,
        HandoverMethod::Keys => 1,
        HandoverMethod::Line(_) => 2,
        HandoverMethod::InBand => 3,
    }
}

/// `None` for a method of a later version: a session whose commands cannot be handed over is not started.
fn method_of(number: u64, line: Vec<u8>) -> Option<HandoverMethod> {
    match number {
        0 => Some(HandoverMethod::Typed),
        1 => Some(HandoverMethod::Keys),
        2 => Some(HandoverMethod::Line(line)),
        3 => Some(HandoverMethod::InBand),
        _ => None,
    }
}

impl Encoder {
    /// Tag, length and value; nothing at all for an empty value.
    fn field(&mut self, tag: u8, value: impl FnOnce(&mut Self) -> &mut Self) {
        let mut inner = Self::default();
        let bytes = value(&mut inner).take();
        if !bytes.is_empty() {
            self.u8(tag).bytes(&bytes);
        }
    }

    /// A number of eight bytes; nothing at all for 0.
    fn number(&mut self, tag: u8, value: u64) {
        self.field(tag, |e| if value == 0 { e } else { e.u64(value) });
    }

    fn items(&mut self, items: &[Vec<u8>]) -> &mut Self {
        items.iter().fold(self, |e, item| e.bytes(item))
    }
}

/// A number of eight bytes, if it is in the field's range.
fn number<T: TryFrom<u64>>(value: &[u8]) -> Option<T> {
    T::try_from(u64::from_le_bytes(value.try_into().ok()?)).ok()
}

/// Uid, gid and all groups.
fn ids(value: &[u8]) -> Option<Vec<u32>> {
    let (ids, rest) = value.as_chunks();
    rest.is_empty().then(|| ids.iter().map(|id| u32::from_le_bytes(*id)).collect())
}

fn items(value: &[u8]) -> Option<Vec<Vec<u8>>> {
    let (mut d, mut items) = (Decoder::new(value), Vec::new());
    while !d.is_empty() {
        items.push(d.bytes()?.to_vec());
    }
    Some(items)
}
