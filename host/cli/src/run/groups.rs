//! The boards of an experiment as groups that are received together.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fadelink_builder::{sink, Policy};
use fadelink_receiver::schedule::{self, Schedule};
use fadelink_receiver::{Confirm, FebConfig};
use fadelink_runs::files::{HASHES, TRANSMISSIONS};
use fadelink_sinks::hashes::Blocks;
use fadelink_sinks::{BlockKind, Kind, Spec};
use fadelink_wire::{Firmware, Protocol};
use toml::Spanned;

use super::experiment::{Backend, ConfirmAt, Crates, Duplicate, Experiment, Fade, File, Full, Join, Keep, Tcp, Udp};
use super::{files, folder, places};
use crate::build;
use crate::deadline::Limits;
use crate::exit::Usage;
use crate::fadc_crates::{self, JoinBy};
use crate::interrupts::Interrupts;
use crate::link::{BackendArgs, Link};
use crate::receive::{fade, tcp, udp, Before, Group, Patience, Plan, Senders, Transmissions, UdpPatience, UDP_BUFFER};

/// Boards that are received together, before they are.
pub enum Settings {
    Fade(fade::Settings),
    Tcp(tcp::Settings),
    Udp(udp::Settings),
    Crates(build::Settings),
}

impl Settings {
    /// Begins to receive.
    ///
    /// # Errors
    /// An interface, a port or a sink that cannot be opened.
    pub fn begin(self, interrupts: &Interrupts) -> anyhow::Result<Box<dyn Group>> {
        Ok(match self {
            Settings::Fade(settings) => Box::new(fade::Febs::begin(settings, interrupts)?),
            Settings::Tcp(settings) => Box::new(tcp::Streams::begin(settings, interrupts)?),
            Settings::Udp(settings) => Box::new(udp::Streams::begin(settings, interrupts)?),
            Settings::Crates(settings) => Box::new(build::Crates::begin(settings, interrupts)?),
        })
    }
}

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

