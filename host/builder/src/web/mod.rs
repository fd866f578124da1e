//! The web page: one file, numbers as JSON, plots as SVG that the server draws. It loads nothing from other
//! servers.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Path, State};
use axum::http::{header, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use crate::live::Live;

mod plot;

const PAGE: &str = include_str!("page.html");

/// What the page shows, and who fills it.
pub type SharedLive = Arc<Mutex<Live>>;

fn lock(live: &SharedLive) -> MutexGuard<'_, Live> {
    live.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn numbers(State(live): State<SharedLive>) -> Response {
    let view = lock(&live).view();
    ([(header::CACHE_CONTROL, "no-store")], Json(view)).into_response()
}

async fn plot(State(live): State<SharedLive>, Path(name): Path<String>) -> Response {
    let view = lock(&live).view();
    let drawn = match name.strip_suffix(".svg") {
        Some("rates") => plot::rates(&view),
        Some("charge") => plot::charges(&view),
        Some("differences") => plot::differences(&view),
        Some(name) if view.maps.contains_key(name) => plot::map(name, &view.maps[name]),
        _ => {
            return (StatusCode::NOT_FOUND, format!("plot {name}: expected rates, charge, differences or a crate"))
                .into_response()
        }
    };
    match drawn {
        Ok(svg) => {
            ([(header::CONTENT_TYPE, "image/svg+xml"), (header::CACHE_CONTROL, "no-store")], svg).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Serves the page at `address` from now on, in a thread of its own. Returns the address, with the port that was
/// chosen where 0 was asked for.
///
/// # Errors
/// The address is not available.
pub fn serve(address: SocketAddr, live: SharedLive) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let routes = Router::new()
        .route("/", get(|| async { Html(PAGE) }))
        .route("/live.json", get(numbers))
        .route("/plot/{name}", get(plot))
        .with_state(live);
    std::thread::Builder::new().name("web".into()).spawn(move || {
        runtime.block_on(async move {
            match tokio::net::TcpListener::from_std(listener) {
                Ok(listener) => {
                    if let Err(error) = axum::serve(listener, routes).await {
                        tracing::error!("web page: {error}");
                    }
                }
                Err(error) => tracing::error!("web page: {error}"),
            }
        });
    })?;
    Ok(bound)
}
