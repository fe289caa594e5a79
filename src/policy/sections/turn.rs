//! One user turn.

use super::knobs;

knobs! {
    /// One user turn.
    Turn, "turn" {
    }
}
