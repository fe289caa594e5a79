//! The line with a provider that is played: what is asked again, what stops a run, what is kept.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::*;
use crate::cache::prices::Prices;
use crate::live::journal::Identity;
use crate::model::Sent;
use crate::policy::{CacheModel, Policy};
use crate::wire::Row;

/// A provider that says one thing after another, and what was asked of the world.
#[derive(Default)]
struct Played {
    answers: VecDeque<Result<Got, Lost>>,
    pauses: Vec<u64>,
    sent: usize,
}

struct Stage(Rc<RefCell<Played>>);

impl Outside for Stage {
    fn now(&self) -> Millis {
        1_000
    }

    fn pause(&mut self, millis: u64) {
        self.0.borrow_mut().pauses.push(millis);
    }

    fn post(&mut self, _: &[u8]) -> Result<Got, Lost> {
        let mut played = self.0.borrow_mut();
        played.sent += 1;
        played.answers.pop_front().expect("an answer for every request")
    }
}

struct Set {
    line: Line,
    played: Rc<RefCell<Played>>,
    dir: tempfile::TempDir,
    told: Rc<RefCell<Vec<String>>>,
}

fn set(answers: impl IntoIterator<Item = Result<Got, Lost>>, max: &str) -> Set {
    let dir = tempfile::tempdir().unwrap();
    let played =
        Rc::new(RefCell::new(Played { answers: answers.into_iter().collect(), ..Played::default() }));
    let told = Rc::new(RefCell::new(Vec::new()));
    let line = line(&dir, &played, &told, max, false);
    Set { line, played, dir, told }
}

fn line(
    dir: &tempfile::TempDir,
    played: &Rc<RefCell<Played>>,
    told: &Rc<RefCell<Vec<String>>>,
    max: &str,
    resume: bool,
) -> Line {
    let (journal, earlier) = Journal::open(dir.path(), "u".to_owned(), &Identity::new(), resume).unwrap();
    let price = Prices::shipped().of("gpt-4o", None).unwrap().clone();
    let budget = Budget::new(price, Usd::of_text(max).unwrap(), &earlier);
    let terms = Terms { provider: Provider::OpenAi, model: "gpt-4o".to_owned(), max_tokens: 100 };
    let counter = Counter::new(Some(CacheModel::OpenAi), Policy::default().cache);
    let told = told.clone();
    let tell = Box::new(move |text: &str| told.borrow_mut().push(text.to_owned()));
    Line::new(terms, Box::new(Stage(played.clone())), journal, budget, counter, tell)
}

fn ask(line: &mut Line, text: &str) -> Result<Reply, ModelError> {
    let rows = [Row::user(text)];
    let ask = Ask {
        lane: Lane::Main,
        session: "s",
        turn: 1,
        tools: &[],
        system: "",
        rows: &rows,
        sent: Sent::default(),
    };
    line.ask("seed 0", &ask)
}

fn says(text: &str) -> Got {
    let answer = serde_json::json!({
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2},
    });
    let content_type = "application/json".to_owned();
    Got { status: 200, content_type, text: answer.to_string(), ..Got::default() }
}

fn fails(status: u16, code: &str, retry_after: Option<u64>) -> Got {
    let text = serde_json::json!({"error": {"message": "no", "code": code}}).to_string();
    Got { status, retry_after, text, ..Got::default() }
}

#[test]
fn a_busy_provider_is_asked_again_after_the_time_that_it_names_and_else_ever_later() {
    let unreachable = Err(Lost::Unreachable("refused".to_owned()));
    let answers = [Ok(fails(429, "", Some(1_500))), Ok(fails(503, "", None)), unreachable, Ok(says("Well."))];
    let mut set = set(answers, "1");
    assert_eq!(ask(&mut set.line, "x").unwrap().text.as_deref(), Some("Well."));
    let pauses = &set.played.borrow().pauses;
    assert_eq!(pauses[0], 1_500);
    assert!((2_000..=2_500).contains(&pauses[1]) && (4_000..=5_000).contains(&pauses[2]), "{pauses:?}");
    assert_eq!(set.line.budget.uncertain(), Usd::ZERO, "none of these is billed");
    assert_eq!(set.told.borrow().len(), 3);
}

#[test]
fn who_asks_for_too_long_a_wait_or_never_answers_is_left_alone() {
    let mut long = set([Ok(fails(429, "", Some(3_600_000)))], "1");
    let error = ask(&mut long.line, "x").unwrap_err().to_string();
    assert!(error.contains("asks to wait 3600 s"), "{error}");
    let mut never = set((0..8).map(|_| Ok(fails(529, "", Some(1)))), "1");
    let error = ask(&mut never.line, "x").unwrap_err().to_string();
    assert!(error.contains("asked 8 times"), "{error}");
    assert!(matches!(never.line.stopped, Some(Stop::GaveUp(_))));
}

#[test]
fn a_wrong_key_and_an_empty_account_stop_the_run_at_once() {
    for (status, code) in [(401, "invalid_api_key"), (404, "model_not_found"), (429, "insufficient_quota")] {
        let mut set = set([Ok(fails(status, code, None))], "1");
        ask(&mut set.line, "x").unwrap_err();
        assert!(matches!(set.line.stopped, Some(Stop::Refused(_))), "{status}");
        ask(&mut set.line, "y").unwrap_err();
        assert_eq!(set.played.borrow().sent, 1, "nothing more is sent");
    }
}

#[test]
fn an_empty_account_is_known_by_its_words_where_the_code_does_not_say_it() {
    let text = r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low."}}"#;
    let mut set = set([Ok(Got { text: text.to_owned(), ..fails(400, "", None) })], "1");
    ask(&mut set.line, "x").unwrap_err();
    assert!(matches!(set.line.stopped, Some(Stop::Refused(_))));
}

#[test]
fn a_refused_request_is_an_answer_like_any_other() {
    let mut set = set([Ok(fails(400, "context_length_exceeded", None)), Ok(says("Well."))], "1");
    let error = ask(&mut set.line, "x").unwrap_err();
    assert_eq!(error, ModelError::Provider { kind: "context_length".to_owned(), retry: false });
    assert!(ask(&mut set.line, "y").is_ok());
    let mut again = line(&set.dir, &set.played, &set.told, "1", true);
    assert!(ask(&mut again, "x").is_err() && ask(&mut again, "y").is_ok());
    assert_eq!(set.played.borrow().sent, 2, "a resumed run asks nothing twice");
    assert!(again.asked.iter().all(|asked| asked.replayed));
}

#[test]
fn nothing_is_sent_that_the_budget_does_not_cover() {
    // 2,000 tokens that may be added and 100 of answer at gpt-4o's price are more than half a cent.
    let mut set = set([], "0.005");
    let error = ask(&mut set.line, "x").unwrap_err().to_string();
    assert!(error.contains("stopped before the budget"), "{error}");
    assert_eq!(set.played.borrow().sent, 0);
}

#[test]
fn an_answer_that_was_lost_counts_with_its_worst_also_after_a_restart() {
    let mut set = set([Err(Lost::Broken("reset".to_owned())), Ok(says("Well."))], "1");
    ask(&mut set.line, "x").unwrap();
    let uncertain = set.line.budget.uncertain();
    assert!(uncertain > Usd::ZERO);
    assert!(set.told.borrow()[0].contains("may be billed"), "{:?}", set.told.borrow());
    let again = line(&set.dir, &set.played, &set.told, "1", true);
    assert_eq!(again.budget.uncertain(), uncertain);
    assert_eq!(again.budget.spent(), set.line.budget.spent());
}
