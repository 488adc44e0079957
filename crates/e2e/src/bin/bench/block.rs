//! The measurements of one side in one round.

use std::time::Instant;

use anyhow::Result;
use e2e::Pid;

use crate::processor::{Meter, ProcessorTime, Role};

/// One side's part of a round.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// One for each thing done.
    pub samples: Vec<f64>,
    /// Of one thing, where it was measured.
    pub processor: ProcessorTime,
}

impl Block {
    /// Without processor time.
    pub fn of(samples: Vec<f64>) -> Self {
        Self { samples, processor: ProcessorTime::new() }
    }

    /// Does a thing again and again; its time, and the processor time of these.
    pub fn timed(times: usize, watched: &[(Role, Pid)], mut thing: impl FnMut() -> Result<()>) -> Result<Self> {
        let meter = Meter::begin(watched);
        let mut samples = Vec::with_capacity(times);
        for _ in 0..times {
            let begun = Instant::now();
            thing()?;
            samples.push(begun.elapsed().as_secs_f64());
        }
        Ok(Self { samples, processor: meter.spent(times) })
    }
}
