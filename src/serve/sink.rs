//! Where events go: judged at once, counted into a digest, written to a file, kept in memory.
//!
//! The file grows under a neighbour's name and gets its own when the run ends, so that a ledger is whole or not there.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the ledger of a server grows in a file"
)]

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::laws::{Finding, Judge};
use crate::ledger::{Event, Header, Ledger, Name, hex};

/// Bytes that are gathered before the file is written to.
const BUFFER: usize = 1 << 20;

/// Where events go.
#[derive(Debug)]
pub(super) struct Sink {
    pub(super) judge: Judge,
    header: Header,
    hasher: Sha256,
    line: Vec<u8>,
    file: Option<LedgerFile>,
    kept: Option<Vec<Event>>,
    count: u64,
    findings: u64,
}

#[derive(Debug)]
struct LedgerFile {
    path: PathBuf,
    part: PathBuf,
    out: BufWriter<File>,
    /// The first failure; later events are not written.
    failed: Option<io::Error>,
}

impl Sink {
    pub(super) fn new(header: Header, path: Option<&Path>, keep: bool) -> io::Result<Self> {
        let file = path.map(LedgerFile::open).transpose()?;
        let mut sink = Self {
            judge: Judge::default(),
            header,
            hasher: Sha256::new(),
            line: Vec::new(),
            file,
            kept: keep.then(Vec::new),
            count: 0,
            findings: 0,
        };
        let header = sink.header.clone();
        sink.write(&header);
        Ok(sink)
    }

    /// Takes in the next event; answers with what is wrong with it.
    pub(super) fn take(&mut self, event: Event) -> Vec<Finding> {
        self.count += 1;
        self.write(&event);
        let found = self.judge.take(&event);
        self.findings += found.len() as u64;
        if let Some(kept) = &mut self.kept {
            kept.push(event);
        }
        found
    }

    fn write(&mut self, value: &impl serde::Serialize) {
        self.line.clear();
        serde_json::to_writer(&mut self.line, value).expect("a ledger line has no keys that are not texts");
        self.line.push(b'\n');
        self.hasher.update(&self.line);
        if let Some(file) = &mut self.file {
            file.write(&self.line);
        }
    }

    /// Events so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Findings so far.
    pub(super) fn findings(&self) -> u64 {
        self.findings
    }

    /// Digest of the ledger so far.
    pub(super) fn digest(&self) -> String {
        hex(&self.hasher.clone().finalize())
    }

    /// Forgets a conversation that goes on in full.
    pub(super) fn forget(&mut self, session: &Name, lane: crate::ledger::Lane) {
        self.judge.forget(session, lane);
    }

    /// Hands what was gathered to the file.
    pub(super) fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            file.flush();
        }
    }

    /// The ledger, as far as it was kept, and why its file could not be written, if so.
    pub(super) fn finish(self) -> (Ledger, Option<io::Error>) {
        let failed = self.file.and_then(LedgerFile::finish);
        (Ledger { header: self.header, events: self.kept.unwrap_or_default() }, failed)
    }
}

impl LedgerFile {
    fn open(path: &Path) -> io::Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let out = BufWriter::with_capacity(BUFFER, File::create(&part)?);
        Ok(Self { path: path.to_owned(), part, out, failed: None })
    }

    fn write(&mut self, line: &[u8]) {
        if self.failed.is_none()
            && let Err(error) = self.out.write_all(line)
        {
            tracing::error!(%error, "the ledger cannot be written any more");
            self.failed = Some(error);
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.out.flush()
        {
            tracing::error!(%error, "the ledger cannot be written any more");
            self.failed = Some(error);
        }
    }

    fn finish(mut self) -> Option<io::Error> {
        self.flush();
        if self.failed.is_some() {
            return self.failed;
        }
        std::fs::rename(&self.part, &self.path).err()
    }
}
