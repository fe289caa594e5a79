//! The iteration budget of one turn.

/// Iterations that a turn may use; some tools give theirs back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationBudget {
    max: Option<u64>,
    used: u64,
}

impl IterationBudget {
    /// A fresh budget; `None` is without limit.
    pub fn new(max: Option<u64>) -> Self {
        Self { max, used: 0 }
    }

    /// Takes one iteration; false when none is left.
    pub fn consume(&mut self) -> bool {
        let granted = self.left() != Some(0);
        self.used += u64::from(granted);
        granted
    }

    /// Gives one iteration back.
    pub fn refund(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    /// Iterations used so far.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Iterations left; `None` is without limit.
    pub fn left(&self) -> Option<u64> {
        self.max.map(|max| max.saturating_sub(self.used))
    }
}

/// A usable warning ratio: a number strictly between 0 and 1, also given as text.
pub fn warning_ratio(value: &serde_json::Value) -> Option<f64> {
    let number = match value {
        serde_json::Value::Number(number) => number.as_f64()?,
        serde_json::Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (number > 0.0 && number < 1.0).then_some(number)
}
