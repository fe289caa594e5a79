//! Instants as the scheduler writes them: ISO 8601 with the offset that they were written in.
//!
//! The offset matters: a stored `09:00+02:00` and a stored `07:00+00:00` are one instant but two wall times, and the
//! scan compares wall times after a change of zone. A text without offset stays without and reads as UTC.

use std::fmt;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{Offset, TimeZone};

use crate::world::Millis;

/// A wall time with or without offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The wall time.
    pub wall: DateTime,
    /// Seconds east of UTC; `None` when the text named none.
    pub offset: Option<Offset>,
}

impl Moment {
    /// The moment at which `now` is shown in a zone.
    pub fn at(now: Millis, zone: &TimeZone) -> Self {
        Self::of(timestamp(now), zone)
    }

    /// The moment at which an instant is shown in a zone.
    pub fn of(instant: Timestamp, zone: &TimeZone) -> Self {
        let offset = zone.to_offset(instant);
        Self { wall: offset.to_datetime(instant), offset: Some(offset) }
    }

    /// The instant; a text without offset is UTC, as the system's zone is.
    pub fn instant(&self) -> Timestamp {
        let offset = self.offset.unwrap_or(Offset::UTC);
        // Only wall times at the very end of the calendar leave the range.
        offset.to_timestamp(self.wall).unwrap_or(Timestamp::MAX)
    }

    /// Milliseconds since the Unix epoch.
    pub fn millis(&self) -> Millis {
        self.instant().as_millisecond()
    }

    /// The zone in which results that start from this moment are shown.
    pub fn zone(&self) -> TimeZone {
        TimeZone::fixed(self.offset.unwrap_or(Offset::UTC))
    }

    /// The same moment, read in `zone` when the text named no offset.
    #[must_use]
    pub fn or_in(self, zone: &TimeZone) -> Self {
        match self.offset {
            Some(_) => self,
            None => Self { wall: self.wall, offset: Some(first_offset(zone, self.wall)) },
        }
    }

    /// Reads ISO 8601 in its extended and basic forms; any one character may stand between date and time.
    ///
    /// ```
    /// use hermes_lab::agent::cron::Moment;
    /// assert_eq!(Moment::parse("20261001T090000").unwrap().to_string(), "2026-10-01T09:00:00");
    /// assert!(Moment::parse("2026-02-29").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        if !text.is_ascii() {
            return None;
        }
        let (date, rest) = date(text)?;
        if rest.is_empty() {
            return Some(Self { wall: date.to_datetime(Time::midnight()), offset: None });
        }
        let rest = &rest[1..];
        let (clock, zone) = match rest.find(['+', '-', 'Z', 'z']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let time = time(clock)?;
        let offset = if zone.is_empty() { None } else { Some(offset(zone)?) };
        Some(Self { wall: date.to_datetime(time), offset })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (date, time) = (self.wall.date(), self.wall.time());
        write!(f, "{:04}-{:02}-{:02}", date.year(), date.month(), date.day())?;
        write!(f, "T{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second())?;
        let micros = time.subsec_nanosecond() / 1_000;
        if micros != 0 {
            write!(f, ".{micros:06}")?;
        }
        if let Some(offset) = self.offset {
            let seconds = offset.seconds();
            let sign = if seconds < 0 { '-' } else { '+' };
            let seconds = seconds.unsigned_abs();
            write!(f, "{sign}{:02}:{:02}", seconds / 3_600, seconds / 60 % 60)?;
            if seconds % 60 != 0 {
                write!(f, ":{:02}", seconds % 60)?;
            }
        }
        Ok(())
    }
}

/// The instant at `now`.
pub fn timestamp(now: Millis) -> Timestamp {
    Timestamp::from_millisecond(now).unwrap_or(if now < 0 { Timestamp::MIN } else { Timestamp::MAX })
}

/// The offset of the first reading of a wall time; from before a gap.
pub fn first_offset(zone: &TimeZone, wall: DateTime) -> Offset {
    use jiff::tz::AmbiguousOffset::{Fold, Gap, Unambiguous};
    match zone.to_ambiguous_timestamp(wall).offset() {
        Unambiguous { offset } => offset,
        Gap { before, .. } | Fold { before, .. } => before,
    }
}

/// The offset of the second reading of a wall time; from behind a gap.
pub fn second_offset(zone: &TimeZone, wall: DateTime) -> Offset {
    use jiff::tz::AmbiguousOffset::{Fold, Gap, Unambiguous};
    match zone.to_ambiguous_timestamp(wall).offset() {
        Unambiguous { offset } => offset,
        Gap { after, .. } | Fold { after, .. } => after,
    }
}

fn digits(text: &str, length: usize) -> Option<i32> {
    let part = text.get(..length)?;
    part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
}

fn small<T: TryFrom<i32>>(text: &str, length: usize) -> Option<T> {
    T::try_from(digits(text, length)?).ok()
}

fn date(text: &str) -> Option<(Date, &str)> {
    let year = small(text, 4)?;
    let (month, day, rest) = if text.as_bytes().get(4) == Some(&b'-') {
        if text.as_bytes().get(7) != Some(&b'-') {
            return None;
        }
        (small(text.get(5..)?, 2)?, small(text.get(8..)?, 2)?, text.get(10..)?)
    } else {
        (small(text.get(4..)?, 2)?, small(text.get(6..)?, 2)?, text.get(8..)?)
    };
    Some((Date::new(year, month, day).ok()?, rest))
}

fn time(text: &str) -> Option<Time> {
    let (clock, fraction) =
        text.split_once(['.', ',']).map_or((text, ""), |(clock, fraction)| (clock, fraction));
    let parts: Vec<&str> = if clock.contains(':') {
        clock.split(':').collect()
    } else {
        (0..clock.len())
            .step_by(2)
            .map(|at| clock.get(at..(at + 2).min(clock.len())))
            .collect::<Option<_>>()?
    };
    let whole = |at: usize| match parts.get(at) {
        Some(part) if part.len() == 2 => small::<i8>(part, 2),
        Some(_) => None,
        None => Some(0),
    };
    if parts.is_empty()
        || parts.len() > 3
        || (text.len() != clock.len() && (parts.len() < 3 || fraction.is_empty()))
    {
        return None;
    }
    let nanos = format!("{fraction:0<6.6}");
    let nanos = digits(&nanos, 6)?.checked_mul(1_000)?;
    Time::new(whole(0)?, whole(1)?, whole(2)?, nanos).ok()
}

fn offset(text: &str) -> Option<Offset> {
    if text.eq_ignore_ascii_case("z") {
        return Some(Offset::UTC);
    }
    let (sign, rest) = text.split_at(1);
    let plain: String = rest.chars().filter(|ch| *ch != ':').collect();
    if !matches!(plain.len(), 2 | 4 | 6) {
        return None;
    }
    let part =
        |at: usize| plain.get(at..).filter(|rest| !rest.is_empty()).map_or(Some(0), |rest| digits(rest, 2));
    let seconds = part(0)? * 3_600 + part(2)? * 60 + part(4)?;
    Offset::from_seconds(if sign == "-" { -seconds } else { seconds }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_as_they_were() {
        for text in ["2026-10-01T09:00:00+08:00", "2026-10-01T09:00:00", "2026-10-01T09:00:00.500000-02:30"] {
            assert_eq!(Moment::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "T",
            "2026-10-01T25:00",
            "2026-10-01T",
            "2026-1-1",
            "2026-10-01T9:00",
            "2026-10-01T09:00+1",
            "🕘",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
