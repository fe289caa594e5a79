//! Anthropic Messages and everything that copies its markers.
//!
//! An entry is the digest of everything up to a marker. Reading starts at each marker and walks back over at most so
//! many positions; the longest hit counts. A hit restarts the entry's own lifetime, counted from the start of the
//! request. Settings are part of the key from the level on that they touch. Source: the provider's page on prompt
//! caching, August 2026; other platforms differ by [`Rules`] alone.
//!
//! A request costs its markers times the walk, never the length of the prompt.

mod explain;

use std::collections::BTreeMap;
use std::hash::BuildHasherDefault;

use indexmap::IndexMap;

use crate::cache::minimum::Minimum;
use crate::cache::space::{Space, Spaces};
use crate::cache::{Facts, Kind, Observed, Outcome, PrefixCache, Refusal, Speaker, Ttl};
use crate::policy::{self, EntriesAt, Isolation, LifetimeFrom, RenewedWith, ThinkingBreaks, VisibleFrom};
use crate::wire::{Chain, Level, PassThrough};
use crate::world::{Millis, clock};

pub use explain::Missed;

/// What happens to markers beyond the allowed number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtraMarks {
    /// The request is refused.
    Refused,
    /// The last ones count.
    LastCount,
}

/// Rules of a cache with markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Markers that a request may carry.
    pub breakpoints_max: usize,
    /// What happens to more.
    pub extra_marks: ExtraMarks,
    /// Positions that a marker looks at, its own included.
    pub lookback: usize,
    /// A run of tool calls, and a run of tool results, is one position.
    pub collapse_tool_runs: bool,
    /// The tool list is one position.
    pub tool_list_one_position: bool,
    /// Shortest prefix that is cached.
    pub tokens_min: Minimum,
    /// Where entries are left.
    pub entries_at: EntriesAt,
    /// Who shares entries.
    pub isolation: Isolation,
    /// From when on a new entry can be read.
    pub visible_from: VisibleFrom,
    /// Lifetime that a hit gives.
    pub renewed_with: RenewedWith,
    /// From when on a lifetime counts.
    pub lifetime_from: LifetimeFrom,
    /// Life of a five-minute entry without use, in milliseconds.
    pub lifetime_5m: Millis,
    /// Life of a one-hour entry without use, in milliseconds.
    pub lifetime_1h: Millis,
    /// A hit also refreshes shorter entries on its way.
    pub refreshes_shorter: bool,
    /// A marker inside the part that was read leaves an entry.
    pub entry_inside_hit: bool,
    /// The automatic marker is accepted.
    pub auto_supported: bool,
    /// Earlier thinking is dropped when a user's turn begins.
    pub strips_prior_thinking: bool,
    /// What a change of thinking or effort invalidates.
    pub thinking_breaks: ThinkingBreaks,
    /// Markers on tools are ignored.
    pub ignores_tool_marks: bool,
    /// Idle time after which a router goes elsewhere and finds nothing, in milliseconds.
    pub router_idle: Option<Millis>,
}

impl Rules {
    /// The first-party API as the knobs have it.
    pub fn of(knobs: &policy::Cache) -> Self {
        let seconds = |seconds: u64| Millis::try_from(seconds).unwrap_or(Millis::MAX / 1_000) * clock::SECOND;
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self {
            breakpoints_max: count(knobs.breakpoints_max),
            extra_marks: ExtraMarks::Refused,
            lookback: count(knobs.lookback),
            collapse_tool_runs: knobs.collapse_tool_runs,
            tool_list_one_position: knobs.tool_list_one_position,
            tokens_min: knobs.tokens_min.map_or(Minimum::FirstParty, Minimum::Fixed),
            entries_at: knobs.entries_at,
            isolation: knobs.isolation,
            visible_from: knobs.visible_from,
            renewed_with: knobs.renewed_with,
            lifetime_from: knobs.lifetime_from,
            lifetime_5m: seconds(knobs.lifetime_5m),
            lifetime_1h: seconds(knobs.lifetime_1h),
            refreshes_shorter: knobs.refreshes_shorter,
            entry_inside_hit: knobs.entry_inside_hit,
            auto_supported: true,
            strips_prior_thinking: knobs.strips_prior_thinking,
            thinking_breaks: knobs.thinking_breaks,
            ignores_tool_marks: false,
            router_idle: None,
        }
    }

