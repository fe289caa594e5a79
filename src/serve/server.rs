//! The thread with the sockets: it listens, limits, and stops when it is told to.
//!
//! This is the one place of the lab that opens a socket for others.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::lab::play::{Plan, PlayError, policy_of};
use crate::scenario::{Scenario, load};
use crate::serve::activity::{Activity, Counts};
use crate::serve::body::ReplyBody;
use crate::serve::cassette::Cassette;
use crate::serve::desk::Desk;
use crate::serve::{Options, Outcome, RecordOptions, Recorded, record};

/// Time that open connections get when the server stops.
const GOODBYE: Duration = Duration::from_millis(500);

/// Time between two writes of a file that grows.
const FLUSH: Duration = Duration::from_millis(500);

/// Bytes of a request's head, and of what is read ahead.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Why a server could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or may not be used.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The file that is to be written cannot be made.
    #[error("`{path}` cannot be written: {source}")]
    File {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The scenario's knobs do not fit.
    #[error(transparent)]
    Scenario(#[from] PlayError),
    /// No thread could be had.
    #[error("no thread for the server: {0}")]
    Thread(#[from] io::Error),
}

/// Who answers requests. Everything runs on one thread, so nothing is locked.
pub(super) trait Work: Sized + 'static {
    /// What is left at the end.
    type End: Send + 'static;

    /// Answers one request; an error closes the connection without an answer.
    fn handle(
        desk: Rc<RefCell<Self>>,
        request: Request<Incoming>,
    ) -> impl Future<Output = io::Result<Response<ReplyBody>>> + 'static;

    /// Hands what was gathered to the file.
    fn flush(&mut self);

    /// Counter of requests under way.
    fn in_flight(&mut self) -> &mut usize;

    /// Ends the work.
    fn finish(self) -> Self::End;
}

/// Counts a request as under way for as long as it lives.
pub(super) struct Busy<W: Work> {
    desk: Rc<RefCell<W>>,
}

impl<W: Work> Busy<W> {
    pub(super) fn on(desk: &Rc<RefCell<W>>) -> Self {
        *desk.borrow_mut().in_flight() += 1;
        Self { desk: desk.clone() }
    }
}

impl<W: Work> Drop for Busy<W> {
    fn drop(&mut self) {
        if let Ok(mut desk) = self.desk.try_borrow_mut() {
            *desk.in_flight() -= 1;
        }
    }
}

/// The mock provider.
#[derive(Debug, Clone, Copy)]
pub struct Server;

impl Server {
    /// Starts a server on a thread of its own, and answers once it listens.
    ///
    /// # Errors
    /// When the address cannot be used, the ledger's file cannot be made, or the scenario's knobs do not fit.
    pub fn start(scenario: &Scenario, options: Options) -> Result<Running, StartError> {
        Self::run(scenario, None, options)
    }

    /// The same with recorded answers.
    ///
    /// # Errors
    /// As [`Server::start`].
    pub fn replay(cassette: Cassette, options: Options) -> Result<Running, StartError> {
        let text = "format = 1\nname = \"cassette\"\n";
        let mut scenario = load("cassette", text).expect("an empty scenario is one");
        scenario.name.clone_from(&cassette.name);
        Self::run(&scenario, Some(cassette), options)
    }

    fn run(scenario: &Scenario, cassette: Option<Cassette>, options: Options) -> Result<Running, StartError> {
        let policy = policy_of(scenario, &Plan::default())?;
        let scenario = scenario.clone();
        let limits = Limits::of(&options);
        let file = options.ledger.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        start(limits, file, move || Desk::new(&scenario, cassette, &policy, options))
    }

    /// Starts a proxy that records.
    ///
    /// # Errors
    /// When the address cannot be used, or the cassette's file cannot be made.
    pub fn record(record: RecordOptions) -> Result<Running<Recorded>, StartError> {
        let limits = Limits::of(&record.limits);
        let file = record.cassette.display().to_string();
        start(limits, file, move || record::Desk::new(&record))
    }
}

/// A server under way.
#[derive(Debug)]
pub struct Running<E = Outcome> {
    address: SocketAddr,
    counts: Counts,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Option<E>>>,
}

impl<E> Running<E> {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Base of the OpenAI routes, as clients want it: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What has happened so far, for somebody who waits until nothing happens any more.
    pub fn activity(&self) -> Activity {
        self.counts.now()
    }

    /// Stops it, waits for its thread, and answers with what it saw.
    ///
    /// # Panics
    /// When the server's thread panicked.
    pub fn stop(mut self) -> E {
        self.end().expect("a server that started has an outcome")
    }

    fn end(&mut self) -> Option<E> {
        if let Some(stop) = self.stop.take() {
            // A server whose thread is gone needs no word.
            let _ = stop.send(());
        }
        self.thread.take().and_then(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

impl<E> Drop for Running<E> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.end();
        }
    }
}

/// Ctrl-C, and the polite signal to end. Listened to from the moment on that it is made, so that a server that announces
/// itself afterwards always ends in order.
#[derive(Debug)]
pub struct EndSignal {
    runtime: tokio::runtime::Runtime,
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
}

impl EndSignal {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the process may not listen to signals.
    pub fn listen() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        #[cfg(unix)]
        let signals = {
            use tokio::signal::unix::{SignalKind, signal};
            let _inside = runtime.enter();
            [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]
        };
        Ok(Self {
            runtime,
            #[cfg(unix)]
            signals,
        })
    }

    /// Waits for one of them.
    ///
    /// # Errors
    /// When the process may not listen to signals.
    pub fn wait(self) -> io::Result<()> {
        #[cfg(unix)]
        {
            let [mut interrupt, mut terminate] = self.signals;
            self.runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
            Ok(())
        }
        #[cfg(not(unix))]
        {
            self.runtime.block_on(tokio::signal::ctrl_c())
        }
    }
}

