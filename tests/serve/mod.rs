//! The mock provider, end to end: the binary, spoken to over plain TCP.

mod agents;
mod clients;
mod encrypted;
mod faults;
mod lanes;
mod protocols;
mod record;
mod refusals;
mod runs;
pub mod support;
