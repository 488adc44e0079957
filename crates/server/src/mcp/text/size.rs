//! Formats durations and counts for people.

use std::time::Duration;

/// `0.3s`, `3.4s`, `12s`, `2m05s`, `1h02m`.
pub(in crate::mcp) fn seconds(duration: Duration) -> String {
    let whole = duration.as_secs();
    let tenths = (duration.as_millis() + 50) / 100;
    match whole {
        _ if tenths < 100 && !tenths.is_multiple_of(10) => format!("{}.{}s", tenths / 10, tenths % 10),
        _ if tenths <= 100 => format!("{}s", tenths / 10),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole / 60 % 60),
    }
}

/// `48,213`.
pub(in crate::mcp) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 byte`, `1,204 bytes`.
pub(in crate::mcp) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short_and_counts_are_grouped() {
        let told = [300, 3_400, 5_000, 9_960, 12_300, 125_000, 3_725_000].map(|ms| seconds(Duration::from_millis(ms)));
        assert_eq!(told, ["0.3s", "3.4s", "5s", "10s", "12s", "2m05s", "1h02m"]);
        assert_eq!([0, 999, 1_000, 48_213, 1_234_567].map(grouped), ["0", "999", "1,000", "48,213", "1,234,567"]);
    }
}