    fn lifetime(&self, ttl: Ttl) -> Millis {
        match ttl {
            Ttl::Minutes5 => self.lifetime_5m,
            Ttl::Minutes30 => 30 * clock::MINUTE,
            Ttl::Hour1 => self.lifetime_1h,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Self::of(&policy::Cache::default())
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    ttl: Ttl,
    /// Start of its present lifetime.
    used: Millis,
    visible: Millis,
}

/// Space, digest of the prefix, and how many of its thinking blocks were dropped.
type Key = (Space, Chain, u32);

/// A cache with markers.
#[derive(Debug, Clone)]
pub struct Explicit {
    rules: Rules,
    spaces: Spaces,
    entries: IndexMap<Key, Entry, BuildHasherDefault<PassThrough>>,
    entries_max: usize,
    last_request: BTreeMap<Space, Millis>,
}

impl Explicit {
    /// An empty cache with these rules.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            spaces: Spaces::default(),
            entries: IndexMap::default(),
            entries_max: usize::MAX,
            last_request: BTreeMap::new(),
        }
    }

    /// Gives up the older half of its entries whenever there are more than so many.
    #[must_use]
    pub fn with_entries_max(mut self, entries: usize) -> Self {
        self.entries_max = entries.max(2);
        self
    }

    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    fn live(&self, at: Millis, key: &Key) -> Option<&Entry> {
        let entry = self.entries.get(key)?;
        (at.saturating_sub(entry.used) <= self.rules.lifetime(entry.ttl)).then_some(entry)
    }

    /// One space for each level; a setting belongs to the levels that its change invalidates.
    fn spaces_of(&mut self, request: &Observed<'_>) -> [Space; 3] {
        let workspace = if self.rules.isolation == Isolation::Workspace { request.workspace } else { "" };
        let parts = [request.model, request.org, workspace, request.key];
        let breaks = self.rules.thinking_breaks;
        [Level::Tools, Level::System, Level::Messages].map(|level| {
            let touching = request.params.iter().filter(|(name, value)| {
                !is_default(name, value) && first_level(name, breaks).is_some_and(|first| first <= level)
            });
            self.spaces.number(&parts, touching)
        })
    }

    /// A router that was idle for long has forgotten which provider holds the entries.
    fn route(&mut self, at: Millis, spaces: [Space; 3]) {
        let Some(idle) = self.rules.router_idle else { return };
        for space in spaces {
            let before = self.last_request.insert(space, at);
            if before.is_some_and(|before| at.saturating_sub(before) > idle) {
                self.entries.retain(|(of, ..), _| *of != space);
            }
        }
    }

    /// Leaves an entry, or restarts the life of the one that is there.
    fn leave(&mut self, at: Millis, key: Key, ttl: Ttl, request: &Observed<'_>) {
        let end = request.end(at);
        let visible = match self.rules.visible_from {
            VisibleFrom::FirstToken => at.saturating_add(request.first_token.unwrap_or(0)),
            VisibleFrom::ResponseEnd => end,
        };
        let used = if self.rules.lifetime_from == LifetimeFrom::ResponseEnd { end } else { at };
        let renewed = self.live(at, &key).map(|entry| Entry {
            ttl: if self.rules.renewed_with == RenewedWith::Request { ttl } else { entry.ttl },
            used: used.max(entry.used),
            visible: entry.visible.min(visible),
        });
        self.entries.insert(key, renewed.unwrap_or(Entry { ttl, used, visible }));
        if self.entries.len() > self.entries_max {
            self.entries.drain(..self.entries_max / 2);
        }
    }

    /// The longest entry that a marker finds: its last position, and the lifetime that the marker asks for.
    fn hit(&self, at: Millis, prompt: &Prompt<'_>, marks: &[(usize, Ttl)]) -> Option<(usize, Ttl)> {
        let mut hit: Option<(usize, Ttl)> = None;
        for &(mark, ttl) in marks.iter().rev() {
            let mut window = prompt.window(&self.rules, mark);
            let readable = |position: &usize| {
                self.live(at, &prompt.key(*position)).is_some_and(|entry| entry.visible <= at)
            };
            let found = window.find(readable).filter(|found| hit.is_none_or(|(best, _)| *found > best));
            hit = found.map(|found| (found, ttl)).or(hit);
        }
        hit
    }
}

