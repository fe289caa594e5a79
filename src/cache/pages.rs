//! A prompt cut into pages of equal size, as engines see it.
//!
//! A page is told apart by the running digest of the position that holds its last token, together with its place:
//! that digest fixes everything before it, and positions never share a part of their content.

use crate::cache::Observed;
use crate::wire::Chain;

/// A prompt, with or without its answer, in pages.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    /// Running digest and summed size of each position.
    ends: Vec<(Chain, u64)>,
    page: u64,
}

impl Pages {
    /// The prompt in pages of so many tokens.
    pub(super) fn of_prompt(request: &Observed<'_>, page: u64) -> Self {
        let ends = request.chains.iter().copied().zip(request.sizes.iter().copied()).collect();
        Self { ends, page: page.max(1) }
    }

    /// The same with the answer behind it.
    pub(super) fn with_output(mut self, request: &Observed<'_>) -> Self {
        if let Some(output) = request.output {
            self.ends.push((output.chain, self.tokens() + output.tokens));
        }
        self
    }

    pub(super) fn tokens(&self) -> u64 {
        self.ends.last().map_or(0, |(_, size)| *size)
    }

    /// Full pages.
    pub(super) fn full(&self) -> u64 {
        self.tokens() / self.page
    }

    /// Pages, a partly filled last one included.
    pub(super) fn all(&self) -> u64 {
        self.tokens().div_ceil(self.page)
    }

    /// Pages that a lookup may answer with: the last token is always computed.
    pub(super) fn findable(&self) -> u64 {
        self.tokens().saturating_sub(1) / self.page
    }

    /// Digest that tells a full page apart.
    pub(super) fn digest(&self, page: u64) -> Chain {
        let token = (page + 1) * self.page;
        let position = self.ends.partition_point(|(_, size)| *size < token);
        self.ends[position.min(self.ends.len() - 1)].0
    }

    /// Runs of full pages with one digest, from a page on: end of the run and digest.
    pub(super) fn runs(&self, from: u64, upto: u64) -> Vec<(u64, Chain)> {
        let mut runs: Vec<(u64, Chain)> = Vec::new();
        let mut page = from;
        while page < upto {
            let token = (page + 1) * self.page;
            let position = self.ends.partition_point(|(_, size)| *size < token);
            let (chain, size) = self.ends[position];
            page = (size / self.page).clamp(page + 1, upto);
            runs.push((page, chain));
        }
        runs
    }
}
