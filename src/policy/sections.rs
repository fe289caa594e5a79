//! The sections, one file per mechanism.

use super::knob::{choice, knobs};

mod breakpoints;
mod cache;
mod compress;
mod cron;
mod curator;
mod delegate;
mod guard;
mod memory;
mod prompt;
mod review;
mod search;
mod skills;
mod store;
mod terminal;
mod threats;
mod turn;
pub use breakpoints::*;
pub use cache::*;
pub use compress::*;
pub use cron::*;
pub use curator::*;
pub use delegate::*;
pub use guard::*;
pub use memory::*;
pub use prompt::*;
pub use review::*;
pub use search::*;
pub use skills::*;
pub use store::*;
pub use terminal::*;
pub use threats::*;
pub use turn::*;
