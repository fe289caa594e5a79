//! Cron expressions: five fields, or six with seconds at the end.
//!
//! Lists, ranges that may wrap, steps, names, `L` for the last day of the month. If both day fields are restricted,
//! either suffices. Works on wall times only; zones are the business of `next_run`.

use jiff::ToSpan;
use jiff::civil::{Date, DateTime, Time};

use super::CronError;

/// Years that are searched for an occurrence.
const YEARS_MAX: i16 = 50;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A parsed expression. Each field is a set of bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression {
    seconds: u64,
    minutes: u64,
    hours: u64,
    days: u64,
    last_day: bool,
    months: u64,
    weekdays: u64,
    any_day: bool,
    any_weekday: bool,
}

struct Field {
    low: u32,
    high: u32,
    names: &'static [&'static str],
    /// What the first name stands for.
    first_name: u32,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// [`CronError::CronExpression`] for a wrong number of fields, values out of range, steps of 0.
    ///
    /// ```
    /// use hermes_lab::agent::cron::Expression;
    /// assert!(Expression::parse("0 9 * * FRI-MON").is_ok());
    /// assert!(Expression::parse("60 * * * *").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        if !(5..=6).contains(&fields.len()) {
            return Err(CronError::CronExpression);
        }
        let plain = |low, high| Field { low, high, names: &[], first_name: 0 };
        let (mut days, mut last_day) = (Vec::new(), false);
        for item in fields[2].split(',') {
            if item.eq_ignore_ascii_case("l") { last_day = true } else { days.push(item) }
        }
        let days = if days.is_empty() { Some(0) } else { set(&days.join(","), &plain(1, 31)) };
        let weekdays = set(fields[4], &Field { low: 0, high: 7, names: &DAYS, first_name: 0 });
        let parsed = (|| {
            // Sunday is 0 and 7.
            let weekdays = weekdays.map(|bits| (bits | (bits >> 7)) & 0x7f)?;
            let days = days?;
            Some(Self {
                seconds: fields.get(5).map_or(Some(1), |field| set(field, &plain(0, 59)))?,
                minutes: set(fields[0], &plain(0, 59))?,
                hours: set(fields[1], &plain(0, 23))?,
                days,
                last_day,
                months: set(fields[3], &Field { low: 1, high: 12, names: &MONTHS, first_name: 1 })?,
                weekdays,
                any_day: days == 0xffff_fffe,
                any_weekday: weekdays == 0x7f,
            })
        })();
        parsed.ok_or(CronError::CronExpression)
    }

    /// The next wall time strictly after `after`; `None` when there is none within fifty years.
    pub fn next_after(&self, after: DateTime) -> Option<DateTime> {
        let whole = after.with().subsec_nanosecond(0).build().ok()?;
        let from = whole.checked_add(1.second()).ok()?;
        let mut date = from.date();
        let last_year = date.year().saturating_add(YEARS_MAX);
        let mut earliest = from.time();
        while date.year() <= last_year {
            if self.is_on(date)
                && let Some(time) = self.time_from(earliest)
            {
                return Some(date.to_datetime(time));
            }
            earliest = Time::midnight();
            date = if bit(self.months, date.month()) {
                date.tomorrow().ok()?
            } else {
                date.first_of_month().checked_add(1.month()).ok()?
            };
        }
        None
    }

    /// True when the wall time, to the second, is an occurrence.
    pub fn is_at(&self, wall: DateTime) -> bool {
        self.is_on(wall.date())
            && bit(self.hours, wall.hour())
            && bit(self.minutes, wall.minute())
            && bit(self.seconds, wall.second())
    }

    fn is_on(&self, date: Date) -> bool {
        if !bit(self.months, date.month()) {
            return false;
        }
        let day = bit(self.days, date.day()) || (self.last_day && date.day() == date.days_in_month());
        let weekday = bit(self.weekdays, date.weekday().to_sunday_zero_offset());
        match (self.any_day, self.any_weekday) {
            (false, false) => day || weekday,
            (true, _) => weekday,
            (_, true) => day,
        }
    }

    /// The first time of day that is not before `earliest`.
    fn time_from(&self, earliest: Time) -> Option<Time> {
        let (hour, minute, second) = (earliest.hour(), earliest.minute(), earliest.second());
        let at = |hour: i8, minute: i8, second: i8| Time::new(hour, minute, second, 0).ok();
        if bit(self.hours, hour) {
            if bit(self.minutes, minute)
                && let Some(second) = from_bit(self.seconds, second)
            {
                return at(hour, minute, second);
            }
            if let Some(minute) = from_bit(self.minutes, minute + 1) {
                return at(hour, minute, from_bit(self.seconds, 0)?);
            }
        }
        at(from_bit(self.hours, hour + 1)?, from_bit(self.minutes, 0)?, from_bit(self.seconds, 0)?)
    }
}

