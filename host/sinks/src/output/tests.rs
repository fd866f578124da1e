//! What files are until a source begins, while they are written, and at the end.

use std::io::Write;

use super::*;

type Make = fn(&Path, bool) -> io::Result<Output>;

/// A file with its name from the begin, and one that gets it when it is whole.
const MAKES: [Make; 2] =
    [|name, overwrite| Output::create(name, overwrite, OFlags::empty()), Output::create_unfinished];

/// One whose source has begun.
fn begun(output: io::Result<Output>) -> Output {
    let mut output = output.unwrap();
    output.begin().unwrap();
    output
}

fn text(result: io::Result<Output>) -> String {
    result.unwrap_err().to_string()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_has_one_writer() {
    for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let output = MAKES[first](&path, false).unwrap();
        let found = names(folder.path());
        for overwrite in [false, true] {
            // A file that has its name exists, whether it is written or not.
            let expected = if (first, second, overwrite) == (0, 1, false) { "a exists" } else { "is being written" };
            let error = text(MAKES[second](&path, overwrite));
            assert!(error.contains(expected), "{first} {second} {overwrite}: {error}");
            assert_eq!(names(folder.path()), found, "nothing of it is left");
        }
        drop(output);
        assert!(MAKES[second](&path, true).is_ok());
    }
}

#[test]
fn links_are_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(name("a"), name("soft")).unwrap();
    let output = begun(MAKES[0](&name("soft"), false));
    assert!(name("a").exists(), "a link to nothing is followed");
    fs::hard_link(name("a"), name("hard")).unwrap();
    for other in ["a", "./a", "hard", "soft"] {
        assert!(text(MAKES[0](&name(other), true)).contains("is being written"), "{other}");
    }
    assert!(output.finish(0).is_ok());
    assert_eq!(place(&name("./a")), place(&folder.path().join("../").join(name("a"))));
    assert_ne!(place(&name("a")), place(&name("b")));
}

#[test]
fn nothing_is_replaced_without_being_asked() {
    for make in MAKES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "before").unwrap();
        assert!(text(make(&path, false)).contains("a exists"));
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("before".into(), vec!["a".into()]));
        let output = begun(make(&path, true));
        output.file().write_all(b"now").unwrap();
        output.finish(3).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("now".into(), vec!["a".into()]));
        assert!(make(folder.path(), true).unwrap_err().raw_os_error().is_some(), "a folder");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    // Left by a program that was killed.
    fs::write(folder.path().join("a.part"), "before").unwrap();
    assert!(text(MAKES[1](&path, false)).contains("a.part exists"));
    fs::remove_file(folder.path().join("a.part")).unwrap();
    // It comes while the file is written.
    let output = begun(MAKES[1](&path, false));
    output.file().write_all(b"now").unwrap();
    fs::write(&path, "meanwhile").unwrap();
    let error = output.finish(3).unwrap_err().to_string();
    assert!(error.contains("a exists, and did not at the begin; the data is in"), "{error}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!((read("a"), read("a.part")), ("meanwhile".into(), "now".into()));
    assert!(MAKES[1]("/dev/null".as_ref(), true).is_err(), "no device is replaced");
    assert!(begun(MAKES[0]("/dev/null".as_ref(), false)).finish(7).unwrap().is_none());
}

#[test]
fn what_others_do_is_told() {
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 7] = [
        ("was removed or renamed", |path| fs::remove_file(path).unwrap()),
        ("was removed or renamed", |path| fs::rename(path, path.with_extension("x")).unwrap()),
        ("a folder of its path was", |path| {
            let folder = path.parent().unwrap();
            fs::rename(folder, folder.with_extension("x")).unwrap();
        }),
        ("was replaced", |path| {
            fs::remove_file(path).unwrap();
            fs::write(path, "12345678").unwrap();
        }),
        ("has 3 bytes instead of 8", |path| File::options().write(true).open(path).unwrap().set_len(3).unwrap()),
        ("has 9 bytes instead of 8", |path| File::options().append(true).open(path).unwrap().write_all(b"x").unwrap()),
        ("has 0 bytes instead of 8", |path| File::create(path).map(drop).unwrap()),
    ];
    for make in MAKES {
        for (expected, harm) in harms {
            let top = tempfile::tempdir().unwrap();
            let folder = top.path().join("folder");
            fs::create_dir(&folder).unwrap();
            let output = begun(make(&folder.join("a"), false));
            output.file().write_all(b"12345678").unwrap();
            output.check(8).unwrap();
            harm(output.path().unwrap());
            let error = output.finish(8).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let output = begun(make(&path, false));
        output.file().write_all(b"12345678").unwrap();
        let made = output.finish(8).unwrap().unwrap();
        made.check().unwrap();
        fs::write(&path, "1234567").unwrap();
        assert!(made.check().unwrap_err().to_string().contains("has 7 bytes instead of 8"), "behind its end, too");
        // The clock of a file system has steps.
        let modified = || fs::metadata(&path).unwrap().modified().unwrap();
        let before = modified();
        while modified() == before {
            fs::write(&path, "12345679").unwrap();
        }
        let error = made.check().unwrap_err().to_string();
        assert!(error.contains("was written by another program after it was finished"), "{error}");
        drop(output);
        // It gets the same inode on many file systems.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "12345678").unwrap();
        assert!(made.check().is_err());
    }
}

