//! The small phrases of a schedule: durations, clock times, numbers of runs.

use serde_json::Value;
use unicode_general_category::{GeneralCategory, get_general_category};

use super::CronError;

/// The whole minutes that a duration means: `30m`, `2 hours`, `day` (Hermes cron/jobs.py:787).
///
/// # Errors
/// [`CronError::Duration`] for fractions, combinations, other units.
pub fn parse_duration(text: &str) -> Result<i64, CronError> {
    let text = text.trim().to_lowercase();
    let digits: String = text.chars().take_while(|ch| digit(*ch).is_some()).collect();
    let unit = text[digits.len()..].trim_start();
    let each = match unit {
        "m" | "min" | "mins" | "minute" | "minutes" => 1,
        "h" | "hr" | "hrs" | "hour" | "hours" => 60,
        "d" | "day" | "days" => 1_440,
        _ => return Err(CronError::Duration),
    };
    let count = if digits.is_empty() { Some(1) } else { number(&digits) };
    count.and_then(|count| count.checked_mul(each)).ok_or(CronError::Duration)
}

/// The value of a decimal digit of any script.
fn digit(ch: char) -> Option<i64> {
    if let Some(value) = ch.to_digit(10) {
        return Some(i64::from(value));
    }
    if get_general_category(ch) != GeneralCategory::DecimalNumber {
        return None;
    }
    // Every script has its ten digits in one run, the zero first.
    let below = (0..10u32).take_while(|back| {
        let before = char::from_u32((ch as u32).wrapping_sub(*back));
        before.is_some_and(|before| get_general_category(before) == GeneralCategory::DecimalNumber)
    });
    Some(i64::try_from(below.count()).unwrap_or(1) - 1)
}

fn number(digits: &str) -> Option<i64> {
    digits.chars().try_fold(0i64, |sum, ch| sum.checked_mul(10)?.checked_add(digit(ch)?))
}

/// Hour and minute of a clock phrase: `9am`, `9:30 pm`, `14:00`, `7`, `noon`, `midnight`.
///
/// ```
/// use hermes_lab::agent::cron::duration::parse_clock;
/// assert_eq!(parse_clock("12:30 am"), Some((0, 30)));
/// assert_eq!(parse_clock("13pm"), None);
/// ```
pub fn parse_clock(text: &str) -> Option<(u8, u8)> {
    let text = text.trim().to_lowercase();
    match text.as_str() {
        "noon" | "midday" => return Some((12, 0)),
        "midnight" => return Some((0, 0)),
        _ => {}
    }
    let (clock, half) = match text.strip_suffix("am") {
        Some(clock) => (clock, Some(0)),
        None => text.strip_suffix("pm").map_or((text.as_str(), None), |clock| (clock, Some(12))),
    };
    let clock = clock.trim_end();
    let (hour, minute) = clock.split_once(':').unwrap_or((clock, "00"));
    let part = |text: &str, most: usize| {
        let length = text.chars().count();
        (length >= 1 && length <= most && text.chars().all(|ch| digit(ch).is_some()))
            .then(|| number(text))
            .flatten()
    };
    let minute = part(minute, 2).filter(|value| *value < 60 && minute.chars().count() == 2)?;
    let hour = part(hour, 2)?;
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        None if hour < 24 => hour,
        _ => return None,
    };
    Some((u8::try_from(hour).ok()?, u8::try_from(minute).ok()?))
}

/// How often a job may run; `None` is without limit.
///
/// # Errors
/// [`CronError::Repeat`] for other words, [`CronError::Type`] for lists and objects.
pub fn parse_repeat(value: &Value) -> Result<Option<i64>, CronError> {
    let times = match value {
        Value::Null => return Ok(None),
        Value::Bool(flag) => i64::from(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(number) => number,
            None => truncated(number.as_f64().ok_or(CronError::Repeat)?),
        },
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "" | "forever" | "infinite" | "inf" | "none" => return Ok(None),
            "once" | "one" | "1x" => 1,
            text => text.parse().map_err(|_| CronError::Repeat)?,
        },
        Value::Array(_) | Value::Object(_) => return Err(CronError::Type),
    };
    Ok((times > 0).then_some(times))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the fraction is dropped on purpose and the cast saturates"
)]
fn truncated(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_any_script_count() {
        assert_eq!(parse_duration("３０m"), Ok(30));
        assert_eq!(parse_duration("٩ h"), Ok(540));
        assert_eq!(parse_duration("m30"), Err(CronError::Duration));
    }

    #[test]
    fn a_duration_beyond_all_calendars_is_refused() {
        assert_eq!(parse_duration("99999999999999999999d"), Err(CronError::Duration));
    }
}
