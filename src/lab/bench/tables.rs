//! The benches as a whole: scenarios against cache models and prices, layouts of markers, what a mechanism costs.

use serde::Serialize;

use crate::cache::prices::{Price, PriceError, Prices};
use crate::cache::usage::Parts;
use crate::lab::breaks::{self, Break};
use crate::lab::play::{Plan, PlayError, play, policy_of};
use crate::lab::runs;
use crate::policy::{self, Breakpoints, CacheModel, KnobValue as _, MarkerLayout, Overlay};
use crate::scenario::{self, Scenario};
use crate::units::Usd;

use super::account::{Account, Row};
use super::conversation::{CLASSIC, SHAPES, Shape};
use super::{conversation, ledgers};

/// Cache models and the price that goes with each, when none are named.
pub const PAIRS: [(CacheModel, Option<&str>); 13] = [
    (CacheModel::Anthropic, Some("claude-sonnet-4-6")),
    (CacheModel::Bedrock, Some("claude-sonnet-4-6")),
    (CacheModel::OpenAi, Some("gpt-5.2")),
    (CacheModel::OpenAi56, Some("gpt-5.6-sol")),
    (CacheModel::Gemini, Some("gemini-3.1-pro")),
    (CacheModel::DeepSeek2026, Some("deepseek-v4-flash")),
    (CacheModel::Qwen, Some("qwen3.7-max")),
    (CacheModel::Moonshot, Some("kimi-k2.6")),
    (CacheModel::MiniMax, Some("minimax-m2.7")),
    (CacheModel::Mistral, Some("mistral-large-4")),
    (CacheModel::Xai, Some("grok-4.5")),
    (CacheModel::Vllm, None),
    (CacheModel::Sglang, None),
];

/// Why a bench could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A run could not be played.
    #[error("{scenario}: {error}")]
    Play {
        /// The scenario.
        scenario: String,
        /// What went wrong.
        error: PlayError,
    },
    /// A price is not known.
    #[error(transparent)]
    Price(#[from] PriceError),
    /// A cache model is not known.
    #[error("unknown cache model `{0}`")]
    Model(String),
}

/// Cache models and prices to compare.
pub type Pairs = Vec<(CacheModel, Option<Price>)>;

