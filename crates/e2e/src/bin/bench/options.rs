//! The command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::measures::MEASURES;

/// The help.
pub const USAGE: &str = "\
cargo xtask bench [measure…] [--quick] [--check] [--save] [--against PATH] [--sessions N]
--quick: few rounds of the measures that need the least time; --check: fail where a figure is worse than the committed one
beyond noise and allowance, or misses its limit, three times (with --quick only memory and processor time); --save: all measures, then write docs/bench.json;
--against: measure another ptyd in the same rounds; --sessions: instead of each measure's own number";

/// The options of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The names of the measures, in the order of the table; none given means all.
    pub measures: Vec<&'static str>,
    /// Few rounds.
    pub is_quick: bool,
    /// Whether to fail where something got worse.
    pub is_check: bool,
    /// Whether to write the committed figures.
    pub saves: bool,
    /// Another ptyd.
    pub against: Option<PathBuf>,
    /// The number of sessions of the measures that have many.
    pub sessions: Option<usize>,
}

impl Options {
    /// Reads the arguments.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--quick" => options.is_quick = true,
                "--check" => options.is_check = true,
                "--save" => options.saves = true,
                "--against" => options.against = Some(args.next().context("--against PATH")?.into()),
                "--sessions" => {
                    let number = args.next().context("--sessions N")?.parse().context("--sessions N")?;
                    ensure!(number > 0, "--sessions N is at least 1");
                    options.sessions = Some(number);
                }
                name => match MEASURES.iter().find(|measure| measure.name == name) {
                    Some(measure) => options.measures.push(measure.name),
                    None => bail!("{USAGE}\nmeasures: {}", MEASURES.map(|measure| measure.name).join(" ")),
                },
            }
        }
        let is_partial = !options.measures.is_empty() || options.is_quick || options.sessions.is_some();
        ensure!(
            !(options.saves && is_partial),
            "--save takes all measures as they are, so that the figures are of one run"
        );
        if options.measures.is_empty() {
            let wanted = MEASURES.iter().filter(|measure| measure.is_quick || !options.is_quick);
            options.measures = wanted.map(|measure| measure.name).collect();
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use crate::measures::MEASURES;

    fn parse(line: &str) -> anyhow::Result<Options> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn measures_are_chosen_by_name() {
        let options = parse("flood true --against /p --sessions 7 --check").expect("it is right");
        assert_eq!(options.measures, ["flood", "true"]);
        assert_eq!((options.against, options.sessions), (Some("/p".into()), Some(7)));
        assert!(options.is_check && !options.saves && !options.is_quick);
    }

    #[test]
    fn without_names_all_are_measured_or_the_quick_ones() {
        assert_eq!(parse("").expect("it is right").measures, MEASURES.map(|measure| measure.name));
        assert_eq!(parse("--quick").expect("it is right").measures, ["true", "create", "idle"]);
    }

    #[test]
    fn an_unknown_option_or_a_partial_save_is_refused() {
        for line in ["fast", "--sessions 0", "--sessions", "--against", "--save true", "--save --quick"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
