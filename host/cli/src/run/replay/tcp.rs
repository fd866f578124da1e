//! Streams over TCP: of boards with the TCP sender, and of crates.

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use rustix::net::RecvFlags;

use super::recording::{Recording, TICK};
use super::source::Source;

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
/// It has not: it closes when it has all, and else breaks the connection.
pub fn end(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    io::copy(stream, &mut io::sink()).map(drop)
}

/// What is sent differs from the run where the receiver takes no more of it; false: it does not.
pub fn is_taken(result: io::Result<()>, source: &Source, name: &str, address: SocketAddr) -> bool {
    let error = result.err();
    if let Some(error) = &error {
        source.doubt(&format!("{name}: the receiver at {address} has not taken all of it: {error}"));
    }
    error.is_none()
}

/// Sends a stream as a TCP sender does.
///
/// # Errors
/// Those of the files.
pub fn send(mut recording: Recording, address: SocketAddr, stop: &AtomicBool) -> anyhow::Result<()> {
    let name = recording.name.clone();
    let Some(mut stream) = connect(address, stop) else {
        recording.source.interrupted(&name);
        return Ok(());
    };
    recording.restart();
    let source = recording.source.clone();
    let mut piece = vec![0; PIECE];
    while !recording.has_ended() && !stop.load(Ordering::Relaxed) && !is_closed(&stream) {
        match recording.read(&mut piece).with_context(|| format!("board `{name}`"))? {
            0 => std::thread::sleep(TICK),
            bytes if is_taken(stream.write_all(&piece[..bytes]), &source, &name, address) => {}
            _ => {
                recording.end();
                return Ok(());
            }
        }
    }
    match (recording.has_ended(), stop.load(Ordering::Relaxed)) {
        (true, _) => {}
        (false, true) => recording.source.interrupted(&name),
        (false, false) => tracing::warn!("{name}: the receiver has asked for the end before all was played"),
    }
    recording.end();
    is_taken(end(&mut stream), &source, &name, address);
    Ok(())
}