/// Every named model with every named price, or the pairs that go together.
///
/// # Errors
/// An unknown model or price.
pub fn pairs(models: &[String], prices: &[String]) -> Result<Pairs, BenchError> {
    let table = Prices::shipped();
    let models = models
        .iter()
        .map(|name| {
            let value = serde_json::Value::from(name.as_str());
            CacheModel::read(&value, None).map_err(|_| BenchError::Model(name.clone()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let usual = || PAIRS.iter().filter(|(model, _)| models.is_empty() || models.contains(model));
    let priced = |model: CacheModel, name: &str| Ok((model, Some(table.of(name, None)?.clone())));
    if prices.is_empty() {
        let mut found = usual()
            .map(|(model, name)| name.map_or(Ok((*model, None)), |name| priced(*model, name)))
            .collect::<Result<Pairs, BenchError>>()?;
        let unpaired = models.iter().filter(|model| PAIRS.iter().all(|(paired, _)| paired != *model));
        found.extend(unpaired.map(|model| (*model, None)));
        return Ok(found);
    }
    let models: Vec<CacheModel> =
        if models.is_empty() { usual().map(|(model, _)| *model).collect() } else { models };
    models.iter().flat_map(|model| prices.iter().map(|name| priced(*model, name))).collect()
}

fn accounts(pairs: &Pairs, knobs: &policy::Cache) -> Vec<Account> {
    pairs.iter().map(|(model, price)| Account::new(*model, knobs, price.clone())).collect()
}

/// Scenarios against cache models and prices.
///
/// # Errors
/// When a scenario cannot be played.
pub fn scenarios(scenarios: &[Scenario], plan: &Plan, pairs: &Pairs) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for scenario in scenarios {
        let named = |error| BenchError::Play { scenario: scenario.name.clone(), error };
        let policy = policy_of(scenario, plan).map_err(named)?;
        let ledger = play(scenario, plan).map_err(named)?;
        let mut accounts = accounts(pairs, &policy.cache);
        ledgers::observe(&ledger, &policy.prompt.model, &mut accounts);
        rows.extend(accounts.iter().map(|account| account.row(&scenario.name, "")));
    }
    Ok(rows)
}

/// Layouts of markers on the same conversations, each with both lifetimes; the cache is Anthropic's.
///
/// # Errors
/// When the price is not known.
pub fn layouts(price: &str) -> Result<Vec<Row>, BenchError> {
    let price = Prices::shipped().of(price, None)?.clone();
    let layouts = [
        MarkerLayout::None,
        MarkerLayout::SystemOnly,
        MarkerLayout::SystemAndThree,
        MarkerLayout::StaticPrefix,
        MarkerLayout::DirectNative,
    ];
    let mut rows = Vec::new();
    for shape in &SHAPES {
        for layout in layouts {
            for ttl in ["5m", "1h"] {
                if layout == MarkerLayout::None && ttl == "1h" {
                    continue;
                }
                let knobs = Breakpoints { layout, ttl: ttl.to_owned(), ..Breakpoints::default() };
                let mut account =
                    Account::new(CacheModel::Anthropic, &policy::Cache::default(), Some(price.clone()));
                conversation::play(shape, &price.model, &knobs, |sent| {
                    account.observe(sent.at, &sent.observed, sent.output);
                });
                rows.push(account.row(shape.name, &format!("{} {ttl}", layout.word())));
            }
        }
    }
    Ok(rows)
}

/// Money after some turns of the classic session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Classic {
    /// Cache model.
    pub cache: &'static str,
    /// Model whose price is paid.
    pub price: String,
    /// Turns so far.
    pub turns: usize,
    /// Prompt tokens so far.
    pub prompt_tokens: u64,
    /// Money so far.
    pub cost: Usd,
    /// Money so far, had nothing been cached.
    pub cost_without_cache: Usd,
}

/// The classic session turn by turn: what a cache saves as a conversation grows.
pub fn classic(pairs: &Pairs) -> Vec<Classic> {
    let mut rows = Vec::new();
    for (model, price) in pairs.iter().filter_map(|(model, price)| Some((*model, price.clone()?))) {
        let mut account = Account::new(model, &policy::Cache::default(), Some(price.clone()));
        let shape: &Shape = &CLASSIC;
        conversation::play(shape, "claude-sonnet-4-6", &Breakpoints::default(), |sent| {
            account.observe(sent.at, &sent.observed, sent.output);
            if sent.turn == 1 || sent.turn % 10 == 0 {
                rows.push(Classic {
                    cache: model.word(),
                    price: price.model.clone(),
                    turns: sent.turn,
                    prompt_tokens: account.parts().prompt(),
                    cost: account.cost(),
                    cost_without_cache: account.cost_without_cache(),
                });
            }
        });
    }
    rows
}

/// What a break costs on a session of a hundred turns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mechanism {
    /// The break.
    pub id: String,
    /// One line about it.
    pub title: String,
    /// Requests that broke the prefix unannounced, beyond those of the intact run.
    pub unplanned_breaks: i64,
    /// Prompt tokens beyond those of the intact run.
    pub prompt_tokens: i64,
    /// Prompt tokens that were not read, beyond those of the intact run, by cache model.
    pub paid_tokens: Vec<(String, i64)>,
    /// Money beyond that of the intact run, by price.
    pub cost: Vec<(String, Usd)>,
}

/// Cache models of the table of mechanisms.
const PROVIDERS: [&str; 5] = ["anthropic", "openai", "openai-5.6", "gemini", "deepseek-2026"];

/// The session that every break is played on: a hundred turns of about two hundred tokens behind a system prompt of
/// about four thousand, with now and then a tool, a memory write, a skill that appears, tools that reconnect.
///
/// # Panics
/// When the generated text is no scenario, which a test forbids.
pub fn hundred_turns() -> Scenario {
    use std::fmt::Write as _;
    let words = |tokens: usize, seed: usize| {
        let text: String =
            format!("sentence {seed} says what was done and why ").chars().cycle().take(tokens * 4).collect();
        text.trim_end().to_owned()
    };
    let mut text = String::from(
        "format = 1\nname = \"hundred-turns\"\ntitle = \"a hundred turns of everyday work\"\nstart = \"2026-09-01T09:00:00Z\"\n\
         [[rule]]\nlane = \"review\"\ntimes = 1\n[rule.reply]\ncall = \"skill_manage\"\n[rule.reply.args]\naction = \"create\"\n\
         name = \"notes\"\ncontent = \"---\\nname: notes\\ndescription: Use when notes are due.\\n---\\n\\n1. `step notes`\\n\"\n\
         [[rule]]\nlane = \"review\"\nreply.say = \"Nothing to save.\"\n\
         [[rule]]\nlane = \"summary\"\nreply.say = \"Work went on as before.\"\n\
         [[command]]\nrun = \"step *\"\nprints = \"done, and nothing to report beyond that\\n\"\n",
    );
    let _ = write!(text, "[[file]]\npath = \"AGENTS.md\"\ntext = \"{}\"\n", words(3_700, 0));
    text.push_str("[[act]]\nopen.name = \"s1\"\n");
    for turn in 0..100 {
        let say = words(90, turn);
        let answer = words(85, turn + 100);
        let reply = format!("{{ say = \"{answer}\" }}");
        let calls = match turn % 10 {
            3 => format!(
                "{{ call = \"memory\", args = {{ action = \"add\", target = \"memory\", content = \"Fact {turn} was learned.\" }} }}, "
            ),
            6 => format!(
                "{{ calls = [{{ tool = \"terminal\", args = {{ command = \"step {turn} one\" }} }}, \
                 {{ tool = \"terminal\", args = {{ command = \"step {turn} two\" }} }}] }}, "
            ),
            _ => String::new(),
        };
        let reconnect = if turn % 20 == 15 { "reconnect = true\n" } else { "" };
        if turn % 25 == 12 {
            let _ = write!(
                text,
                "[[act]]\n[act.add_skill.skill]\nname = \"way-{turn}\"\ndescription = \"Use when work number {turn} is due.\"\nbody = \"1. `step {turn}`\"\n"
            );
        }
        let _ = write!(
            text,
            "[[act]]\nwait.seconds = 30\n[[act]]\n[act.turn]\nsay = \"{say}\"\n{reconnect}replies = [{calls}{reply}]\n"
        );
    }
    scenario::load("hundred-turns.toml", &text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// What one account says, without its cache.
#[derive(Clone, Copy)]
struct Spent {
    parts: Parts,
    unplanned: u64,
    cost: Usd,
}

/// What each break costs on [`hundred_turns`], on several providers.
///
/// # Errors
/// When a run cannot be played.
pub fn mechanisms(breaks: &[Break]) -> Result<Vec<Mechanism>, BenchError> {
    let scenario = hundred_turns();
    let pairs = pairs(&PROVIDERS.map(str::to_owned), &[])?;
    let run = |above: Vec<Overlay>| -> Result<Vec<Spent>, BenchError> {
        let plan = Plan { above, ..Plan::default() };
        let named = |error| BenchError::Play { scenario: scenario.name.clone(), error };
        let policy = policy_of(&scenario, &plan).map_err(named)?;
        let ledger = play(&scenario, &plan).map_err(named)?;
        let mut accounts = accounts(&pairs, &policy.cache);
        ledgers::observe(&ledger, &policy.prompt.model, &mut accounts);
        let spent = |account: &Account| Spent {
            parts: account.parts(),
            unplanned: account.breaks.unplanned,
            cost: account.cost(),
        };
        Ok(accounts.iter().map(spent).collect())
    };
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let plain = run(Vec::new())?;
    let row = |found: &Break| -> Result<Mechanism, BenchError> {
        let with = Overlay::from_table(&found.with);
        let own = if found.with.is_empty() { None } else { Some(run(vec![with.clone()])?) };
        let intact = own.as_ref().unwrap_or(&plain);
        let broken = run(vec![with, found.overlay()])?;
        let sent_anew = |spent: &Spent| signed(spent.parts.prompt() - spent.parts.read);
        let both = || intact.iter().zip(&broken).zip(&pairs);
        Ok(Mechanism {
            id: found.id.clone(),
            title: found.title.clone(),
            unplanned_breaks: signed(broken[0].unplanned) - signed(intact[0].unplanned),
            prompt_tokens: signed(broken[0].parts.prompt()) - signed(intact[0].parts.prompt()),
            paid_tokens: both()
                .map(|((intact, broken), (model, _))| {
                    (model.word().to_owned(), sent_anew(broken) - sent_anew(intact))
                })
                .collect(),
            cost: both()
                .filter_map(|((intact, broken), (_, price))| {
                    Some((price.as_ref()?.model.clone(), broken.cost - intact.cost))
                })
                .collect(),
        })
    };
    runs::each(breaks, row).into_iter().collect()
}

/// Every shipped break.
pub fn shipped_breaks() -> Vec<Break> {
    breaks::SHIPPED.iter().filter_map(|(id, _)| breaks::shipped_break(id)).collect()
}

/// Every shipped scenario.
pub fn shipped_scenarios() -> Vec<Scenario> {
    scenario::shipped().iter().filter_map(|(name, _)| breaks::shipped_scenario(name)).collect()
}
