//! One whole compaction: prune, choose the window, summarise, put together, clean.
//!
//! The input is never changed; on every abort and every no-op the caller keeps its own list.

use crate::agent::compress::assemble::{self, Parts, Placement};
use crate::agent::compress::estimate::Sizer;
use crate::agent::compress::failure::{self, FailureKind, SummaryFailure};
use crate::agent::compress::gate::{State, Verdict};
use crate::agent::compress::prune::{self, Proactive, ProactiveLimits, Tail};
use crate::agent::compress::summary::{self, Question, SummaryModel, SummaryRequest};
use crate::agent::compress::threshold::{self, Threshold};
use crate::agent::compress::window::{self, Limits, Past, Window};
use crate::agent::compress::{fallback, handoff, history, micro, pairs, redact, snapshot};
use crate::policy::{Compress, TailMode};
use crate::wire::Row;
use crate::world::Millis;

/// Who answers a question for a summary.
pub type Summariser<'a> = dyn FnMut(&SummaryRequest) -> Result<String, SummaryFailure> + 'a;

/// Facts about the model of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelFacts {
    /// Its name.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// Address and wire, as one text; only compared.
    pub route: String,
    /// Its window, in the unit of the policy.
    pub window: u64,
    /// Reserved output; none when nothing is reserved.
    pub max_output: Option<u64>,
    /// Summaries are made by another model.
    pub distinct_summary_model: bool,
}

/// Circumstances of one compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask<'a> {
    /// The present instant.
    pub now: Millis,
    /// Asked for by a person: pauses are lifted, the model is always asked.
    pub manual: bool,
    /// Topic to keep in view.
    pub focus: Option<&'a str>,
    /// Id of the session, named in the summary for recall.
    pub session: &'a str,
}

/// Why nothing was compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoOp {
    /// Hardly more rows than the head.
    TooShort,
    /// Nothing lies between head and tail.
    EmptyWindow,
    /// Only earlier summaries lie there.
    OnlyHandoffs,
}

/// Where a summary came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SummaryOrigin {
    /// The summary model.
    Model,
    /// The rule, after the model failed.
    RuleAfterFailure,
    /// The rule, without asking the model.
    RuleUnasked,
}

/// What a compaction did.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Rows of the head that are left.
    pub head_rows: usize,
    /// The stretch that was summarised.
    pub window: Window,
    /// First row of the old list that stands in the new one after the summary.
    pub cut: usize,
    /// Rows after the cut.
    pub tail_rows: usize,
    /// Index of the row that holds the summary, before pairs were cleaned.
    pub summary_at: usize,
    /// How the summary was placed.
    pub placement: Placement,
    /// Where the summary came from.
    pub origin: SummaryOrigin,
    /// Body of the summary.
    pub body: String,
    /// Results whose call is missing in the new list.
    pub orphan_results: usize,
    /// Results that the cleaning dropped.
    pub dropped_results: usize,
    /// Calls that the cleaning dropped.
    pub dropped_calls: usize,
    /// Tool output shortened on the way.
    pub pruned: usize,
    /// Results in the tail that became stubs.
    pub stubbed: usize,
    /// Skills whose text was dropped.
    pub skills: Vec<String>,
    /// An open request was said again.
    pub restated: bool,
    /// The summary continued an earlier one.
    pub continued: bool,
    /// Sizes of the list before and after.
    pub sizes: (u64, u64),
}

/// The outcome of a compaction.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Nothing to do; a pause was armed.
    NoOp(NoOp),
    /// The summary failed and the history stays.
    Aborted {
        /// What the summary model answered.
        failure: SummaryFailure,
        /// Seconds of pause.
        cooldown: u64,
    },
    /// A new list.
    Compacted {
        /// The rows.
        rows: Vec<Row>,
        /// What was done.
        report: Box<Report>,
    },
}