impl PrefixCache for Explicit {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        let marks = placed(&self.rules, request)?;
        let spaces = self.spaces_of(request);
        self.route(at, spaces);
        let prompt = Prompt::new(&self.rules, request, spaces);
        let minimum = self.rules.tokens_min.of(request.model);
        let hit = self.hit(at, &prompt, &marks);
        let read = prompt.size_to(hit.map(|(position, _)| position));
        if let Some((position, ttl)) = hit {
            self.leave(at, prompt.key(position), ttl, request);
            if self.rules.refreshes_shorter {
                for shorter in 0..position {
                    let key = prompt.key(shorter);
                    if let Some(ttl) = self.live(at, &key).map(|entry| entry.ttl) {
                        self.leave(at, key, ttl, request);
                    }
                }
            }
        }
        let eligible = || marks.iter().copied().filter(|(mark, _)| prompt.size(*mark) >= minimum);
        for (mark, ttl) in eligible() {
            let inside = hit.is_some_and(|(position, _)| mark <= position);
            let there = self.live(at, &prompt.key(mark)).is_some();
            if !inside || there || self.rules.entry_inside_hit {
                self.leave(at, prompt.key(mark), ttl, request);
            }
            if self.rules.entries_at == EntriesAt::EveryBlock {
                let from = hit.map_or(0, |(position, _)| position + 1);
                let window: Vec<usize> = prompt.window(&self.rules, mark).collect();
                for position in (from..mark).chain(window) {
                    if prompt.size(position) >= minimum {
                        self.leave(at, prompt.key(position), ttl, request);
                    }
                }
            }
        }
        let mut outcome = Outcome { read, ..Outcome::default() };
        let hours = eligible().filter(|(_, ttl)| *ttl == Ttl::Hour1).map(|(mark, _)| prompt.size(mark)).max();
        let hours = hours.unwrap_or(0).max(read);
        let (last, ttl) =
            eligible().next_back().map_or((read, Ttl::Minutes5), |(mark, ttl)| (prompt.size(mark), ttl));
        outcome.write(Ttl::Hour1, hours - read);
        outcome.write(if ttl == Ttl::Hour1 { Ttl::Minutes5 } else { ttl }, last.max(hours) - hours);
        outcome.uncached = prompt.total() - outcome.read - outcome.written();
        Ok(outcome)
    }

    fn forget(&mut self, at: Millis) {
        let rules = &self.rules;
        self.entries.retain(|_, entry| at.saturating_sub(entry.used) <= rules.lifetime(entry.ttl));
    }
}

/// The markers that count, in order, the automatic one and those of the provider's own tools included.
fn placed(rules: &Rules, request: &Observed<'_>) -> Result<Vec<(usize, Ttl)>, Refusal> {
    if request.auto.is_some() && !rules.auto_supported {
        return Err(Refusal::AutoUnsupported);
    }
    let own = |position: usize| position.checked_sub(1).map_or(0, |before| request.sizes[before]);
    let markable = |position: usize| {
        let facts = request.facts_of(position);
        facts.markable && facts.kind != Kind::Thinking && request.sizes[position] > own(position)
    };
    let mut marks = request.marks.to_vec();
    if rules.ignores_tool_marks {
        marks.retain(|(position, _)| request.facts_of(*position).level != Level::Tools);
    }
    if let Some(extra) = marks.len().checked_sub(rules.breakpoints_max).filter(|extra| *extra > 0) {
        match rules.extra_marks {
            ExtraMarks::Refused => return Err(Refusal::TooManyBreakpoints),
            ExtraMarks::LastCount => drop(marks.drain(..extra)),
        }
    }
    if marks.iter().any(|(position, _)| !markable(*position)) {
        return Err(Refusal::UnsupportedMarker);
    }
    let last = (0..request.chains.len()).rev().find(|position| markable(*position));
    if let (Some(ttl), Some(last)) = (request.auto, last) {
        match marks.last() {
            Some(&(position, other)) if position == last && other == ttl => {}
            Some(&(position, _)) if position == last => return Err(Refusal::AutoTtlConflict),
            _ if marks.len() >= rules.breakpoints_max => return Err(Refusal::AutoNoSlot),
            _ => {
                let place = marks.partition_point(|(position, _)| *position < last);
                marks.insert(place, (last, ttl));
            }
        }
    }
    if marks.windows(2).any(|pair| pair[0].1 < pair[1].1) {
        return Err(Refusal::TtlOrder);
    }
    if !marks.is_empty() {
        let served = (0..request.facts.len()).filter(|&at| request.facts[at].kind == Kind::ServerResult);
        for position in served {
            if let Err(place) = marks.binary_search_by_key(&position, |(position, _)| *position) {
                marks.insert(place, (position, Ttl::Minutes5));
            }
        }
    }
    Ok(marks)
}

