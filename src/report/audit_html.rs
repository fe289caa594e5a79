//! An audit as one page: a bar a request on a time axis, breaks marked, the difference on request.
//!
//! Self-contained: no network, no fonts, no images. Everything that comes from the log is data in a JSON block, where
//! no markup can begin, and is put into the page as text only.

use serde_json::{Value, json};

use crate::audit::words::Cause;
use crate::report::audit::{View, conversations, mask, shown};

/// Requests that one page shows; the rest is counted.
const REQUESTS_MAX: usize = 20_000;

/// A table above the audit: what else a run has to say.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Part {
    /// Its heading.
    pub head: &'static str,
    /// What stands there when there are no rows.
    pub none: &'static str,
    /// Names of the columns.
    pub columns: &'static [&'static str],
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// The page.
pub fn page(view: &View<'_>) -> String {
    page_of(view, None)
}

/// The page of a run: a title and tables above the audit.
pub fn page_of(view: &View<'_>, run: Option<(&str, &[Part])>) -> String {
    let masked = |text: &str| mask(view.redact, text);
    let requests: Vec<Value> = view
        .audit
        .requests
        .iter()
        .take(REQUESTS_MAX)
        .map(|judged| {
            let name = shown(view.redact, &view.audit.name(judged.conversation));
            judged.to_json(&name, &masked)
        })
        .collect();
    let mends: serde_json::Map<String, Value> =
        Cause::ALL.iter().map(|cause| (cause.word().to_owned(), cause.mend().into())).collect();
    let mut summary = view.summary.to_json(view.readings);
    if view.redact
        && let Some(sources) = summary["sources"].as_array_mut()
    {
        for source in sources {
            source["name"] = masked(source["name"].as_str().unwrap_or_default());
        }
    }
    let data = json!({
        "summary": summary, "conversations": conversations(view), "requests": requests, "mends": mends,
        "left_out": view.audit.requests.len().saturating_sub(REQUESTS_MAX),
        "run": run.map(|(title, parts)| json!({"title": title, "parts": parts})),
    });
    PAGE.replacen("@DATA@", &harmless(&data.to_string()), 1)
}

/// JSON that can stand inside a script element: nothing in it ends the element or begins a comment.
fn harmless(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str("\\u");
                let code = format!("{:04x}", c as u32);
                out.push_str(&code);
            }
            other => out.push(other),
        }
    }
    out
}

const PAGE: &str = include_str!("audit_page.html");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_log_can_leave_the_data_block() {
        let hostile = json!({"text": "</script><script>alert(1)</script><!-- & \u{2028}"}).to_string();
        let safe = harmless(&hostile);
        assert!(!safe.contains(['<', '>', '&']));
        assert_eq!(
            serde_json::from_str::<Value>(&safe).unwrap(),
            serde_json::from_str::<Value>(&hostile).unwrap()
        );
    }

    #[test]
    fn the_page_names_no_network() {
        for word in ["http://", "https://", "//cdn", "src=", "@import", "url("] {
            assert!(!PAGE.contains(word), "{word}");
        }
        assert!(PAGE.contains("@DATA@"));
    }
}
