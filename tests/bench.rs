//! Benches: accounts agree with the ledger, stay within their bounds, and compare to baselines.

use hermes_lab::cache::prices::Prices;
use hermes_lab::lab::bench::account::{Account, Row};
use hermes_lab::lab::bench::{ledgers, tables};
use hermes_lab::lab::play::{Plan, play, policy_of};
use hermes_lab::ledger::What;
use hermes_lab::policy::Cache;
use hermes_lab::scenario::{self, Scenario};
use hermes_lab::wire::Level;
use serde_json::Value;

use crate::support::lab;

/// Plays a scenario and holds the account of its ledger against what its responses were billed.
fn agrees(scenario: &Scenario, plan: &Plan) {
    let policy = policy_of(scenario, plan).expect("knobs");
    let ledger = play(scenario, plan).expect("it plays");
    let mut accounts = [Account::new(policy.cache.model, &policy.cache, None)];
    ledgers::observe(&ledger, &policy.prompt.model, &mut accounts);
    let (mut read, mut written) = (0, 0);
    for event in &ledger.events {
        if let What::Response(response) = &event.what {
            read += response.usage.read;
            written += response.usage.write_5m + response.usage.write_1h;
        }
    }
    let parts = accounts[0].parts();
    assert!(parts.read >= read && parts.written() >= written, "{}", scenario.name);
    // A request that the provider's fault answered is billed nowhere, but its prompt was read.
    if ledger
        .events
        .iter()
        .all(|event| !matches!(&event.what, What::Response(answer) if !answer.refused.is_empty()))
    {
        assert_eq!((parts.read, parts.written()), (read, written), "{}", scenario.name);
    }
}

#[test]
fn the_account_of_a_ledger_is_what_its_responses_were_billed() {
    for scenario in tables::shipped_scenarios() {
        agrees(&scenario, &Plan::default());
    }
}

#[test]
fn a_run_counts_the_blocks_of_wide_turns_as_the_bench_does() {
    let call = |n: u32| format!("{{ tool = \"terminal\", args = {{ command = \"ls {n}\" }} }}");
    let calls = (0..25).map(call).collect::<Vec<_>>().join(", ");
    for knobs in ["\"cache.tokens_min\" = 1", "\"cache.tokens_min\" = 1\n\"cache.model\" = \"openai-5.6\""] {
        let text = format!(
            "format = 1\nname = \"wide\"\nstart = \"2026-09-01T09:00:00Z\"\n[policy]\n{knobs}\n\n\
             [[command]]\nrun = \"ls *\"\nprints = \"done\\n\"\n\n[[rule]]\nlane = \"review\"\n\
             reply.say = \"Nothing to save.\"\n\n[[act]]\nopen.name = \"s\"\n\n[[act]]\n[act.turn]\nsay = \"Look.\"\n\
             times = 3\nreplies = [{{ calls = [{calls}] }}, {{ calls = [{calls}] }}, {{ say = \"Done.\" }}]\n"
        );
        let scenario = scenario::load("wide.toml", &text).unwrap_or_else(|faults| panic!("{faults:#?}"));
        agrees(&scenario, &Plan::default());
    }
}

#[test]
fn the_session_of_a_hundred_turns_is_as_large_as_it_says() {
    let ledger = play(&tables::hundred_turns(), &Plan::default()).expect("it plays");
    let requests: Vec<_> = ledger
        .events
        .iter()
        .filter_map(|event| match &event.what {
            What::Request(request) if request.lane == hermes_lab::ledger::Lane::Main => Some(request),
            _ => None,
        })
        .collect();
    let system: usize =
        requests[0].added.iter().filter(|part| part.level == Level::System).map(|part| part.text.len()).sum();
    assert!((15_200..16_800).contains(&system), "{} tokens of system prompt", system / 4);
    let grown = requests[requests.len() - 1].size - requests[0].size;
    assert!((18_000..24_000).contains(&grown), "{grown} tokens in a hundred turns");
}

fn find<'a>(rows: &'a [Row], session: &str, layout: &str) -> &'a Row {
    rows.iter().find(|row| row.scenario == session && row.layout == layout).expect("a row")
}

#[test]
fn layouts_differ_where_turns_are_wide_or_gaps_long() {
    let rows = tables::layouts("claude-sonnet-4-6").expect("a price");
    for row in &rows {
        assert!(row.hit_rate <= row.hit_rate_upper, "{row:?}");
    }
    let rate = |session: &str, layout: &str| find(&rows, session, layout).hit_rate;
    assert_eq!(find(&rows, "usual", "none 5m").read, 0);
    assert!(rate("wide-turns", "direct_native 5m") > rate("wide-turns", "system_and_3 5m") + 0.3);
    assert!(rate("long-gaps", "static_prefix 1h") > rate("long-gaps", "static_prefix 5m"));
    assert!(rate("usual", "system_and_3 5m") > rate("usual", "system_only 5m") + 0.5);
}

