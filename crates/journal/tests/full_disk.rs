//! A full disk loses nothing silently, and leaves room for a session's last records.

use journal::{EndReason, EventsReader, EventsWriter, Kind, Masks, Offset, Read, Reader, Record, Retention, Writer};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

#[path = "../../e2e/src/not_run.rs"]
#[allow(dead_code, reason = "the tests of the whole program use all of it")]
mod not_run;

/// The variable under which a test, run again in its own mount namespace, finds its small disk.
const SMALL_DISK: &str = "JOURNAL_TEST_SMALL_DISK";

/// Runs `body` on a disk of 256 KiB: the test runs itself again where it may mount one, and prints why when it may not.
fn on_a_small_disk(test: &str, body: impl FnOnce(&Path)) {
    if let Some(disk) = std::env::var_os(SMALL_DISK) {
        return body(Path::new(&disk));
    }
    let script = r#"mount -t tmpfs -o size=256k,huge=never small "$0" || exit 77; exec "$@""#;
    let disk = tempfile::TempDir::new().unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(disk.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(SMALL_DISK, disk.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let could_not_mount = output.status.code() == Some(77) || said.contains("unshare");
            assert!(could_not_mount, "{said}");
            not_run::not_run(format!("this machine lets a test mount nothing: {said}"));
        }
        Err(error) => not_run::not_run(format!("there is no `unshare` to mount a small disk with: {error}")),
    }
}

fn fill(dir: &Path) {
    let mut file = fs::File::create(dir.join("ballast")).unwrap();
    let error = loop {
        if let Err(error) = io::Write::write_all(&mut file, &[1; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
// promise: disk-1
fn a_full_disk_takes_what_fits_and_the_rest_continues_where_it_stopped() {
    on_a_small_disk("a_full_disk_takes_what_fits_and_the_rest_continues_where_it_stopped", |disk| {
        let mut writer = Writer::create(disk, Retention::UNLIMITED).unwrap();
        let _events = EventsWriter::create(disk).unwrap();
        let ballast = disk.join("ballast");
        fs::write(&ballast, vec![0; 64 << 10]).unwrap();
        let bytes: Vec<u8> = (0..200u32 << 10).map(|i| (i % 251) as u8).collect();

        let taken = writer.append(&bytes).unwrap();
        assert!(taken > 0 && taken < bytes.len());
        assert_eq!(writer.end(), Offset(taken as u64));
        let error = writer.append(&bytes[taken..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);

        fs::remove_file(&ballast).unwrap();
        let rest = bytes.len() - taken;
        assert_eq!(writer.append(&bytes[taken..]).unwrap(), rest.min(64 << 10));
        let mut found = vec![0; bytes.len()];
        let read = Reader::open(disk, Masks::default()).unwrap().read(Offset::ZERO, writer.end(), &mut found).unwrap();
        let whole = writer.end().0 as usize;
        assert_eq!(read, Read::Bytes(whole));
        assert_eq!(found[..whole], bytes[..whole]);
    });
}

#[test]
// promise: disk-1
fn last_words_fit_on_a_disk_that_is_full_and_other_events_leave_them_room() {
    on_a_small_disk("last_words_fit_on_a_disk_that_is_full_and_other_events_leave_them_room", |disk| {
        let mut events = EventsWriter::create(disk).unwrap();
        assert_eq!(events.reserve_error(), None);
        fill(disk);

        let mut accepted = 0;
        let refused = loop {
            match events.append(Kind::ACCEPTED, 1, Offset(0), &[&[b'x'; 1000]]) {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        assert!(accepted > 0, "what is reserved ahead is used first");
        assert_eq!(events.reserve_error(), Some(Errno::NOSPC));

        let ending = Record::Ending { reason: EndReason::FORCED, text: &[b'w'; 8000] };
        let exited = Record::Exited { wait_status: 9, end: Offset(5), dropped_records: 0, left: 0, names: b"" };
        events.record(2, Offset(5), &ending).unwrap();
        let end = events.record(2, Offset(5), &exited).unwrap();
        let mut reader = EventsReader::open(disk, Masks::default()).unwrap();
        let found: Vec<_> = std::iter::from_fn(|| reader.next(end).unwrap()).collect();
        assert_eq!(found.len(), accepted + 2);
        assert_eq!(found.last().unwrap().record(), Some(exited));
    });
}

#[test]
fn a_record_torn_by_a_full_disk_leaves_nothing_that_reads_as_a_record() {
    on_a_small_disk("a_record_torn_by_a_full_disk_leaves_nothing_that_reads_as_a_record", |disk| {
        // A command's text that holds a whole record: the bytes a forger would want to be left standing.
        let forged = {
            let mut other = EventsWriter::create(&made(disk, "other")).unwrap();
            other.append(Kind::EXITED, 0, Offset(0), &[&[0; 20]]).unwrap();
            other.release().unwrap();
            fs::read(disk.join("other/events")).unwrap()[64..].to_vec()
        };
        let here = made(disk, "here");
        let mut events = EventsWriter::create(&here).unwrap();
        fill(disk);
        let before = events.end();
        // A last word may use all room there is, and this one wants more than that.
        let text = forged.repeat((256 << 10) / forged.len());
        let error = events.append(Kind::TROUBLE, 1, Offset(0), &[&text]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(fs::metadata(here.join("events")).unwrap().len() > before, "it was torn, not refused");

        // Exactly as long as what stood before the first forged record, so that it would be read next.
        let end = events.append(Kind::EXITED, 2, Offset(0), &[&[]]).unwrap();
        assert_eq!(end, before + 25);
        let mut reader = EventsReader::open(&here, Masks::default()).unwrap();
        let size = reader.len().unwrap();
        assert_eq!(reader.next(size).unwrap().map(|event| event.kind), Some(Kind::EXITED));
        assert_eq!(reader.next(size).unwrap(), None);
        assert!(size > reader.at(), "what was torn is still in the file");
        assert_eq!(reader.damaged_at(size).unwrap(), None);
    });
}

fn made(disk: &Path, name: &str) -> std::path::PathBuf {
    let dir = disk.join(name);
    fs::create_dir(&dir).unwrap();
    dir
}

#[test]
fn room_is_reserved_ahead_without_showing_in_the_size_and_given_back_at_the_end() {
    let dir = tempfile::TempDir::new().unwrap();
    let mut events = EventsWriter::create(dir.path()).unwrap();
    if let Some(errno) = events.reserve_error() {
        return not_run::not_run(format!("this file system reserves nothing: {errno}"));
    }
    let file = || fs::metadata(dir.path().join("events")).unwrap();
    assert_eq!(file().len(), 64);
    assert!(file().blocks() * 512 >= 64 << 10);
    for _ in 0..100 {
        events.append(Kind::ATTESTED, 1, Offset(0), &[&[b'x'; 1000]]).unwrap();
        assert!(file().blocks() * 512 >= events.end() + (16 << 10));
    }
    assert_eq!(file().len(), events.end());

    events.release().unwrap();
    assert_eq!(file().len(), events.end());
    assert!(file().blocks() * 512 < events.end() + (8 << 10));
}
