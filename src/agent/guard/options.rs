//! What the options of programs look like: which take a value, which only ask, which run another program.
//!
//! Tables only; `words` and `payload` read commands with them.
//!
//! Never: a guess. An option that no table lists takes no value.

/// How one program's options are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spec {
    /// Program names, without directory.
    pub names: &'static [&'static str],
    /// Letters of short options that take a value.
    pub short: &'static str,
    /// Long options that take a value, with their dashes.
    pub long: &'static [&'static str],
    /// Options that make the program only answer a question.
    pub queries: &'static [&'static str],
    /// Operands before the program that a wrapper runs.
    pub positionals: usize,
    /// True when `NAME=value` words may stand between.
    pub assignments: bool,
}

impl Spec {
    /// True when the word after this option is its value.
    ///
    /// In a bundle of short options the first letter that takes a value takes the rest of the bundle, or, at the end,
    /// the next word.
    pub fn takes_next(&self, option: &str) -> bool {
        if let Some(bundle) = option.strip_prefix('-').filter(|bundle| !bundle.starts_with('-')) {
            if self.long.contains(&option) {
                return true;
            }
            return bundle.find(|ch| self.short.contains(ch)).is_some_and(|at| {
                at + bundle[at..].chars().next().map_or(1, char::len_utf8) == bundle.len()
            });
        }
        self.long.contains(&option)
    }

    /// True when the option makes the program only answer a question.
    pub fn asks(&self, option: &str) -> bool {
        let bundle = option.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or("");
        self.queries.iter().any(|query| {
            option == *query
                || option
                    .strip_prefix(query)
                    .is_some_and(|rest| query.starts_with("--") && rest.starts_with('='))
                || query.strip_prefix('-').is_some_and(|letter| {
                    letter.len() == 1 && self.letters_before_value(bundle).contains(letter)
                })
        })
    }

    /// The letters of a bundle that are options, not a value.
    fn letters_before_value<'a>(&self, bundle: &'a str) -> &'a str {
        bundle
            .find(|ch| self.short.contains(ch))
            .map_or(bundle, |at| &bundle[..at + bundle[at..].chars().next().map_or(1, char::len_utf8)])
    }
}

const WRAPPERS: [Spec; 14] = [
    Spec {
        names: &["sudo"],
        short: "ughpCTrtUDR",
        long: &[
            "--user",
            "--group",
            "--host",
            "--prompt",
            "--close-from",
            "--command-timeout",
            "--role",
            "--type",
            "--other-user",
            "--chdir",
            "--chroot",
        ],
        queries: &["-l", "--list", "-V", "--version", "-v", "--validate", "-K", "--help", "-e", "--edit"],
        positionals: 0,
        assignments: true,
    },
    Spec {
        names: &["env"],
        short: "uC",
        long: &["--unset", "--chdir"],
        queries: &["-S", "--split-string", "--version", "--help"],
        positionals: 0,
        assignments: true,
    },
    Spec { names: &["exec"], short: "a", long: &[], queries: &[], positionals: 0, assignments: false },
    Spec {
        names: &["nohup"],
        short: "",
        long: &[],
        queries: &["--version", "--help"],
        positionals: 0,
        assignments: false,
    },
    Spec {
        names: &["setsid"],
        short: "",
        long: &[],
        queries: &["-V", "-h"],
        positionals: 0,
        assignments: false,
    },
    Spec {
        names: &["time"],
        short: "of",
        long: &["--output", "--format"],
        queries: &["-V"],
        positionals: 0,
        assignments: false,
    },
    Spec {
        names: &["command"],
        short: "",
        long: &[],
        queries: &["-v", "-V"],
        positionals: 0,
        assignments: false,
    },
    Spec { names: &["builtin"], short: "", long: &[], queries: &[], positionals: 0, assignments: false },
    Spec {
        names: &["nice"],
        short: "n",
        long: &["--adjustment"],
        queries: &["--version", "--help"],
        positionals: 0,
        assignments: false,
    },
    Spec {
        names: &["timeout"],
        short: "sk",
        long: &["--signal", "--kill-after"],
        queries: &["--version", "--help"],
        positionals: 1,
        assignments: false,
    },
    Spec {
        names: &["stdbuf"],
        short: "ioe",
        long: &["--input", "--output", "--error"],
        queries: &["--version"],
        positionals: 0,
        assignments: false,
    },
    Spec {
        names: &["ionice"],
        short: "cnPu",
        long: &["--class", "--classdata"],
        queries: &["-p", "--pid", "-V", "-h"],
        positionals: 0,
        assignments: false,
    },
    Spec {
        names: &["chrt", "taskset"],
        short: "TPD",
        long: &["--sched-runtime", "--sched-period", "--sched-deadline"],
        queries: &["-p", "--pid", "-m", "--max", "-V", "-h"],
        positionals: 1,
        assignments: false,
    },
    Spec {
        names: &["chroot"],
        short: "",
        long: &["--userspec", "--groups"],
        queries: &["--version", "--help"],
        positionals: 1,
        assignments: false,
    },
];

