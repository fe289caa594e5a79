//! A prompt as the ledger writes it: one piece for a tool, a part of the system prompt, a message.
//!
//! Caches look at blocks, people and laws at messages. A piece is a whole element of the body, in its one form:
//! without markers, a lone text block as a string.

use std::ops::Range;

use crate::audit::json;
use crate::audit::prompt::{Prompt, Seg, field_of, parse};
use crate::wire::Level;

/// One element of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Tools, system or messages.
    pub level: Level,
    /// Hash of its content.
    pub hash: u128,
    /// Its first segment.
    pub first: usize,
    /// Number of its segments.
    pub count: usize,
}

impl Prompt {
    /// The pieces in cache order.
    pub fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.segs.len());
        let mut before: Option<&Seg> = None;
        for (at, seg) in self.segs.iter().enumerate() {
            let same = before.is_some_and(|old| {
                old.level == seg.level && old.element == seg.element && field_of(old) == field_of(seg)
            });
            match pieces.last_mut().filter(|_| same) {
                Some(piece) => {
                    piece.hash = parse::mix(piece.hash, seg.hash);
                    piece.count += 1;
                }
                None => pieces.push(Piece { level: seg.level, hash: seg.hash, first: at, count: 1 }),
            }
            before = Some(seg);
        }
        pieces
    }

    /// Place of a piece's element in the body.
    pub fn element_span(&self, piece: &Piece) -> Option<Range<usize>> {
        let seg = self.segs.get(piece.first)?;
        self.elements[field_of(seg)].get(seg.element as usize).cloned()
    }

    /// A piece in its one form; empty when the body is no longer held.
    pub fn piece_text(&self, piece: &Piece) -> String {
        let Some(span) = self.element_span(piece).filter(|span| span.end <= self.body.len()) else {
            return String::new();
        };
        let mut out = Vec::new();
        parse::canonical(&self.body, &span, piece.level, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    /// A field of a piece's element.
    pub fn piece_field(&self, piece: &Piece, name: &str) -> Option<Range<usize>> {
        json::field(&self.body, &self.element_span(piece)?, name)
    }
}
