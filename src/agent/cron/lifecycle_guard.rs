//! Commands that stop or restart the agent's own gateway, in text that will run later or unattended.
//!
//! A scheduled run that restarts the program which runs it would never end. Command shapes are refused, also when
//! quotes are spliced into the words; prose about restarting is fine.
//!
//! Called when a job is created or edited, and by the command guard.

use std::sync::LazyLock;

use crate::agent::sieve::{Pattern, Sieved};

static SHAPES: LazyLock<Sieved<Pattern>> = LazyLock::new(|| {
    let end = r#"(?:\s|$|[;&|)"'`<>])"#;
    let options = r"(?:-\S+(?:\s+[^\s\-]\S*)?\s+)*";
    Sieved::patterns([
        format!(r"\bhermes\s+{options}gateway\s+{options}(?:restart|stop|kill){end}"),
        r"\bsystemctl\b[^;|&\n]*\s(?:restart|stop|kill|disable|mask|try-restart|reload-or-restart)\s[^;|&\n]*\bhermes".to_owned(),
        r"\bservice\s+hermes\S*\s+(?:restart|stop)\b".to_owned(),
        r"\blaunchctl\s+(?:-\S+\s+)*(?:kickstart|stop|bootout|unload|kill|disable|remove|restart)\b[^;|&\n]*hermes".to_owned(),
        r"\b(?:pkill|killall)\b[^;|&\n]*\b(?:hermes|gateway|python)".to_owned(),
        r"\btaskkill\b[^;|&\n]*\b(?:hermes|gateway|python)".to_owned(),
        r"\bkill\b[^;|\n]*(?:\$\(|`)\s*(?:pgrep|pidof)\b[^;|&\n]*\b(?:hermes|gateway|python)".to_owned(),
    ])
});

/// True when the text holds a command that would stop or restart the agent's gateway.
///
/// ```
/// use hermes_lab::agent::cron::lifecycle_guard::blocks;
/// assert!(blocks("her\"mes\" gateway restart"));
/// assert!(!blocks("report whether the gateway restarted"));
/// ```
pub fn blocks(text: &str) -> bool {
    SHAPES.is_match(text) || SHAPES.is_match(&spliced(text))
}

/// The text with quotes and backslashes taken out, as a shell would join the pieces of a word.
fn spliced(text: &str) -> String {
    text.chars().filter(|ch| !matches!(ch, '"' | '\'' | '\\')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_refused_in_any_case_and_its_near_miss_is_not() {
        for (command, near_miss) in [
            ("hermes gateway restart", "hermes gateway status"),
            ("systemctl --user stop hermes-gateway", "systemctl --user status hermes-gateway"),
            ("service hermes restart", "service hermes status"),
            ("launchctl kickstart -k gui/501/ai.hermes", "launchctl list ai.hermes"),
            ("pkill -f gateway", "pgrep -f gateway"),
            ("taskkill /IM python.exe", "tasklist /IM python.exe"),
            ("kill -9 $(pgrep -f hermes)", "kill -9 $(pgrep -f nginx)"),
        ] {
            assert!(blocks(command) && blocks(&command.to_uppercase()), "{command}");
            assert!(!blocks(near_miss), "{near_miss}");
        }
        assert!(blocks("pkill hermes # und tschüß"));
    }
}
