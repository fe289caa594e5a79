//! Requests a second of the mock provider, over one connection: script, cache model, ledger and laws included.
#![expect(clippy::unwrap_used, reason = "a bench")]

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hermes_lab::scenario::load;
use hermes_lab::serve::{Options, Server};

/// The allocator of the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SCENARIO: &str = "format = 1\nname = \"bench\"\n[[act]]\nopen.name = \"s1\"\n[[act]]\n[act.turn]\n\
                        say = \"Go on.\"\nreplies = [{ say = \"Done.\" }]\n";

/// A request whose history has so many bytes, about.
fn request(bytes: usize) -> Vec<u8> {
    let mut messages = String::from(r#"{"role":"system","content":"You are a careful assistant."}"#);
    let mut turn = 0;
    while messages.len() < bytes {
        turn += 1;
        let say = "what is it about the light? ".repeat(12);
        let _ = write!(messages, r#",{{"role":"user","content":"{turn}: {say}"}}"#);
        let _ = write!(messages, r#",{{"role":"assistant","content":"{turn}: it shines at night. {say}"}}"#);
    }
    let body = format!(r#"{{"model":"m","messages":[{messages},{{"role":"user","content":"Go on."}}]}}"#);
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: lab\r\ncontent-type: application/json\r\n";
    format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Reads one answer to its end.
fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    buffer.clear();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk).unwrap();
        assert!(count > 0, "the server hung up");
        buffer.extend_from_slice(&chunk[..count]);
        let Some(head) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&buffer[..head]).unwrap();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if buffer.len() == head + 4 + length.parse::<usize>().unwrap() {
            assert!(buffer.starts_with(b"HTTP/1.1 200"));
            return;
        }
    }
}

fn requests(criterion: &mut Criterion) {
    let scenario = load("bench", SCENARIO).unwrap();
    let mut group = criterion.benchmark_group("serve");
    for (name, bytes) in [("small", 0), ("25 KB", 25_000)] {
        let running = Server::start(&scenario, Options { keep_events: false, ..Options::default() }).unwrap();
        let mut stream = TcpStream::connect(running.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        let (request, mut buffer) = (request(bytes), Vec::new());
        group.throughput(Throughput::Elements(1));
        group.bench_function(name, |bench| {
            bench.iter(|| {
                stream.write_all(&request).unwrap();
                answer(&mut stream, &mut buffer);
            });
        });
        drop(stream);
        running.stop();
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
