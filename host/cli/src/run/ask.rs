//! `fadelink start` and `fadelink stop`: ask the `fadelink run` of an experiment, by the socket in its folder.

use std::io;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{anyhow, Context};
use axum::body::Body;
use fadelink_runs::Manifest;
use headers::{ETag, HeaderMapExt, IfMatch};
use http_body_util::BodyExt;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{json, Value};
use tokio::net::UnixStream;

use super::control::try_connect;
use super::experiment;
use super::folder::SOCKET;
use crate::exit;

/// How often is asked whether the run has begun or ended.
const TICK: Duration = Duration::from_millis(50);
/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub struct Args {
    /// File of the experiment that a `fadelink run` has, or the folder of its runs
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Start,
    Stop,
}

/// Connects, when the program takes a connection more.
async fn connect(path: &Path) -> io::Result<net::UnixStream> {
    loop {
        match try_connect(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => tokio::time::sleep(TICK).await,
            connected => return connected,
        }
    }
}

/// Asks, and gives the answer.
async fn ask(socket: &Path, method: Method, path: &str) -> anyhow::Result<Value> {
    ask_for(socket, method, path, None).await
}

/// The same on the condition that the file is this one, if there is one.
async fn ask_for(socket: &Path, method: Method, path: &str, file: Option<ETag>) -> anyhow::Result<Value> {
    let place = socket.display();
    let asked = async {
        let stream = connect(socket).await;
        let stream = stream.with_context(|| format!("{place}: no `fadelink run` of this experiment is there"))?;
        let answer = answer(stream, method, path, file).await;
        answer.with_context(|| format!("{place}: `fadelink run` gave no answer"))
    };
    let (status, answer) = tokio::time::timeout(PATIENCE, asked)
        .await
        .map_err(|_| anyhow!("{place}: `fadelink run` does not answer in {} s", PATIENCE.as_secs()))??;
    match answer["error"].as_str() {
        _ if status.is_success() => Ok(answer),
        Some(error) => anyhow::bail!("{error}"),
        None => anyhow::bail!("the answer is {status}"),
    }
}

async fn answer(
    stream: net::UnixStream,
    method: Method,
    path: &str,
    file: Option<ETag>,
) -> anyhow::Result<(StatusCode, Value)> {
    let stream = TokioIo::new(UnixStream::from_std(stream)?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    tokio::spawn(connection);
    let request = Request::builder().method(method).uri(path).header("host", "fadelink");
    let mut request = request.body(Body::empty())?;
    if let Some(file) = file {
        request.headers_mut().typed_insert(IfMatch::from(file));
    }
    let response = sender.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, serde_json::from_slice(&body)?))
}

/// What happens to a run that was asked for, by the numbers that a program gives to such.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It is to begin.
    Awaited,
    /// It goes on.
    GoesOn,
    /// It has ended, and is the last one that was asked for.
    Ended,
    /// It has ended, and another one was asked for since.
    Past,
    /// It has not begun, or nothing of it is left; why, if that is still known.
    NotThere(Option<String>),
    /// Another run has begun since.
    Unknown,
}

/// The number of the run that is to begin, goes on, or was the last to do so.
fn asked_for(answer: &Value) -> anyhow::Result<u64> {
    answer["begins"].as_u64().context("the answer is of another version of `fadelink run`")
}

fn fate(answer: &Value, asked: u64) -> Fate {
    let (last, begun) = (answer["begins"].as_u64().unwrap_or(0), answer["begun"].as_u64().unwrap_or(0));
    let waits = answer["state"] == "waiting";
    match (begun == asked, last == asked) {
        (true, true) if waits => Fate::Ended,
        (true, true) => Fate::GoesOn,
        (true, false) => Fate::Past,
        (false, true) if waits => Fate::NotThere(answer["error"].as_str().map(str::to_owned)),
        (false, true) => Fate::Awaited,
        (false, false) if last > asked && begun < asked => Fate::NotThere(None),
        (false, false) => Fate::Unknown,
    }
}

/// Waits for the begin of the next run.
async fn start(socket: &Path, file: Option<ETag>) -> anyhow::Result<Value> {
    let asked = asked_for(&ask_for(socket, Method::POST, "/start", file).await?)?;
    loop {
        let answer = ask(socket, Method::GET, "/run").await?;
        match fate(&answer, asked) {
            Fate::Awaited => {}
            // It may still be withdrawn.
            Fate::GoesOn if answer["receives"] == false => {}
            Fate::Ended => return check_error(&answer).map(|()| answer),
            Fate::GoesOn | Fate::Past => return Ok(answer),
            Fate::NotThere(why) => return Err(not_there(why)),
            Fate::Unknown => anyhow::bail!("another run was asked for meanwhile: run {} has begun", answer["run"]),
        }
        tokio::time::sleep(TICK).await;
    }
}

