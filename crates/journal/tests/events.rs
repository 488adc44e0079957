//! Event records are there completely or not at all, whatever happens to the file, and all kinds are decoded as they
//! were written.

use journal::{EndReason, Event, EventsReader, EventsWriter, Kind, Masks, Offset, Record, TroubleKind};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const HEADER_BYTES: usize = 64;

fn read_all(dir: &Path) -> Vec<Event> {
    let mut reader = EventsReader::open(dir, Masks::default()).unwrap();
    let size = reader.len().unwrap();
    std::iter::from_fn(|| reader.next(size).unwrap()).collect()
}

fn every_record() -> Vec<Record<'static>> {
    vec![
        Record::Started { holder_pid: 1, shell_pid: 2, cols: 80, rows: 24 },
        Record::Accepted { id: 7, nonce: 1 << 60, key: [9; 16], text: b"echo \"a!b\"" },
        Record::Attested { report: b"D;secret;nonce;0;0 1;/tmp" },
        Record::Resized { cols: 132, rows: 43 },
        Record::Input { key: [3; 16], len: 5, ends: 1, is_secret: false, bytes: b"John\n" },
        Record::Answered { query: Offset(99) },
        Record::Exited { wait_status: 0x300, end: Offset(1 << 40), dropped_records: 4, left: 2, names: b"node (7)" },
        Record::Trouble { what: TroubleKind::DISK_FULL, errno: 28, text: b"no room" },
        Record::Ending { reason: EndReason::ASKED, text: b"by its owner" },
        Record::Retained { first: Offset(1 << 20) },
        Record::Signalled { target: -42, signo: 2, errno: 0 },
        Record::Limited { limit: 3, command: 7, count: 1 << 33 },
        Record::Typed { id: 1_000_001, is_inside: true, nonce: 1 << 50, key: [8; 16], text: b"1 + 1" },
        Record::Judged {
            command: 7,
            status: 1,
            boundary: 2,
            is_hookless: true,
            end: Offset(1 << 41),
            time_us: 1 << 51,
            why: b"the hooks are gone",
        },
        Record::ClockSet { by_us: -3_600_000_000 },
    ]
}

#[test]
fn every_record_is_read_as_it_was_written() {
    let dir = TempDir::new().unwrap();
    let mut writer = EventsWriter::create(dir.path()).unwrap();
    for (i, record) in (0..).zip(&every_record()) {
        writer.record(1000 + i, Offset(i), record).unwrap();
    }

    let events = read_all(dir.path());
    let records: Vec<_> = events.iter().map(|event| event.record().unwrap()).collect();
    assert_eq!(records, every_record());
    let kinds: Vec<_> = events.iter().map(|event| event.kind.0).collect();
    assert_eq!(kinds, (1..=15).collect::<Vec<u8>>());
    let places: Vec<_> = events.iter().map(|event| (event.time_us, event.offset)).collect();
    assert_eq!(places, (0..15).map(|i| (1000 + i, Offset(i))).collect::<Vec<_>>());
    assert_eq!(events.last().unwrap().end, writer.end());
}

#[test]
fn the_format_is_the_one_that_is_written_down() {
    let dir = TempDir::new().unwrap();
    let mut writer = EventsWriter::create(dir.path()).unwrap();
    writer.publish_first(Offset(0x0102)).unwrap();
    writer.record(3, Offset(4), &Record::Resized { cols: 80, rows: 24 }).unwrap();

    let mut expected = b"ptydevnt\x01\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\xfd\xfe\xff\xff\xff\xff\xff\xff".to_vec();
    expected.resize(HEADER_BYTES, 0);
    let body = b"\x04\x03\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x50\0\x18\0";
    expected.extend(21u32.to_le_bytes());
    expected.extend(crc32fast::hash(body).to_le_bytes());
    expected.extend(body);
    assert_eq!(fs::read(dir.path().join("events")).unwrap(), expected);
}

#[test]
// promise: send-6
fn secret_input_is_omitted_even_when_a_caller_hands_it_over() {
    let dir = TempDir::new().unwrap();
    let mut writer = EventsWriter::create(dir.path()).unwrap();
    let typed = Record::Input { key: [0; 16], len: 7, ends: 0, is_secret: true, bytes: b"hunter2" };
    writer.record(1, Offset::ZERO, &typed).unwrap();

    let events = read_all(dir.path());
    let kept = Record::Input { key: [0; 16], len: 7, ends: 0, is_secret: true, bytes: b"" };
    assert_eq!(events[0].record(), Some(kept));
    let file = fs::read(dir.path().join("events")).unwrap();
    assert!(!file.windows(7).any(|bytes| bytes == b"hunter2"));
}

#[test]
fn unknown_kinds_and_longer_payloads_of_a_newer_holder_are_read() {
    let dir = TempDir::new().unwrap();
    let mut writer = EventsWriter::create(dir.path()).unwrap();
    writer.append(Kind(200), 1, Offset(2), &[b"new", b"er"]).unwrap();
    writer.append(Kind::RESIZED, 1, Offset(2), &[&[80, 0, 24, 0], b"pixels"]).unwrap();
    writer.append(Kind::RESIZED, 1, Offset(2), &[&[80, 0, 24]]).unwrap();

    let events = read_all(dir.path());
    let unknown = Event { kind: Kind(200), time_us: 1, offset: Offset(2), payload: b"newer".to_vec(), at: 64, end: 94 };
    assert_eq!(events[0], unknown);
    let records: Vec<_> = events.iter().map(Event::record).collect();
    assert_eq!(records, [None, Some(Record::Resized { cols: 80, rows: 24 }), None]);
}

