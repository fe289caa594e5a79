//! Diagnostics for people: where, what was found, what was expected, the nearest valid name.
//!
//! Any room may make one; only the command line prints them.

use std::fmt;

/// One fault in an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// File as the user named it.
    pub file: String,
    /// Line, from 1; 0 when the whole file is meant.
    pub line: usize,
    /// Column in characters, from 1; 0 when the whole line is meant.
    pub column: usize,
    /// What is wrong, lower case, without full stop.
    pub message: String,
    /// What would mend it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A fault of a whole file.
    pub fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: 0, column: 0, message: message.into(), help: None }
    }

    /// A fault in one line.
    pub fn at_line(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { line, ..Self::of_file(file, message) }
    }

    /// A fault at a byte of the text.
    pub fn at_byte(file: &str, text: &str, byte: usize, message: impl Into<String>) -> Self {
        let before = &text.as_bytes()[..byte.min(text.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
        Self { line, column, ..Self::of_file(file, message) }
    }

    /// The same with a hint.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if self.column > 0 {
            write!(f, ":{}", self.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// The candidate closest to `name`, if one is close enough to be what was meant.
///
/// ```
/// use hermes_lab::diag::nearest;
/// assert_eq!(nearest("serch", ["search", "store"]), Some("search"));
/// assert_eq!(nearest("zzz", ["search", "store"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let best = candidates
        .into_iter()
        .map(|candidate| (similar::TextDiff::from_chars(name, candidate).ratio(), candidate))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 >= 0.6).then_some(best.1)
}

/// What follows an unknown name in a message: the one that was probably meant, or nothing.
///
/// ```
/// use hermes_lab::diag::did_you_mean;
/// assert_eq!(did_you_mean("serch", ["search", "store"]), ", did you mean `search`?");
/// assert_eq!(did_you_mean("zzz", ["search", "store"]), "");
/// ```
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |near| format!(", did you mean `{near}`?"))
}
