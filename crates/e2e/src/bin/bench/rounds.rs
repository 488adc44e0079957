//! Measuring in turns: in every round each side has one short block, so that a drift of the machine meets all of them.

use anyhow::{Context as _, Result};

use crate::block::Block;
use crate::compare::Better;
use crate::figure::Figure;
use crate::unit::Unit;

/// A side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The same work without ptyd.
    Floor,
    /// The binary under test.
    Ours,
    /// The binary that `--against` names.
    Other,
}

/// The work of a side in its turn.
type Turn<'a> = Box<dyn FnMut() -> Result<Block> + 'a>;

/// The sides, and for each which of the things that are compared it does. The floor is one for all of them.
#[derive(Default)]
pub struct Turns<'a>(Vec<(Who, &'static str, Turn<'a>)>);

impl<'a> Turns<'a> {
    /// The floor.
    pub fn floor(&mut self, turn: impl FnMut() -> Result<Block> + 'a) {
        self.0.push((Who::Floor, "", Box::new(turn)));
    }

    /// A thing that a binary does.
    pub fn add(&mut self, who: Who, thing: &'static str, turn: impl FnMut() -> Result<Block> + 'a) {
        self.0.push((who, thing, Box::new(turn)));
    }

    /// Measures; the first round warms everything up and is not counted. Another side begins each round, so that none
    /// always comes behind the same one.
    pub fn run(mut self, rounds: usize) -> Result<Rounds> {
        let sides = self.0.len();
        let mut blocks = vec![Vec::new(); sides];
        for round in 0..=rounds {
            for step in 0..sides {
                let side = (round + step) % sides;
                let (who, thing, turn) = &mut self.0[side];
                let block = turn().with_context(|| format!("{who:?} {thing}"))?;
                if round > 0 {
                    blocks[side].push(block);
                }
            }
        }
        let named = self.0.into_iter().map(|(who, thing, _)| (who, thing));
        Ok(Rounds(named.zip(blocks).map(|((who, thing), blocks)| (who, thing, blocks)).collect()))
    }
}

/// The counted rounds of every side.
#[derive(Debug)]
pub struct Rounds(Vec<(Who, &'static str, Vec<Block>)>);

impl Rounds {
    /// One side's blocks, a round each; none where this side does not exist.
    pub fn of(&self, who: Who, thing: &str) -> &[Block] {
        let thing = if who == Who::Floor { "" } else { thing };
        self.0.iter().find(|side| side.0 == who && side.1 == thing).map_or(&[], |side| &side.2)
    }

    /// The ratio of a measure to the floor's.
    pub fn ratio(&self, name: &str, thing: &str, unit: Unit, better: Better) -> Figure {
        Figure::ratio(name, unit, better, [Who::Ours, Who::Floor, Who::Other].map(|who| self.of(who, thing)))
    }

    /// The measure by itself.
    pub fn value(&self, name: &str, thing: &str, unit: Unit) -> Figure {
        Figure::value(name, unit, [Who::Ours, Who::Floor, Who::Other].map(|who| self.of(who, thing)))
    }

    /// The processor time of a thing, compared with that of the floor's shell.
    pub fn processor(&self, name: &str, thing: &str) -> Figure {
        let totals = |who| {
            let total = |block: &Block| Block {
                samples: vec![block.processor.iter().map(|(_, time)| time).sum()],
                processor: block.processor.clone(),
            };
            self.of(who, thing).iter().map(total).collect::<Vec<Block>>()
        };
        let [ours, floor, other] = [Who::Ours, Who::Floor, Who::Other].map(totals);
        Figure::ratio(&format!("{name}: processor time"), Unit::Seconds, Better::Less, [&ours, &floor, &other])
            .by_process(&ours)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::{Turns, Who};
    use crate::block::Block;

    #[test]
    fn sides_take_turns_and_the_first_round_is_not_counted() {
        let order = RefCell::new(String::new());
        let mut turns = Turns::default();
        let side = |letter: char, sample: f64| {
            let order = &order;
            move || {
                order.borrow_mut().push(letter);
                Ok(Block::of(vec![sample]))
            }
        };
        turns.floor(side('f', 1.0));
        turns.add(Who::Ours, "a", side('a', 2.0));
        turns.add(Who::Ours, "b", side('b', 3.0));
        let rounds = turns.run(2).expect("no side fails");
        assert_eq!(*order.borrow(), "fababfbfa");
        let samples = |who, thing| rounds.of(who, thing).iter().map(|block| block.samples[0]).collect::<Vec<_>>();
        assert_eq!(samples(Who::Ours, "b"), [3.0, 3.0]);
        assert_eq!(samples(Who::Floor, "b"), [1.0, 1.0]);
        assert!(samples(Who::Other, "a").is_empty());
    }
}
