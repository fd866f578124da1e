use super::*;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;

/// A folder of a test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("fadelink-locks-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("board")
    }

    fn is_empty(&self) -> bool {
        std::fs::read_dir(&self.0).unwrap().next().is_none()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

#[test]
fn a_lock_tells_its_holder_and_leaves_nothing() {
    let folder = Folder::new("holder");
    let path = folder.path();
    assert!(!is_locked(&path));
    let lock = take(&path).unwrap().unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    assert!(is_locked(&path));
    for holder in [take(&path).unwrap().unwrap_err(), take_in_turn(&path, soon()).unwrap().unwrap_err()] {
        assert!(matches!(holder, Holder::Program { pid, .. } if pid == std::process::id()), "{holder:?}");
    }
    drop(lock);
    assert!(!is_locked(&path) && folder.is_empty());
    drop(take_in_turn(&path, soon()).unwrap().unwrap());
    assert!(!is_locked(&path) && path.exists());
    drop(take(&path).unwrap().unwrap());
    assert!(folder.is_empty());
}

#[test]
fn a_file_that_was_left_behind_holds_nothing() {
    let folder = Folder::new("stale");
    let path = folder.path();
    std::fs::write(&path, "1234 a program with a longer name than that of this test\n").unwrap();
    assert!(!is_locked(&path));
    let lock = take(&path).unwrap().unwrap();
    assert!(std::fs::read(&path).unwrap().starts_with(&Holder::own()));
    assert_eq!(take(&path).unwrap().unwrap_err(), Holder::parse(&Holder::own()));
    drop(lock);
    assert!(folder.is_empty());
}

#[test]
fn what_is_in_the_way_is_told_and_waited_for_by_nobody() {
    let folder = Folder::new("way");
    let path = folder.path();
    let other = folder.0.join("other");
    std::fs::write(&other, "data").unwrap();
    let ways: [(&str, &dyn Fn()); 4] = [
        ("link", &|| std::os::unix::fs::symlink(&other, &path).unwrap()),
        ("hard link", &|| std::fs::hard_link(&other, &path).unwrap()),
        ("folder", &|| std::fs::create_dir(&path).unwrap()),
        ("FIFO", &|| {
            rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o666.into(), 0).unwrap();
        }),
    ];
    for (name, make) in ways {
        make();
        assert!(!is_locked(&path), "{name}");
        for error in [take(&path).unwrap_err(), take_in_turn(&path, soon()).unwrap_err()] {
            assert!(error.to_string().starts_with(path.to_str().unwrap()), "{name}: {error}");
        }
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir(&path));
    }
    assert_eq!(std::fs::read(&other).unwrap(), b"data");
}

#[test]
fn a_holder_that_writes_anything_harms_nobody() {
    let folder = Folder::new("text");
    let path = folder.path();
    let lock = take(&path).unwrap().unwrap();
    for text in [vec![0xff; 1 << 20], Vec::new(), b"99999999999 x".to_vec()] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(take(&path).unwrap().unwrap_err(), Holder::Unknown);
    }
    drop(lock);
}

#[test]
fn who_has_a_file_that_was_removed_does_not_remove_that_of_the_next() {
    let folder = Folder::new("removed");
    let path = folder.path();
    let first = take(&path).unwrap().unwrap();
    std::fs::remove_file(&path).unwrap();
    let second = take(&path).unwrap().unwrap();
    drop(first);
    assert!(is_locked(&path) && take(&path).unwrap().is_err());
    drop(second);
    assert!(folder.is_empty());
}

#[test]
fn many_that_lock_and_remove_a_file_exclude_each_other() {
    let folder = Folder::new("many");
    let (path, inside) = (folder.path(), std::sync::atomic::AtomicU32::new(0));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (path, inside) = (&path, &inside);
            scope.spawn(move || {
                for round in 0..2000 {
                    let taken = if (thread + round) % 2 == 0 {
                        take(path).unwrap()
                    } else {
                        take_in_turn(path, Instant::now() + Duration::from_secs(60)).unwrap()
                    };
                    let Ok(lock) = taken else { continue };
                    assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                    assert!(is_locked(path));
                    inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    drop(lock);
                }
            });
        }
    });
    drop(take(&path).unwrap().unwrap());
    assert!(folder.is_empty());
}

#[test]
fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
    // As a forked child has one.
    let folder = Folder::new("copy");
    let path = folder.path();
    let lock = take(&path).unwrap().unwrap();
    let copy: OwnedFd = lock.file.try_clone().unwrap().into();
    drop(lock);
    let next = take(&path).unwrap().unwrap();
    drop(copy);
    assert!(is_locked(&path));
    drop(next);
}

#[test]
fn a_forked_child_does_not_release_the_lock() {
    let folder = Folder::new("forked");
    let path = folder.path();
    let lock = take(&path).unwrap().unwrap();
    // The child's copy, in which the number of the process is another one.
    let (file, path) = (Kept::open(|| lock.file.try_clone()).unwrap(), folder.path());
    drop(Lock { file, path: path.clone(), identity: lock.identity, keeps: false, process: Process::another() });
    assert!(is_locked(&path) && take(&path).unwrap().is_err());
    drop(lock);
    assert!(folder.is_empty());
}
