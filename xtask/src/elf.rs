//! The facts about a built binary that the packages state: its processor, and the C library that it needs.

use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::Path;

/// A processor that ptyd is built for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processor {
    /// `EM_X86_64`.
    X86_64,
    /// `EM_AARCH64`.
    Aarch64,
}

impl Processor {
    /// Both.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// As `uname -m` and Python say.
    pub const fn machine(self) -> &'static str {
        ["x86_64", "aarch64"][self as usize]
    }

    /// As Node says.
    pub const fn npm(self) -> &'static str {
        ["x64", "arm64"][self as usize]
    }

    /// As Debian says.
    pub const fn debian(self) -> &'static str {
        ["amd64", "arm64"][self as usize]
    }

    /// As Homebrew says.
    pub const fn homebrew(self) -> &'static str {
        ["intel", "arm"][self as usize]
    }
}

/// A binary for Linux.
#[derive(PartialEq, Eq, Debug)]
pub struct Binary {
    /// The processor in its header.
    pub processor: Processor,
    /// The newest version of glibc that a symbol of it asks for.
    pub glibc: (u32, u32),
}

impl Binary {
    /// Reads a file.
    pub fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::of(&bytes).with_context(|| format!("{} is not a binary of ptyd", file.display()))
    }

    fn of(bytes: &[u8]) -> Result<Self> {
        if !bytes.starts_with(b"\x7fELF") {
            bail!("it is not an ELF file");
        }
        let processor = match bytes.get(18..20) {
            Some([62, 0]) => Processor::X86_64,
            Some([183, 0]) => Processor::Aarch64,
            other => bail!("its processor is {other:?}"),
        };
        // Each version that the loader looks for is a string of the file by itself.
        let versions = bytes.split(|&byte| byte == 0).filter_map(|text| {
            let (major, minor) = std::str::from_utf8(text.strip_prefix(b"GLIBC_")?).ok()?.split_once('.')?;
            Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
        });
        let glibc = versions.max().context("it needs no glibc")?;
        Ok(Self { processor, glibc })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(machine: u8, strings: &str) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.resize(18, 0);
        bytes.extend([machine, 0]);
        bytes.extend(strings.as_bytes());
        bytes
    }

    #[test]
    fn the_newest_glibc_counts_by_number() {
        let strings = "\0GLIBC_2.9\0GLIBC_2.17\0GLIBC_2.2.5\0GLIBC_PRIVATE\0to GLIBC_2.99\0";
        let expected = Binary { processor: Processor::Aarch64, glibc: (2, 17) };
        assert_eq!(Binary::of(&elf(183, strings)).unwrap(), expected);
    }

    #[test]
    fn a_file_for_another_machine_gets_no_package() {
        assert!(Binary::of(b"#!/bin/sh").is_err());
        assert!(Binary::of(&elf(3, "\0GLIBC_2.9\0")).is_err());
        assert!(Binary::of(&elf(62, "\0static\0")).is_err());
    }
}
