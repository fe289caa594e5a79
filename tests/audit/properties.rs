//! Any clean session gives no finding; any mutation gives exactly its cause at its request; two give both.

use hermes_lab::audit::Verdict;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{Mutation, Session, Wire, audit, causes};

fn wire() -> impl Strategy<Value = Wire> {
    prop_oneof![Just(Wire::Anthropic), Just(Wire::Chat), Just(Wire::Responses), Just(Wire::Gemini)]
}

fn session() -> impl Strategy<Value = Session> {
    (wire(), 1_u64..10_000, 3_usize..7, prop::collection::vec(0_usize..4, 2..8), any::<u64>()).prop_map(
        |(wire, salt, tools, steps, folded)| Session {
            wire,
            name: format!("s{salt}"),
            salt,
            tools,
            steps,
            folded,
        },
    )
}

fn marked_session() -> impl Strategy<Value = Session> {
    session().prop_map(|session| Session { wire: Wire::Anthropic, ..session })
}

fn long_session() -> impl Strategy<Value = Session> {
    (session(), prop::collection::vec(0_usize..4, 5..9), any::<bool>()).prop_map(
        |(session, steps, marked)| Session {
            wire: if marked { Wire::Anthropic } else { Wire::Chat },
            steps,
            ..session
        },
    )
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop::sample::select(vec![
        Mutation::Clock,
        Mutation::Id,
        Mutation::Memory,
        Mutation::ToolOrder,
        Mutation::ToolAdded,
        Mutation::ToolSchema,
        Mutation::KeyOrder,
        Mutation::ResultCut,
        Mutation::UserEdit,
        Mutation::ModelSwitch,
        Mutation::Thinking,
        Mutation::ResultOrder,
        Mutation::ReasoningDropped,
        Mutation::BlockMoved,
    ])
}

