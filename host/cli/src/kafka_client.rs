//! What users set of the client of Apache Kafka: how it gets to the brokers.

use std::path::{Path, PathBuf};

use fadelink_sinks::kafka::ClientSettings;

use crate::exit::Usage;

#[derive(clap::Args)]
pub struct Args {
    /// Setting of the way to the brokers of Kafka, by its name in librdkafka, as in security.protocol=SSL; repeat for several
    #[arg(long, value_name = "KEY=VALUE")]
    kafka_config: Vec<String>,
    /// File of such settings, a line for each; passwords are taken from there alone
    #[arg(long, value_name = "FILE")]
    kafka_config_file: Option<PathBuf>,
}

/// All clients have the settings of this file from now on.
///
/// # Errors
/// It cannot be read, or one is wrong.
pub fn begin(path: &Path) -> Result<(), String> {
    let mut settings = ClientSettings::default();
    settings.read(path)?;
    settings.begin();
    Ok(())
}

/// The files that the settings in this file name; none, if it cannot be read.
pub fn files(path: &Path) -> Vec<PathBuf> {
    let mut settings = ClientSettings::default();
    let _ = settings.read(path);
    settings.files().map(Path::to_owned).collect()
}

impl Args {
    /// All clients have them from now on.
    ///
    /// # Errors
    /// One is wrong.
    pub fn begin(&self) -> Result<(), Usage> {
        let mut settings = ClientSettings::default();
        if let Some(path) = &self.kafka_config_file {
            settings.read(path).map_err(|error| Usage(format!("--kafka-config-file: {}: {error}", path.display())))?;
        }
        for text in &self.kafka_config {
            settings.add(text).map_err(|error| Usage(format!("--kafka-config: {error}")))?;
        }
        settings.begin();
        Ok(())
    }
}
