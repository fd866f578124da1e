//! Streams over TCP: of boards with the TCP sender, and of crates.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use rustix::net::RecvFlags;

use super::recording::{Recording, TICK};

/// From one attempt to connect to the next.
const RETRY: Duration = Duration::from_millis(200);
/// Bytes that are sent at a time.
const PIECE: usize = 64 << 10;

/// Connects to the receiver when it is there; `None`: the end was asked for.
pub fn connect(address: SocketAddr, stop: &AtomicBool) -> Option<TcpStream> {
    while !stop.load(Ordering::Relaxed) {
        match TcpStream::connect(address) {
            Ok(stream) => return Some(stream),
            Err(_) => std::thread::sleep(RETRY),
        }
    }
    None
}

/// True when the receiver has closed its direction: it wants no more.
fn is_closed(stream: &TcpStream) -> bool {
    matches!(rustix::net::recv(stream, &mut [0; 64][..], RecvFlags::DONTWAIT), Ok((_, 0)))
}

/// Ends a stream, and waits until the receiver has all of it.
///
/// # Errors
/// The operating system's.
pub fn end(stream: &mut TcpStream) -> anyhow::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    // The receiver closes when it has all; one that breaks the connection has not.
    io::copy(stream, &mut io::sink()).context("the receiver has not taken all of it")?;
    Ok(())
}

/// Sends a stream as a TCP sender does.
///
/// # Errors
/// The receiver's, or those of the files.
pub fn send(mut recording: Recording, address: SocketAddr, stop: &AtomicBool) -> anyhow::Result<()> {
    let name = recording.name.clone();
    let Some(mut stream) = connect(address, stop) else {
        recording.source.interrupted(&name);
        return Ok(());
    };
    recording.restart();
    let mut piece = vec![0; PIECE];
    while !recording.has_ended() && !stop.load(Ordering::Relaxed) && !is_closed(&stream) {
        match recording.read(&mut piece).with_context(|| format!("board `{name}`"))? {
            0 => std::thread::sleep(TICK),
            bytes => stream.write_all(&piece[..bytes]).with_context(|| format!("board `{name}`: {address}"))?,
        }
    }
    match (recording.has_ended(), stop.load(Ordering::Relaxed)) {
        (true, _) => {}
        (false, true) => recording.source.interrupted(&name),
        (false, false) => tracing::warn!("{name}: the receiver has asked for the end before all was played"),
    }
    recording.end();
    end(&mut stream).with_context(|| format!("board `{name}`: {address}"))
}
