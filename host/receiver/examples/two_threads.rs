//! Receives from one FEB in the thread of the receiver, and verifies the counter in another thread.
//!
//! two_threads IFACE MAC SECONDS WINDOW    prints the number of bytes

#![expect(clippy::print_stdout)]

use std::error::Error;
use std::time::{Duration, Instant};

use fadelink_receiver::backend::packet::Packet;
use fadelink_receiver::{FebConfig, Receiver};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [iface, mac, seconds, window] = &arguments[..] else {
        return Err("expected IFACE MAC SECONDS WINDOW".into());
    };
    let receiver = Receiver::spawn(Packet::open(iface)?)?;
    let config = FebConfig { window: window.parse()?, ..FebConfig::default() };
    let mut feb = receiver.open(mac.parse()?, config)?;
    feb.start()?;
    let end = Instant::now() + Duration::from_secs_f64(seconds.parse()?);
    let (mut next, mut is_stopping) = (0u64, false);
    while let Some(data) = feb.read(32 * 8192, Some(Duration::from_millis(50)))? {
        let (words, _) = data.as_chunks::<8>();
        let differ = words.iter().zip(next..).fold(0, |all, (word, next)| all | (u64::from_ne_bytes(*word) ^ next));
        if differ != 0 {
            return Err(format!("a word behind word {next} is wrong").into());
        }
        next += words.len() as u64;
        let bytes = data.len();
        feb.release(bytes);
        if !is_stopping && Instant::now() >= end {
            is_stopping = true;
            feb.stop()?;
        }
    }
    println!("{}", next * 8);
    Ok(())
}
