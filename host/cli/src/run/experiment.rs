//! The file of an experiment (docs/runs.md): boards, what is done with their data, when a run begins and ends. Errors name
//! line, field, value and what was expected.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{absolute, Path, PathBuf};

use anyhow::Context;
use fadelink_receiver::WrongField;
use fadelink_sinks::settings;
use headers::ETag;
use schemars::{schema_for, JsonSchema};
use serde::{Deserialize, Serialize};
use toml::de::DeTable;
use toml::Spanned;

use super::values::{self, Wrong};
use crate::board::{ConfirmAt, Crates, Fade, Tcp, Threads, Udp};
use crate::exit::Usage;
use crate::expected;
use crate::text::{path, shown, some_path, Moment, Seconds, Size, Start, Text};
use crate::verdict::Accept;

/// What a run needs to know. Relative paths are relative to the folder of the file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Folder of the runs, which are folders in it: run_000001, run_000002
    #[serde(default = "runs", deserialize_with = "path")]
    pub folder: PathBuf,
    /// Title, for the manifest of each run
    #[serde(default)]
    pub title: String,
    /// When a run begins: now, command (fadelink start, POST /start), or a moment like 2026-12-01T08:00:00Z
    #[serde(default)]
    pub start: Start,
    /// Seconds in which boards with FADE (not kernel) and UDP that do not answer at the begin are asked again, and in which an
    /// interface or an address of this computer that is not there, or is down, is looked for again; without it, 0
    pub wait: Option<Seconds>,
    /// What ends a run, beside a command (fadelink stop, POST /stop) and Ctrl-C
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub stop: Stop,
    /// When packets are confirmed to the boards. With durable a run goes on after a crash or a power cut
    #[serde(default)]
    pub confirm: ConfirmAt,
    /// What counts as the end of a board's data. A run that ends otherwise is not called complete
    #[serde(default)]
    pub end: Accept,
    /// Sinks of boards that have none of their own, as --sink of `fadelink receive`. {board} is the name of the board,
    /// {run} the number of the run; relative paths are in the folder of the run
    #[serde(default = "sinks")]
    pub sinks: Vec<String>,
    /// File with settings of the client of Kafka, as --kafka-config-file of `fadelink receive`; without it, no TLS and no password
    #[serde(default, deserialize_with = "some_path")]
    pub kafka_config_file: Option<PathBuf>,
    /// Address of the HTTP server, as 127.0.0.1:9470; without it, there is none
    pub http: Option<SocketAddr>,
    /// What is done before the disk is full
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub disk: Disk,
    /// Scheduling of the threads that receive FADE
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub threads: Threads,
    /// Boards with FADE-10G or FADE v1
    #[serde(default)]
    #[schemars(with = "Vec<Fade>", extend("default" = []))]
    pub fade: Vec<Spanned<Fade>>,
    /// Boards with the TCP sender
    #[serde(default)]
    #[schemars(with = "Vec<Tcp>", extend("default" = []))]
    pub tcp: Vec<Spanned<Tcp>>,
    /// Boards with the UDP/IP stack
    #[serde(default)]
    #[schemars(with = "Vec<Udp>", extend("default" = []))]
    pub udp: Vec<Spanned<Udp>>,
    /// FADC crates, whose messages are joined to events
    #[serde(default)]
    #[schemars(with = "Vec<Crates>", extend("default" = []))]
    pub crates: Vec<Spanned<Crates>>,
}

fn runs() -> PathBuf {
    "runs".into()
}

fn sinks() -> Vec<String> {
    vec!["file:{board}.dat".into()]
}

/// What ends a run: the first of these.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// Seconds since the begin; without it, no limit
    pub duration: Option<Seconds>,
    /// A moment like 2026-12-01T18:00:00Z; without it, no limit
    pub time: Option<Moment>,
    /// Data of all boards together, as 512M or 100G; without it, no limit
    pub size: Option<Text<Size>>,
    /// Seconds in which a board sends nothing; the run is then not complete. Without it, no limit
    pub idle: Option<Seconds>,
}

/// What is done before the disk is full.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Space that is kept free, as 512M or 10G
    #[serde(default = "reserve")]
    pub reserve: Text<Size>,
    /// What happens when no more is free
    #[serde(default)]
    pub full: Full,
}

fn reserve() -> Text<Size> {
    Text(Size(1 << 30))
}

