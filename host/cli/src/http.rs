//! The HTTP server of a command: metrics for Prometheus and its health, and the control of `fadelink run`.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use anyhow::Context;
use axum::http::{header, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{json, Value};

use crate::{health, metrics};

/// Why something that was asked for is not done.
pub struct Refused(pub String);

/// What can be asked for and controlled.
pub trait Control: Send + Sync {
    /// What goes on.
    fn state(&self) -> Value;
    /// Asks for the begin of a run.
    ///
    /// # Errors
    /// Why that is not possible now.
    fn start(&self) -> Result<(), Refused>;
    /// Asks for the end of the run.
    ///
    /// # Errors
    /// Why that is not possible now.
    fn stop(&self) -> Result<(), Refused>;
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

fn answer(control: &dyn Control, result: Result<(), Refused>) -> Response {
    match result {
        Ok(()) => (StatusCode::ACCEPTED, Json(control.state())).into_response(),
        Err(Refused(why)) => (StatusCode::CONFLICT, Json(json!({ "error": why }))).into_response(),
    }
}

/// The same with `GET /run`, `POST /start` and `POST /stop`.
pub fn routes(control: Arc<dyn Control>) -> Router {
    let (starting, stopping) = (control.clone(), control.clone());
    common()
        .route("/run", get(move || async move { Json(control.state()) }))
        .route("/start", post(move || async move { answer(&*starting, starting.start()) }))
        .route("/stop", post(move || async move { answer(&*stopping, stopping.stop()) }))
}

fn in_thread(serve: impl Future<Output = io::Result<()>> + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("http".into()).spawn(move || {
        if let Err(error) = runtime.block_on(serve) {
            tracing::error!("HTTP server: {error}");
        }
    })?;
    Ok(())
}

/// Serves at `address` from now on, in a thread of its own.
///
/// # Errors
/// The address is in use, or not available.
pub fn serve(address: SocketAddr, routes: Router) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    in_thread(async move { axum::serve(tokio::net::TcpListener::from_std(listener)?, routes).await })
}

/// Serves at a UNIX socket from now on, in a thread of its own.
///
/// # Errors
/// The operating system's.
pub fn serve_unix(listener: UnixListener, routes: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    in_thread(async move { axum::serve(tokio::net::UnixListener::from_std(listener)?, routes).await })
}

/// Serves metrics and health of `command`, for --metrics.
///
/// # Errors
/// As of [`serve`].
pub fn serve_metrics(address: Option<SocketAddr>, command: &'static str) -> anyhow::Result<()> {
    let Some(address) = address else { return Ok(()) };
    metrics::record(command)?;
    serve(address, common()).with_context(|| format!("--metrics {address}"))
}