/// A request with dropped thinking taken out and its keys at hand.
struct Prompt<'a> {
    request: &'a Observed<'a>,
    spaces: [Space; 3],
    /// Positions of dropped thinking, and the tokens dropped up to and including each.
    dropped: Vec<(usize, u64)>,
}

impl<'a> Prompt<'a> {
    fn new(rules: &Rules, request: &'a Observed<'a>, spaces: [Space; 3]) -> Self {
        let mut dropped = Vec::new();
        if rules.strips_prior_thinking {
            let begins = |facts: &Facts| {
                facts.level == Level::Messages && facts.speaker == Speaker::User && facts.kind == Kind::Text
            };
            let turn = request.facts.iter().rposition(begins).unwrap_or(0);
            let mut tokens = 0;
            for position in (0..turn).filter(|&position| request.facts[position].kind == Kind::Thinking) {
                tokens += request.sizes[position]
                    - position.checked_sub(1).map_or(0, |before| request.sizes[before]);
                dropped.push((position, tokens));
            }
        }
        Self { request, spaces, dropped }
    }

    fn dropped_to(&self, position: usize) -> usize {
        self.dropped.partition_point(|(dropped, _)| *dropped <= position)
    }

    fn key(&self, position: usize) -> Key {
        let space = self.spaces[self.request.facts_of(position).level as usize];
        let dropped = u32::try_from(self.dropped_to(position)).unwrap_or(u32::MAX);
        (space, self.request.chains[position], dropped)
    }

    fn size(&self, position: usize) -> u64 {
        let dropped = self.dropped_to(position).checked_sub(1).map_or(0, |index| self.dropped[index].1);
        self.request.sizes[position] - dropped
    }

    fn size_to(&self, position: Option<usize>) -> u64 {
        position.map_or(0, |position| self.size(position))
    }

    fn total(&self) -> u64 {
        self.size_to(self.request.sizes.len().checked_sub(1))
    }

    /// Positions that a marker looks at, its own first.
    fn window<'b>(&'b self, rules: &'b Rules, mark: usize) -> impl Iterator<Item = usize> + 'b {
        let mut next = Some((mark, 1_usize));
        std::iter::from_fn(move || {
            let (position, seen) = next.filter(|(_, seen)| *seen <= rules.lookback)?;
            next = self.before(position).map(|before| (before, seen + self.steps(rules, position, before)));
            Some(position)
        })
    }

    fn before(&self, position: usize) -> Option<usize> {
        let dropped = |at: usize| self.dropped.binary_search_by_key(&at, |(position, _)| *position).is_ok();
        (0..position).rev().find(|before| !dropped(*before))
    }

    /// Positions between the end of one piece of the prompt and the end of the one before it.
    fn steps(&self, rules: &Rules, position: usize, before: usize) -> usize {
        let (facts, earlier) = (self.request.facts_of(position), self.request.facts_of(before));
        let run = |kind| matches!(kind, Kind::ToolUse | Kind::ToolResult);
        let collapses = rules.collapse_tool_runs && run(facts.kind)
            || rules.tool_list_one_position && facts.level == Level::Tools;
        match (collapses, facts.kind == earlier.kind && facts.level == earlier.level) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => facts.blocks.max(1) as usize,
        }
    }
}

