//! The web page: one file, numbers as JSON, plots as SVG that the server draws. It loads nothing from other
//! servers.

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

/// The page and what it asks for.
pub fn routes(live: SharedLive) -> Router {
    Router::new()
        .route("/", get(|| async { Html(PAGE) }))
        .route("/live.json", get(numbers))
        .route("/plot/{name}", get(plot))
        .with_state(live)
}
