//! Requests for the tests of this room, written as labels and sizes.

use crate::cache::{Facts, Observed, Outcome, Output, PrefixCache, Refusal, Ttl};
use crate::wire::{Chain, Level, Segment};
use crate::world::Millis;

/// A request of labelled pieces: `"a:10 b:20*5m"`.
#[derive(Debug, Clone, Default)]
pub(super) struct Prompt {
    chains: Vec<Chain>,
    sizes: Vec<u64>,
    marks: Vec<(usize, Ttl)>,
    pub(super) facts: Vec<Facts>,
    pub(super) duration: Option<Millis>,
    pub(super) output: Option<Output>,
}

pub(super) fn prompt(text: &str) -> Prompt {
    let mut prompt = Prompt::default();
    let (mut chain, mut size) = (Chain::EMPTY, 0);
    for piece in text.split_whitespace() {
        let (piece, ttl) =
            piece.split_once('*').map_or((piece, None), |(piece, ttl)| (piece, Ttl::of_word(ttl)));
        let (label, tokens) = piece.split_once(':').expect("label:tokens");
        chain = chain.then(&Segment::new(Level::Messages, label));
        size += tokens.parse::<u64>().expect("a number");
        prompt.marks.extend(ttl.map(|ttl| (prompt.chains.len(), ttl)));
        prompt.chains.push(chain);
        prompt.sizes.push(size);
    }
    prompt
}

impl Prompt {
    pub(super) fn answered(mut self, label: &str, tokens: u64) -> Self {
        let before = self.chains.last().copied().unwrap_or(Chain::EMPTY);
        self.output = Some(Output { tokens, chain: before.then(&Segment::new(Level::Messages, label)) });
        self
    }

    pub(super) fn lasting(mut self, duration: Millis) -> Self {
        self.duration = Some(duration);
        self
    }

    pub(super) fn observed(&self) -> Observed<'_> {
        Observed {
            chains: &self.chains,
            sizes: &self.sizes,
            marks: &self.marks,
            facts: &self.facts,
            duration: self.duration,
            output: self.output,
            ..Observed::default()
        }
    }

    pub(super) fn send(&self, cache: &mut dyn PrefixCache, at: Millis) -> Result<Outcome, Refusal> {
        cache.observe(at, &self.observed())
    }

    /// Tokens read.
    pub(super) fn read(&self, cache: &mut dyn PrefixCache, at: Millis) -> u64 {
        self.send(cache, at).expect("no refusal").read
    }
}