/// The first level that loses its entries when a setting changes; none when the setting is no part of the key.
fn first_level(name: &str, thinking: ThinkingBreaks) -> Option<Level> {
    match name {
        "web_search" | "web_fetch" | "citations" | "speed" => Some(Level::System),
        "thinking" | "effort" | "output_config.effort" => Some(match thinking {
            ThinkingBreaks::Messages => Level::Messages,
            ThinkingBreaks::System => Level::System,
            ThinkingBreaks::All => Level::Tools,
        }),
        "tool_choice" | "disable_parallel_tool_use" | "images" | "format" | "output_config.format" => {
            Some(Level::Messages)
        }
        _ => None,
    }
}

/// An explicit default equals omission.
fn is_default(name: &str, value: &str) -> bool {
    match name {
        "tool_choice" => value == "auto",
        "speed" => value == "standard",
        "effort" | "output_config.effort" => value == "high",
        "thinking" => matches!(value, "false" | "null" | "disabled" | "0"),
        _ => matches!(value, "false" | "null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;

    fn cache(change: impl FnOnce(&mut Rules)) -> Explicit {
        let mut rules = Rules { tokens_min: Minimum::Fixed(10), ..Rules::default() };
        change(&mut rules);
        Explicit::new(rules)
    }

    #[test]
    fn an_entry_lives_to_the_last_millisecond_of_its_lifetime() {
        for (idle, read) in [(300_000, 50), (300_001, 0)] {
            let mut cache = cache(|_| {});
            prompt("a:50*5m").read(&mut cache, 0);
            assert_eq!(prompt("a:50*5m b:1").read(&mut cache, idle), read);
        }
    }

    #[test]
    fn twenty_positions_are_looked_at_and_not_one_more() {
        for (pieces, read) in [(19, 50), (20, 0)] {
            let mut cache = cache(|_| {});
            prompt("a:50*5m").read(&mut cache, 0);
            let more: Vec<String> = (0..pieces).map(|piece| format!("p{piece}:1")).collect();
            assert_eq!(prompt(&format!("a:50 {}*5m", more.join(" "))).read(&mut cache, 1), read, "{pieces}");
        }
    }

    #[test]
    fn a_message_of_many_blocks_takes_as_many_positions() {
        let mut cache = cache(|_| {});
        prompt("a:50*5m").read(&mut cache, 0);
        let mut wide = prompt("a:50 calls:40*5m");
        wide.facts = vec![Facts::default(), Facts { kind: Kind::ToolUse, blocks: 20, ..Facts::default() }];
        assert_eq!(wide.read(&mut cache, 1), 0);
        wide.facts[1].blocks = 19;
        assert_eq!(prompt("a:50*5m").read(&mut cache, 2), 50);
        let mut narrow = prompt("a:50 other:40*5m");
        narrow.facts = wide.facts.clone();
        assert_eq!(narrow.read(&mut cache, 3), 50);
    }

    #[test]
    fn what_the_page_leaves_open_is_a_knob() {
        // Does reading a long entry keep the shorter one alive?
        for (refreshes, read) in [(false, 0), (true, 20)] {
            let mut cache = cache(|rules| rules.refreshes_shorter = refreshes);
            prompt("a:20*5m b:20*5m").read(&mut cache, 0);
            prompt("a:20 b:20*5m").read(&mut cache, 200_000);
            assert_eq!(prompt("a:20*5m c:20").read(&mut cache, 400_000), read);
        }
        // Does a marker inside the part that was read leave an entry?
        for (inside, read) in [(true, 20), (false, 0)] {
            let mut cache = cache(|rules| rules.entry_inside_hit = inside);
            prompt("a:20 b:20*5m").read(&mut cache, 0);
            prompt("a:20*5m b:20*5m").read(&mut cache, 1);
            assert_eq!(prompt("a:20*5m c:20").read(&mut cache, 2), read);
        }
    }

    #[test]
    fn a_router_that_was_idle_for_long_finds_nothing_even_of_an_hour() {
        let mut cache = cache(|rules| rules.router_idle = Some(600_000));
        prompt("a:50*1h").read(&mut cache, 0);
        assert_eq!(prompt("a:50*1h").read(&mut cache, 600_000), 50);
        assert_eq!(prompt("a:50*1h").read(&mut cache, 1_200_001), 0);
    }
}
