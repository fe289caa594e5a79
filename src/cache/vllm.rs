//! vLLM V1: full blocks in a hash chain, and a queue of free ones that is also the order of eviction.
//!
//! A block is found by the digest of everything up to its end. A request takes the blocks that it finds out of the
//! queue and new ones from its head; when it ends it gives them back last first, so that tails leave before heads.
//! A prompt that is known whole still computes its last block. Source: the engine's design page and block manager.
//!
//! Unlike the other models this one touches every block of a prompt, as the engine does.

use std::collections::BTreeMap;

use crate::cache::pages::Pages;
use crate::cache::space::{Space, Spaces};
use crate::cache::{Observed, Outcome, PrefixCache, Refusal};
use crate::wire::Chain;
use crate::world::Millis;

type BlockId = u32;
type Key = (Space, Chain, u64);

/// No block.
const NONE: BlockId = BlockId::MAX;

/// One block of the device.
#[derive(Debug, Clone)]
struct Block {
    users: u32,
    key: Option<Key>,
    previous: BlockId,
    next: BlockId,
}

/// A request that still runs.
#[derive(Debug, Clone)]
struct Running {
    end: Millis,
    blocks: Vec<BlockId>,
    /// Full blocks that the answer completes: place among the request's blocks and key.
    completes: Vec<(usize, Key)>,
}

/// The blocks of one device.
#[derive(Debug, Clone)]
pub struct Blocks {
    block_size: u64,
    device: Vec<Block>,
    head: BlockId,
    tail: BlockId,
    free: u64,
    /// Blocks by content; the same content may lie in several.
    cached: BTreeMap<Key, Vec<BlockId>>,
    running: Vec<Running>,
    spaces: Spaces,
}

impl Blocks {
    /// A device of so many blocks of so many tokens.
    pub fn new(block_size: u64, capacity_blocks: u64) -> Self {
        let capacity = BlockId::try_from(capacity_blocks).unwrap_or(NONE - 1).clamp(1, NONE - 1);
        let blocks = (0..capacity)
            .map(|id| Block {
                users: 0,
                key: None,
                previous: id.checked_sub(1).unwrap_or(NONE),
                next: if id + 1 == capacity { NONE } else { id + 1 },
            })
            .collect();
        Self {
            block_size: block_size.max(1),
            device: blocks,
            head: 0,
            tail: capacity - 1,
            free: u64::from(capacity),
            cached: BTreeMap::new(),
            running: Vec::new(),
            spaces: Spaces::default(),
        }
    }

    /// Ids of the free blocks in the order in which they will be taken.
    pub fn free_queue(&self) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut next = self.head;
        while next != NONE {
            ids.push(next);
            next = self.device[next as usize].next;
        }
        ids
    }

    fn unlink(&mut self, id: BlockId) {
        let Block { previous, next, .. } = self.device[id as usize];
        match previous {
            NONE => self.head = next,
            _ => self.device[previous as usize].next = next,
        }
        match next {
            NONE => self.tail = previous,
            _ => self.device[next as usize].previous = previous,
        }
        self.free -= 1;
    }

    fn give_back(&mut self, id: BlockId) {
        let block = &mut self.device[id as usize];
        block.users -= 1;
        if block.users > 0 {
            return;
        }
        block.previous = self.tail;
        block.next = NONE;
        match self.tail {
            NONE => self.head = id,
            tail => self.device[tail as usize].next = id,
        }
        self.tail = id;
        self.free += 1;
    }

    /// Takes the block at the head of the queue; what it held is forgotten.
    fn take(&mut self) -> BlockId {
        let id = self.head;
        self.unlink(id);
        self.device[id as usize].users = 1;
        let key = self.device[id as usize].key.take();
        if let Some((key, copies)) = key.and_then(|key| Some((key, self.cached.get_mut(&key)?))) {
            copies.retain(|copy| *copy != id);
            if copies.is_empty() {
                self.cached.remove(&key);
            }
        }
        id
    }

    fn register(&mut self, id: BlockId, key: Key) {
        self.device[id as usize].key = Some(key);
        self.cached.entry(key).or_default().push(id);
    }

    fn finish(&mut self, running: Running) {
        for (place, key) in running.completes {
            self.register(running.blocks[place], key);
        }
        for id in running.blocks.into_iter().rev() {
            self.give_back(id);
        }
    }

    fn finish_until(&mut self, at: Millis) {
        while let Some(first) = self.first_to_end().filter(|&first| self.running[first].end <= at) {
            let running = self.running.remove(first);
            self.finish(running);
        }
    }

    fn first_to_end(&self) -> Option<usize> {
        (0..self.running.len()).min_by_key(|&index| (self.running[index].end, index))
    }

    fn find(&self, space: Space, pages: &Pages) -> Vec<BlockId> {
        let copy =
            |page| self.cached.get(&(space, pages.digest(page), page)).and_then(|copies| copies.first());
        (0..pages.findable()).map_while(|page| copy(page).copied()).collect()
    }
}

