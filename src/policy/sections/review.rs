//! Background review.

use super::knobs;

knobs! {
    /// Background review.
    Review, "review" {
    }
}
