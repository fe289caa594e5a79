//! Searching rows: query, route, filters, snippets, windows.
//!
//! No model is called and nothing is summarised: every answer is stored rows. The agent's tool on top of this is
//! `agent::search`. Never: a change of a conversation.

pub mod found;
pub mod like;
pub mod query;
pub mod route;
pub mod view;

pub use found::{Filters, Found, Hit, Route, SearchQuery, ServedBy, Sort};
pub use view::{AnchoredView, Window};
