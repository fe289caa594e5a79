//! Agent sessions in blocks: how much of each request an earlier one of the session had sent.
//!
//! Block ids are local to a session. A request is the leading part of an earlier one and new blocks behind it; so a
//! session is a tree, kept as branches, and a request is a path through it. Nothing is kept per block.

use serde_json::Value;

use super::trace::{Faults, TOKENS_MAX, count, lines};

/// One request of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Request {
    /// Start, in milliseconds from the start of the session.
    pub at: u64,
    /// Prompt tokens.
    pub tokens: u64,
    /// Blocks of the prompt.
    pub blocks: u64,
    /// The earlier request that shares most, by number.
    pub base: Option<usize>,
    /// Blocks shared with it.
    pub shared: u64,
}

/// One session.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Session {
    /// Its name.
    pub id: String,
    /// Tokens of a full block.
    pub block_tokens: u64,
    /// Its requests in order of time.
    pub requests: Vec<Request>,
}

/// Tokens read under four rules, and all tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Read {
    /// Blocks shared with the request before.
    pub before: u64,
    /// Blocks shared with any earlier request.
    pub earlier: u64,
    /// The same, lost when unused for more than 300 seconds.
    pub ttl_300: u64,
    /// The same, lost when unused for more than 3,600 seconds.
    pub ttl_3600: u64,
    /// Prompt tokens.
    pub tokens: u64,
}

impl Read {
    /// The sum of two.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            before: self.before + other.before,
            earlier: self.earlier + other.earlier,
            ttl_300: self.ttl_300 + other.ttl_300,
            ttl_3600: self.ttl_3600 + other.ttl_3600,
            tokens: self.tokens + other.tokens,
        }
    }
}

/// A run of blocks that grew without a fork.
#[derive(Debug, Clone, Default)]
struct Branch {
    tip: u64,
    /// Furthest block and instant of each use that still says something: blocks fall, instants rise.
    uses: Vec<(u64, u64)>,
}

/// Branch and the block at which the path leaves it.
type Path = Vec<(usize, u64)>;

impl Session {
    /// What each rule reads of this session.
    pub fn read(&self) -> Read {
        let mut branches: Vec<Branch> = Vec::new();
        let mut paths: Vec<Path> = Vec::new();
        let mut read = Read::default();
        for request in &self.requests {
            let mut path: Path = Vec::new();
            for &(branch, end) in request.base.map_or(&[][..], |base| &paths[base]) {
                path.push((branch, end.min(request.shared)));
                if end >= request.shared {
                    break;
                }
            }
            path.retain(|(_, end)| *end > 0);
            let tokens = |blocks: u64| (blocks * self.block_tokens).min(request.tokens);
            read.tokens += request.tokens;
            read.earlier += tokens(request.shared);
            read.ttl_300 += tokens(alive(&branches, &path, request.at, 300_000));
            read.ttl_3600 += tokens(alive(&branches, &path, request.at, 3_600_000));
            if request.blocks > request.shared {
                match path.last_mut() {
                    Some((branch, end)) if branches[*branch].tip == *end => {
                        branches[*branch].tip = request.blocks;
                        *end = request.blocks;
                    }
                    _ => {
                        branches.push(Branch { tip: request.blocks, uses: Vec::new() });
                        path.push((branches.len() - 1, request.blocks));
                    }
                }
            }
            read.before += tokens(paths.last().map_or(0, |before| common(before, &path)));
            for &(branch, end) in &path {
                let uses = &mut branches[branch].uses;
                while uses.last().is_some_and(|(furthest, _)| *furthest <= end) {
                    uses.pop();
                }
                uses.push((end, request.at));
            }
            paths.push(path);
        }
        read
    }
}

/// Leading blocks of a path that were used within the last `ttl` milliseconds.
fn alive(branches: &[Branch], path: &Path, at: u64, ttl: u64) -> u64 {
    let mut upto = 0;
    for &(branch, end) in path {
        let uses = &branches[branch].uses;
        let recent = uses.partition_point(|(_, used)| at.saturating_sub(*used) > ttl);
        let furthest = uses.get(recent).map_or(0, |(furthest, _)| *furthest);
        upto = upto.max(furthest.min(end));
        if furthest < end {
            break;
        }
    }
    upto
}

/// Leading blocks that two paths share.
fn common(one: &Path, other: &Path) -> u64 {
    let mut upto = 0;
    for (a, b) in one.iter().zip(other) {
        if a.0 != b.0 {
            break;
        }
        upto = a.1.min(b.1);
        if a.1 != b.1 {
            break;
        }
    }
    upto
}

/// Seconds as a JSON number, in whole milliseconds.
fn millis(seconds: &Value) -> Option<u64> {
    let seconds = seconds.as_f64().filter(|seconds| (0.0..1e12).contains(seconds))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be small and positive"
    )]
    let millis = (seconds * 1_000.0).round() as u64;
    Some(millis)
}

/// Reads packed sessions, one a line.
pub(super) fn packed(text: &str, faults: &mut Faults<'_>) -> Vec<Session> {
    let mut sessions = Vec::new();
    let mut ids = std::collections::BTreeMap::new();
    for (line, value) in lines(text) {
        if faults.full() {
            break;
        }
        let value = match value {
            Ok(value) => value,
            Err(error) => {
                faults.at(line, format!("not JSON: {error}"));
                continue;
            }
        };
        let id = value.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        if id.is_empty() {
            faults.at(line, "`id` is missing");
        } else if let Some(first) = ids.insert(id.clone(), line) {
            faults.at(line, format!("session `{id}` was in line {first} already"));
        }
        let Some(block_tokens) = count(&value, "block_size", line, faults).filter(|size| *size > 0) else {
            continue;
        };
        let Some(rows) = value.get("requests").and_then(Value::as_array) else {
            faults.at(line, "`requests` is missing; expected a list");
            continue;
        };
        let mut session = Session { id, block_tokens, requests: Vec::with_capacity(rows.len()) };
        for (index, row) in rows.iter().enumerate() {
            match packed_request(row, &session) {
                Ok(request) => session.requests.push(request),
                Err(why) => {
                    faults.at(line, format!("request {index}: {why}"));
                    break;
                }
            }
        }
        sessions.push(session);
    }
    sessions
}