impl PrefixCache for Blocks {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        self.finish_until(at);
        let total = request.total();
        let prompt = Pages::of_prompt(request, self.block_size);
        let space = self.spaces.number(&[request.model, request.key], std::iter::empty());
        let whole = prompt.clone().with_output(request);
        // A request that finds no room waits until others have ended.
        let mut found;
        loop {
            found = self.find(space, &prompt);
            let queued = found.iter().filter(|id| self.device[**id as usize].users == 0).count() as u64;
            if whole.all() - found.len() as u64 <= self.free - queued {
                break;
            }
            let Some(first) = self.first_to_end() else { return Ok(Outcome::read_of(0, total)) };
            let running = self.running.remove(first);
            self.finish(running);
        }
        for &id in &found {
            if self.device[id as usize].users == 0 {
                self.unlink(id);
            }
            self.device[id as usize].users += 1;
        }
        let hits = found.len() as u64;
        let mut blocks = found;
        for page in hits..whole.all() {
            let id = self.take();
            if page < prompt.full() {
                self.register(id, (space, prompt.digest(page), page));
            }
            blocks.push(id);
        }
        let completes = (prompt.full()..whole.full())
            .filter_map(|page| Some((usize::try_from(page).ok()?, (space, whole.digest(page), page))))
            .collect();
        let running = Running { end: request.end(at), blocks, completes };
        if running.end <= at {
            self.finish(running);
        } else {
            self.running.push(running);
        }
        Ok(Outcome::read_of(hits * self.block_size, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;

    #[test]
    fn the_queue_of_the_design_pages_example_comes_out() {
        let mut blocks = Blocks::new(4, 10);
        let first = prompt("a:10 b:2 c:3").answered("o", 4).lasting(500);
        assert_eq!(first.read(&mut blocks, 0), 0);
        assert_eq!(prompt("a:10 x:4").lasting(200).read(&mut blocks, 400), 8);
        blocks.finish_until(650);
        assert_eq!(blocks.free_queue(), [7, 8, 9, 4, 3, 2, 6, 5, 1, 0]);
        assert_eq!(prompt("a:10 b:2 d:17").lasting(200).read(&mut blocks, 700), 12);
        assert_eq!(blocks.free_queue(), [6, 5], "blocks 0, 1, 2 were found; 7, 8, 9, 4, 3 were taken");
    }

    #[test]
    fn a_prompt_larger_than_the_device_is_computed_and_leaves_no_trace() {
        let mut blocks = Blocks::new(16, 4);
        assert_eq!(prompt("a:65").read(&mut blocks, 0), 0);
        assert_eq!(blocks.free_queue(), [0, 1, 2, 3]);
        assert_eq!(prompt("a:64").read(&mut blocks, 1), 0);
        assert_eq!(prompt("a:64").read(&mut blocks, 2), 48, "the last block is always computed");
    }
}
