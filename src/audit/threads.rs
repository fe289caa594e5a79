//! The conversations of an audit, and the index over them: by name and age, by where their requests ended.
//!
//! What is looked for is found without looking through all of them, so that a request costs the same among four
//! conversations and among four thousand. Called by the judge and by `conversations`.

use std::collections::BTreeMap;
use std::ops::Index;
use std::rc::Rc;

use xxhash_rust::xxh3::xxh3_128;

use crate::audit::conversations::{End, Thread};
use crate::audit::prompt::{ByHash, Prompt, Shape};

/// Bytes of bodies that are kept for showing differences.
const HELD_MAX: usize = 12 << 20;
/// Conversations that are kept.
const THREADS_MAX: usize = 4_096;
/// Segments that all conversations keep together.
const SEGMENTS_MAX: usize = 100_000;
/// Ends of earlier requests that a conversation keeps.
const ENDS_MAX: usize = 1_024;

/// Conversations by the ordinal of their newest request.
type ByAge = BTreeMap<usize, usize>;

/// Conversations under way.
#[derive(Debug, Default)]
pub(super) struct Threads {
    list: Vec<Thread>,
    /// Of one shape, whatever their name.
    by_shape: BTreeMap<Shape, ByAge>,
    /// Of one shape and name.
    by_name: BTreeMap<Shape, BTreeMap<String, ByAge>>,
    /// The newest conversation in which a request ended with this running hash, under its name and under any.
    ends: ByHash<usize>,
    /// Those whose newest body is held.
    held: ByAge,
    held_bytes: usize,
    segments: usize,
}

impl Index<usize> for Threads {
    type Output = Thread;

    fn index(&self, at: usize) -> &Thread {
        &self.list[at]
    }
}

/// What tells ends of differently named conversations apart; without a name, of any.
fn key(chain: u128, shape: Shape, name: Option<&str>) -> u128 {
    let name = name.map_or(0, |name| xxh3_128(name.as_bytes()) | 1);
    chain ^ name.rotate_left(1 + shape as u32)
}

