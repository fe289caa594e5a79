//! Adapter of the family `threats`.

use serde_json::{Value, json};

use super::{Fixtures, ReplayError};
use crate::agent::threats::{Finding, Scanner, Scope};
use crate::policy;

/// Replays one vector of the scanner.
///
/// # Errors
/// When the function is unknown or the input lacks its text or scope.
pub fn replay(function: &str, given: &Value, _: &Fixtures) -> Result<Value, ReplayError> {
    let text = |key: &str| {
        given.get(key).and_then(Value::as_str).ok_or_else(|| ReplayError::Missing(key.to_owned()))
    };
    let scanner = Scanner::new(&policy::Threats::default());
    match function {
        "scan" => Ok(scanner
            .scan_named(text("text")?, text("scope")?)
            .map_or_else(|_| json!({"error": "unknown_scope"}), |findings| answer(&findings))),
        "scopes" => {
            let scan = |scope| text("text").map(|text| answer(&scanner.scan(text, scope)));
            Ok(
                json!({"all": scan(Scope::All)?, "context": scan(Scope::Context)?, "strict": scan(Scope::Strict)?}),
            )
        }
        "scope_name" => {
            let error = scanner.scan_named(text("text")?, text("scope")?).err().map(|_| "unknown_scope");
            Ok(json!({"error": error}))
        }
        _ => Err(ReplayError::UnknownFunction(format!("threats.{function}"))),
    }
}

fn answer(findings: &[Finding]) -> Value {
    let mut categories = Vec::new();
    let mut invisible = Vec::new();
    for finding in findings {
        match finding {
            Finding::Invisible(character) => invisible.push(format!("U+{:04X}", u32::from(*character))),
            Finding::Pattern(id) => categories.push(*id),
        }
    }
    json!({
        "blocked": !findings.is_empty(),
        "categories": categories,
        "invisible": invisible,
        "first": findings.first().map(|finding| finding.id()),
    })
}
