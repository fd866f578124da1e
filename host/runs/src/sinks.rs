//! The sinks of a board, as its report has them.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fadelink_sinks::{FileOptions, Parts, Places, Sender, DESCRIPTION, WINDOWS_END};
use serde_json::Value;

/// What stands for `{stream}` in the paths of a board, by its report.
pub fn stream(board: &Value) -> String {
    if let Some(stream) = board["stream"].as_str() {
        return stream.to_owned();
    }
    let peer = board["peer"].as_str().and_then(|peer| peer.parse::<SocketAddr>().ok());
    peer.map_or(String::new(), |peer| Sender::Tcp(peer).in_names())
}

/// A sink of a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink<'a> {
    /// As its user wrote it.
    pub text: &'a str,
    /// `file`, `hdf5` and so on.
    pub kind: &'a str,
    /// Its path, or what else it has.
    pub place: String,
    rolls: bool,
    /// The names of its files in the manifest, in their order; `None`: it does not say them.
    names: Option<Vec<&'a str>>,
    /// What it has lost.
    pub dropped: u64,
    /// Its user lets it lose some.
    pub may_drop: bool,
    /// What it has taken can be read again; false of a pipe, or a device.
    pub keeps: bool,
    /// The others go on when it fails.
    pub optional: bool,
    /// Why it has failed.
    pub error: Option<&'a str>,
}

impl<'a> Sink<'a> {
    /// Those of a board.
    pub fn all(board: &'a Value) -> Vec<Sink<'a>> {
        let stream = stream(board);
        let read = |sink: &'a Value| {
            let text = sink["sink"].as_str().unwrap_or_default();
            // What the user of `receive` has written.
            let (kind, rest) = text.split_once(':').unwrap_or(("", text));
            let mut parts = rest.split(',');
            let place = parts.next().unwrap_or_default().replace("{stream}", &stream);
            let rolls = matches!(kind, "hdf5" | "parquet")
                || parts.any(|option| option.starts_with("roll=") || option.starts_with("every="));
            let is_data = |name: &&str| !name.ends_with(DESCRIPTION);
            let names = sink["files"].as_array();
            let names = names.map(|names| names.iter().filter_map(Value::as_str).filter(is_data).collect());
            let (dropped, error) = (sink["dropped"].as_u64().unwrap_or(0), sink["error"].as_str());
            let (may_drop, keeps, optional) =
                (sink["may_drop"] == true, sink["keeps"] != false, sink["optional"] == true);
            Sink { text, kind, place, rolls, names, dropped, may_drop, keeps, optional, error }
        };
        board["sinks"].as_array().into_iter().flatten().map(read).collect()
    }

    /// True if it has files.
    pub fn is_file(&self) -> bool {
        matches!(self.kind, "file" | "hdf5" | "parquet")
    }

    /// True if it has all that it was given, and keeps it.
    pub fn is_whole(&self) -> bool {
        self.keeps && self.dropped == 0 && self.error.is_none()
    }

    fn options(&self) -> FileOptions {
        FileOptions { roll: self.rolls.then_some(1), ..FileOptions::default() }
    }

    /// The names of all files that it may have made.
    pub fn places(&self, folder: &Path) -> Vec<Places> {
        let places = Places::new(folder.join(&self.place), self.rolls);
        match self.kind {
            "parquet" => vec![places.beside(WINDOWS_END), places],
            _ => vec![places],
        }
    }

    /// The names of its files of data in the manifest, in their order.
    pub fn names(&self) -> &[&'a str] {
        self.names.as_deref().unwrap_or_default()
    }

    /// Its files of data, in their order: those that the manifest has, or those that are there.
    pub fn found(&self, folder: &Path) -> Vec<PathBuf> {
        match &self.names {
            Some(names) => names.iter().map(|name| folder.join(name)).collect(),
            None => Parts::found(folder.join(&self.place), self.options()),
        }
    }
}

/// The plain files of a board's words that have all of them, in their order; `None`: no sink has any.
pub fn word_files(folder: &Path, board: &Value) -> Option<Vec<PathBuf>> {
    Sink::all(board).iter().find(|sink| sink.kind == "file" && sink.is_whole()).map(|sink| sink.found(folder))
}
