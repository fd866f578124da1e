//! What others do to a file that is written, and what is said of it then.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

pub type Harm = fn(&Path);

pub const HARMS: [(&str, Harm); 6] = [
    ("was removed or renamed", |path| fs::remove_file(path).unwrap()),
    ("was removed or renamed", |path| fs::rename(path, path.with_extension("x")).unwrap()),
    ("a folder of its path was", |path| {
        let folder = path.parent().unwrap();
        fs::rename(folder, folder.with_extension("x")).unwrap();
    }),
    ("was replaced by another one", |path| {
        let copy = path.with_extension("x");
        fs::copy(path, &copy).unwrap();
        fs::rename(copy, path).unwrap();
    }),
    ("bytes instead of", |path| {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let bytes = file.metadata().unwrap().len();
        file.set_len(if bytes == 0 { 1 } else { bytes / 2 }).unwrap();
    }),
    ("bytes instead of", |path| OpenOptions::new().append(true).open(path).unwrap().write_all(b"x").unwrap()),
];
