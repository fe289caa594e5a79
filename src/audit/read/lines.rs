//! Bytes to lines, or to the elements of the array that a JSON document holds; compressed sources are opened.

use std::io::{self, BufReader, Read};

use crate::audit::json;

/// Longest line or element that is read, in bytes. Providers take requests of at most 32 MB, images included; what
/// is longer than this is counted as unreadable.
pub const LINE_MAX: usize = 16 << 20;

/// What a source may swell to beyond its lines: a line that never ends is given up after so many bytes.
const ENDLESS: u64 = 1 << 30;

/// Bytes asked for at a time.
const CHUNK: usize = 1 << 18;

/// One line or element.
pub(super) enum Piece<'a> {
    /// Its number from 1, and its bytes.
    Whole(u64, &'a [u8]),
    /// A line that is not read, and why.
    Fault(u64, String),
}

/// Keys under which documents hold their records.
const ARRAYS: &[&str] = &[
    "entries",
    "resourceSpans",
    "resource_spans",
    "scopeSpans",
    "spans",
    "data",
    "observations",
    "traces",
    "requests",
    "logs",
    "records",
    "generations",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Unknown,
    Lines,
    /// Inside an array: elements follow.
    Elements,
    Done,
}

/// Lines or elements of a source.
pub(super) struct Pieces {
    input: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
    mode: Mode,
    number: u64,
    bytes: u64,
}

