//! Tokens and dollars of one request: as billed where the log has them, else estimated from the bytes.

use crate::audit::conversations::End;
use crate::audit::judge::{Auditor, Seen};
use crate::audit::prompt::Shape;
use crate::audit::record::{Judged, Tokens};
use crate::audit::usage::{self, Usage};

impl Auditor {
    pub(super) fn end(&self, seen: &Seen<'_>) -> End {
        let _ = self;
        let len = seen.prompt.cacheable();
        let tokens = seen.record.usage.filter(|usage| usage.prompt() > 0).map(|usage| {
            let cached = usage.read + usage.written();
            match seen.prompt.shape {
                // What stands behind the last marker is the rest that is neither read nor written.
                Shape::Anthropic if cached > 0 => cached,
                Shape::Anthropic => 0,
                _ => usage.prompt(),
            }
        });
        End { len, index: seen.index, at: seen.record.at, tokens }
    }

    /// Tokens of so many bytes, by what this log measured; four bytes a token where it measured nothing.
    pub(super) fn estimate(&self, bytes: u64) -> u64 {
        let (size, tokens) = self.measured;
        if size == 0 || tokens == 0 {
            return bytes / 4;
        }
        u64::try_from(u128::from(bytes) * u128::from(tokens) / u128::from(size)).unwrap_or(u64::MAX)
    }

    pub(super) fn fill(&self, judged: &mut Judged, seen: &Seen<'_>, shared: usize, expected: u64) {
        let prompt = &seen.prompt;
        let total = match &seen.record.usage {
            Some(usage) if usage.prompt() > 0 => usage.prompt(),
            _ => self.estimate(prompt.size()),
        };
        let share = |count: usize| {
            let size = prompt.size().max(1);
            u64::try_from(u128::from(total) * u128::from(prompt.size_of(count)) / u128::from(size))
                .unwrap_or(0)
        };
        let matched = share(shared);
        let predicted = match prompt.shape {
            Shape::Anthropic => share(seen.walk.hit),
            _ if matched < 1024 => 0,
            _ => matched / 128 * 128,
        };
        judged.tokens = Tokens { prompt: total, matched, predicted_read: predicted, ..Tokens::default() };
        let tokens = &mut judged.tokens;
        match &seen.record.usage {
            Some(usage) if usage.prompt() > 0 => {
                (tokens.read, tokens.written, tokens.uncached) = (usage.read, usage.written(), usage.fresh);
                tokens.billed = true;
            }
            _ => {
                tokens.read = predicted;
                let end = if prompt.shape == Shape::Anthropic && prompt.marks.is_empty() {
                    0
                } else {
                    prompt.cacheable()
                };
                tokens.written = match prompt.shape {
                    Shape::Anthropic => share(end).saturating_sub(predicted),
                    _ => 0,
                };
                tokens.uncached = total.saturating_sub(tokens.read + tokens.written);
            }
        }
        tokens.lost = expected.saturating_sub(tokens.read).min(total);
    }

    pub(super) fn price(&self, judged: &mut Judged, seen: &Seen<'_>) {
        let _ = self;
        let Some(price) = usage::price_of(&seen.prompt.model, seen.record.at) else { return };
        let tokens = &judged.tokens;
        let usage = seen.record.usage.unwrap_or(Usage {
            fresh: tokens.uncached,
            read: tokens.read,
            write_5m: tokens.written,
            ..Usage::default()
        });
        let missing = price.cost_of_missing(&usage, tokens.lost, tokens.written > 0);
        judged.money_lost = Some(missing.dollars());
        judged.money = Some(price.cost(&usage).dollars());
    }
}
