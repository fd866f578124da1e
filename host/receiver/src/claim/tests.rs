use super::*;

/// Behind no real interface, and not that of another test run.
fn nowhere() -> Segment {
    Segment::new(std::process::id() | 1 << 31)
}

#[test]
fn one_claim_at_a_time_for_each_use() {
    let feb = MacAddr([2, 0xfa, 0xde, 1, 2, 3]);
    let place = nowhere();
    assert!(!is_claimed(place, feb));
    let claim = data(place, feb).unwrap();
    assert!(is_claimed(place, feb) && is_claimed(place, feb));
    let Err(Refused::Held(Holder::Program { pid, .. })) = data(place, feb) else { panic!("expected the holder") };
    assert_eq!(pid, std::process::id());
    assert!(commands(place, feb).is_ok());
    assert!(data(place, MacAddr([2; 6])).is_ok());
    assert!(data(Segment { interface: place.interface ^ 1 << 30, ..place }, feb).is_ok());
    drop(claim);
    assert!(!is_claimed(place, feb));
    assert!(data(place, feb).is_ok());
    forget_commands(place, feb);
}

#[test]
fn a_reset_waits_for_a_command_of_another_program() {
    let feb = MacAddr([2, 0xfa, 0xde, 3, 2, 1]);
    let place = nowhere();
    drop(before_reset(place, feb).unwrap());
    let command = commands(place, feb).unwrap();
    assert!(reset_now(place, feb).is_none());
    assert!(before_reset(place, feb).is_none(), "it does not wait for its own");
    drop(command);
    forget_commands(place, feb);
    assert!(!shared().join(place.name(feb, "commands")).exists());
    // The lock is all that another program has.
    let other = now(&place.name(feb, "commands")).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| before_reset(place, feb).is_some());
        assert!(!waiting.is_finished() && reset_now(place, feb).is_none());
        drop(other);
        assert!(waiting.join().unwrap());
    });
    assert!(!is_own(place, feb));
}

#[test]
fn nobody_starves() {
    // One that claims again at once, and others that want it once.
    let board = Ipv4Addr::new(192, 0, 2, (std::process::id() % 256) as u8);
    let network = Network::here();
    let ending = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ending.load(std::sync::atomic::Ordering::Relaxed) {
                let _claim = control(network, board).unwrap();
                std::thread::sleep(INTERVAL * 5);
            }
        });
        for _ in 0..8 {
            let others: Vec<_> = (0..4).map(|_| scope.spawn(|| control(network, board).is_ok())).collect();
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        }
        ending.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let file = shared().join(of_control(network, board));
    assert!(file.exists());
    let claim = control(network, board).unwrap();
    forget_control(network, board);
    assert!(file.exists(), "somebody has it");
    drop(claim);
    forget_control(network, board);
    assert!(!file.exists());
}

#[test]
fn a_private_folder_is_of_its_user_alone() {
    // The environment is that of the process: no other test looks at this variable.
    let runtime = std::env::temp_dir().join(format!("fadelink-runtime-{}", std::process::id()));
    let folder = runtime.join("fadelink");
    std::fs::create_dir(&runtime).unwrap();
    std::env::set_var("XDG_RUNTIME_DIR", &runtime);
    assert_eq!(private(), Some(folder.clone()));
    assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    assert_eq!(private(), Some(folder.clone()));
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o770)).unwrap();
    assert_eq!(private(), None, "its group can write it");
    std::fs::remove_dir(&folder).unwrap();
    std::os::unix::fs::symlink(&runtime, &folder).unwrap();
    assert_eq!(private(), None, "a link");
    std::env::set_var("XDG_RUNTIME_DIR", "relative");
    assert_eq!(private(), None);
    std::env::remove_var("XDG_RUNTIME_DIR");
    assert_eq!(private(), None);
    std::fs::remove_dir_all(&runtime).unwrap();
}

#[test]
#[ignore = "a measurement: --ignored --nocapture"]
fn the_time_of_a_claim() {
    let (feb, place, count) = (MacAddr([2, 0xfa, 0xde, 9, 9, 9]), nowhere(), 20_000);
    let time = |name: &str, what: &dyn Fn()| {
        let begin = Instant::now();
        (0..count).for_each(|_| what());
        println!("{name}: {:.1} us", begin.elapsed().as_secs_f64() * 1e6 / f64::from(count));
    };
    for _ in 0..3 {
        time("commands", &|| drop(commands(place, feb).unwrap()));
        time("is_claimed, free", &|| assert!(!is_claimed(place, feb)));
        let _claim = data(place, feb).unwrap();
        time("is_claimed, held", &|| assert!(is_claimed(place, feb)));
    }
    forget_commands(place, feb);
}
