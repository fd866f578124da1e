//! `fadelink check`: verifies a run later, by its manifest.

use std::path::PathBuf;
use std::process::ExitCode;

use fadelink_runs::Depth;
use serde_json::json;

use crate::exit;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of the run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    #[cfg(feature = "kafka")]
    #[command(flatten)]
    pub kafka_client: crate::kafka_client::Args,
    /// Read also files outside that folder, if the manifest names them, and follow links
    #[arg(long)]
    outside: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Checks a run: exit status 0 if it is complete and as it was received.
///
/// # Errors
/// The folder is not that of a run.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let checked = fadelink_runs::check(&args.run, args.outside, Depth::Content)?;
    let (good, bytes, run) = (checked.is_good(), checked.bytes, &checked.manifest.content["run"]);
    if args.json {
        let state = checked.manifest.state();
        let (findings, notes) = (&checked.findings, &checked.notes);
        let result = json!({
            "good": good, "run": run, "state": state, "bytes": bytes, "findings": findings, "notes": notes,
        });
        out!("{result}");
    } else {
        checked.findings.iter().chain(&checked.notes).for_each(|finding| out!("{finding}"));
        let verdict = if good { "complete, and as it was received" } else { "NOT AS IT SHOULD BE" };
        out!("run {run}: {bytes} bytes checked: {verdict}");
    }
    Ok(exit::of_data(good))
}
