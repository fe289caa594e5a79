//! Scheduled runs.

use super::knobs;

knobs! {
    /// Scheduled runs.
    Cron, "cron" {
    }
}
