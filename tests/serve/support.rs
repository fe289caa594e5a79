//! A server of its own for each test, and the simplest client that can speak to it.
#![expect(
    clippy::disallowed_methods,
    reason = "an end-to-end test starts the binary and reads what it wrote"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Two turns of a small scenario, one with a tool.
pub const TWO_TURNS: &str = r#"
format = 1
name = "two"
title = "two turns"
start = "2026-09-01T09:00:00Z"

[[act]]
open.name = "s1"

[[act]]
[act.turn]
say = "What is in the folder?"
replies = [
  { say = "Let me look.", call = "terminal", args = { command = "ls" } },
  { say = "Two files: a.txt and b.txt." },
]

[[act]]
[act.turn]
say = "Thank you."
replies = [{ say = "You are welcome." }]
"#;

/// A scenario of one turn with these replies.
pub fn one_turn(replies: &str) -> String {
    format!(
        "format = 1\nname = \"one\"\nstart = \"2026-09-01T09:00:00Z\"\n[[act]]\nopen.name = \"s1\"\n[[act]]\n\
         [act.turn]\nsay = \"Go on.\"\nreplies = [{replies}]\n"
    )
}

/// A server under way.
pub struct Mock {
    child: Child,
    pub address: String,
    dir: Option<tempfile::TempDir>,
}

/// What a server said when it ended.
pub struct End {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub ledger: String,
    dir: tempfile::TempDir,
}

impl End {
    /// A file that the server wrote.
    pub fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
    /// False when the connection broke before the answer was whole.
    pub whole: bool,
}

impl Mock {
    /// Serves a scenario given as text.
    pub fn start(scenario: &str, arguments: &[&str]) -> Self {
        let fixed = ["serve", "./scenario.toml", "--clock", "virtual", "--ledger", "ledger.jsonl"];
        Self::command("scenario.toml", scenario, &[&fixed, arguments].concat())
    }

    /// Starts the command in a folder that holds one file.
    pub fn command(name: &str, content: &str, arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), content).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_hermes-lab"))
            .args(arguments)
            .env_clear()
            .current_dir(dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let stderr = child.stderr.take().unwrap();
        let mut lines = BufReader::new(stderr);
        lines.read_line(&mut first).unwrap();
        let address = first.split("http://").nth(1).and_then(|rest| rest.split(';').next());
        let address = address.unwrap_or_else(|| panic!("no address in {first:?}")).to_owned();
        child.stderr = Some(lines.into_inner());
        Self { child, address, dir: Some(dir) }
    }

    /// Sends bytes as they are and reads until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that has seen enough may close before everything was sent.
        let _ = stream.write_all(bytes);
        read(&mut stream)
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.raw(&request("POST", path, "content-type: application/json\r\n", body.as_bytes()))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.raw(&request("GET", path, "", b""))
    }

    pub fn chat(&self, body: &Value) -> Answer {
        self.post("/v1/chat/completions", &body.to_string())
    }

    pub fn messages(&self, body: &Value) -> Answer {
        self.post("/v1/messages", &body.to_string())
    }

    pub fn responses(&self, body: &Value) -> Answer {
        self.post("/v1/responses", &body.to_string())
    }

    /// Ends the server as an operator would.
    pub fn stop(self) -> End {
        self.signal("TERM")
    }

    pub fn signal(mut self, signal: &str) -> End {
        let line = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("/bin/sh").args(["-c", &line]).status().unwrap().success());
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = self.child.wait().unwrap().code().expect("it ends by itself");
        let dir = self.dir.take().unwrap();
        let ledger = std::fs::read_to_string(dir.path().join("ledger.jsonl")).unwrap_or_default();
        End { code, stdout, stderr, ledger, dir }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // A test that failed leaves no server behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The events of a stream: name and data; `[DONE]` is a string.
    pub fn events(&self) -> Vec<(String, Value)> {
        let blocks = self.body.split("\n\n").filter(|block| !block.is_empty());
        blocks
            .map(|block| {
                let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
                let data = field("data: ").unwrap_or_else(|| panic!("no data in {block:?}"));
                let value =
                    if data == "[DONE]" { json!("[DONE]") } else { serde_json::from_str(data).unwrap() };
                (field("event: ").unwrap_or_default().to_owned(), value)
            })
            .collect()
    }
}

pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!(
        "{method} {path} HTTP/1.1\r\nhost: lab\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    // A reset is an end like any other.
    let _ = stream.read_to_end(&mut bytes);
    let head_end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(head_end) = head_end else {
        return Answer { status: 0, headers: Vec::new(), body: String::new(), whole: false };
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let body = &bytes[head_end + 4..];
    let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
    let (body, whole) = if chunked {
        unchunk(body)
    } else {
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length: Option<usize> = length.and_then(|(_, value)| value.parse().ok());
        (body.to_vec(), length.is_none_or(|length| length == body.len()))
    };
    let body = String::from_utf8(body).expect("answers are UTF-8");
    Answer { status: status.unwrap_or(0), headers, body, whole }
}

fn unchunk(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    loop {
        let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") else { return (out, false) };
        let size =
            std::str::from_utf8(&bytes[..end]).ok().and_then(|hex| usize::from_str_radix(hex, 16).ok());
        let Some(size) = size else { return (out, false) };
        if size == 0 {
            return (out, true);
        }
        let Some(chunk) = bytes.get(end + 2..end + 2 + size) else { return (out, false) };
        out.extend_from_slice(chunk);
        bytes = &bytes[end + 2 + size + 2..];
    }
}