/// A compressor for one session.
#[derive(Debug, Clone, PartialEq)]
pub struct Compressor {
    policy: Compress,
    model: ModelFacts,
    /// What it remembers.
    pub state: State,
    /// The retry on the main model took place in the last compaction and did not help.
    pub fell_back_to_main: bool,
}

impl Compressor {
    /// A compressor with what the session row remembers.
    pub fn new(policy: &Compress, model: ModelFacts, state: State) -> Self {
        Self { policy: policy.clone(), model, state, fell_back_to_main: false }
    }

    /// The knobs it works with.
    pub fn policy(&self) -> &Compress {
        &self.policy
    }

    /// Facts about the model.
    pub fn model(&self) -> &ModelFacts {
        &self.model
    }

    /// The present threshold.
    pub fn threshold(&self) -> Threshold {
        let table = threshold::model_table(&self.policy.model_thresholds);
        let ratio =
            threshold::model_ratio(&self.model.name, &self.model.provider, &table, self.policy.threshold);
        threshold::threshold(
            self.model.window,
            ratio,
            self.model.max_output,
            self.state.summary_window,
            &self.policy,
        )
    }

    /// Budget of the tail.
    pub fn tail_budget(&self) -> u64 {
        threshold::tail_budget(
            self.model.window,
            self.threshold().tokens,
            self.policy.tail_mode,
            &self.policy,
        )
    }

    /// Whether a compaction is due and may run at this size; may start or end the breaker's window.
    pub fn should_compress(&mut self, tokens: u64, now: Millis) -> Verdict {
        if !self.policy.enabled {
            return Verdict { compress: false, blocked_by: None, seconds: None };
        }
        let threshold = self.threshold().tokens;
        self.state.ask(tokens, threshold, now, &self.policy)
    }

    /// The provider reported the size of a prompt.
    pub fn usage(&mut self, prompt_tokens: u64) {
        let threshold = self.threshold().tokens;
        self.state.usage(prompt_tokens, threshold);
    }

    /// True when a rough figure should wait for one real reading.
    pub fn defers(&self, rough: u64) -> bool {
        self.state.defers(rough, self.threshold().tokens)
    }

    /// The window of the summary model became known; a smaller one lowers the threshold.
    pub fn learn_summary_window(&mut self, window: u64) {
        self.state.summary_window = Some(window);
    }

    /// Another model answers from now on.
    pub fn switch_model(&mut self, model: ModelFacts) {
        let old = &self.model;
        let identity = (&old.name, &old.provider, &old.route) != (&model.name, &model.provider, &model.route);
        self.model = model;
        self.state.model_switched(identity);
    }

    /// A limit that the provider named; it becomes the window at once.
    pub fn adopt_window(&mut self, window: u64) {
        self.model.window = window;
    }

    /// Shortens old tool output between compactions; remembers when it may run again.
    pub fn proactive_prune(&mut self, rows: &[Row], current: Option<u64>) -> Proactive {
        let threshold = self.threshold();
        let limits = ProactiveLimits {
            current,
            threshold: threshold.tokens,
            head: window::head_size(rows, self.past(), &self.policy),
            window: self.model.window,
            input_budget: threshold.input_budget,
            runway: self.state.prune_runway,
        };
        let done = prune::proactive(rows, limits, &self.policy);
        if let Proactive::Committed { runway, .. } = &done {
            self.state.prune_runway = *runway;
        }
        done
    }

    /// One micro-compaction at the end of a turn, if one is due.
    pub fn micro_compact(&mut self, rows: &[Row], summarise: &mut Summariser<'_>) -> micro::MicroPass {
        if !micro::due(&mut self.state, &self.policy) {
            return micro::MicroPass::Idle;
        }
        let prices = Sizer::new(&self.policy).rows(rows);
        let limits = Limits { may_split_turn: false, ..self.limits() };
        let window = window::window(rows, &prices, self.past(), limits, &self.policy);
        micro::pass(rows, window.start, window.end, &mut self.state, &self.policy, summarise)
    }

