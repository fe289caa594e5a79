//! The literal scanner.

use super::knobs;

knobs! {
    /// The literal scanner.
    Threats, "threats" {
    }
}
