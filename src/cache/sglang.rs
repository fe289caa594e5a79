//! SGLang: a radix tree over pages, given up leaf by leaf.
//!
//! A lookup that ends inside a node splits it, and refreshes what it touched, the lower half included. When room is
//! wanted, leaves go until as much as the request needs is gone, not merely what is lacking. Prompt and answer enter
//! the tree; paths of running requests are locked. Source: the engine's radix cache and its eviction strategies.

use std::collections::{BTreeMap, BTreeSet};

use crate::cache::pages::Pages;
use crate::cache::space::{Space, Spaces};
use crate::cache::{Observed, Outcome, PrefixCache, Refusal};
use crate::policy::Eviction;
use crate::wire::Chain;
use crate::world::Millis;

type NodeId = usize;
/// What leaves first has the smallest.
type Priority = (i64, i64);

#[derive(Debug, Clone, Default)]
struct Node {
    parent: NodeId,
    children: BTreeMap<Chain, NodeId>,
    /// First page.
    start: u64,
    /// End and digest of each run of pages.
    runs: Vec<(u64, Chain)>,
    used: i64,
    created: i64,
    hits: i64,
    locks: u32,
}

impl Node {
    fn end(&self) -> u64 {
        self.runs.last().map_or(self.start, |(end, _)| *end)
    }

    /// Pages of this node that a request shares, as the end of the shared part.
    fn shared(&self, pages: &Pages, limit: u64) -> u64 {
        let mut at = self.start;
        for &(end, chain) in &self.runs {
            if at >= limit || pages.digest(at) != chain {
                break;
            }
            at = end.min(limit);
        }
        at
    }
}

#[derive(Debug, Clone)]
struct Running {
    end: Millis,
    root: NodeId,
    last: NodeId,
    whole: Pages,
}

/// The tree of one device.
#[derive(Debug, Clone)]
pub struct Radix {
    page: u64,
    capacity: u64,
    eviction: Eviction,
    nodes: Vec<Node>,
    unused: Vec<NodeId>,
    leaves: BTreeSet<(Priority, NodeId)>,
    roots: BTreeMap<Space, NodeId>,
    /// Pages in the tree.
    held: u64,
    tick: i64,
    running: Vec<Running>,
    spaces: Spaces,
}

impl Radix {
    /// A device of so many tokens in pages of `page_size`.
    pub fn new(page_size: u64, capacity_tokens: u64, eviction: Eviction) -> Self {
        let page = page_size.max(1);
        Self {
            page,
            capacity: capacity_tokens / page,
            eviction,
            nodes: Vec::new(),
            unused: Vec::new(),
            leaves: BTreeSet::new(),
            roots: BTreeMap::new(),
            held: 0,
            tick: 0,
            running: Vec::new(),
            spaces: Spaces::default(),
        }
    }

    fn now(&mut self) -> i64 {
        self.tick += 1;
        self.tick
    }

