//! One integration binary; one module per subject.

mod hardened_threats;
mod vectors;
