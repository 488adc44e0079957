//! How a session is started: written once by the server into the session's folder, read by the holder, kept for ever.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::SPEC_FILE;
use crate::frames::{Decoder, Encoder};

/// Stands at the end of a spec, behind the checksum of its fields. Earlier versions wrote neither, and read no further than the fields.
const SUMMED: [u8; 8] = *b"spec-crc";

/// Everything that a holder needs to know. Fields are only ever added, behind the last one and before the checksum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Spec {
    /// The session's id.
    pub session: String,
    /// The shell's path, for execve(2).
    pub program: Vec<u8>,
    /// Its arguments, the first one being its name.
    pub argv: Vec<Vec<u8>>,
    /// Its whole environment, `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// Where it starts.
    pub cwd: Vec<u8>,
    /// Its file mode mask.
    pub umask: u32,
    /// The terminal's width in cells.
    pub cols: u16,
    /// The terminal's height in cells.
    pub rows: u16,
    /// Whether the shell has our hooks and reports over the attestation socket.
    pub attests: bool,
    /// How many bytes of output are kept at least; 0 keeps all.
    pub journal_bytes_max: u64,
    /// Whether splice(2) from a terminal into a file of this file system was seen to work.
    pub may_splice: bool,
    /// Whether descendants stay alive when the session ends.
    pub keeps_descendants: bool,
    /// What only the server understands: name, owner, and so on.
    pub meta: Vec<u8>,
    /// The soft limit of open files for the shell (the server raises its own); 0 leaves it.
    pub open_files: u64,
    /// The `cgroup.procs` files of the control groups that the shell joins.
    pub groups: Vec<Vec<u8>>,
    /// The hard limit of open files for the shell; 0 leaves it.
    pub open_files_max: u64,
    /// The hard limit of each process's address space in bytes; 0 leaves it.
    pub address_space_max: u64,
    /// Which descriptor the shell reports on; 0 is [`crate::ATTESTATION_FD`].
    pub attestation_fd: u32,
    /// What is typed to make the shell take a command, its id and nonce in the place of `{}`; empty for one whose line
    /// editor has our keys.
    pub run_line: Vec<u8>,
    /// Another user whose shell it is: uid, gid and all groups, in this order; empty for the holder's own.
    pub identity: Vec<u32>,
    /// Bytes of output a second; 0 is any number.
    pub output_rate: u64,
    /// The shell reports nothing on a descriptor: what it says of its commands stands in its output, and it takes their texts
    /// from a file of the session's folder.
    pub speaks_in_band: bool,
    /// The script of a shell that may not look for it (another user's): it is given as [`crate::SCRIPT_FD`], and the staged
    /// command as [`crate::COMMAND_FD`]. Empty where the shell finds both by name.
    pub script: Vec<u8>,
}

impl Spec {
    /// Writes the file, readable by nobody else: the environment may hold secrets.
    pub fn store(&self, folder: &Path) -> io::Result<()> {
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(folder.join(SPEC_FILE))?;
        file.write_all(&self.encode())
    }

    /// Reads the file back.
    pub fn load(folder: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(folder.join(SPEC_FILE))?;
        Self::decode(&bytes)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the session's spec file is damaged"))
    }

    fn encode(&self) -> Vec<u8> {
        let mut e = Encoder::default();
        e.bytes(self.session.as_bytes()).bytes(&self.program).list(&self.argv).list(&self.env).bytes(&self.cwd);
        e.u32(self.umask).u16(self.cols).u16(self.rows).bool(self.attests).u64(self.journal_bytes_max);
        e.bool(self.may_splice).bool(self.keeps_descendants).bytes(&self.meta).u64(self.open_files);
        e.list(&self.groups).u64(self.open_files_max).u64(self.address_space_max);
        e.u32(self.attestation_fd).bytes(&self.run_line);
        e.bytes(&self.identity.iter().flat_map(|id| id.to_le_bytes()).collect::<Vec<u8>>());
        e.u64(self.output_rate).bool(self.speaks_in_band).bytes(&self.script);
        let bytes = e.take();
        let sum = crc32fast::hash(&bytes);
        [&bytes[..], &sum.to_le_bytes(), &SUMMED].concat()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let Some((fields, sum)) = bytes.strip_suffix(&SUMMED).and_then(<[u8]>::split_last_chunk) else {
            return Self::decode_fields(bytes, false);
        };
        (crc32fast::hash(fields) == u32::from_le_bytes(*sum)).then(|| Self::decode_fields(fields, true)).flatten()
    }

