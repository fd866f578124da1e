//! What the HDF5 library is used for, with its errors in few words.

use std::io;
use std::path::Path;

use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{Dataset, File, Group, H5Type};

/// Sets an attribute of text.
///
/// # Errors
/// The library's.
pub fn set_text(file: &File, name: &str, value: &str) -> io::Result<()> {
    set(file, name, &value.parse::<VarLenUnicode>().unwrap_or_default())
}

/// Sets an attribute of a number.
///
/// # Errors
/// The library's.
pub fn set<T: H5Type>(file: &File, name: &str, value: &T) -> io::Result<()> {
    let attribute = file.new_attr::<T>().create(name);
    attribute.and_then(|attribute| attribute.write_scalar(value)).map_err(failed)
}

/// A dataset of one dimension that grows, in chunks of so many rows.
///
/// # Errors
/// The library's.
pub fn column<T: H5Type>(group: &Group, name: &str, chunk: usize) -> io::Result<Dataset> {
    group.new_dataset::<T>().chunk(chunk).shape(0..).create(name).map_err(failed)
}

/// Writes rows at the end of a dataset.
///
/// # Errors
/// The library's.
pub fn append<T: H5Type>(dataset: &Dataset, rows: &[T]) -> io::Result<()> {
    let begin = dataset.size();
    let end = begin + rows.len();
    dataset.resize(end).and_then(|()| dataset.write_slice(rows, begin..end)).map_err(failed)
}

/// Opens a file to be read.
///
/// # Errors
/// The library's.
pub fn open(path: &Path) -> io::Result<File> {
    File::with_options().with_fapl(|access| access.file_locking(false)).open(path).map_err(failed)
}

/// An error of the library; one of the operating system is that, and not the page of text around it.
pub fn failed(error: hdf5_metno::Error) -> io::Error {
    let text = error.to_string();
    let number = text.split_once("errno = ").and_then(|(_, rest)| rest.split(',').next()?.trim().parse().ok());
    match number {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::other(text.split_whitespace().collect::<Vec<_>>().join(" ")),
    }
}
