//! `fadelink generate`, for packages: man pages and completions, from the description of the command.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;
use clap_complete::Shell;

#[derive(clap::Args)]
pub struct Args {
    /// Folder of the man pages
    #[arg(long, value_name = "FOLDER")]
    man: Option<PathBuf>,
    /// Folder of the completions of all shells
    #[arg(long, value_name = "FOLDER")]
    completions: Option<PathBuf>,
}

/// Writes what is asked for.
///
/// # Errors
/// A folder that does not exist.
pub fn run(args: &Args, command: clap::Command) -> anyhow::Result<ExitCode> {
    // Man pages have what is behind the help alone.
    let with_example = |action: clap::Command| match action.get_before_help().cloned() {
        Some(example) => action.after_help(example),
        None => action,
    };
    let mut command = command.disable_help_subcommand(true).mut_subcommands(with_example);
    let name = command.get_name().to_owned();
    if let Some(folder) = &args.completions {
        for shell in Shell::value_variants() {
            clap_complete::generate_to(*shell, &mut command, &name, folder)
                .with_context(|| folder.display().to_string())?;
        }
    }
    if let Some(folder) = &args.man {
        clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())?;
    }
    Ok(ExitCode::SUCCESS)
}