fn quiet(lines: &[Value]) -> Result<(), TestCaseError> {
    let audit = audit(lines);
    prop_assert_eq!(audit.requests.len(), lines.len());
    prop_assert_eq!(causes(&audit), vec![]);
    for judged in &audit.requests {
        prop_assert!(judged.faults.is_empty(), "{:?}", judged.faults);
        prop_assert!(matches!(judged.verdict, Verdict::Extends | Verdict::ColdStart), "{:?}", judged);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, max_global_rejects: 65_536, ..ProptestConfig::default() })]

    #[test]
    fn a_clean_session_gives_no_finding(session in session(), named in any::<bool>()) {
        quiet(&session.log(&[], named))?;
    }

    #[test]
    fn bare_bodies_of_a_clean_session_give_no_finding(session in session()) {
        let lines: Vec<Value> = (0..session.count()).map(|turn| session.request(turn, &[])).collect();
        quiet(&lines)?;
    }

    #[test]
    fn interleaved_sessions_retries_and_title_calls_are_no_breaks(
        first in session(), second in session(), retry in 0_usize..8, named in any::<bool>(),
    ) {
        prop_assume!(first.salt != second.salt);
        let (a, b) = (first.log(&[], named), second.log(&[], named));
        let mut lines = Vec::new();
        for turn in 0..a.len().max(b.len()) {
            for (place, log) in [&a, &b].into_iter().enumerate() {
                if let Some(line) = log.get(turn) {
                    lines.push(line.clone());
                    if turn == retry {
                        lines.push(line.clone());
                    }
                    if turn == 0 && place == 0 {
                        let mut title = json!({"timestamp": line["timestamp"], "request": {
                            "model": "gpt-4o-mini", "messages": [{"role": "user", "content": "Name this conversation in five words"}],
                        }});
                        if named {
                            title["session_id"] = line["session_id"].clone();
                        }
                        lines.push(title);
                    }
                }
            }
        }
        quiet(&lines)?;
    }

    #[test]
    fn a_rewind_is_no_break(session in session(), to in 0_usize..4, named in any::<bool>()) {
        let mut lines = session.log(&[], named);
        let to = to.min(session.count() - 1);
        let mut back = lines[to].clone();
        back["timestamp"] = lines[lines.len() - 1]["timestamp"].clone();
        lines.push(back);
        quiet(&lines)?;
    }

    #[test]
    fn one_mutation_gives_its_cause_at_its_request(
        session in session(), mutation in mutation(), turn in 1_usize..7, named in any::<bool>(),
    ) {
        let turn = turn.min(session.count() - 1);
        prop_assume!(session.takes(mutation, turn));
        let audit = audit(&session.log(&[(mutation, turn)], named));
        prop_assert_eq!(causes(&audit), vec![(turn, vec![mutation.cause()])], "{:?}", &audit.requests[turn]);
    }

    #[test]
    fn a_compaction_is_planned_and_breaks_once(session in long_session(), named in any::<bool>()) {
        let turn = session.count() - 1;
        prop_assert!(session.takes(Mutation::Compacted, turn));
        let audit = audit(&session.log(&[(Mutation::Compacted, turn)], named));
        prop_assert_eq!(causes(&audit), vec![(turn, vec![Mutation::Compacted.cause()])], "{:?}", &audit.requests[turn]);
        prop_assert_eq!(audit.requests[turn].verdict, Verdict::PlannedBreak);
    }

    #[test]
    fn a_pause_is_named_and_is_no_finding(session in marked_session(), turn in 1_usize..7, named in any::<bool>()) {
        let turn = turn.min(session.count() - 1);
        let audit = audit(&session.log(&[(Mutation::Idle, turn)], named));
        prop_assert_eq!(causes(&audit), vec![(turn, vec![Mutation::Idle.cause()])]);
        prop_assert_eq!(audit.requests[turn].verdict, Verdict::Expired);
        prop_assert!(!audit.requests[turn].finding());
    }

    #[test]
    fn two_mutations_in_one_request_give_both(
        session in session(), one in mutation(), two in mutation(), turn in 2_usize..7, named in any::<bool>(),
    ) {
        prop_assume!(one.cause() != two.cause());
        // A block that moves into the very results that are reordered is not two faults at two places.
        prop_assume!(![one, two].contains(&Mutation::BlockMoved) || ![one, two].contains(&Mutation::ResultOrder));
        let turn = turn.min(session.count() - 1);
        prop_assume!(session.takes(one, turn) && session.takes(two, turn));
        let audit = audit(&session.log(&[(one, turn), (two, turn)], named));
        let mut both = vec![one.cause(), two.cause()];
        both.sort_unstable();
        prop_assert_eq!(causes(&audit), vec![(turn, both)], "{:?}", &audit.requests[turn]);
    }

    #[test]
    fn a_read_that_the_bill_shows_is_never_called_a_miss(session in marked_session(), turn in 1_usize..7) {
        let turn = turn.min(session.count() - 1);
        let mut lines = session.log(&[(Mutation::Idle, turn)], true);
        for (at, line) in lines.iter_mut().enumerate() {
            let read = if at == 0 { 0 } else { 4000 + 300 * (at as u64 - 1) };
            let written = if at == 0 { 4000 } else { 300 };
            line["response"] = json!({"usage": {
                "input_tokens": 2, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": 9,
            }});
        }
        quiet(&lines)?;
    }

    #[test]
    fn a_providers_miss_on_a_stable_prefix_is_never_blamed_on_the_prompt(session in marked_session(), turn in 1_usize..7) {
        let turn = turn.min(session.count() - 1);
        let mut lines = session.log(&[], true);
        for (at, line) in lines.iter_mut().enumerate() {
            let total = 4000 + 300 * at as u64;
            let read = if at == 0 || at == turn { 0 } else { total - 300 };
            line["response"] = json!({"usage": {
                "input_tokens": 2, "cache_read_input_tokens": read, "cache_creation_input_tokens": total - read, "output_tokens": 9,
            }});
        }
        let audit = audit(&lines);
        prop_assert_eq!(audit.requests[turn].verdict, Verdict::EvictedOrUnexplained);
        prop_assert!(audit.requests.iter().all(|judged| !judged.finding()));
    }
}
