//! Specifications of sinks, as users write them.

use std::fmt;
use std::str::FromStr;

use crate::options::Options;
use crate::output::{check_name, place};
use crate::places::Places;
use crate::terms::Policy;

/// Sinks of one kind of items: what their names are, and their options.
pub trait Kind: Sized {
    /// What may be written, for errors.
    const EXPECTED: &'static str;
    /// Those that this program was built without, by the feature of the same name.
    const LEFT_OUT: &'static [&'static str];
    /// What waits for a sink of `policy=wait` stays in the source's memory: there is no queue to be sized.
    const WAITS_AT_THE_SOURCE: bool;

    /// True if its place is a path.
    fn is_path(&self) -> bool;

    /// Names of the files that it makes at `place`; none, if it makes none.
    fn places(&self, place: &str) -> Vec<Places>;

    /// The sink `name` at `place`; `None`: there is none of this name.
    ///
    /// # Errors
    /// Its place or its options are wrong.
    fn parse(name: &str, place: &str, options: &mut Options<'_>) -> Result<Option<Self>, String>;
}

/// A sink: `KIND:PLACE[,OPTION...]`. Options of all: `policy=wait` (it holds the source up when it is slow) or
/// `policy=drop`, `queue=SIZE`, what may wait for it, and `optional` (all others go on when it fails).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec<K> {
    /// As its user wrote it.
    pub text: String,
    /// What it is.
    pub kind: K,
    /// Where it is.
    pub place: String,
    /// What it does when it is slow.
    pub policy: Policy,
    /// All others go on when it fails.
    pub optional: bool,
    /// Bytes that may wait for it; without it, as the items have it.
    pub queue: Option<u64>,
}

impl<K: Kind> FromStr for Spec<K> {
    type Err = String;

    fn from_str(text: &str) -> Result<Spec<K>, String> {
        let expected = K::EXPECTED;
        let (name, rest) = text.split_once(':').ok_or_else(|| format!("expected {expected}"))?;
        let mut parts = rest.split(',');
        let place = parts.next().filter(|place| !place.is_empty()).ok_or_else(|| format!("expected {expected}"))?;
        let mut options = Options::of(parts);
        let policy = match options.value("policy")? {
            None | Some("wait") => Policy::Wait,
            Some("drop") => Policy::Drop,
            Some(other) => return Err(format!("policy `{other}`: expected wait or drop")),
        };
        let (queue, optional) = (options.size("queue")?, options.flag("optional")?);
        if queue.is_some() && policy == Policy::Wait && K::WAITS_AT_THE_SOURCE {
            return Err("queue: needs policy=drop; with policy=wait data waits in the ring (--ring)".into());
        }
        let unknown = || match K::LEFT_OUT.iter().find(|feature| name.starts_with(**feature)) {
            Some(feature) => format!("sink `{name}`: this program was built without it (cargo feature {feature})"),
            None => format!("sink `{name}`: expected {expected}"),
        };
        let kind = K::parse(name, place, &mut options)?.ok_or_else(unknown)?;
        if kind.is_path() {
            check_name(place)?;
        }
        options.end().map_err(|error| format!("{error}: expected {expected}"))?;
        Ok(Spec { text: text.to_owned(), kind, place: place.to_owned(), policy, optional, queue })
    }
}

/// At least one of these sinks has to do its work.
///
/// # Errors
/// What was expected.
pub fn check_optional<K>(sinks: &[Spec<K>]) -> Result<(), String> {
    match sinks.last() {
        Some(last) if sinks.iter().all(|sink| sink.optional) => {
            Err(format!("`{last}`: all sinks are optional: expected one that is not"))
        }
        _ => Ok(()),
    }
}

/// Each sink needs files of its own; pipes and devices may be written by several.
///
/// # Errors
/// Two that could have one together.
pub fn check_distinct<'a, K: Kind + 'a>(sinks: impl Iterator<Item = &'a Spec<K>>) -> Result<(), String> {
    let mut others: Vec<&Spec<K>> = Vec::new();
    for sink in sinks {
        let path = place(sink.place.as_ref());
        let is_file = path.metadata().map_or(true, |found| found.is_file());
        if let Some(other) = others.iter().find(|other| is_file && sink.meets(other)) {
            let is_same = path == place(other.place.as_ref());
            let what = if is_same { "has the same place" } else { "has files with the same names" };
            return Err(format!("{sink}: {other} {what}; expected another name"));
        }
        others.push(sink);
    }
    Ok(())
}

impl<K: Kind> Spec<K> {
    /// Names of the files that it makes.
    pub fn places(&self) -> Vec<Places> {
        self.kind.places(&self.place)
    }

    /// True if a file could be of both.
    pub fn meets(&self, other: &Spec<K>) -> bool {
        let others = other.places();
        self.places().iter().any(|own| others.iter().any(|other| own.meets(other)))
    }
}

impl<K> fmt::Display for Spec<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
