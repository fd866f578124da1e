//! The kind of board that the options of a command describe.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::fade::Fade;
use super::tcp::Tcp;
use super::udp::Udp;
use crate::arguments::excluded;

/// The ports of boards with an IP protocol.
#[derive(clap::Args)]
struct Ports {
    /// Receive from TCP senders, on this port
    #[arg(long, value_name = "PORT", group = "by_ip", value_parser = clap::value_parser!(u16).range(1..))]
    tcp: Option<u16>,
    /// Receive the streams of UDP/IP stacks, on this port
    #[arg(long, value_name = "PORT", group = "by_ip", value_parser = clap::value_parser!(u16).range(1..))]
    udp: Option<u16>,
}

/// Boards of one kind, as options describe them: their group is `by_ip` unless they have FADE. An option that several kinds have is
/// one option, and one that only others have is an error.
pub enum Kind {
    Fade(Fade),
    Tcp(Tcp),
    Udp(Udp),
}

/// The command with these options, too; those that it has are the same ones.
fn with<A: Args>(command: Command) -> Command {
    let of_kind = A::augment_args(Command::new(""));
    let has = |command: &Command, id| command.get_arguments().any(|known| known.get_id() == id);
    of_kind.get_arguments().fold(command, |command, arg| match has(&command, arg.get_id()) {
        true => command,
        false => {
            // Behind those that are there.
            let order = command.get_arguments().count();
            command.arg(arg.clone().display_order(order))
        }
    })
}

/// Refuses what only boards of another kind have.
fn check<A: Args>(matches: &ArgMatches, given: &str) -> Result<(), Error> {
    let own = A::augment_args(Command::new(""));
    let all = [Fade::augment_args, Tcp::augment_args, Udp::augment_args].map(|of| of(Command::new("")));
    for arg in all.iter().flat_map(Command::get_arguments) {
        let is_own = own.get_arguments().any(|known| known.get_id() == arg.get_id());
        if !is_own && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
            return Err(excluded(&format!("--{}", arg.get_long().unwrap_or_default()), given));
        }
    }
    Ok(())
}

impl FromArgMatches for Kind {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Kind, Error> {
        let ports = Ports::from_arg_matches(matches)?;
        Ok(match (ports.tcp, ports.udp) {
            (Some(port), _) => {
                check::<Tcp>(matches, "--tcp")?;
                Kind::Tcp(Tcp { port, ..Tcp::from_arg_matches(matches)? })
            }
            (None, Some(port)) => {
                check::<Udp>(matches, "--udp")?;
                Kind::Udp(Udp { port, ..Udp::from_arg_matches(matches)? })
            }
            (None, None) => {
                check::<Fade>(matches, "--iface")?;
                Kind::Fade(Fade::from_arg_matches(matches)?)
            }
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Kind::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Kind {
    fn augment_args(command: Command) -> Command {
        with::<Udp>(with::<Tcp>(with::<Fade>(Ports::augment_args(command))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Kind::augment_args(command)
    }
}
