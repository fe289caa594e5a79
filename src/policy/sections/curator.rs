//! Ageing and archiving of skills.

use super::knobs;

knobs! {
    /// Ageing and archiving of skills.
    Curator, "curator" {
    }
}
