//! When a job runs next, how late it may be, and how its lateness is called.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

use super::CronError;
use super::expression::Expression;
use super::moment::{self, Moment, first_offset, second_offset};
use super::schedule::Schedule;
use crate::policy;
use crate::world::{Millis, clock::SECOND};

/// Seconds between runs that no calendar repeats.
const MINUTE_SECONDS: i64 = 60;

/// The next run (Hermes cron/jobs.py:1178). `last_run` is the stored text of the last run; callers that want the run
/// after the present pass none.
///
/// # Errors
/// [`CronError::NoOccurrence`] when the expression never comes true, [`CronError::CronExpression`] when it is none.
pub fn next_run(
    schedule: &Schedule,
    now: Millis,
    zone: &TimeZone,
    last_run: Option<&str>,
    knobs: &policy::Cron,
) -> Result<Option<Moment>, CronError> {
    let last = last_run.and_then(Moment::parse);
    let base = last.unwrap_or_else(|| Moment::at(now, zone));
    match schedule {
        Schedule::Once { run_at } => {
            let grace = knobs.one_shot_grace_seconds.cast_signed().saturating_mul(SECOND);
            let in_time = now.saturating_sub(run_at.millis()) <= grace;
            Ok(Some(*run_at).filter(|_| last_run.is_none() && in_time))
        }
        Schedule::Interval { minutes } => {
            let shown_in = if last.is_some() { base.zone() } else { zone.clone() };
            let step = minutes.checked_mul(MINUTE_SECONDS);
            let next = step.and_then(|step| base.instant().as_second().checked_add(step));
            let next =
                next.and_then(|second| Timestamp::new(second, base.instant().subsec_nanosecond()).ok());
            Ok(next.map(|next| Moment::of(next, &shown_in)))
        }
        Schedule::Cron { expr } => {
            let expression = Expression::parse(expr)?;
            occurrence(&expression, base.instant(), zone).map(Some)
        }
    }
}

/// The first occurrence whose instant lies after `base`, on the wall clock of `zone`.
///
/// A repeated hour is read as its first pass unless the base lies inside the second; a wall time in a gap is given as
/// it is, with the offset from before the gap.
///
/// # Errors
/// [`CronError::NoOccurrence`].
pub fn occurrence(expression: &Expression, base: Timestamp, zone: &TimeZone) -> Result<Moment, CronError> {
    let wall = Moment::of(base, zone).wall;
    let first = expression.next_after(wall).ok_or(CronError::NoOccurrence)?;
    if let Some(moment) = reading_after(first, base, zone) {
        return Ok(moment);
    }
    let following = expression.next_after(first).ok_or(CronError::NoOccurrence)?;
    Ok(reading_after(following, base, zone)
        .unwrap_or(Moment { wall: following, offset: Some(first_offset(zone, following)) }))
}

fn reading_after(wall: DateTime, base: Timestamp, zone: &TimeZone) -> Option<Moment> {
    let readings: [Offset; 2] = [first_offset(zone, wall), second_offset(zone, wall)];
    readings
        .into_iter()
        .map(|offset| Moment { wall, offset: Some(offset) })
        .find(|moment| moment.instant() > base)
}

/// Seconds between two runs: the interval, or the distance of the next two occurrences; `None` when there are none.
pub fn period_seconds(schedule: &Schedule, now: Millis, zone: &TimeZone) -> Option<i64> {
    match schedule {
        Schedule::Once { .. } => None,
        Schedule::Interval { minutes } => minutes.checked_mul(MINUTE_SECONDS),
        Schedule::Cron { expr } => {
            let expression = Expression::parse(expr).ok()?;
            let first = occurrence(&expression, moment::timestamp(now), zone).ok()?.instant();
            let second = occurrence(&expression, first, zone).ok()?.instant();
            Some(second.as_second() - first.as_second())
        }
    }
}

/// Seconds by which a run may be late before it counts as missed (Hermes cron/jobs.py:937).
pub fn grace_seconds(schedule: Option<&Schedule>, now: Millis, zone: &TimeZone, knobs: &policy::Cron) -> i64 {
    let low = knobs.grace_seconds_min.cast_signed();
    let high = knobs.grace_seconds_max.cast_signed().max(low);
    let period = schedule.and_then(|schedule| period_seconds(schedule, now, zone));
    period.map_or(low, |period| period.div_euclid(2).clamp(low, high))
}

/// How late a dispatch was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lateness {
    /// Nothing to remark.
    OnTime,
    /// Later than people would call punctual.
    Late,
    /// Later than the grace: the slot had been missed.
    CatchUp,
}

impl Lateness {
    /// The label for a number of seconds.
    pub fn of(late_seconds: f64, grace_seconds: i64, knobs: &policy::Cron) -> Self {
        if late_seconds > grace_seconds as f64 {
            Self::CatchUp
        } else if late_seconds > knobs.late_seconds as f64 {
            Self::Late
        } else {
            Self::OnTime
        }
    }

    /// The label as a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::OnTime => "on_time",
            Self::Late => "late",
            Self::CatchUp => "catch_up",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(expr: &str, zone: &str, after: &str) -> String {
        let zone = TimeZone::get(zone).unwrap();
        let base = Moment::parse(after).unwrap().instant();
        occurrence(&Expression::parse(expr).unwrap(), base, &zone).unwrap().to_string()
    }

    #[test]
    fn the_hour_stays_right_across_both_clock_changes() {
        assert_eq!(
            next("0 9 * * 1-5", "Europe/Berlin", "2026-10-23T09:00:00+02:00"),
            "2026-10-26T09:00:00+01:00"
        );
        assert_eq!(
            next("0 9 * * 1-5", "Europe/Berlin", "2027-03-26T09:00:00+01:00"),
            "2027-03-29T09:00:00+02:00"
        );
    }

    #[test]
    fn a_repeated_hour_runs_once() {
        assert_eq!(
            next("30 2 * * *", "Europe/Berlin", "2026-10-24T02:30:00+02:00"),
            "2026-10-25T02:30:00+02:00"
        );
        assert_eq!(
            next("30 2 * * *", "Europe/Berlin", "2026-10-25T02:30:00+02:00"),
            "2026-10-26T02:30:00+01:00"
        );
    }

    #[test]
    fn inside_the_second_pass_the_second_reading_counts() {
        assert_eq!(
            next("*/20 * * * *", "Europe/Berlin", "2026-10-25T02:30:00+01:00"),
            "2026-10-25T02:40:00+01:00"
        );
    }

    #[test]
    fn a_wall_time_in_the_gap_keeps_the_offset_from_before() {
        assert_eq!(
            next("30 2 * * *", "Europe/Berlin", "2027-03-27T02:30:00+01:00"),
            "2027-03-28T02:30:00+01:00"
        );
    }
}
