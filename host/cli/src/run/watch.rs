//! What ends a run: its user, a limit that the file of the experiment has, a board, the disk.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::control::Controlled;
use super::experiment::{File, Full};
use super::folder::{self, RunFolder};
use super::life::Event;
use super::manifest::Manifest;
use crate::board::ConfirmAt;
use crate::interrupts::Interrupts;
use crate::metrics::{self, Meter};
use crate::receive::{measure, Group, LOOK};

/// How often is noted how long a run has gone on.
const NOTED: Duration = Duration::from_secs(1);

/// What ends a run.
pub struct Watch<'a> {
    file: &'a File,
    interrupts: &'a Interrupts,
    /// Of this run.
    part: &'a Interrupts,
    control: &'a Controlled,
    folder: &'a RunFolder,
    pub manifest: &'a mut Manifest,
    /// What is waited for.
    pub missing: Option<String>,
    /// When its first board has begun.
    begun: Option<Instant>,
    /// How long it had gone on before, of a run that goes on.
    before: Duration,
    looked: Option<Instant>,
    /// How long it had gone on when that was noted.
    noted: Duration,
    /// What has ended it.
    pub ended_by: Option<&'static str>,
    /// Free bytes when the end was asked for, of the reserve.
    room: Option<u64>,
    pub meter: Meter,
}

impl<'a> Watch<'a> {
    /// Of a run that has gone on for some time `before`.
    pub fn new(
        file: &'a File,
        (interrupts, part, control): (&'a Interrupts, &'a Interrupts, &'a Controlled),
        folder: &'a RunFolder,
        manifest: &'a mut Manifest,
        before: Duration,
    ) -> Watch<'a> {
        Watch {
            file,
            interrupts,
            part,
            control,
            folder,
            manifest,
            missing: None,
            begun: None,
            before,
            looked: None,
            noted: before,
            ended_by: None,
            room: None,
            meter: Meter::default(),
        }
    }

    fn reason(&self, bytes: u64) -> anyhow::Result<Option<&'static str>> {
        let experiment = &self.file.experiment;
        let stop = &experiment.stop;
        let free = || folder::free_space(&self.folder.path);
        let reserve = experiment.disk.reserve.0 .0;
        Ok(if self.interrupts.must_stop() {
            Some("signal")
        } else if self.control.must_stop() {
            Some("command")
        } else if stop.duration.is_some_and(|limit| self.gone_on() >= Duration::from(limit)) {
            Some("duration")
        } else if stop.time.is_some_and(|time| Timestamp::now() >= time.0) {
            Some("time")
        } else if stop.size.is_some_and(|size| bytes >= size.0 .0) {
            Some("size")
        } else if self.part.must_stop() {
            Some("boards")
        } else if experiment.disk.full == Full::Stop && free()? < reserve {
            tracing::warn!("the run ends: less than {reserve} bytes are free on its disk (disk.reserve)");
            Some("disk")
        } else {
            None
        })
    }

    fn hold(&self) -> anyhow::Result<()> {
        let disk = &self.file.experiment.disk;
        // At the end what is in the rings is written in any case.
        if disk.full != Full::Hold || self.part.must_stop() {
            return Ok(());
        }
        let is_full = folder::free_space(&self.folder.path)? < disk.reserve.0 .0;
        if is_full != self.part.must_hold() {
            self.part.hold(is_full);
            if is_full {
                tracing::warn!("the boards wait: less than {} bytes are free (disk.reserve)", disk.reserve.0 .0);
            } else {
                tracing::info!("the boards go on: there is space again");
            }
        }
        Ok(())
    }

    /// At the end, half of the reserve is for what is on its way: of a board that sends on no more is written then.
    fn cut(&mut self) -> anyhow::Result<()> {
        if !self.part.must_stop() || self.part.must_cut() {
            return Ok(());
        }
        let free = folder::free_space(&self.folder.path)?;
        let room = *self.room.get_or_insert(free.min(self.file.experiment.disk.reserve.0 .0));
        if free < room / 2 {
            tracing::warn!("boards that send on are cut off: less than {} bytes are free (disk.reserve)", room / 2);
            self.part.cut();
        }
        Ok(())
    }

    fn show_run(&self) {
        let held = if self.part.must_hold() { 1.0 } else { 0.0 };
        metrics::set_of_program("fadelink_run_held", held);
        metrics::set_of_program("fadelink_disk_reserve_bytes", self.file.experiment.disk.reserve.0 .0 as f64);
        if let Ok(free) = folder::free_space(&self.folder.path) {
            metrics::set_of_program("fadelink_disk_free_bytes", free as f64);
        }
    }

    /// How long the run has gone on, also before its program was ended by force.
    fn gone_on(&self) -> Duration {
        self.before + self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// Notes it for a program that goes on. Without that the run is longer than its user wants, and no data is missing.
    fn note_time(&mut self) {
        let is_wanted = self.file.experiment.confirm == ConfirmAt::Durable;
        if is_wanted && self.gone_on() >= self.noted + NOTED {
            self.noted = self.gone_on();
            if let Err(error) = self.folder.goes_on(self.noted) {
                tracing::warn!("the time of the run is not noted: {error}");
            }
        }
    }

    /// Looks at the groups from time to time, and asks for the end where it is time.
    ///
    /// # Errors
    /// The run cannot go on.
    pub fn look(&mut self, groups: &[Box<dyn Group>]) -> anyhow::Result<()> {
        match self.looked {
            Some(looked) if looked.elapsed() < LOOK => Ok(()),
            _ => self.look_now(groups),
        }
    }

    /// The same while something is `missing`, and others may send already; `is_left`: the user waits no longer.
    ///
    /// # Errors
    /// As of [`Self::look`].
    pub fn wait(&mut self, groups: &mut [Box<dyn Group>], missing: &str, is_left: bool) -> anyhow::Result<()> {
        groups.iter_mut().try_for_each(|group| group.poll().map(drop))?;
        self.missing = Some(missing.to_owned());
        if is_left || self.part.must_stop() {
            self.look_now(groups)
        } else {
            self.look(groups)
        }
    }

    /// The same, at once.
    ///
    /// # Errors
    /// As of [`Self::look`].
    pub fn look_now(&mut self, groups: &[Box<dyn Group>]) -> anyhow::Result<()> {
        self.looked = Some(Instant::now());
        self.missing.iter().for_each(|missing| self.meter.trouble(missing.clone()));
        measure(groups, &mut self.meter);
        self.show_run();
        if self.missing.is_some() && !self.part.has_begun() && !self.part.must_stop() {
            // The limits of a run hold when it has begun.
            return Ok(());
        }
        self.begun = self.begun.or(self.looked);
        if self.part.may_have_begun() {
            self.control.step(Event::Receives);
        }
        self.note_time();
        let lines: Vec<_> = groups.iter().flat_map(|group| group.lines()).collect();
        self.control.show(&lines);
        self.hold()?;
        self.cut()?;
        if self.ended_by.is_none() {
            self.ended_by = self.reason(lines.iter().map(|line| line.bytes).sum())?;
            // What is confirmed when it is safe goes on later.
            let may_go_on = self.part.have_failed() && self.file.experiment.confirm == ConfirmAt::Durable;
            if let Some(reason) = self.ended_by.filter(|_| !self.manifest.was_stopped() && !may_go_on) {
                self.manifest.stopping(reason)?;
            }
            if self.ended_by.is_some() {
                self.control.step(Event::Ends);
                self.part.stop();
            }
        }
        Ok(())
    }
}
