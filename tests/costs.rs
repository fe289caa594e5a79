//! Usage reports of three conventions come out as the same four kinds of tokens, and at the exact price.

use hermes_lab::cache::prices::Price;
use hermes_lab::cache::usage::{self, Convention, Parts};
use hermes_lab::units::Usd;
use serde_json::Value;

const FOLDER: [&str; 3] = [
    include_str!("cases/cost-three-conventions/case.json"),
    include_str!("cases/cost-three-conventions/usage.jsonl"),
    include_str!("cases/cost-three-conventions/prices_per_million.json"),
];

fn price(prices: &Value, model: &str) -> Price {
    let text = |key: &str| prices[model].get(key).map(Value::to_string);
    let writes = [text("cache_write_5m"), None, text("cache_write_1h")];
    let writes = [writes[0].as_deref(), None, writes[2].as_deref()];
    let [input, read, output] = ["input", "cache_read", "output"].map(|key| text(key).expect("a price"));
    Price::per_million(model, &input, &read, writes, &output).expect("prices")
}

#[test]
fn three_conventions_cost_what_they_cost_to_the_last_digit() {
    let [case, usage_lines, prices] = FOLDER;
    let case: Value = serde_json::from_str(case).expect("JSON");
    let prices: Value = serde_json::from_str(prices).expect("JSON");
    let (mut total, mut twice) = (Usd::ZERO, Usd::ZERO);
    for line in usage_lines.lines() {
        let row: Value = serde_json::from_str(line).expect("JSON");
        let (parts, convention) = usage::read(&row["usage"]).expect("a report");
        let price = price(&prices, row["model"].as_str().expect("a model"));
        let expected = &case["expected"]["normalised"][row["id"].as_str().expect("an id")];
        let cost = price.cost(&parts);
        for (key, ours) in [
            ("fresh", parts.fresh),
            ("read", parts.read),
            ("write_5m", parts.write_5m),
            ("write_1h", parts.write_1h),
            ("output", parts.output),
        ] {
            assert_eq!(expected[key], ours, "{} {key}", row["id"]);
        }
        assert_eq!(serde_json::to_value(cost).expect("money"), expected["cost"], "{}", row["id"]);
        total += cost;
        twice += match convention {
            Convention::Inside => price.cost(&Parts { fresh: parts.prompt(), ..parts }),
            Convention::Beside => cost,
        };
    }
    assert_eq!(serde_json::to_value(total).expect("money"), case["expected"]["total_cost"]);
    assert_eq!(
        serde_json::to_value(twice).expect("money"),
        case["expected"]["total_if_cached_counted_twice"]
    );
}
