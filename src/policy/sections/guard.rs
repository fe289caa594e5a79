//! Command approval.

use super::{choice, knobs};

choice! {
    /// Who decides about a dangerous command.
    GuardMode {
        /// A human is asked.
        Manual = "manual",
        /// A reviewing model is asked first.
        Smart = "smart",
        /// Nobody is asked.
        Off = "off",
    }
}

choice! {
    /// What happens to a dangerous command when nobody can be asked.
    Unattended {
        /// It is refused.
        Deny = "deny",
        /// It passes.
        Approve = "approve",
    }
}

choice! {
    /// What the user answers when asked about a command.
    UserAnswer {
        /// This time.
        Once = "once",
        /// For the session.
        Session = "session",
        /// From now on.
        Always = "always",
        /// No.
        Deny = "deny",
        /// Nothing, until the question lapses.
        Timeout = "timeout",
    }
}

knobs! {
    /// Command approval: the floor, the dangerous rules, reviewer, human, lists.
    Guard, "guard" {
        /// Who decides about a dangerous command. A missing key in the agent's configuration reads as manual; its
        /// template sets smart.
        mode: GuardMode = GuardMode::Manual, "choice", "Hermes tools/approval_context.py:214", "L5";
        /// What scheduled runs may do unasked.
        cron_policy: Unattended = Unattended::Deny, "choice", "Hermes tools/approval.py:616", "L5";
        /// What a single query without conversation may do unasked.
        single_query_policy: Unattended = Unattended::Deny, "choice", "Hermes tools/approval.py:616", "L5";
        /// What platforms without a person, such as web hooks, may do unasked.
        platform_policy: Unattended = Unattended::Deny, "choice", "Hermes tools/approval.py:616", "L5";
        /// What delegated children may do unasked.
        child_policy: Unattended = Unattended::Deny, "choice", "Hermes tools/delegate_tool_config.py:17", "L5";
        /// The run answers one query, and nobody waits for a question.
        single_query: bool = false, "switch", "Hermes tools/approval.py:616", "L5";
        /// Somebody reads the chat and can answer; otherwise a question stays open.
        chat_listens: bool = true, "switch", "Hermes tools/approval.py:616", "L5";
        /// Every command passes except for floor, password guard and deny rules.
        yolo: bool = false, "switch", "Hermes tools/approval.py:1128", "L5";
        /// Globs of commands that are always refused.
        deny: Vec<String> = Vec::new(), "globs", "Hermes approvals.deny", "L5";
        /// Rule names, commands and globs that are permanently approved.
        allowlist: Vec<String> = Vec::new(), "entries", "Hermes tools/approval_floors.py:144", "L5";
        /// Deny rules hold in isolated backends as well, as in the current revision; the pinned one skips them there.
        deny_in_isolation: bool = false, "switch", "Hermes tools/approval.py:1018", "L5";
        /// Backends that need no guard because nothing of the host can be reached.
        isolated_backends: Vec<String> = ["singularity", "modal", "daytona", "vercel_sandbox"].map(str::to_owned).to_vec(), "names", "Hermes tools/approval.py:1018", "L5";
        /// Backends that are isolated unless they reach the host's files.
        isolated_unless_mounted: Vec<String> = vec!["docker".to_owned()], "names", "Hermes tools/approval.py:1018", "L5";
        /// The floor that no mode, approval or flag lifts.
        hardline: bool = true, "switch", "Hermes tools/approval_floors.py", "L5";
        /// A password for sudo is configured, so that it may be read from the input.
        sudo_password_configured: bool = false, "switch", "Hermes tools/approval_floors.py", "L5";
        /// Paths of the running program's interpreter and environment, whose deletion is refused.
        own_environment: Vec<String> = Vec::new(), "paths", "Hermes tools/approval.py:1128", "L5";
        /// Seconds that a human has to answer; silence is no consent.
        human_timeout_seconds: u64 = 300, [0, 86_400], "seconds", "Hermes tools/approval_context.py:214", "L5";
        /// Reviewer refusals in a row after which a stop instruction is added; 0 or less switches it off.
        denial_breaker_threshold: i64 = 3, [-1_000, 1_000_000], "denials", "Hermes tools/approval_smart.py", "L5";
        /// Sessions whose refusals are counted at once.
        tallied_sessions_max: u64 = 256, [1, 1_000_000], "sessions", "Hermes tools/approval_smart.py", "L2";
        /// Tokens of the reviewer's answer.
        reviewer_tokens_max: u64 = 16, [1, 100_000], "tokens", "Hermes tools/approval_smart.py", "-";
        /// Sampling temperature of the reviewer.
        reviewer_temperature: f64 = 0.0, [0.0, 2.0], "temperature", "Hermes tools/approval_smart.py", "-";
        /// Longest command that is examined.
        chars_max: u64 = 128_000, [1, 100_000_000], "characters", "Hermes tools/approval_detection.py:702", "L5";
        /// Longest command without any separator that is examined.
        unseparated_chars_max: u64 = 4_096, [1, 100_000_000], "characters", "Hermes tools/approval_detection.py:702", "L5";
        /// Separators from which on a command is not examined.
        separators_max: u64 = 25_000, [1, 100_000_000], "separators", "Hermes tools/approval_detection.py:702", "L5";
        /// Characters of all readings of one command together; what needs more is refused like an overlong command.
        derived_chars_max: u64 = 2_000_000, [1, 1_000_000_000], "characters", "lab: bounds the guard's own work", "L5";
        /// Texts that shells and other programs inside one command would run; more are refused like an overlong command.
        payloads_max: u64 = 256, [0, 1_000_000], "texts", "lab: bounds the guard's own work", "L5";
        /// Commands are judged at all.
        enabled: bool = true, "switch", "Hermes tools/approval.py:1128", "L5";
        /// What the user answers when asked.
        user_answer: UserAnswer = UserAnswer::Once, "choice", "hermes-lab", "-";
        /// Where commands run: local, docker, ssh, modal, …
        backend: String = "local".to_owned(), "name", "Hermes tools/approval.py:1018", "L5";
        /// Reads commands by structure: closes the known gaps and lifts the known overreach.
        hardened: bool = false, "switch", "lab: the gaps and overreach that the vectors' notes name", "L5";
    }
}
