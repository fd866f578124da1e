//! The boards of an experiment as groups that are received together.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fadelink_builder::sink;
use fadelink_receiver::WrongField;
use fadelink_runs::files::{number_of, HASHES, TRANSMISSIONS};
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{BlockKind, Kind, Places, Spec};
use fadelink_wire::{Firmware, Protocol};

use super::experiment::{each, At, Experiment, File, Full};
use super::own::{self, OwnFiles};
use super::{folder, places};
use crate::board::{Common, ConfirmAt, Crates, Fade, GroupSettings};
use crate::deadline::Limits;
use crate::exit::Usage;
use crate::pattern::Pattern;
use crate::placeholders;
use crate::receive::{fade, tcp, udp, Before, Plan, Senders, Transmissions};
use crate::text::Text;

/// What an unfinished run has of a board.
#[derive(Debug, Default, Clone)]
pub struct Kept {
    /// The hashes of its words, to go on with.
    pub blocks: Blocks,
    /// The comparison of its words with their hashes.
    pub before: Option<Arc<Before>>,
    /// What it speaks, and its core, as they were found out at the start.
    pub protocol: Option<Protocol>,
    pub firmware: Option<Firmware>,
    /// The transmissions that they are of.
    pub transmissions: Transmissions,
}

/// What an unfinished run has, which goes on.
#[derive(Default)]
pub struct Resumed {
    /// Of each board by name.
    pub boards: HashMap<String, Kept>,
    /// Its end was asked for.
    pub was_stopped: bool,
    /// How long it had gone on.
    pub gone_on: Duration,
}

/// Name of the file with the hashes of a board's words. In the place of `{stream}` comes the stream, if it has several.
pub fn hashes(board: &str, several: bool) -> String {
    format!("{board}{}{HASHES}", if several { "-{stream}" } else { "" })
}

/// What turns the file of an experiment into groups.
struct Reader<'a> {
    file: &'a File,
    stage: Stage,
    /// Of the run.
    folder: PathBuf,
    run: &'a str,
    resumed: Option<&'a Resumed>,
    /// Of the boards so far: the line's table is named in errors.
    names: Vec<String>,
    /// What the places of sinks are used by.
    places: HashMap<PathBuf, String>,
    /// The names of their files, beside the first ones too.
    files: Vec<(Places, String)>,
    /// What no sink may have.
    own: OwnFiles,
    /// Where is listened by TCP, and who does.
    listeners: Vec<(SocketAddr, String)>,
}

/// What there is of the run of which an experiment is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing: its number is known later.
    Before,
    /// Its folder, and no file of its sinks.
    Begins,
    /// An earlier program has begun it.
    HasBegun,
}

impl Stage {
    /// The number of the run in this folder.
    fn number(self, folder: &Path) -> Option<u64> {
        match self {
            Stage::Before => None,
            Stage::Begins | Stage::HasBegun => Some(number_of(folder).unwrap_or(0)),
        }
    }
}

/// The groups of an experiment whose run begins in `folder`, or goes on there if it is `resumed`; relative paths of sinks are in it.
/// `run`: name of the run, which no other one has.
///
/// # Errors
/// Fields that do not fit together, by line; a sink whose folder is not there.
pub fn of(file: &File, (folder, run): (&Path, &str), resumed: Option<&Resumed>) -> Result<Vec<GroupSettings>, Usage> {
    let stage = if resumed.is_some() { Stage::HasBegun } else { Stage::Begins };
    Reader::new(file, stage, (folder.to_owned(), run), resumed).read()
}

/// The groups of a run that an earlier program has begun.
///
/// # Errors
/// As [`of`].
pub fn of_begun(file: &File, (folder, run): (&Path, &str)) -> Result<Vec<GroupSettings>, Usage> {
    Reader::new(file, Stage::HasBegun, (folder.to_owned(), run), None).read()
}