impl Default for Disk {
    fn default() -> Disk {
        Disk { reserve: reserve(), full: Full::default() }
    }
}

/// What happens when no space is left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Full {
    /// The run ends
    #[default]
    Stop,
    /// The boards wait until there is space again
    Hold,
}

/// The table of a board, for errors.
#[derive(Clone, Copy)]
pub struct At {
    kind: &'static str,
    /// Of those of its kind, from 0.
    number: usize,
    /// Where it begins in the text.
    begin: usize,
}

/// As errors name it.
impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.kind, self.number)
    }
}

/// The boards of a kind, each with its table.
pub fn each<'a, T>(kind: &'static str, tables: &'a [Spanned<T>]) -> impl Iterator<Item = (At, &'a T)> {
    let at = move |(number, table): (usize, &'a Spanned<T>)| {
        (At { kind, number, begin: table.span().start }, table.get_ref())
    };
    tables.iter().enumerate().map(at)
}

/// An experiment with the text that it was read from.
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// It can be read again: a pipe is read once.
    is_kept: bool,
    /// What it says.
    pub experiment: Experiment,
}

/// The folder of the runs of an experiment, whatever else is wrong in its file; and what identifies the file's text.
///
/// # Errors
/// The file cannot be read, or is not TOML; the field is wrong.
pub fn runs_of(path: &Path) -> anyhow::Result<(PathBuf, ETag)> {
    /// That field alone.
    #[derive(Deserialize)]
    struct Folder {
        #[serde(default = "runs", deserialize_with = "crate::text::path")]
        folder: PathBuf,
    }
    let text = settings::read(path).with_context(|| format!("{}", path.display()))?;
    let Folder { folder } = toml::from_str(&text).map_err(|error| {
        let (line, what) = (error.span().map_or(1, |span| line(&text, span.start)), in_words(&error, &text));
        Usage(format!("{}: line {line}: {what}; or expected the folder of the runs in its place", path.display()))
    })?;
    Ok((folder_beside(path, &folder)?, tag(&text)))
}

/// What identifies the text of a file: its BLAKE3 hash, as HTTP has it.
fn tag(text: &str) -> ETag {
    format!("\"{}\"", blake3::hash(text.as_bytes()).to_hex()).parse().expect("a quoted hash")
}

/// Absolute: what sinks say of it is the same wherever the program was started.
fn folder_beside(path: &Path, folder: &Path) -> anyhow::Result<PathBuf> {
    let folder = path.with_file_name(folder);
    absolute(&folder).with_context(|| format!("folder {}", folder.display()))
}

impl File {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or a field is wrong.
    pub fn read(path: &Path) -> anyhow::Result<File> {
        let text = settings::read(path).with_context(|| format!("{}", path.display()))?;
        let mut experiment = parse(&text).map_err(|error| Usage(format!("{}: {error}", path.display())))?;
        experiment.folder = folder_beside(path, &experiment.folder)?;
        experiment.kafka_config_file = experiment.kafka_config_file.map(|other| path.with_file_name(other));
        Ok(File { path: path.to_owned(), text, is_kept: path.is_file(), experiment })
    }

    /// True if something else is in it now, or it is not there any more.
    pub fn has_changed(&self) -> bool {
        let is_same = || self.path.is_file() && settings::read(&self.path).is_ok_and(|text| text == self.text);
        self.is_kept && !is_same()
    }

    /// What identifies its text.
    pub fn tag(&self) -> ETag {
        tag(&self.text)
    }

    fn at_line(&self, begin: usize, field: &str, what: &str) -> Usage {
        let name = field.rsplit('.').next().unwrap_or(field);
        let line = line_of_field(&self.text, begin, name);
        Usage(format!("{}: line {line}: {field}: {}", self.path.display(), shown(what)))
    }

    /// An error in `field` of the file itself.
    pub fn error_of(&self, field: &str, value: &str, what: &str) -> Usage {
        self.at_line(0, field, &format!("`{value}`: {what}"))
    }

    /// An error in `field` of a table.
    pub fn error(&self, at: At, field: &str, what: &str) -> Usage {
        self.at_line(at.begin, &format!("{at}.{field}"), what)
    }

    /// The error of a field of a table; or of `confirm`, which is that of all boards, and is not possible with this one.
    pub fn wrong(&self, at: At, wrong: &WrongField) -> Usage {
        let what = format!("`{}`: {}", wrong.value, wrong.expected);
        match wrong.field {
            "confirm" => self.at_line(0, wrong.field, &what),
            field => self.error(at, field, &what),
        }
    }

