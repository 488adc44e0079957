//! Whether a figure differs from another run's, or only seems to.

use serde::{Deserialize, Serialize};

use crate::samples::Estimate;

/// How many times the larger noise a difference must be. The noise is half the distance of the quartiles of the rounds, which
/// is 0.67 standard deviations of one round. The median of 5 rounds has a standard error of 0.56 standard deviations, and
/// the difference of two such medians one of 0.79; 3 × 0.67 is 2.5 of these, which chance alone exceeds in one direction in one
/// of 180 comparisons with 5 rounds, and practically never with 20.
pub const FACTOR: f64 = 3.0;

/// The part of the committed figure by which `--check` lets a figure be worse beyond the noise, because the committed one was
/// taken on another machine: how long the kernel takes to wake a process up, compared with how long it computes, differs
/// between processors and hypervisors, and no number of rounds averages that away.
pub const ALLOWANCE: f64 = 0.25;

/// The same for a quick run, which has half the rounds and shares its machine with whatever else a test machine does.
pub const ALLOWANCE_QUICK: f64 = 0.5;

/// The direction in which a figure improves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Better {
    /// Times and memory.
    Less,
    /// Speeds.
    More,
}

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The difference is within the noise.
    Same,
    /// It improved.
    Better,
    /// It got worse.
    Worse,
}

/// Compares a figure with an earlier one; a worsening by less than the allowed part of the earlier one does not count.
pub fn verdict(now: Estimate, then: Estimate, better: Better, allowed: f64) -> Verdict {
    let noise = FACTOR * now.noise.max(then.noise);
    let worsening = match better {
        Better::Less => now.value - then.value,
        Better::More => then.value - now.value,
    };
    if worsening > noise + allowed * then.value {
        Verdict::Worse
    } else if -worsening > noise {
        Verdict::Better
    } else {
        Verdict::Same
    }
}

#[cfg(test)]
mod tests {
    use super::{Better, Verdict, verdict};
    use crate::samples::Estimate;

    fn about(value: f64, noise: f64) -> Estimate {
        Estimate { value, noise }
    }

    #[test]
    fn a_difference_counts_beyond_three_times_the_larger_noise() {
        let then = about(4.0, 0.1);
        let less = |now| verdict(now, then, Better::Less, 0.0);
        assert_eq!(less(about(4.29, 0.0)), Verdict::Same);
        assert_eq!(less(about(4.31, 0.0)), Verdict::Worse);
        assert_eq!(less(about(4.31, 0.2)), Verdict::Same);
        assert_eq!(less(about(3.69, 0.1)), Verdict::Better);
    }

    #[test]
    fn a_speed_improves_upwards() {
        let more = |now| verdict(about(now, 0.0), about(0.5, 0.01), Better::More, 0.0);
        assert_eq!([0.4, 0.5, 0.6].map(more), [Verdict::Worse, Verdict::Same, Verdict::Better]);
    }

    #[test]
    fn an_allowance_is_a_part_of_the_earlier_figure_and_hides_no_improvement() {
        let allowed = |now| verdict(about(now, 0.0), about(4.0, 0.0), Better::Less, 0.25);
        assert_eq!([3.9, 5.0, 5.1].map(allowed), [Verdict::Better, Verdict::Same, Verdict::Worse]);
    }
}
