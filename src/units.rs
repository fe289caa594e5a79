//! Quantities with their unit in the type.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Serialize, Serializer};

/// Money in millionths of a millionth of a US dollar.
///
/// A dollar per million tokens is a million of these per token, and the finest published price, 0.003625 dollars per
/// million, is 3,625: every price is a whole number and sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Usd(i128);

/// Parts of a dollar in one unit of [`Usd`].
const PER_DOLLAR: i128 = 1_000_000_000_000;

impl Usd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// So many tokens at a price per token in millionths of a millionth of a dollar.
    pub fn of_tokens(tokens: u64, price: i64) -> Self {
        Self(i128::from(tokens) * i128::from(price))
    }

    /// The amount that a decimal text such as `0.25` stands for; `None` when it is no amount, or has more than six decimals.
    ///
    /// ```
    /// use hermes_lab::units::Usd;
    /// assert_eq!(Usd::of_text("0.25"), Some(Usd::of_tokens(250_000, 1_000_000)));
    /// assert_eq!(Usd::of_text("-1"), None);
    /// ```
    pub fn of_text(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| {
            !text.is_empty() && text.len() <= 6 && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(whole) || !digits(part) {
            return None;
        }
        let millionths: i128 = format!("{whole}{part:0<6}").parse().ok()?;
        Some(Self(millionths * (PER_DOLLAR / 1_000_000)))
    }

    /// Dollars, as near as a floating-point number comes.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PER_DOLLAR as f64
    }

    /// Millionths of a millionth of a dollar.
    pub fn pico(self) -> i128 {
        self.0
    }

    /// Dollars with six decimals, rounded half away from zero; halves are decided on exact values.
    ///
    /// ```
    /// use hermes_lab::units::Usd;
    /// assert_eq!(Usd::of_tokens(1_000_000, 400_000).six_decimals(), "0.400000");
    /// assert_eq!(Usd::of_tokens(1, 3_625).six_decimals(), "0.000000");
    /// ```
    pub fn six_decimals(self) -> String {
        let step = PER_DOLLAR / 1_000_000;
        let millionths = (self.0.abs() + step / 2) / step;
        let sign = if self.0 < 0 && millionths > 0 { "-" } else { "" };
        format!("{sign}{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Usd {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Self::add)
    }
}

impl std::fmt::Display for Usd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.six_decimals())
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.six_decimals().parse().unwrap_or_default())
    }
}
