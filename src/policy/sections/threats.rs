//! The literal scanner.

use super::{choice, knobs};

choice! {
    /// Which pattern table is used.
    ThreatRevision {
        /// The pinned and the current one.
        Current = "current",
        /// That of release 0.19: looser exfiltration, bare mentions of the key folder.
        Older = "older",
    }
}

knobs! {
    /// The literal scanner: phrases and invisible characters, nothing understood.
    Threats, "threats" {
        /// Pattern table.
        patterns: ThreatRevision = ThreatRevision::Current, "table", "Hermes tools/threat_patterns.py:25-105", "L3";
        /// Part of a text that is looked at.
        scanned_chars_max: u64 = 65_536, [1, 100_000_000], "characters", "Hermes tools/threat_patterns.py:131", "L3";
        /// Memory content is scanned before it is written and when it is loaded.
        scan_memory: bool = true, "switch", "Hermes tools/memory_tool_store.py:369", "L3";
        /// Closes known misses (hidden and look-alike characters, other spellings of the home directory) and lifts
        /// known false alarms (joined emoji, Persian spelling, ordinary words).
        hardened: bool = false, "switch", "lab: not in Hermes", "L3";
    }
}
