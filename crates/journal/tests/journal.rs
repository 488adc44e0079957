//! The journal against a plain vector of bytes, and against readers who race with the one who frees its beginning.

use journal::{EventsWriter, Masks, Offset, Read, Reader, Retained, Retention, Writer};
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

const BLOCK: u64 = 4096;

/// A byte that identifies its position, and is never the zero of a hole.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8 | 1
}

fn bytes_at(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(byte_at).collect()
}

fn session(retention: Retention) -> (TempDir, Writer, EventsWriter) {
    let dir = TempDir::new().unwrap();
    let writer = Writer::create(dir.path(), retention).unwrap();
    let events = EventsWriter::create(dir.path()).unwrap();
    (dir, writer, events)
}

fn blocks_of(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(dir.join("journal")).unwrap().blocks() * 512
}

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u8>),
    Splice(Vec<u8>),
    Retain { keep_from: u64 },
    Read { at: u64, size: usize },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..9000);
    prop_oneof![
        4 => bytes().prop_map(Step::Append),
        2 => bytes().prop_map(Step::Splice),
        2 => (0..100_000u64).prop_map(|keep_from| Step::Retain { keep_from }),
        4 => (0..100_000u64, 0..9000usize).prop_map(|(at, size)| Step::Read { at, size }),
        1 => Just(Step::Reopen),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_journal_reads_like_a_vector_of_its_bytes(steps in prop::collection::vec(step(), 1..40)) {
        let retention = Retention { bytes_max: 3 * BLOCK, slack_bytes: BLOCK };
        let (dir, mut writer, mut events) = session(retention);
        let mut reader = Reader::open(dir.path(), Masks::default()).unwrap();
        let mut model = Vec::new();
        let mut first = 0u64;
        for step in steps {
            match step {
                Step::Append(bytes) => {
                    prop_assert_eq!(writer.append(&bytes).unwrap(), bytes.len());
                    model.extend(bytes);
                }
                Step::Splice(bytes) => {
                    let n = rustix::io::pwrite(writer.fd(), &bytes, writer.end().0).unwrap();
                    writer.advance(n as u64);
                    model.extend(bytes);
                }
                Step::Retain { keep_from } => {
                    let end = model.len() as u64;
                    let oldest = end.saturating_sub(retention.bytes_max).min(keep_from) / BLOCK * BLOCK;
                    let expected = if end - first > 4 * BLOCK && oldest > first {
                        first = oldest;
                        Retained::From(Offset(oldest))
                    } else {
                        Retained::All
                    };
                    prop_assert_eq!(writer.retain(&events, Offset(keep_from)).unwrap(), expected);
                }
                Step::Read { at, size } => {
                    let limit = model.len() as u64;
                    let mut buf = vec![0; size];
                    let read = reader.read(Offset(at), Offset(limit), &mut buf).unwrap();
                    if at >= limit {
                        prop_assert_eq!(read, Read::End);
                    } else if at < first {
                        prop_assert_eq!(read, Read::Gap { from: Offset(at), to: Offset(first) });
                    } else {
                        let n = size.min((limit - at) as usize);
                        prop_assert_eq!(read, Read::Bytes(n));
                        prop_assert_eq!(&buf[..n], &model[at as usize..][..n]);
                    }
                }
                Step::Reopen => {
                    events = EventsWriter::open(dir.path()).unwrap();
                    writer = Writer::open(dir.path(), &events, retention).unwrap();
                    // The writer may punch a given-up part once more, so that the next answer is the model's again.
                    writer.retain(&events, Offset::ZERO).unwrap();
                    reader = Reader::open(dir.path(), Masks::default()).unwrap();
                }
            }
            prop_assert_eq!(writer.end(), Offset(model.len() as u64));
            prop_assert_eq!((writer.first(), reader.first().unwrap()), (Offset(first), Offset(first)));
            prop_assert_eq!(reader.len().unwrap(), writer.end());
            // At the edge of what is kept, which no offset at random hits.
            for at in [first.saturating_sub(1), first] {
                let (kept, mut byte) = (model.get(at as usize), [0; 1]);
                let expected = match kept {
                    _ if at < first => Read::Gap { from: Offset(at), to: Offset(first) },
                    Some(_) => Read::Bytes(1),
                    None => Read::End,
                };
                prop_assert_eq!(reader.read(Offset(at), writer.end(), &mut byte).unwrap(), expected);
                prop_assert!(at < first || kept.is_none_or(|kept| *kept == byte[0]));
            }
        }
    }
}

