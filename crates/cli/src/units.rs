//! Parses times and sizes on the command line and in the configuration file: a number of seconds or bytes, or a number
//! with its unit.

use std::time::Duration;

const TIMES: [(&str, f64); 6] =
    [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", 86_400.0), ("w", 604_800.0)];
const SIZES: [(&str, f64); 9] = [
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
];

/// A time between two bounds.
pub fn seconds(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let time = time(text)?;
    let wrong = || format!("must be from {} to {} seconds", least.as_secs_f64(), most.as_secs_f64());
    Some(time).filter(|time| (least..=most).contains(time)).ok_or_else(wrong)
}

/// A time.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds =
        value(text, &TIMES).ok_or("must be seconds, or a number with ms, s, m, h, d or w, such as 90 or 2h")?;
    Duration::try_from_secs_f64(seconds).map_err(|e| e.to_string())
}

/// A size in bytes.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wrong = "must be bytes, or a number with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, such as 256MiB";
    // A plain number is parsed exactly: a float would round the largest ones.
    if let Ok(bytes) = text.parse() {
        return Ok(bytes);
    }
    let bytes = value(text, &SIZES).filter(|bytes| (0.0..9e18).contains(bytes) && bytes.fract() == 0.0).ok_or(wrong)?;
    Ok(bytes as u64)
}

/// A size for people, in its largest unit.
pub fn format_size(bytes: u64) -> String {
    let mut units = SIZES[..5].iter().rev();
    match units.find(|(_, size)| bytes as f64 >= *size && *size > 1.0) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / size),
        None => format!("{bytes} bytes"),
    }
}

fn value(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let factor = if unit.is_empty() { 1.0 } else { units.iter().find(|(name, _)| *name == unit)?.1 };
    let number: f64 = number.trim_end().parse().ok()?;
    Some(number * factor).filter(|value| value.is_finite() && *value >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_seconds_or_has_a_unit() {
        let seconds = |text: &str| time(text).ok().map(|time| time.as_secs_f64());
        assert_eq!(
            ["90", "0.5s", "250ms", "30m", "12h", "7d", "2w", "2 h"].map(seconds),
            [
                Some(90.0),
                Some(0.5),
                Some(0.25),
                Some(1_800.0),
                Some(43_200.0),
                Some(604_800.0),
                Some(1_209_600.0),
                Some(7_200.0)
            ]
        );
        assert!(["", "d", "-1d", "soon", "infd", "inf", "NaN", "5y", "1ä", "1e400"].iter().all(|t| time(t).is_err()));
    }

    #[test]
    fn a_size_is_printed_in_its_largest_unit() {
        assert_eq!(
            [0, 1023, 1024, 5 << 20, 3 << 30].map(format_size),
            ["0 bytes", "1023 bytes", "1.0 KiB", "5.0 MiB", "3.0 GiB"]
        );
    }

    #[test]
    fn a_size_is_bytes_or_has_a_unit() {
        assert_eq!(
            ["268435456", "256MiB", "1.5KiB", "10GB", "0", "18446744073709551615"].map(|t| bytes(t).ok()),
            [Some(268_435_456), Some(268_435_456), Some(1536), Some(10_000_000_000), Some(0), Some(u64::MAX)]
        );
        assert!(["", "MiB", "-1", "256Mib", "1.5", "0.3B", "99999999TiB"].iter().all(|t| bytes(t).is_err()));
    }
}
