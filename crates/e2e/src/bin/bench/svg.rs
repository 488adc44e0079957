//! A picture of the committed ratios, as bars. The same figures give the same bytes.

use crate::committed::{Committed, CommittedFigure};
use crate::compare::Better;
use crate::unit::Unit;

/// The width of the names, of the longest bar, and of the whole.
const NAMES: f64 = 440.0;
const BARS: f64 = 360.0;
const WIDTH: f64 = 920.0;
/// The height of a line.
const LINE: f64 = 24.0;

/// Draws the ratios: first what should be small, then what should be large. Each group has a scale of its own, from nothing
/// to its longest bar, and a line at 1, which is the floor.
pub fn draw(committed: &Committed) -> String {
    let mut body = String::new();
    let mut y = 28.0;
    let title = format!("ptyd compared with bare terminals, {}, {}", committed.taken, committed.machine);
    body.push_str(&text(12.0, y, "bold", &title));
    for (better, heading) in [
        (Better::Less, "as a multiple of the floor (less is better)"),
        (Better::More, "as a part of the floor's speed (more is better)"),
    ] {
        let is_drawn = |figure: &&CommittedFigure| figure.better == better && figure.unit == Unit::Ratio;
        let figures: Vec<&CommittedFigure> = committed.figures.iter().filter(is_drawn).collect();
        if figures.is_empty() {
            continue;
        }
        y += LINE * 1.5;
        body.push_str(&text(12.0, y, "bold", heading));
        let most = figures.iter().map(|figure| figure.estimate.value).fold(1.0, f64::max);
        let top = y + 8.0;
        for figure in figures {
            y += LINE;
            body.push_str(&bar(figure, y, BARS / most));
        }
        let one = NAMES + BARS / most;
        let bottom = y + 8.0;
        body.push_str(&format!(
            "<line x1=\"{one:.1}\" y1=\"{top:.1}\" x2=\"{one:.1}\" y2=\"{bottom:.1}\" stroke=\"#888\" stroke-dasharray=\"3 3\"/>\n"
        ));
    }
    let height = y + LINE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height:.0}\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

/// Its name, its bar, how far the rounds were from it, and its number.
fn bar(figure: &CommittedFigure, y: f64, scale: f64) -> String {
    let (value, noise) = (figure.estimate.value, figure.estimate.noise);
    let (width, middle) = (value * scale, y - 4.5);
    let (low, high) = (NAMES + (value - noise).max(0.0) * scale, NAMES + (value + noise) * scale);
    let top = y - 13.0;
    let shown = format!("{value:.2} ± {noise:.2}");
    format!(
        "{}<rect x=\"{NAMES:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"17\" fill=\"#4a7ebb\"/>\n\
         <line x1=\"{low:.1}\" y1=\"{middle:.1}\" x2=\"{high:.1}\" y2=\"{middle:.1}\" stroke=\"#000\"/>\n{}",
        text(12.0, y, "normal", &figure.name),
        text(high.max(NAMES + width) + 8.0, y, "normal", &shown)
    )
}

fn text(x: f64, y: f64, weight: &str, text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" font-weight=\"{weight}\" fill=\"#000\">{escaped}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::committed::{Committed, CommittedFigure};
    use crate::compare::Better;
    use crate::samples::Estimate;
    use crate::unit::Unit;

    fn figure(name: &str, unit: Unit, value: f64, better: Better) -> CommittedFigure {
        CommittedFigure { name: name.to_owned(), unit, estimate: Estimate { value, noise: 0.5 }, better }
    }

    #[test]
    fn every_ratio_is_a_bar_and_nothing_else_is() {
        let figures = vec![
            figure("a<b", Unit::Ratio, 4.0, Better::Less),
            figure("speed", Unit::Ratio, 0.5, Better::More),
            figure("memory", Unit::Bytes, 9.0, Better::Less),
        ];
        let committed = Committed { taken: "2026-01-02".to_owned(), machine: "2 × M".to_owned(), figures };
        let picture = draw(&committed);
        assert_eq!(picture.matches("height=\"17\"").count(), 2);
        assert!(picture.contains("a&lt;b") && picture.contains("4.00 ± 0.50") && !picture.contains("memory"));
        // The longest bar has the whole width; a speed below 1 leaves the rest of the way to the floor.
        assert!(picture.contains("width=\"360.0\" height=\"17\"") && picture.contains("width=\"180.0\" height=\"17\""));
        assert_eq!(picture, draw(&committed));
    }
}