/// Further programs that run another one; known to the hardened reading only.
pub const OTHER_WRAPPERS: [Spec; 3] = [
    Spec {
        names: &["xargs"],
        short: "ILEaPnsd",
        long: &["--replace", "--max-args", "--max-procs", "--arg-file", "--delimiter", "--max-chars"],
        queries: &["--version", "--help"],
        positionals: 0,
        assignments: false,
    },
    Spec { names: &["doas"], short: "uC", long: &[], queries: &["-L"], positionals: 0, assignments: false },
    Spec {
        names: &["busybox", "unshare", "systemd-run", "parallel", "fakeroot"],
        short: "",
        long: &[],
        queries: &[],
        positionals: 0,
        assignments: false,
    },
];

/// The wrapper of that name, which runs another program behind its options.
pub fn wrapper(name: &str) -> Option<&'static Spec> {
    WRAPPERS.iter().find(|spec| spec.names.contains(&name))
}

/// How `grep` and its kin read their options.
pub const GREP: Spec = Spec {
    names: &["grep", "egrep", "fgrep"],
    short: "efmABCdD",
    long: &[
        "--regexp",
        "--file",
        "--max-count",
        "--after-context",
        "--before-context",
        "--context",
        "--directories",
        "--devices",
        "--label",
        "--include",
        "--exclude",
        "--exclude-from",
        "--exclude-dir",
        "--binary-files",
    ],
    queries: &[],
    positionals: 0,
    assignments: false,
};

/// A program that runs code or another program named by one of its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner {
    /// How its options are read.
    pub spec: Spec,
    /// Options that run something, with their dashes; one letter also inside a bundle.
    pub runs: &'static [&'static str],
    /// Letters behind which the words belong to a module or script.
    pub ends: &'static str,
    /// What it is.
    pub class: Class,
}

/// What a program-running option carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Source text in the interpreter's own language; operands end the options.
    Interpreter,
    /// Operands end the options, but a sub-command may be the running option.
    Subcommand,
    /// Options as words with one dash, any case, abbreviated.
    PowerShell,
    /// A reading tool whose helper program is named; options may stand anywhere.
    ReadTool,
}

const NO_SPEC: Spec =
    Spec { names: &[], short: "", long: &[], queries: &[], positionals: 0, assignments: false };

