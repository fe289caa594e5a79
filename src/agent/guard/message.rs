//! What the model reads about a decision.
//!
//! Every refusal says that the same end must not be sought another way: a model that rephrases a refused command
//! defeats the point of asking.

use super::decide::Kind;

const NO_WAY_ROUND: &str =
    "Do not retry it, do not rephrase it, and do not try to reach the same result in another way.";

/// The text for the model; `what` is the rule or list entry that decided.
pub(super) fn text(kind: Kind, what: &str, breaker: bool) -> String {
    let mut text = match kind {
        Kind::Passed => return String::new(),
        Kind::UserApproved => return format!("The user approved this command ({what})."),
        Kind::SmartApproved => return format!("The reviewer approved this command ({what})."),
        Kind::Pending => {
            return format!(
                "The command ({what}) waits for the user's approval. Wait for the answer; do not send it again."
            );
        }
        Kind::Hardline => {
            format!("Refused: this command ({what}) is never run, whatever the settings. {NO_WAY_ROUND}")
        }
        Kind::SudoStdin => {
            format!(
                "Refused: sudo would read a password from its input, and none is configured. {NO_WAY_ROUND}"
            )
        }
        Kind::DenyRule => format!("Refused by the user's own rule `{what}`. {NO_WAY_ROUND}"),
        Kind::Denied => format!("Refused: {what}. {NO_WAY_ROUND}"),
        Kind::Withdrawn => {
            format!(
                "The question about this command ({what}) was withdrawn before an answer. It did not run."
            )
        }
        Kind::Timeout => {
            format!(
                "Refused: nobody answered about {what} in time, and silence is no consent. {NO_WAY_ROUND}"
            )
        }
        Kind::UnattendedDenied => {
            format!("Refused: nobody is present who could approve {what}. {NO_WAY_ROUND}")
        }
    };
    if breaker {
        text.push_str(
            " Several commands in a row were refused. Stop calling tools, say what you wanted to do and why, and let the user decide.",
        );
    }
    text
}
