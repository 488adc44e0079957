//! The measures by name.

use anyhow::Result;

use crate::figure::Figure;
use crate::plan::Plan;
use crate::{creation, flood, idle, load, round_trip, viewers};

/// A measure.
#[derive(Clone, Copy)]
pub struct Measure {
    /// Its name on the command line.
    pub name: &'static str,
    /// Whether `--quick` includes it.
    pub is_quick: bool,
    /// Measures.
    pub run: fn(&Plan) -> Result<Vec<Figure>>,
}

/// All of them, the quickest first.
pub const MEASURES: [Measure; 6] = [
    Measure { name: "true", is_quick: true, run: round_trip::measure },
    Measure { name: "create", is_quick: true, run: creation::measure },
    Measure { name: "idle", is_quick: true, run: idle::measure },
    Measure { name: "load", is_quick: false, run: load::measure },
    Measure { name: "viewers", is_quick: false, run: viewers::measure },
    Measure { name: "flood", is_quick: false, run: flood::measure },
];
