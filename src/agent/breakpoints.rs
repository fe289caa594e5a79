//! Cache markers: which route takes them, where they go, how long they hold.
//!
//! Everything here is a pure function of one request; the stored conversation and the tool registry are never
//! decorated. [`plan::plan`] runs last in the life of a request, after all repair.
//!
//! - `policy`: does the route cache, and in which shape;
//! - `ttl`: the tier;
//! - `plan`: the markers; `strip` takes them off again;
//! - `scaffold`: fixed parts of long user messages;
//! - `anthropic`: the marked request on Anthropic's own wire.
//!
//! The real agent copies a request, puts at most four markers on the copy (the static prefix, the whole prompt, the
//! newest messages that can carry one) and forgets the copy. Differs: the runtime registers no fixed parts of user messages
//! (`scaffold` is held against observed outcomes), and asks for places alone (`positions`), since its cache model needs no
//! body; `anthropic` builds the body for `live` and for the vectors.

pub mod anthropic;
pub mod plan;
pub mod policy;
pub mod positions;
pub mod scaffold;
pub mod strip;
pub mod ttl;

pub use plan::{Layout, PlanInputs, Planned, plan};
pub use policy::{Caching, Route};
pub use positions::Placer;
pub use scaffold::Scaffolds;
pub use ttl::Tier;
