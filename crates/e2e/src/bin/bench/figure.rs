//! A figure: what was measured, what it is compared with, and the bound that it must not pass.

use serde_json::{Value, json};

use crate::block::Block;
use crate::compare::Better;
use crate::processor::Role;
use crate::samples::{Estimate, median, quantile};
use crate::unit::Unit;

/// A figure.
#[derive(Debug, Clone)]
pub struct Figure {
    /// Its name, by which it is found in the committed figures.
    pub name: String,
    /// The unit of the samples.
    pub sampled_in: Unit,
    /// The unit of the estimate: that of the samples, or a ratio.
    pub unit: Unit,
    /// The direction in which it improves.
    pub better: Better,
    /// The result.
    pub estimate: Estimate,
    /// Whether it is compared with the committed figure: one that is near nothing is only kept within its bound.
    pub is_compared: bool,
    /// The bound, in the estimate's unit.
    pub limit: Option<f64>,
    /// All samples of the binary under test.
    pub ours: Vec<f64>,
    /// All samples of the floor.
    pub floor: Vec<f64>,
    /// Ours as a multiple of the other binary's.
    pub against: Option<Estimate>,
    /// Of the binary under test, the median of the rounds.
    pub processor: Vec<(Role, f64)>,
}

/// The middle of each block.
fn middles(blocks: &[Block]) -> Vec<f64> {
    blocks.iter().map(|block| median(&block.samples)).collect()
}

fn samples(blocks: &[Block]) -> Vec<f64> {
    blocks.iter().flat_map(|block| block.samples.iter().copied()).collect()
}

impl Figure {
    /// Compared with the floor; ours, the floor's and the other binary's blocks.
    pub fn ratio(name: &str, sampled_in: Unit, better: Better, [ours, floor, other]: [&[Block]; 3]) -> Self {
        let estimate = Estimate::of_ratios(&middles(ours), &middles(floor));
        Self { unit: Unit::Ratio, better, estimate, ..Self::value(name, sampled_in, [ours, floor, other]) }
    }

    /// By itself; the floor is only shown.
    pub fn value(name: &str, unit: Unit, [ours, floor, other]: [&[Block]; 3]) -> Self {
        let against = (!other.is_empty()).then(|| Estimate::of_ratios(&middles(ours), &middles(other)));
        Self {
            name: name.to_owned(),
            sampled_in: unit,
            unit,
            better: Better::Less,
            estimate: Estimate::of(&middles(ours)),
            is_compared: true,
            limit: None,
            ours: samples(ours),
            floor: samples(floor),
            against,
            processor: Vec::new(),
        }
    }

    /// Something that is only to stay within a bound.
    pub fn bounded(name: &str, unit: Unit, value: f64, limit: f64) -> Self {
        let block = [Block::of(vec![value])];
        Self { is_compared: false, ..Self::value(name, unit, [&block, &[], &[]]).limit(limit) }
    }

    /// With a bound, in the estimate's unit.
    pub fn limit(self, limit: f64) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// With the processor time of each kind of process.
    pub fn by_process(mut self, ours: &[Block]) -> Self {
        let roles = ours.first().map(|block| block.processor.iter().map(|(role, _)| *role).collect::<Vec<_>>());
        for role in roles.unwrap_or_default() {
            let of_role = |block: &Block| block.processor.iter().find(|(known, _)| *known == role).map(|found| found.1);
            let times: Vec<f64> = ours.iter().filter_map(of_role).collect();
            self.processor.push((role, median(&times)));
        }
        self
    }

    /// Whether a busy machine changes it little: memory, sizes, and processor time, but no time that includes waiting for a
    /// processor.
    pub fn is_steady(&self) -> bool {
        self.sampled_in == Unit::Bytes || !self.processor.is_empty()
    }

    /// Whether it is within its bound.
    pub fn is_within_limit(&self) -> bool {
        self.limit.is_none_or(|limit| match self.better {
            Better::Less => self.estimate.value <= limit,
            Better::More => self.estimate.value >= limit,
        })
    }

    /// For programs: everything but the samples themselves.
    pub fn json(&self) -> Value {
        let quantiles = |samples: &[f64]| match samples {
            [] => Value::Null,
            _ => json!({ "p50": median(samples), "p90": quantile(samples, 0.9), "p99": quantile(samples, 0.99),
                "count": samples.len() }),
        };
        let processor: serde_json::Map<String, Value> =
            self.processor.iter().map(|(role, time)| (role.word().to_owned(), json!(time))).collect();
        json!({ "name": self.name, "unit": self.unit, "value": self.estimate.value, "noise": self.estimate.noise,
            "better": self.better, "limit": self.limit, "isWithinLimit": self.is_within_limit(),
            "sampledIn": self.sampled_in, "ours": quantiles(&self.ours), "floor": quantiles(&self.floor),
            "against": self.against, "processorSeconds": processor })
    }
}

#[cfg(test)]
mod tests {
    use super::Figure;
    use crate::block::Block;
    use crate::compare::Better;
    use crate::processor::Role;
    use crate::samples::Estimate;
    use crate::unit::Unit;

    fn blocks(rounds: &[[f64; 3]]) -> Vec<Block> {
        rounds.iter().map(|samples| Block::of(samples.to_vec())).collect()
    }

    #[test]
    fn a_ratio_compares_the_medians_within_a_round() {
        let ours = blocks(&[[4.0, 4.0, 99.0], [8.0, 8.0, 8.0]]);
        let floor = blocks(&[[2.0, 2.0, 2.0], [4.0, 0.0, 4.0]]);
        let figure = Figure::ratio("x", Unit::Seconds, Better::Less, [&ours, &floor, &ours]);
        assert_eq!(figure.estimate, Estimate { value: 2.0, noise: 0.0 });
        assert_eq!((figure.unit, figure.sampled_in), (Unit::Ratio, Unit::Seconds));
        assert_eq!(figure.against, Some(Estimate { value: 1.0, noise: 0.0 }));
        assert_eq!((figure.ours.len(), figure.floor.len()), (6, 6));
    }

    #[test]
    fn a_bound_is_on_the_side_of_worse_figures() {
        let ours = blocks(&[[2.0; 3]]);
        let figure = |better| Figure::ratio("x", Unit::PerSecond, better, [&ours, &blocks(&[[1.0; 3]]), &[]]);
        assert!(
            figure(Better::Less).limit(2.5).is_within_limit() && !figure(Better::Less).limit(1.5).is_within_limit()
        );
        assert!(
            figure(Better::More).limit(1.5).is_within_limit() && !figure(Better::More).limit(2.5).is_within_limit()
        );
    }

    #[test]
    fn processor_time_is_reported_by_process() {
        let block =
            |holder: f64| Block { samples: vec![1.0], processor: vec![(Role::Server, 1.0), (Role::Holder, holder)] };
        let rounds = [block(2.0), block(9.0), block(3.0)];
        let figure = Figure::value("x", Unit::Seconds, [&rounds, &[], &[]]).by_process(&rounds);
        assert_eq!(figure.processor, [(Role::Server, 1.0), (Role::Holder, 3.0)]);
        assert!(figure.is_steady() && !Figure::value("x", Unit::Seconds, [&rounds, &[], &[]]).is_steady());
    }
}
