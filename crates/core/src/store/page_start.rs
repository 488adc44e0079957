//! The first command of a page of a session's history.
//!
//! Commands are numbered one after another, so the number of the first one of a page is known without walking there. A
//! number that is missing (its row was lost) shows in the count, and then the rows are walked.

/// The beginning of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// No command before this one is on the page.
    pub(super) id: u32,
    /// From there on, so many are passed.
    pub(super) passed: u64,
}

/// The place behind `offset` of the `shown` commands: those of the stored ones, between these ids, that are not left out.
pub(super) fn first_of_page(shown: u64, stored: Option<(u32, u32)>, left_out: &[u32], offset: u64) -> Place {
    let mut left_out = left_out.to_vec();
    left_out.sort_unstable();
    left_out.dedup();
    let ids = stored.into_iter().flat_map(|(first, last)| [first, last]).chain(left_out.iter().copied());
    let (first, last) = ids.fold((u32::MAX, 0), |(first, last), id| (first.min(id), last.max(id)));
    let known = shown + left_out.len() as u64;
    if u64::from(last) + 1 != u64::from(first) + known {
        return Place { id: 0, passed: offset };
    }
    let id = left_out.iter().fold(u64::from(first) + offset, |id, hidden| id + u64::from(u64::from(*hidden) <= id));
    Place { id: u32::try_from(id).unwrap_or(u32::MAX), passed: 0 }
}
