//! Masks against a journal that grows in pieces and is read in others: never more than three bytes of a text are shown.

use journal::{EventsReader, EventsWriter, Masks, Offset, Read, Reader, Record};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::ops::Range;
use tempfile::TempDir;

/// A random number generator that repeats itself (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> Vec<u8> {
        (0..length).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }
}

/// A journal whose file this test writes itself.
struct Folder {
    dir: TempDir,
    journal: File,
    events: EventsWriter,
}

impl Folder {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let events = EventsWriter::create(dir.path()).unwrap();
        let journal = OpenOptions::new().append(true).create(true).open(dir.path().join("journal")).unwrap();
        Self { dir, journal, events }
    }

    fn masked(&self, texts: &[Vec<u8>]) -> Reader {
        Reader::open(self.dir.path(), Masks::new(texts.iter().cloned())).unwrap()
    }

    fn begin_anew(&mut self) {
        self.journal.set_len(0).unwrap();
        self.events.publish_first(Offset::ZERO).unwrap();
    }
}

fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Texts as the masks look for them: without line ends, and long enough then.
fn joined(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let joined = texts.iter().map(|text| text.iter().copied().filter(|byte| !is_line_end(byte)).collect());
    joined.filter(|text: &Vec<u8>| text.len() >= 8).collect()
}

/// Where these texts are over at most twice their length, one within another and overlapping ones included.
fn places(bytes: &[u8], texts: &[Vec<u8>]) -> Vec<Range<usize>> {
    let letters: Vec<usize> = (0..bytes.len()).filter(|at| !is_line_end(&bytes[*at])).collect();
    let all = (0..letters.len()).flat_map(|from| texts.iter().map(move |text| (from, text)));
    let equal = all.filter_map(|(from, text)| {
        let at = letters.get(from..from + text.len())?;
        let span = at[0]..at[text.len() - 1] + 1;
        (at.iter().map(|at| bytes[*at]).eq(text.iter().copied()) && span.len() <= 2 * text.len()).then_some(span)
    });
    equal.collect()
}

/// Where a text may have begun that goes on behind the end.
fn begun(bytes: &[u8], texts: &[Vec<u8>]) -> Option<usize> {
    let letters = |at: usize| bytes[at..].iter().copied().filter(|byte| !is_line_end(byte));
    let begun = |at: &usize, text: &Vec<u8>| {
        let count = letters(*at).count();
        (4..text.len()).contains(&count)
            && bytes.len() - at < 2 * text.len()
            && letters(*at).eq(text[..count].iter().copied())
    };
    let places = (0..bytes.len()).filter(|at| !is_line_end(&bytes[*at]));
    places.into_iter().find(|at| texts.iter().any(|text| begun(at, text)))
}

/// Line ends stay.
fn is_masked(byte: &u8) -> bool {
    *byte == b'*' || is_line_end(byte)
}

fn mask(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !is_masked(byte)).for_each(|byte| *byte = b'*');
}

fn read(reader: &Reader, at: usize, limit: usize, most: usize) -> Option<Vec<u8>> {
    let mut page = vec![0; most];
    match reader.read(Offset(at as u64), Offset(limit as u64), &mut page).unwrap() {
        Read::Bytes(n) => page.truncate(n),
        Read::Gap { .. } | Read::Cut { .. } | Read::End => return None,
    }
    Some(page)
}

/// Reads up to here in pages of random sizes.
fn follow(random: &mut Random, reader: &Reader, shown: &mut Vec<u8>, limit: usize) {
    while shown.len() < limit && random.below(8) > 0 {
        let most = 1 + random.below(24);
        shown.extend(read(reader, shown.len(), limit, most).expect("it is written"));
    }
}