#[test]
// promise: output-6
fn a_reader_that_races_with_retention_sees_bytes_or_gaps_and_never_zeros() {
    const END: u64 = 16 << 20;
    let (dir, mut writer, events) = session(Retention { bytes_max: 16 * BLOCK, slack_bytes: BLOCK });
    let tail = AtomicU64::new(0);
    let reader = Reader::open(dir.path(), Masks::default()).unwrap();
    let (mut bytes_seen, mut gaps_seen) = (0u64, 0u64);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let mut at = 0;
            while at < END {
                at += writer.append(&bytes_at(at..at + 3000)).unwrap() as u64;
                tail.store(at, Ordering::Release);
                writer.retain(&events, Offset(at)).unwrap();
            }
        });
        let mut at = Offset::ZERO;
        let mut buf = vec![0; 32 << 10];
        // Late for the first bytes, however fast it is afterwards.
        while tail.load(Ordering::Acquire) < END / 8 {
            std::thread::yield_now();
        }
        while at.0 < END {
            let limit = Offset(tail.load(Ordering::Acquire));
            match reader.read(at, limit, &mut buf).unwrap() {
                Read::Bytes(n) => {
                    assert_eq!(buf[..n], bytes_at(at.0..at.0 + n as u64));
                    bytes_seen += n as u64;
                    at = at.plus(n as u64);
                }
                Read::Gap { from, to } => {
                    assert_eq!(from, at);
                    assert!(to > from, "a gap goes forward");
                    gaps_seen += 1;
                    at = to;
                }
                cut @ Read::Cut { .. } => panic!("{cut:?}"),
                Read::End => {
                    // A holder that failed would leave this loop without an end.
                    assert!(!holder.is_finished() || tail.load(Ordering::Acquire) >= END);
                    std::thread::yield_now();
                }
            }
        }
    });
    assert!(bytes_seen > 0 && gaps_seen > 0, "the race took place");
}

#[test]
// promise: output-7
fn freed_output_leaves_the_disk_and_the_rest_keeps_its_offsets() {
    let (dir, mut writer, events) = session(Retention { bytes_max: 1 << 20, slack_bytes: 1 << 20 });
    let total = 5u64 << 20;
    assert_eq!(writer.append(&bytes_at(0..total)).unwrap() as u64, total);
    let retained = writer.retain(&events, writer.end()).unwrap();

    let first = Offset(4 << 20);
    assert_eq!(retained, Retained::From(first));
    writer.sync().unwrap();
    assert!(blocks_of(dir.path()) <= (1 << 20) + BLOCK);
    let reader = Reader::open(dir.path(), Masks::default()).unwrap();
    let mut buf = vec![0; 1 << 20];
    assert_eq!(reader.read(first, Offset(total), &mut buf).unwrap(), Read::Bytes(1 << 20));
    assert_eq!(buf, bytes_at(first.0..total));
}

