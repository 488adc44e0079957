//! A screen in the session's folder: what was drawn ahead outlives the server.
//!
//! The journal stays the truth. A stored screen is used only if it is whole, was drawn by this very program, has the
//! present size, and ends where the journal still has the same bytes.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::sync::LazyLock;

use journal::Reader;
use sha2::{Digest as _, Sha256};

use super::drawn_screen::DrawnScreen;
use super::range;
use crate::host::holders::{MaskedFolder, SessionFolder};

/// The newest bytes of the journal that have to be the same.
const CHECKED_BYTES: u64 = 64 << 10;
const DIGEST_BYTES: usize = 32;
const OFFSET_BYTES: usize = 8;

/// Another program may draw the same output differently.
static PROGRAM: LazyLock<String> = LazyLock::new(|| {
    let file = std::fs::metadata("/proc/self/exe").map(|file| (file.len(), file.mtime(), file.mtime_nsec()));
    format!("{} {:?}", env!("CARGO_PKG_VERSION"), file.ok())
});

/// Stores this screen.
pub(crate) fn store(folder: &SessionFolder, reader: &Reader, drawn: &mut DrawnScreen) -> io::Result<()> {
    let ansi = drawn.screen.ansi();
    let digest = digest(reader, drawn.at, drawn.screen.size(), &ansi)?;
    folder.write_screen(&[&digest[..], &drawn.at.to_le_bytes(), &ansi].concat())
}

/// The stored screen, if it has this size and can be trusted.
pub(crate) fn load(folder: &MaskedFolder, reader: &Reader, (cols, rows): (u16, u16)) -> Option<DrawnScreen> {
    let bytes = folder.screen().ok()?;
    let (stored, rest) = bytes.split_at_checked(DIGEST_BYTES)?;
    let (at, ansi) = rest.split_at_checked(OFFSET_BYTES)?;
    let at = u64::from_le_bytes(at.try_into().ok()?);
    if at < reader.first().ok()?.0 || digest(reader, at, (cols, rows), ansi).ok()? != stored {
        return None;
    }
    let mut drawn = DrawnScreen::new(cols, rows, at);
    drawn.screen.feed(ansi);
    Some(drawn)
}

fn digest(reader: &Reader, at: u64, (cols, rows): (u16, u16), ansi: &[u8]) -> io::Result<[u8; DIGEST_BYTES]> {
    let newest = range::read(reader, at.saturating_sub(CHECKED_BYTES), at)?;
    let mut hash = Sha256::new();
    hash.update(format!("{} {at} {cols} {rows} {} ", *PROGRAM, newest.from));
    for part in [&newest.bytes, ansi] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    Ok(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use journal::EventsWriter;

    use super::*;
    use crate::sessions::render::drawn_screen::DrawnOutput;
    use crate::sessions::timeline::handover::RecentHandovers;

    #[test]
    // promise: output-2
    fn a_stored_screen_is_used_only_if_nothing_of_it_or_of_its_output_has_changed() {
        let dir = tempfile::tempdir().expect("a directory");
        let (folder, path) = (MaskedFolder::of_test(dir.path()), dir.path().join(journal::JOURNAL_FILE));
        let mut events = EventsWriter::create(dir.path()).expect("events");
        let output = "\x1b[2;3Hmenu\x1b[31m ".repeat(10_000);
        std::fs::write(&path, &output).expect("written");
        let reader = || Reader::open(dir.path(), journal::Masks::default()).expect("readable");
        let mut drawn = DrawnScreen::new(20, 5, 0);
        let (handovers, runs, to) = (RecentHandovers::default(), Vec::new(), output.len() as u64 - 3);
        drawn.draw(&DrawnOutput { folder: &folder, reader: &reader(), handovers, runs }, to, u64::MAX);
        assert!(load(&folder, &reader(), (20, 5)).is_none());
        store(&folder, &reader(), &mut drawn).expect("stored");

        let known = || load(&folder, &reader(), (20, 5)).map(|mut known| (known.at, known.screen.ansi()));
        assert_eq!(known(), Some((to, drawn.screen.ansi())));
        assert!(load(&folder, &reader(), (20, 6)).is_none(), "another size");
        let sound = folder.screen().expect("there");
        for at in (0..sound.len()).step_by(7) {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            folder.write_screen(&damaged).expect("written");
            assert_eq!(known(), None, "byte {at} is damaged");
            folder.write_screen(&sound[..at]).expect("written");
            assert_eq!(known(), None, "it ends at byte {at}");
        }
        folder.write_screen(&sound).expect("written");
        std::fs::write(&path, output.replace("menu", "MENU")).expect("written");
        assert_eq!(known(), None, "other output");
        std::fs::write(&path, &output[..output.len() / 2]).expect("written");
        assert_eq!(known(), None, "output was cut off");
        std::fs::write(&path, &output).expect("written");
        assert!(known().is_some());
        events.publish_first(journal::Offset(to + 1)).expect("published");
        assert_eq!(known(), None, "its output was given up");
        events.release().expect("released");
    }
}
