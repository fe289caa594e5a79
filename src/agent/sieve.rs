//! Many patterns over short texts: each is compiled only when a text holds a word that it cannot match without.
//!
//! Building a hundred pattern engines takes longer than a whole run of a scenario. What a pattern needs is read from
//! its syntax tree, so no list of words has to be kept beside the patterns. Called by the command guard, the
//! threat scanner and others whose patterns few texts need. Never: a verdict; a candidate is still searched by its
//! pattern.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};
use regex::{Regex, RegexBuilder};
use regex_automata::{meta, util::syntax};
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, RepetitionKind, RepetitionRange};

/// A pattern that is compiled at its first use.
#[derive(Debug)]
pub struct Lazy<R> {
    source: String,
    build: fn(&str) -> R,
    compiled: OnceLock<R>,
}

impl<R> Lazy<R> {
    /// The pattern of this source; `build` may panic when it is wrong, so its owner tests that every source compiles.
    pub fn new(source: impl Into<String>, build: fn(&str) -> R) -> Self {
        Self { source: source.into(), build, compiled: OnceLock::new() }
    }

    /// The compiled pattern.
    pub fn get(&self) -> &R {
        self.compiled.get_or_init(|| (self.build)(&self.source))
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// A pattern that is searched in any case and compiled at its first use.
///
/// A text of ASCII alone, as most commands are, is searched with a form that knows no other letters: on such a text both
/// say the same, and it is built in a fraction of the time.
#[derive(Debug)]
pub struct Pattern {
    source: String,
    dot_all: bool,
    whole: OnceLock<Regex>,
    /// `None` when the pattern asks for letters that ASCII does not have.
    plain: OnceLock<Option<meta::Regex>>,
}

/// Most bytes that a compiled pattern may take.
const PATTERN_BYTES: usize = 64 << 20;

impl Pattern {
    /// The pattern of this source; with `dot_all` a dot matches the end of a line as well. Its owner tests that it
    /// compiles.
    pub fn new(source: impl Into<String>, dot_all: bool) -> Self {
        Self { source: source.into(), dot_all, whole: OnceLock::new(), plain: OnceLock::new() }
    }

    /// The pattern as written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The compiled pattern, for any text.
    ///
    /// # Panics
    /// When the source is no pattern.
    pub fn whole(&self) -> &Regex {
        self.whole.get_or_init(|| {
            let mut builder = RegexBuilder::new(&self.source);
            builder.case_insensitive(true).dot_matches_new_line(self.dot_all).size_limit(PATTERN_BYTES);
            builder.build().expect("its owner tests that it compiles")
        })
    }

    fn plain(&self) -> Option<&meta::Regex> {
        let built = self.plain.get_or_init(|| {
            let syntax = syntax::Config::new().case_insensitive(true).dot_matches_new_line(self.dot_all);
            // A sieve has found the words already, and commands are too short for what takes longest to build.
            let engine = meta::Config::new().auto_prefilter(false).onepass(false).dfa(false);
            meta::Regex::builder()
                .syntax(syntax.unicode(false).utf8(false))
                .configure(engine.utf8_empty(false).nfa_size_limit(Some(PATTERN_BYTES)))
                .build(&self.source)
                .ok()
        });
        built.as_ref()
    }

    /// True when it matches somewhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        match self.plain().filter(|_| text.is_ascii()) {
            Some(plain) => plain.is_match(text),
            None => self.whole().is_match(text),
        }
    }
}

/// Says which of a list of patterns a text may match.
#[derive(Debug)]
pub struct Sieve {
    words: AhoCorasick,
    /// Which pattern each word belongs to.
    owners: Vec<usize>,
    /// Patterns that name no word.
    always: Vec<usize>,
    count: usize,
}

impl Sieve {
    /// The sieve of a list of patterns that are searched in any case. A pattern may come in parts, all of which must
    /// occur.
    pub fn of<'a, P: IntoIterator<Item = &'a str>>(patterns: impl IntoIterator<Item = P>) -> Self {
        let (mut words, mut owners, mut always, mut count) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for parts in patterns {
            match parts.into_iter().filter_map(needed).max_by_key(|words| worth(words)) {
                Some(needed) => {
                    owners.extend(needed.iter().map(|_| count));
                    words.extend(needed);
                }
                None => always.push(count),
            }
            count += 1;
        }
        let words = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .build(words)
            .expect("some hundred short words make a small automaton");
        Self { words, owners, always, count }
    }

    /// For each pattern, whether the text may match it.
    pub fn candidates(&self, text: &[u8]) -> Vec<bool> {
        // Two letters outside ASCII fold to `s` and `k`; whoever writes them is searched in full.
        if memchr::memmem::find(text, "ſ".as_bytes()).is_some()
            || memchr::memmem::find(text, "\u{212A}".as_bytes()).is_some()
        {
            return vec![true; self.count];
        }
        let mut found = vec![false; self.count];
        for index in &self.always {
            found[*index] = true;
        }
        for word in self.words.find_overlapping_iter(text) {
            found[self.owners[word.pattern().as_usize()]] = true;
        }
        found
    }
}

/// A list with the sieve over what its items search for.
#[derive(Debug)]
pub struct Sieved<T> {
    items: Vec<T>,
    sieve: Sieve,
}

