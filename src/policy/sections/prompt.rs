//! The system prompt.

use super::knobs;

knobs! {
    /// The system prompt.
    Prompt, "prompt" {
    }
}
