//! Generated conversations: the runtime's own transcript and its own planner of markers, with texts of a given size.
//!
//! Sizes are exact: a filler text is as long as makes the sent message the wanted number of tokens. Nothing is drawn
//! at random.

use serde_json::json;

use crate::agent::breakpoints::{Placer, Route};
use crate::agent::compress::estimate::text_tokens;
use crate::agent::transcript::{Transcript, wire_text};
use crate::cache::{Facts, Observed};
use crate::policy::Breakpoints;
use crate::wire::{Level, Row, Segment, ToolCall};
use crate::world::{Millis, clock};

use super::ledgers::facts;

/// The shape of a conversation. Sizes are in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// What is special about it.
    pub says: &'static str,
    /// Tool definitions, 150 tokens each.
    pub tools: usize,
    /// Part of the system prompt that is the same in every session.
    pub static_tokens: u64,
    /// The rest of it.
    pub system_tokens: u64,
    /// Turns of a session.
    pub turns: usize,
    /// Rounds of tool calls in a turn.
    pub rounds: usize,
    /// Calls of a round, all at once.
    pub calls: usize,
    /// The user's words, a call, a result, the answer.
    pub words: [u64; 4],
    /// Pause before a turn, in seconds.
    pub pause: i64,
    /// Pause before every fifth turn, in seconds.
    pub long_pause: i64,
    /// Sessions, one after the other, with the same tools and static part.
    pub sessions: usize,
}

const USUAL: Shape = Shape {
    name: "usual",
    says: "eight tools, one call a round, pauses of half a minute",
    tools: 8,
    static_tokens: 2_500,
    system_tokens: 1_500,
    turns: 20,
    rounds: 2,
    calls: 1,
    words: [60, 40, 400, 150],
    pause: 30,
    long_pause: 30,
    sessions: 2,
};

/// The sessions over which layouts are compared.
pub const SHAPES: [Shape; 4] = [
    USUAL,
    Shape {
        name: "wide-turns",
        says: "24 calls at once in every turn",
        rounds: 1,
        calls: 24,
        turns: 10,
        ..USUAL
    },
    Shape { name: "long-gaps", says: "every fifth turn after twelve minutes", long_pause: 720, ..USUAL },
    Shape { name: "many-tools", says: "sixty tools in the table", tools: 60, ..USUAL },
];

/// One hundred turns of two hundred tokens behind a system prompt of four thousand.
pub const CLASSIC: Shape = Shape {
    name: "classic",
    says: "100 turns, 4,000 tokens of system prompt, 200 tokens a turn",
    tools: 0,
    static_tokens: 0,
    system_tokens: 4_000,
    turns: 100,
    rounds: 0,
    calls: 0,
    words: [100, 0, 0, 100],
    pause: 30,
    long_pause: 30,
    sessions: 1,
};

/// A request of a generated conversation.
#[derive(Debug)]
pub struct Sent<'a> {
    /// When.
    pub at: Millis,
    /// Turn, from 1.
    pub turn: usize,
    /// As a cache sees it.
    pub observed: Observed<'a>,
    /// Tokens that the model will have produced.
    pub output: u64,
}

/// Text of so many tokens.
fn filler(tokens: u64, seed: usize) -> String {
    let length = usize::try_from(tokens * 4).unwrap_or(0);
    let words = format!("word {seed} of a text that says nothing ");
    words.chars().cycle().take(length).collect()
}

/// A row whose sent form is so many tokens long, if its frame leaves room.
fn sized(tokens: u64, seed: usize, row: impl Fn(String) -> Row) -> Row {
    // An empty message is sent as something else, so the frame is taken around one letter.
    let frame = wire_text(&row("x".to_owned()), false).len() as u64 - 1;
    let room = (tokens * 4).saturating_sub(frame).max(4);
    let mut text = filler(room.div_ceil(4), seed);
    text.truncate(usize::try_from(room).unwrap_or(0));
    // The wire trims a text, so that it may not end in a blank.
    if text.ends_with(' ') {
        text.pop();
        text.push('.');
    }
    row(text)
}

fn tool(number: usize) -> Segment {
    let text =
        json!({ "name": format!("tool_{number}"), "description": filler(130, number), "parameters": {} });
    Segment::new(Level::Tools, text.to_string())
}

/// Plays a conversation under these knobs and shows every request.
pub fn play(shape: &Shape, model: &str, knobs: &Breakpoints, mut see: impl FnMut(&Sent<'_>)) {
    let route = Route {
        provider: "anthropic".to_owned(),
        base_url: "https://api.anthropic.com".to_owned(),
        api_mode: "anthropic_messages".to_owned(),
        model: model.to_owned(),
        ..Route::default()
    };
    let tools: Vec<Segment> = (0..shape.tools).map(tool).collect();
    let fixed = filler(shape.static_tokens, 0);
    let mut at: Millis = 0;
    for session in 0..shape.sessions {
        let rest = filler(shape.system_tokens, session + 1);
        let system = format!("{fixed}{rest}");
        let static_prefix = (!fixed.is_empty()).then_some(fixed.as_str());
        let mut transcript = Transcript::default();
        transcript.set_prefix(&tools, &[&fixed, &rest], text_tokens);
        let mut known: Vec<Facts> = Vec::new();
        let mut placer = Placer::default();
        for turn in 0..shape.turns {
            at += clock::SECOND * if turn % 5 == 4 { shape.long_pause } else { shape.pause };
            let seed = session * 1_000 + turn;
            transcript.push(sized(shape.words[0], seed, Row::user), text_tokens);
            for round in 0..=shape.rounds {
                let answers = round == shape.rounds;
                known.extend(
                    (known.len()..transcript.segment_count()).map(|index| facts(transcript.segment(index))),
                );
                let marks = placer.positions(&transcript, &system, static_prefix, &route, knobs);
                let output = if answers { shape.words[3] } else { shape.words[1] * shape.calls as u64 };
                let observed = Observed {
                    chains: transcript.chains(),
                    sizes: transcript.sizes(),
                    marks: &marks,
                    facts: &known,
                    model,
                    ..Observed::default()
                };
                see(&Sent { at, turn: turn + 1, observed, output });
                at += 4 * clock::SECOND;
                if answers {
                    transcript.push(sized(shape.words[3], seed, Row::assistant), text_tokens);
                    continue;
                }
                let id = |call: usize| format!("call_{seed}_{round}_{call}");
                let arguments =
                    json!({ "what": filler(shape.words[1].saturating_sub(20), seed) }).to_string();
                let calls = (0..shape.calls)
                    .map(|call| ToolCall::new(id(call), "tool_0", arguments.clone()))
                    .collect();
                transcript.push(Row::calls("", calls), text_tokens);
                for call in 0..shape.calls {
                    let result = |text: String| Row::result(id(call), "tool_0", text);
                    transcript.push(sized(shape.words[2], seed + call, result), text_tokens);
                }
                at += 2 * clock::SECOND;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classic_session_grows_by_two_hundred_tokens_a_turn() {
        let mut sizes = Vec::new();
        play(&CLASSIC, "claude-sonnet-4-6", &Breakpoints::default(), |sent| {
            sizes.push(sent.observed.total());
        });
        assert_eq!(sizes.len(), 100);
        assert_eq!(sizes[0], 4_100);
        assert!(sizes.windows(2).all(|pair| pair[1] - pair[0] == 200), "{sizes:?}");
    }
}
