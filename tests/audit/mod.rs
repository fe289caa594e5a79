//! The audit of logs: cases, logs with known faults, formats, properties, hostile input.

mod cases;
mod formats;
mod hostile;
mod logs;
mod properties;
mod support;