    fn past(&self) -> Past {
        Past { compressions: self.state.compressions, has_summary: self.state.previous_summary.is_some() }
    }

    fn limits(&self) -> Limits {
        Limits { tail_budget: self.tail_budget(), window: self.model.window, may_split_turn: true }
    }

    fn no_op(&mut self, why: NoOp, now: Millis) -> Outcome {
        self.state.back_off(now, &self.policy);
        Outcome::NoOp(why)
    }

    /// One compaction (Hermes agent/context_compressor.py:5557). The gate is the caller's business.
    pub fn compress(&mut self, rows: &[Row], ask: Ask<'_>, summarise: &mut Summariser<'_>) -> Outcome {
        self.fell_back_to_main = false;
        if ask.manual {
            self.state.lift_pauses();
        }
        let head = window::head_size(rows, self.past(), &self.policy);
        let beyond = usize::try_from(self.policy.rows_beyond_head).unwrap_or(usize::MAX);
        if rows.len() <= head.saturating_add(beyond) {
            return self.no_op(NoOp::TooShort, ask.now);
        }
        let (mut list, origins, pruned) = self.shortened(rows);
        let sizer = Sizer::new(&self.policy);
        let prices = sizer.rows(&list);
        let window = window::window(&list, &prices, self.past(), self.limits(), &self.policy);
        if !window.has_content() || window.start >= window.end {
            return self.no_op(NoOp::EmptyWindow, ask.now);
        }
        let stubbed = self.stub_tail(&mut list, window.end);
        let scan = self.scan(&list, window);
        if scan.stretch.is_empty() {
            return self.no_op(NoOp::OnlyHandoffs, ask.now);
        }
        let tail_start = scan.tail_start;
        let continued = self.state.previous_summary.is_some();
        let price: u64 = prices[window.start..window.end].iter().sum();
        let (body, origin) = match self.summarise(&scan, price, &pruned.skills, ask, summarise) {
            Ok(summary) => summary,
            Err((failure, cooldown)) => return Outcome::Aborted { failure, cooldown },
        };
        let parts = Parts {
            head: &list[..window.start],
            tail: &list[tail_start..],
            start: window.start,
            body: &body,
            has_human: scan.has_human,
        };
        let assembled = assemble::assemble(&parts, &self.policy);
        let (mut new, cleaned) = if self.policy.clean_pairs {
            pairs::clean(assembled.rows)
        } else {
            (assembled.rows, pairs::Cleaned::default())
        };
        let before_summary = cleaned.removed_rows.iter().filter(|at| **at < assembled.summary_at).count();
        let summary_at = assembled.summary_at - before_summary;
        let restated = history::unfinished_request(&list)
            .is_some_and(|request| assemble::restate_request(&mut new, &list[request], summary_at));
        assemble::drop_old_images(&mut new);
        assemble::drop_marks(&mut new);
        self.remember(&body, &scan, origin);
        let sizes = (Sizer::new(&self.policy).list(rows), Sizer::new(&self.policy).list(&new));
        let report = Report {
            head_rows: assembled.head_rows,
            window,
            cut: origins.get(tail_start).copied().unwrap_or(rows.len()),
            tail_rows: list.len() - tail_start,
            summary_at: assembled.summary_at,
            placement: assembled.placement,
            origin,
            body,
            orphan_results: pairs::orphan_results(&new),
            dropped_results: cleaned.dropped_results,
            dropped_calls: cleaned.dropped_calls,
            pruned: pruned.count,
            stubbed,
            skills: pruned.skills,
            restated,
            continued,
            sizes,
        };
        Outcome::Compacted { rows: new, report: Box::new(report) }
    }