fn bit(set: u64, at: i8) -> bool {
    u32::try_from(at).is_ok_and(|at| set.checked_shr(at).is_some_and(|set| set & 1 == 1))
}

/// The first member of the set that is not below `from`.
fn from_bit(set: u64, from: i8) -> Option<i8> {
    (from..64).find(|at| bit(set, *at))
}

/// The set that a field means.
fn set(text: &str, field: &Field) -> Option<u64> {
    text.split(',').try_fold(0, |bits, item| Some(bits | item_set(item, field)?))
}

fn item_set(item: &str, field: &Field) -> Option<u64> {
    let (range, step) = match item.split_once('/') {
        Some((range, step)) => (range, Some(step.parse::<u32>().ok().filter(|step| *step > 0)?)),
        None => (item, None),
    };
    let (low, high) = if range == "*" {
        (field.low, field.high)
    } else if let Some((low, high)) = range.split_once('-') {
        (value(low, field)?, value(high, field)?)
    } else {
        let low = value(range, field)?;
        (low, if step.is_some() { field.high } else { low })
    };
    let step = step.unwrap_or(1);
    let mut bits = 0u64;
    let size = field.high - field.low + 1;
    let length = if high >= low { high - low } else { high + size - low };
    for passed in (0..=length).step_by(step as usize) {
        bits |= 1 << (field.low + (low - field.low + passed) % size);
    }
    Some(bits)
}

fn value(text: &str, field: &Field) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    if let Some(at) = field.names.iter().position(|name| *name == lower) {
        return Some(u32::try_from(at).ok()? + field.first_name);
    }
    let number: u32 = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()?;
    (field.low..=field.high).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn next(expression: &str) -> String {
        let after = date(2026, 9, 30).at(10, 15, 30, 0);
        Expression::parse(expression).unwrap().next_after(after).unwrap().to_string()
    }

    #[test]
    fn falling_ranges_wrap_and_steps_start_at_their_value() {
        assert_eq!(next("0 22-2 * * *"), "2026-09-30T22:00:00");
        assert_eq!(next("5/20 * * * *"), "2026-09-30T10:25:00");
        assert_eq!(next("0 0 * * 6-7"), "2026-10-03T00:00:00");
    }

    #[test]
    fn either_day_field_suffices_when_both_are_restricted() {
        assert_eq!(next("0 12 1 * 5"), "2026-10-01T12:00:00");
        assert_eq!(next("0 12 L 2 *"), "2027-02-28T12:00:00");
    }

    #[test]
    fn a_date_that_never_comes_has_no_occurrence() {
        let never = Expression::parse("0 0 31 2 *").unwrap();
        assert_eq!(never.next_after(date(2026, 1, 1).at(0, 0, 0, 0)), None);
    }

    #[test]
    fn zero_steps_and_a_seventh_field_are_refused() {
        assert!(Expression::parse("*/0 * * * *").is_err());
        assert!(Expression::parse("1 2 3 4 5 6 7").is_err());
    }
}
