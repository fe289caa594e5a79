//! Sizes beyond which a command is not examined but refused.
//!
//! The guard's own work is bounded by these, so that no command can buy time by its length.

use crate::policy;

/// True when a command is too long to examine (Hermes tools/approval_detection.py:702).
pub fn exceeded(command: &str, knobs: &policy::Guard) -> bool {
    let mut chars = 0u64;
    let mut separators = 0u64;
    for ch in command.chars() {
        chars += 1;
        separators += u64::from(matches!(ch, ';' | '&' | '|' | '\n'));
    }
    chars > knobs.chars_max
        || (separators == 0 && chars > knobs.unseparated_chars_max)
        || separators >= knobs.separators_max
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_holds_to_the_last_character() {
        let knobs = policy::Guard::default();
        assert!(!exceeded(&"技".repeat(4_096), &knobs) && exceeded(&"技".repeat(4_097), &knobs));
        assert!(!exceeded(&"|".repeat(24_999), &knobs) && exceeded(&"|".repeat(25_000), &knobs));
        let long = |times| format!("{};", "x".repeat(times));
        assert!(!exceeded(&long(127_999), &knobs) && exceeded(&long(128_000), &knobs));
    }
}
