//! Similarity of two texts as the ratio of matching blocks.
//!
//! The longest common block is taken (earliest in the first text, then earliest in the second), then the parts to its
//! left and right are treated alike. In a second text of 200 characters or more, characters that occur very often do
//! not start a block, they only extend one. These are the rules of Python's difflib, whose thresholds are used.

use std::collections::BTreeMap;

/// Length from which frequent characters start no block.
const POPULAR_FROM: usize = 200;

/// A common block: start in the first text, start in the second, length; all in characters.
pub(super) type Block = (usize, usize, usize);

/// The common blocks of two texts, in order.
pub(super) fn blocks(first: &[char], second: &[char]) -> Vec<Block> {
    let mut places: BTreeMap<char, Vec<usize>> = BTreeMap::new();
    for (at, character) in second.iter().enumerate() {
        places.entry(*character).or_default().push(at);
    }
    if second.len() >= POPULAR_FROM {
        let often = second.len() / 100 + 1;
        places.retain(|_, found| found.len() <= often);
    }
    let mut found = Vec::new();
    let mut open = vec![(0, first.len(), 0, second.len())];
    let mut lengths = (vec![0; second.len() + 1], vec![0; second.len() + 1]);
    while let Some((a_low, a_high, b_low, b_high)) = open.pop() {
        let block = longest(first, second, &places, (a_low, a_high, b_low, b_high), &mut lengths);
        let (a, b, length) = block;
        if length == 0 {
            continue;
        }
        found.push(block);
        if a_low < a && b_low < b {
            open.push((a_low, a, b_low, b));
        }
        if a + length < a_high && b + length < b_high {
            open.push((a + length, a_high, b + length, b_high));
        }
    }
    found.sort_unstable();
    found
}

/// The longest common block inside the given parts.
fn longest(
    first: &[char],
    second: &[char],
    places: &BTreeMap<char, Vec<usize>>,
    (a_low, a_high, b_low, b_high): (usize, usize, usize, usize),
    (before, now): &mut (Vec<usize>, Vec<usize>),
) -> Block {
    let (mut best_a, mut best_b, mut best) = (a_low, b_low, 0);
    // `before[j + 1]` is the length of the block that ends at the previous character and at `j`.
    let mut touched: Vec<usize> = Vec::new();
    for (at, character) in first.iter().enumerate().take(a_high).skip(a_low) {
        let mut fresh = Vec::new();
        let all = places.get(character).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|place| *place < b_low);
        for &place in all[from..].iter().take_while(|place| **place < b_high) {
            let length = before[place] + 1;
            now[place + 1] = length;
            fresh.push(place + 1);
            if length > best {
                (best_a, best_b, best) = (at + 1 - length, place + 1 - length, length);
            }
        }
        for place in touched.drain(..) {
            before[place] = 0;
        }
        std::mem::swap(before, now);
        touched = fresh;
    }
    for place in touched {
        before[place] = 0;
    }
    while best_a > a_low && best_b > b_low && first[best_a - 1] == second[best_b - 1] {
        (best_a, best_b, best) = (best_a - 1, best_b - 1, best + 1);
    }
    while best_a + best < a_high && best_b + best < b_high && first[best_a + best] == second[best_b + best] {
        best += 1;
    }
    (best_a, best_b, best)
}

/// True when twice the matching characters are at least `share` of all characters of both texts.
pub(super) fn similar(first: &str, second: &str, share: f64) -> bool {
    let (first, second): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
    let total = first.len() + second.len();
    if total == 0 {
        return true;
    }
    let ratio = |matching: usize| 2.0 * matching as f64 / total as f64;
    // No more characters can match than the shorter text has, nor more of each than both have.
    if ratio(first.len().min(second.len())) < share || ratio(shared(&first, &second)) < share {
        return false;
    }
    ratio(blocks(&first, &second).iter().map(|(_, _, length)| length).sum()) >= share
}

fn shared(first: &[char], second: &[char]) -> usize {
    let mut counts: BTreeMap<char, usize> = BTreeMap::new();
    for character in second {
        *counts.entry(*character).or_default() += 1;
    }
    first
        .iter()
        .filter(|character| match counts.get_mut(character) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_longest_block_is_taken_first() {
        let text = |text: &str| text.chars().collect::<Vec<char>>();
        assert_eq!(blocks(&text("abxcd"), &text("abcd")), [(0, 0, 2), (3, 2, 2)]);
        assert_eq!(
            blocks(&text("private"), &text("privileged")).iter().map(|block| block.2).sum::<usize>(),
            5
        );
    }

    #[test]
    fn frequent_characters_start_no_block_in_a_long_text() {
        let long = "ab".repeat(150);
        assert!(!similar(&"ba".repeat(150), &long, 0.1));
        assert!(similar("bcde", "abcd", 0.75));
        assert!(!similar("bcde", "abcd", 0.76));
    }
}
