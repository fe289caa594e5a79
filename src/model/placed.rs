//! A script that is read by place, for agents that run outside the lab.
//!
//! Such an agent's requests come in any order: titles and reviews race with the main loop, failed requests come again.
//! So nothing is taken from a queue. What a request shows (the newest words of the user, the calls that were made
//! since) says which lane it belongs to and which line of the script is due; the same request gets the same line, and
//! the ids in it depend on lane and place alone. Only a line that leaves no trace in the history, such as a provider's
//! fault, is passed by counting how often its place was asked for.

use std::collections::BTreeMap;

use crate::ledger::Lane;
use crate::model::{Ask, script};
use crate::scenario::{Act, CallSpec, ReplySpec, RuleSpec, Scenario, TurnAct};

mod place;
mod texts;

pub use place::CallPlace;
use texts::Texts;

/// Who speaks in a message, as far as a script wants to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool, or a message that holds results of tools only.
    Tool,
}

/// What a request shows. Everything is looked up when it is asked for.
pub trait Shown {
    /// Number of messages.
    fn len(&self) -> usize;
    /// True when there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Who speaks in a message.
    fn who(&self, at: usize) -> Who;
    /// A hash of the message, under which its text is remembered.
    fn key(&self, at: usize) -> u128;
    /// Its text.
    fn text(&self, at: usize) -> String;
    /// Ids of the calls that it makes.
    fn calls(&self, at: usize) -> Vec<String>;
    /// A hash of the system prompt, which no message has.
    fn system_key(&self) -> u128;
    /// The system prompt's text.
    fn system(&self) -> String;
    /// True when there is a tool table.
    fn has_tools(&self) -> bool;
}

/// A turn of the scenario, written out.
#[derive(Debug, Clone)]
struct Turn {
    session: String,
    /// Turn of its session, from 1.
    number: u64,
    lists: BTreeMap<Lane, Vec<ReplySpec>>,
    /// Goals that its calls hand to children, in order.
    goals: Vec<String>,
    /// Index in the file of the act, from 0, for time that passes before it.
    act: usize,
}

/// A line of the script that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Due {
    /// Whose line it is.
    pub lane: Lane,
    /// Session of the scenario; empty where the request fits no turn.
    pub session: String,
    /// Turn of the session, from 1; 0 where the request fits no turn.
    pub turn: u64,
    /// Index of the act in the file, from 0.
    pub act: usize,
    /// Where in the script.
    pub place: CallPlace,
    /// The line; `None` when the script has none.
    pub reply: Option<ReplySpec>,
}

impl Due {
    /// The part of an id that names lane and place.
    pub fn id(&self) -> String {
        self.place.to_string()
    }
}

/// A script that is read by place.
#[derive(Debug)]
pub struct PlacedScript {
    turns: Vec<Turn>,
    texts: Texts,
    goals: Vec<(String, usize, usize)>,
    rules: Vec<(RuleSpec, u64)>,
    attempts: BTreeMap<CallPlace, usize>,
}