    /// The list with old output shortened and blank echoes gone, and where each row came from.
    fn shortened(&self, rows: &[Row]) -> (Vec<Row>, Vec<usize>, prune::Pruned) {
        let counted = self.policy.tail_rows;
        let tail = Tail {
            rows: usize::try_from(counted.unwrap_or(self.policy.protect_last_n)).unwrap_or(usize::MAX),
            budget: if counted.is_some() { None } else { Some(self.tail_budget()) },
            window: self.model.window,
            input_budget: self.threshold().input_budget,
            min_chars: self.policy.prune_min_chars,
        };
        let pruned = if self.policy.prune {
            prune::prune(rows, tail, &self.policy)
        } else {
            prune::Pruned::untouched(rows)
        };
        let echoes = history::blank_echoes(&pruned.rows);
        let kept = (0..rows.len()).filter(|index| echoes.binary_search(index).is_err());
        let (list, origins) = kept.map(|index| (pruned.rows[index].clone(), index)).unzip();
        (list, origins, pruned)
    }

    /// Long results in a lean tail, older than its newest rounds, become stubs
    /// (Hermes agent/context_compressor.py:3676).
    fn stub_tail(&self, list: &mut [Row], cut: usize) -> usize {
        if self.policy.tail_mode != TailMode::Lean {
            return 0;
        }
        let mut rounds = 0;
        let mut stubbed = 0;
        for index in (cut..list.len()).rev() {
            if list[index].is_assistant() && list[index].has_calls() {
                rounds += 1;
            }
            if !list[index].is_tool() || rounds < self.policy.lean_rounds {
                continue;
            }
            let Some(text) = list[index].content.text() else { continue };
            let size = text.chars().count() as u64;
            if size < self.policy.lean_stub_chars
                || text.contains(crate::agent::compress::tool_summary::SKILL_MARKER)
                || text.starts_with("[archived tool result")
            {
                continue;
            }
            let tool = list[index].name.clone().unwrap_or_else(|| "tool".to_owned());
            let stub =
                format!("[archived tool result: {tool}, {size} chars) find it again with session_search]");
            list[index].content = crate::wire::Content::from(stub);
            list[index].extra.remove("api_content");
            stubbed += 1;
        }
        stubbed
    }

    /// Looks for earlier handoffs in the whole list (Hermes agent/context_compressor.py:5226).
    fn scan(&mut self, list: &[Row], window: Window) -> Scan {
        let found: Vec<usize> = list
            .iter()
            .enumerate()
            .filter(|(index, row)| {
                !(*index == 0 && row.role == crate::wire::Role::System) && handoff::is_handoff(row)
            })
            .map(|(index, _)| index)
            .collect();
        let mut earlier_human = false;
        match found.last() {
            None => self.state.previous_summary = None,
            Some(newest) => {
                earlier_human = handoff::had_human(&list[*newest]);
                if self.state.previous_summary.is_none() {
                    let bodies: Vec<String> =
                        found.iter().map(|index| handoff::body(&list[*index])).collect();
                    self.state.previous_summary = Some(bodies.join("\n\n"));
                }
            }
        }
        let tail_start = found.last().map_or(window.end, |newest| {
            // A merged row beyond the cut still holds live text; it stays and is unwrapped.
            let standalone = handoff::unwrap(&list[*newest]).is_none();
            if *newest >= window.end && standalone { newest + 1 } else { window.end }
        });
        let stretch: Vec<Row> = list[window.start..tail_start]
            .iter()
            .filter_map(|row| if handoff::is_handoff(row) { handoff::unwrap(row) } else { Some(row.clone()) })
            .collect();
        let has_human = earlier_human || stretch.iter().any(history::is_human);
        let focus = summary::focus(list);
        Scan { stretch, tail_start, has_human, focus }
    }

