//! Words and simple commands: which word names a program, behind which wrappers, with which arguments.
//!
//! A *simple command* is what stands between two command starts' separators. Its heads are the words that name a
//! program: the first word, and behind a wrapper such as `sudo` or `env` the next one, and so on.
//!
//! Never: more work than a constant times the text, whatever is nested in what.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::options::{self, Spec};
use super::scan::{Kind, Scan};

/// Longest word that is looked at as a program name, in bytes. No path that a system accepts is longer.
const NAME_BYTES_MAX: usize = 4_096;

/// Words behind which another command begins.
const KEYWORDS: [&str; 9] = ["if", "then", "else", "elif", "do", "while", "until", "!", "{"];

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its place in the text, quotes included.
    pub range: Range<usize>,
}

/// A redirection and what it points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The operator without its number: `>`, `<<`, `>&`, …
    pub operator: String,
    /// The word behind it; empty when there is none.
    pub target: Range<usize>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Simple {
    /// Where the command begins.
    pub start: usize,
    /// Just behind its last word.
    pub end: usize,
    /// Its words, redirections taken out.
    pub words: Vec<Word>,
    /// Its redirections.
    pub redirections: Vec<Redirection>,
    /// Indices into `words` of those that name a program, with the name as the shell would see it.
    pub heads: Vec<(usize, String)>,
}

impl Simple {
    /// Every program name with the words behind it.
    pub fn programs(&self) -> impl Iterator<Item = (&str, &[Word])> {
        self.heads.iter().map(|(at, name)| (name.as_str(), &self.words[at + 1..]))
    }

    /// True when a here-document is attached; a here-string is none.
    pub fn has_heredoc(&self) -> bool {
        self.redirections.iter().any(|redirection| matches!(redirection.operator.as_str(), "<<" | "<<-"))
    }
}

/// The simple commands of a text, in the order of their starts; those behind keywords come last.
pub fn commands(scan: &Scan) -> Vec<Simple> {
    let mut queue = scan.starts().to_vec();
    let mut found = Vec::new();
    let mut next = 0;
    while let Some(&start) = queue.get(next) {
        next += 1;
        let mut reader = Reader { scan, at: start, ended: false };
        let mut simple = Simple { start, ..Simple::default() };
        let Some(first) = reader.first_word(&mut simple) else {
            if !simple.words.is_empty() || !simple.redirections.is_empty() {
                simple.end = reader.at;
                found.push(simple);
            }
            continue;
        };
        let name = name_of(&scan.text()[first.range.clone()]);
        // Only the head of a keyword is read here; what follows is read once, from its own start.
        let keyword = KEYWORDS.contains(&name.as_str());
        if keyword && name != "{" {
            queue.push(first.range.end);
        }
        simple.end = first.range.end;
        simple.words.push(first);
        simple.heads.push((simple.words.len() - 1, name));
        if !keyword {
            reader.rest(&mut simple);
            find_wrapped(scan.text(), &mut simple);
        }
        found.push(simple);
    }
    found
}

/// Every place where a command begins, those behind keywords included, ascending.
pub fn starts(scan: &Scan) -> Vec<usize> {
    let mut starts: Vec<usize> = scan.starts().to_vec();
    starts.extend(commands(scan).iter().map(|simple| simple.start));
    starts.sort_unstable();
    starts.dedup();
    starts
}

/// Every word in command position, as the shell would see it (Hermes tools/approval_detection.py).
///
/// ```
/// use hermes_lab::agent::guard::words::command_words;
/// assert_eq!(command_words("A=1 sudo -u ada 'r'm x; ls"), ["sudo", "rm", "ls"]);
/// ```
pub fn command_words(text: &str) -> Vec<String> {
    let scan = Scan::new(text);
    let simple = commands(&scan);
    simple
        .into_iter()
        .flat_map(|simple| simple.heads)
        .map(|(_, name)| name)
        .filter(|n| !n.is_empty())
        .collect()
}

/// Walks the wrapper chain and notes every further head.
fn find_wrapped(text: &str, simple: &mut Simple) {
    let mut at = simple.heads[0].0;
    loop {
        let name = base_name(&simple.heads.last().expect("the first head was pushed").1).to_owned();
        let Some(wrapper) = options::wrapper(&name) else { return };
        let Some(next) = behind_options(text, &simple.words, at + 1, wrapper) else { return };
        at = next;
        let name = name_of(&text[simple.words[at].range.clone()]);
        simple.heads.push((at, name));
    }
}

/// The index of the word that a wrapper runs, from `at` on; `None` when it runs none or only answers a question.
fn behind_options(text: &str, words: &[Word], at: usize, spec: &Spec) -> Option<usize> {
    walk_options(at, spec, |at| words.get(at).map(|word| unquote(&text[word.range.clone()])))
}

