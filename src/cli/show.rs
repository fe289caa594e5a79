//! `hermes-lab show`

use crate::cli::{Answer, CommandResult, input};
use crate::diag::Diagnostic;
use crate::laws;
use crate::ledger::{self, What};
use crate::report::timeline;

/// Show a ledger as a readable timeline
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The ledger file
    ledger: String,
    /// Only this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only events of this kind; may be repeated
    #[arg(long, value_name = "KIND")]
    kind: Vec<String>,
    /// Only events in which this law, or one of its checks, found something
    #[arg(long, value_name = "LAW")]
    law: Option<String>,
}

pub(super) fn run(args: &Args) -> CommandResult {
    let ledger = ledger::read(&args.ledger, &input::text(&args.ledger)?).map_err(|error| error.0)?;
    for kind in &args.kind {
        if !What::KINDS.contains(&kind.as_str()) {
            return Err(input::unknown("event kind", kind, What::KINDS, "see the README"));
        }
    }
    let verdict = laws::judge(&ledger);
    if let Some(law) = &args.law {
        let known = laws::checks().iter().any(|check| check.id.starts_with(law.as_str()));
        if !known {
            let message = format!(
                "no law or check begins with `{law}`; expected L1 to L5, or a check such as L1.prefix-extends"
            );
            return Err(Diagnostic::of_file("--law", message).into());
        }
    }
    let filter =
        timeline::Filter { session: args.session.as_deref(), kinds: &args.kind, law: args.law.as_deref() };
    Ok(Answer::holds(timeline::text(&ledger, &verdict, &filter)))
}
