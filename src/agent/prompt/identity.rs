//! The lines of a prompt that say for which runtime it was built, and the block about the machine behind them.
//!
//! Lines are read from the trailer alone, so that a look-alike in memory or in a context file does not count
//! (Hermes agent/surface_switch.py:31).

/// Label of the session line.
pub const SESSION: &str = "Session ID";
/// Label of the model line.
pub const MODEL: &str = "Model";
/// Label of the provider line.
pub const PROVIDER: &str = "Provider";
/// Label of the platform line.
pub const PLATFORM: &str = "Platform";
/// Label of the working directory in the environment block.
pub const DIRECTORY: &str = "Working directory";

/// First line of the environment block.
const ENVIRONMENT: &str = "# Runtime environment";
/// Last line of the environment block.
const ENVIRONMENT_END: &str = "[end of runtime environment]";

/// Where the agent runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    /// Host.
    pub host: String,
    /// Home directory.
    pub home: String,
    /// Working directory.
    pub directory: String,
}

impl Environment {
    /// The block as it stands in the prompt; empty lines are left out.
    pub fn text(&self) -> String {
        let mut lines = vec![ENVIRONMENT.to_owned()];
        for (label, value) in [("Host", &self.host), ("Home", &self.home), (DIRECTORY, &self.directory)] {
            if !value.is_empty() {
                lines.push(format!("{label}: {value}"));
            }
        }
        lines.push(ENVIRONMENT_END.to_owned());
        lines.join("\n")
    }
}

/// The runtime that a prompt is for. Empty values are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Runtime {
    /// Model.
    pub model: String,
    /// Provider.
    pub provider: String,
    /// Session; only compared when the prompt names it.
    pub session: String,
    /// Working directory.
    pub directory: String,
}

/// What stands before the environment block, and the block; the block is empty when the prompt does not end with one.
fn cut_environment(prompt: &str) -> (&str, &str) {
    let trimmed = prompt.trim_end();
    if !trimmed.ends_with(ENVIRONMENT_END) {
        return (trimmed, "");
    }
    match trimmed.rfind(ENVIRONMENT) {
        Some(at) => (trimmed[..at].trim_end(), &trimmed[at..]),
        None => (trimmed, ""),
    }
}

fn last_value<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines()
        .rev()
        .find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))
        .map(str::trim)
        .filter(|value| !value.is_empty())
}

/// The last paragraph before the environment block.
fn trailer(prompt: &str) -> &str {
    let (before, _) = cut_environment(prompt);
    before.rsplit("\n\n").next().unwrap_or("")
}

/// A value of the trailer; `None` when it is absent or empty.
pub fn trailer_value<'a>(prompt: &'a str, label: &str) -> Option<&'a str> {
    last_value(trailer(prompt), label)
}

/// Why a stored prompt cannot be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mismatch {
    /// Another model.
    Model,
    /// Another provider.
    Provider,
    /// Another session.
    Session,
    /// Another working directory.
    Directory,
}

/// Whether a stored prompt fits the runtime; absent lines fit (Hermes agent/conversation_loop.py:911).
///
/// `names_session` says that prompts name their session.
pub fn mismatch(prompt: &str, runtime: &Runtime, names_session: bool) -> Option<Mismatch> {
    let differs = |stored: Option<&str>, now: &str| stored.is_some_and(|stored| stored != now.trim());
    if differs(trailer_value(prompt, MODEL), &runtime.model) {
        return Some(Mismatch::Model);
    }
    if differs(trailer_value(prompt, PROVIDER), &runtime.provider) {
        return Some(Mismatch::Provider);
    }
    if names_session && differs(trailer_value(prompt, SESSION), &runtime.session) {
        return Some(Mismatch::Session);
    }
    let (_, environment) = cut_environment(prompt);
    differs(last_value(environment, DIRECTORY), &runtime.directory).then_some(Mismatch::Directory)
}

/// Rewrites the last model line and the last provider line, for an automatic fail-over
/// (Hermes agent/chat_completion_helpers.py:1746). Empty values change nothing.
pub fn rewrite(prompt: &str, model: &str, provider: &str) -> String {
    let mut lines: Vec<String> = prompt.split('\n').map(str::to_owned).collect();
    for (label, value) in [(MODEL, model), (PROVIDER, provider)] {
        let start = format!("{label}: ");
        if value.is_empty() {
            continue;
        }
        if let Some(line) = lines.iter_mut().rev().find(|line| line.starts_with(&start)) {
            *line = format!("{start}{value}");
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_read_from_the_block_at_the_end_alone() {
        let environment = Environment { directory: "/w".to_owned(), ..Environment::default() };
        let prompt = format!("x\n\nWorking directory: /no\n\nModel: m\n\n{}", environment.text());
        let runtime = Runtime { model: "m".to_owned(), directory: "/w".to_owned(), ..Runtime::default() };
        assert_eq!(mismatch(&prompt, &runtime, false), None);
        let moved = Runtime { directory: "/v".to_owned(), ..runtime };
        assert_eq!(mismatch(&prompt, &moved, false), Some(Mismatch::Directory));
    }
}
