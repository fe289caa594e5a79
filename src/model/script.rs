//! The scripted model: a list of replies per lane, and rules that react to what a request contains.
//!
//! A lane's list comes first; when it is empty the first rule whose conditions hold answers. A request that neither
//! answers is the scenario's fault: the error names session, turn, lane and the nearest line that was not used.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use crate::ledger::Lane;
use crate::model::{Ask, Finish, Model, ModelError, Player, Reply, reader};
use crate::scenario::{ReplySpec, RuleSpec, TurnAct, WhenSpec};
use crate::wire::{Row, ToolCall};
use crate::world::faults::worth_retrying;

/// A model that plays a script.
#[derive(Debug, Default)]
pub struct ScriptedModel {
    lanes: BTreeMap<Lane, VecDeque<ReplySpec>>,
    rules: Vec<(RuleSpec, u64)>,
    calls_made: BTreeMap<(Lane, String), u64>,
}

impl ScriptedModel {
    /// A model with these rules and no lists yet.
    pub fn new(rules: &[RuleSpec]) -> Self {
        Self { rules: rules.iter().map(|rule| (rule.clone(), 0)).collect(), ..Self::default() }
    }

    fn call_id(&mut self, ask: &Ask<'_>) -> String {
        let count = self.calls_made.entry((ask.lane, ask.session.to_owned())).or_insert(0);
        *count += 1;
        format!("{}-{}-{count}", ask.session, ask.lane.word())
    }

    fn play(&mut self, spec: &ReplySpec, ask: &Ask<'_>) -> Result<Reply, ModelError> {
        if let Some(kind) = &spec.fault {
            return Err(ModelError::Provider { kind: kind.clone(), retry: worth_retrying(kind) });
        }
        let mut calls = Vec::new();
        for call in spec.all_calls() {
            let id = call.id.clone().unwrap_or_else(|| self.call_id(ask));
            let arguments = call.raw.clone().unwrap_or_else(|| {
                serde_json::to_value(&call.args)
                    .unwrap_or_else(|_| Value::Object(serde_json::Map::new()))
                    .to_string()
            });
            calls.push(ToolCall::new(id, call.tool, arguments));
        }
        let finish = match spec.finish.as_deref() {
            Some("length") => Finish::Length,
            Some("tool_calls") => Finish::ToolCalls,
            Some(_) => Finish::Stop,
            None if calls.is_empty() => Finish::Stop,
            None => Finish::ToolCalls,
        };
        Ok(Reply {
            text: spec.say.clone(),
            calls,
            finish,
            reasoning: spec.reasoning.clone(),
            ..Reply::say("")
        })
    }

    /// The first rule whose conditions hold, and that has something to say.
    fn by_rule(&mut self, ask: &Ask<'_>) -> Option<Result<Reply, ModelError>> {
        let id = self.next_call_id(ask);
        match first_rule(&mut self.rules, ask, &id)? {
            Line::Scripted(spec) => Some(self.play(&spec, ask)),
            Line::Read(reply) => {
                self.call_id(ask);
                Some(Ok(reply))
            }
        }
    }

    /// The id that the next call of this lane gets.
    fn next_call_id(&self, ask: &Ask<'_>) -> String {
        let made = self.calls_made.get(&(ask.lane, ask.session.to_owned())).copied().unwrap_or(0);
        format!("{}-{}-{}", ask.session, ask.lane.word(), made + 1)
    }

    fn exhausted(&self, ask: &Ask<'_>) -> ModelError {
        let left = self.lanes.iter().find(|(_, queue)| !queue.is_empty());
        let nearest = match left {
            Some((lane, queue)) => format!(
                "; the nearest unused line is for lane `{}`: {}",
                lane.word(),
                queue.front().map(shown).unwrap_or_default()
            ),
            None => "; every line was used".to_owned(),
        };
        ModelError::Script(format!(
            "session `{}`, turn {}: the script has no reply for lane `{}`{nearest}",
            ask.session,
            ask.turn,
            ask.lane.word()
        ))
    }
}

impl Model for ScriptedModel {
    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, ModelError> {
        if let Some(spec) = self.lanes.get_mut(&ask.lane).and_then(VecDeque::pop_front) {
            return self.play(&spec, ask);
        }
        self.by_rule(ask).unwrap_or_else(|| Err(self.exhausted(ask)))
    }
}

impl Player for ScriptedModel {
    fn load_turn(&mut self, turn: &TurnAct, index: u64) {
        let lists = [
            (Lane::Main, &turn.replies),
            (Lane::Review, &turn.review),
            (Lane::Summary, &turn.summary),
            (Lane::Child, &turn.child),
            (Lane::Approver, &turn.approver),
        ];
        for (lane, replies) in lists {
            self.load(lane, replies, index);
        }
    }

    fn load(&mut self, lane: Lane, replies: &[ReplySpec], index: u64) {
        let queue = self.lanes.entry(lane).or_default();
        for reply in replies {
            for _ in 0..reply.times.unwrap_or(1) {
                queue.push_back(numbered(reply, index));
            }
        }
    }

    fn left_over(&self, lane: Lane) -> usize {
        self.lanes.get(&lane).map_or(0, VecDeque::len)
    }

    fn clear(&mut self, lane: Lane) {
        self.lanes.remove(&lane);
    }

    fn clear_all(&mut self) {
        self.lanes.clear();
    }
}

fn shown(reply: &ReplySpec) -> String {
    match (&reply.say, reply.all_calls().first()) {
        (Some(say), _) => format!("say \"{}\"", say.chars().take(40).collect::<String>()),
        (None, Some(call)) => format!("call `{}`", call.tool),
        (None, None) => "a reply without words".to_owned(),
    }
}