/// The same over words that were expanded already.
pub(super) fn program_behind(words: &[String], at: usize, spec: &Spec) -> Option<usize> {
    walk_options(at, spec, |at| words.get(at).cloned())
}

fn walk_options(mut at: usize, spec: &Spec, word_at: impl Fn(usize) -> Option<String>) -> Option<usize> {
    while let Some(word) = word_at(at) {
        if word == "--" {
            at += 1;
            break;
        }
        if is_assignment(&word) && spec.assignments {
            at += 1;
            continue;
        }
        if !word.starts_with('-') || word == "-" {
            break;
        }
        if spec.asks(&word) {
            return None;
        }
        at += if spec.takes_next(&word) { 2 } else { 1 };
    }
    at += spec.positionals;
    while spec.assignments && word_at(at).is_some_and(|word| is_assignment(&word)) {
        at += 1;
    }
    word_at(at).map(|_| at)
}

/// The last component of a path, without `.exe`.
pub fn base_name(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.strip_suffix(".exe").or_else(|| name.strip_suffix(".EXE")).unwrap_or(name)
}

/// `NAME=value`, `NAME+=value`, `NAME[i]=value`.
pub fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    let name = name.strip_suffix('+').unwrap_or(name);
    let name = name.split_once('[').map_or(name, |(name, _)| name);
    name.starts_with(|ch: char| ch.is_ascii_alphabetic() || ch == '_')
        && name.chars().all(|ch| ch.is_ascii_alphanumeric() || ch == '_')
}

/// Reads words and redirections from one place on.
#[derive(Debug)]
struct Reader<'a, 'b> {
    scan: &'a Scan<'b>,
    at: usize,
    /// The substitution that the command stands in was closed.
    ended: bool,
}

enum Token {
    Word(Range<usize>),
    Redirection(Redirection),
}

impl Reader<'_, '_> {
    /// The first word that is no assignment; redirections before it are noted.
    fn first_word(&mut self, simple: &mut Simple) -> Option<Word> {
        loop {
            match self.token()? {
                Token::Redirection(redirection) => simple.redirections.push(redirection),
                Token::Word(range) => {
                    if !is_assignment(&self.scan.text()[range.clone()]) {
                        return Some(Word { range });
                    }
                    simple.words.push(Word { range });
                }
            }
        }
    }