impl Threads {
    /// Conversations, the newest first: of this name if there is one, of this shape if there is one.
    pub(super) fn newest<'a>(
        &'a self,
        name: Option<&str>,
        shape: Option<Shape>,
    ) -> impl Iterator<Item = usize> + 'a {
        let wanted = move |known: &Shape| shape.is_none_or(|shape| shape == *known);
        let mut found: Vec<&ByAge> = if let Some(name) = name {
            let shapes = self.by_name.iter().filter(|(known, _)| wanted(known));
            shapes.filter_map(|(_, names)| names.get(name)).collect()
        } else {
            self.by_shape.iter().filter(|(known, _)| wanted(known)).map(|(_, ages)| ages).collect()
        };
        // Almost always there is one group; several are merged.
        let mut lone = (found.len() == 1).then(|| found.remove(0).values().rev().copied());
        let mut merged: Vec<(usize, usize)> =
            found.iter().flat_map(|ages| ages.iter().map(|(age, at)| (*age, *at))).collect();
        merged.sort_unstable();
        std::iter::from_fn(move || match &mut lone {
            Some(lone) => lone.next(),
            None => merged.pop().map(|(_, at)| at),
        })
    }

    /// The newest conversation in which a request ended here.
    pub(super) fn ended(&self, chain: u128, len: usize, name: Option<&str>, shape: Shape) -> Option<usize> {
        let at = *self.ends.get(&key(chain, shape, name))?;
        let known = self.list[at].ends.get(&chain)?;
        (known.len == len).then_some(at)
    }

    /// The conversation that was active last.
    pub(super) fn last(&self) -> Option<&Thread> {
        let newest = self.by_shape.values().filter_map(|ages| ages.last_key_value());
        newest.max().map(|(_, at)| &self.list[*at])
    }

    /// A conversation begins.
    pub(super) fn begin(&mut self, thread: Thread) -> usize {
        self.list.push(thread);
        let at = self.list.len() - 1;
        self.enter(at);
        at
    }

    /// Changes what is no part of the index.
    pub(super) fn change(&mut self, at: usize, change: impl FnOnce(&mut Thread)) {
        change(&mut self.list[at]);
    }

    /// A request is the newest one of its conversation.
    pub(super) fn advance(&mut self, at: usize, prompt: &Rc<Prompt>, end: End) {
        self.leave(at);
        let thread = &mut self.list[at];
        thread.last = prompt.clone();
        thread.end = end;
        thread.touched = end.index;
        self.enter(at);
        let marked = end.len.checked_sub(1).map(|last| prompt.chain[last]);
        if let Some(chain) = marked {
            self.list[at].ends.insert(chain, end);
            self.note_end(at, chain);
        }
        if let Some(last) = prompt.chain.last() {
            self.list[at].ends.entry(*last).or_insert(End { len: prompt.segs.len(), ..end });
            self.note_end(at, *last);
        }
        if self.list[at].ends.len() > ENDS_MAX {
            let gone: Vec<u128> = self.list[at].ends.drain(..ENDS_MAX / 2).map(|(chain, _)| chain).collect();
            for chain in gone {
                self.forget_end(at, chain);
            }
        }
    }

    /// Lets go of what is too old: first bodies, then conversations.
    pub(super) fn let_go(&mut self) {
        while self.held_bytes > HELD_MAX && self.held.len() > 1 {
            let Some((_, at)) = self.held.pop_first() else { return };
            let thread = &mut self.list[at];
            self.held_bytes -= thread.last.body.len();
            thread.last = Rc::new(thread.last.bare());
        }
        if self.list.len() <= THREADS_MAX && self.segments <= SEGMENTS_MAX {
            return;
        }
        let mut list = std::mem::take(&mut self.list);
        *self = Self::default();
        list.sort_unstable_by_key(|thread| thread.touched);
        // The older half goes at once, so that the index is built anew rarely; a lone long one stays.
        for thread in list.drain(list.len() / 2..) {
            let at = self.begin(thread);
            let chains: Vec<u128> = self.list[at].ends.keys().copied().collect();
            for chain in chains {
                self.note_end(at, chain);
            }
        }
    }

    fn enter(&mut self, at: usize) {
        let thread = &self.list[at];
        let (shape, age) = (thread.last.shape, thread.touched);
        self.by_shape.entry(shape).or_default().insert(age, at);
        let names = self.by_name.entry(shape).or_default();
        match names.get_mut(&thread.name) {
            Some(ages) => {
                ages.insert(age, at);
            }
            None => {
                names.insert(thread.name.clone(), ByAge::from([(age, at)]));
            }
        }
        if thread.last.held() {
            self.held.insert(age, at);
            self.held_bytes += thread.last.body.len();
        }
        self.segments += thread.last.segs.len();
    }

    fn leave(&mut self, at: usize) {
        let thread = &self.list[at];
        let (shape, age) = (thread.last.shape, thread.touched);
        if let Some(ages) = self.by_shape.get_mut(&shape) {
            ages.remove(&age);
        }
        if let Some(ages) = self.by_name.get_mut(&shape).and_then(|names| names.get_mut(&thread.name)) {
            ages.remove(&age);
        }
        if self.held.remove(&age).is_some() {
            self.held_bytes -= thread.last.body.len();
        }
        self.segments -= thread.last.segs.len();
    }

    fn note_end(&mut self, at: usize, chain: u128) {
        let thread = &self.list[at];
        let shape = thread.last.shape;
        self.ends.insert(key(chain, shape, Some(&thread.name)), at);
        self.ends.insert(key(chain, shape, None), at);
    }

    fn forget_end(&mut self, at: usize, chain: u128) {
        let (shape, name) = (self.list[at].last.shape, self.list[at].name.clone());
        for name in [Some(name.as_str()), None] {
            let key = key(chain, shape, name);
            if self.ends.get(&key) == Some(&at) {
                self.ends.swap_remove(&key);
            }
        }
    }
}
