//! Values that the kernel gives in /proc and /sys.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

/// The files below a directory, `/` but in tests.
pub struct Files(PathBuf);

impl Files {
    pub fn of_this_computer() -> Files {
        Files("/".into())
    }

    #[cfg(test)]
    pub fn below(root: &std::path::Path) -> Files {
        Files(root.into())
    }

    /// A file without the white space around it; `None` if it is not there or cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.0.join(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The value that a file holds.
    pub fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names in a directory, sorted; none if it is not there.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(path)).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    fn exists(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }

    /// The bridge or bond that takes the frames of an interface.
    pub fn master(&self, iface: &str) -> Option<String> {
        let index = self.value(&format!("sys/class/net/{iface}/ifindex"))?;
        fadelink_receiver::interface::master(&self.0.join("sys"), iface, index)
    }

    pub fn has_interface(&self, iface: &str) -> bool {
        !iface.contains('/') && self.exists(&format!("sys/class/net/{iface}/ifindex"))
    }

    pub fn is_ethernet(&self, iface: &str) -> bool {
        self.value(&format!("sys/class/net/{iface}/type")) == Some(libc::ARPHRD_ETHER)
    }

    /// Ethernet interfaces that are hardware.
    pub fn cards(&self) -> Vec<String> {
        let is_card = |iface: &String| self.is_ethernet(iface) && self.exists(&format!("sys/class/net/{iface}/device"));
        self.names("sys/class/net").into_iter().filter(is_card).collect()
    }
}
