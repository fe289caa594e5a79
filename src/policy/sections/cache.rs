//! The provider's prefix cache.

use super::knobs;

knobs! {
    /// The provider's prefix cache.
    Cache, "cache" {
    }
}