fn packed_request(row: &Value, session: &Session) -> Result<Request, String> {
    let whole = |place: usize, what: &str| {
        let number = row.get(place).and_then(Value::as_u64).filter(|number| *number <= TOKENS_MAX);
        number.ok_or_else(|| format!("{what} is {}", row.get(place).unwrap_or(&Value::Null)))
    };
    let at = row.get(0).and_then(millis).ok_or("its time is no number of seconds from 0 on")?;
    let tokens = whole(1, "its input")?;
    whole(2, "its output")?;
    let (shared, blocks) = (whole(4, "its shared blocks")?, whole(5, "its blocks")?);
    let base = row.get(3).and_then(Value::as_i64).ok_or("its base is no number")?;
    let base = usize::try_from(base).ok();
    if let Some(before) = session.requests.last().filter(|before| before.at > at) {
        return Err(format!("time runs backwards: {at} ms after {} ms", before.at));
    }
    let most = match base {
        None => 0,
        Some(base) => session.requests.get(base).ok_or("its base is no earlier request")?.blocks,
    };
    if shared > most.min(blocks) {
        return Err(format!("{shared} shared blocks of {blocks}, where its base has {most}"));
    }
    // The last block may be partly filled.
    if blocks > tokens.div_ceil(session.block_tokens) {
        return Err(format!("{blocks} blocks for {tokens} tokens"));
    }
    Ok(Request { at, tokens, blocks, base, shared })
}

/// Reads one session in its original form.
pub(super) fn original(value: &Value, faults: &mut Faults<'_>) -> Vec<Session> {
    let id = value.get("id").and_then(Value::as_str).unwrap_or("session").to_owned();
    let block_tokens = value.get("block_size").and_then(Value::as_u64).filter(|size| *size > 0).unwrap_or(64);
    let mut session = Session { id, block_tokens, requests: Vec::new() };
    // A node is a block behind its predecessor; it remembers the request that brought it.
    let mut nodes: std::collections::BTreeMap<(usize, u64), (usize, usize)> =
        std::collections::BTreeMap::new();
    for (index, row) in value.get("requests").and_then(Value::as_array).into_iter().flatten().enumerate() {
        // Requests of a subagent hang below their parent and belong to another conversation.
        if row.get("requests").is_some() {
            continue;
        }
        let fault = |faults: &mut Faults<'_>, what: String| faults.at(1, format!("request {index}: {what}"));
        let Some(at) = row.get("t").and_then(millis) else {
            fault(faults, "`t` is no number of seconds from 0 on".to_owned());
            break;
        };
        if session.requests.last().is_some_and(|before| before.at > at) {
            fault(faults, format!("time runs backwards at {at} ms"));
        }
        let Some(tokens) = row.get("in").and_then(Value::as_u64).filter(|tokens| *tokens <= TOKENS_MAX)
        else {
            fault(faults, format!("`in` is {}", row.get("in").unwrap_or(&Value::Null)));
            break;
        };
        let ids: Option<Vec<u64>> = row
            .get("hash_ids")
            .and_then(Value::as_array)
            .map(|ids| ids.iter().filter_map(Value::as_u64).collect());
        let Some(ids) = ids.filter(|ids| Some(ids.len()) == row["hash_ids"].as_array().map(Vec::len)) else {
            fault(faults, "`hash_ids` is no list of whole numbers".to_owned());
            break;
        };
        let number = session.requests.len();
        let (mut at_node, mut shared, mut base) = (0, 0, None);
        for (position, id) in ids.iter().enumerate() {
            let fresh = nodes.len() + 1;
            let (node, first) = *nodes.entry((at_node, *id)).or_insert((fresh, number));
            if first != number {
                (shared, base) = (position as u64 + 1, Some(first));
            }
            at_node = node;
        }
        session.requests.push(Request { at, tokens, blocks: ids.len() as u64, base, shared });
    }
    vec![session]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(requests: &[(u64, u64, Option<usize>, u64)]) -> Session {
        let requests = requests.iter().map(|&(at, blocks, base, shared)| Request {
            at: at * 1_000,
            tokens: blocks * 64,
            blocks,
            base,
            shared,
        });
        Session { id: "s".to_owned(), block_tokens: 64, requests: requests.collect() }
    }

    #[test]
    fn an_idle_hour_loses_what_the_short_lifetime_held() {
        let read = session(&[(0, 10, None, 0), (300, 12, Some(0), 10), (601, 14, Some(1), 12)]).read();
        assert_eq!(read.before, (10 + 12) * 64);
        assert_eq!(read.ttl_300, 10 * 64, "301 seconds without use are too long");
        assert_eq!(read.ttl_3600, 22 * 64);
    }

    #[test]
    fn going_back_to_an_older_branch_shares_less_with_the_request_before() {
        let read = session(&[(0, 10, None, 0), (1, 8, Some(0), 5), (2, 11, Some(0), 10)]).read();
        assert_eq!(read.earlier, (5 + 10) * 64);
        assert_eq!(read.before, (5 + 5) * 64);
    }
}
