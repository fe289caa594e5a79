//! What a schedule is and how people write it.

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use super::duration::{parse_clock, parse_duration};
use super::expression::Expression;
use super::moment::Moment;
use super::{CronError, moment};
use crate::world::{Millis, clock::MINUTE};

/// When a job runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// Every so many minutes of elapsed time.
    Interval {
        /// Minutes between two runs; 0 is due at once for ever.
        minutes: i64,
    },
    /// At the occurrences of a cron expression.
    Cron {
        /// The expression as it was written.
        expr: String,
    },
    /// Once.
    Once {
        /// When.
        run_at: Moment,
    },
}

impl Schedule {
    /// Reads a stored schedule; `None` when it cannot be used.
    pub fn read(value: &Value) -> Option<Self> {
        match value.get("kind")?.as_str()? {
            "interval" => Some(Self::Interval { minutes: value.get("minutes")?.as_i64()? }),
            "cron" => {
                let expr = value.get("expr")?.as_str().filter(|expr| !expr.trim().is_empty())?;
                Some(Self::Cron { expr: expr.to_owned() })
            }
            "once" => Some(Self::Once { run_at: Moment::parse(value.get("run_at")?.as_str()?)? }),
            _ => None,
        }
    }

    /// The schedule as it is stored.
    pub fn to_value(&self) -> Value {
        let mut stored = Map::new();
        stored.insert("kind".to_owned(), json!(self.kind()));
        match self {
            Self::Interval { minutes } => stored.insert("minutes".to_owned(), json!(minutes)),
            Self::Cron { expr } => stored.insert("expr".to_owned(), json!(expr)),
            Self::Once { run_at } => stored.insert("run_at".to_owned(), json!(run_at.to_string())),
        };
        Value::Object(stored)
    }

    /// `interval`, `cron` or `once`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Interval { .. } => "interval",
            Self::Cron { .. } => "cron",
            Self::Once { .. } => "once",
        }
    }

    /// Reads what a person wrote (Hermes cron/jobs.py:787).
    ///
    /// # Errors
    /// The kind of phrase that was begun and not finished: duration, expression, time; else
    /// [`CronError::Schedule`].
    pub fn parse(text: &str, now: Millis, zone: &TimeZone) -> Result<Self, CronError> {
        let text = text.trim();
        let every = strip_word(text, "every ");
        if let Some(expr) = clock_phrase(every.unwrap_or(text)) {
            return Ok(Self::Cron { expr });
        }
        if let Some(every) = every {
            return Ok(Self::Interval { minutes: parse_duration(every)? });
        }
        let fields: Vec<&str> = text.split_whitespace().collect();
        let cron_like = |field: &&str| {
            field.chars().all(|ch| ch.is_ascii_alphanumeric() || matches!(ch, '*' | '-' | ',' | '/'))
        };
        if fields.len() >= 5 && fields[..5].iter().all(cron_like) {
            Expression::parse(text)?;
            return Ok(Self::Cron { expr: text.to_owned() });
        }
        if text.contains('T') || starts_like_date(text) {
            let run_at = Moment::parse(text).ok_or(CronError::Timestamp)?.or_in(zone);
            return Ok(Self::Once { run_at });
        }
        if let Some(delay) = strip_word(text, "in ") {
            let delay = parse_duration(delay)?.checked_mul(MINUTE).and_then(|delay| now.checked_add(delay));
            let run_at = delay.ok_or(CronError::Duration)?;
            return Ok(Self::Once { run_at: Moment::of(moment::timestamp(run_at), zone) });
        }
        parse_duration(text).map(|minutes| Self::Interval { minutes }).map_err(|_| CronError::Schedule)
    }
}

/// The text behind a leading word, in any case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

fn starts_like_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// `<days> [at] <time>` as an expression; `None` when anything is left over or missing.
fn clock_phrase(text: &str) -> Option<String> {
    let lower = text.to_lowercase().replace(',', " ");
    let words: Vec<&str> = lower.split_whitespace().collect();
    let (days, mut used) = match *words.first()? {
        "day" | "daily" | "everyday" => ("*".to_owned(), 1),
        "weekday" | "weekdays" => ("1-5".to_owned(), 1),
        "weekend" | "weekends" => ("0,6".to_owned(), 1),
        _ => named_days(&words)?,
    };
    if words.get(used) == Some(&"at") {
        used += 1;
    }
    let (hour, minute) = parse_clock(&words[used..].join(" "))?;
    Some(format!("{minute} {hour} * * {days}"))
}

/// Leading weekday names as a list, and how many words they took.
fn named_days(words: &[&str]) -> Option<(String, usize)> {
    let mut days: Vec<u8> = Vec::new();
    let mut used = 0;
    for word in words {
        if let Some(day) = weekday(word) {
            if !days.contains(&day) {
                days.push(day);
            }
        } else if *word != "and" || days.is_empty() {
            break;
        }
        used += 1;
    }
    let list: Vec<String> = days.iter().map(u8::to_string).collect();
    (!list.is_empty()).then(|| (list.join(","), used))
}

fn weekday(word: &str) -> Option<u8> {
    Some(match word {
        "sunday" | "sundays" | "sun" => 0,
        "monday" | "mondays" | "mon" => 1,
        "tuesday" | "tuesdays" | "tue" | "tues" => 2,
        "wednesday" | "wednesdays" | "wed" | "weds" => 3,
        "thursday" | "thursdays" | "thu" | "thur" | "thurs" => 4,
        "friday" | "fridays" | "fri" => 5,
        "saturday" | "saturdays" | "sat" => 6,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Schedule, CronError> {
        Schedule::parse(text, 0, &TimeZone::UTC)
    }

    #[test]
    fn weekdays_keep_their_order_and_commas_count_as_blanks() {
        let expr = "30 21 * * 5,1".to_owned();
        assert_eq!(parse("every fri, and mon and friday at 9:30 pm"), Ok(Schedule::Cron { expr }));
    }

    #[test]
    fn a_bare_duration_recurs_and_a_day_without_time_is_an_interval() {
        assert_eq!(parse("90m"), Ok(Schedule::Interval { minutes: 90 }));
        assert_eq!(parse("every day"), Ok(Schedule::Interval { minutes: 1_440 }));
        assert_eq!(parse("every monday"), Err(CronError::Duration));
    }

    #[test]
    fn text_that_is_not_ascii_is_no_schedule() {
        assert_eq!(parse("每天9点"), Err(CronError::Schedule));
    }
}
