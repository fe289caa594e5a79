//! What was answered, kept so that nothing is paid for twice.
//!
//! A directory holds `live.json` (what is played, and with whom), `cassette.jsonl` (every answer, in the form that
//! `record` writes) and `accounts.jsonl` (see `money`). Each line is on the disk before the run goes on. A line that
//! was cut off by the end of a process is dropped; the request that it belonged to is then sent again, and its
//! account stays unsettled.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a journal grows in files, line by line"
)]

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::diag::Diagnostic;
use crate::live::money::Account;
use crate::serve::cassette::{self, CassetteHeader, Exchange, FORMAT};

/// What a run must have in common with the one that it goes on from.
pub(super) type Identity = BTreeMap<&'static str, String>;

/// The files of a run.
pub(super) struct Journal {
    cassette: File,
    accounts: File,
    /// Answers of an earlier run, by key, in order.
    kept: BTreeMap<String, VecDeque<Exchange>>,
    number: u64,
}

impl Journal {
    /// Begins a journal, or takes one up; gives back the accounts of the earlier run.
    ///
    /// # Errors
    /// When the directory holds a run that is not to go on, or another one, or cannot be written.
    pub(super) fn open(
        dir: &Path,
        upstream: String,
        identity: &Identity,
        resume: bool,
    ) -> Result<(Self, Vec<Account>), Diagnostic> {
        let failed = |path: &Path, error: &io::Error| {
            Diagnostic::of_file(&path.to_string_lossy(), format!("cannot be used: {error}"))
        };
        std::fs::create_dir_all(dir).map_err(|error| failed(dir, &error))?;
        let (about, tape, books) =
            (dir.join("live.json"), dir.join("cassette.jsonl"), dir.join("accounts.jsonl"));
        let begun = about.exists();
        if begun && !resume {
            let message = "there is a run in this directory already";
            return Err(Diagnostic::of_file(&dir.to_string_lossy(), message)
                .with_help("--resume goes on with it; --out names another directory"));
        }
        if begun {
            same(&about, identity)?;
        } else {
            let text = serde_json::to_string_pretty(identity).expect("texts only") + "\n";
            write_whole(&about, &text).map_err(|error| failed(&about, &error))?;
        }
        let header = CassetteHeader {
            cassette: FORMAT,
            lab: env!("CARGO_PKG_VERSION").to_owned(),
            upstream,
            hashed: false,
        };
        let header = serde_json::to_string(&header).expect("texts and numbers") + "\n";
        let text = whole_lines(&tape, &header).map_err(|error| failed(&tape, &error))?;
        let earlier = cassette::read(&tape.to_string_lossy(), &text)?;
        let text = whole_lines(&books, "").map_err(|error| failed(&books, &error))?;
        let mut accounts = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let account = serde_json::from_str(line).map_err(|error| {
                Diagnostic::at_line(&books.to_string_lossy(), index + 1, format!("no account: {error}"))
            })?;
            accounts.push(account);
        }
        let append =
            |path: &PathBuf| OpenOptions::new().append(true).open(path).map_err(|error| failed(path, &error));
        let number = earlier.exchanges.len() as u64;
        let mut kept: BTreeMap<String, VecDeque<Exchange>> = BTreeMap::new();
        for exchange in earlier.exchanges {
            kept.entry(exchange.key.clone()).or_default().push_back(exchange);
        }
        Ok((Self { cassette: append(&tape)?, accounts: append(&books)?, kept, number }, accounts))
    }

    /// The earlier answer to a request; each is given once, in the order in which they came.
    pub(super) fn take(&mut self, key: &str) -> Option<Exchange> {
        self.kept.get_mut(key)?.pop_front()
    }

    /// Keeps an answer, under the next number.
    pub(super) fn keep(&mut self, exchange: Exchange) -> io::Result<Exchange> {
        self.number += 1;
        let exchange = Exchange { n: self.number, ..exchange };
        append(&mut self.cassette, &exchange)?;
        Ok(exchange)
    }

    /// Keeps a line of the accounts.
    pub(super) fn account(&mut self, account: &Account) -> io::Result<()> {
        append(&mut self.accounts, account)
    }
}

fn append(file: &mut File, value: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_data()
}

/// The whole lines of a file that is made when it is not there; what hangs over is cut off.
fn whole_lines(path: &Path, first: &str) -> io::Result<String> {
    let mut text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    let torn = whole < text.len();
    text.truncate(whole);
    if text.is_empty() {
        text.push_str(first);
    }
    if torn || whole == 0 {
        write_whole(path, &text)?;
    }
    Ok(text)
}

/// Writes a file in one step.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    std::fs::write(&part, text)?;
    std::fs::rename(&part, path)
}

/// Refuses to go on with another run.
fn same(about: &Path, identity: &Identity) -> Result<(), Diagnostic> {
    let file = about.to_string_lossy();
    let text = std::fs::read_to_string(about)
        .map_err(|error| Diagnostic::of_file(&file, format!("cannot be read: {error}")))?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| Diagnostic::at_line(&file, error.line(), format!("not JSON: {error}")))?;
    for (name, now) in identity {
        let then = value[name].as_str().unwrap_or_default();
        if then != now {
            let message = format!("the run in this directory has {name} `{then}`, this one `{now}`");
            return Err(Diagnostic::of_file(&file, message).with_help("--out names another directory"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(model: &str) -> Identity {
        BTreeMap::from([("model", model.to_owned())])
    }

    fn exchange(key: &str) -> Exchange {
        Exchange {
            n: 0,
            at: 1,
            path: "/v1/messages".to_owned(),
            key: key.to_owned(),
            request: Value::Null,
            parts: Vec::new(),
            status: 200,
            content_type: String::new(),
            retry_after: None,
            head_ms: 0,
            reply: Vec::new(),
            cut: false,
            usage: Value::Null,
        }
    }

    #[test]
    fn a_journal_is_taken_up_where_it_was_even_after_a_torn_line() {
        let dir = tempfile::tempdir().unwrap();
        let open = |resume| Journal::open(dir.path(), "u".to_owned(), &identity("m"), resume);
        let (mut journal, accounts) = open(false).unwrap();
        assert!(accounts.is_empty());
        journal.keep(exchange("a")).unwrap();
        journal.keep(exchange("a")).unwrap();
        journal.account(&Account { attempt: 1, settled: false, pico: 5 }).unwrap();
        journal.cassette.write_all(b"{\"n\":3,\"at\"").unwrap();
        drop(journal);
        assert!(open(false).err().unwrap().message.contains("already"));
        let (mut journal, accounts) = open(true).unwrap();
        assert_eq!(accounts.len(), 1);
        assert_eq!([1, 2], [journal.take("a").unwrap().n, journal.take("a").unwrap().n]);
        assert!(journal.take("a").is_none());
        assert_eq!(journal.keep(exchange("b")).unwrap().n, 3);
        let other = Journal::open(dir.path(), "u".to_owned(), &identity("n"), true).err().unwrap();
        assert!(other.message.contains("has model `m`, this one `n`"), "{other}");
    }
}
