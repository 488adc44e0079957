//! Cutting long text to a budget: the head and the tail stay, and what is left out is counted exactly.
//!
//! Cuts fall at line ends. Only where that would throw away more than half of a side's share (one endless line) is a
//! line itself cut, between two characters.

/// How much text may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In characters, not bytes: that is what a model's context is measured by.
    pub chars: usize,
}

impl Default for Budget {
    /// Fits the default limits of common clients, and half a screenful of a model's attention.
    fn default() -> Self {
        Self { chars: 30_000 }
    }
}

/// A text within its budget: `head`, then what is omitted, then `tail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut<'a> {
    /// The beginning; all of the text when nothing is omitted.
    pub head: &'a str,
    /// The end; empty when nothing is omitted.
    pub tail: &'a str,
    /// How many bytes lie between head and tail.
    pub omitted_bytes: usize,
    /// The first line, counted from 1, of which something is omitted; 0 when nothing is.
    pub omitted_lines_from: usize,
    /// The last line of which something is omitted; 0 when nothing is.
    pub omitted_lines_to: usize,
}

/// Cuts `text` to `budget`, half of it for the head and half for the tail.
pub fn cut(text: &str, budget: Budget) -> Cut<'_> {
    // A character has at least one byte, so a short text needs no counting.
    if text.len() <= budget.chars || text.chars().count() <= budget.chars {
        return Cut { head: text, tail: "", omitted_bytes: 0, omitted_lines_from: 0, omitted_lines_to: 0 };
    }
    let head_to = head_end(text, budget.chars.div_ceil(2));
    let tail_from = tail_start(text, budget.chars / 2);
    let line_of = |offset: usize| 1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..offset]).count();
    Cut {
        head: &text[..head_to],
        tail: &text[tail_from..],
        omitted_bytes: tail_from - head_to,
        omitted_lines_from: line_of(head_to),
        // The last omitted byte lies in this line, even if it is the line's own end.
        omitted_lines_to: line_of(tail_from - 1),
    }
}

fn head_end(text: &str, chars: usize) -> usize {
    let limit = text.char_indices().nth(chars).map_or(text.len(), |(index, _)| index);
    match text[..limit].rfind('\n') {
        Some(line_end) if line_end + 1 >= limit / 2 => line_end + 1,
        _ => limit,
    }
}

fn tail_start(text: &str, chars: usize) -> usize {
    let limit = match chars.checked_sub(1) {
        Some(last) => text.char_indices().nth_back(last).map_or(0, |(index, _)| index),
        None => text.len(),
    };
    if text[..limit].ends_with('\n') {
        return limit;
    }
    match text[limit..].find('\n') {
        Some(line_end) if line_end < (text.len() - limit) / 2 => limit + line_end + 1,
        _ => limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_text_within_its_budget_is_whole() {
        for text in ["", "ééééé", "a\nb\n"] {
            assert_eq!(
                cut(text, Budget { chars: 5 }),
                Cut { head: text, tail: "", omitted_bytes: 0, omitted_lines_from: 0, omitted_lines_to: 0 }
            );
        }
    }

    #[test]
    fn head_and_tail_are_whole_lines() {
        assert_eq!(
            cut("one\ntwo\nthree\nfour\nfive\nsix\n", Budget { chars: 20 }),
            Cut {
                head: "one\ntwo\n",
                tail: "five\nsix\n",
                omitted_bytes: 11,
                omitted_lines_from: 3,
                omitted_lines_to: 4
            }
        );
    }

    #[test]
    fn an_endless_line_is_cut_between_characters() {
        assert_eq!(
            cut("€€€€€€", Budget { chars: 4 }),
            Cut { head: "€€", tail: "€€", omitted_bytes: 6, omitted_lines_from: 1, omitted_lines_to: 1 }
        );
        assert_eq!(
            cut("a\n0123456789\nb\n", Budget { chars: 12 }),
            Cut { head: "a\n0123", tail: "789\nb\n", omitted_bytes: 3, omitted_lines_from: 2, omitted_lines_to: 2 }
        );
    }

    proptest! {
        #[test]
        fn the_counts_are_exact(text in "[aé\n]{0,60}", chars in 0usize..40) {
            let cut = cut(&text, Budget { chars });
            let middle = &text[cut.head.len()..text.len() - cut.tail.len()];
            prop_assert_eq!(middle.len(), cut.omitted_bytes);
            prop_assert!(cut.head.chars().count() + cut.tail.chars().count() <= chars);
            prop_assert!(text.starts_with(cut.head) && text.ends_with(cut.tail));
            if cut.omitted_bytes > 0 {
                let from = 1 + cut.head.matches('\n').count();
                // A line end that is omitted belongs to the line that it ends.
                let to = from + middle.as_bytes()[..middle.len() - 1].iter().filter(|byte| **byte == b'\n').count();
                prop_assert_eq!((cut.omitted_lines_from, cut.omitted_lines_to), (from, to));
            } else {
                prop_assert_eq!((cut.head, cut.tail), (&*text, ""));
            }
        }
    }
}
