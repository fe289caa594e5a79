//! Session store.

use super::knobs;

knobs! {
    /// Session store.
    Store, "store" {
    }
}
