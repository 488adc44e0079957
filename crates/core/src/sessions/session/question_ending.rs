//! How a question ends in the output: its last characters, and where the program put the cursor.

/// The end of an unfinished line that asks something: `: `, `? ` or the like, and the sequences behind it without their
/// numbers, by which a line editor places the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuestionEnding {
    mark: u8,
    sequences: Vec<u8>,
}

impl QuestionEnding {
    /// Of the newest output; `None` if it does not end as a question does.
    pub(super) fn of(output: &[u8]) -> Option<Self> {
        let mut text = output;
        let mut sequences = Vec::new();
        while let Some((before, sequence)) = last_sequence(text) {
            text = before;
            sequences.extend(sequence.iter().filter(|byte| !byte.is_ascii_digit()));
        }
        match text {
            [.., mark @ (b':' | b'?' | b'>' | b')' | b']'), b' '] => Some(Self { mark: *mark, sequences }),
            _ => None,
        }
    }
}

/// The control sequence (ECMA-48, CSI) with which the output ends, and what is before it.
fn last_sequence(output: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = output.iter().rposition(|byte| *byte == 0x1b)?;
    let (before, sequence) = output.split_at(at);
    let [_, b'[', parameters @ .., 0x40..=0x7e] = sequence else { return None };
    parameters.iter().all(|byte| (0x20..0x40).contains(byte)).then_some((before, sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    // promise: ask-3
    fn a_question_is_recognised_by_its_end_and_progress_is_not_a_question() {
        let ending = |output: &str| QuestionEnding::of(output.as_bytes());
        let npm = ending("\r\n\x1b[1G\x1b[0Jversion: (1.0.0) \x1b[18G");
        assert!(npm.is_some());
        assert_eq!(npm, ending("foo\r\n\x1b[1G\x1b[0Jlicense: (ISC) \x1b[16G"));
        assert_ne!(npm, ending("entry point: \x1b[14G"), "it ends with another mark");
        assert_ne!(npm, ending("packages (3) "), "the cursor was not placed");
        assert_ne!(npm, ending("packages (3) \x1b[0K"), "the cursor was not placed");
        for other in
            ["", " ", "Building... ", "version: (1.0.0) x\x1b[19G", "⠋ ", "done: \r\n", "50% ", "a: \x1b]0;t\x07"]
        {
            assert_eq!(ending(other), None, "{other:?}");
        }
    }
}
