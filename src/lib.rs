//! A deterministic laboratory for self-learning agent harnesses.

pub mod agent;
pub mod audit;
pub mod cache;
pub mod cli;
pub mod diag;
pub mod lab;
pub mod laws;
pub mod ledger;
pub mod model;
pub mod policy;
pub mod report;
pub mod scenario;
pub mod store;
pub mod wire;
pub mod world;
