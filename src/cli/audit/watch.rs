//! Following a growing log: a line a request as it comes, the summary at the end.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

use crate::audit::read::{Format, LINE_MAX, LogReader};
use crate::audit::summary::summarise;
use crate::audit::{Auditor, Options};
use crate::cli::audit::{Args, coded};
use crate::cli::{CommandResult, input};
use crate::diag::Diagnostic;
use crate::report::audit as report;

/// Time between two looks at the file.
const LOOK: std::time::Duration = std::time::Duration::from_millis(300);

pub(super) fn run(args: &Args, format: Option<Format>) -> CommandResult {
    let [path] = args.paths.as_slice() else {
        return Err(Diagnostic::of_file("--watch", "follows one file").into());
    };
    let fault = |error: std::io::Error| Diagnostic::of_file(path, input::reason(&error));
    let mut file = std::fs::File::open(path).map_err(fault)?;
    let mut auditor = Auditor::new(Options { strict_bytes: args.strict_bytes, by_name: false, fold: false });
    let mut log = LogReader::new(path, format);
    let mut rest: Vec<u8> = Vec::new();
    let (mut line, mut told, mut place, mut quiet) = (0, 0, 0_u64, std::time::Duration::ZERO);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let count = file.read(&mut chunk).map_err(fault)?;
        if count == 0 {
            let length = file.metadata().map_err(fault)?.len();
            if length < place {
                // Begun anew: read it from the start.
                place = 0;
                rest.clear();
                file.seek(SeekFrom::Start(0)).map_err(fault)?;
                continue;
            }
            if args.until_quiet.is_some_and(|limit| quiet.as_secs() >= limit) {
                break;
            }
            std::thread::sleep(LOOK);
            quiet += LOOK;
            continue;
        }
        quiet = std::time::Duration::ZERO;
        place += count as u64;
        rest.extend_from_slice(&chunk[..count]);
        let mut start = 0;
        while let Some(end) = memchr::memchr(b'\n', &rest[start..]) {
            line += 1;
            log.piece(line, &rest[start..start + end], &mut auditor);
            start += end + 1;
        }
        rest.drain(..start);
        if rest.len() > LINE_MAX {
            rest.clear();
            log.fault(line + 1, "a line that is too long to be read");
        }
        told = tell(&auditor, told, args.redact);
    }
    if !rest.is_empty() {
        log.piece(line + 1, &rest, &mut auditor);
        tell(&auditor, told, args.redact);
    }
    let readings = [log.end(&mut auditor)];
    let audit = auditor.finish();
    let summary = summarise(&audit);
    let view = report::View { audit: &audit, readings: &readings, summary: &summary, redact: args.redact };
    Ok(coded(report::summary(&view), &summary))
}

/// Writes the new judgements; how many have been told.
fn tell(auditor: &Auditor, told: usize, redact: bool) -> usize {
    let mut out = std::io::stdout().lock();
    for (judged, name) in auditor.since(told) {
        // A reader that closed its end has seen enough.
        let _ = out.write_all(report::line(judged, name, redact).as_bytes());
    }
    let _ = out.flush();
    auditor.count()
}