    /// The error of a field of the table `name`, of which there is one.
    pub fn wrong_of(&self, name: &str, WrongField { field, value, expected }: &WrongField) -> Usage {
        let begin = self.text.find(&format!("\n[{name}]")).map_or(0, |before| before + 1);
        self.at_line(begin, &format!("{name}.{field}"), &format!("`{value}`: {expected}"))
    }
}

fn line(text: &str, at: usize) -> usize {
    1 + text[..at.min(text.len())].matches('\n').count()
}

/// Line of a field in the table that begins at `begin`; that of the table, if it does not have it.
fn line_of_field(text: &str, begin: usize, field: &str) -> usize {
    let first = line(text, begin);
    let is_field = |line: &str| {
        let rest = line.trim_start().strip_prefix(field).map(str::trim_start);
        rest.is_some_and(|rest| rest.starts_with('='))
            || line.contains(&format!("{{ {field} ="))
            || line.contains(&format!(", {field} ="))
    };
    let lines = text.lines().enumerate().skip(first - 1);
    let mut table = lines.enumerate().take_while(|(i, (_, line))| *i == 0 || !line.starts_with('['));
    table.find(|(_, (_, line))| is_field(line)).map_or(first, |(_, (number, _))| number + 1)
}

/// An error with the value that is wrong.
fn in_words(error: &toml::de::Error, text: &str) -> String {
    let message = error.message();
    let of_type = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "));
    let expected = match of_type.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((_, name)) => Some(format!("expected {}", expected::type_in_words(name))),
        None => expected::in_words(message),
    };
    match expected {
        Some(expected) => with_value(error.span(), text, &expected),
        None => message.to_owned(),
    }
}

/// What was expected, behind the value there.
fn with_value(at: Option<Range<usize>>, text: &str, expected: &str) -> String {
    let value = at.and_then(|span| text.get(span)).map(|value| value.trim_matches(['"', '\'']));
    match value.filter(|value| !value.is_empty() && !value.contains('\n')) {
        Some(value) => format!("`{value}`: {expected}"),
        None => expected.to_owned(),
    }
}

fn parse(text: &str) -> Result<Experiment, String> {
    let at = |error: &toml::de::Error, path: &str| {
        let field = if path.is_empty() { String::new() } else { format!("{path}: ") };
        format!("line {}: {field}{}", error.span().map_or(1, |span| line(text, span.start)), in_words(error, text))
    };
    let table = DeTable::parse(text).map_err(|error| at(&error, ""))?;
    values::check(schema_for!(Experiment).as_value(), table.get_ref()).map_err(|Wrong { at, field, expected }| {
        format!("line {}: {field}: {}", line(text, at.start), shown(&with_value(Some(at), text, &expected)))
    })?;
    let deserializer = toml::Deserializer::from(table);
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path: Vec<_> =
            error.path().iter().map(ToString::to_string).filter(|part| !part.starts_with('$') && part != "?").collect();
        let path = path.join(".").replace(".[", "[");
        at(error.inner(), &path)
    })
}

#[cfg(test)]
mod tests {
    use fadelink_receiver::FebConfig;

    use super::*;

    #[test]
    fn defaults() {
        let experiment = parse("").unwrap();
        assert_eq!((experiment.folder, experiment.start), ("runs".into(), Start::Now));
        assert_eq!(experiment.disk.reserve.0, Size(1 << 30));
        let text = "[[fade]]\nname = 'a'\ninterface = 'e'\nmac = '02:00:00:00:00:01'";
        assert_eq!(parse(text).unwrap().fade[0].get_ref().window, FebConfig::default().window);
    }