impl<T> Sieved<T> {
    /// The items in order; `sources` gives the parts of an item's pattern, all of which must occur.
    pub fn of(items: Vec<T>, sources: impl for<'a> Fn(&'a T) -> Vec<&'a str>) -> Self {
        let sieve = Sieve::of(items.iter().map(sources));
        Self { items, sieve }
    }

    /// All items.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// The items that the text may match.
    pub fn candidates(&self, text: &[u8]) -> impl Iterator<Item = &T> {
        let found = self.sieve.candidates(text);
        self.items.iter().zip(found).filter(|(_, candidate)| *candidate).map(|(item, _)| item)
    }
}

impl Sieved<Pattern> {
    /// Patterns of these sources, which are searched in any case. Their owner tests that they compile.
    pub fn patterns(sources: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let patterns = sources.into_iter().map(|source| Pattern::new(source, false)).collect();
        Self::of(patterns, |pattern: &Pattern| vec![pattern.source()])
    }

    /// True when one of them matches somewhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.candidates(text.as_bytes()).any(|pattern| pattern.is_match(text))
    }
}

/// Words of which one occurs in every match, in lower case; `None` when the pattern needs no word.
fn needed(pattern: &str) -> Option<Vec<String>> {
    // The tree as written is enough: classes are not looked into, and it is there in half the time.
    words_of(&Parser::new().parse(pattern).ok()?)
}

/// How well a set of words sieves: its shortest word, then how few there are.
fn worth(words: &[String]) -> (usize, std::cmp::Reverse<usize>) {
    (words.iter().map(String::len).min().unwrap_or(0), std::cmp::Reverse(words.len()))
}

fn words_of(tree: &Ast) -> Option<Vec<String>> {
    match tree {
        // Letters outside ASCII have cases that the words do not know.
        Ast::Literal(literal) => literal.c.is_ascii().then(|| vec![literal.c.to_ascii_lowercase().into()]),
        Ast::Group(group) => words_of(&group.ast),
        Ast::Repetition(inner) if is_required(&inner.op.kind) => words_of(&inner.ast),
        Ast::Concat(concat) => {
            let letter = |part: &Ast| matches!(part, Ast::Literal(literal) if literal.c.is_ascii());
            let runs = concat.asts.chunk_by(|a, b| letter(a) && letter(b));
            let word = |run: &[Ast]| match run {
                [part] => words_of(part),
                letters => Some(vec![letters.iter().filter_map(words_of).flatten().collect()]),
            };
            runs.filter_map(word).max_by_key(|words| worth(words))
        }
        Ast::Alternation(parts) => {
            let all: Option<Vec<Vec<String>>> = parts.asts.iter().map(words_of).collect();
            all.map(|all| all.concat())
        }
        _ => None,
    }
}

fn is_required(repeated: &RepetitionKind) -> bool {
    match repeated {
        RepetitionKind::OneOrMore => true,
        RepetitionKind::Range(RepetitionRange::Exactly(least) | RepetitionRange::AtLeast(least)) => {
            *least > 0
        }
        RepetitionKind::Range(RepetitionRange::Bounded(least, _)) => *least > 0,
        RepetitionKind::ZeroOrOne | RepetitionKind::ZeroOrMore => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pattern_needs_is_read_from_its_tree() {
        let words = |pattern| needed(pattern).unwrap_or_default();
        assert_eq!(words(r"\brm\s+(?:-\S*\s+)*/"), ["rm"]);
        assert_eq!(words(r"x?(?:curl|wget)\s"), ["curl", "wget"]);
        assert_eq!(words(r"(?:ab)*[cd]"), Vec::<String>::new());
        assert_eq!(words(r"ab+c\.D{2,}(?:x|é)?"), ["c."]);
        assert_eq!(words(r"(?:ab|é)"), Vec::<String>::new());
    }

    #[test]
    fn a_pattern_without_a_word_is_always_a_candidate() {
        let sieve = Sieve::of([["rm"], [r"\d+"]]);
        assert_eq!(sieve.candidates(b"ls"), [false, true]);
        assert_eq!(sieve.candidates(b"RM x"), [true, true]);
    }

    #[test]
    fn letters_that_fold_into_ascii_are_searched_in_full() {
        let sieve = Sieve::of([["ssh"], ["kill"]]);
        assert_eq!(sieve.candidates("ſſh".as_bytes()), [true, true]);
        assert_eq!(sieve.candidates("\u{212A}ill".as_bytes()), [true, true]);
    }

    proptest::proptest! {
        #[test]
        fn a_text_of_ascii_is_judged_alike_by_both_forms(text in "[ -~\\n]{0,12}", other in "\\PC{0,8}") {
            for source in [r"\bk\w+", r"s[^a-z]\S*$", r"(?m)^.\W", "a.b", r"\d\s|[[:punct:]]x", "é|a"] {
                for dot_all in [true, false] {
                    let pattern = Pattern::new(source, dot_all);
                    proptest::prop_assert_eq!(pattern.is_match(&text), pattern.whole().is_match(&text));
                    proptest::prop_assert_eq!(pattern.is_match(&other), pattern.whole().is_match(&other));
                }
            }
        }

        #[test]
        fn whatever_a_pattern_matches_is_a_candidate(text in "[a-dA-D ſ]{0,12}") {
            let sources = ["ab+c?", "(?:ab|c)d", "a(?:bc){1,2}", "[ab]c", "(?:a|b|cd)(?:d|) a", "s"];
            let sieve = Sieve::of(sources.map(|source| [source]));
            let candidates = sieve.candidates(text.as_bytes());
            for (source, candidate) in sources.iter().zip(candidates) {
                let pattern = RegexBuilder::new(source).case_insensitive(true).build().unwrap();
                proptest::prop_assert!(candidate || !pattern.is_match(&text), "{source} in {text:?}");
            }
        }
    }
}