/// Where to listen, and how much of what is taken.
#[derive(Debug, Clone, Copy)]
struct Limits {
    address: SocketAddr,
    connections_max: usize,
    head_timeout: Duration,
}

impl Limits {
    fn of(options: &Options) -> Self {
        Self {
            address: SocketAddr::new(options.host, options.port),
            connections_max: options.connections_max,
            head_timeout: options.head_timeout,
        }
    }
}

/// Starts the thread, and answers once it listens. `file` is what `make` may fail to make.
fn start<W: Work>(
    limits: Limits,
    file: String,
    make: impl FnOnce() -> io::Result<W> + Send + 'static,
) -> Result<Running<W::End>, StartError> {
    let (stop, stopped) = oneshot::channel();
    let (ready, listening) = mpsc::channel();
    let counts = Counts::default();
    let counted = counts.clone();
    let thread = std::thread::Builder::new().name("serve".to_owned()).spawn(move || {
        let (address, fail) = (limits.address, ready.clone());
        let fail = move |error: StartError| {
            // Whoever started this waits for the answer.
            let _ = fail.send(Err(error));
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| fail(StartError::Thread(error))).ok()?;
        let local = LocalSet::new();
        let desk = local.block_on(&runtime, async move {
            let listener = TcpListener::bind(address).await;
            let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
            let (address, listener) =
                listener.map_err(|source| fail(StartError::Listen { address, source })).ok()?;
            let desk = make().map_err(|source| fail(StartError::File { path: file, source })).ok()?;
            let desk = Rc::new(RefCell::new(desk));
            let _ = ready.send(Ok(address));
            serve(listener, &desk, limits, &counted, stopped).await;
            Some(desk)
        })?;
        // Connections that are still open die with the tasks that own them.
        drop(local);
        let desk = Rc::try_unwrap(desk).unwrap_or_else(|_| panic!("a connection outlived its server"));
        Some(desk.into_inner().finish())
    })?;
    match listening.recv() {
        Ok(Ok(address)) => Ok(Running { address, counts, stop: Some(stop), thread: Some(thread) }),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(StartError::Thread(io::Error::other("the server's thread ended at once"))),
    }
}

async fn serve<W: Work>(
    listener: TcpListener,
    desk: &Rc<RefCell<W>>,
    limits: Limits,
    counts: &Counts,
    mut stopped: oneshot::Receiver<()>,
) {
    let open = Rc::new(Cell::new(0_usize));
    tokio::task::spawn_local(flush(desk.clone()));
    loop {
        let accepted = tokio::select! {
            biased;
            _ = &mut stopped => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file handles, or a client that was gone at once: others go on.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        if open.get() >= limits.connections_max {
            tokio::task::spawn_local(turn_away(stream));
            continue;
        }
        open.set(open.get() + 1);
        let (desk, open, counts) = (desk.clone(), open.clone(), counts.clone());
        tokio::task::spawn_local(async move {
            connection(stream, desk, limits, &counts).await;
            open.set(open.get() - 1);
        });
    }
    // Answers on their way get a moment.
    let goodbye = tokio::time::Instant::now() + GOODBYE;
    while *desk.borrow_mut().in_flight() > 0 && tokio::time::Instant::now() < goodbye {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn connection<W: Work>(stream: TcpStream, desk: Rc<RefCell<W>>, limits: Limits, counts: &Counts) {
    // Small answers should not wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let (desk, under_way) = (desk.clone(), counts.begin());
        async move {
            let answer = W::handle(desk, request).await;
            drop(under_way);
            answer
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        // Clients reset idle connections; that is no fault of anybody.
        tracing::debug!(%error, "a connection ended");
    }
}

/// Hands what was gathered to the file now and then, for people who look at it while it grows.
async fn flush<W: Work>(desk: Rc<RefCell<W>>) {
    loop {
        tokio::time::sleep(FLUSH).await;
        desk.borrow_mut().flush();
    }
}

/// Answers a connection too many.
async fn turn_away(mut stream: TcpStream) {
    use tokio::io::AsyncWriteExt as _;
    let body =
        r#"{"error":{"message":"too many connections","type":"server_error","param":null,"code":"busy"}}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(answer.as_bytes())).await;
}