    fn rest(&mut self, simple: &mut Simple) {
        while let Some(token) = self.token() {
            match token {
                Token::Word(range) => simple.words.push(Word { range }),
                Token::Redirection(redirection) => simple.redirections.push(redirection),
            }
            simple.end = self.at;
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.scan.text().as_bytes().get(at).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\r')
            || (self.byte(self.at) == b'\\' && self.byte(self.at + 1) == b'\n')
        {
            self.at += if self.byte(self.at) == b'\\' { 2 } else { 1 };
        }
    }

    /// The next word or redirection of this command; `None` at its end.
    fn token(&mut self) -> Option<Token> {
        self.skip_blanks();
        if self.ended || self.at >= self.scan.text().len() || self.scan.kind(self.at) == Kind::Comment {
            return None;
        }
        if let Some(length) = self.redirection_length() {
            let operator = self.scan.text()[self.at..self.at + length]
                .trim_start_matches(|ch: char| ch.is_ascii_digit());
            let operator = operator.to_owned();
            self.at += length;
            self.skip_blanks();
            let from = self.at;
            self.word();
            return Some(Token::Redirection(Redirection { operator, target: from..self.at }));
        }
        let from = self.at;
        self.word();
        (self.at > from).then_some(Token::Word(from..self.at))
    }

    /// Length of the redirection operator here, its number included. `<(` and `>(` are words.
    fn redirection_length(&self) -> Option<usize> {
        let rest = &self.scan.text().as_bytes()[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let operator = &rest[digits..];
        if digits == 0 && operator.starts_with(b"&>") {
            return Some(if operator.starts_with(b"&>>") { 3 } else { 2 });
        }
        let length = match operator {
            [b'<' | b'>', b'(', ..] => return None,
            [b'<', b'<', b'<' | b'-', ..] => 3,
            [b'<', b'<' | b'&' | b'>', ..] | [b'>', b'>' | b'&' | b'|', ..] => 2,
            [b'<' | b'>', ..] => 1,
            _ => return None,
        };
        Some(digits + length)
    }

    /// Moves behind the word that begins here, if one does.
    fn word(&mut self) {
        let from = self.at;
        let length = self.scan.text().len();
        while self.at < length {
            let at = self.at;
            self.at = match self.byte(at) {
                b'<' | b'>' if self.byte(at + 1) == b'(' && at == from => self.scan.behind(at + 1),
                b'\'' | b'"' if self.scan.opens(at) => self.scan.behind(at),
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'<' | b'>' | b'"'
                | b'\'' => break,
                b'\\' => at + 2,
                b'`' if self.scan.closed(at) => self.scan.behind(at),
                // The end of the substitution that the command stands in; it sticks to a word that touches it.
                b'`' if !self.scan.opens(at) => {
                    self.ended = true;
                    self.at = at + 1;
                    break;
                }
                b'$' if self.byte(at + 1) == b'(' && self.scan.opens(at) => self.scan.behind(at),
                b'$' if self.byte(at + 1) == b'{' => self.behind_brace(at),
                _ => at + 1,
            };
        }
        self.at = self.at.min(length);
        while !self.scan.text().is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    /// Behind a `${…}`; a brace that is far away or missing makes it an ordinary `$`.
    fn behind_brace(&self, at: usize) -> usize {
        let rest = &self.scan.text().as_bytes()[at..];
        let window = &rest[..rest.len().min(NAME_BYTES_MAX)];
        window.iter().position(|byte| *byte == b'}').map_or(at + 1, |length| at + length + 1)
    }
}

/// A word's text as a program name; empty when it is too long to be one.
fn name_of(raw: &str) -> String {
    if raw.len() > NAME_BYTES_MAX { String::new() } else { deobfuscate(raw) }
}

static ECHOED: LazyLock<Regex> = LazyLock::new(|| {
    let plain = r#"(?:'([^'`$()]*)'|"([^"`$()]*)"|([^\s'"`$();|&<>]+))"#;
    let program = r"(?:echo|printf(?:\s+['\x22]?%s['\x22]?)?)";
    let pattern = format!(r"\$\(\s*{program}\s+{plain}\s*\)|`\s*{program}\s+{plain}\s*`");
    Regex::new(&pattern).expect("the pattern is written correctly")
});

static DEFAULTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{\w+(?::?-([^{}]*)|//?[^/{}]*/([^{}]*))\}").expect("the pattern is written correctly")
});

/// A word with its disguise taken off: literal substitutions, defaults, quotes and escapes; done twice.
///
/// ```
/// use hermes_lab::agent::guard::words::deobfuscate;
/// assert_eq!(deobfuscate("$(printf %s r)'m'"), "rm");
/// assert_eq!(deobfuscate("${x:-rm}"), "rm");
/// ```
pub fn deobfuscate(word: &str) -> String {
    let mut text = word.to_owned();
    for _ in 0..2 {
        if text.contains(['$', '`']) {
            let first_group = |captures: &regex::Captures| {
                captures.iter().skip(1).flatten().next().map_or_else(String::new, |m| m.as_str().to_owned())
            };
            text = ECHOED.replace_all(&text, first_group).into_owned();
            text = DEFAULTED.replace_all(&text, first_group).into_owned();
        }
        text = unquote(&text);
    }
    text
}

/// A word without its quotes and escapes.
pub fn unquote(word: &str) -> String {
    if !word.contains(['\'', '"', '\\']) {
        return word.to_owned();
    }
    let mut kept = String::with_capacity(word.len());
    let mut chars = word.chars();
    let mut quote = None;
    while let Some(ch) = chars.next() {
        match (quote, ch) {
            (None, '\'' | '"') => quote = Some(ch),
            (Some(open), _) if ch == open => quote = None,
            (None, '\\') => kept.extend(chars.next()),
            (Some('"'), '\\') => match chars.next() {
                Some(next @ ('"' | '\\' | '$' | '`')) => kept.push(next),
                Some('\n') => {}
                Some(next) => kept.extend(['\\', next]),
                None => kept.push('\\'),
            },
            _ => kept.push(ch),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_hands_on_behind_its_options_and_positionals() {
        assert_eq!(
            command_words("sudo -u ada timeout -k 5 10 env -i A=1 rm x"),
            ["sudo", "timeout", "env", "rm"]
        );
        assert_eq!(command_words("command -v rm"), ["command"]);
    }

    #[test]
    fn a_question_to_a_wrapper_names_no_program() {
        assert_eq!(command_words("sudo -l"), ["sudo"]);
        assert_eq!(command_words("chrt -p 1"), ["chrt"]);
    }

    #[test]
    fn many_keywords_in_a_row_are_read_once_each() {
        let text = "! ".repeat(40_000);
        assert_eq!(command_words(&text).len(), 40_000);
    }

    #[test]
    fn a_here_string_is_no_here_document() {
        let simple = commands(&Scan::new("python <<< x"));
        assert!(!simple[0].has_heredoc());
        assert!(commands(&Scan::new("python <<-'EOF'"))[0].has_heredoc());
    }
}
