//! Whether the sinks of a run will find the folders of their files.

use std::path::{Component, Path, PathBuf};

/// Checks the place of a sink before there is a run: its folder must be there. `runs`: the folder of the runs. It is made, with those
/// above it, and in it the folder of the run, which relative places are in; no other one is.
///
/// # Errors
/// Which folder is missing.
pub fn check(runs: &Path, place: &str) -> Result<(), String> {
    let of_run = runs.join("run");
    let parent = Path::new(place).parent().unwrap_or(Path::new(""));
    let mut folder = if parent.is_absolute() { Path::new("/").to_owned() } else { of_run.clone() };
    for part in parent.components() {
        match part {
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
            // Of one that is made later nothing is a link.
            Component::ParentDir if !folder.exists() => _ = folder.pop(),
            // One that is called by a stream is of those who know the streams.
            Component::Normal(name) if name.to_string_lossy().contains("{stream}") => return Ok(()),
            part => folder.push(part),
        }
        if !folder.is_dir() && !of_run.starts_with(&folder) {
            let missing = folder.strip_prefix(&of_run).unwrap_or(&folder).display();
            return Err(format!(
                "there is no folder {missing}, and the run makes none: expected a folder that is there, or the name of a file in \
                 the folder of the run"
            ));
        }
    }
    Ok(())
}

/// The same for all paths of a file, also in a folder that is not there yet.
pub fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut real = PathBuf::new();
    for part in absolute.components() {
        match part {
            Component::ParentDir => _ = real.pop(),
            part => real.push(part),
        }
    }
    fadelink_sinks::place(&real)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_that_will_be_there() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("data")).unwrap();
        std::fs::write(base.path().join("file"), "").unwrap();
        for made in [false, true] {
            let runs = base.path().join("a/runs");
            if made {
                std::fs::create_dir_all(&runs).unwrap();
            }
            let base = base.path().display();
            for place in ["x", "./x", "../x", "../../x", "../../../data/x", "../../../data/{stream}/x"] {
                assert_eq!(check(&runs, place), Ok(()), "{place}");
            }
            for place in
                ["data/x", "a/runs/x", "a/x", "x", "missing/{stream}", "file/x"].map(|end| format!("{base}/{end}"))
            {
                let is_there = !place.contains("missing") && !place.contains("file");
                assert_eq!(check(&runs, &place).is_ok(), is_there, "{place}");
            }
            for place in ["sub/x", "sub/../x", "../sub/x", "../../../file/x"] {
                assert!(check(&runs, place).is_err(), "{place}");
            }
        }
        assert!(check("runs".as_ref(), "sub/x").unwrap_err().contains("no folder sub, and"));
    }
}
