//! Hostile input: no panic, bounded memory, every line read or counted.

use std::io::Read;

use hermes_lab::audit::read::{self, Format};
use hermes_lab::audit::{Auditor, Options};
use proptest::prelude::*;

use super::support::{Session, Wire, audit_bytes};

fn seed(format: usize) -> Vec<u8> {
    let wires = [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Gemini];
    let session = Session {
        wire: wires[format % 4],
        name: "s".into(),
        salt: 3,
        tools: 3,
        steps: vec![1, 0, 2],
        folded: 5,
    };
    session.log(&[], true).iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn other_seed(format: Format) -> Vec<u8> {
    let text = match format {
        Format::ClaudeCode => {
            r#"{"type":"user","uuid":"a","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"x"}}
{"type":"assistant","uuid":"b","sessionId":"s","requestId":"r","message":{"model":"claude-sonnet-4-5","content":[{"type":"text","text":"y"}],"usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":3}}}
"#
        }
        Format::Codex => {
            r#"{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{"type":"token_count","info":{"total_token_usage":{"input_tokens":9},"last_token_usage":{"input_tokens":9,"cached_input_tokens":3}}}}
"#
        }
        Format::Har => {
            r#"{"log":{"entries":[{"request":{"url":"https://a.example/v1/messages","method":"POST","postData":{"text":"{\"model\":\"x\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}"}},"response":{"status":200,"content":{"text":"{\"usage\":{\"input_tokens\":1}}"}}}]}}"#
        }
        Format::Otel => {
            r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"5"}}]}]}]}]}"#
        }
        Format::Ledger => {
            "{\"ledger\":1,\"lab\":\"0.1.0\"}\n{\"n\":1,\"at\":0,\"session\":\"s\",\"what\":{}}\n"
        }
        _ => r#"[{"conversations":[{"from":"human","value":"x"}]}]"#,
    };
    text.as_bytes().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_bytes_never_panic_and_every_line_is_accounted_for(
        kind in 0_usize..4, cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        cut in any::<prop::sample::Index>(), forced in prop::option::of(0_usize..11),
    ) {
        let mut bytes = seed(kind);
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let end = cut.index(bytes.len()) + 1;
        bytes.truncate(end);
        let (audit, reading) = audit_bytes(bytes, forced.map(|at| Format::ALL[at]));
        if forced.is_none() {
            prop_assert_eq!(audit.requests.len() as u64 + reading.skipped_count + reading.other, reading.pieces);
        }
    }

    #[test]
    fn mutated_bytes_of_other_formats_never_panic(
        format in 0_usize..12, cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
    ) {
        let mut bytes = other_seed(Format::ALL[format]);
        for (at, byte) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        audit_bytes(bytes, None);
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut auditor = Auditor::new(Options::default());
        // Noise that begins as an archive does is an error of the source, which the command tells.
        let _ = read::read("noise", Box::new(std::io::Cursor::new(bytes)), None, &mut auditor);
    }
}

#[test]
fn deep_nesting_duplicate_keys_and_numbers_out_of_range_are_borne() {
    let deep = format!("{{\"messages\": {}{}}}\n", "[".repeat(50_000), "]".repeat(50_000));
    let (audit, reading) = audit_bytes(deep.into_bytes(), None);
    assert_eq!((audit.requests.len(), reading.skipped_count), (0, 1));
    let odd = r#"{"timestamp": 1e400, "request": {"model": "a", "model": "b", "messages": [], "messages": [{"role": "user", "content": "\ud800 x"}]}, "response": {"usage": {"prompt_tokens": 99999999999999999999999, "prompt_tokens_details": {"cached_tokens": -1}}}}
{"timestamp": -5, "request": {"model": "b", "messages": [{"role": "user", "content": "\ud800 x"}, {"role": 7}]}, "response": {"usage": {"prompt_tokens": 18446744073709551615, "prompt_tokens_details": {"cached_tokens": 18446744073709551615}}}}
"#;
    let (audit, reading) = audit_bytes(odd.as_bytes().to_vec(), None);
    assert_eq!((audit.requests.len(), reading.skipped_count), (2, 0));
}

/// A source without end: one byte, over and over.
struct Endless(u64);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(usize::try_from(self.0).unwrap_or(usize::MAX));
        buffer[..count].fill(b'a');
        self.0 -= count as u64;
        Ok(count)
    }
}

#[test]
fn an_archive_that_swells_to_one_endless_line_is_given_up() {
    let mut auditor = Auditor::new(Options::default());
    let reading = read::read("bomb", Box::new(Endless(3 << 30)), None, &mut auditor).unwrap();
    assert_eq!(reading.skipped_count, 1);
    assert!(reading.skipped[0].reason.contains("without end"));
    assert!(reading.bytes < 2 << 30);
}

#[test]
fn a_cut_off_archive_gives_what_it_holds() {
    use std::io::Write as _;
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gz.write_all(&seed(1)).unwrap();
    let mut bytes = gz.finish().unwrap();
    bytes.truncate(bytes.len() / 2);
    let (audit, reading) = audit_bytes(bytes, None);
    assert!(!audit.requests.is_empty());
    assert!(reading.skipped_count <= 1);
}
