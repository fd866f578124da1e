//! `fadelink start` and `fadelink stop`: ask the `fadelink run` of an experiment, by the socket in its folder.

use std::io;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use axum::body::Body;
use fadelink_sinks::unix_path;
use http_body_util::BodyExt;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};
use serde_json::Value;
use tokio::net::UnixStream;

use super::experiment::File;
use super::folder::SOCKET;
use crate::exit;

/// How often is asked whether the run has begun or ended.
const TICK: Duration = Duration::from_millis(50);

#[derive(clap::Args)]
pub struct Args {
    /// File of the experiment that a `fadelink run` has
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Start,
    Stop,
}

fn connect(path: &Path) -> io::Result<net::UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    unix_path::connect(&socket, path)?;
    let stream = net::UnixStream::from(socket);
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Asks, and gives the answer.
async fn ask(socket: &Path, method: Method, path: &str) -> anyhow::Result<Value> {
    let stream = connect(socket)
        .with_context(|| format!("{}: no `fadelink run` of this experiment is there", socket.display()))?;
    let stream = TokioIo::new(UnixStream::from_std(stream)?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri(path).header("host", "fadelink").body(Body::empty())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let answer: Value = serde_json::from_slice(&body)?;
    match answer["error"].as_str() {
        _ if status.is_success() => Ok(answer),
        Some(error) => anyhow::bail!("{error}"),
        None => anyhow::bail!("the answer is {status}"),
    }
}

async fn fulfil(socket: &Path, wish: Wish) -> anyhow::Result<Value> {
    let path = if wish == Wish::Start { "/start" } else { "/stop" };
    let before = ask(socket, Method::GET, "/run").await?;
    ask(socket, Method::POST, path).await?;
    loop {
        let answer = ask(socket, Method::GET, "/run").await?;
        let (has_begun, waits) = (answer["runs"] != before["runs"], answer["state"] == "waiting");
        if waits {
            if let Some(error) = answer["error"].as_str() {
                anyhow::bail!("the run has failed: {error}");
            }
        }
        if waits || (wish == Wish::Start && has_begun) {
            return Ok(answer);
        }
        tokio::time::sleep(TICK).await;
    }
}

/// Asks for the begin or the end of a run, waits for it, and prints the state of the run as JSON. The exit status of the end is that
/// of the run's data.
///
/// # Errors
/// No `fadelink run` is there, or it cannot do so now.
pub fn run(args: &Args, wish: Wish) -> anyhow::Result<ExitCode> {
    let file = File::read(&args.file)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(fulfil(&file.experiment.folder.join(SOCKET), wish))?;
    out!("{answer:#}");
    Ok(exit::of_data(wish == Wish::Start || answer["complete"] == true))
}
