//! `fadelink start` and `fadelink stop`: ask the `fadelink run` of an experiment, by the socket in its folder.

use std::io;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, Context};
use axum::body::Body;
use fadelink_runs::Manifest;
use fadelink_sinks::unix_path;
use http_body_util::BodyExt;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use rustix::net::{socket_with, AddressFamily, SocketFlags, SocketType};
use serde_json::{json, Value};
use tokio::net::UnixStream;

use super::experiment::File;
use super::folder::SOCKET;
use crate::exit;

/// How often is asked whether the run has begun or ended.
const TICK: Duration = Duration::from_millis(50);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let place = socket.display();
    let stream = connect(socket).with_context(|| format!("{place}: no `fadelink run` of this experiment is there"))?;
    let (status, answer) = tokio::time::timeout(PATIENCE, answer(stream, method, path))
        .await
        .map_err(|_| anyhow!("{place}: `fadelink run` does not answer in {} s", PATIENCE.as_secs()))?
        .with_context(|| format!("{place}: `fadelink run` gave no answer"))?;
    match answer["error"].as_str() {
        _ if status.is_success() => Ok(answer),
        Some(error) => anyhow::bail!("{error}"),
        None => anyhow::bail!("the answer is {status}"),
    }
}

async fn answer(stream: net::UnixStream, method: Method, path: &str) -> anyhow::Result<(StatusCode, Value)> {
    let stream = TokioIo::new(UnixStream::from_std(stream)?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri(path).header("host", "fadelink").body(Body::empty())?;
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&body)?))
}

/// Waits for the begin of the next run.
async fn start(socket: &Path) -> anyhow::Result<Value> {
    let before = ask(socket, Method::GET, "/run").await?;
    ask(socket, Method::POST, "/start").await?;
    loop {
        let answer = ask(socket, Method::GET, "/run").await?;
        if answer["runs"] != before["runs"] {
            return Ok(answer);
        }
        check_error(&answer)?;
        tokio::time::sleep(TICK).await;
    }
}

/// A program that waits for the next run may have failed with this one.
fn check_error(answer: &Value) -> anyhow::Result<()> {
    match answer["error"].as_str().filter(|_| answer["state"] == "waiting") {
        Some(error) => anyhow::bail!("the run has failed: {error}"),
        None => Ok(()),
    }
}

/// How a run has ended, by its manifest: its program does not tell it any more, for this reason.
fn by_manifest(run: &Value, folder: &Path, why: anyhow::Error) -> anyhow::Result<Value> {
    let Ok(manifest) = Manifest::read_sealed(folder) else { return Err(why) };
    // A program that does not answer may go on, and one that was killed has not ended its run.
    if manifest.content["run"] != *run || matches!(manifest.state(), "running" | "stopping") {
        return Err(why);
    }
    if let Some(error) = manifest.content["error"].as_str() {
        anyhow::bail!("the run has failed: {error}");
    }
    let complete = manifest.state() == "complete";
    Ok(json!({ "state": manifest.state(), "run": run, "folder": folder, "complete": complete }))
}

/// Waits for the end of the run that goes on, or is about to begin; not for that of one which begins behind it.
async fn stop(socket: &Path) -> anyhow::Result<Value> {
    let before = ask(socket, Method::GET, "/run").await?;
    ask(socket, Method::POST, "/stop").await?;
    // Of one that has not begun it is told later.
    let goes_on = |answer: &Value| answer["run"].is_u64() && answer["complete"].is_null();
    let mut of_run = Some(before).filter(goes_on);
    loop {
        let answer = ask(socket, Method::GET, "/run").await;
        let known = of_run.as_ref().map(|run| (&run["run"], run["folder"].as_str().unwrap_or_default()));
        match (answer, known) {
            // Another one has begun, or there is no program that waits for one.
            (Ok(answer), Some((run, folder))) if answer["run"] != *run && answer["error"].is_null() => {
                return by_manifest(run, folder.as_ref(), anyhow!("run {run} has gone: run {} goes on", answer["run"]));
            }
            (Err(why), Some((run, folder))) => return by_manifest(run, folder.as_ref(), why),
            (answer, _) => {
                let answer = answer?;
                check_error(&answer)?;
                if answer["state"] == "waiting" {
                    return Ok(answer);
                }
                of_run = of_run.or_else(|| Some(answer).filter(goes_on));
            }
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
    let answer = runtime.block_on(async {
        let socket = file.experiment.folder.join(SOCKET);
        match wish {
            Wish::Start => start(&socket).await,
            Wish::Stop => stop(&socket).await,
        }
    })?;
    out!("{answer:#}");
    Ok(exit::of_data(wish == Wish::Start || answer["complete"] == true))
}
