//! Skills and who wrote them.

use super::knobs;

knobs! {
    /// Skills and who wrote them.
    Skills, "skills" {
    }
}
