//! One integration binary; one module per subject.

mod audit_cases;
mod audit_formats;
mod audit_hostile;
mod audit_logs;
mod audit_properties;
mod audit_support;
mod hardened_threats;
mod vectors;
