//! The cache model against the bill, request by request.
//!
//! The lab estimates tokens, the provider counts them; so a prediction is scaled to the billed length of the prompt
//! before classes are compared. What remains is the model's own error: which part of the prompt was read, which written.

use serde::Serialize;

use crate::cache::usage::Parts;
use crate::live::line::Asked;

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its number.
    pub n: u64,
    /// Its run.
    pub run: String,
    /// Who asked.
    pub lane: &'static str,
    /// Tokens of the prompt as the lab estimates them.
    pub estimated: u64,
    /// Prediction, scaled to the billed prompt.
    pub predicted: Parts,
    /// Bill.
    pub billed: Parts,
    /// Read tokens predicted less read tokens billed, in thousandths of the prompt.
    pub off_mille: i64,
    /// True when that is within the tolerance.
    pub agrees: bool,
}

/// Every request that was billed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Thousandths of a prompt by which prediction and bill may differ.
    pub tolerance_mille: u64,
    /// The requests.
    pub rows: Vec<Row>,
    /// Sums of the scaled predictions.
    pub predicted: Parts,
    /// Sums of the bills.
    pub billed: Parts,
    /// Billed prompt tokens a thousand estimated ones.
    pub scale_mille: u64,
    /// Requests where prediction and bill agree.
    pub agreed: usize,
    /// Requests that the lab or the provider could not count.
    pub uncounted: usize,
}

impl Calibration {
    pub(super) fn of(asked: &[Asked], tolerance_mille: u64) -> Self {
        let rows: Vec<Row> = asked.iter().filter_map(|asked| row(asked, tolerance_mille)).collect();
        let sum = |pick: &dyn Fn(&Row) -> Parts| rows.iter().map(pick).fold(Parts::default(), Parts::plus);
        let (predicted, billed) = (sum(&|row| row.predicted), sum(&|row| row.billed));
        let estimated: u64 = rows.iter().map(|row| row.estimated).sum();
        Self {
            tolerance_mille,
            predicted,
            billed,
            scale_mille: billed.prompt() * 1_000 / estimated.max(1),
            agreed: rows.iter().filter(|row| row.agrees).count(),
            uncounted: asked.len() - rows.len(),
            rows,
        }
    }

    /// True when something was counted and everything agrees.
    pub fn holds(&self) -> bool {
        !self.rows.is_empty() && self.agreed == self.rows.len()
    }
}

fn row(asked: &Asked, tolerance: u64) -> Option<Row> {
    let (raw, billed) = (asked.predicted?, asked.billed?);
    let predicted = scaled(&raw, billed.prompt());
    let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
    let off = (signed(predicted.read) - signed(billed.read)) * 1_000 / signed(billed.prompt().max(1));
    Some(Row {
        n: asked.n,
        run: asked.run.clone(),
        lane: asked.lane.word(),
        estimated: raw.prompt(),
        predicted,
        billed,
        off_mille: off,
        agrees: off.unsigned_abs() <= tolerance,
    })
}

/// The same parts of a prompt of another length; what rounding leaves over counts as fresh.
fn scaled(parts: &Parts, prompt: u64) -> Parts {
    let whole = u128::from(parts.prompt().max(1));
    let scale =
        |tokens: u64| u64::try_from(u128::from(tokens) * u128::from(prompt) / whole).unwrap_or(u64::MAX);
    let scaled = Parts {
        fresh: 0,
        read: scale(parts.read),
        write_5m: scale(parts.write_5m),
        write_30m: scale(parts.write_30m),
        write_1h: scale(parts.write_1h),
        output: parts.output,
    };
    // A whole that is read or written stays whole.
    let left = prompt - scaled.prompt();
    if parts.fresh == 0 && parts.write_5m > 0 {
        return Parts { write_5m: scaled.write_5m + left, ..scaled };
    }
    Parts { fresh: left, ..scaled }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Lane;
    use crate::units::Usd;

    fn asked(predicted: Parts, billed: Option<Parts>) -> Asked {
        Asked {
            n: 1,
            run: "seed 0".to_owned(),
            lane: Lane::Main,
            session: "s".to_owned(),
            turn: 1,
            at: 0,
            replayed: false,
            bytes: 1,
            status: 200,
            predicted: Some(predicted),
            billed,
            cost: Usd::ZERO,
        }
    }

    #[test]
    fn a_prediction_is_scaled_to_the_bill_before_classes_are_compared() {
        let predicted = Parts { read: 600, write_5m: 400, ..Parts::default() };
        let billed = Parts { read: 900, write_5m: 600, ..Parts::default() };
        let found = Calibration::of(&[asked(predicted, Some(billed))], 0);
        assert!(found.holds(), "{found:?}");
        assert_eq!((found.rows[0].predicted, found.scale_mille), (billed, 1_500));
    }

    #[test]
    fn a_hit_that_was_not_predicted_is_found() {
        let predicted = Parts { fresh: 1_000, ..Parts::default() };
        let billed = Parts { read: 100, fresh: 900, ..Parts::default() };
        let found = Calibration::of(&[asked(predicted, Some(billed))], 50);
        assert_eq!((found.holds(), found.rows[0].off_mille), (false, -100));
        assert!(Calibration::of(&[asked(predicted, Some(billed))], 100).holds());
    }

    #[test]
    fn what_was_not_billed_is_no_agreement() {
        let found = Calibration::of(&[asked(Parts::default(), None)], 50);
        assert_eq!((found.holds(), found.uncounted), (false, 1));
    }
}