    fn summarise(
        &mut self,
        scan: &Scan,
        price: u64,
        skills: &[String],
        ask: Ask<'_>,
        summarise: &mut Summariser<'_>,
    ) -> Result<(String, SummaryOrigin), (SummaryFailure, u64)> {
        let request = snapshot::newest_request(&scan.stretch);
        let keep_wishes = self.policy.rule_keeps_wishes;
        let by_rule = |state: &State| {
            let previous = state.previous_summary.as_deref();
            let text = fallback::summarize(&scan.stretch, request.as_deref(), previous, keep_wishes);
            snapshot::restore_skills(&text, skills)
        };
        if !ask.manual && self.skips_model(price, ask.now) {
            return Ok((by_rule(&self.state), SummaryOrigin::RuleUnasked));
        }
        let size = Sizer::new(&self.policy).list(&scan.stretch);
        let budget = threshold::summary_budget(self.model.window, size, &self.policy);
        let question = Question {
            rows: &scan.stretch,
            previous: self.state.previous_summary.as_deref(),
            budget,
            has_human: scan.has_human,
            focus: ask.focus.or(scan.focus.as_deref()),
        };
        let mut question = summary::request(question, &self.policy);
        if !self.model.distinct_summary_model {
            question.model = SummaryModel::Main;
        }
        match self.answered(&mut question, scan.has_human, summarise) {
            Ok(text) => {
                self.state.summary_succeeded();
                self.fell_back_to_main = false;
                let text = snapshot::set_snapshot(&text, request.as_deref());
                let text = snapshot::restore_skills(&text, skills);
                let text = if self.policy.tail_mode == TailMode::Lean {
                    snapshot::append_lean(&text, &scan.stretch, ask.session)
                } else {
                    text
                };
                Ok((text, SummaryOrigin::Model))
            }
            Err(failure) => {
                let judged = failure::consequence(&failure, &mut self.state, &self.policy);
                self.state.cool_down(judged.cooldown, &failure.message, ask.now);
                if judged.abort {
                    return Err((failure, judged.cooldown));
                }
                Ok((by_rule(&self.state), SummaryOrigin::RuleAfterFailure))
            }
        }
    }

    /// The model's answer, with one retry on the main model when another one was asked first.
    fn answered(
        &mut self,
        question: &mut SummaryRequest,
        has_human: bool,
        summarise: &mut Summariser<'_>,
    ) -> Result<String, SummaryFailure> {
        let first = checked(summarise(question), has_human);
        match first {
            Err(failure)
                if question.model == SummaryModel::Auxiliary
                    && failure::class(&failure) != failure::FailureClass::NoProvider =>
            {
                self.fell_back_to_main = true;
                question.model = SummaryModel::Main;
                checked(summarise(question), has_human)
            }
            other => other,
        }
    }

    /// True when the summary model is not asked (Hermes agent/context_compressor_prellm.py).
    fn skips_model(&mut self, price: u64, now: Millis) -> bool {
        if self.state.benches_model(now, &self.policy) {
            return true;
        }
        self.state.strikes >= 1
            && price < threshold::share(self.threshold().tokens, self.policy.prellm_window_share)
    }

    fn remember(&mut self, body: &str, scan: &Scan, origin: SummaryOrigin) {
        self.state.previous_summary = Some(body.to_owned());
        self.state.summary_has_human = scan.has_human;
        self.state.compressions += 1;
        self.state.micro_cursor = 0;
        self.state.micro_turns = 0;
        self.state.micro_failures = 0;
        self.state.prune_runway = 0;
        self.state.completed(origin == SummaryOrigin::RuleAfterFailure, origin == SummaryOrigin::RuleUnasked);
    }
}

struct Scan {
    /// Rows to be summarised, without earlier handoffs.
    stretch: Vec<Row>,
    /// First row that is kept after the summary.
    tail_start: usize,
    /// A person spoke in the stretch or in what the earlier summary covers.
    has_human: bool,
    /// Topic of the newest requests.
    focus: Option<String>,
}

