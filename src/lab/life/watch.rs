//! Looks at a life event by event, and keeps a line a day.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Fact, Where, day_of};
use crate::cache::prices::{Price, Prices};
use crate::cache::usage::Parts;
use crate::ledger::{Event, Lane, Name, What};
use crate::policy::Policy;
use crate::wire::Segment;

/// Model whose prices are paid.
pub const PRICE: &str = "claude-sonnet-4-6";

/// One day.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Day {
    /// Requests of every lane.
    pub requests: u64,
    /// Prompt tokens of every lane.
    pub prompt_tokens: u64,
    /// Of these read from the cache.
    pub read: u64,
    /// Tokens produced.
    pub output: u64,
    /// Prompt tokens of reviews.
    pub review_tokens: u64,
    /// What the day cost, in millionths of a dollar.
    pub cost_micro_usd: u64,
    /// What it would cost where nothing is cached, in millionths of a dollar.
    pub uncached_micro_usd: u64,
    /// Committed compactions.
    pub compactions: u64,
    /// Lines of the catalogue at the end of the day.
    pub catalogue_lines: u64,
    /// Its size in characters.
    pub catalogue_chars: u64,
    /// Its share of the tokens of all main requests of the day, in thousandths.
    pub catalogue_share: u64,
    /// Characters of the memory blocks in the prompt.
    pub memory_chars: u64,
    /// Skills that were created.
    pub skills_created: u64,
    /// Skills that were loaded and used.
    pub skills_used: u64,
    /// Skills that the curator archived.
    pub skills_archived: u64,
    /// Turns of users.
    pub turns: u64,
}

/// Facts of one place after so many compactions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Survival {
    /// Where the facts were put.
    pub place: Where,
    /// Compactions since.
    pub compactions: u64,
    /// Facts that have lived so long.
    pub facts: u64,
    /// Of these still in the prompt.
    pub seen: u64,
}

/// The largest of everything that is resident.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Bounds {
    /// System prompt, in characters.
    pub system_chars: u64,
    /// Memory blocks, in characters.
    pub memory_chars: u64,
    /// Lines of the catalogue.
    pub catalogue_lines: u64,
    /// Catalogue, in characters.
    pub catalogue_chars: u64,
    /// Largest request, in tokens.
    pub request_tokens: u64,
    /// Rows of a history when it was compacted.
    pub rows: u64,
    /// Compactions of one session.
    pub compactions: u64,
    /// Memory writes that were refused, all together.
    pub memory_refused: u64,
}

/// Compactions after which facts are counted.
const AGES: [u64; 10] = [0, 1, 2, 5, 10, 20, 50, 100, 200, 400];

/// Characters of a token, where only characters are known.
const CHARS_PER_TOKEN: u64 = 4;

/// What is being watched.
pub struct Watch<'a> {
    start: i64,
    days: Vec<Day>,
    /// Tokens of main requests and of the catalogue in them, today.
    main_tokens: u64,
    catalogue_tokens: u64,
    today: usize,
    price: Option<Price>,
    catalogue: (u64, u64),
    memory_chars: u64,
    sizes: BTreeMap<u64, (Lane, u64)>,
    prompt: Vec<Segment>,
    compactions: u64,
    per_session: BTreeMap<Name, u64>,
    looked_at: Option<u64>,
    facts: Vec<(&'a Fact, Option<u64>)>,
    ages: BTreeMap<(Where, u64), (u64, u64)>,
    /// Sessions beside the user's: scheduled runs and children.
    beside: BTreeSet<Name>,
    bounds: Bounds,
}

impl<'a> Watch<'a> {
    /// A watch over so many days.
    pub fn new(start: i64, days: u64, policy: &Policy, facts: &'a [Fact]) -> Self {
        let prices = Prices::shipped();
        let price = prices.of(&policy.prompt.model, None).or_else(|_| prices.of(PRICE, None)).ok().cloned();
        Self {
            start,
            days: vec![Day::default(); usize::try_from(days).unwrap_or(0).max(1)],
            main_tokens: 0,
            catalogue_tokens: 0,
            today: 0,
            price,
            catalogue: (0, 0),
            memory_chars: 0,
            sizes: BTreeMap::new(),
            prompt: Vec::new(),
            compactions: 0,
            per_session: BTreeMap::new(),
            looked_at: None,
            facts: facts.iter().map(|fact| (fact, None)).collect(),
            ages: BTreeMap::new(),
            beside: BTreeSet::new(),
            bounds: Bounds::default(),
        }
    }

    fn day(&mut self) -> &mut Day {
        &mut self.days[self.today]
    }

    fn turn_page(&mut self, at: i64) {
        let day = day_of(self.start, at).min(self.days.len() - 1);
        while self.today < day {
            self.close_day();
            self.today += 1;
        }
    }

