//! The figures as a person reads them.

use crate::committed::Committed;
use crate::compare::{Verdict, verdict};
use crate::figure::Figure;
use crate::samples::quantile;
use crate::unit::Unit;

/// The heading.
pub fn heading() -> String {
    row(["measure", "ours p50/p90/p99", "floor p50/p90/p99", "figure", "committed", "limit"].map(str::to_owned))
}

/// A figure's line, and one about its processes where it has them.
pub fn lines(figure: &Figure, committed: Option<&Committed>) -> String {
    let known = committed.and_then(|committed| committed.figure(&figure.name, figure.unit));
    let known = known.map(|known| {
        let word = match verdict(figure.estimate, known.estimate, figure.better, 0.0) {
            Verdict::Same => "same",
            Verdict::Better => "better",
            Verdict::Worse => "WORSE",
        };
        format!("{} {word}", figure.unit.shown(&[known.estimate.value]))
    });
    let mark = if figure.is_within_limit() { "ok" } else { "MISSED" };
    let limit = figure.limit.map(|limit| format!("{} {mark}", figure.unit.shown(&[limit])));
    let mut text = row([
        figure.name.clone(),
        quantiles(figure.sampled_in, &figure.ours),
        quantiles(figure.sampled_in, &figure.floor),
        figure.unit.shown_with_noise(figure.estimate.value, figure.estimate.noise),
        known.unwrap_or_else(|| "–".to_owned()),
        limit.unwrap_or_else(|| "–".to_owned()),
    ]);
    if let Some(against) = figure.against {
        text.push_str(&format!("    new/other {}\n", Unit::Ratio.shown_with_noise(against.value, against.noise)));
    }
    if !figure.processor.is_empty() {
        let one =
            |(role, time): &(crate::processor::Role, f64)| format!("{} {}", role.word(), Unit::Seconds.shown(&[*time]));
        text.push_str(&format!("    {}\n", figure.processor.iter().map(one).collect::<Vec<_>>().join(", ")));
    }
    text
}

fn quantiles(unit: Unit, samples: &[f64]) -> String {
    match samples {
        [] => String::new(),
        [one] => unit.shown(&[*one]),
        _ => unit.shown(&[0.5, 0.9, 0.99].map(|part| quantile(samples, part))),
    }
}

fn row([name, ours, floor, figure, committed, limit]: [String; 6]) -> String {
    format!("{name:<58} {ours:>22} {floor:>22} {figure:>18} {committed:>18} {limit:>15}\n")
}