    fn add(&mut self, node: Node) -> NodeId {
        if let Some(id) = self.unused.pop() {
            self.nodes[id] = node;
            return id;
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn priority(&self, id: NodeId) -> Priority {
        let node = &self.nodes[id];
        match self.eviction {
            Eviction::Lru => (node.used, 0),
            Eviction::Lfu => (node.hits, node.used),
            Eviction::Fifo => (node.created, 0),
            Eviction::Mru => (-node.used, 0),
            Eviction::Filo => (-node.created, 0),
            Eviction::Slru => (i64::from(node.hits >= 2), node.used),
        }
    }

    /// Changes a node and files it anew among the leaves that may go.
    fn change(&mut self, id: NodeId, change: impl FnOnce(&mut Node)) {
        let before = self.priority(id);
        self.leaves.remove(&(before, id));
        change(&mut self.nodes[id]);
        let node = &self.nodes[id];
        // A root holds no page and never leaves.
        if node.children.is_empty() && node.locks == 0 && !node.runs.is_empty() {
            self.leaves.insert((self.priority(id), id));
        }
    }

    /// Splits a node at a page; answers the upper half.
    fn split(&mut self, id: NodeId, at: u64) -> NodeId {
        let now = self.now();
        let node = &mut self.nodes[id];
        let cut = node.runs.partition_point(|(end, _)| *end < at);
        let (_, chain) = node.runs[cut];
        let mut upper: Vec<(u64, Chain)> = node.runs.drain(..cut).collect();
        upper.push((at, chain));
        if node.runs[0].0 == at {
            node.runs.remove(0);
        }
        let first = node.runs[0].1;
        let above = Node {
            parent: node.parent,
            children: BTreeMap::from([(first, id)]),
            start: node.start,
            runs: upper,
            used: now,
            created: now,
            hits: node.hits,
            locks: node.locks,
        };
        node.start = at;
        let (parent, key) = (above.parent, above.runs[0].1);
        let above = self.add(above);
        self.nodes[id].parent = above;
        self.nodes[parent].children.insert(key, above);
        above
    }

    /// Walks down as far as the pages are known, up to `limit`; answers the last node.
    fn walk(&mut self, root: NodeId, pages: &Pages, limit: u64, counts: bool) -> NodeId {
        let now = self.now();
        let mut at = root;
        loop {
            let from = self.nodes[at].end();
            if from >= limit {
                return at;
            }
            let Some(&child) = self.nodes[at].children.get(&pages.digest(from)) else { return at };
            self.change(child, |node| {
                node.used = now;
                node.hits += i64::from(counts);
            });
            let shared = self.nodes[child].shared(pages, limit);
            if shared < self.nodes[child].end() {
                return self.split(child, shared);
            }
            at = child;
        }
    }

    /// Makes sure that pages up to `limit` are in the tree; answers the node that ends there.
    fn insert(&mut self, root: NodeId, pages: &Pages, limit: u64) -> NodeId {
        let at = self.walk(root, pages, limit, false);
        let from = self.nodes[at].end();
        if from >= limit {
            return at;
        }
        let now = self.now();
        let runs = pages.runs(from, limit);
        let key = runs[0].1;
        let leaf = Node { parent: at, start: from, runs, used: now, created: now, ..Node::default() };
        let leaf = self.add(leaf);
        self.change(leaf, |_| {});
        self.change(at, |node| {
            node.children.insert(key, leaf);
        });
        self.held += limit - from;
        leaf
    }

    fn lock(&mut self, from: NodeId, locked: bool) {
        let mut at = from;
        loop {
            self.change(at, |node| {
                node.locks = if locked { node.locks + 1 } else { node.locks.saturating_sub(1) };
            });
            let parent = self.nodes[at].parent;
            if parent == at {
                return;
            }
            at = parent;
        }
    }

    /// Gives up leaves until so many pages are gone or none may go.
    fn evict(&mut self, wanted: u64) {
        let mut gone = 0;
        while gone < wanted {
            let Some((_, leaf)) = self.leaves.pop_first() else { return };
            let node = std::mem::take(&mut self.nodes[leaf]);
            gone += node.end() - node.start;
            self.held -= node.end() - node.start;
            self.unused.push(leaf);
            let key = node.runs[0].1;
            self.change(node.parent, |parent| {
                parent.children.remove(&key);
            });
        }
    }

    fn make_room(&mut self, wanted: u64) -> bool {
        if self.capacity.saturating_sub(self.held) < wanted {
            self.evict(wanted);
        }
        self.capacity.saturating_sub(self.held) >= wanted
    }

    fn finish(&mut self, running: &Running) {
        self.lock(running.last, false);
        let full = running.whole.full();
        let lacking = full.saturating_sub(self.nodes[running.last].end());
        if self.make_room(lacking) {
            self.insert(running.root, &running.whole, full);
        }
    }

    fn finish_until(&mut self, at: Millis) {
        while let Some(first) = self.first_to_end().filter(|&first| self.running[first].end <= at) {
            let running = self.running.remove(first);
            self.finish(&running);
        }
    }

    fn first_to_end(&self) -> Option<usize> {
        (0..self.running.len()).min_by_key(|&index| (self.running[index].end, index))
    }

    fn root(&mut self, space: Space) -> NodeId {
        if let Some(&root) = self.roots.get(&space) {
            return root;
        }
        let root = self.add(Node::default());
        self.nodes[root].parent = root;
        self.roots.insert(space, root);
        root
    }
}

impl PrefixCache for Radix {
    fn observe(&mut self, at: Millis, request: &Observed<'_>) -> Result<Outcome, Refusal> {
        self.finish_until(at);
        let total = request.total();
        let prompt = Pages::of_prompt(request, self.page);
        let space = self.spaces.number(&[request.model, request.key], std::iter::empty());
        let root = self.root(space);
        // A request that finds no room waits until others have ended.
        let (last, hits) = loop {
            let last = self.walk(root, &prompt, prompt.findable(), true);
            let hits = self.nodes[last].end();
            self.lock(last, true);
            if self.make_room(prompt.all() - hits) {
                break (last, hits);
            }
            self.lock(last, false);
            let Some(first) = self.first_to_end() else { return Ok(Outcome::read_of(0, total)) };
            let running = self.running.remove(first);
            self.finish(&running);
        };
        let end = self.insert(root, &prompt, prompt.full());
        self.lock(end, true);
        self.lock(last, false);
        let running = Running { end: request.end(at), root, last: end, whole: prompt.with_output(request) };
        if running.end <= at {
            self.finish(&running);
        } else {
            self.running.push(running);
        }
        Ok(Outcome::read_of(hits * self.page, total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::testing::prompt;

    #[test]
    fn pages_round_a_match_down() {
        let mut radix = Radix::new(16, 10_000, Eviction::Lru);
        assert_eq!(prompt("p:137 x:20").read(&mut radix, 0), 0);
        assert_eq!(prompt("p:137 y:30").read(&mut radix, 1), 128);
        assert_eq!(prompt("p:137 x:20").read(&mut radix, 2), 144, "the last token is always computed");
    }

    #[test]
    fn a_running_request_is_never_evicted_and_a_later_one_waits() {
        let mut radix = Radix::new(1, 100, Eviction::Lru);
        assert_eq!(prompt("a:80").lasting(1_000).read(&mut radix, 0), 0);
        assert_eq!(prompt("b:60").read(&mut radix, 10), 0);
        assert_eq!(prompt("b:60 c:5").read(&mut radix, 20), 60);
        assert_eq!(prompt("z:101").read(&mut radix, 30), 0, "what never fits is computed");
    }

    #[test]
    fn strategies_choose_different_leaves() {
        // Reading `a` again splits it, and a half that came of a split counts as new.
        let survivors = [
            (Eviction::Lru, "a", 40),
            (Eviction::Fifo, "a", 39),
            (Eviction::Lfu, "a", 40),
            (Eviction::Mru, "b", 40),
        ];
        for (eviction, survivor, read) in survivors {
            let mut radix = Radix::new(1, 100, eviction);
            for (at, label) in [(0, "a"), (1, "b"), (2, "a"), (3, "c")] {
                prompt(&format!("{label}:40")).read(&mut radix, at);
            }
            assert_eq!(prompt(&format!("{survivor}:40 q:1")).read(&mut radix, 9), read, "{eviction:?}");
        }
    }
}
