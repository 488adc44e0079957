//! The committed figures, `docs/bench.json`: only what another machine can be compared with, and where it was taken.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::compare::Better;
use crate::figure::Figure;
use crate::samples::Estimate;
use crate::unit::Unit;

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Committed {
    /// The day of the run.
    pub taken: String,
    /// Its machine: the processor's name and how many there were.
    pub machine: String,
    /// In the order of the run.
    pub figures: Vec<CommittedFigure>,
}

/// A figure of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommittedFigure {
    /// The name.
    pub name: String,
    /// The unit of value and noise.
    pub unit: Unit,
    /// Value and noise.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// The direction in which it improves.
    pub better: Better,
}

impl Committed {
    /// The compared ones of a run.
    pub fn of(figures: &[Figure]) -> Self {
        let compared = figures.iter().filter(|figure| figure.is_compared);
        let figure = |figure: &Figure| CommittedFigure {
            name: figure.name.clone(),
            unit: figure.unit,
            estimate: figure.estimate.rounded(),
            better: figure.better,
        };
        let taken = jiff::Zoned::now().date().to_string();
        Self { taken, machine: machine(), figures: compared.map(figure).collect() }
    }

    /// Those of the checkout that this was built from; none where they were not saved yet.
    pub fn read() -> Result<Option<Self>> {
        let path = docs().join("bench.json");
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path)?;
        serde_json::from_str(&text).with_context(|| format!("{} is not as --save writes it", path.display())).map(Some)
    }

    /// Writes the file.
    pub fn save(&self) -> Result<()> {
        Ok(std::fs::write(docs().join("bench.json"), serde_json::to_string_pretty(self)? + "\n")?)
    }

    /// The figure of this name, if it is in the same unit.
    pub fn figure(&self, name: &str, unit: Unit) -> Option<&CommittedFigure> {
        self.figures.iter().find(|figure| figure.name == name && figure.unit == unit)
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// The processor's name, and how many there are.
pub fn machine() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.trim()));
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{count} × {}", name.unwrap_or(std::env::consts::ARCH))
}

#[cfg(test)]
mod tests {
    use super::Committed;
    use crate::block::Block;
    use crate::compare::Better;
    use crate::figure::Figure;
    use crate::unit::Unit;

    #[test]
    fn saved_figures_can_be_read_and_omit_those_that_are_only_bounded() {
        let rounds = [Block::of(vec![2.5])];
        let ratio = Figure::ratio("a", Unit::Seconds, Better::Less, [&rounds, &[Block::of(vec![1.0])], &[]]);
        let saved = Committed::of(&[ratio, Figure::bounded("b", Unit::Bytes, 1.0, 2.0)]);
        let read: Committed = serde_json::from_str(&serde_json::to_string(&saved).expect("it is JSON")).expect("ours");
        assert_eq!(read, saved);
        assert_eq!(read.figure("a", Unit::Ratio).map(|figure| figure.estimate.value), Some(2.5));
        assert_eq!((read.figure("a", Unit::Seconds), read.figure("b", Unit::Bytes)), (None, None));
    }
}
