//! What the self-test found.

use crate::lab::selftest::SelfTest;

/// One line per step.
pub fn text(result: &SelfTest) -> String {
    let mut text = String::new();
    for step in &result.steps {
        let mark = if step.holds { "holds" } else { "FAILS" };
        text.push_str(&format!("{mark}  {}: {}\n", step.name, step.says));
        for line in &step.details {
            text.push_str(&format!("       {line}\n"));
        }
    }
    text.push_str(if result.holds() { "the lab holds\n" } else { "the lab does not hold\n" });
    text
}
