//! How configured values are read, and who is there to answer.

use serde_json::Value;

use crate::policy::{self, GuardMode, Unattended};

/// Where a command comes from, as far as it matters for who can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// A person at the terminal.
    Interactive,
    /// A person in a chat who can answer.
    Chat,
    /// A chat in which nobody listens at the moment.
    ChatWithoutListener,
    /// One query without conversation.
    SingleQuery,
    /// A scheduled run.
    Cron,
    /// A platform without a person behind it: web hooks, the API server.
    Platform,
    /// A delegated child.
    Child,
    /// A review or the curator: a run of the harness's own, which may never do what would be asked about.
    Helper,
    /// Plain use as a library; there is nobody and no policy.
    Library,
}

impl Context {
    /// The context of a user's session on a platform (Hermes tools/approval.py:616).
    pub fn of_platform(platform: &str, knobs: &policy::Guard) -> Self {
        match platform {
            _ if knobs.single_query => Self::SingleQuery,
            "webhook" | "msgraph_webhook" | "api_server" => Self::Platform,
            "cli" | "tui" | "desktop" | "acp" => Self::Interactive,
            _ if knobs.chat_listens => Self::Chat,
            _ => Self::ChatWithoutListener,
        }
    }

    /// True when nobody is there and whoever set the run up decides beforehand.
    pub fn is_unattended(self) -> bool {
        matches!(self, Self::SingleQuery | Self::Cron | Self::Platform)
    }

    /// What an unattended context may do; `None` for the others.
    pub fn policy(self, knobs: &policy::Guard) -> Option<Unattended> {
        match self {
            Self::SingleQuery => Some(knobs.single_query_policy),
            Self::Cron => Some(knobs.cron_policy),
            Self::Platform => Some(knobs.platform_policy),
            Self::Child => Some(knobs.child_policy),
            Self::Helper => Some(Unattended::Deny),
            Self::Interactive | Self::Chat | Self::ChatWithoutListener | Self::Library => None,
        }
    }

    /// True when a person belongs to the context.
    pub fn has_person(self) -> bool {
        matches!(self, Self::Interactive | Self::Chat | Self::ChatWithoutListener)
    }
}

/// The mode that a configured value means (Hermes tools/approval_context.py:214).
///
/// ```
/// use hermes_lab::agent::guard::mode_of;
/// use hermes_lab::policy::GuardMode;
/// assert_eq!(mode_of(&" Smart ".into()), GuardMode::Smart);
/// assert_eq!(mode_of(&false.into()), GuardMode::Off);
/// assert_eq!(mode_of(&"yolo".into()), GuardMode::Manual);
/// ```
pub fn mode_of(value: &Value) -> GuardMode {
    match value {
        Value::Bool(false) => GuardMode::Off,
        Value::String(text) => match text.trim().to_lowercase().as_str() {
            "smart" => GuardMode::Smart,
            "off" => GuardMode::Off,
            _ => GuardMode::Manual,
        },
        _ => GuardMode::Manual,
    }
}

/// The unattended policy that a configured value means.
pub fn unattended_of(value: &Value) -> Unattended {
    let approves = value.as_str().is_some_and(|text| {
        matches!(text.trim().to_lowercase().as_str(), "approve" | "off" | "allow" | "yes")
    });
    if approves { Unattended::Approve } else { Unattended::Deny }
}

/// The breaker threshold that a configured value means; what is no number is the default.
pub fn threshold_of(value: &Value) -> i64 {
    let number = match value {
        Value::Number(number) => number.as_i64().or_else(|| number.as_f64().map(truncated)),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(flag) => Some(i64::from(*flag)),
        _ => None,
    };
    number.unwrap_or(policy::Guard::default().denial_breaker_threshold)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, which is what a huge threshold means"
)]
fn truncated(number: f64) -> i64 {
    number as i64
}

/// True when nothing of the host can be reached from the backend (Hermes tools/approval.py:1018).
pub fn is_isolated(backend: &str, reaches_host: bool, knobs: &policy::Guard) -> bool {
    let named = |list: &[String]| list.iter().any(|name| name == backend);
    named(&knobs.isolated_backends) || (named(&knobs.isolated_unless_mounted) && !reaches_host)
}
