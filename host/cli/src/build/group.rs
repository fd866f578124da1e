//! The crates of a port, whose messages are joined to events.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use fadelink_builder::counts::{Counts, Joined, SourceCounts};
use fadelink_builder::intake::Intake;
#[cfg(feature = "kafka")]
use fadelink_builder::kafka;
use fadelink_builder::live::Live;
use fadelink_builder::sink::{self, SharedEvent};
use fadelink_builder::tcp::{Came, INTERRUPTED};
use fadelink_builder::{web, Event, Joiner, Policy};
use fadelink_sinks::{Onlooker, Outlets};
use fadelink_wire::fadc::TICK_NS;
use serde::Serialize;
use serde_json::{json, Map};

use crate::fadc_crates::{self, Connections, UnusedConnections};
use crate::http;
use crate::interrupts::Interrupts;
use crate::metrics::{self, Meter};
use crate::receive::{not_kept, Group, Line, Outcome};
#[cfg(feature = "kafka")]
use crate::verdict::End;
use crate::verdict::{Accept, Evidence, Verdict};

/// How often the end is looked for.
const TICK: Duration = Duration::from_millis(20);

/// What is done with events.
pub struct Views {
    pub window_ns: u32,
    /// Source identifier of the events.
    pub builder_id: u32,
    pub sinks: Vec<sink::Spec>,
    /// Address of the page with plots.
    pub web: Option<SocketAddr>,
}

/// How crates are received, and their messages joined.
pub struct CratesSettings {
    /// What they are called together.
    pub name: String,
    pub crates: fadc_crates::PortSettings,
    pub policy: Policy,
    pub views: Views,
    /// Events after which the end is asked for.
    pub events: Option<u64>,
    /// What the user takes for the end.
    pub accept: Accept,
}

/// The consumers of events.
pub struct Viewers {
    pub sinks: Outlets<SharedEvent>,
    live: web::SharedLive,
    has_page: bool,
    pub events: u64,
}

impl Viewers {
    pub fn open(views: &Views, interrupts: &Interrupts) -> anyhow::Result<Viewers> {
        let window_ticks = views.window_ns / TICK_NS;
        let run = sink::Run {
            builder_id: views.builder_id,
            window_ticks,
            stopping: interrupts.stopping().clone(),
            turned_away: metrics::count_turned_away,
        };
        let sinks = views.sinks.iter().map(|spec| sink::open(spec, &run)).collect::<Result<_, _>>()?;
        let live = Arc::new(Mutex::new(Live::new(window_ticks)));
        if let Some(address) = views.web {
            let address =
                http::serve(address, web::routes(live.clone())).with_context(|| format!("--web {address}"))?;
            tracing::info!("page at http://{address}/");
        }
        Ok(Viewers { sinks: Outlets::new(sinks), live, has_page: views.web.is_some(), events: 0 })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sinks begin with the first byte of a crate: without any they leave nothing.
    fn begin(&self, came: &Came, interrupts: &Interrupts) {
        if came.counts() != fadelink_builder::reader::Counts::default() {
            self.sinks.begin();
            interrupts.begin();
        }
    }

    /// Counts an event and adds it to the page.
    pub fn show(&mut self, event: &Event) {
        self.events += 1;
        if self.has_page {
            self.lock().add(event);
        }
    }

    /// Passes an event to all; false: a sink has failed.
    fn give(&mut self, event: Event) -> bool {
        self.show(&event);
        self.sinks.offer(&SharedEvent(Arc::new(event)))
    }

    /// Updates the rates.
    pub fn tick(&self) {
        if self.has_page {
            self.lock().tick(Instant::now());
        }
    }
}

/// The result of a run.
#[derive(Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub verdict: Verdict,
    events: u64,
    /// A sink, or a topic, has all events and keeps them.
    kept: bool,
    #[serde(flatten)]
    from: From,
    sinks: Vec<fadelink_sinks::Report>,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum From {
    Tcp {
        #[serde(flatten)]
        joined: Joined,
        #[serde(flatten)]
        came: Connections,
        /// Not all that came was given to the sinks.
        interrupted: bool,
    },
    #[cfg(feature = "kafka")]
    Kafka(kafka::Report),
}

impl From {
    /// Its events are kept where they come from: each is in the topic of events.
    fn keeps(&self) -> bool {
        match self {
            From::Tcp { .. } => false,
            #[cfg(feature = "kafka")]
            From::Kafka(report) => report.changed.is_empty() && report.unwritten == 0,
        }
    }

    /// Why it has done nothing, and had not to.
    fn idle(&self) -> Option<&'static str> {
        match self {
            From::Tcp { .. } => None,
            #[cfg(feature = "kafka")]
            From::Kafka(report) => report.idle,
        }
    }