    #[test]
    fn errors_name_line_field_value_and_expectation() {
        let fade = "\n[[fade]]\nname = 'a'\ninterface = 'e'\nmac = '02:00:00:00:00:01'\n";
        for (text, expected) in [
            ("start = 'later'", &["line 1: start: `later`", "now, command or a moment like"][..]),
            ("\nstop = { duration = -1 }", &["line 2: stop.duration: `-1`: expected a number of seconds"]),
            ("[stop]\nsize = '5 GB'", &["line 2: stop.size: `5 GB`: expected a size like"]),
            ("[stop]\ntime = 'noon'", &["line 2: stop.time: `noon`: expected a moment like"]),
            ("http = 'here'", &["line 1: http: `here`: expected an IP address and a port, as 127.0.0.1:9470"]),
            ("folders = 'x'", &["line 1: ", "unknown field `folders`, expected one of `folder`"]),
            ("[disk]\nfull = 'wait'", &["line 2: disk.full: `wait`: expected stop or hold"]),
            ("disk = { full = true }", &["line 1: disk.full: `true`: expected stop or hold"]),
            ("confirm = 5", &["line 1: confirm: `5`: expected memory or durable"]),
            ("confirm = {}", &["line 1: confirm: `{}`: expected memory or durable"]),
            ("confirm = { durable = {} }", &["line 1: confirm: `{ durable = {} }`: expected memory or durable"]),
            ("end = ['told']", &["line 1: end: `['told']`: expected one of confirmed, told, silence"]),
            ("http = 5", &["line 1: http: `5`: expected an IP address and a port, as 127.0.0.1:9470"]),
            ("folder = ''", &["line 1: folder: ``: expected a path"]),
            ("folder = \"a\\u0000\"", &["line 1: folder: `a\\0`: expected a path"]),
            ("kafka_config_file = ''", &["line 1: kafka_config_file: ``: expected a path"]),
            ("stop = { size = 5 }", &["line 1: stop.size: `5`: expected a text"]),
            ("[stop]\nsize = true", &["line 2: stop.size: `true`: expected a size like 512M or 1G"]),
            (
                "stop.time = 9999-12-31T23:59:59Z",
                &["`9999-12-31T23:59:59Z`", ", at most 9999-12-30T22:00:00.999999999Z"],
            ),
            (&format!("{fade}backend = 1"), &["line 6: fade[0].backend: `1`: expected one of packet, xdp, kernel"]),
            (&format!("{fade}protocol = 1"), &["line 6: fade[0].protocol: `1`: expected fade10g or fade1"]),
            ("[[crates]]\nlate = ['drop']", &["line 2: crates[0].late: `['drop']`: expected emit or drop"]),
            (
                "[[crates]]\nsources = [1, -1]",
                &["line 2: crates[0].sources[1]: `-1`: expected a whole number from 0 to 4294967295"],
            ),
            ("[[crates]]\nexpect = 'x'", &["line 2: crates[0].expect: `x`: expected a whole number from 1 to 65536"]),
            ("[[tcp]]\nport = 65536", &["line 2: tcp[0].port: `65536`: expected a whole number from 1 to 65535"]),
            ("[[tcp]]\nport = 0x1_0000", &["line 2: tcp[0].port: `0x1_0000`: expected a whole number from 1 to 65535"]),
            ("[[tcp]]\naddress = 1", &["line 2: tcp[0].address: `1`: expected an IP address, as 10.9.0.2"]),
            ("[[udp]]\naddress = 1", &["line 2: udp[0].address: `1`: expected an IPv4 address, as 10.9.0.2"]),
            (&format!("{fade}verify = 'countr'"), &["line 6: fade[0].verify: `countr`: expected counter"]),
            (&format!("{fade}ring = 'x'"), &["line 6: fade[0].ring: `x`: expected a whole number from 1 to 16777216"]),
            (&format!("{fade}window = -5"), &["line 6: fade[0].window: `-5`: expected a whole number from 1 to 64"]),
            (&format!("{fade}mak = 1"), &["line 6: fade[0]", "`mak`", "`mac`"]),
            ("[[fade]]\nname = 'a'", &["line 1: fade[0]: missing field `interface`"]),
            (
                "[[tcp]]\nname = 'a'\naddress = '10.9.0'",
                &["line 3: tcp[0].address: `10.9.0`: expected an IP address, as 10.9.0.2"],
            ),
            ("title = ", &["line 1: "]),
        ] {
            let error = parse(text).unwrap_err();
            assert!(expected.iter().all(|part| error.contains(part)), "{text}\n{error}\n{expected:?}");
        }
    }

    #[test]
    fn lines_of_fields() {
        let text = "title = 'x'\n[[fade]]\nname = 'a'\n ring = 5\n[[fade]]\nname = 'b'\n";
        let line = |table, field| line_of_field(text, table, field);
        assert_eq!([line(12, "ring"), line(42, "ring"), line(42, "name")], [4, 5, 6]);
    }
}
