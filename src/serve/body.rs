//! What goes back to a client: bytes at once, or pieces with pauses, and perhaps an end in the middle.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc::Receiver;
use tokio::time::Sleep;

/// One step of an answer.
#[derive(Debug)]
pub(super) enum Step {
    /// Bytes.
    Bytes(Bytes),
    /// Time without any.
    Pause(Duration),
    /// The connection breaks here.
    Cut,
    /// It breaks now.
    Broken,
}

/// Time for the bytes before a cut to leave.
const BEFORE_CUT: Duration = Duration::from_millis(5);

/// The body of an answer.
#[derive(Debug)]
pub(super) struct ReplyBody {
    steps: VecDeque<Step>,
    sleep: Option<Pin<Box<Sleep>>>,
    exact: Option<u64>,
    /// Bytes that come from elsewhere, after the steps.
    source: Option<Receiver<io::Result<Bytes>>>,
}

impl ReplyBody {
    /// Bytes with a stated length.
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let exact = Some(bytes.len() as u64);
        Self { steps: [Step::Bytes(bytes)].into(), sleep: None, exact, source: None }
    }

    /// Pieces whose length nobody states.
    pub(super) fn pieces(steps: impl Into<VecDeque<Step>>) -> Self {
        Self { steps: steps.into(), sleep: None, exact: None, source: None }
    }

    /// Bytes as they come from elsewhere.
    pub(super) fn passed_on(source: Receiver<io::Result<Bytes>>) -> Self {
        Self { source: Some(source), ..Self::pieces(Vec::new()) }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                if sleep.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.sleep = None;
            }
            match self.steps.pop_front() {
                None => {
                    let Some(source) = &mut self.source else { return Poll::Ready(None) };
                    return source.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)));
                }
                Some(Step::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Step::Bytes(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Step::Pause(time)) => self.sleep = Some(Box::pin(tokio::time::sleep(time))),
                Some(Step::Cut) => {
                    // What was said before must be on its way first.
                    self.steps.push_front(Step::Broken);
                    self.sleep = Some(Box::pin(tokio::time::sleep(BEFORE_CUT)));
                }
                Some(Step::Broken) => {
                    return Poll::Ready(Some(Err(io::Error::other("the scenario drops this stream"))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.sleep.is_none() && self.source.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.exact.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
