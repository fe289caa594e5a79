//! What goes over the wire: conversation rows and the providers' request and response shapes.
//!
//! A [`Row`] is one message of a conversation in the shape that the runtime keeps and the store holds.
//! Never: a decision. This room knows shapes, not behaviour.

pub mod ids;
pub mod python;
pub mod repair;
pub mod row;
pub mod segment;
pub mod tools;

pub use row::{Content, Role, Row, ToolCall};
pub use segment::{Chain, Level, PassThrough, Segment};