/// A reply that can be used, or why it cannot.
fn checked(reply: Result<String, SummaryFailure>, has_human: bool) -> Result<String, SummaryFailure> {
    let text = redact::secrets(&redact::thinking(&reply?));
    let text = text.trim();
    if text.is_empty() || failure::is_refusal(text) {
        return Err(SummaryFailure::new(FailureKind::Empty, "the reply is empty or a refusal"));
    }
    if !has_human && snapshot::invents_user(text) {
        return Err(SummaryFailure::new(
            FailureKind::Other,
            "the summary speaks of a user although none spoke",
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::SizeUnit;
    use crate::wire::ToolCall;

    fn toy(align_tail: bool) -> Compress {
        Compress {
            unit: SizeUnit::Characters,
            window: 1_200,
            threshold: 0.5,
            threshold_floor: 0,
            small_window: 0,
            threshold_tokens: None,
            tail_rows: Some(4),
            rows_beyond_head: 0,
            align_tail,
            ..Compress::default()
        }
    }

    /// Three turns; the last four rows begin between a call and its result.
    fn history() -> Vec<Row> {
        let text = |n: usize| format!("{n} {}", "x".repeat(100));
        vec![
            Row::user(text(0)),
            Row::assistant(text(1)),
            Row::user(text(2)),
            Row::assistant(text(3)),
            Row::user(text(4)),
            Row::calls(text(5), vec![ToolCall::new("a", "t", "{}")]),
            Row::result("a", "t", text(6)),
            Row::assistant(text(7)),
            Row::user(text(8)),
            Row::assistant(text(9)),
        ]
    }

    fn compacted(policy: &Compress) -> (Vec<Row>, Box<Report>) {
        let model = ModelFacts { window: policy.window, ..ModelFacts::default() };
        let mut compressor = Compressor::new(policy, model, State::default());
        let size = Sizer::new(policy).list(&history());
        assert!(compressor.should_compress(size, 0).compress);
        let mut write = |_: &SummaryRequest| Ok("## Goal\ng".to_owned());
        match compressor.compress(&history(), Ask::default(), &mut write) {
            Outcome::Compacted { rows, report } => (rows, report),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_aligned_cut_at_toy_scale_loses_no_result() {
        let (rows, report) = compacted(&toy(true));
        assert_eq!((report.head_rows, report.window.start, report.cut), (3, 3, 5));
        assert_eq!((report.dropped_results, report.orphan_results), (0, 0));
        assert!(rows.iter().any(Row::is_tool));
    }

    #[test]
    fn an_unaligned_cut_separates_a_result_and_the_cleaning_drops_it() {
        let (rows, report) = compacted(&toy(false));
        assert_eq!((report.cut, report.tail_rows), (6, 4));
        assert_eq!((report.dropped_results, report.orphan_results), (1, 0));
        assert!(!rows.iter().any(Row::is_tool));
        let (_, report) = compacted(&Compress { clean_pairs: false, ..toy(false) });
        assert_eq!((report.dropped_results, report.orphan_results), (0, 1));
    }

    #[test]
    fn a_summary_is_the_users_words_when_the_knob_says_so() {
        let policy = Compress { summary_role: crate::policy::SummaryRole::User, ..toy(true) };
        let (rows, report) = compacted(&policy);
        assert!(rows[report.summary_at].is_user());
    }

    #[test]
    fn a_second_compaction_continues_the_first_summary_and_gives_up_the_head() {
        let policy = toy(true);
        let model = ModelFacts { window: policy.window, ..ModelFacts::default() };
        let mut compressor = Compressor::new(&policy, model, State::default());
        let mut write = |_: &SummaryRequest| Ok("## Goal\ng".to_owned());
        let Outcome::Compacted { mut rows, .. } = compressor.compress(&history(), Ask::default(), &mut write)
        else {
            panic!()
        };
        rows.extend(history());
        let Outcome::Compacted { report, .. } = compressor.compress(&rows, Ask::default(), &mut write) else {
            panic!()
        };
        assert!(report.continued);
        assert_eq!((report.head_rows, compressor.state.compressions), (0, 2));
    }
}
