//! The measurements: medians, ratios and their targets, as a table and as JSON.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// Times of one thing.
#[derive(Debug, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Notes one, unless it was only a warm-up.
    pub fn note(&mut self, took: Duration, is_counted: bool) {
        if is_counted {
            self.0.push(took);
        }
    }

    /// The time below which this part of them lies.
    fn below(&self, permille: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let at = (sorted.len() * permille / 1000).min(sorted.len().saturating_sub(1));
        sorted.get(at).copied().unwrap_or_default()
    }
}

/// The goal of a figure.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

#[derive(Debug)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
    goal: Goal,
    /// In words and numbers: what it was made of.
    from: String,
}

impl Figure {
    fn is_met(&self) -> bool {
        match self.goal {
            Goal::AtMost(most) => self.value <= most,
            Goal::AtLeast(least) => self.value >= least,
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub struct Figures(Vec<Figure>);

impl Figures {
    /// The time of something as a multiple of the floor, in the median.
    pub fn ratio(&mut self, name: &'static str, ours: &Samples, floor: &Samples, goal: Goal) {
        self.compare(name, ours, floor, ours.below(500).as_secs_f64() / floor.below(500).as_secs_f64(), goal);
    }

    /// The speed of something as a part of the floor's, in the median.
    pub fn speed(&mut self, name: &'static str, ours: &Samples, floor: &Samples, goal: Goal) {
        self.compare(name, ours, floor, floor.below(500).as_secs_f64() / ours.below(500).as_secs_f64(), goal);
    }

    fn compare(&mut self, name: &'static str, ours: &Samples, floor: &Samples, value: f64, goal: Goal) {
        let micros = |samples: &Samples, permille| samples.below(permille).as_micros();
        let from = format!(
            "p50 {} µs, p99 {} µs; floor p50 {} µs, p99 {} µs",
            micros(ours, 500),
            micros(ours, 990),
            micros(floor, 500),
            micros(floor, 990)
        );
        self.0.push(Figure { name, value, unit: "×", goal, from });
    }

    /// The delay of something; almost all should be within this time.
    pub fn late(&mut self, name: &'static str, late: &Samples, most: Duration) {
        let millis = |time: Duration| time.as_secs_f64() * 1000.0;
        let from = format!("p99 of {}; p50 {:.2} ms", late.0.len(), millis(late.below(500)));
        let (value, most) = (millis(late.below(990)), millis(most));
        self.0.push(Figure { name, value, unit: "ms", goal: Goal::AtMost(most), from });
    }

    /// Memory, and the most that it should be.
    pub fn bytes(&mut self, name: &'static str, bytes: u64, most: u64) {
        let from = format!("{bytes} bytes");
        self.0.push(Figure { name, value: kib(bytes), unit: "KiB", goal: Goal::AtMost(kib(most)), from });
    }

    /// A part of something, and the most that it should be.
    pub fn percent(&mut self, name: &'static str, value: f64, most: f64) {
        self.0.push(Figure { name, value, unit: "%", goal: Goal::AtMost(most), from: String::new() });
    }

    /// True if every figure reaches its goal.
    pub fn are_met(&self) -> bool {
        self.0.iter().all(Figure::is_met)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let of = |figure: &Figure| {
            let (bound, limit) = match figure.goal {
                Goal::AtMost(most) => ("atMost", most),
                Goal::AtLeast(least) => ("atLeast", least),
            };
            json!({ "name": figure.name, "value": figure.value, "unit": figure.unit, bound: limit,
                "isMet": figure.is_met(), "from": figure.from })
        };
        Value::from(self.0.iter().map(of).collect::<Vec<_>>())
    }
}

#[expect(clippy::cast_precision_loss, reason = "memory of a process is far below 2^53 bytes")]
fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:38} {:>12} {:>14}    made of", "figure", "value", "goal")?;
        for figure in &self.0 {
            let value = format!("{:.2} {}", figure.value, figure.unit);
            let goal = match figure.goal {
                Goal::AtMost(most) => format!("≤ {most} {}", figure.unit),
                Goal::AtLeast(least) => format!("≥ {least} {}", figure.unit),
            };
            let mark = if figure.is_met() { "ok" } else { "NO" };
            writeln!(f, "{:38} {value:>12} {goal:>14} {mark} {}", figure.name, figure.from)?;
        }
        Ok(())
    }
}