impl PlacedScript {
    /// The script of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let mut script = Self {
            turns: Vec::new(),
            texts: Texts::default(),
            goals: Vec::new(),
            rules: scenario.rules.iter().map(|rule| (rule.clone(), 0)).collect(),
            attempts: BTreeMap::new(),
        };
        let mut open = String::new();
        let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
        for (act, what) in scenario.acts.iter().enumerate() {
            match what {
                Act::Open(opened) => open.clone_from(&opened.name),
                Act::Turn(turn) => {
                    let session = turn.session.clone().unwrap_or_else(|| open.clone());
                    for (index, say) in turn.said() {
                        let number = numbers.entry(session.clone()).or_insert(0);
                        *number += 1;
                        script.add(&session, *number, turn, (index, &say), act);
                    }
                }
                _ => {}
            }
        }
        script
    }

    fn add(&mut self, session: &str, number: u64, turn: &TurnAct, said: (u64, &str), act: usize) {
        let (index, say) = said;
        let lists = [
            (Lane::Main, &turn.replies),
            (Lane::Review, &turn.review),
            (Lane::Summary, &turn.summary),
            (Lane::Child, &turn.child),
            (Lane::Approver, &turn.approver),
            (Lane::Title, &turn.title),
        ];
        let lists: BTreeMap<Lane, Vec<ReplySpec>> =
            lists.into_iter().map(|(lane, list)| (lane, written_out(list, index))).collect();
        let goals: Vec<String> = lists[&Lane::Main].iter().flat_map(goals_of).collect();
        let at = self.turns.len();
        for (nth, goal) in goals.iter().enumerate() {
            self.goals.push((goal.clone(), at, nth));
        }
        self.texts.add(say, at);
        self.turns.push(Turn { session: session.to_owned(), number, lists, goals, act });
    }

    /// Turns that the script has.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// True when a rule may answer for a lane.
    pub fn has_rules(&self, lane: Lane) -> bool {
        self.rules.iter().any(|(rule, _)| rule.lane == lane.word())
    }

    /// What the first rule that holds answers, as a line of the script.
    pub fn by_rule(&mut self, ask: &Ask<'_>) -> Option<ReplySpec> {
        let reply = match script::first_rule(&mut self.rules, ask, "")? {
            script::Line::Scripted(line) => return Some(line),
            script::Line::Read(reply) => reply,
        };
        let calls = reply.calls.into_iter().map(|call| CallSpec {
            tool: call.name,
            args: toml::Table::new(),
            raw: Some(call.arguments),
            id: None,
        });
        Some(ReplySpec { say: reply.text, calls: calls.collect(), ..ReplySpec::default() })
    }

    /// The line that is due for a request. Asking again moves on behind lines that leave no trace.
    pub fn due(&mut self, shown: &impl Shown) -> Due {
        let found = self.find(shown);
        let Found { lane, turn, child, mut entry } = found;
        let Some(at) = turn else {
            let place = CallPlace { lane, turn: 0, child: 0, entry: u64::try_from(entry).unwrap_or(0) };
            return Due { lane, session: String::new(), turn: 0, act: 0, place, reply: None };
        };
        let turn = &self.turns[at];
        let list = turn.list(lane, child);
        let place_of =
            |entry: usize| CallPlace { lane, turn: at as u64 + 1, child: child as u64, entry: entry as u64 };
        // Lines without a trace are passed once each was given.
        while list.get(entry).is_some_and(|reply| leaves_no_trace(reply) && entry + 1 < list.len()) {
            let asked = self.attempts.entry(place_of(entry)).or_insert(0);
            if *asked == 0 {
                *asked = 1;
                break;
            }
            entry += 1;
        }
        Due {
            lane,
            session: turn.session.clone(),
            turn: turn.number,
            act: turn.act,
            place: place_of(entry),
            reply: list.get(entry).cloned(),
        }
    }

    /// What the script would have had for somebody else, for a message about a request that it has no line for.
    pub fn nearest(&self, lane: Lane) -> String {
        match self.turns.iter().find(|turn| !turn.list(lane, 0).is_empty()) {
            Some(turn) => format!(
                "session `{}`, turn {} has {} for lane `{}`",
                turn.session,
                turn.number,
                turn.list(lane, 0).len(),
                lane.word()
            ),
            None => format!("no turn has lines for lane `{}`", lane.word()),
        }
    }

    fn find(&mut self, shown: &impl Shown) -> Found {
        let newest = (0..shown.len()).rev().find(|at| shown.who(*at) == Who::User);
        let aside = self.aside(shown, newest);
        if let Some(lane) = aside {
            let turn = (0..shown.len()).rev().find_map(|at| self.turn_at(shown, at));
            let turn = turn.or_else(|| (!self.turns.is_empty()).then_some(0));
            return Found { lane, turn, child: 0, entry: 0 };
        }
        if let Some(found) = self.child(shown) {
            return found;
        }
        // The newest words of the user that the script knows.
        let known = (0..shown.len()).rev().find_map(|at| Some((at, self.turn_at(shown, at)?)));
        let Some((at, turn)) = known else {
            return self.own_place(shown).map_or_else(Found::unknown, |place| Found {
                lane: place.lane,
                turn: usize::try_from(place.turn).ok().and_then(|turn| turn.checked_sub(1)),
                child: usize::try_from(place.child).unwrap_or(0),
                entry: usize::try_from(place.entry).map_or(0, |entry| entry + 1),
            });
        };
        let main = self.entry_after(shown, at, turn, Lane::Main);
        if Some(at) == newest || main < self.turns[turn].list(Lane::Main, 0).len() {
            return Found { lane: Lane::Main, turn: Some(turn), child: 0, entry: main };
        }
        // The turn is over and somebody else speaks: the review, or a user who says what is not in the script.
        let scripted = !self.turns[turn].list(Lane::Review, 0).is_empty() || self.has_rules(Lane::Review);
        if !scripted && !newest.is_some_and(|newest| texts::asks_for_review(&shown.text(newest))) {
            return Found { lane: Lane::Main, turn: Some(turn), child: 0, entry: main };
        }
        let entry = self.entry_after(shown, newest.unwrap_or(at), turn, Lane::Review);
        Found { lane: Lane::Review, turn: Some(turn), child: 0, entry }
    }

    /// A request beside the conversation: a title or a summary.
    fn aside(&mut self, shown: &impl Shown, newest: Option<usize>) -> Option<Lane> {
        let newest = newest?;
        if shown.has_tools() {
            return (self.turn_at(shown, newest).is_none() && self.about(shown, newest).asks_for_summary)
                .then_some(Lane::Summary);
        }
        let words = self.about(shown, newest);
        let system = self.texts.about(shown.system_key(), || shown.system());
        if system.title || !words.exact && words.title {
            return Some(Lane::Title);
        }
        if words.exact {
            return None;
        }
        (words.speaks_of_summary || system.speaks_of_summary).then_some(Lane::Summary)
    }

    fn about(&mut self, shown: &impl Shown, at: usize) -> texts::About {
        self.texts.about(shown.key(at), || shown.text(at))
    }

    fn turn_at(&mut self, shown: &impl Shown, at: usize) -> Option<usize> {
        if shown.who(at) != Who::User {
            return None;
        }
        let turns = self.texts.find(shown.key(at), || shown.text(at));
        match turns.as_slice() {
            [] => None,
            [only] => Some(*only),
            // The same words again and again: the n-th time means the n-th turn.
            several => {
                let before = (0..at)
                    .filter(|earlier| {
                        shown.who(*earlier) == Who::User
                            && self.texts.find(shown.key(*earlier), || shown.text(*earlier)) == *several
                    })
                    .count();
                several.get(before).or_else(|| several.last()).copied()
            }
        }
    }

    fn child(&mut self, shown: &impl Shown) -> Option<Found> {
        if self.goals.is_empty() {
            return None;
        }
        let first = (0..shown.len()).find(|at| shown.who(*at) == Who::User)?;
        if self.about(shown, first).exact {
            return None;
        }
        let words = shown.text(first);
        let system = shown.system();
        let (_, turn, nth) = self
            .goals
            .iter()
            .filter(|(goal, ..)| words.contains(goal.as_str()) || system.contains(goal.as_str()))
            .max_by_key(|(goal, ..)| goal.len())?;
        let entry = self.entry_after(shown, first, *turn, Lane::Child);
        Some(Found { lane: Lane::Child, turn: Some(*turn), child: *nth, entry })
    }
}