impl Settings {
    /// The plans of boards whose words are written.
    pub fn plans(&self) -> Vec<&Plan> {
        match self {
            Settings::Fade(fade) => fade.febs.iter().map(|feb| &feb.plan).collect(),
            Settings::Tcp(tcp::Settings { senders: Senders::Known(known), .. })
            | Settings::Udp(udp::Settings { senders: Senders::Known(known), .. }) => {
                known.iter().map(|(_, plan)| plan).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The sinks of events.
    pub fn event_sinks(&self) -> &[sink::Spec] {
        match self {
            Settings::Crates(crates) => &crates.views.sinks,
            _ => &[],
        }
    }
}

/// Name of the file with the hashes of a board's words. In the place of `{stream}` comes the stream, if it has several.
pub fn hashes(board: &str, several: bool) -> String {
    format!("{board}{}{HASHES}", if several { "-{stream}" } else { "" })
}

/// What turns the file of an experiment into groups.
struct Reader<'a> {
    file: &'a File,
    /// Of the run; of the runs, if it `is_new`.
    folder: &'a Path,
    is_new: bool,
    run: &'a str,
    resumed: Option<&'a Resumed>,
    /// Of the boards so far: the line's table is named in errors.
    names: Vec<String>,
    /// What the places of sinks are used by.
    places: HashMap<PathBuf, String>,
}

/// The groups of an experiment; relative paths of sinks are in `folder`. `run`: name of the run, which no other one has.
/// `resumed`: of one that goes on.
///
/// # Errors
/// Fields that do not fit together, by line.
pub fn of(file: &File, (folder, run): (&Path, &str), resumed: Option<&Resumed>) -> Result<Vec<Settings>, Usage> {
    Reader { file, folder, is_new: false, run, resumed, names: Vec::new(), places: HashMap::new() }.read()
}

/// Checks an experiment before there is a run: also that the sinks will find their folders.
///
/// # Errors
/// As [`of`].
pub fn check(file: &File) -> Result<(), Usage> {
    let (folder, names, places) = (&*file.experiment.folder, Vec::new(), HashMap::new());
    folder::check_name(folder)?;
    Reader { file, folder, is_new: true, run: "", resumed: None, names, places }.read().map(drop)
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(['.', '-'])
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

impl Reader<'_> {
    /// Reads all of it.
    fn read(mut self) -> Result<Vec<Settings>, Usage> {
        let mut groups = self.fade()?;
        groups.extend(self.tcp()?);
        groups.extend(self.udp()?);
        for crates in &self.file.experiment.crates {
            groups.push(self.crates(crates)?);
        }
        if groups.is_empty() {
            let path = self.file.path.display();
            return Err(Usage(format!("{path}: no boards: expected [[fade]], [[tcp]], [[udp]] or [[crates]]")));
        }
        Ok(groups)
    }

    /// The name of a board may be part of the names of files, and is its own.
    fn name<T>(&mut self, table: &Spanned<T>, name: &str) -> Result<(), Usage> {
        if !is_name(name) {
            let expected = "expected letters, digits, - _ and ., no . or - first";
            return Err(self.file.error(table, "name", &format!("`{name}`: {expected}")));
        }
        if self.names.iter().any(|other| other == name) {
            let expected = "expected a name that no other board has";
            return Err(self.file.error(table, "name", &format!("`{name}`: {expected}")));
        }
        self.names.push(name.to_owned());
        Ok(())
    }

    /// A sink as this board and this run have it.
    fn named(&self, text: &str, board: &str) -> String {
        let run = folder::number_of(self.folder).unwrap_or(0);
        text.replace("{board}", board).replace("{run}", &run.to_string())
    }

    /// Refuses a place with a name that a run has for itself, or that would be another one when the run goes on.
    fn free_name<T>(&self, table: &Spanned<T>, text: &str, place: &str) -> Result<(), Usage> {
        if place.contains("{time}") {
            let what =
                format!("`{text}`: `{{time}}` is not the name of a file; expected {{run}}, the number of the run");
            return Err(self.file.error(table, "sinks", &what));
        }
        let name = Path::new(place).file_name().map_or("".into(), |name| name.to_string_lossy());
        if files::is_own(&name) {
            let what =
                format!("`{text}`: `{name}` is the name of a file that the run writes itself; expected another name");
            return Err(self.file.error(table, "sinks", &what));
        }
        Ok(())
    }

    /// Puts a sink where this board has it; no other may be there.
    fn place<T>(
        &mut self,
        table: &Spanned<T>,
        text: &str,
        place: &mut String,
        board: &str,
        is_path: bool,
    ) -> Result<(), Usage> {
        if is_path {
            if self.is_new {
                places::check(self.folder, place)
                    .map_err(|what| self.file.error(table, "sinks", &format!("`{text}`: {what}")))?;
            }
            *place = self.folder.join(&*place).to_string_lossy().into_owned();
        }
        let key = if is_path { fadelink_sinks::place(place.as_ref()) } else { PathBuf::from(&*place) };
        match self.places.insert(key, board.to_owned()) {
            Some(other) => {
                let what = format!("`{text}`: `{other}` has a sink at the same place; expected {{board}} in it");
                Err(self.file.error(table, "sinks", &what))
            }
            None => Ok(()),
        }
    }

    /// The plan of a board with these sinks.
    fn plan<T>(
        &mut self,
        table: &Spanned<T>,
        (name, sinks): (&str, Option<&Vec<String>>),
        verify: Option<crate::pattern::Pattern>,
        streams: usize,
    ) -> Result<Plan, Usage> {
        self.name(table, name)?;
        let texts = sinks.unwrap_or(&self.file.experiment.sinks).clone();
        let hashes = format!("hashes:{}", hashes(name, streams > 1));
        let mut sinks = Vec::new();
        for text in texts.iter().chain([&hashes]) {
            let error = |what: String| self.file.error(table, "sinks", &format!("`{text}`: {what}"));
            let mut spec: Spec<BlockKind> = self.named(text, name).parse().map_err(error)?;
            if streams > 1 && !spec.is_per_board("stream") {
                return Err(error("expected {stream} in the path, for each stream of the board".into()));
            }
            let mut place = std::mem::take(&mut spec.place);
            if *text != hashes {
                self.free_name(table, text, &place)?;
            }
            self.place(table, text, &mut place, name, spec.kind.is_path())?;
            spec.place = place;
            sinks.push(spec);
        }
        // The hashes are the last.
        fadelink_sinks::check_optional(&sinks[..texts.len()]).map_err(|what| self.file.error(table, "sinks", &what))?;
        let durable = self.is_durable();
        let (resumed, before, transmissions) = match self.kept(name) {
            Some(kept) => (Some(kept.blocks), kept.before, kept.transmissions),
            None if durable => {
                let mut place = format!("{name}{TRANSMISSIONS}");
                self.place(table, &place.clone(), &mut place, name, true)?;
                (None, None, Transmissions::to(place.into()))
            }
            None => (None, None, Transmissions::default()),
        };
        let (name, run) = (Some(name.to_owned()), self.run.to_owned());
        let plan = Plan { name, run, sinks, verify, streams, durable, resumed, before, transmissions };
        if durable {
            plan.check_durable()
                .map_err(|what| self.file.error(table, "sinks", &format!("confirm = \"durable\": {what}")))?;
        }
        Ok(plan)
    }

    /// Of each board: run-wide limits are looked after elsewhere.
    fn limits(&self) -> Limits {
        let Experiment { wait, stop, .. } = &self.file.experiment;
        let wait = wait.map_or(Duration::ZERO, Duration::from);
        Limits { wait, idle: stop.idle.map(Duration::from), ..Limits::default() }
    }

    /// What a run that goes on has of a board.
    fn kept(&self, name: &str) -> Option<Kept> {
        Some(self.resumed?.boards.get(name).cloned().unwrap_or_default())
    }

    fn is_durable(&self) -> bool {
        self.file.experiment.confirm == ConfirmAt::Durable
    }

    /// Boards that cannot wait for the disk are not confirmed so.
    fn not_durable<T>(&self, table: &Spanned<T>, why: &str) -> Result<(), Usage> {
        if self.is_durable() {
            return Err(self.file.error(table, "confirm", &format!("`durable`: {why}; expected memory")));
        }
        Ok(())
    }

    fn schedule(&self) -> Schedule {
        let threads = &self.file.experiment.threads;
        let slice = threads.slice.map(|micros| schedule::Policy::Slice(Duration::from_micros(micros.into())));
        let policy = threads.priority.map(schedule::Policy::RealTime).or(slice);
        Schedule { cpus: threads.cpus.as_ref().map(|cpus| cpus.0.clone()), policy }
    }

    fn feb(&mut self, table: &Spanned<Fade>) -> Result<fade::Feb, Usage> {
        let feb = table.get_ref();
        let mac = feb.mac.0;
        if mac.is_multicast() {
            return Err(self.file.error(table, "mac", &format!("`{mac}`: expected a unicast address")));
        }
        // One that is busy may not answer now.
        let Kept { protocol, firmware, .. } = self.kept(&feb.name).unwrap_or_default();
        let config = FebConfig {
            ring_packets: feb.ring,
            window: feb.window,
            first_packet: feb.first_packet,
            protocol: feb.protocol.map(|text| text.0).or(protocol),
            firmware: feb.firmware.map(|text| text.0).or(firmware),
            word_order: feb.word_order.map(|text| text.0),
            confirm: if self.is_durable() { Confirm::Released } else { Confirm::Received },
            checksum: true,
        };
        config.check().map_err(|what| self.file.error(table, "ring", &what))?;
        if self.is_durable() && feb.backend == Backend::Kernel {
            let what =
                "`kernel`: the driver confirms what is in memory; expected packet or xdp with confirm = \"durable\"";
            return Err(self.file.error(table, "backend", what));
        }
        let plan = self.plan(table, (&feb.name, feb.sinks.as_ref()), feb.verify.map(|text| text.0), 1)?;
        let was_stopped = fade::WasStopped(self.resumed.is_some_and(|resumed| resumed.was_stopped));
        Ok(fade::Feb { mac, config, plan, take_over: feb.take_over, was_stopped })
    }

    fn fade(&mut self) -> Result<Vec<Settings>, Usage> {
        let mut groups: BTreeMap<_, Vec<fade::Feb>> = BTreeMap::new();
        for table in &self.file.experiment.fade {
            let Fade { interface, backend, busy_poll, .. } = table.get_ref();
            let feb = self.feb(table)?;
            let febs = groups.entry((interface.clone(), *backend, *busy_poll)).or_default();
            if febs.iter().any(|other| other.mac == feb.mac) {
                let what = format!("`{}`: expected an address that no other board of {interface} has", feb.mac);
                return Err(self.file.error(table, "mac", &what));
            }
            febs.push(feb);
        }
        let (schedule, limits, accept) = (self.schedule(), self.limits(), self.file.experiment.end);
        let group = |((iface, backend, busy_poll), febs): ((String, Backend, bool), Vec<fade::Feb>)| {
            let link = Link { iface, backend_args: BackendArgs { backend: backend.into(), busy_poll } };
            let (schedule, patience) = (schedule.clone(), Patience::default());
            Settings::Fade(fade::Settings { link, febs, schedule, limits, accept, patience })
        };
        Ok(groups.into_iter().map(group).collect())
    }

    /// Refuses an address that a board of the same port has, settings that differ from those of the port, and a wrong ring.
    fn port<T, S: PartialEq>(
        &self,
        table: &Spanned<T>,
        (address, ring): (IpAddr, u64),
        known: &[(IpAddr, Plan)],
        (own, first): (S, S),
    ) -> Result<(), Usage> {
        if known.iter().any(|(other, _)| *other == address) {
            let what = format!("`{address}`: expected an address that no other board of this port has");
            return Err(self.file.error(table, "address", &what));
        }
        if !ring.is_power_of_two() || ring < crate::receive::RING_MIN {
            let what = format!("`{ring}`: expected a power of two, {} or more", crate::receive::RING_MIN);
            return Err(self.file.error(table, "ring", &what));
        }
        if own != first {
            let what = "expected the values that the first board of this port has for ring and receive_buffer";
            return Err(self.file.error(table, "ring", what));
        }
        Ok(())
    }

    fn tcp(&mut self) -> Result<Vec<Settings>, Usage> {
        let mut groups: BTreeMap<SocketAddr, tcp::Settings> = BTreeMap::new();
        for table in &self.file.experiment.tcp {
            self.not_durable(table, "the kernel confirms the data of [[tcp]]")?;
            let tcp @ Tcp { address, port, ring, receive_buffer, streams, .. } = table.get_ref();
            if *streams == 0 {
                return Err(self.file.error(table, "streams", "`0`: expected 1 or more"));
            }
            let listen = SocketAddr::new(tcp.listen.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), *port);
            let plan = self.plan(
                table,
                (&tcp.name, tcp.sinks.as_ref()),
                tcp.verify.map(|text| text.0),
                usize::from(*streams),
            )?;
            let group = groups.entry(listen).or_insert_with(|| tcp::Settings {
                address: listen,
                senders: Senders::Known(Vec::new()),
                streams: Some(0),
                limits: self.limits(),
                ring: *ring,
                receive_buffer: *receive_buffer,
                accept: self.file.experiment.end,
                patience: tcp::PATIENCE,
            });
            let Senders::Known(known) = &mut group.senders else { continue };
            let settings = ((*ring, *receive_buffer), (group.ring, group.receive_buffer));
            self.port(table, (*address, *ring), known, settings)?;
            known.push((*address, plan));
            group.streams = group.streams.map(|n| n + u32::from(*streams));
        }
        Ok(groups.into_values().map(Settings::Tcp).collect())
    }

    fn udp(&mut self) -> Result<Vec<Settings>, Usage> {
        let mut groups: BTreeMap<SocketAddrV4, udp::Settings> = BTreeMap::new();
        for table in &self.file.experiment.udp {
            self.not_durable(table, "nothing confirms the data of [[udp]]")?;
            if self.file.experiment.disk.full == Full::Hold {
                let what = "`hold`: not with [[udp]], whose boards cannot wait; expected stop";
                return Err(self.file.error(table, "full", what));
            }
            let udp @ Udp { address, port, ring, receive_buffer, .. } = table.get_ref();
            let listen = SocketAddrV4::new(udp.listen.unwrap_or(Ipv4Addr::UNSPECIFIED), *port);
            let plan = self.plan(table, (&udp.name, udp.sinks.as_ref()), udp.verify.map(|text| text.0), 1)?;
            let group = groups.entry(listen).or_insert_with(|| udp::Settings {
                address: listen,
                senders: Senders::Known(Vec::new()),
                boards: Vec::new(),
                streams: None,
                limits: self.limits(),
                ring: *ring,
                receive_buffer: receive_buffer.unwrap_or(UDP_BUFFER),
                accept: self.file.experiment.end,
                patience: UdpPatience::default(),
            });
            let Senders::Known(known) = &mut group.senders else { continue };
            let settings = ((*ring, receive_buffer.unwrap_or(UDP_BUFFER)), (group.ring, group.receive_buffer));
            self.port(table, (IpAddr::V4(*address), *ring), known, settings)?;
            known.push((IpAddr::V4(*address), plan));
            group.boards.push(*address);
            group.streams = Some(group.boards.len() as u32);
        }
        Ok(groups.into_values().map(Settings::Udp).collect())
    }

    fn crates(&mut self, table: &Spanned<Crates>) -> Result<Settings, Usage> {
        self.not_durable(table, "the kernel confirms the data of [[crates]]")?;
        let crates = table.get_ref();
        let name = &crates.name;
        self.name(table, name)?;
        fadc_crates::window(&crates.window_ns.to_string())
            .map_err(|what| self.file.error(table, "window_ns", &format!("`{}`: {what}", crates.window_ns)))?;
        if crates.sources.is_empty() == crates.expect.is_none() {
            return Err(self.file.error(table, "expect", "expected either sources or expect"));
        }
        if crates.expect == Some(0) {
            return Err(self.file.error(table, "expect", "`0`: expected 1 or more"));
        }
        let mut sinks = Vec::new();
        for text in &crates.sinks {
            let error = |what: String| self.file.error(table, "sinks", &format!("`{text}`: {what}"));
            let mut spec: sink::Spec = self.named(text, name).parse().map_err(error)?;
            let mut place = std::mem::take(&mut spec.place);
            self.free_name(table, text, &place)?;
            self.place(table, text, &mut place, name, spec.kind.is_path())?;
            spec.place = place;
            sinks.push(spec);
        }
        fadelink_sinks::check_optional(&sinks).map_err(|what| self.file.error(table, "sinks", &what))?;
        let join = if crates.join == Join::Time { JoinBy::Time } else { JoinBy::Counter };
        Ok(Settings::Crates(build::Settings {
            name: name.clone(),
            crates: fadc_crates::Settings {
                address: SocketAddr::new(crates.listen.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), crates.port),
                addresses: crates.addresses.clone(),
                streams: None,
                limits: Limits { idle: None, ..self.limits() },
                patience: fadc_crates::PATIENCE,
            },
            policy: Policy {
                key: join.key(crates.window_ns),
                window_ns: crates.window_ns,
                sources: crates.sources.clone(),
                count: crates.expect.unwrap_or(0),
                emit_incomplete: crates.missing == Keep::Emit,
                emit_late: crates.late == Keep::Emit,
                keep_last: crates.duplicate == Duplicate::Last,
                silence: crates.silence.into(),
                max_open: crates.max_open.max(1),
                max_bytes: fadelink_builder::OPEN_BYTES,
                max_ahead: crates.max_ahead,
            },
            views: build::Views { window_ns: crates.window_ns, builder_id: crates.builder_id, sinks, web: crates.web },
            events: None,
            accept: self.file.experiment.end,
        }))
    }
}