fn not_there(why: Option<String>) -> anyhow::Error {
    anyhow!(
        "the run has failed: {}",
        why.unwrap_or_else(|| "nothing of it is left, and another one was asked for".into())
    )
}

/// A run that has ended may have failed.
fn check_error(answer: &Value) -> anyhow::Result<()> {
    match answer["error"].as_str() {
        Some(error) => anyhow::bail!("the run has failed: {error}"),
        None => Ok(()),
    }
}

fn folder_of(answer: &Value) -> &Path {
    answer["folder"].as_str().unwrap_or_default().as_ref()
}

/// How a run has ended, by its manifest: its program does not tell it any more, for this reason.
fn by_manifest(answer: &Value, why: anyhow::Error) -> anyhow::Result<Value> {
    let (run, folder) = (&answer["run"], folder_of(answer));
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
    let mut answer = ask(socket, Method::POST, "/stop").await?;
    let asked = asked_for(&answer)?;
    // Of one that has not begun it is told later.
    let mut of_run: Option<Value> = None;
    loop {
        let fate = fate(&answer, asked);
        // Of one that was withdrawn there is no folder.
        let is_other = |run: &&Value| run["run"] != answer["run"] && folder_of(run).exists();
        match (of_run.as_ref().filter(is_other), fate) {
            // Its program has ended with it, and another one is there; or others have begun since.
            (Some(run), _) => {
                return by_manifest(run, anyhow!("run {} has gone: another one was asked for", run["run"]))
            }
            (_, Fate::Awaited) => {}
            (_, Fate::GoesOn) => of_run = Some(answer),
            (_, Fate::Ended) => return check_error(&answer).map(|()| answer),
            (_, Fate::Past) => return by_manifest(&answer, anyhow!("run {} has not ended", answer["run"])),
            (_, Fate::NotThere(why)) => return Err(not_there(why)),
            (_, Fate::Unknown) => anyhow::bail!("another run was asked for meanwhile: run {} has begun", answer["run"]),
        }
        tokio::time::sleep(TICK).await;
        answer = match (ask(socket, Method::GET, "/run").await, &of_run) {
            (Err(why), Some(run)) => return by_manifest(run, why),
            (answer, _) => answer?,
        };
    }
}

/// Asks for the begin or the end of a run, waits for it, and prints the state of the run as JSON. The exit status of the end is that
/// of the run's data.
///
/// # Errors
/// No `fadelink run` is there, or it cannot do so now.
pub fn run(args: &Args, wish: Wish) -> anyhow::Result<ExitCode> {
    // Who prepares the next run in the file can still stop this one.
    let (runs, tag) = if args.file.is_dir() {
        (args.file.clone(), None)
    } else {
        let (runs, tag) = experiment::runs_of(&args.file)?;
        (runs, Some(tag))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async {
        let socket = runs.join(SOCKET);
        match wish {
            Wish::Start => start(&socket, tag).await,
            Wish::Stop => stop(&socket).await,
        }
    })?;
    out!("{answer:#}");
    Ok(exit::of_data(wish == Wish::Start || answer["complete"] == true))
}

#[cfg(test)]
mod tests {
    use super::super::life::{Event, Life};
    use super::*;

    /// The fate of the first run that was asked for, behind each of these.
    fn fates(events: impl IntoIterator<Item = Event>) -> Vec<Fate> {
        let mut life = Life::new();
        life.step(Event::Start).unwrap();
        let asked = asked_for(&life.json()).unwrap();
        let mut then = |event| {
            life.step(event).unwrap();
            fate(&life.json(), asked)
        };
        events.into_iter().map(&mut then).collect()
    }

    fn begun(run: u64) -> Event {
        Event::Begun { run, folder: format!("run_{run}") }
    }

    #[test]
    fn a_run_is_told_from_those_behind_it() {
        let ended = || Event::Ended { complete: true };
        let failed = || Event::Failed("no space".into());
        let no_space = || Fate::NotThere(Some("no space".into()));
        let all = [begun(1), Event::Receives, Event::Stop, ended(), Event::Start, failed(), Event::Start, begun(2)];
        let expected =
            [Fate::GoesOn, Fate::GoesOn, Fate::GoesOn, Fate::Ended, Fate::Past, Fate::Past, Fate::Past, Fate::Unknown];
        assert_eq!(fates(all), expected);
        let all = [begun(1), Event::Withdrawn(Some("no space".into())), Event::Start, begun(1), ended()];
        let unknown = || Fate::Unknown;
        assert_eq!(fates(all), [Fate::GoesOn, no_space(), Fate::NotThere(None), unknown(), unknown()]);
        assert_eq!(fates([Event::Stop, failed()]), [Fate::Awaited, no_space()]);
        assert_eq!(fates([begun(1), failed()]), [Fate::GoesOn, Fate::Ended]);
    }
}
