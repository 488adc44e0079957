//! Attestation: only this accepts a datagram as a report of the shell.
//!
//! The kernel stamps each datagram with the pid of its sender, which must be the shell's; and the report must carry the
//! session's secret, for a program that the shell runs by exec(2) has the shell's pid.

/// The longest report: a working directory of PATH_MAX (limits.h) and the fields before it; a PATH may be longer.
const REPORT_BYTES_MAX: usize = 64 << 10;

/// Checks the datagrams of the attestation socket, and joins them to reports.
#[derive(Debug)]
pub(crate) struct Attestation {
    shell_pid: u32,
    secret: Vec<u8>,
    /// A report without its final NUL yet: the shell's stdio may split it at newlines.
    partial: Vec<u8>,
    /// How many datagrams came from other processes or without the secret.
    dropped: u64,
}

impl Attestation {
    pub(crate) fn new(shell_pid: u32, secret: Vec<u8>) -> Self {
        Self { shell_pid, secret, partial: Vec::new(), dropped: 0 }
    }

    /// How many datagrams came from other processes or without the secret.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes a datagram with the pid of its sender; returns the shell's report without its secret once it is complete.
    pub(crate) fn accept(&mut self, pid: u32, bytes: &[u8]) -> Option<Vec<u8>> {
        if pid != self.shell_pid {
            self.dropped += 1;
            return None;
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > REPORT_BYTES_MAX {
            self.partial = Vec::new();
            self.dropped += 1;
        }
        if self.partial.last() != Some(&0) {
            return None;
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.pop();
        let report = self.without_secret(&whole);
        self.dropped += u64::from(report.is_none());
        report
    }

    /// `D;<secret>;rest` becomes `D;;rest`: the events are kept on disk, the secret is not.
    fn without_secret(&self, report: &[u8]) -> Option<Vec<u8>> {
        let (kind, rest) = report.split_first_chunk::<2>()?;
        let rest = rest.strip_prefix(self.secret.as_slice())?;
        (kind[1] == b';' && rest.first() == Some(&b';')).then(|| [kind, rest].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHELL: u32 = 7;

    fn attestation() -> Attestation {
        Attestation::new(SHELL, b"s3".to_vec())
    }

    #[test]
    fn a_report_without_the_secret_is_not_accepted_and_is_counted() {
        let mut attestation = attestation();
        assert_eq!(attestation.accept(SHELL, b"D;s4;n;0;0;0;;/\0"), None);
        assert_eq!(attestation.accept(SHELL, b"D;;n;0;0;0;;/\0"), None);
        assert_eq!(attestation.accept(SHELL, b"x\0"), None);
        assert_eq!(attestation.dropped(), 3);
    }

    #[test]
    fn a_report_with_the_secret_from_another_process_is_not_accepted_and_is_counted() {
        let mut attestation = attestation();
        assert_eq!(attestation.accept(SHELL + 1, b"D;s3;n;0;0;0;;/\0"), None);
        assert_eq!(attestation.dropped(), 1);
        assert_eq!(attestation.accept(SHELL, b"D;s3;n;0;0;0;;/\0"), Some(b"D;;n;0;0;0;;/".to_vec()));
    }

    #[test]
    fn a_report_that_was_split_at_newlines_is_joined_also_around_a_datagram_of_another_process() {
        let mut attestation = attestation();
        assert_eq!(attestation.accept(SHELL, b"D;s3;n2;1;7;7;;/a\n"), None);
        assert_eq!(attestation.accept(SHELL + 1, b"b;x\0"), None);
        assert_eq!(attestation.accept(SHELL, b"b;c\0"), Some(b"D;;n2;1;7;7;;/a\nb;c".to_vec()));
    }
}
