//! Session search.

use super::knobs;

knobs! {
    /// Session search.
    Search, "search" {
    }
}
