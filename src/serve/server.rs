//! The thread with the sockets: it listens, limits, and stops when it is told to.
//!
//! This is the one place of the lab that opens a socket for others.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::lab::play::{Plan, PlayError, policy_of};
use crate::scenario::{Scenario, load};
use crate::serve::cassette::Cassette;
use crate::serve::desk::{Desk, Shared};
use crate::serve::{Options, Outcome, route};

/// Time that open connections get when the server stops.
const GOODBYE: Duration = Duration::from_millis(500);

/// Time between two writes of the ledger's file.
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
        source: std::io::Error,
    },
    /// The ledger's file cannot be made.
    #[error("the ledger cannot be written: {0}")]
    Ledger(std::io::Error),
    /// The scenario's knobs do not fit.
    #[error(transparent)]
    Scenario(#[from] PlayError),
    /// No thread could be had.
    #[error("no thread for the server: {0}")]
    Thread(#[from] std::io::Error),
}

/// The mock provider.
#[derive(Debug, Clone, Copy)]
pub struct Server;

impl Server {
    /// Starts a server on a thread of its own, and answers once it listens.
    ///
    /// # Errors
    /// When the address cannot be used, or the scenario's knobs do not fit.
    pub fn start(scenario: &Scenario, options: Options) -> Result<Running, StartError> {
        run(scenario, None, options)
    }

    /// The same with recorded answers.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn replay(cassette: Cassette, options: Options) -> Result<Running, StartError> {
        let text = "format = 1\nname = \"cassette\"\n";
        let mut scenario = load("cassette", text).expect("an empty scenario is one");
        scenario.name.clone_from(&cassette.name);
        run(&scenario, Some(cassette), options)
    }
}

fn run(scenario: &Scenario, cassette: Option<Cassette>, options: Options) -> Result<Running, StartError> {
    let policy = policy_of(scenario, &Plan::default())?;
    let scenario = scenario.clone();
    let (stop, stopped) = oneshot::channel();
    let (ready, listening) = mpsc::channel();
    let thread = std::thread::Builder::new().name("serve".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let _ = ready.send(Err(StartError::Thread(error)));
                return None;
            }
        };
        let local = LocalSet::new();
        local
            .block_on(&runtime, async move {
                let desk = match Desk::new(&scenario, cassette, &policy, options.clone()) {
                    Ok(desk) => Rc::new(RefCell::new(desk)),
                    Err(error) => {
                        let _ = ready.send(Err(StartError::Ledger(error)));
                        return None;
                    }
                };
                let address = SocketAddr::new(options.host, options.port);
                let listener = match listen(address).await {
                    Ok((listener, address)) => {
                        let _ = ready.send(Ok(address));
                        listener
                    }
                    Err(source) => {
                        let _ = ready.send(Err(StartError::Listen { address, source }));
                        return None;
                    }
                };
                serve(listener, &desk, &options, stopped).await;
                Some(desk)
            })
            .map(|desk| {
                // Connections that are still open die with the tasks that own them.
                drop(local);
                finish(desk)
            })
    })?;
    match listening.recv() {
        Ok(Ok(address)) => Ok(Running { address, stop: Some(stop), thread: Some(thread) }),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(StartError::Thread(std::io::Error::other("the server's thread ended at once"))),
    }
}

/// A server under way.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Option<Outcome>>>,
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Base of the OpenAI routes, as clients want it: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Stops it, waits for its thread, and answers with what it saw.
    ///
    /// # Panics
    /// When the server's thread panicked.
    pub fn stop(mut self) -> Outcome {
        self.end().expect("a server that started has an outcome")
    }

    fn end(&mut self) -> Option<Outcome> {
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

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.end();
        }
    }
}

async fn listen(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn finish(desk: Shared) -> Outcome {
    let desk = Rc::try_unwrap(desk).unwrap_or_else(|_| panic!("a connection outlived its server"));
    desk.into_inner().finish()
}

/// Waits for Ctrl-C or for the polite signal to end.
///
/// # Errors
/// When the process may not listen to signals.
pub fn wait_for_signal() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let mut end = signal(SignalKind::terminate())?;
            tokio::select! {
                interrupted = tokio::signal::ctrl_c() => interrupted,
                _ = end.recv() => Ok(()),
            }
        }
        #[cfg(not(unix))]
        {
            tokio::signal::ctrl_c().await
        }
    })
}

async fn serve(listener: TcpListener, desk: &Shared, options: &Options, mut stopped: oneshot::Receiver<()>) {
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
        if open.get() >= options.connections_max {
            tokio::task::spawn_local(turn_away(stream));
            continue;
        }
        open.set(open.get() + 1);
        let (desk, open, options) = (desk.clone(), open.clone(), options.clone());
        tokio::task::spawn_local(async move {
            connection(stream, desk, &options).await;
            open.set(open.get() - 1);
        });
    }
    // Answers on their way get a moment.
    let goodbye = tokio::time::Instant::now() + GOODBYE;
    while route::in_flight(desk) > 0 && tokio::time::Instant::now() < goodbye {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn connection(stream: TcpStream, desk: Shared, options: &Options) {
    // Small answers should not wait for more.
    let _ = stream.set_nodelay(true);
    let limits = route::Limits { body_max: options.body_max, body_timeout: options.body_timeout };
    let service = service_fn(move |request| route::handle(desk.clone(), limits, request));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.head_timeout)
        .max_buf_size(HEAD_BYTES_MAX)
        .keep_alive(true)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        // Clients reset idle connections; that is no fault of anybody.
        tracing::debug!(%error, "a connection ended");
    }
}

/// Hands the ledger to its file now and then, for people who look at it while it grows.
async fn flush(desk: Shared) {
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
