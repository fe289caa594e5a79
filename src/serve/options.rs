//! How a mock provider is set up.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::policy::CacheModel;
use crate::serve::ClockKind;

/// How a mock provider is set up. The default suits a test: loopback, a free port, strict, virtual time.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address to listen on.
    pub host: IpAddr,
    /// Port; 0 takes a free one.
    pub port: u16,
    /// Cache model for every protocol; without it Anthropic's for Messages and the older OpenAI one for the others.
    pub provider: Option<CacheModel>,
    /// Real or virtual time.
    pub clock: ClockKind,
    /// What a provider would refuse is answered and reported instead.
    pub lenient: bool,
    /// Window of the models, in tokens, as their cards say; longer prompts are refused.
    pub context_length: u64,
    /// Names of models; others are refused. Empty: every name is known.
    pub models: Vec<String>,
    /// Longest request body, in bytes.
    pub body_max: usize,
    /// Connections at a time; more are answered with 503 and closed.
    pub connections_max: usize,
    /// Time that a client may take for the head of a request, idle time between requests included.
    pub head_timeout: Duration,
    /// Time that a client may take for a body.
    pub body_timeout: Duration,
    /// Events stay in memory and are handed over at the end.
    pub keep_events: bool,
    /// Recorded answers take the time that they took.
    pub paced: bool,
    /// File that the ledger is written to while it grows.
    pub ledger: Option<PathBuf>,
    /// Told of findings and refusals at once, a line each.
    pub teller: Teller,
}

/// Somebody who is told a line at a time.
#[derive(Clone, Default)]
pub struct Teller(Option<Tell>);

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

impl Teller {
    /// Tells this one.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(super) fn tell(&self, line: impl FnOnce() -> String) {
        if let Some(tell) = &self.0 {
            tell(&line());
        }
    }
}

impl std::fmt::Debug for Teller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Teller(somebody)" } else { "Teller(nobody)" })
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            provider: None,
            clock: ClockKind::Virtual,
            lenient: false,
            context_length: 200_000,
            models: Vec::new(),
            body_max: 32 << 20,
            connections_max: 4_096,
            head_timeout: Duration::from_secs(120),
            body_timeout: Duration::from_secs(60),
            keep_events: true,
            paced: false,
            ledger: None,
            teller: Teller::default(),
        }
    }
}
