//! The date line and the trailer that follows it (Hermes agent/system_prompt.py:474).
//!
//! By default only the day is told, never the time, so that a rebuild on the same day makes the same bytes.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

use crate::agent::prompt::identity::{MODEL, PLATFORM, PROVIDER, SESSION};
use crate::policy::{Prompt, PromptClock, PromptDay};
use crate::world::Millis;

/// What the date line depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateInputs<'a> {
    /// The present instant.
    pub now: Millis,
    /// Configured IANA zone; none for the machine's, which is UTC here.
    pub zone: Option<&'a str>,
    /// Id of the session.
    pub session_id: &'a str,
    /// When the session began.
    pub session_start: Option<Millis>,
    /// Id of the first session of the lineage.
    pub lineage_root: Option<&'a str>,
    /// Model.
    pub model: &'a str,
    /// Provider.
    pub provider: &'a str,
    /// Platform.
    pub platform: &'a str,
    /// The chat never ends: no day is told.
    pub timeless: bool,
}

/// The date line before it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DateLine {
    /// Day, or day and time, that the conversation began.
    pub started: Option<String>,
    /// The present day when it is another one.
    pub as_of: Option<String>,
    /// What is known about the zone.
    pub zone: Vec<String>,
    /// Labels and values of the trailer.
    pub fields: Vec<(&'static str, String)>,
}

/// The stamp `YYYYMMDD_HHMMSS` at the front of an id; `None` when there is none or it is impossible.
fn stamp(id: &str) -> Option<DateTime> {
    let digits = |range: std::ops::Range<usize>| {
        let part = id.get(range)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse::<i16>().ok()).flatten()
    };
    if id.as_bytes().get(8) != Some(&b'_') || id.as_bytes().get(15).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let small = |range| digits(range).and_then(|number| i8::try_from(number).ok());
    let (hour, minute, second) = (small(9..11)?, small(11..13)?, small(13..15)?);
    DateTime::new(digits(0..4)?, small(4..6)?, small(6..8)?, hour, minute, second, 0).ok()
}

fn at(now: Millis, zone: &TimeZone) -> Option<ZonedDateTime> {
    Some(Timestamp::from_millisecond(now).ok()?.to_zoned_datetime(zone.clone()))
}

fn show(time: DateTime, knobs: &Prompt) -> String {
    match knobs.clock {
        PromptClock::Day => day(time.date()),
        PromptClock::Second => {
            format!("{} {:02}:{:02}:{:02}", day(time.date()), time.hour(), time.minute(), time.second())
        }
    }
}

fn day(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

fn zone_bits(name: Option<&str>, now: &ZonedDateTime) -> Vec<String> {
    let mut bits: Vec<String> = name.map(str::to_owned).into_iter().collect();
    let info = now.time_zone().to_offset_info(now.timestamp());
    let abbreviation = info.abbreviation().to_owned();
    if !abbreviation.is_empty() && !bits.contains(&abbreviation) {
        bits.push(abbreviation);
    }
    let seconds = info.offset().seconds();
    let (sign, size) = if seconds < 0 { ('-', -seconds) } else { ('+', seconds) };
    bits.push(format!("UTC{sign}{:02}:{:02}", size / 3_600, size / 60 % 60));
    bits
}

/// Works out the date line.
pub fn date_line(inputs: DateInputs<'_>, knobs: &Prompt) -> DateLine {
    let named = inputs.zone.and_then(|name| Some((name, TimeZone::get(name).ok()?)));
    let zone = named.as_ref().map_or(TimeZone::UTC, |(_, zone)| zone.clone());
    let mut line = DateLine::default();
    if let Some(now) = at(inputs.now, &zone) {
        let began = match knobs.day {
            PromptDay::Build => None,
            PromptDay::Start => inputs
                .lineage_root
                .and_then(stamp)
                .or_else(|| stamp(inputs.session_id))
                .or_else(|| Some(at(inputs.session_start?, &zone)?.datetime())),
        };
        // A clock that is meant to break the prefix tells the present time.
        let told = match (knobs.clock, began) {
            (PromptClock::Second, _) | (_, None) => now.datetime(),
            (PromptClock::Day, Some(began)) => began,
        };
        if !inputs.timeless {
            line.started = Some(show(told, knobs));
            if knobs.date_as_of && told.date() != now.date() {
                line.as_of = Some(day(now.date()));
            }
        }
        if knobs.date_zone {
            line.zone = zone_bits(named.as_ref().map(|(name, _)| *name), &now);
        }
    }
    let mut fields = Vec::new();
    if knobs.pass_session_id {
        fields.push((SESSION, inputs.session_id));
    }
    fields.extend([(MODEL, inputs.model), (PROVIDER, inputs.provider)]);
    if knobs.date_platform {
        fields.push((PLATFORM, inputs.platform));
    }
    line.fields = fields
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(label, value)| (label, value.to_owned()))
        .collect();
    line
}

impl DateLine {
    /// The paragraph as it stands in the prompt.
    pub fn text(&self) -> String {
        let zone = if self.zone.is_empty() { String::new() } else { format!(" ({})", self.zone.join(", ")) };
        let mut lines = Vec::new();
        match &self.started {
            Some(started) => lines.push(format!("Started: {started}{zone}")),
            None if !zone.is_empty() => lines.push(format!("Time zone:{zone}")),
            None => {}
        }
        if let Some(today) = &self.as_of {
            lines.push(format!("Today: {today}"));
        }
        lines.extend(self.fields.iter().map(|(label, value)| format!("{label}: {value}")));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_to_the_second_makes_every_build_another() {
        let knobs = Prompt { clock: PromptClock::Second, ..Prompt::default() };
        let inputs = |now| DateInputs { now, session_id: "20260920_081500", ..DateInputs::default() };
        let first = date_line(inputs(1_790_000_000_000), &knobs).text();
        assert_ne!(first, date_line(inputs(1_790_000_001_000), &knobs).text());
        let knobs = Prompt::default();
        let first = date_line(inputs(1_790_000_000_000), &knobs).text();
        assert_eq!(first, date_line(inputs(1_790_000_001_000), &knobs).text());
        assert_eq!(first, "Started: 2026-09-20");
    }

    #[test]
    fn an_unknown_zone_is_the_machines_zone() {
        let knobs = Prompt { date_zone: true, ..Prompt::default() };
        let inputs = DateInputs { zone: Some("Mars/Base"), ..DateInputs::default() };
        assert_eq!(date_line(inputs, &knobs).zone, ["UTC", "UTC+00:00"]);
    }
}