#[test]
// promise: secret-1
fn a_masked_text_is_never_shown_wherever_output_and_pages_are_cut() {
    let mut random = Random(0x5eed_0f5e_c7e7);
    let mut folder = Folder::new();
    let (mut cut, mut broken) = (0, 0);
    for case in 0..10_000 {
        folder.begin_anew();
        // Few letters, so that texts overlap themselves, each other, and what is not text.
        let alphabet: &[u8] = match case % 4 {
            0 => b"ab",
            1 => b"aabb\n",
            _ => b"abcdefghijklmnopqrstuvwxyz0123456789\r\n\x1b",
        };
        let texts: Vec<_> = (0..1 + random.below(3))
            .map(|_| {
                let length = 8 + random.below(12);
                random.text(alphabet, length)
            })
            .collect();
        let mut output = Vec::new();
        for _ in 0..1 + random.below(4) {
            let noise = random.below(30);
            output.extend(random.text(alphabet, noise));
            let text = &texts[random.below(texts.len())];
            // Sometimes only the beginning of one.
            let whole = if random.below(4) == 0 { random.below(text.len()) } else { text.len() };
            // Sometimes with line ends in it.
            let often = if random.below(2) == 0 { 2 + random.below(8) } else { usize::MAX };
            for byte in &text[..whole] {
                output.push(*byte);
                if random.below(often) == 1 {
                    output.extend([&b"\r\n"[..], b"\n"][random.below(2)]);
                }
            }
        }
        let noise = random.below(20);
        output.extend(random.text(alphabet, noise));
        let reader = folder.masked(&texts);
        let (mut written, mut shown) = (0, Vec::new());
        while written < output.len() {
            let chunk = (1 + random.below(16)).min(output.len() - written);
            folder.journal.write_all(&output[written..written + chunk]).unwrap();
            written += chunk;
            // The published tail may be behind the file.
            let limit = shown.len().max(written - random.below(3).min(written));
            follow(&mut random, &reader, &mut shown, limit);
        }
        while shown.len() < output.len() {
            follow(&mut random, &reader, &mut shown, output.len());
        }
        let mut expected = output.clone();
        let texts = joined(&texts);
        for place in places(&output, &texts) {
            broken += usize::from(output[place.clone()].iter().any(is_line_end));
            let letters: Vec<u8> = shown[place.clone()].iter().copied().filter(|byte| !is_line_end(byte)).collect();
            let (begun, rest) = letters.split_at(3);
            cut += usize::from(!begun.iter().all(is_masked));
            assert!(rest.iter().all(is_masked), "case {case}: more than three bytes of a text are shown");
            mask(&mut expected[place]);
        }
        assert!(shown.iter().zip(&output).all(|(shown, byte)| shown == byte || *shown == b'*'), "case {case}");
        // Nothing is masked that is not a text, but for the beginning of one at the very end.
        if let Some(at) = begun(&output, &texts) {
            mask(&mut expected[at..]);
        }
        assert_eq!(
            read(&reader, 0, output.len(), 4096),
            Some(expected.clone()).filter(|e| !e.is_empty()),
            "case {case}"
        );
        // Any page of it is the same bytes.
        let at = random.below(output.len().max(1));
        let most = 1 + random.below(20);
        let page = read(&reader, at, output.len(), most).unwrap_or_default();
        assert_eq!(page, expected[at.min(expected.len())..(at + most).min(expected.len())], "case {case}");
    }
    assert!(cut > 0, "no text was cut where only three bytes of it were there");
    assert!(broken > 1000, "only {broken} texts had line ends");
}

#[test]
// promise: secret-1
fn the_rest_of_a_text_whose_beginning_is_no_longer_kept_is_masked() {
    let mut folder = Folder::new();
    let text = b"hunter2-the-secret".to_vec();
    let reader = folder.masked(std::slice::from_ref(&text));
    folder.journal.write_all(b"zeros:hunter2-the-secret and more").unwrap();
    for first in 1..40 {
        folder.events.publish_first(Offset(first)).unwrap();
        let at = first as usize;
        let shown = read(&reader, at, 33, 64).unwrap_or_default();
        let whole: &[u8] = b"zeros:****************** and more";
        let few = (21..24).contains(&at);
        let expected =
            if few { &b"zeros:hunter2-the-secret and more"[at..] } else { whole.get(at..).unwrap_or_default() };
        assert_eq!(String::from_utf8_lossy(&shown), String::from_utf8_lossy(expected), "{first}");
    }
    assert_eq!(reader.read(Offset(0), Offset(33), &mut [0; 8]).unwrap(), Read::Gap { from: Offset(0), to: Offset(33) });
}

#[test]
// promise: secret-1
fn texts_in_records_are_masked_and_other_fields_stay() {
    let mut folder = Folder::new();
    let record = Record::Accepted { id: 7, nonce: 77, key: [1; 16], text: b"curl -H sesame-open-now x; sesame-o" };
    folder.events.record(5, Offset(9), &record).unwrap();
    let masks = Masks::new([b"sesame-open-now".to_vec(), b"short".to_vec()]);
    let mut events = EventsReader::open(folder.dir.path(), masks).unwrap();
    let event = events.next(u64::MAX).unwrap().unwrap();
    let masked = Record::Accepted { id: 7, nonce: 77, key: [1; 16], text: b"curl -H *************** x; sesame-o" };
    assert_eq!((event.record(), event.time_us, event.offset), (Some(masked), 5, Offset(9)));
    assert!(Masks::new([b"short".to_vec()]).is_none());
}

#[test]
// promise: secret-1
fn long_texts_of_equal_bytes_and_many_line_ends_are_masked_quickly() {
    let mut folder = Folder::new();
    let text = [vec![b'a'; 8000], b"bcd".to_vec()].concat();
    let reader = folder.masked(std::slice::from_ref(&text));
    for output in [vec![b'\n'; 1 << 18], vec![b'a'; 1 << 18]] {
        folder.begin_anew();
        folder.journal.write_all(&[&b"x"[..], &output].concat()).unwrap();
        folder.events.publish_first(Offset(1)).unwrap();
        // Each comparison of its own would take minutes.
        let shown = read(&reader, 1, output.len() + 1, output.len()).unwrap();
        assert_eq!(shown.len(), output.len());
    }
}