    /// What it proves.
    fn known(&self, accept: Accept) -> Evidence<'static> {
        match self {
            From::Tcp { joined, came, interrupted } => {
                let known = came.known();
                let error = known.error.or_else(|| interrupted.then(|| INTERRUPTED.into()));
                Evidence { joined: joined.clone(), accept, error, ..known }
            }
            #[cfg(feature = "kafka")]
            From::Kafka(report) => Evidence {
                end: match report.end {
                    kafka::End::NothingCame => End::Missing,
                    kafka::End::Open => End::Silence,
                    kafka::End::ByOthers | kafka::End::Told => End::Confirmed,
                },
                accept,
                error: report.error.clone(),
                unwritten: report.failed.clone().filter(|_| report.unwritten > 0).map(|why| (report.unwritten, why)),
                joined: report.joined.clone(),
                malformed: report.malformed,
                gone: report.gone,
                unreported: report.unreported,
                changed: report.changed.clone(),
                open: report.open.clone(),
                ..Evidence::default()
            },
        }
    }
}

impl Report {
    /// Ends the sinks, whose files are as complete as what came, and judges.
    pub fn end(name: &str, mut viewers: Viewers, from: From, accept: Accept) -> Report {
        let known = from.known(accept);
        if let Err(error) = viewers.sinks.finish(Verdict::of(&known).is_complete()) {
            tracing::error!("{error}");
        }
        let mut sinks = viewers.sinks.reports();
        sinks.iter_mut().for_each(fadelink_sinks::Report::look_again);
        let verdict = Verdict::of(&Evidence { sinks: &sinks, ..known });
        metrics::set_verdict(name, &verdict, true);
        let kept = from.keeps() || sinks.iter().any(fadelink_sinks::Report::is_kept);
        Report { verdict, events: viewers.events, kept, from, sinks }
    }

    fn joined(&self) -> &Joined {
        match &self.from {
            From::Tcp { joined, .. } => joined,
            #[cfg(feature = "kafka")]
            From::Kafka(report) => &report.joined,
        }
    }

    /// Shows the connections that no messages were taken of, at the end.
    pub fn measure(&self, meter: &mut Meter) {
        match &self.from {
            From::Tcp { came, .. } => came.unused.measure(meter),
            #[cfg(feature = "kafka")]
            From::Kafka(_) => {}
        }
    }

    /// Tells why connections broke, and what was wrong with messages.
    pub fn tell(&self) {
        match &self.from {
            From::Tcp { came, .. } => came.tell(),
            #[cfg(feature = "kafka")]
            From::Kafka(_) => {}
        }
        if let Some(first) = &self.joined().first_wrong {
            tracing::warn!("the first wrong message: {first}");
        }
    }

    pub fn print(&self) {
        let joined = self.joined();
        let Counts { complete, incomplete, dropped, .. } = joined.windows;
        let (events, kept) = (self.events, if self.from.keeps() { "" } else { not_kept(&self.sinks) });
        out!(
            "{}{kept}: {events} events, {complete} complete, {incomplete} incomplete; {dropped} dropped",
            self.verdict
        );
        if let Some(idle) = self.from.idle() {
            out!("{idle}");
        }
        for (source, counts) in joined.by_name() {
            let SourceCounts { messages, missing, unknown, .. } = counts;
            out!("{source}: {messages} messages, {missing} missing, {unknown} unknown");
        }
        for sink in &self.sinks {
            let (count, what) = match sink.handed_over {
                0 => (sink.written, "written"),
                count => (count, "handed over, and nobody confirms them"),
            };
            let failed = if sink.error.is_some() { ", it has FAILED" } else { "" };
            out!("{}: {count} events {what}, {} dropped{failed}", sink.sink, sink.dropped);
        }
    }
}

/// What the thread has done so far.
#[derive(Default)]
struct Progressed {
    events: u64,
    joined: Joined,
    came: Came,
    unused: UnusedConnections,
    /// Connections that go on long after their ends were asked for.
    late: Option<String>,
}

impl Progressed {
    /// Bytes of whole messages.
    fn bytes(&self) -> u64 {
        self.came.counts().bytes
    }
}

/// The crates of a port.
pub struct Crates {
    name: String,
    thread: JoinHandle<Report>,
    progressed: Arc<Mutex<Progressed>>,
    sinks: Onlooker<SharedEvent>,
}

