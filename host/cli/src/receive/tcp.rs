//! `fadelink receive --tcp`: the streams of TCP senders (rtl/tcp), as the kernel receives them.
//!
//! The boards open the connections. Closing the receiver's direction asks a board for the end: it sends what it
//! has, then closes, too (docs/protocol/tcp_sender.md).

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_wire::fade10g::PACKET_BYTES;
use serde_json::{json, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use super::args::{Args, Network};
use super::plan::{self, Plan};
use super::progress::Progress;
use super::summary::{self, Summary};
use crate::exit;
use crate::pattern::Verifier;

/// Bytes that are read at once.
const BLOCK: usize = 1 << 20;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// How often progress and metrics are looked at.
const TICK: Duration = Duration::from_millis(200);
/// Longest silence after the end was asked for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What has come over one connection.
struct Stream {
    peer: SocketAddr,
    begin: Instant,
    bytes: u64,
    verifier: Option<Verifier>,
    /// How it ended; none: it has not.
    end: Option<Result<(), String>>,
    seconds: f64,
}

impl Stream {
    fn summary(&self) -> Summary<'_, SocketAddr> {
        let Stream { peer, bytes, seconds, verifier, .. } = self;
        let complete = matches!(self.end, Some(Ok(())));
        Summary { name: *peer, bytes: *bytes, seconds: *seconds, complete, verifier: verifier.as_ref() }
    }

    fn json(&self) -> Value {
        self.summary().json("peer", json!({ "error": self.end.as_ref().and_then(|end| end.as_ref().err()) }))
    }
}

type Shared = Arc<Mutex<Vec<Stream>>>;

fn lock(streams: &Shared) -> std::sync::MutexGuard<'_, Vec<Stream>> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

fn listen(args: &Network, port: u16) -> anyhow::Result<TcpListener> {
    let address = SocketAddr::new(args.listen, port);
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if let Some(bytes) = args.receive_buffer {
        socket.set_recv_buffer_size(bytes).context("--receive-buffer")?;
    }
    socket.bind(address).with_context(|| format!("--tcp {port}: listening on {address}"))?;
    Ok(socket.listen(BACKLOG)?)
}

/// Receives until the board closes the connection.
async fn connection(
    mut socket: TcpStream,
    index: usize,
    plan: &Plan,
    streams: &Shared,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let peer = socket.peer_addr()?;
    let mut out = plan.out.as_deref().map(|path| plan::open(path, peer)).transpose()?;
    let mut buffer = vec![0; BLOCK];
    let (mut kept, mut bytes, mut asked) = (0, 0u64, false);
    loop {
        let enough =
            *stop.borrow_and_update() || plan.packets.is_some_and(|packets| bytes >= packets * PACKET_BYTES as u64);
        if enough && !asked {
            socket.shutdown().await.context("asking for the end")?;
            asked = true;
        }
        let silence = if asked { Some(plan.idle_timeout.unwrap_or(PATIENCE)) } else { plan.idle_timeout };
        let wait = silence.unwrap_or(Duration::from_secs(u64::from(u32::MAX)));
        let got = tokio::select! {
            got = tokio::time::timeout(wait, socket.read(&mut buffer[kept..])) => {
                got.map_err(|_| anyhow::anyhow!("no data for {} s", wait.as_secs_f64()))?.context("receiving")?
            }
            Ok(()) = stop.changed(), if !asked => continue,
        };
        if got == 0 {
            break;
        }
        let whole = (kept + got) / 8 * 8;
        tokio::task::block_in_place(|| -> anyhow::Result<()> {
            if let Some(out) = &mut out {
                out.write_all(&buffer[..whole]).context("writing the data")?;
            }
            let mut streams = lock(streams);
            let stream = &mut streams[index];
            if let Some(verifier) = &mut stream.verifier {
                verifier.check(&buffer[..whole]);
            }
            bytes += whole as u64;
            stream.bytes = bytes;
            Ok(())
        })?;
        buffer.copy_within(whole..kept + got, 0);
        kept = kept + got - whole;
    }
    if let Some(out) = &mut out {
        out.flush().context("writing the data")?;
    }
    anyhow::ensure!(kept == 0, "the stream ended inside a word: {kept} bytes were left, expected 0");
    Ok(())
}

