//! `fadelink feed`: the messages of crates to Apache Kafka, for builders on many machines.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use fadelink_builder::event::Bytes;
use fadelink_builder::kafka::Feeder;
use fadelink_builder::tcp::Take;
use serde_json::json;

use crate::{exit, fadc_crates};

#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    crates: fadc_crates::Args,
    #[command(flatten)]
    kafka: crate::build::Kafka,
}

struct Messages(Feeder);

impl Take for Messages {
    fn open(&self) {}

    fn begin(&self, _: u32) {}

    fn take(&self, messages: &mut Vec<Bytes>) -> io::Result<()> {
        messages.drain(..).try_for_each(|message| self.0.put(&message).map_err(io::Error::other))
    }

    fn close(&self) {}
}

/// Feeds until the end is asked for.
///
/// # Errors
/// Kafka's, or a port that is not to be had.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (Some(port), Some(brokers)) = (args.crates.tcp, &args.kafka.kafka) else {
        return Err(exit::Usage("feed: expected --tcp PORT and --kafka BROKERS".into()).into());
    };
    fadc_crates::watch_signals()?;
    let feeder = Arc::new(Messages(Feeder::connect(brokers, &args.kafka.messages, args.kafka.partitions)?));
    let run = fadc_crates::Run::begin(&args.crates, port, feeder.clone())?;
    while !run.look() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let connections = run.finish();
    feeder.0.finish()?;
    let messages: u64 = connections.iter().map(|connection| connection.counts.messages).sum();
    let delivered = feeder.0.delivered();
    if args.crates.json {
        println!("{}", json!({ "connections": connections, "messages": messages, "delivered": delivered }));
    } else {
        println!("{messages} messages from {} connections, {delivered} delivered", connections.len());
    }
    for connection in connections.iter().filter(|connection| connection.error.is_some()) {
        eprintln!("fadelink: {}: {}", connection.peer, connection.error.as_deref().unwrap_or_default());
    }
    let good = delivered == messages && connections.iter().all(|connection| connection.error.is_none());
    Ok(exit::of_data(good))
}