    fn close_day(&mut self) {
        let share = (self.catalogue_tokens * 1_000).checked_div(self.main_tokens).unwrap_or(0);
        let (lines, chars) = self.catalogue;
        let memory = self.memory_chars;
        let day = self.day();
        (day.catalogue_lines, day.catalogue_chars, day.catalogue_share) = (lines, chars, share);
        day.memory_chars = memory;
        (self.main_tokens, self.catalogue_tokens) = (0, 0);
    }

    /// Looks at one event.
    pub fn see(&mut self, event: &Event) {
        self.turn_page(event.at);
        match &event.what {
            What::Request(request) => {
                self.sizes.insert(request.id, (request.lane, request.size));
                self.day().requests += 1;
                if request.lane != Lane::Main {
                    return;
                }
                self.main_tokens += request.size;
                self.catalogue_tokens += self.catalogue.1 / CHARS_PER_TOKEN;
                self.bounds.request_tokens = self.bounds.request_tokens.max(request.size);
                if request.base == 0 {
                    self.prompt.clear();
                }
                self.prompt.truncate(usize::try_from(request.kept).unwrap_or(usize::MAX));
                self.prompt.extend(request.added.iter().cloned());
                self.look_for_facts();
            }
            What::Response(response) => {
                let Some((lane, size)) = self.sizes.remove(&response.request) else { return };
                let usage = &response.usage;
                let parts = Parts::from(usage);
                let micro = |usd: crate::units::Usd| u64::try_from(usd.pico() / 1_000_000).unwrap_or(0);
                let cost = self.price.as_ref().map_or(0, |price| micro(price.cost(&parts)));
                let bare = self.price.as_ref().map_or(0, |price| micro(price.cost_without_cache(&parts)));
                let day = self.day();
                day.prompt_tokens += size;
                day.read += usage.read;
                day.output += usage.output;
                day.cost_micro_usd += cost;
                day.uncached_micro_usd += bare;
                if lane == Lane::Review {
                    day.review_tokens += size;
                }
            }
            What::SessionStarted(started) if matches!(&*started.why, "cron" | "delegate") => {
                self.beside.insert(event.session.clone());
            }
            What::Catalogue(_) | What::PromptReady(_) if self.beside.contains(&event.session) => {}
            What::Catalogue(catalogue) => {
                self.catalogue = (catalogue.lines, catalogue.chars);
                self.bounds.catalogue_lines = self.bounds.catalogue_lines.max(catalogue.lines);
                self.bounds.catalogue_chars = self.bounds.catalogue_chars.max(catalogue.chars);
            }
            What::PromptReady(prompt) => {
                self.memory_chars = prompt.memory_chars;
                self.bounds.system_chars = self.bounds.system_chars.max(prompt.chars);
                self.bounds.memory_chars = self.bounds.memory_chars.max(prompt.memory_chars);
            }
            What::Compaction(compaction) if compaction.committed => {
                self.compactions += 1;
                self.day().compactions += 1;
                self.bounds.rows = self.bounds.rows.max(compaction.rows_before);
                let count = self.per_session.entry(event.session.clone()).or_insert(0);
                *count += 1;
                self.bounds.compactions = self.bounds.compactions.max(*count);
            }
            What::MemoryWrite(write) if write.is_refused() => self.bounds.memory_refused += 1,
            What::SkillChanged(changed) if changed.ok && &*changed.action == "create" => {
                self.day().skills_created += 1;
            }
            What::SkillViewed(viewed) if viewed.lane == Lane::Main => self.day().skills_used += 1,
            What::CuratorRan(ran) => self.day().skills_archived += ran.archived.len() as u64,
            What::TurnEnded(_) => self.day().turns += 1,
            What::SessionEnded(_) => {
                self.per_session.remove(&event.session);
            }
            _ => {}
        }
    }

    /// After each compaction, which facts does the next prompt still show?
    fn look_for_facts(&mut self) {
        let (today, now) = (self.today as u64, self.compactions);
        for (fact, planted) in &mut self.facts {
            if planted.is_none() && fact.day <= today {
                *planted = Some(now);
            }
        }
        if self.looked_at == Some(now) {
            return;
        }
        self.looked_at = Some(now);
        for (fact, planted) in &self.facts {
            let Some(planted) = planted else { continue };
            let age = now - planted;
            if !AGES.contains(&age) || age == 0 {
                continue;
            }
            let seen = self.prompt.iter().any(|segment| segment.text.contains(fact.text.as_str()));
            let entry = self.ages.entry((fact.place, age)).or_insert((0, 0));
            entry.0 += 1;
            entry.1 += u64::from(seen);
        }
    }

    /// The days, what survived, and the bounds.
    pub fn finish(mut self) -> (Vec<Day>, Vec<Survival>, Bounds) {
        self.close_day();
        let survival = self
            .ages
            .into_iter()
            .map(|((place, compactions), (facts, seen))| Survival { place, compactions, facts, seen })
            .collect();
        (self.days, survival, self.bounds)
    }
}
