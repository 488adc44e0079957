//! The bytes for a terminal: without attested markers and answered queries, and with commands in the place of the lines
//! that handed them over.

use super::handover::Cuts;

/// The visible part of these bytes and its end. Unless these are the last bytes, it excludes a beginning that may become a
/// marker or a query. `markers` are the ranges of attested markers, oldest first. The bytes must begin between control
/// sequences.
pub(crate) fn stream(
    mut bytes: Vec<u8>,
    from: u64,
    markers: &[(u64, u64)],
    cuts: &Cuts,
    is_end: bool,
) -> (Vec<u8>, u64) {
    let mut scanner = terminal::Scanner::new(from);
    let mut is_ours = |_: &terminal::Nonce, r: std::ops::Range<u64>| markers.binary_search(&(r.start, r.end)).is_ok();
    let parts = terminal::strip(&mut scanner, &bytes, &mut is_ours);
    let to = if is_end { scanner.position() } else { scanner.held_from() };
    if parts.len() == 1 && parts[0].bytes.len() == bytes.len() && cuts.is_empty() {
        bytes.truncate(usize::try_from(to - from).unwrap_or(usize::MAX));
        return (bytes, to);
    }
    let mut shown = Vec::with_capacity(bytes.len());
    for part in parts {
        let room = usize::try_from(to.saturating_sub(part.from)).unwrap_or(usize::MAX);
        let part_shown = &part.bytes[..part.bytes.len().min(room)];
        shown.extend_from_slice(&cuts.apply(part_shown, part.from));
    }
    (shown, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: view-1
    fn markers_and_questions_are_omitted_and_an_unfinished_one_is_held_back() {
        let marker = b"\x1b]7337;D;abc\x07";
        let mut bytes = b"one".to_vec();
        bytes.extend(marker);
        bytes.extend(b"two\x1b[6nthree\x1b[3");
        let ours = [(103, 103 + marker.len() as u64)];
        let end = 100 + bytes.len() as u64;
        let none = Cuts::default();
        assert_eq!(stream(bytes.clone(), 100, &ours, &none, false), (b"onetwothree".to_vec(), end - 3));
        assert_eq!(stream(bytes.clone(), 100, &ours, &none, true), (b"onetwothree\x1b[3".to_vec(), end));
        // A forged one is output like any other.
        let forged = [b"one".as_slice(), marker, b"twothree"].concat();
        assert_eq!(stream(bytes, 100, &[], &none, false), (forged, end - 3));
    }
}
