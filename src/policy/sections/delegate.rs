//! Child agents.

use super::knobs;

knobs! {
    /// Child agents.
    Delegate, "delegate" {
    }
}