async fn serve(args: &Args, port: u16, plan: Plan) -> anyhow::Result<Vec<Stream>> {
    let listener = listen(&args.network, port)?;
    let plan = Arc::new(plan);
    let streams = Shared::default();
    let (stop, stopped) = watch::channel(false);
    let mut tasks = tokio::task::JoinSet::new();
    let begin = Instant::now();
    let mut interrupt = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut progress = Progress::new(args.quiet);
    let mut tick = tokio::time::interval(TICK);
    let end = args.duration.map(|duration| begin + duration);
    let wanted = args.network.streams.map_or(usize::MAX, |n| n as usize);
    let mut ended = 0;
    if !args.quiet {
        eprintln!("fadelink: waiting for TCP senders on port {port}");
    }
    loop {
        let asked = *stopped.borrow();
        if ended >= wanted || (asked && tasks.is_empty()) {
            break;
        }
        let accepted = lock(&streams).len();
        tokio::select! {
            socket = listener.accept(), if !asked && accepted < wanted => {
                let (socket, peer) = socket.context("accepting a connection")?;
                let verifier = plan.verify.map(Verifier::new);
                lock(&streams).push(Stream { peer, begin: Instant::now(), bytes: 0, verifier, end: None, seconds: 0.0 });
                let (plan, streams, stop) = (plan.clone(), streams.clone(), stopped.clone());
                tasks.spawn(async move { (accepted, connection(socket, accepted, &plan, &streams, stop).await) });
            }
            Some(done) = tasks.join_next() => {
                let (index, result) = done.context("a connection's task")?;
                let mut streams = lock(&streams);
                let stream = &mut streams[index];
                stream.seconds = stream.begin.elapsed().as_secs_f64();
                if let Some(verifier) = &mut stream.verifier {
                    verifier.finish(None);
                }
                stream.end = Some(result.map_err(|error| format!("{error:#}")));
                ended += 1;
            }
            _ = interrupt.recv() => {
                anyhow::ensure!(!asked, "interrupted before the end");
                stop.send_replace(true);
            }
            _ = terminate.recv() => {
                anyhow::ensure!(!asked, "interrupted before the end");
                stop.send_replace(true);
            }
            () = tokio::time::sleep_until(end.unwrap_or(begin).into()), if end.is_some() && !asked => {
                stop.send_replace(true);
            }
            _ = tick.tick() => {
                let streams = lock(&streams);
                if progress.is_due() {
                    progress.show(streams.iter().map(|s| (s.peer, s.bytes, format!("{} bytes", s.bytes))));
                }
                if args.metrics.is_some() {
                    for stream in streams.iter() {
                        crate::metrics::stream(stream.peer, stream.bytes);
                    }
                }
                let idle = args.idle_timeout.filter(|limit| streams.is_empty() && begin.elapsed() >= *limit);
                if let Some(limit) = idle {
                    anyhow::bail!("no connection for {} s", limit.as_secs_f64());
                }
            }
        }
    }
    progress.finish();
    drop(tasks);
    let streams = std::mem::take(&mut *lock(&streams));
    Ok(streams)
}

fn report(args: &Args, streams: &[Stream]) -> ExitCode {
    let missing = summary::missing(args, streams.len());
    let good = missing == 0 && !streams.is_empty() && streams.iter().all(|stream| stream.summary().is_good());
    if args.json {
        let all: Vec<_> = streams.iter().map(Stream::json).collect();
        println!("{}", json!({ "complete": good, "streams": all, "missing_streams": missing }));
    }
    for stream in streams {
        if let Some(Err(error)) = &stream.end {
            eprintln!("fadelink: {}: {error}", stream.peer);
        }
        stream.summary().tell(args, "", "");
    }
    exit::of_data(good)
}

/// Receives TCP streams until all have ended.
///
/// # Errors
/// Wrong arguments, a port that is not to be had, a second interrupt.
pub fn run(args: &Args, port: u16) -> anyhow::Result<ExitCode> {
    let plan = Plan::of(args)?;
    args.metrics.map_or(Ok(()), crate::metrics::serve)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let streams = runtime.block_on(serve(args, port, plan))?;
    Ok(report(args, &streams))
}
