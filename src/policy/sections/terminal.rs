//! The terminal and the files beside it.

use super::knobs;

knobs! {
    /// The terminal: what it can reach, how long it waits.
    Terminal, "terminal" {
        /// Tools reach the workspace alone, as in an isolated backend; off, they read what lies elsewhere on the machine.
        confined: bool = true, "switch", "Hermes tools/approval.py:1018-1033 (isolated backends)", "L5";
        /// Seconds after which a command that gives no answer is cut off; none waits for a day.
        timeout_seconds: Option<u64> = Some(180), [1, 86_400], "seconds", "Hermes tools/terminal_tool.py", "L5";
    }
}
