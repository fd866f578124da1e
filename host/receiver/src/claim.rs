//! Claims a board for one program on this computer.
//!
//! A claim is a lock file of the group `fadelink`. It ends with its program, tells who that is, and is of one network
//! namespace, like the FEB. A user outside the group can neither hold nor read one. Programs of such a user exclude only each
//! other.

use std::fs::DirBuilder;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use fadelink_wire::MacAddr;

use crate::commons;
use crate::fork;
use crate::holder::Holder;
use crate::locks::{self, Lock, INTERVAL};

/// The folder of the claims. The package makes it for its group, as root does where it is missing.
pub const FOLDER: &str = "/run/fadelink";
/// How long those before it may take until a command fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Why a board could not be claimed.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Another one has it.
    #[error("{0} has it")]
    Held(Holder),
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A board claimed; released when dropped. Without a folder of claims it is nobody's.
#[derive(Debug)]
pub struct Claim(#[allow(dead_code)] Option<Lock>);

/// True if this process has a command to a FEB under way.
fn is_own(place: Segment, feb: MacAddr) -> bool {
    fork::open().commands.contains(&place.commands(feb))
}

/// The commands of a FEB claimed; released when dropped.
#[derive(Debug)]
pub struct CommandClaim {
    name: String,
    #[allow(dead_code)]
    claim: Claim,
}

impl CommandClaim {
    fn new(name: String, claim: Claim) -> CommandClaim {
        fork::open().commands.push(name.clone());
        CommandClaim { name, claim }
    }
}

impl Drop for CommandClaim {
    fn drop(&mut self) {
        fork::open().commands.retain(|name| *name != self.name);
    }
}

/// Whose programs exclude each other.
enum Folder {
    /// All that have the boards of this computer.
    Shared(PathBuf),
    /// Those of this user.
    Private(PathBuf),
    /// None.
    No,
}

fn folder() -> Folder {
    let shared = shared();
    if commons::is_writable(&shared) || (commons::make(&shared).is_ok() && commons::is_writable(&shared)) {
        return Folder::Shared(shared);
    }
    private().map_or(Folder::No, Folder::Private)
}

#[cfg(not(test))]
fn shared() -> PathBuf {
    FOLDER.into()
}

/// Of a test, which runs without root, beside others.
#[cfg(test)]
fn shared() -> PathBuf {
    std::env::temp_dir()
}

/// A folder that nobody else can write.
fn private() -> Option<PathBuf> {
    let runtime = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    let folder = runtime.is_absolute().then(|| runtime.join("fadelink"))?;
    // If it is there already, it is looked at as it is.
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    let found = std::fs::symlink_metadata(&folder).ok()?;
    let is_own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o022 == 0;
    is_own.then_some(folder)
}

/// A network namespace, to which indices of interfaces and addresses belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(u64);

impl Network {
    /// That of this thread.
    pub fn here() -> Network {
        // Where it cannot be asked for, all is one.
        Network(std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |found| found.ino()))
    }
}

/// What is behind an interface: FEBs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    network: Network,
    interface: u32,
}

impl Segment {
    /// Behind the interface with this index in the network namespace of this thread; 0: no interface.
    pub fn new(interface: u32) -> Segment {
        Segment { network: Network::here(), interface }
    }

    /// True if there is an interface; else other programs do not see the FEBs.
    pub fn is_shared(self) -> bool {
        self.interface != 0
    }

    fn name(self, feb: MacAddr, what: &str) -> String {
        format!("{}-{}-{feb}.{what}", self.network.0, self.interface)
    }

    fn commands(self, feb: MacAddr) -> String {
        self.name(feb, "commands")
    }
}