impl PlacedScript {
    /// Which line is due behind message `at`: the one after the newest call that this script made there, and one more
    /// for every answer in words that followed.
    fn entry_after(&self, shown: &impl Shown, at: usize, turn: usize, lane: Lane) -> usize {
        let mut entry = 0;
        for message in at + 1..shown.len() {
            if shown.who(message) != Who::Assistant {
                continue;
            }
            let calls = shown.calls(message);
            let own = calls.iter().find_map(|id| self.place_of(id));
            match own {
                Some(place) if place.turn == turn as u64 + 1 && place.lane == lane => {
                    entry = usize::try_from(place.entry).map_or(0, |entry| entry + 1);
                }
                None if !calls.is_empty() || !texts::is_blank(&shown.text(message)) => entry += 1,
                // Calls of another place; empty answers, which some agents keep for the time of the turn.
                _ => {}
            }
        }
        entry
    }

    /// The place of the newest call of ours.
    fn own_place(&self, shown: &impl Shown) -> Option<CallPlace> {
        (0..shown.len())
            .rev()
            .filter(|at| shown.who(*at) == Who::Assistant)
            .find_map(|at| shown.calls(at).iter().find_map(|id| self.place_of(id)))
    }

    /// The place that an id names, if this script has it: ids come from outside, and from other scenarios.
    fn place_of(&self, id: &str) -> Option<CallPlace> {
        let place: CallPlace = id.parse().ok()?;
        let turn = usize::try_from(place.turn).ok().and_then(|turn| self.turns.get(turn.checked_sub(1)?))?;
        let child = usize::try_from(place.child).ok().filter(|child| *child < turn.goals.len().max(1))?;
        let entry = usize::try_from(place.entry).ok()?;
        (entry < turn.list(place.lane, child).len()).then_some(place)
    }
}

