//! Numbers that nobody can guess, for the markers of commands. Several come with one system call.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// How many numbers are made at once.
const AT_ONCE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Nonces {
    /// Those that were not used yet.
    left: Vec<u64>,
}

impl Nonces {
    /// A number that was not used before.
    pub(crate) fn next(&mut self) -> io::Result<u64> {
        if self.left.is_empty() {
            let mut bytes = [0; AT_ONCE * size_of::<u64>()];
            let filled = getrandom(&mut bytes, GetRandomFlags::empty())?;
            let (numbers, _) = bytes.get(..filled).unwrap_or_default().as_chunks();
            self.left = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
        }
        self.left.pop().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_another_one() {
        let mut nonces = Nonces::default();
        let all: std::collections::HashSet<u64> = (0..3 * AT_ONCE).map(|_| nonces.next().unwrap()).collect();
        assert_eq!(all.len(), 3 * AT_ONCE);
    }
}
