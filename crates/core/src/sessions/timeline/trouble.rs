//! The trouble that a session's holder has recorded, and its message: a full disk, and a journal that was cut.

use journal::TroubleKind;

#[derive(Debug, Default)]
pub(crate) struct Trouble {
    /// The holder's words while it waits for room on the disk.
    pub(crate) full_disk: Option<String>,
    /// Another process has cut the journal, and output before this offset is missing; 0 if not.
    pub(crate) cut_before: u64,
}

impl Trouble {
    /// Applies the holder's record, written when the journal ended at `end`.
    pub(crate) fn recorded(&mut self, what: TroubleKind, text: &[u8], end: u64) {
        match what {
            TroubleKind::JOURNAL_CUT => self.is_cut(end),
            TroubleKind::DISK_FULL => self.full_disk = Some(String::from_utf8_lossy(text).into_owned()),
            _ => self.full_disk = None,
        }
    }

    /// Notes that output before this offset is missing because another process has cut the journal.
    pub(crate) fn is_cut(&mut self, before: u64) {
        self.cut_before = self.cut_before.max(before);
    }

    /// The message, which lasts for a cut: what is missing does not come back.
    pub(crate) fn message(&self) -> Option<String> {
        let cut = || {
            let before = Some(self.cut_before).filter(|offset| *offset > 0)?;
            Some(format!("damaged: the journal was cut by another process; output before o:{before} is missing"))
        };
        self.full_disk.clone().or_else(cut)
    }
}
