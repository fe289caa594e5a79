//! One integration binary; one module per subject.

mod audit;
mod hardened_threats;
mod vectors;
