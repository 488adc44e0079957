//! The units of what is measured, and how a person reads them.

use serde::{Deserialize, Serialize};

/// A unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// A multiple of the floor.
    #[serde(rename = "×")]
    Ratio,
    /// Time.
    #[serde(rename = "s")]
    Seconds,
    /// Memory, or a file's size.
    #[serde(rename = "bytes")]
    Bytes,
    /// Things done in a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// A part of one processor.
    #[serde(rename = "processors")]
    Processors,
}

impl Unit {
    /// The factor that makes a number of it short, and the short unit.
    fn scale(self, number: f64) -> (f64, &'static str) {
        match self {
            Self::Ratio => (1.0, "×"),
            Self::Seconds if number < 1e-3 => (1e6, "µs"),
            Self::Seconds if number < 1.0 => (1e3, "ms"),
            Self::Seconds => (1.0, "s"),
            Self::Bytes if number < 1048576.0 => (1.0 / 1024.0, "KiB"),
            Self::Bytes => (1.0 / 1048576.0, "MiB"),
            Self::PerSecond if number >= 1e6 => (1e-6, "M/s"),
            Self::PerSecond => (1.0, "/s"),
            Self::Processors => (100.0, "%"),
        }
    }

    /// Some numbers, in the short unit of the first.
    pub fn shown(self, numbers: &[f64]) -> String {
        let (factor, unit) = self.scale(numbers.first().copied().unwrap_or_default());
        format!("{} {unit}", digits(numbers, factor).join("/"))
    }

    /// A number and how sure it is.
    pub fn shown_with_noise(self, value: f64, noise: f64) -> String {
        let (factor, unit) = self.scale(value);
        format!("{:.2} ±{:.2} {unit}", value * factor, noise * factor)
    }
}

/// Three digits that count are enough for a person.
fn digits(numbers: &[f64], factor: f64) -> Vec<String> {
    let one = |number: &f64| {
        let number = number * factor;
        let places = if number >= 99.5 { 0 } else { usize::from(number < 9.95) + 1 };
        format!("{number:.places$}")
    };
    numbers.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn numbers_are_shown_in_the_short_unit_of_the_first() {
        assert_eq!(Unit::Seconds.shown(&[0.000_512, 0.000_9, 0.0123]), "512/900/12300 µs");
        assert_eq!(Unit::Bytes.shown(&[99_000.0]), "96.7 KiB");
        assert_eq!(Unit::Processors.shown(&[0.0325]), "3.25 %");
        assert_eq!(Unit::PerSecond.shown(&[2512.4]), "2512 /s");
        assert_eq!(Unit::Ratio.shown_with_noise(5.918, 0.21), "5.92 ±0.21 ×");
    }
}
