//! The real world: a clock that runs, pauses that take time, a network that may fail.
//!
//! Everything above asks an [`Outside`], so that tests can stand in for it. Keys are known here alone.
#![expect(clippy::disallowed_methods, reason = "the bill of a real provider depends on real time")]

use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Uri};

use crate::live::provider::Provider;
use crate::serve::upstream::{Authority, HttpClient, client, reason, target};
use crate::world::Millis;

/// Shortest key that is a secret; shorter ones are made up for servers that want none, and stand in any text.
const SECRET_CHARS_MIN: usize = 8;
/// Longest answer that is read, in bytes.
const ANSWER_MAX: usize = 64 << 20;

/// What opens a provider's door. It cannot be shown or written.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// A key; `None` when it could not stand in a header.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty() && HeaderValue::from_str(text).is_ok()).then(|| Self(text.to_owned()))
    }

    /// A text in which the key does not stand.
    fn hidden_in(&self, text: String) -> String {
        if self.0.len() >= SECRET_CHARS_MIN && text.contains(&self.0) {
            text.replace(&self.0, "[key]")
        } else {
            text
        }
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key([key])")
    }
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) content_type: String,
    /// How long the provider asks to wait, in milliseconds.
    pub(super) retry_after: Option<u64>,
    pub(super) text: String,
    /// Milliseconds until the answer was whole.
    pub(super) took: u64,
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lost {
    /// Nobody was reached: the request cannot have cost anything.
    Unreachable(String),
    /// It was sent, and what came back is not whole: it may have cost what it can cost.
    Broken(String),
}

/// What a live run needs of the world.
pub(super) trait Outside {
    /// Milliseconds since the Unix epoch.
    fn now(&self) -> Millis;
    /// Lets time pass.
    fn pause(&mut self, millis: u64);
    /// Sends one request and reads its answer.
    fn post(&mut self, body: &[u8]) -> Result<Got, Lost>;
}

/// A provider in the network.
pub(super) struct Network {
    runtime: tokio::runtime::Runtime,
    client: HttpClient,
    provider: Provider,
    target: String,
    key: Key,
    timeout: Duration,
}

impl Network {
    /// A client of this provider; nothing is sent yet.
    ///
    /// # Errors
    /// When an authority is none, or the process may not have timers.
    pub(super) fn new(
        provider: Provider,
        base: &Uri,
        authorities: &[Authority],
        key: Key,
        timeout: Duration,
    ) -> io::Result<Self> {
        Ok(Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()?,
            client: client(authorities)?,
            provider,
            target: target(base, provider.path()),
            key,
            timeout,
        })
    }

    fn headers(&self) -> HeaderMap {
        let secret = |text: &str| {
            let mut value = HeaderValue::from_str(text).expect("keys are checked when they are taken");
            value.set_sensitive(true);
            value
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let agent = concat!("hermes-lab/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        if self.provider == Provider::Anthropic {
            headers.insert("x-api-key", secret(&self.key.0));
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        } else {
            headers.insert(AUTHORIZATION, secret(&format!("Bearer {}", self.key.0)));
        }
        headers
    }
}

impl Outside for Network {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
    }

    fn pause(&mut self, millis: u64) {
        // A timer is made inside the runtime that drives it.
        self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(millis)).await });
    }

    fn post(&mut self, body: &[u8]) -> Result<Got, Lost> {
        let begun = Instant::now();
        let mut request = Request::post(&self.target)
            .body(Full::from(Bytes::copy_from_slice(body)))
            .map_err(|error| Lost::Unreachable(error.to_string()))?;
        *request.headers_mut() = self.headers();
        let (client, timeout) = (&self.client, self.timeout);
        let done = self.runtime.block_on(async {
            tokio::time::timeout(timeout, async {
                let response = client.request(request).await.map_err(|error| {
                    let why = reason(&error);
                    if error.is_connect() { Lost::Unreachable(why) } else { Lost::Broken(why) }
                })?;
                let (head, incoming) = response.into_parts();
                let text = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
                let got = Got {
                    status: head.status.as_u16(),
                    content_type: text(CONTENT_TYPE.as_str()).unwrap_or_default().to_owned(),
                    retry_after: asked_to_wait(text("retry-after-ms"), text(RETRY_AFTER.as_str())),
                    ..Got::default()
                };
                let whole = Limited::new(incoming, ANSWER_MAX).collect().await;
                let whole = whole.map_err(|error| Lost::Broken(error.to_string()))?.to_bytes();
                Ok(Got { text: String::from_utf8_lossy(&whole).into_owned(), ..got })
            })
            .await
        });
        let late = || Lost::Broken(format!("no whole answer within {} s", timeout.as_secs()));
        let got = done.map_err(|_| late())??;
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Got { text: self.key.hidden_in(got.text), took, ..got })
    }
}

/// How long a provider asks to wait, in milliseconds; seconds may have a fraction. A date is not understood.
fn asked_to_wait(millis: Option<&str>, seconds: Option<&str>) -> Option<u64> {
    let exact = millis.and_then(|text| text.trim().parse::<u64>().ok());
    exact.or_else(|| {
        let (whole, part) = seconds?.trim().split_once('.').unwrap_or((seconds?.trim(), ""));
        let part: String = part.chars().chain("000".chars()).take(3).collect();
        Some(whole.parse::<u64>().ok()?.saturating_mul(1_000).saturating_add(part.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_is_read_in_every_form_that_is_in_use() {
        assert_eq!(asked_to_wait(None, Some("2")), Some(2_000));
        assert_eq!(asked_to_wait(None, Some(" 1.25 ")), Some(1_250));
        assert_eq!(asked_to_wait(Some("80"), Some("2")), Some(80));
        assert_eq!(asked_to_wait(Some("soon"), None), None);
        assert_eq!(asked_to_wait(None, Some("Wed, 21 Oct 2026 07:28:00 GMT")), None);
    }

    #[test]
    fn a_key_is_never_shown() {
        let key = Key::new(" sk-secret \n").unwrap();
        assert_eq!(format!("{key:?}"), "Key([key])");
        assert_eq!(key.hidden_in("bad key sk-secret".to_owned()), "bad key [key]");
        assert_eq!(Key::new("x").unwrap().hidden_in("tax".to_owned()), "tax");
        assert!(Key::new("").is_none() && Key::new("a\nb").is_none());
    }
}
