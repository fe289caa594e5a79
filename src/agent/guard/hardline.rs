//! The floor: what no mode, approval or flag lets through.
//!
//! Twelve patterns over the variants, most of them only at a command position. Which spellings slip past is part of
//! the observed behaviour and is mended only in the hardened reading.

use std::sync::LazyLock;

use regex::Regex;

use super::scan::mask_prose;
use crate::agent::sieve::{Pattern, Sieved};

/// Programs that run text which they are given in quotes.
const CARRIERS: [&str; 8] = ["eval", "sh", "bash", "zsh", "ksh", "dash", "source", "."];

const POSITION: &str = r"(?:^|[\n`]|\$\()\s*(?:sudo\s+(?:-\S+\s+)*)?(?:env\s+(?:\w+=\S*\s+)*)?(?:(?:exec|nohup|setsid|time)\s+)*";
const DEVICE: &str = "/dev/(?:sd|nvme|hd|mmcblk|vd|xvd)[a-z0-9]*";

struct Entry {
    id: &'static str,
    pattern: Pattern,
    /// Searched with quoted text blanked.
    masked: bool,
}

static FLOOR: LazyLock<Sieved<Entry>> = LazyLock::new(|| floor(r"\b"));

/// The same for readings that hold whole words: `reboot-check` is another word than `reboot`.
static WORDS: LazyLock<Sieved<Entry>> = LazyLock::new(|| floor(r"(?:\s|$)"));

fn floor(end_of_word: &str) -> Sieved<Entry> {
    Sieved::of(entries(end_of_word), |entry: &Entry| vec![entry.pattern.source()])
}

fn entries(end_of_word: &str) -> Vec<Entry> {
    let remove = |path: &str| {
        let end = r"(?:\s|$|[);|&`])";
        format!(r#"{POSITION}rm\s+(?:-\S*\s+)*(?:{path}{end}|["']{path}["'])"#)
    };
    let here = |program: &str| format!("{POSITION}{program}");
    let entries = [
        ("rm_root", remove(r"/(?:\.{0,2}/)*\.{0,2}\**"), false),
        ("rm_system_dir", remove(r"/(?:home|root|etc|usr|var|bin|sbin|boot|lib)(?:/\*)?"), false),
        ("rm_home", remove(r"(?:~|\$HOME|\$\{HOME\})(?:/\*?)?"), false),
        ("mkfs", here(&format!(r"mkfs(?:\.[a-z0-9]+)?{end_of_word}")), false),
        ("dd_block_device", here(&format!(r"dd\b[^\n]*\bof={DEVICE}")), false),
        ("redirect_block_device", format!(r">\s*{DEVICE}{end_of_word}"), true),
        ("fork_bomb", r":\(\)\s*\{\s*:\s*\|\s*:\s*&\s*\}\s*;\s*:".to_owned(), true),
        ("kill_all", here(&format!(r"kill\s+(?:-\S+\s+)*-1{end_of_word}")), false),
        ("shutdown", here(&format!("(?:shutdown|reboot|halt|poweroff){end_of_word}")), false),
        ("init_runlevel", here(&format!(r"init\s+[06]{end_of_word}")), false),
        ("telinit_runlevel", here(&format!(r"telinit\s+[06]{end_of_word}")), false),
        (
            "systemctl_power",
            here(&format!(r"systemctl\s+(?:poweroff|reboot|halt|kexec){end_of_word}")),
            false,
        ),
    ];
    entries
        .into_iter()
        .map(|(id, pattern, masked)| Entry { id, pattern: Pattern::new(pattern, false), masked })
        .collect()
}

/// The entries of the floor, in their order.
pub fn ids() -> impl Iterator<Item = &'static str> {
    FLOOR.items().iter().map(|entry| entry.id)
}

/// The first entry that a variant matches, variants first (Hermes tools/approval_floors.py).
pub fn find(variants: &[String], programs: &[String]) -> Option<&'static str> {
    let carried = programs.iter().any(|program| CARRIERS.contains(&program.as_str()));
    variants.iter().find_map(|variant| {
        let masked = if carried { variant.clone() } else { mask_prose(variant) };
        // Masking only blanks, so what the masked text needs stands in the variant as well.
        FLOOR
            .candidates(variant.as_bytes())
            .find(|entry| entry.pattern.is_match(if entry.masked { &masked } else { variant }))
            .map(|entry| entry.id)
    })
}

/// The first entry that a line of the hardened reading hits; `masked` is searched for what is a matter of text.
pub(super) fn find_in_words(lines: &[String], masked: &[String]) -> Option<&'static str> {
    let in_lines = lines
        .iter()
        .find_map(|line| WORDS.candidates(line.as_bytes()).find(|entry| entry.pattern.is_match(line)));
    let in_text = || {
        masked.iter().find_map(|text| {
            FLOOR
                .candidates(text.as_bytes())
                .find(|entry| entry.id == "fork_bomb" && entry.pattern.is_match(text))
        })
    };
    in_lines.or_else(in_text).map(|entry| entry.id)
}

/// True when `sudo` is told to read the password from its input (Hermes tools/approval_floors.py).
///
/// Only the flag as a token of its own right behind `sudo` is seen, in any case.
pub fn sudo_reads_stdin(normalized: &str) -> bool {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)(?:^|[\n;&|`]|\$\()\s*sudo\s+-s(?:\s|$|[;|&)`])")
            .expect("the pattern is written correctly")
    });
    PATTERN.is_match(normalized)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(command: &str) -> Option<&'static str> {
        find(&[command.to_owned()], &[])
    }

    #[test]
    fn only_bare_system_directories_are_on_the_floor() {
        assert_eq!(first("rm -rf /usr"), Some("rm_system_dir"));
        assert_eq!(first("rm -rf /usr/local"), None);
        assert_eq!(first("rm -rf /../."), Some("rm_root"));
        assert_eq!(first("rm -rf /..."), None);
    }

    #[test]
    fn every_entry_compiles_in_both_readings() {
        for entry in FLOOR.items().iter().chain(WORDS.items()) {
            assert!(!entry.pattern.whole().is_match(""), "{}", entry.id);
        }
    }

    #[test]
    fn the_floor_has_twelve_entries() {
        assert_eq!(ids().count(), 12);
    }

    #[test]
    fn a_combined_sudo_flag_is_not_seen() {
        assert!(sudo_reads_stdin("x && sudo  -S id"));
        assert!(!sudo_reads_stdin("sudo -nS id") && !sudo_reads_stdin("sudo -n -S id"));
    }
}
