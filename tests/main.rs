//! One integration binary; one module per subject.

mod audit_cases;
mod audit_formats;
mod audit_hostile;
mod audit_logs;
mod audit_properties;
mod audit_support;
mod bench;
mod cache_cases;
mod cli;
mod costs;
mod determinism;
mod guard_hardened;
mod audit;
mod hardened_threats;
mod lab;
mod laws;
mod mechanism_cases;
mod props;
mod readme;
mod support;
mod tidy;
mod tokens;
mod traces;
mod vectors;