pub(super) fn numbered(reply: &ReplySpec, index: u64) -> ReplySpec {
    let fill = |text: &String| text.replace("{i}", &index.to_string());
    let mut reply = reply.clone();
    reply.say = reply.say.as_ref().map(fill);
    fill_table(&mut reply.args, &fill);
    for call in &mut reply.calls {
        fill_table(&mut call.args, &fill);
    }
    reply
}

fn fill_table(table: &mut toml::Table, fill: &dyn Fn(&String) -> String) {
    for (_, value) in table.iter_mut() {
        if let toml::Value::String(text) = value {
            *text = fill(text);
        }
    }
}

/// What a rule has to say.
pub(super) enum Line {
    /// A line of the script.
    Scripted(ReplySpec),
    /// What a model says that reads its prompt.
    Read(Reply),
}

/// What the first rule says that applies, each with how often it was used, and that does not give up. `id` is that of
/// a call which a reading model makes.
pub(super) fn first_rule(rules: &mut [(RuleSpec, u64)], ask: &Ask<'_>, id: &str) -> Option<Line> {
    rules.iter_mut().filter(|(rule, used)| applies(rule, *used, ask)).find_map(|(rule, used)| {
        let line = line_of(rule, ask, id)?;
        *used += 1;
        Some(line)
    })
}

fn line_of(rule: &RuleSpec, ask: &Ask<'_>, id: &str) -> Option<Line> {
    let skill = match (&rule.follow_skill, rule.pick_skill) {
        (Some(skill), _) => Some(skill.clone()),
        (None, Some(least)) => Some(reader::pick(ask, least)?),
        (None, None) => None,
    };
    if let Some(skill) = skill {
        return reader::follow(&skill, ask, id, rule.heeds_notes).map(Line::Read);
    }
    if !rule.attempts.is_empty() {
        return Some(Line::Read(reader::attempt(&rule.attempts, ask, id)));
    }
    if let Some(spec) = &rule.distil {
        return Some(Line::Read(reader::distil(spec, ask, id)));
    }
    Some(Line::Scripted(rule.reply.clone().unwrap_or_default()))
}

/// True when a rule that was used so often answers.
fn applies(rule: &RuleSpec, used: u64, ask: &Ask<'_>) -> bool {
    rule.lane == ask.lane.word()
        && rule.times.is_none_or(|times| used < times)
        && holds(&rule.when, ask)
        && rule.follow_skill.as_ref().is_none_or(|skill| ask.system.contains(skill.as_str()))
}

/// True when a row contains this in its text or in its calls.
fn mentions(row: &Row, part: &str) -> bool {
    row.content.flat().contains(part) || row.call_list().iter().any(|call| call.arguments.contains(part))
}

/// True when every given condition holds.
pub fn holds(when: &WhenSpec, ask: &Ask<'_>) -> bool {
    let has =
        |text: &str, part: &Option<String>| part.as_ref().is_none_or(|part| text.contains(part.as_str()));
    let last = ask.rows.last();
    let flat = |row: Option<&Row>| row.map(|row| row.content.flat()).unwrap_or_default();
    has(ask.system, &when.system_has)
        && when.system_lacks.as_ref().is_none_or(|part| !ask.system.contains(part.as_str()))
        && when
            .user_has
            .as_ref()
            .is_none_or(|part| flat(ask.rows.iter().rev().find(|row| row.is_user())).contains(part.as_str()))
        && when.last_has.as_ref().is_none_or(|part| flat(last).contains(part.as_str()))
        && when.last_role.as_ref().is_none_or(|role| last.is_some_and(|row| row.role.word() == role))
        && when.history_has.as_ref().is_none_or(|part| ask.rows.iter().any(|row| mentions(row, part)))
        && when.history_lacks.as_ref().is_none_or(|part| !ask.rows.iter().any(|row| mentions(row, part)))
        && when.tool.as_ref().is_none_or(|tool| ask.tools.contains(tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sent;

    fn ask<'a>(rows: &'a [Row], system: &'a str) -> Ask<'a> {
        Ask { lane: Lane::Main, session: "s1", turn: 3, tools: &[], system, rows, sent: Sent::default() }
    }

    #[test]
    fn a_script_that_runs_out_names_session_turn_and_the_nearest_unused_line() {
        let mut model = ScriptedModel::default();
        model.load(Lane::Review, &[ReplySpec { say: Some("later".to_owned()), ..ReplySpec::default() }], 0);
        let error = model.reply(&ask(&[], "")).unwrap_err().to_string();
        assert_eq!(
            error,
            "session `s1`, turn 3: the script has no reply for lane `main`; the nearest unused line is for lane \
             `review`: say \"later\""
        );
    }

    #[test]
    fn a_follower_does_only_the_steps_that_the_body_lists() {
        let rule: RuleSpec = toml::from_str("follow_skill = 'deploy'").unwrap();
        let mut model = ScriptedModel::new(&[rule]);
        let mut rows = vec![Row::user("go")];
        let first = model.reply(&ask(&rows, "- deploy")).unwrap();
        assert_eq!(first.calls[0].name, "skill_view");
        rows.push(Row::calls("", first.calls));
        rows.push(Row::result("x", "skill_view", "1. `npm ci`\n2. run `npm test`\n"));
        let second = model.reply(&ask(&rows, "- deploy")).unwrap();
        assert!(second.calls[0].arguments.contains("npm ci"));
        assert!(model.reply(&ask(&rows, "nothing")).is_err());
    }
}