/// Where the claim `name` is made, if it can be. A program that receives is told if others may have the board.
fn path(name: &str, receives: bool) -> Option<PathBuf> {
    static TOLD: [Once; 2] = [const { Once::new() }; 2];
    let (folder, with) = match folder() {
        Folder::Shared(folder) => return Some(folder.join(name)),
        Folder::Private(folder) => (Some(folder), "programs of other users"),
        Folder::No => (None, "other programs"),
    };
    TOLD[usize::from(receives)].call_once(|| {
        let what =
            format!("{FOLDER}: this user cannot write there, so {with} on this computer may use the same boards");
        if receives {
            tracing::warn!("{what} (docs/install.md)");
        } else {
            tracing::debug!("{what}");
        }
    });
    Some(folder?.join(name))
}

type Made<T> = Result<T, Refused>;

fn claimed(taken: io::Result<Result<Lock, Holder>>) -> Made<Claim> {
    taken?.map(|lock| Claim(Some(lock))).map_err(Refused::Held)
}

fn now(name: &str) -> Made<Claim> {
    path(name, true).map_or(Ok(Claim(None)), |path| claimed(locks::take(&path)))
}

/// Removes the file of a claim that is made again and again, unless somebody has it or waits for it: that one does so at its end.
fn forget(name: &str, receives: bool) {
    let _ = path(name, receives).filter(|path| path.exists()).map(|path| locks::take(&path));
}

fn in_turn(name: &str, receives: bool) -> Made<Claim> {
    let end = Instant::now() + PATIENCE;
    path(name, receives).map_or(Ok(Claim(None)), |path| claimed(locks::take_in_turn(&path, end)))
}

/// Claims the data of `feb`.
///
/// # Errors
/// Another one has it. The operating system's.
pub fn data(place: Segment, feb: MacAddr) -> Result<Claim, Refused> {
    now(&place.name(feb, "data"))
}

/// Claims the commands of `feb`, when those before it are done: no other command may come between one and its repetition.
///
/// # Errors
/// They take too long. The operating system's.
pub fn commands(place: Segment, feb: MacAddr) -> Result<CommandClaim, Refused> {
    let name = place.commands(feb);
    let claim = in_turn(&name, true)?;
    Ok(CommandClaim::new(name, claim))
}

/// The claims of [`commands`] leave a file, which this removes: after the last one.
pub fn forget_commands(place: Segment, feb: MacAddr) {
    if place.is_shared() {
        forget(&place.commands(feb), true);
    }
}

/// Before a RESET, which makes the FEB forget the command that it executed last: waits for one of another program that is under way,
/// for its repetition would be executed again. It does not wait for one of this process, which ends with what is reset, nor
/// for ever. Hold the claim until the RESET is sent.
pub fn before_reset(place: Segment, feb: MacAddr) -> Option<CommandClaim> {
    let end = Instant::now() + PATIENCE;
    while place.is_shared() && !is_own(place, feb) && Instant::now() < end {
        match reset_now(place, feb) {
            None => std::thread::sleep(INTERVAL),
            claim => return claim,
        }
    }
    None
}

/// As [`before_reset`], without waiting. `None`: a command is under way.
pub fn reset_now(place: Segment, feb: MacAddr) -> Option<CommandClaim> {
    let name = place.commands(feb);
    let claim = now(&name).ok()?;
    Some(CommandClaim::new(name, claim))
}

/// As [`commands`], of the slow control of a UDP/IP board.
///
/// # Errors
/// As [`commands`].
pub fn control(network: Network, board: Ipv4Addr) -> Result<Claim, Refused> {
    in_turn(&of_control(network, board), false)
}

/// As [`forget_commands`], of [`control`].
pub fn forget_control(network: Network, board: Ipv4Addr) {
    forget(&of_control(network, board), false);
}

fn of_control(network: Network, board: Ipv4Addr) -> String {
    format!("{}-{board}.control", network.0)
}

/// True if some program on this computer has claimed the data of `feb`, as far as this one may know.
pub fn is_claimed(place: Segment, feb: MacAddr) -> bool {
    let name = place.name(feb, "data");
    let is_locked = |folder: &Path| locks::is_locked(&folder.join(&name));
    is_locked(&shared()) || matches!(folder(), Folder::Private(folder) if is_locked(&folder))
}

#[cfg(test)]
mod tests;
