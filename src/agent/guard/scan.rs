//! The shell scanner: which bytes are quoted, which are comment, and where commands begin.
//!
//! One pass with an explicit stack, linear in the text. Nothing is expanded and nothing is run. Everything else of the
//! guard that asks about quotes or words asks here.
//!
//! Never: recursion, a second notion of quoting.

use std::ops::Range;

/// What a byte is to the shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Outside quotes, also inside a substitution within double quotes.
    Plain,
    /// Outside quotes, but taken literally because of a backslash; the backslash included.
    Escaped,
    /// Within single quotes, the quotes included.
    Single,
    /// Within double quotes, the quotes included.
    Double,
    /// Within a comment.
    Comment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// `(` or `$(`; where it was opened.
    Paren(usize),
    /// A back quote; where it was opened.
    Backquote(usize),
    /// A double quote; where it was opened.
    Double(usize),
}

/// What one pass over a text found.
#[derive(Debug, Clone)]
pub struct Scan<'a> {
    text: &'a str,
    kinds: Vec<Kind>,
    /// For every opener (a quote, a back quote, a parenthesis), the index of its closer, or one of the two marks below.
    closers: Vec<u32>,
    starts: Vec<usize>,
    /// Quotes that are never closed, ascending.
    unclosed: Vec<usize>,
}

/// Mark of a byte that opens nothing.
const NONE: u32 = u32::MAX;
/// Mark of an opener that is never closed.
const OPEN: u32 = u32::MAX - 1;

struct Pass<'a> {
    bytes: &'a [u8],
    scan: Scan<'a>,
    stack: Vec<Frame>,
    /// Back quotes on the stack.
    backquotes: usize,
    at: usize,
    /// True where a new word may begin.
    fresh: bool,
}

impl<'a> Scan<'a> {
    /// Scans a text.
    pub fn new(text: &'a str) -> Self {
        let scan = Self {
            text,
            kinds: vec![Kind::Plain; text.len()],
            closers: vec![NONE; text.len()],
            starts: vec![0],
            unclosed: Vec::new(),
        };
        let pass =
            Pass { bytes: text.as_bytes(), scan, stack: Vec::new(), backquotes: 0, at: 0, fresh: true };
        pass.run()
    }

    /// The text that was scanned.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// What the byte at `at` is.
    pub fn kind(&self, at: usize) -> Kind {
        self.kinds.get(at).copied().unwrap_or(Kind::Plain)
    }

    /// True for a byte within single or double quotes.
    pub fn quoted(&self, at: usize) -> bool {
        matches!(self.kind(at), Kind::Single | Kind::Double)
    }

    /// Places where separators and openers let a command begin, in text order. Blanks may follow.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// True when a single or double quote that opens in the range is never closed.
    pub fn unclosed_within(&self, range: Range<usize>) -> bool {
        let next = self.unclosed.partition_point(|at| *at < range.start);
        self.unclosed.get(next).is_some_and(|at| *at < range.end)
    }

    /// The index just behind the construct that opens at `at`; the end of the text when it is never closed.
    pub fn behind(&self, at: usize) -> usize {
        match self.closers.get(at) {
            Some(&(OPEN | NONE)) | None => self.text.len(),
            Some(&closer) => closer as usize + 1,
        }
    }

    /// True when the byte at `at` opens a quote, a substitution or a subshell.
    pub fn opens(&self, at: usize) -> bool {
        self.closers.get(at).is_some_and(|&closer| closer != NONE)
    }

    /// True when the construct that opens at `at` has an end.
    pub fn closed(&self, at: usize) -> bool {
        self.closers.get(at).is_some_and(|&closer| closer < OPEN)
    }
}

impl<'a> Pass<'a> {
    fn run(mut self) -> Scan<'a> {
        while self.at < self.bytes.len() {
            if matches!(self.stack.last(), Some(Frame::Double(_))) { self.in_double() } else { self.plain() }
        }
        for frame in &self.stack {
            if let Frame::Double(opener) = frame {
                self.scan.unclosed.push(*opener);
            }
        }
        self.scan.unclosed.sort_unstable();
        self.scan
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn mark(&mut self, range: Range<usize>, kind: Kind) {
        let end = range.end.min(self.bytes.len());
        self.scan.kinds[range.start.min(end)..end].fill(kind);
    }

    fn close(&mut self, opener: usize) {
        // Texts are far below 4 GiB: the guard refuses long ones before it scans.
        self.scan.closers[opener] = u32::try_from(self.at).unwrap_or(OPEN);
    }

    fn start_behind(&mut self, length: usize) {
        self.at += length;
        self.scan.starts.push(self.at);
        self.fresh = true;
    }

    fn open(&mut self, frame: Frame) {
        self.scan.closers[self.at] = OPEN;
        self.stack.push(frame);
    }

    fn open_substitution(&mut self) {
        self.open(Frame::Paren(self.at));
        self.start_behind(2);
    }

    /// A back quote closes the innermost open one, whatever was left open inside it, or opens a new one.
    fn backquote(&mut self) {
        if self.backquotes > 0 {
            while let Some(frame) = self.stack.pop() {
                match frame {
                    Frame::Backquote(opener) => {
                        self.backquotes -= 1;
                        self.close(opener);
                        break;
                    }
                    Frame::Double(opener) => self.scan.unclosed.push(opener),
                    Frame::Paren(_) => {}
                }
            }
            self.at += 1;
            self.fresh = false;
        } else {
            self.open(Frame::Backquote(self.at));
            self.backquotes += 1;
            self.start_behind(1);
        }
    }