#[test]
fn a_reader_stops_at_the_published_end_and_continues_when_it_moves() {
    let dir = TempDir::new().unwrap();
    let mut writer = EventsWriter::create(dir.path()).unwrap();
    let published = writer.append(Kind(1), 1, Offset(1), &[b"one"]).unwrap();
    let end = writer.append(Kind(2), 2, Offset(2), &[b"two"]).unwrap();

    let mut reader = EventsReader::open(dir.path(), Masks::default()).unwrap();
    assert_eq!(reader.next(published).unwrap().unwrap().payload, b"one");
    assert_eq!(reader.next(published).unwrap(), None);
    assert_eq!(reader.next(end - 1).unwrap(), None);
    assert_eq!(reader.next(end).unwrap().unwrap().payload, b"two");
    assert_eq!((reader.next(end).unwrap(), reader.at()), (None, end));
}

#[test]
fn a_file_that_is_not_an_events_file_is_refused() {
    let dir = TempDir::new().unwrap();
    EventsWriter::create(dir.path()).unwrap();
    let path = dir.path().join("events");
    for (at, what) in [(0, "not an events file"), (8, "version"), (20, "header is damaged")] {
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 0x40;
        let other = TempDir::new().unwrap();
        fs::write(other.path().join("events"), &bytes).unwrap();
        fs::write(other.path().join("journal"), b"").unwrap();
        let error = journal::Reader::open(other.path(), Masks::default()).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn a_record_with_too_many_parts_is_refused_and_the_file_stays_as_it_was() {
    let dir = TempDir::new().unwrap();
    let mut writer = EventsWriter::create(dir.path()).unwrap();
    let error = writer.append(Kind(1), 0, Offset::ZERO, &[b"x" as &[u8]; 8]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!((writer.end(), read_all(dir.path())), (64, vec![]));
}

fn payloads() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8)
}

/// Writes the payloads as records and says where each of them ends.
fn write_all(dir: &Path, payloads: &[Vec<u8>]) -> Vec<usize> {
    let mut writer = EventsWriter::create(dir).unwrap();
    payloads.iter().map(|payload| writer.append(Kind(9), 5, Offset(6), &[payload]).unwrap() as usize).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    // promise: damage-1
    fn a_file_cut_anywhere_keeps_exactly_its_whole_records_and_continues(payloads in payloads(), cut in any::<prop::sample::Index>()) {
        let dir = TempDir::new().unwrap();
        let ends = write_all(dir.path(), &payloads);
        let path = dir.path().join("events");
        let cut = HEADER_BYTES + cut.index(ends.last().unwrap() - HEADER_BYTES + 1);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(cut as u64).unwrap();

        let whole = ends.iter().filter(|end| **end <= cut).count();
        let mut expected = payloads[..whole].to_vec();
        let found: Vec<_> = read_all(dir.path()).into_iter().map(|event| event.payload).collect();
        prop_assert_eq!(&found, &expected);

        let mut writer = EventsWriter::open(dir.path()).unwrap();
        let whole_end = ends[..whole].last().copied().unwrap_or(HEADER_BYTES);
        prop_assert_eq!(fs::metadata(&path).unwrap().len(), whole_end as u64);
        writer.append(Kind(9), 5, Offset(6), &[b"after"]).unwrap();
        expected.push(b"after".to_vec());
        let found: Vec<_> = read_all(dir.path()).into_iter().map(|event| event.payload).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    // promise: damage-1
    fn a_flipped_bit_ends_the_file_before_its_record(payloads in payloads(), bit in any::<prop::sample::Index>()) {
        let dir = TempDir::new().unwrap();
        let ends = write_all(dir.path(), &payloads);
        let path = dir.path().join("events");
        let mut bytes = fs::read(&path).unwrap();
        let bit = bit.index((bytes.len() - HEADER_BYTES) * 8);
        let at = HEADER_BYTES + bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        fs::write(&path, &bytes).unwrap();

        let whole = ends.iter().filter(|end| **end <= at).count();
        let found: Vec<_> = read_all(dir.path()).into_iter().map(|event| event.payload).collect();
        prop_assert_eq!(&found[..], &payloads[..whole]);
        let mut reader = EventsReader::open(dir.path(), Masks::default()).unwrap();
        let size = reader.len().unwrap();
        while reader.next(size).unwrap().is_some() {}
        let damaged_at = ends[..whole].last().copied().unwrap_or(HEADER_BYTES) as u64;
        prop_assert_eq!(reader.damaged_at(size).unwrap(), Some(damaged_at));
        EventsWriter::open(dir.path()).unwrap();
        prop_assert_eq!(fs::metadata(&path).unwrap().len(), ends[..whole].last().copied().unwrap_or(HEADER_BYTES) as u64);
    }
}
