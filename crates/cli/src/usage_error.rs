//! Errors of wrong usage, without the tips that lead nowhere: clap suggests the nearest name however far it is, and to pass an unknown
//! option as a value.

use clap::error::{ContextKind, ContextValue, Error};

/// The error without tips that only look like what was meant.
pub fn without_far_tips(mut error: Error) -> Error {
    error.remove(ContextKind::Suggested);
    for (given, tips) in [
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidValue, ContextKind::SuggestedValue),
    ] {
        let Some(ContextValue::String(given)) = error.get(given) else { continue };
        let given = given.clone();
        let near = |tip: &String| is_near(given.trim_start_matches('-'), tip.trim_start_matches('-'));
        match error.remove(tips) {
            Some(ContextValue::String(tip)) if near(&tip) => drop(error.insert(tips, ContextValue::String(tip))),
            Some(ContextValue::Strings(all)) => {
                let all: Vec<String> = all.into_iter().filter(near).collect();
                if !all.is_empty() {
                    error.insert(tips, ContextValue::Strings(all));
                }
            }
            _ => {}
        }
    }
    error
}

/// Whether one is the beginning of the other, or differs from it by a slip of the finger.
fn is_near(given: &str, tip: &str) -> bool {
    let (given, tip) =
        (given.split(['=', ' ']).next().unwrap_or_default(), tip.split(['=', ' ']).next().unwrap_or_default());
    if given.chars().next() != tip.chars().next() {
        return false;
    }
    let is_beginning = given.len() > 2 && (tip.starts_with(given) || given.starts_with(tip) && tip.len() > 2);
    let slips = if given.chars().count() > 5 { 2 } else { 1 };
    is_beginning || distance(given, tip) <= slips
}

/// The number of characters to insert, remove or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_near_and_another_word_is_not() {
        for (given, tip) in [("lss", "ls"), ("attch", "attach"), ("seach", "search"), ("approval", "approvals")] {
            assert!(is_near(given, tip), "{given} {tip}");
        }
        for (given, tip) in [
            ("rm", "run"),
            ("share", "search"),
            ("resize", "serve"),
            ("login", "logs"),
            ("stop", "top"),
            ("update", "audit"),
        ] {
            assert!(!is_near(given, tip), "{given} {tip}");
        }
    }
}
