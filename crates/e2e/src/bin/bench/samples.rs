//! Samples of one quantity: its quantiles, and the estimate that many rounds give together.

use serde::{Deserialize, Serialize};

/// The value below which this part of the samples lies, between two of them where it falls between.
pub fn quantile(samples: &[f64], part: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

/// The middle of the samples.
pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// A value, and how far rounds of the same run are from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the rounds.
    pub value: f64,
    /// Half the distance between their quartiles: half of the rounds are nearer than about this. A round that something
    /// else on the machine disturbed moves it little.
    pub noise: f64,
}

impl Estimate {
    /// From one value of each round.
    pub fn of(rounds: &[f64]) -> Self {
        let noise = (quantile(rounds, 0.75) - quantile(rounds, 0.25)) / 2.0;
        Self { value: median(rounds), noise }
    }

    /// From pairs that were measured in the same round. The median is taken of the ratios: a machine that becomes slow
    /// in the middle of a run changes both sides of a pair, and no ratio.
    pub fn of_ratios(ours: &[f64], others: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(others).map(|(ours, other)| ours / other).collect();
        Self::of(&ratios)
    }

    /// With as many digits as the noise leaves: files that are compared by people change only where something did.
    pub fn rounded(self) -> Self {
        let round = |number: f64| if number.abs() < 100.0 { (number * 1e4).round() / 1e4 } else { number.round() };
        Self { value: round(self.value), noise: round(self.noise) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimate, median, quantile};

    #[test]
    fn a_quantile_lies_between_the_neighbouring_samples() {
        let samples = [40.0, 10.0, 30.0, 20.0, 50.0];
        assert_eq!([0.0, 0.25, 0.5, 1.0].map(|part| quantile(&samples, part)), [10.0, 20.0, 30.0, 50.0]);
        assert_eq!(quantile(&[1.0, 2.0], 0.9), 1.9);
        assert_eq!(median(&[7.0]), 7.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn drift_that_meets_both_sides_is_not_noise() {
        let floor = [1.0, 2.0, 4.0, 8.0, 16.0];
        let ours = floor.map(|sample| sample * 3.0);
        assert_eq!(Estimate::of_ratios(&ours, &floor), Estimate { value: 3.0, noise: 0.0 });
    }

    #[test]
    fn one_disturbed_round_moves_neither_the_value_nor_the_noise_far() {
        assert_eq!(Estimate::of(&[2.0, 2.1, 1.9, 2.0, 90.0]), Estimate { value: 2.0, noise: (2.1 - 2.0) / 2.0 });
    }
}
