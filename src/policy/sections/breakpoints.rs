//! Cache markers.

use super::knobs;

knobs! {
    /// Cache markers.
    Breakpoints, "breakpoints" {
    }
}
