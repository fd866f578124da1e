//! Whether the sinks of a run will find the folders of their files, and which paths are the same.

use std::path::{absolute, Component, Path, PathBuf};

/// Links that are followed for one path.
const LINKS: u32 = 40;

/// What stands in the name of a folder that is known later: of those who know the streams, and of the run when it has its number.
const LATER: [&str; 2] = ["{stream}", "{run}"];

/// Checks the place of a sink of a run whose folder is `of_run`: the sink's folder must be there, and no folder is to be the file.
/// The folder of the run may be made later, with those above it; no other one is.
///
/// # Errors
/// Which folder is missing.
pub fn check(of_run: &Path, place: &str) -> Result<(), String> {
    let of_run = real(of_run);
    let place = Path::new(place);
    let parent = place.parent().unwrap_or(Path::new(""));
    let mut folder = of_run.clone();
    for part in parent.components() {
        if LATER.iter().any(|key| part.as_os_str().to_string_lossy().contains(key)) {
            return Ok(());
        }
        step(&mut folder, part, LINKS);
        if !folder.is_dir() && !of_run.starts_with(&folder) {
            let missing = folder.strip_prefix(&of_run).unwrap_or(&folder).display();
            return Err(format!(
                "there is no folder {missing}, and the run makes none: expected a folder that is there, or the name of a file in \
                 the folder of the run"
            ));
        }
    }
    let file = folder.join(place.file_name().unwrap_or_default());
    match file.is_dir() || of_run.starts_with(&file) {
        true => Err(format!("{} is a folder; expected the name of a file", file.display())),
        false => Ok(()),
    }
}

/// Goes on from a path without links by a part of another one.
fn step(real: &mut PathBuf, part: Component<'_>, links: u32) {
    match part {
        Component::CurDir => {}
        Component::ParentDir => _ = real.pop(),
        part => {
            real.push(part);
            match (real.canonicalize(), real.read_link()) {
                (Ok(found), _) => *real = found,
                // It leads to what is not there yet.
                (Err(_), Ok(to)) if links > 0 => {
                    real.pop();
                    to.components().for_each(|part| step(real, part, links - 1));
                }
                _ => {}
            }
        }
    }
}

/// A path without links, also of what is not there yet.
pub fn real(path: &Path) -> PathBuf {
    if let Ok(found) = path.canonicalize() {
        return found;
    }
    let mut real = PathBuf::new();
    let absolute = absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.components().for_each(|part| step(&mut real, part, LINKS));
    real
}

/// The same for all paths of a file, but for links of the file itself.
pub fn named(path: &Path) -> PathBuf {
    let absolute = absolute(path).unwrap_or_else(|_| path.to_owned());
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => real(&absolute),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

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
            let of_run = runs.join("run");
            let base = base.path().display();
            for place in
                ["x", "./x", "../x", "../../x", "../../../data/x", "../../../data/{stream}/x", "../../../data/{run}/x"]
            {
                assert_eq!(check(&of_run, place), Ok(()), "{place}");
            }
            for place in
                ["data/x", "a/runs/x", "a/x", "x", "missing/{stream}", "file/x"].map(|end| format!("{base}/{end}"))
            {
                let is_there = !place.contains("missing") && !place.contains("file");
                assert_eq!(check(&of_run, &place).is_ok(), is_there, "{place}");
            }
            for place in
                ["sub/x", "sub/../x", "../sub/x", "../../../file/x", "../../../data", "../../../missing/{run}/x"]
            {
                assert!(check(&of_run, place).is_err(), "{place}");
            }
            for place in ["data", "a", "a/runs"].map(|end| format!("{base}/{end}")) {
                assert!(check(&of_run, &place).unwrap_err().contains("is a folder; expected"), "{place}");
            }
        }
        assert!(check("runs/run".as_ref(), "sub/x").unwrap_err().contains("no folder sub, and"));
    }

    #[test]
    fn links_lead_to_what_is_there_and_to_what_is_not() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::write(at("a/file"), "").unwrap();
        for (link, to) in [("folder", "a/b"), ("file", "a/file"), ("later", "a/none/x"), ("round", "round")] {
            symlink(to, at(link)).unwrap();
        }
        for (path, expected) in [
            ("folder/../c", "a/c"),
            ("folder/x/../y", "a/b/y"),
            ("file", "a/file"),
            ("later", "a/none/x"),
            ("none/../x", "x"),
            ("round", "round"),
        ] {
            assert_eq!(real(&at(path)), at(expected), "{path}");
        }
        assert_eq!(named(&at("folder/../file")), at("a/file"));
        assert_eq!(named(&at("file")), at("file"));
        assert_eq!(named("file".as_ref()), std::env::current_dir().unwrap().canonicalize().unwrap().join("file"));
    }
}