const RUNNERS: [Runner; 12] = [
    Runner {
        spec: Spec { names: &["python", "py"], short: "WXm", long: &["--check-hash-based-pycs"], ..NO_SPEC },
        runs: &["-c"],
        ends: "m",
        class: Class::Interpreter,
    },
    Runner {
        spec: Spec {
            names: &["node", "nodejs"],
            short: "rC",
            long: &[
                "--require",
                "--import",
                "--loader",
                "--experimental-loader",
                "--conditions",
                "--input-type",
                "--env-file",
            ],
            ..NO_SPEC
        },
        runs: &["-e", "--eval", "-p", "--print"],
        ends: "",
        class: Class::Interpreter,
    },
    Runner {
        spec: Spec { names: &["perl"], short: "IMmxiFCDdV", long: &[], ..NO_SPEC },
        runs: &["-e"],
        ends: "",
        class: Class::Interpreter,
    },
    Runner {
        spec: Spec {
            names: &["ruby"],
            short: "rICEFKxiT",
            long: &["--encoding", "--external-encoding"],
            ..NO_SPEC
        },
        runs: &["-e"],
        ends: "",
        class: Class::Interpreter,
    },
    Runner {
        spec: Spec { names: &["php"], short: "cdfBRFEtSz", long: &[], ..NO_SPEC },
        runs: &["-r"],
        ends: "f",
        class: Class::Interpreter,
    },
    Runner {
        spec: Spec {
            names: &["powershell", "pwsh"],
            short: "",
            long: &[
                "-executionpolicy",
                "-ep",
                "-ex",
                "-exec",
                "-version",
                "-psconsolefile",
                "-outputformat",
                "-inputformat",
                "-windowstyle",
                "-w",
                "-workingdirectory",
                "-wd",
                "-configurationname",
                "-configurationfile",
                "-settingsfile",
                "-custompipename",
            ],
            ..NO_SPEC
        },
        runs: &["-command", "-file"],
        ends: "",
        class: Class::PowerShell,
    },
    Runner {
        spec: Spec {
            names: &["bun"],
            short: "rc",
            long: &["--preload", "--config", "--cwd", "--env-file"],
            ..NO_SPEC
        },
        runs: &["-e", "--eval"],
        ends: "",
        class: Class::Interpreter,
    },
    Runner {
        spec: Spec { names: &["deno"], short: "LcC", long: &["--log-level", "--config"], ..NO_SPEC },
        runs: &["eval", "-e"],
        ends: "",
        class: Class::Subcommand,
    },
    Runner {
        spec: Spec {
            names: &["sort"],
            short: "koStT",
            long: &[
                "--key",
                "--output",
                "--buffer-size",
                "--field-separator",
                "--temporary-directory",
                "--sort",
                "--files0-from",
                "--batch-size",
                "--parallel",
                "--random-source",
            ],
            ..NO_SPEC
        },
        runs: &["--compress-program"],
        ends: "",
        class: Class::ReadTool,
    },
    Runner {
        spec: Spec {
            names: &["rg"],
            short: "efgtTABCmjMdEr",
            long: &[
                "--regexp",
                "--file",
                "--glob",
                "--iglob",
                "--type",
                "--type-not",
                "--type-add",
                "--type-clear",
                "--after-context",
                "--before-context",
                "--context",
                "--max-count",
                "--threads",
                "--max-columns",
                "--max-depth",
                "--max-filesize",
                "--encoding",
                "--replace",
                "--color",
                "--colors",
                "--engine",
                "--sort",
                "--sortr",
                "--pre-glob",
                "--ignore-file",
                "--path-separator",
                "--context-separator",
                "--field-context-separator",
                "--field-match-separator",
                "--dfa-size-limit",
                "--regex-size-limit",
                "--generate",
                "--hyperlink-format",
            ],
            ..NO_SPEC
        },
        runs: &["--pre", "--hostname-bin"],
        ends: "",
        class: Class::ReadTool,
    },
    Runner {
        spec: Spec {
            names: &["ag"],
            short: "ABCGgmpW",
            long: &[
                "--after",
                "--before",
                "--context",
                "--depth",
                "--file-search-regex",
                "--ignore",
                "--ignore-dir",
                "--max-count",
                "--path-to-ignore",
                "--width",
                "--workers",
            ],
            ..NO_SPEC
        },
        runs: &["--pager"],
        ends: "",
        class: Class::ReadTool,
    },
    Runner {
        spec: Spec {
            names: &["man"],
            short: "CRLmMSserEp",
            long: &[
                "--config-file",
                "--locale",
                "--systems",
                "--manpath",
                "--sections",
                "--extension",
                "--prompt",
                "--encoding",
                "--preprocessor",
                "--recode",
            ],
            ..NO_SPEC
        },
        runs: &["--pager", "--html", "-P", "-H"],
        ends: "",
        class: Class::ReadTool,
    },
];

/// The runner of that name; version suffixes of Python count (`python3.11`).
pub fn runner(name: &str) -> Option<&'static Runner> {
    let plain = name.to_lowercase();
    let plain = match plain.strip_prefix("python") {
        Some(version) if version.chars().all(|ch| ch.is_ascii_digit() || ch == '.') => "python",
        _ => plain.as_str(),
    };
    RUNNERS.iter().find(|runner| runner.spec.names.contains(&plain))
}

/// Shells whose `-c` takes a command.
pub const SHELLS: [&str; 5] = ["bash", "sh", "zsh", "ksh", "dash"];

/// Letters that a shell's option bundle may hold.
pub const SHELL_LETTERS: &str = "abcefhiklmnprstuvxBCDEHPTloO";

/// How shells read their options.
pub const SHELL: Spec = Spec {
    names: &SHELLS,
    short: "oO",
    long: &["--rcfile", "--init-file"],
    queries: &["--version", "--help"],
    positionals: 0,
    assignments: false,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_takes_the_next_word_only_when_its_value_letter_is_last() {
        let sudo = wrapper("sudo").unwrap();
        assert!(sudo.takes_next("-nu") && !sudo.takes_next("-uada") && sudo.takes_next("--user"));
    }

    #[test]
    fn python_is_known_with_any_version() {
        assert!(runner("python3.12").is_some() && runner("py").is_some() && runner("pythonx").is_none());
    }
}
