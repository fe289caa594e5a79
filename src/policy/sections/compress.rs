//! Context compression.

use super::knobs;

knobs! {
    /// Context compression.
    Compress, "compress" {
    }
}