#[test]
// promise: output-6
fn a_journal_that_another_process_cuts_continues_at_its_offsets_and_reads_as_a_gap() {
    for cut_to in [0, 100, 2 * BLOCK] {
        let (dir, mut writer, mut events) = session(Retention::UNLIMITED);
        let (end, new_end) = (Offset(3 * BLOCK + 10), Offset(3 * BLOCK + 20));
        writer.append(&bytes_at(0..end.0)).unwrap();
        assert!(!writer.is_cut());
        let reader = Reader::open(dir.path(), Masks::default()).unwrap();
        let file = std::fs::File::options().write(true).open(dir.path().join("journal")).unwrap();
        file.set_len(cut_to).unwrap();

        let mut buf = [0; 64];
        let missing = Read::Cut { from: Offset(cut_to), to: end };
        assert_eq!(reader.read(Offset(cut_to), end, &mut buf).unwrap(), missing);
        assert!(writer.is_cut());
        writer.give_up(&events).unwrap();
        assert_eq!((writer.first(), writer.end(), writer.is_cut()), (end, end, false));
        writer.append(&bytes_at(end.0..new_end.0)).unwrap();
        assert!(!writer.is_cut());
        assert_eq!(writer.newest(&mut buf).unwrap(), bytes_at(end.0..new_end.0));
        for is_retained in [false, true] {
            if is_retained {
                assert_eq!(writer.retain(&events, end).unwrap(), Retained::From(end));
            }
            for reader in [&reader, &Reader::open(dir.path(), Masks::default()).unwrap()] {
                assert_eq!(reader.first().unwrap(), end);
                assert_eq!(reader.read(Offset(0), new_end, &mut buf).unwrap(), Read::Gap { from: Offset(0), to: end });
                assert_eq!(reader.read(end, new_end, &mut buf).unwrap(), Read::Bytes(10));
                assert_eq!(buf[..10], bytes_at(end.0..new_end.0));
            }
        }
        events = EventsWriter::open(dir.path()).unwrap();
        writer = Writer::open(dir.path(), &events, Retention::UNLIMITED).unwrap();
        assert_eq!((writer.first(), writer.end()), (end, new_end));
    }
}

#[test]
fn a_punch_that_outlived_its_header_in_a_machine_crash_still_reads_as_a_gap() {
    let (dir, mut writer, events) = session(Retention { bytes_max: 4 * BLOCK, slack_bytes: 0 });
    writer.append(&bytes_at(0..16 * BLOCK)).unwrap();
    writer.retain(&events, writer.end()).unwrap();
    events.publish_first(Offset(BLOCK)).unwrap();

    let reader = Reader::open(dir.path(), Masks::default()).unwrap();
    assert_eq!(reader.first().unwrap(), Offset(12 * BLOCK));
    let reopened = Writer::open(dir.path(), &events, Retention::UNLIMITED).unwrap();
    assert_eq!(reopened.first(), Offset(12 * BLOCK));
}

#[test]
fn a_journal_whose_events_have_a_damaged_header_gives_bytes_or_gaps_and_never_zeros() {
    let (dir, mut writer, events) = session(Retention { bytes_max: 4 * BLOCK, slack_bytes: 0 });
    let reader = Reader::open_alone(dir.path(), Masks::default()).unwrap();
    let mut buffer = [0; 16];
    for written in [0..4 * BLOCK, 4 * BLOCK..16 * BLOCK] {
        writer.append(&bytes_at(written)).unwrap();
        writer.retain(&events, writer.end()).unwrap();
        let first = writer.first();
        assert_eq!(reader.first().unwrap(), first);
        assert_eq!(reader.read(first, writer.end(), &mut buffer).unwrap(), Read::Bytes(16));
        assert_eq!(buffer[..], bytes_at(first.0..first.0 + 16)[..]);
    }
    let gap = Read::Gap { from: Offset(0), to: Offset(12 * BLOCK) };
    assert_eq!(reader.read(Offset(0), writer.end(), &mut buffer).unwrap(), gap);
}

#[test]
fn a_reader_never_looks_past_the_published_tail() {
    let (dir, mut writer, _events) = session(Retention::UNLIMITED);
    writer.append(b"published, not yet").unwrap();
    let reader = Reader::open(dir.path(), Masks::default()).unwrap();
    let mut buf = [0; 64];
    assert_eq!(reader.read(Offset::ZERO, Offset(9), &mut buf).unwrap(), Read::Bytes(9));
    assert_eq!(&buf[..10], b"published\0");
    assert_eq!(reader.read(Offset(9), Offset(9), &mut buf).unwrap(), Read::End);
}

#[test]
fn a_session_is_made_once_and_only_its_user_may_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let (dir, _writer, _events) = session(Retention::UNLIMITED);
    for file in ["journal", "events"] {
        let mode = std::fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    let again = Writer::create(dir.path(), Retention::UNLIMITED).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
    let again = EventsWriter::create(dir.path()).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AlreadyExists);
}