/// Checks an experiment before there is a run: also that the sinks will find their folders.
///
/// # Errors
/// As [`of`].
pub fn check(file: &File) -> Result<(), Usage> {
    let folder = &file.experiment.folder;
    folder::check_name(folder)?;
    folder::check_place(folder).map_err(|what| file.error_of("folder", &folder.to_string_lossy(), &what))?;
    for (at, board) in each("fade", &file.experiment.fade) {
        if let Some(path) = &board.registers {
            crate::names::read(Some(&file.path.with_file_name(path)))
                .map_err(|error| file.wrong(at, &WrongField::new("registers", path.display(), format!("{error:#}"))))?;
        }
    }
    Reader::new(file, Stage::Before, (folder.join("run"), ""), None).read().map(drop)
}

/// Characters of a name: files are called by it and by more, and their names have 255.
const NAME_MAX: usize = 128;

fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && !name.starts_with(['.', '-'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Where an endpoint of ZeroMQ listens; `None`: not at a port that is known, or at an interface.
fn listens_at(endpoint: &str) -> Option<SocketAddr> {
    let (host, port) = endpoint.strip_prefix("tcp://")?.rsplit_once(':')?;
    let host = host.trim_matches(['[', ']']);
    let address = if host == "*" { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { host.parse().ok()? };
    Some(SocketAddr::new(address, port.parse().ok()?))
}

impl<'a> Reader<'a> {
    fn new(
        file: &'a File,
        stage: Stage,
        (folder, run): (PathBuf, &'a str),
        resumed: Option<&'a Resumed>,
    ) -> Reader<'a> {
        let own = OwnFiles::of(file, stage.number(&folder).map(|_| &*folder));
        let (names, places, files) = (Vec::new(), HashMap::new(), Vec::new());
        let listeners = file
            .experiment
            .http
            .map(|http| (SocketAddr::new(http.ip().to_canonical(), http.port()), "http".to_owned()))
            .into_iter()
            .collect();
        Reader { file, stage, folder, run, resumed, names, places, files, own, listeners }
    }

    /// Reads all of it.
    fn read(mut self) -> Result<Vec<GroupSettings>, Usage> {
        let common = self.common()?;
        let mut groups = self.fade(&common)?;
        groups.extend(self.tcp(&common)?);
        groups.extend(self.udp(&common)?);
        for (at, crates) in each("crates", &self.file.experiment.crates) {
            groups.push(self.crates(at, crates, &common)?);
        }
        if groups.is_empty() {
            let path = self.file.path.display();
            return Err(Usage(format!("{path}: no boards: expected [[fade]], [[tcp]], [[udp]] or [[crates]]")));
        }
        Ok(groups)
    }

    /// Nobody else listens at an address of this computer.
    fn listen(&mut self, at: At, field: &str, address: SocketAddr) -> Result<(), Usage> {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        // Who listens at all addresses of version 6 has those of version 4, too.
        let has = |one: SocketAddr, other: SocketAddr| {
            one.ip() == other.ip() || (one.ip().is_unspecified() && (one.is_ipv6() || other.is_ipv4()))
        };
        let meets = |(other, _): &&(SocketAddr, String)| {
            address.port() == other.port() && address.port() != 0 && (has(address, *other) || has(*other, address))
        };
        if let Some((_, other)) = self.listeners.iter().find(meets) {
            let what = format!("`{}`: {other} has this port; expected another one", address.port());
            return Err(self.file.error(at, field, &what));
        }
        self.listeners.push((address, format!("{at}.{field}")));
        Ok(())
    }

    /// The name of a board may be part of the names of files, and is its own.
    fn name(&mut self, at: At, name: &str) -> Result<(), Usage> {
        if !is_name(name) {
            let expected = format!("expected 1 to {NAME_MAX} letters, digits, - _ and ., no . or - first");
            return Err(self.file.error(at, "name", &format!("`{name}`: {expected}")));
        }
        if self.names.iter().any(|other| other == name) {
            let expected = "expected a name that no other board has";
            return Err(self.file.error(at, "name", &format!("`{name}`: {expected}")));
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    /// A sink as this board and this run have it. Before the run has its number it stands in paths as the user has written it.
    fn named<K: Kind>(&self, text: &str, board: &str) -> Result<Spec<K>, String> {
        let text = text.replace("{board}", board);
        let of_run = |number: u64| text.replace("{run}", &number.to_string()).parse::<Spec<K>>();
        match self.stage.number(&self.folder) {
            Some(number) => of_run(number),
            None => match of_run(0)? {
                spec if spec.kind.is_path() => text.parse(),
                spec => Ok(spec),
            },
        }
    }

    /// Refuses a place with something in braces that is replaced by nothing.
    fn check_braces(&self, at: At, text: &str, place: &str) -> Result<(), Usage> {
        if place.contains("{time}") {
            let what =
                format!("`{text}`: `{{time}}` is not the name of a file; expected {{run}}, the number of the run");
            return Err(self.file.error(at, "sinks", &what));
        }
        placeholders::check(place, &["board", "run", "stream"])
            .map_err(|what| self.file.error(at, "sinks", &format!("`{text}`: {what}")))
    }

    /// Puts the sink of a user where this board has it.
    fn place_of_user<K: Kind>(&mut self, at: At, text: &str, spec: &mut Spec<K>, board: &str) -> Result<(), Usage> {
        self.check_braces(at, text, &spec.place)?;
        if spec.kind.is_path() {
            let error = |what: String| self.file.error(at, "sinks", &format!("`{text}`: {what}"));
            let path = places::named(&self.folder.join(&spec.place));
            let names = spec.kind.places(&path.to_string_lossy());
            names
                .iter()
                .try_for_each(|sink| own::check_names(sink).and_then(|()| self.own.check(sink)))
                .map_err(error)?;
            if self.stage != Stage::HasBegun {
                places::check(&self.folder, &spec.place).map_err(error)?;
            }
        } else if let Some(path) = spec.place.strip_prefix("ipc://").filter(|path| !path.starts_with('@')) {
            let socket = Places::new(places::named(path.as_ref()), false);
            self.own.check(&socket).map_err(|what| self.file.error(at, "sinks", &format!("`{text}`: {what}")))?;
        }
        self.place(at, text, &mut spec.place, board, Some(&spec.kind))?;
        match listens_at(&spec.place).filter(|_| !spec.kind.is_path()) {
            Some(address) => self.listen(at, "sinks", address),
            None => Ok(()),
        }
    }

    /// Puts a sink where this board has it; no other may be there.
    fn place(
        &mut self,
        at: At,
        text: &str,
        place: &mut String,
        board: &str,
        kind: Option<&impl Kind>,
    ) -> Result<(), Usage> {
        let is_path = kind.is_none_or(Kind::is_path);
        if is_path {
            *place = self.folder.join(&*place).to_string_lossy().into_owned();
        }
        let key = if is_path { places::named(place.as_ref()) } else { PathBuf::from(&*place) };
        let files = kind.map(|kind| kind.places(&key.to_string_lossy())).unwrap_or_default();
        if let Some(other) = self.places.insert(key, board.to_owned()) {
            let what = format!("`{text}`: `{other}` has a sink at the same place; expected {{board}} in it");
            return Err(self.file.error(at, "sinks", &what));
        }
        if let Some((_, other)) = self.files.iter().find(|(other, _)| files.iter().any(|own| own.meets(other))) {
            let what =
                format!("`{text}`: `{other}` has a sink that makes files with the same names; expected another name");
            return Err(self.file.error(at, "sinks", &what));
        }
        self.files.extend(files.into_iter().map(|files| (files, board.to_owned())));
        Ok(())
    }

    /// The plan of a board with these sinks.
    fn plan(
        &mut self,
        at: At,
        (name, sinks): (&str, Option<&Vec<String>>),
        verify: Option<Text<Pattern>>,
        streams: usize,
    ) -> Result<Plan, Usage> {
        self.name(at, name)?;
        let texts = sinks.unwrap_or(&self.file.experiment.sinks).clone();
        let mut sinks: Vec<Spec<BlockKind>> = Vec::new();
        for text in &texts {
            let error = |what: String| self.file.error(at, "sinks", &format!("`{text}`: {what}"));
            let mut spec: Spec<BlockKind> = self.named(text, name).map_err(error)?;
            if streams > 1 && !spec.is_per_board("stream") {
                return Err(error("expected {stream} in the path, for each stream of the board".into()));
            }
            self.place_of_user(at, text, &mut spec, name)?;
            sinks.push(spec);
        }
        fadelink_sinks::check_optional(&sinks).map_err(|what| self.file.error(at, "sinks", &what))?;
        let hashes = format!("hashes:{}", hashes(name, streams > 1));
        let mut spec: Spec<BlockKind> = hashes.parse().map_err(|what: String| self.file.error(at, "sinks", &what))?;
        self.place(at, &hashes, &mut spec.place, name, Some(&spec.kind))?;
        sinks.push(spec);
        let durable = self.is_durable();
        let (resumed, before, transmissions) = match self.kept(name) {
            Some(kept) => (Some(kept.blocks), kept.before, kept.transmissions),
            None if durable => {
                let mut place = format!("{name}{TRANSMISSIONS}");
                self.place(at, &place.clone(), &mut place, name, None::<&BlockKind>)?;
                (None, None, Transmissions::to(place.into()))
            }
            None => (None, None, Transmissions::default()),
        };
        let (name, run) = (Some(name.to_owned()), self.run.to_owned());
        let verify = verify.map(|text| text.0);
        let plan = Plan { name, run, sinks, verify, streams, durable, resumed, before, transmissions };
        if durable {
            plan.check_durable()
                .map_err(|what| self.file.error(at, "sinks", &format!("confirm = \"durable\": {what}")))?;
        }
        Ok(plan)
    }

    /// Of each board: run-wide limits are looked after elsewhere.
    fn common(&self) -> Result<Common, Usage> {
        let Experiment { wait, stop, end, threads, .. } = &self.file.experiment;
        let wait = wait.map_or(Duration::ZERO, Duration::from);
        let limits = Limits { wait, idle: stop.idle.map(Duration::from), ..Limits::default() };
        let schedule = threads.schedule().map_err(|wrong| self.file.wrong_of("threads", &wrong))?;
        Ok(Common { limits, accept: *end, durable: self.is_durable(), schedule })
    }

    /// What a run that goes on has of a board.
    fn kept(&self, name: &str) -> Option<Kept> {
        Some(self.resumed?.boards.get(name).cloned().unwrap_or_default())
    }

    fn is_durable(&self) -> bool {
        self.file.experiment.confirm == ConfirmAt::Durable
    }

    fn fade(&mut self, common: &Common) -> Result<Vec<GroupSettings>, Usage> {
        let was_stopped = fade::WasStopped(self.resumed.is_some_and(|resumed| resumed.was_stopped));
        let mut groups: BTreeMap<_, fade::FadeSettings> = BTreeMap::new();
        for (at, feb) in each("fade", &self.file.experiment.fade) {
            let plan = self.plan(at, (&feb.name, feb.sinks.as_ref()), feb.verify, 1)?;
            // One that is busy may not answer now.
            let Kept { protocol, firmware, .. } = self.kept(&feb.name).unwrap_or_default();
            let (protocol, firmware) = (feb.protocol.or(protocol.map(Text)), feb.firmware.or(firmware.map(Text)));
            let feb = Fade { protocol, firmware, ..feb.clone() };
            let place = (feb.interface.clone(), feb.backend, feb.busy_poll);
            let group = groups.entry(place).or_insert_with(|| feb.group(common));
            feb.add_to(group, (plan, was_stopped), common).map_err(|wrong| self.file.wrong(at, &wrong))?;
        }
        Ok(groups.into_values().map(GroupSettings::Fade).collect())
    }

    /// Adds a board to those of its port. Another address, and what the port has, is expected of it.
    fn add<S: PartialEq>(
        &self,
        at: At,
        senders: &mut Senders,
        (address, plan): (IpAddr, Plan),
        (own, first): (S, S),
    ) -> Result<(), Usage> {
        let Senders::Known(known) = senders else { return Ok(()) };
        if known.iter().any(|(other, _)| *other == address) {
            let what = format!("`{address}`: expected an address that no other board of this port has");
            return Err(self.file.error(at, "address", &what));
        }
        if own != first {
            let what = "expected the values that the first board of this port has for ring and receive_buffer";
            return Err(self.file.error(at, "ring", what));
        }
        known.push((address, plan));
        Ok(())
    }

    fn tcp(&mut self, common: &Common) -> Result<Vec<GroupSettings>, Usage> {
        let mut groups: BTreeMap<_, tcp::TcpSettings> = BTreeMap::new();
        for (at, tcp) in each("tcp", &self.file.experiment.tcp) {
            let group = tcp.group((Senders::Known(Vec::new()), Some(0)), common);
            let group = group.map_err(|wrong| self.file.wrong(at, &wrong))?;
            tcp.check_address().map_err(|wrong| self.file.wrong(at, &wrong))?;
            let streams = usize::from(tcp.streams);
            let plan = self.plan(at, (&tcp.name, tcp.sinks.as_ref()), tcp.verify, streams)?;
            if !groups.contains_key(&tcp.place()) {
                self.listen(at, "port", SocketAddr::new(tcp.listen, tcp.port))?;
            }
            let group = groups.entry(tcp.place()).or_insert(group);
            let settings = ((tcp.ring, tcp.receive_buffer), (group.ring, group.receive_buffer));
            self.add(at, &mut group.senders, (tcp.address, plan), settings)?;
            group.streams = group.streams.map(|n| n + u32::from(tcp.streams));
        }
        Ok(groups.into_values().map(GroupSettings::Tcp).collect())
    }

    fn udp(&mut self, common: &Common) -> Result<Vec<GroupSettings>, Usage> {
        let mut groups: BTreeMap<_, udp::UdpSettings> = BTreeMap::new();
        for (at, udp) in each("udp", &self.file.experiment.udp) {
            if self.file.experiment.disk.full == Full::Hold {
                let expected = "not with [[udp]], whose boards cannot wait; expected stop";
                return Err(self.file.wrong_of("disk", &WrongField::new("full", "hold", expected)));
            }
            let group = udp.group((Senders::Known(Vec::new()), Vec::new(), None), common);
            let group = group.map_err(|wrong| self.file.wrong(at, &wrong))?;
            udp.check_address().map_err(|wrong| self.file.wrong(at, &wrong))?;
            let is_known =
                |(at, other): (&_, &udp::UdpSettings)| *at != group.address && other.boards.contains(&udp.address);
            if groups.iter().any(is_known) {
                let expected = "expected an address that no board of another port has: a board sends to one port";
                return Err(self.file.wrong(at, &WrongField::new("address", udp.address, expected)));
            }
            let plan = self.plan(at, (&udp.name, udp.sinks.as_ref()), udp.verify, 1)?;
            let group = groups.entry(group.address).or_insert(group);
            let settings = ((udp.ring, udp.buffer()), (group.ring, group.receive_buffer));
            self.add(at, &mut group.senders, (udp.address.into(), plan), settings)?;
            group.boards.push(udp.address);
            group.streams = Some(group.boards.len() as u32);
        }
        Ok(groups.into_values().map(GroupSettings::Udp).collect())
    }

    fn crates(&mut self, at: At, crates: &Crates, common: &Common) -> Result<GroupSettings, Usage> {
        let name = &crates.name;
        self.name(at, name)?;
        let mut sinks = Vec::new();
        for text in &crates.sinks {
            let error = |what: String| self.file.error(at, "sinks", &format!("`{text}`: {what}"));
            let mut spec: sink::Spec = self.named(text, name).map_err(error)?;
            self.place_of_user(at, text, &mut spec, name)?;
            sinks.push(spec);
        }
        fadelink_sinks::check_optional(&sinks).map_err(|what| self.file.error(at, "sinks", &what))?;
        self.listen(at, "port", SocketAddr::new(crates.listen, crates.port))?;
        if let Some(web) = crates.web {
            self.listen(at, "web", web)?;
        }
        let port = crates.port(Limits { idle: None, ..common.limits });
        let group = common.not_durable("the kernel confirms the data of crates");
        let group = group.and_then(|()| crates.group(port, (sinks, None), common.accept));
        let group = group.map_err(|wrong| self.file.wrong(at, &wrong))?;
        Ok(GroupSettings::Crates(group))
    }
}
