//! Command approval.

use super::knobs;

knobs! {
    /// Command approval.
    Guard, "guard" {
    }
}
