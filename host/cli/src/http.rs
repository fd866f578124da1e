//! The HTTP server of a command: metrics for Prometheus and its health, and the control of `fadelink run`.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::Listener;
use axum::{Json, Router};
use headers::{HeaderMapExt, IfMatch};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::{json, Value};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::{health, metrics};

/// Why something that was asked for is not done.
pub enum Refused {
    /// It is not possible now.
    Now(String),
    /// What has to be so for who asks is not so.
    Condition(String),
}

/// What can be asked for and controlled.
pub trait Control: Send + Sync {
    /// What goes on.
    fn state(&self) -> Value;
    /// Asks for the begin of a run, and tells what goes on then. `file`: the one that it is to be of, by its BLAKE3 hash.
    ///
    /// # Errors
    /// Why that is not possible now, or the file is another one.
    fn start(&self, file: Option<&IfMatch>) -> Result<Value, Refused>;
    /// Asks for the end of the run, and tells what goes on then.
    ///
    /// # Errors
    /// Why that is not possible now.
    fn stop(&self) -> Result<Value, Refused>;
}

fn metrics() -> String {
    metrics::set_of_program("fadelink_healthy", if health::state().0 { 1.0 } else { 0.0 });
    metrics::render()
}

/// Those of every command: `GET /metrics`, `GET /health`.
fn common() -> Router {
    let text = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let health = || async {
        let (healthy, state) = health::state();
        (if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, Json(state))
    };
    Router::new().route("/metrics", get(move || async move { (text, metrics()) })).route("/health", get(health))
}

fn answer(result: Result<Value, Refused>) -> Response {
    match result {
        Ok(state) => (StatusCode::ACCEPTED, Json(state)).into_response(),
        Err(Refused::Now(why)) => refuse(StatusCode::CONFLICT, &why),
        Err(Refused::Condition(why)) => refuse(StatusCode::PRECONDITION_FAILED, &why),
    }
}

fn refuse(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}

/// A start, with the condition that the file is as who asks has it (`If-Match`, RFC 9110 section 13.1.1).
fn start(control: &dyn Control, head: &HeaderMap) -> Response {
    match head.typed_try_get::<IfMatch>() {
        Ok(file) => answer(control.start(file.as_ref())),
        Err(error) => refuse(StatusCode::BAD_REQUEST, &format!("If-Match: {error}; expected `\"HASH\"`")),
    }
}

/// The same with `GET /run`, `POST /start` and `POST /stop`.
pub fn routes(control: Arc<dyn Control>) -> Router {
    let (starting, stopping) = (control.clone(), control.clone());
    common()
        .route("/run", get(move || async move { Json(control.state()) }))
        .route("/start", post(move |head: HeaderMap| async move { start(&*starting, &head) }))
        .route("/stop", post(move || async move { answer(stopping.stop()) }))
}

/// Connections of a server at a time. The oldest one makes room for another: most requests take a moment.
const CONNECTIONS: usize = 32;

/// Time for the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// After this time a connection is closed behind the request that goes on; a client opens another one.
const LIFE: Duration = Duration::from_secs(60);

/// Serves a connection. What goes wrong with it is the client's.
async fn serve_connection<L: Listener>(stream: L::Io, routes: Router) {
    let service = TowerToHyperService::new(routes);
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut connection = pin!(server.serve_connection(TokioIo::new(stream), service));
    if timeout(LIFE, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        let _ = timeout(HEAD, connection).await;
    }
}

/// Serves all connections; `port`: of a server that others reach over a network.
async fn serve_all<L: Listener>(mut listener: L, routes: Router, port: Option<u16>) {
    let mut open: VecDeque<JoinHandle<()>> = VecDeque::new();
    loop {
        let (stream, _) = listener.accept().await;
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS {
            open.pop_front().inspect(JoinHandle::abort);
            port.inspect(|port| metrics::count_displaced(*port));
        }
        open.push_back(tokio::spawn(serve_connection::<L>(stream, routes.clone())));
    }
}

/// Serves from now on, in a thread of its own; `open` makes the listener.
fn in_thread<L: Listener>(
    open: impl FnOnce() -> io::Result<L> + Send + 'static,
    routes: Router,
    port: Option<u16>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = async move {
        match open() {
            Ok(listener) => serve_all(listener, routes, port).await,
            Err(error) => tracing::error!("HTTP server: {error}"),
        }
    };
    std::thread::Builder::new().name("http".into()).spawn(move || runtime.block_on(serve))?;
    Ok(())
}

/// Serves at `address` from now on, in a thread of its own. Returns the address, with the port that was chosen where 0 was asked for.
///
/// # Errors
/// The address is in use, or not available.
pub fn serve(address: SocketAddr, routes: Router) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    in_thread(|| tokio::net::TcpListener::from_std(listener), routes, Some(bound.port()))?;
    Ok(bound)
}

/// Serves at a UNIX socket from now on, in a thread of its own.
///
/// # Errors
/// The operating system's.
pub fn serve_unix(listener: UnixListener, routes: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    in_thread(|| tokio::net::UnixListener::from_std(listener), routes, None)
}

/// Serves metrics and health of `command`, for --metrics.
///
/// # Errors
/// As of [`serve`].
pub fn serve_metrics(address: Option<SocketAddr>, command: &'static str) -> anyhow::Result<()> {
    let Some(address) = address else { return Ok(()) };
    metrics::record(command)?;
    serve(address, common()).with_context(|| format!("--metrics {address}"))?;
    Ok(())
}
