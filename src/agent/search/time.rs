//! Bounds of time as a model writes them: spans back from now, and ISO 8601 dates and times.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, ISOWeekDate, Time, Weekday};
use jiff::tz::Offset;
use regex::Regex;
use serde_json::Value;

use super::answer::Refusal;
use crate::store::search::query::trim;
use crate::store::{Seconds, seconds};
use crate::world::Millis;

/// A bound in seconds since the Unix epoch; blank is none (`Hermes tools/session_search_tool.py:127`).
///
/// # Errors
/// [`Refusal::InvalidTimeBound`].
///
/// ```
/// use hermes_lab::agent::search::time::bound;
/// assert_eq!(bound(Some(&"24h".into()), 100_000_000).unwrap(), Some(13_600.0));
/// assert_eq!(bound(Some(&"1970-01-02".into()), 0).unwrap(), Some(86_400.0));
/// assert!(bound(Some(&"soon".into()), 0).is_err());
/// ```
pub fn bound(value: Option<&Value>, now: Millis) -> Result<Option<Seconds>, Refusal> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let text = trim(&text);
    if text.is_empty() {
        return Ok(None);
    }
    let found = span(text).map(|span| seconds(now) - span).or_else(|| iso(text));
    found.map(Some).ok_or_else(|| Refusal::InvalidTimeBound(text.to_owned()))
}

/// True when a conversation that started then lies inside the bounds; an unknown start lies outside any bound.
pub fn is_inside(started: Option<Seconds>, after: Option<Seconds>, before: Option<Seconds>) -> bool {
    match started {
        None => after.is_none() && before.is_none(),
        Some(started) => {
            after.is_none_or(|after| started >= after) && before.is_none_or(|before| started < before)
        }
    }
}

/// A number of hours, days or weeks, in seconds.
fn span(text: &str) -> Option<Seconds> {
    let unit = text.chars().next_back()?;
    let digits = trim(&text[..text.len() - unit.len_utf8()]);
    let hours = match unit.to_ascii_lowercase() {
        'h' => 1.0,
        'd' => 24.0,
        'w' => 168.0,
        _ => return None,
    };
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: Seconds = digits.parse().ok().filter(|_| plain)?;
    let span = number * hours * 3_600.0;
    span.is_finite().then_some(span)
}

/// A date or a date and a time; without a zone it is UTC, a date alone is its midnight.
fn iso(text: &str) -> Option<Seconds> {
    static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"(?x)^
            (?: (?<y>\d{4}) (?: -(?<m>\d\d)-(?<d>\d\d) | (?<mb>\d\d)(?<db>\d\d)
                | -W(?<w>\d\d)(?:-(?<wd>\d))? | W(?<wb>\d\d)(?<wdb>\d)? ) )
            (?: [^\d] (?<h>\d\d) (?: :(?<min>\d\d)(?: :(?<s>\d\d)(?:[.,](?<f>\d{1,9})\d*)? )?
                | (?<minb>\d\d)(?: (?<sb>\d\d)(?:[.,](?<fb>\d{1,9})\d*)? )? )?
                (?<zone> Z | [+-]\d\d(?: :?\d\d (?: :?\d\d (?:\.\d{1,9})? )? )? )? )?$";
        Regex::new(pattern).expect("a constant pattern compiles")
    });
    let found = SHAPE.captures(text)?;
    let part = |names: [&str; 2]| names.iter().find_map(|name| found.name(name)).map(|part| part.as_str());
    let number = |names: [&str; 2]| part(names).and_then(|digits| digits.parse::<i8>().ok());
    let year: i16 = found.name("y")?.as_str().parse().ok()?;
    let date = match number(["w", "wb"]) {
        Some(week) => {
            let weekday = Weekday::from_monday_one_offset(number(["wd", "wdb"]).unwrap_or(1)).ok()?;
            ISOWeekDate::new(year, week, weekday).ok()?.date()
        }
        None => Date::new(year, number(["m", "mb"])?, number(["d", "db"])?).ok()?,
    };
    let fraction = part(["f", "fb"]).map_or(0, |digits| {
        let padded = format!("{digits:0<9}");
        padded.parse::<i32>().unwrap_or(0)
    });
    let hour = found.name("h").map_or(Some(0), |digits| digits.as_str().parse().ok())?;
    let (minute, second) = (number(["min", "minb"]).unwrap_or(0), number(["s", "sb"]).unwrap_or(0));
    let time = Time::new(hour, minute, second, fraction).ok()?;
    let offset = found.name("zone").map_or(Some(0), |zone| offset_seconds(zone.as_str()))?;
    let offset = Offset::from_seconds(offset).ok()?;
    let stamp: Timestamp = offset.to_timestamp(DateTime::from_parts(date, time)).ok()?;
    Some(stamp.as_duration().as_secs_f64())
}

fn offset_seconds(zone: &str) -> Option<i32> {
    let Some(sign) = zone.chars().next().filter(|c| *c != 'Z') else { return Some(0) };
    let digits: String =
        zone.chars().skip(1).take_while(|c| *c != '.').filter(char::is_ascii_digit).collect();
    let part = |at: usize| digits.get(at..at + 2).map_or(Some(0), |part| part.parse::<i32>().ok());
    let (hours, minutes, rest) = (part(0)?, part(2)?, part(4)?);
    if hours > 23 || minutes > 59 || rest > 59 {
        return None;
    }
    let total = hours * 3_600 + minutes * 60 + rest;
    Some(if sign == '-' { -total } else { total })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<Seconds> {
        bound(Some(&Value::from(text)), 0).ok().flatten()
    }

    #[test]
    fn basic_and_week_dates_and_zones_are_read() {
        assert_eq!(at("19700102T0100"), Some(90_000.0));
        assert_eq!(at("1970-W01-5"), Some(86_400.0));
        assert_eq!(at("1970W015"), Some(86_400.0));
        assert_eq!(at("1970-01-02T00:00:00.5-01:00"), Some(90_000.5));
        assert_eq!(at("1970-01-02 00Z"), Some(86_400.0));
    }

    #[test]
    fn what_is_no_whole_date_is_refused() {
        for text in ["2026-07", "2026", "2026-7-1", "2026-02-30", "2026-07-01T24:00", "7m", "-1d", "2026-W54"]
        {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
