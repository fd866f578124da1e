//! Binding of a socket. The library removes any file at the path of an `ipc` endpoint first.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use fadelink_sinks::{unix_path, Result};
use zmq::Socket;

/// Refuses a path at which there is a file, or a socket of a program that runs.
fn check_path(path: &Path) -> io::Result<()> {
    let in_use = || io::Error::new(ErrorKind::AddrInUse, "Address already in use");
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            Err(io::Error::new(ErrorKind::AlreadyExists, "there is a file of this name; choose another"))
        }
        // A program that was killed leaves one at which nobody listens.
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
            _ => Err(in_use()),
        },
    }
}

/// Binds a socket to an endpoint as its user wrote it.
///
/// # Errors
/// It is in use, or none of this computer.
pub fn bind(socket: &Socket, endpoint: &str) -> Result {
    if let Some(path) = endpoint.strip_prefix("ipc://").filter(|path| !path.starts_with(['@', '*'])) {
        if path.len() > unix_path::LONGEST {
            let (bytes, longest) = (path.len(), unix_path::LONGEST);
            return Err(format!("{endpoint}: a path of {bytes} bytes: expected at most {longest}").into());
        }
        check_path(path.as_ref()).map_err(|error| format!("{error}: {endpoint}"))?;
    }
    socket.bind(endpoint).map_err(|error| match error {
        zmq::Error::ENODEV | zmq::Error::EINVAL | zmq::Error::EPROTONOSUPPORT => {
            format!(
                "{error}: {endpoint}: expected an address of this computer, as in tcp://127.0.0.1:5555 or ipc:///path"
            )
        }
        _ => format!("{error}: {endpoint}"),
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_not_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (file, path) = (folder.path().join("run.dat"), folder.path().join("events"));
        fs::write(&file, "data").unwrap();
        let context = zmq::Context::new();
        let bind = |path: &Path| {
            let socket = context.socket(zmq::PUB).unwrap();
            bind(&socket, &format!("ipc://{}", path.display())).map(|()| socket).map_err(|error| error.to_string())
        };
        assert!(bind(&file).err().unwrap().contains("there is a file of this name"));
        assert_eq!(fs::read(&file).unwrap(), b"data");
        let first = bind(&path).unwrap();
        assert!(bind(&path).err().unwrap().contains("Address already in use"));
        drop(first);
        // One that was killed.
        let killed = folder.path().join("killed");
        drop(std::os::unix::net::UnixListener::bind(&killed).unwrap());
        bind(&killed).unwrap();
    }
}