impl Pieces {
    /// Opens a source, also a compressed one.
    pub(super) fn open(mut input: Box<dyn Read>) -> io::Result<Self> {
        let mut head = Vec::new();
        input.by_ref().take(4).read_to_end(&mut head)?;
        let rest = io::Cursor::new(head.clone()).chain(input);
        let input: Box<dyn Read> = match head.as_slice() {
            [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(rest))),
            [0x28, 0xb5, 0x2f, 0xfd] => {
                let decoder = ruzstd::decoding::StreamingDecoder::new(BufReader::new(rest));
                Box::new(decoder.map_err(|error| io::Error::other(error.to_string()))?)
            }
            _ => Box::new(rest),
        };
        Ok(Self {
            input,
            buffer: vec![0; CHUNK],
            start: 0,
            end: 0,
            ended: false,
            mode: Mode::Unknown,
            number: 0,
            bytes: 0,
        })
    }

    /// Bytes read so far, decompressed.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next piece.
    pub(super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        if self.mode == Mode::Unknown {
            self.choose()?;
        }
        match self.mode {
            Mode::Lines => self.line(),
            Mode::Elements => self.element(),
            Mode::Unknown | Mode::Done => Ok(None),
        }
    }

    /// Reads more; false at the end of the source.
    fn fill(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 && self.end - self.start < self.start {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            let larger = (self.buffer.len() + self.buffer.len() / 2).max(self.end + CHUNK);
            self.buffer.resize(larger, 0);
        }
        let end = self.end;
        loop {
            match self.input.read(&mut self.buffer[end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(count) => {
                    self.end += count;
                    self.bytes += count as u64;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A damaged or cut-off archive ends here; what came before is read.
                Err(error) if self.bytes > 0 && error.kind() != io::ErrorKind::WouldBlock => {
                    self.ended = true;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn view(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Lines or one document: a document begins with an array, holds a known array, or goes on after its first line.
    fn choose(&mut self) -> io::Result<()> {
        while self.view().len() < CHUNK / 4 && self.fill()? {}
        let first = json::skip_space(self.view(), 0);
        let first = if self.view()[first.min(self.view().len())..].starts_with(b"\xef\xbb\xbf") {
            first + 3
        } else {
            first
        };
        self.mode = Mode::Lines;
        match self.view().get(first) {
            Some(b'[') => {
                self.start += first + 1;
                self.mode = Mode::Elements;
                Ok(())
            }
            Some(b'{') => {
                if !self.more_lines(first) && self.descend(first) {
                    self.mode = Mode::Elements;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// True when the first line is a whole value and others follow.
    fn more_lines(&self, first: usize) -> bool {
        let view = self.view();
        let Some(end) = memchr::memchr(b'\n', view) else { return false };
        let whole = json::skip_value(&view[..end], first).is_ok();
        whole && json::skip_space(view, end) < view.len()
    }

    /// Goes into a document as far as its array of records; false when it is no such document.
    fn descend(&mut self, first: usize) -> bool {
        let mut at = first;
        for _ in 0..2 {
            let view = self.view();
            let Ok(mut fields) = json::Fields::of(view, at) else { return false };
            let mut inner = None;
            while let Ok(Some((key, value))) = fields.next_key() {
                let opens = view.get(value);
                if ARRAYS.iter().any(|name| name.as_bytes() == key) && opens == Some(&b'[') {
                    self.start += value + 1;
                    return true;
                }
                if key == b"log" && opens == Some(&b'{') {
                    inner = Some(value);
                    break;
                }
                let Ok(end) = json::skip_value(view, value) else { break };
                fields.resume(end);
            }
            match inner {
                Some(value) => at = value,
                None => return false,
            }
        }
        false
    }

    fn line(&mut self) -> io::Result<Option<Piece<'_>>> {
        let mut seen = 0;
        let mut dropped = 0_u64;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.view()[seen..]) {
                let (from, to) = (self.start, self.start + seen + found);
                self.start = to + 1;
                self.number += 1;
                if dropped > 0 {
                    return Ok(Some(Piece::Fault(self.number, too_long())));
                }
                if self.number == 1 && self.pretty(from, to) {
                    return self.document(from);
                }
                return Ok(Some(Piece::Whole(self.number, &self.buffer[from..to])));
            }
            seen = self.view().len();
            if seen > LINE_MAX {
                dropped += seen as u64;
                self.start = self.end;
                seen = 0;
                if dropped > ENDLESS {
                    self.mode = Mode::Done;
                    self.number += 1;
                    let reason = "a line without end; reading stops here".to_owned();
                    return Ok(Some(Piece::Fault(self.number, reason)));
                }
            }
            if !self.fill()? {
                self.mode = Mode::Done;
                if dropped > 0 {
                    self.number += 1;
                    return Ok(Some(Piece::Fault(self.number, too_long())));
                }
                if self.start == self.end {
                    return Ok(None);
                }
                self.number += 1;
                let (from, to) = (self.start, self.end);
                self.start = self.end;
                return Ok(Some(Piece::Whole(self.number, &self.buffer[from..to])));
            }
        }
    }

    /// True when the first line opens a value that goes on behind it.
    fn pretty(&self, from: usize, to: usize) -> bool {
        let line = &self.buffer[from..to];
        let first = json::skip_space(line, 0);
        line.get(first) == Some(&b'{')
            && json::skip_value(line, first) == Err(json::JsonFault::CutOff)
            && line.len() < 4096
    }

    /// One document over many lines, as one piece.
    fn document(&mut self, from: usize) -> io::Result<Option<Piece<'_>>> {
        self.start = from;
        while self.view().len() <= LINE_MAX && self.fill()? {}
        let view = self.view();
        let first = json::skip_space(view, 0);
        let Ok(end) = json::skip_value(view, first) else {
            // No document after all: the first line is simply cut off.
            let end = memchr::memchr(b'\n', view).unwrap_or(view.len());
            let line = self.start..self.start + end;
            self.start = (self.start + end + 1).min(self.end);
            return Ok(Some(Piece::Whole(1, &self.buffer[line])));
        };
        let span = self.start + first..self.start + end;
        self.start = span.end;
        Ok(Some(Piece::Whole(1, &self.buffer[span])))
    }

    fn element(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            let view = self.view();
            let mut at = json::skip_space(view, 0);
            if view.get(at) == Some(&b',') {
                at = json::skip_space(view, at + 1);
            }
            match view.get(at) {
                Some(b']') => {
                    self.mode = Mode::Done;
                    return Ok(None);
                }
                Some(_) => {
                    let scalar = !matches!(view[at], b'{' | b'[' | b'"');
                    match json::skip_value(view, at) {
                        Ok(end) if !scalar || end < view.len() || self.ended => {
                            self.number += 1;
                            let span = self.start + at..self.start + end;
                            self.start = span.end;
                            return Ok(Some(Piece::Whole(self.number, &self.buffer[span])));
                        }
                        Err(json::JsonFault::CutOff) if view.len() > LINE_MAX => {
                            self.mode = Mode::Done;
                            self.number += 1;
                            return Ok(Some(Piece::Fault(self.number, too_long())));
                        }
                        Ok(_) | Err(json::JsonFault::CutOff) if !self.ended => {}
                        Ok(_) => {}
                        Err(fault) => {
                            self.mode = Mode::Done;
                            self.number += 1;
                            return Ok(Some(Piece::Fault(self.number, fault.to_string())));
                        }
                    }
                }
                None => {}
            }
            let ended = self.ended;
            if !self.fill()? && ended {
                self.mode = Mode::Done;
                return Ok(None);
            }
        }
    }
}

fn too_long() -> String {
    format!("longer than {} MB", LINE_MAX >> 20)
}