#[test]
fn a_hundred_turns_cost_a_seventh_of_what_they_cost_without_a_cache() {
    let pairs = tables::pairs(&["anthropic".to_owned()], &[]).expect("a pair");
    let classic = tables::classic(&pairs);
    let last = classic.last().expect("a row");
    // Turn n sends 4,000 + 200 n − 100 tokens; written once at 1.25, read after that at a tenth.
    let price = Prices::shipped();
    let price = price.of("claude-sonnet-4-6", None).expect("a price");
    let (prompt, written) = (1_400_000_u64, 4_100 + 99 * 200);
    let micro = |tokens: u64, rate: i64| i128::from(tokens) * i128::from(rate);
    let output = micro(100 * 100, price.rates.output);
    let cached = micro(written, price.rates.write_5m) + micro(prompt - written, price.rates.read) + output;
    assert_eq!((last.turns, last.prompt_tokens), (100, prompt));
    assert_eq!(last.cost.pico(), cached);
    assert_eq!(last.cost_without_cache.pico(), micro(prompt, price.rates.input) + output);
}

#[test]
fn breaks_of_the_prefix_cost_money_and_others_do_not() {
    let wanted = ["D1", "D5", "D10"];
    let breaks: Vec<_> =
        tables::shipped_breaks().into_iter().filter(|found| wanted.contains(&found.id.as_str())).collect();
    let rows = tables::mechanisms(&breaks).expect("they play");
    let cost =
        |id: &str| rows.iter().find(|row| row.id == id).map(|row| row.cost[0].1.pico()).expect("a row");
    assert!(cost("D10") > cost("D1") && cost("D1") > 0);
    assert_eq!(cost("D5"), 0);
}

#[test]
fn a_baseline_holds_against_itself_and_a_worse_cache_is_a_regression() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (good, bad, loose) = (file("good.json"), file("bad.json"), file("loose.toml"));
    let bench = ["bench", "--scenario", "grown", "--model", "anthropic", "--save"];
    let code = |arguments: &[&str]| lab(arguments).status.code();
    assert_eq!(code(&[&bench[..], &[&good]].concat()), Some(0));
    assert_eq!(code(&[&bench[..], &[&bad, "--set", "cache.lookback=1"]].concat()), Some(0));
    assert_eq!(code(&["compare", &good, &good]), Some(0));
    let worse = lab(&["compare", &good, &bad, "--json"]);
    assert_eq!(worse.status.code(), Some(1));
    let value: Value = serde_json::from_slice(&worse.stdout).expect("JSON");
    let moves = value["moves"].as_array().expect("a list");
    assert!(moves.iter().any(|moved| moved["figure"] == "cost" && moved["worse"] == true), "{moves:?}");
    assert_eq!(code(&["compare", &bad, &good]), Some(0), "an improvement is no regression");
    #[expect(clippy::disallowed_methods, reason = "a test writes its own files")]
    std::fs::write(&loose, "cost = 100\nhit_rate = 1\nread = 1\nwasted_tokens = 100\nuncached = 100\n")
        .expect("written");
    assert_eq!(code(&["compare", &good, &bad, "--tolerance", &loose]), Some(0));
    assert_eq!(code(&["compare", &good, &file("absent.json")]), Some(2));
}

#[test]
fn bad_traces_and_names_are_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.jsonl").to_str().expect("text").to_owned();
    #[expect(clippy::disallowed_methods, reason = "a test writes its own files")]
    std::fs::write(
        &path,
        "{\"timestamp\": 1, \"input_length\": -1, \"output_length\": 1, \"hash_ids\": []}\n",
    )
    .expect("written");
    for (arguments, said) in [
        (vec!["bench", "--trace", path.as_str()], "t.jsonl:1: `input_length` is -1"),
        (vec!["bench", "--trace", path.as_str(), "--capacity", "many"], "`many` is no number of blocks"),
        (vec!["bench", "--price", "claude-opus-6"], "claude-opus-5"),
        (vec!["bench", "--model", "antropic"], "did you mean `anthropic`?"),
    ] {
        let output = lab(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = String::from_utf8(output.stderr).expect("text");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn every_form_of_a_bench_has_the_same_rows() {
    let run =
        |form: &str| String::from_utf8(lab(&["bench", "--scenario", "reopen", form]).stdout).expect("text");
    let value: Value = serde_json::from_str(&run("--json")).expect("JSON");
    let csv = run("--csv");
    let rows = value["rows"].as_array().expect("a list").len();
    assert_eq!(csv.lines().count(), rows + 1);
    assert!(csv.starts_with("scenario,cache,price,requests,"), "{csv}");
}

#[test]
fn every_usual_pair_has_a_price_and_every_model_can_be_benched() {
    let pairs = tables::pairs(&[], &[]).expect("pairs");
    assert_eq!(pairs.len(), tables::PAIRS.len());
    let knobs = Cache::default();
    for (model, price) in pairs {
        assert_eq!(Account::new(model, &knobs, price).row("none", "").requests, 0);
    }
}