    fn decode_fields(bytes: &[u8], is_summed: bool) -> Option<Self> {
        let mut d = Decoder::new(bytes);
        let spec = Self {
            session: String::from_utf8(d.bytes()?.to_vec()).ok()?,
            program: d.bytes()?.to_vec(),
            argv: d.list()?,
            env: d.list()?,
            cwd: d.bytes()?.to_vec(),
            umask: d.u32()?,
            cols: d.u16()?,
            rows: d.u16()?,
            attests: d.bool()?,
            journal_bytes_max: d.u64()?,
            may_splice: d.bool()?,
            keeps_descendants: d.bool()?,
            meta: d.bytes()?.to_vec(),
            open_files: d.u64()?,
            ..Self::default()
        };
        // Before limits there was nothing more.
        if d.is_empty() {
            return Some(spec);
        }
        let spec = Self { groups: d.list()?, open_files_max: d.u64()?, address_space_max: d.u64()?, ..spec };
        // Before shells other than bash there was nothing more.
        if d.is_empty() {
            return Some(spec);
        }
        let spec = Self { attestation_fd: d.u32()?, run_line: d.bytes()?.to_vec(), ..spec };
        // Before other users there was nothing more.
        if d.is_empty() {
            return Some(spec);
        }
        let (ids, rest) = d.bytes()?.as_chunks();
        let identity = ids.iter().map(|id| u32::from_le_bytes(*id)).collect();
        let spec = rest.is_empty().then_some(Self { identity, ..spec })?;
        // Before the rate of the output could be limited there was nothing more.
        if d.is_empty() {
            return Some(spec);
        }
        let spec = Self { output_rate: d.u64()?, ..spec };
        // Before shells that report nothing there was nothing more.
        if d.is_empty() {
            return Some(spec);
        }
        let spec = Self { speaks_in_band: d.bool()?, ..spec };
        // Before scripts were handed over there was nothing more.
        if d.is_empty() {
            return Some(spec);
        }
        let spec = Self { script: d.bytes()?.to_vec(), ..spec };
        // A later version's fields would be under a checksum: without one, what follows was not written so.
        (d.is_empty() || is_summed).then_some(spec)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// As an earlier version wrote it: without the checksum.
    fn encode(spec: &Spec) -> Vec<u8> {
        let mut bytes = spec.encode();
        bytes.truncate(bytes.len() - 4 - SUMMED.len());
        bytes
    }

    #[test]
    fn a_spec_is_read_back_as_it_was_written_and_a_cut_one_is_refused() {
        let spec = Spec {
            session: "s0-abc".into(),
            program: b"/bin/bash".to_vec(),
            argv: vec![b"bash".to_vec(), b"-i".to_vec()],
            env: vec![b"A=\xff".to_vec()],
            cwd: b"/tmp/a\nb".to_vec(),
            umask: 0o27,
            cols: 80,
            rows: 24,
            attests: true,
            journal_bytes_max: 1 << 40,
            may_splice: true,
            keeps_descendants: false,
            meta: b"{}".to_vec(),
            open_files: 1024,
            groups: vec![b"/sys/fs/cgroup/pids/ptyd/s0-abc/cgroup.procs".to_vec()],
            open_files_max: 64,
            address_space_max: 1 << 30,
            attestation_fd: 9,
            run_line: b"run {}".to_vec(),
            identity: vec![1_000, 1_000, 1_000, 27],
            output_rate: 1 << 33,
            speaks_in_band: true,
            script: b"/s/bash.sh".to_vec(),
        };
        let bytes = spec.encode();
        assert_eq!(Spec::decode(&bytes), Some(spec.clone()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Spec::decode(&flipped), None, "bit {bit}");
        }
        let bytes = encode(&spec);
        assert_eq!(Spec::decode(&bytes), Some(spec.clone()), "what the version before the checksum wrote");
        let without = Spec { script: Vec::new(), ..spec };
        let older = encode(&without);
        let older = older.get(..older.len() - 4).unwrap();
        assert_eq!(
            Spec::decode(older),
            Some(without.clone()),
            "what the version before scripts were handed over wrote"
        );
        let without = Spec { speaks_in_band: false, ..without };
        let older = encode(&without);
        let older = older.get(..older.len() - 4 - 1).unwrap();
        assert_eq!(Spec::decode(older), Some(without.clone()), "what the version before silent shells wrote");
        let without = Spec { output_rate: 0, ..without };
        let older = encode(&without);
        let older = older.get(..older.len() - 4 - 1 - 8).unwrap();
        assert_eq!(Spec::decode(older), Some(without.clone()), "what the version before rates wrote");
        let without = Spec { identity: Vec::new(), ..without };
        let older = encode(&without);
        let older = older.get(..older.len() - 4 - 1 - 8 - 4).unwrap();
        assert_eq!(Spec::decode(older), Some(without.clone()), "what the version before other users wrote");
        let without = Spec { attestation_fd: 0, run_line: Vec::new(), ..without };
        let older = encode(&without);
        let older = older.get(..older.len() - 4 - 1 - 8 - 4 - 4 - 4).unwrap();
        assert_eq!(Spec::decode(older), Some(without.clone()), "what the version before other shells wrote");
        let without = Spec { groups: Vec::new(), open_files_max: 0, address_space_max: 0, ..without };
        let bytes_before = encode(&without);
        let older = bytes_before.get(..bytes_before.len() - 4 - 1 - 8 - 4 - 8 - 4 - 16).unwrap();
        assert_eq!(Spec::decode(older), Some(without), "what the version before limits wrote");
        assert_eq!(Spec::decode(bytes.get(..bytes.len() - 2).unwrap()), None);
    }
}