impl Crates {
    /// Begins to listen.
    ///
    /// # Errors
    /// The port, the page or a sink cannot be opened.
    pub fn begin(settings: CratesSettings, interrupts: &Interrupts) -> anyhow::Result<Crates> {
        let CratesSettings { name, crates, policy, views, events, accept } = settings;
        let mut viewers = Viewers::open(&views, interrupts)?;
        let intake = Arc::new(Intake::new(Joiner::new(policy)));
        let run = fadc_crates::Run::begin(&crates, intake.clone(), interrupts)?;
        let progressed = Arc::new(Mutex::default());
        let sinks = viewers.sinks.onlooker();
        let (shared, interrupts, own) = (progressed.clone(), interrupts.clone(), name.clone());
        let join = move || {
            let from = join(run, &intake, &mut viewers, events, &shared, &interrupts);
            Report::end(&own, viewers, from, accept)
        };
        let thread = std::thread::Builder::new().name("builder".into()).spawn(join)?;
        Ok(Crates { name, thread, progressed, sinks })
    }

    fn look<T>(&self, look: impl FnOnce(&Progressed) -> T) -> T {
        look(&self.progressed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True at the end.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Events so far, and how many of them are incomplete.
    pub fn events(&self) -> (u64, u64) {
        self.look(|progressed| (progressed.events, progressed.joined.windows.incomplete))
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// It has panicked.
    pub fn report(self) -> anyhow::Result<Report> {
        self.thread.join().map_err(|_| anyhow::anyhow!("the thread that builds events panicked"))
    }
}

/// Joins what comes until the end is asked for.
fn join(
    mut run: fadc_crates::Run,
    intake: &Intake,
    viewers: &mut Viewers,
    wanted: Option<u64>,
    shared: &Mutex<Progressed>,
    interrupts: &Interrupts,
) -> From {
    let mut looked = Instant::now();
    let mut events = Vec::new();
    let interrupted = loop {
        let now = Instant::now();
        if now >= looked + TICK {
            looked = now;
            let joined = intake.with_joiner(Joiner::joined);
            if viewers.has_page {
                viewers.lock().set_joiner(json!(joined));
            }
            viewers.tick();
            let came = run.came();
            viewers.begin(&came, interrupts);
            let (unused, late) = (run.unused(), run.late());
            let progressed = Progressed { events: viewers.events, joined, came, unused, late };
            *shared.lock().unwrap_or_else(PoisonError::into_inner) = progressed;
            if wanted.is_some_and(|wanted| viewers.events >= wanted) || !viewers.sinks.are_well() {
                interrupts.stop();
            }
            if run.poll() {
                intake.finish();
            }
            if interrupts.must_abort() {
                break true;
            }
        }
        if interrupts.must_hold() {
            // The joiner fills; then the crates wait.
            std::thread::sleep(TICK);
            continue;
        }
        if intake.next_events(now + TICK, &mut events).is_err() {
            break false;
        }
        events.drain(..).for_each(|event| {
            viewers.give(event);
        });
    };
    let came = run.finish(|| intake.give_up());
    viewers.begin(&came.came, interrupts);
    From::Tcp { joined: intake.with_joiner(Joiner::joined), came, interrupted }
}

impl Group for Crates {
    fn lines(&self) -> Vec<Line> {
        let note = |progressed: &Progressed| {
            format!("{} events, {} incomplete", progressed.events, progressed.joined.windows.incomplete)
        };
        vec![self.look(|progressed| Line {
            name: self.name.clone(),
            bytes: progressed.bytes(),
            note: note(progressed),
        })]
    }

    fn measure(&self, meter: &mut Meter) {
        self.look(|progressed| {
            meter.builder(&self.name, progressed.events, &progressed.joined);
            meter.connections(&progressed.came);
            progressed.unused.measure(meter);
            progressed.late.iter().for_each(|late| meter.trouble(late.clone()));
            let known = fadc_crates::so_far(&progressed.came);
            let known = Evidence { joined: progressed.joined.clone(), ..known };
            if !self.is_finished() {
                metrics::set_verdict(&self.name, &Verdict::so_far(known), false);
            }
        });
        // The thread that builds may wait for one of them.
        meter.event_sinks(&self.name, &self.sinks.reports());
    }

    fn poll(&mut self) -> anyhow::Result<bool> {
        Ok(self.is_finished())
    }

    fn finish(self: Box<Self>, silent: bool, meter: &mut Meter) -> anyhow::Result<Outcome> {
        let name = self.name.clone();
        let report = self.report()?;
        report.measure(meter);
        report.tell();
        if !silent {
            report.print();
        }
        let mut board = json!(report);
        board["name"] = name.into();
        let boards = [(report.verdict.state(), board)].into_iter();
        Ok(Outcome::of("crates", boards, Evidence::default(), Map::new()))
    }
}