    fn in_double(&mut self) {
        let at = self.at;
        match self.bytes[at] {
            b'\\' => {
                self.mark(at..at + 2, Kind::Double);
                self.at += 2;
            }
            b'"' => {
                self.mark(at..at + 1, Kind::Double);
                if let Some(Frame::Double(opener)) = self.stack.pop() {
                    self.close(opener);
                }
                self.at += 1;
                self.fresh = false;
            }
            b'$' if self.peek(1) == b'(' => self.open_substitution(),
            b'`' => self.backquote(),
            _ => {
                self.mark(at..at + 1, Kind::Double);
                self.at += 1;
            }
        }
    }

    fn plain(&mut self) {
        let at = self.at;
        let fresh = std::mem::replace(&mut self.fresh, false);
        match self.bytes[at] {
            b'\\' => {
                self.mark(at..at + 2, Kind::Escaped);
                self.at += 2;
            }
            b'\'' => self.single(),
            b'"' => {
                self.mark(at..at + 1, Kind::Double);
                self.open(Frame::Double(at));
                self.at += 1;
            }
            b'#' if fresh => {
                let length = self.bytes[at..].iter().position(|byte| *byte == b'\n');
                let end = length.map_or(self.bytes.len(), |length| at + length);
                self.mark(at..end, Kind::Comment);
                self.at = end;
                self.fresh = true;
            }
            b'$' if self.peek(1) == b'(' => self.open_substitution(),
            b'`' => self.backquote(),
            b'(' => {
                self.open(Frame::Paren(at));
                self.start_behind(1);
            }
            b')' => {
                if let Some(Frame::Paren(opener)) = self.stack.last().copied() {
                    self.stack.pop();
                    self.close(opener);
                }
                self.at += 1;
            }
            b';' | b'\n' => self.start_behind(1),
            b'&' | b'|' => self.operator(at),
            b'{' if fresh && matches!(self.peek(1), b' ' | b'\t' | b'\n' | b'\r' | 0) => {
                self.start_behind(1);
            }
            b' ' | b'\t' | b'\r' => {
                self.fresh = true;
                self.at += 1;
            }
            _ => self.at += 1,
        }
    }

    fn single(&mut self) {
        let at = self.at;
        if let Some(length) = self.bytes[at + 1..].iter().position(|byte| *byte == b'\'') {
            let closer = at + 1 + length;
            self.mark(at..closer + 1, Kind::Single);
            self.at = closer;
            self.close(at);
            self.at += 1;
        } else {
            self.mark(at..self.bytes.len(), Kind::Single);
            self.scan.closers[at] = OPEN;
            self.scan.unclosed.push(at);
            self.at = self.bytes.len();
        }
    }

    /// `&` and `|`, single or doubled; not where they belong to a redirection such as `2>&1`, `&>f`, `>|f`.
    fn operator(&mut self, at: usize) {
        let byte = self.bytes[at];
        let before = if at > 0 { self.bytes[at - 1] } else { 0 };
        let redirection =
            matches!(before, b'>') || (byte == b'&' && (before == b'<' || self.peek(1) == b'>'));
        if redirection {
            self.at += 1;
        } else {
            let doubled = self.peek(1) == byte || (byte == b'|' && self.peek(1) == b'&');
            self.start_behind(if doubled { 2 } else { 1 });
        }
    }
}

/// The text with every newline inside quotes turned into a blank; substitutions within double quotes keep theirs.
pub fn mask_quoted_newlines(text: &str) -> String {
    if !text.contains('\n') {
        return text.to_owned();
    }
    let scan = Scan::new(text);
    text.char_indices().map(|(at, ch)| if ch == '\n' && scan.quoted(at) { ' ' } else { ch }).collect()
}

/// The text with everything inside quotes blanked; substitutions within double quotes stay.
pub fn mask_prose(text: &str) -> String {
    let scan = Scan::new(text);
    text.char_indices()
        .map(|(at, ch)| if scan.quoted(at) && !matches!(ch, '\'' | '"' | '\n') { ' ' } else { ch })
        .collect()
}

/// The text with a newline put before each of the given places, which ascend.
pub fn with_lines_at(text: &str, starts: &[usize]) -> String {
    let mut marked = String::with_capacity(text.len() + starts.len());
    let mut from = 0;
    for start in starts {
        let start = (*start).min(text.len());
        if start >= from && text.is_char_boundary(start) {
            marked.push_str(&text[from..start]);
            marked.push('\n');
            from = start;
        }
    }
    marked.push_str(&text[from..]);
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_behind_separators_and_in_substitutions_but_not_in_single_quotes() {
        assert_eq!(Scan::new("a; b && c").starts(), [0, 2, 7]);
        assert_eq!(Scan::new("echo \"$(x)\" '$(y)'").starts(), [0, 8]);
        assert_eq!(Scan::new("ls 2>&1 >|f").starts(), [0]);
    }

    #[test]
    fn a_hash_is_a_comment_only_at_the_start_of_a_word() {
        assert_eq!(Scan::new("a#b").kind(1), Kind::Plain);
        assert_eq!(Scan::new("a #b").kind(3), Kind::Comment);
    }

    #[test]
    fn quoted_newlines_are_masked_except_in_substitutions() {
        assert_eq!(mask_quoted_newlines("\"a\n$(b\nc)\" 'd\ne'\nf"), "\"a $(b\nc)\" 'd e'\nf");
    }

    #[test]
    fn deep_nesting_is_walked_without_recursion() {
        let text = "$(".repeat(60_000);
        assert_eq!(Scan::new(&text).starts().len(), 60_001);
    }
}
