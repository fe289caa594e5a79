//! Instants as the harness writes them into its files: ISO 8601 with an offset.
//!
//! Reading is tolerant: a text without zone is UTC, other offsets are converted, anything else is no instant.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::world::Millis;

/// An instant as text, `2026-10-01T12:00:00+00:00`; fractions only if there are any.
///
/// ```
/// use hermes_lab::agent::stamp;
/// assert_eq!(stamp::show(1_790_856_000_000), "2026-10-01T12:00:00+00:00");
/// assert_eq!(stamp::parse("2026-10-01T14:00:00+02:00"), Some(1_790_856_000_000));
/// ```
pub fn show(at: Millis) -> String {
    format(at, "%Y-%m-%dT%H:%M:%S").map_or_else(String::new, |text| match at.rem_euclid(1_000) {
        0 => format!("{text}+00:00"),
        fraction => format!("{text}.{fraction:03}000+00:00"),
    })
}

/// The instant that a text names.
pub fn parse(text: &str) -> Option<Millis> {
    let text = text.trim();
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.as_millisecond());
    }
    let civil: DateTime = text.parse().ok()?;
    Some(TimeZone::UTC.to_timestamp(civil).ok()?.as_millisecond())
}

/// Fourteen digits in UTC, for names of directories that were taken.
pub fn compact(at: Millis) -> String {
    format(at, "%Y%m%d%H%M%S").unwrap_or_default()
}

/// An instant in UTC by a pattern; `None` outside the calendar.
pub fn format(at: Millis, pattern: &str) -> Option<String> {
    let at = Timestamp::from_millisecond(at).ok()?;
    Some(TimeZone::UTC.to_datetime(at).strftime(pattern).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_zone_is_utc_and_nonsense_is_nothing() {
        assert_eq!(parse("2026-10-01T12:00:00"), parse("2026-10-01T12:00:00Z"));
        assert_eq!(parse("2026-10-01 12:00:00"), parse("2026-10-01T12:00:00+00:00"));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse(&show(1_790_856_000_123)), Some(1_790_856_000_123));
    }
}