#[test]
fn the_hash_is_that_of_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let output = begun(MAKES[1](&path, false));
    output.writer().unwrap().write_all(b"1234").unwrap();
    output.writer().unwrap().write_all(b"5678").unwrap();
    // Another program.
    File::options().write(true).open(output.path().unwrap()).unwrap().write_all(b"x").unwrap();
    let entry = serde_json::to_value(output.finish(8).unwrap().unwrap()).unwrap();
    let expected = serde_json::json!({
        "path": path, "bytes": 8, "blake3": blake3::hash(b"12345678").to_hex().as_str()
    });
    assert_eq!(entry, expected);
    let output = begun(MAKES[1](&folder.path().join("b"), false));
    output.writer().unwrap().write_all(b"1234").unwrap();
    output.file().set_len(2).unwrap();
    let entry = serde_json::to_value(output.finish(2).unwrap().unwrap()).unwrap();
    assert!(entry["blake3"].is_null(), "a part was cut off: {entry}");
}

#[test]
fn what_another_writer_cuts_is_found_whatever_is_written_then() {
    let folder = tempfile::tempdir().unwrap();
    let output = begun(MAKES[0](&folder.path().join("a"), false));
    output.file().write_all(b"12345678").unwrap();
    output.file().set_len(4).unwrap();
    output.file().write_all(b"12345678").unwrap();
    assert!(output.finish(16).unwrap_err().to_string().contains("has 12 bytes instead of 16"));
}

#[test]
fn what_does_not_begin_leaves_all_as_it_was() {
    let content = |path: &Path| (fs::read(path).unwrap(), fs::metadata(path).unwrap().modified().unwrap());
    for (number, make) in MAKES.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let name = |name: &str| folder.path().join(name);
        let written = if number == 0 { name("a") } else { durable::unfinished(&name("a")) };
        drop(make(&name("a"), false).unwrap());
        assert_eq!(names(folder.path()), Vec::<String>::new(), "it was new");
        fs::write(&written, "before").unwrap();
        let before = content(&written);
        drop(make(&name("a"), true).unwrap());
        assert_eq!(content(&written), before);
        begun(make(&name("a"), true));
        assert_eq!((content(&written).0, names(folder.path()).len()), (Vec::new(), 1), "it is the sink's own now");
        drop(make(&name("a"), true).unwrap());
        assert!(written.exists(), "it was there, though it is empty");
        fs::remove_file(&written).unwrap();
        // What another program does meanwhile is not undone.
        let output = make(&name("a"), false).unwrap();
        fs::write(&written, "meanwhile").unwrap();
        drop(output);
        assert_eq!(fs::read(&written).unwrap(), b"meanwhile");
        let mut output = make(&name("a"), true).unwrap();
        fs::rename(&written, name("moved")).unwrap();
        fs::write(&written, "another").unwrap();
        assert!(output.begin().unwrap_err().to_string().contains("was replaced"));
        drop(output);
        assert_eq!(
            (fs::read(&written).unwrap(), fs::read(name("moved")).unwrap()),
            (b"another".into(), b"meanwhile".into())
        );
        fs::remove_file(&written).unwrap();
        let output = make(&name("a"), false).unwrap();
        fs::remove_file(&written).unwrap();
        File::create(&written).unwrap();
        drop(output);
        assert!(written.exists(), "it is another file");
        fs::remove_file(&written).unwrap();
        let mut output = make(&name("a"), false).unwrap();
        fs::write(&written, "more").unwrap();
        assert!(output.begin().unwrap_err().to_string().contains("has 4 bytes instead of 0"));
        assert_eq!(fs::read(&written).unwrap(), b"more");
    }
    let folder = tempfile::tempdir().unwrap();
    let name = |name: &str| folder.path().join(name);
    std::os::unix::fs::symlink(name("a"), name("soft")).unwrap();
    let output = MAKES[0](&name("soft"), false).unwrap();
    assert!(name("a").exists());
    drop(output);
    assert_eq!(names(folder.path()), ["soft"], "the link was there, and what it leads to was not");
}

/// A reader may lock it as soon as it is finished, though its name is claimed until the end of the run.
#[test]
fn a_file_that_is_finished_can_be_locked() {
    for make in MAKES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut output = begun(make(&path, true));
        output.hold().unwrap();
        let made = output.finish(0).unwrap().unwrap();
        let reader = File::open(&path).unwrap();
        let shared = || flock(&reader, FlockOperation::NonBlockingLockShared);
        assert!(shared().is_err());
        drop(output);
        assert!(shared().is_ok());
        drop(made);
    }
}