struct Found {
    lane: Lane,
    turn: Option<usize>,
    child: usize,
    entry: usize,
}

impl Found {
    fn unknown() -> Self {
        Self { lane: Lane::Main, turn: None, child: 0, entry: 0 }
    }
}

impl Turn {
    /// The lines of a lane; of the children, those of the `child`-th.
    fn list(&self, lane: Lane, child: usize) -> &[ReplySpec] {
        let list = self.lists.get(&lane).map_or(&[][..], Vec::as_slice);
        if lane != Lane::Child || self.goals.len() < 2 {
            return list;
        }
        // A child's lines end with the first one that calls nothing.
        let mut rest = list;
        for _ in 0..child {
            let end = rest.iter().position(ends).map_or(rest.len(), |at| at + 1);
            rest = &rest[end..];
        }
        let end = rest.iter().position(ends).map_or(rest.len(), |at| at + 1);
        &rest[..end]
    }
}

fn ends(reply: &ReplySpec) -> bool {
    reply.all_calls().is_empty() && !leaves_no_trace(reply)
}

/// True when an agent that was given this asks again without a trace of it in the history.
pub fn leaves_no_trace(reply: &ReplySpec) -> bool {
    if reply.fault.is_some() {
        return true;
    }
    let calls = reply.all_calls();
    let malformed = calls.iter().any(|call| {
        call.raw.as_ref().is_some_and(|raw| serde_json::from_str::<serde::de::IgnoredAny>(raw).is_err())
    });
    malformed || calls.is_empty() && reply.say.as_ref().is_none_or(|say| say.trim().is_empty())
}

fn written_out(list: &[ReplySpec], index: u64) -> Vec<ReplySpec> {
    list.iter()
        .flat_map(|reply| {
            let times = usize::try_from(reply.times.unwrap_or(1)).unwrap_or(1);
            std::iter::repeat_n(script::numbered(reply, index), times)
        })
        .collect()
}

/// What a line hands over to children.
fn goals_of(reply: &ReplySpec) -> Vec<String> {
    let mut goals = Vec::new();
    for call in reply.all_calls().iter().filter(|call| call.tool == "delegate_task") {
        let single = call.args.get("goal").and_then(toml::Value::as_str);
        goals.extend(single.map(str::to_owned));
        let tasks = call.args.get("tasks").and_then(toml::Value::as_array);
        for task in tasks.into_iter().flatten() {
            goals.extend(task.get("goal").and_then(toml::Value::as_str).map(str::to_owned));
        }
    }
    goals
}
