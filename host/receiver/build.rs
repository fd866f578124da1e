//! Compiles the XDP program of the AF_XDP backend.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    if env::var_os("CARGO_FEATURE_XDP").is_none() {
        return;
    }
    println!("cargo::rerun-if-changed=xdp");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("steer.bpf.o");
    // clang's BPF target has no idea of the machine's own include folder.
    let machine = format!("-I/usr/include/{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it"));
    let status = Command::new("clang")
        .args(["-target", "bpf", "-O2", "-g", "-Wall", "-Werror", &machine, "-c", "xdp/steer.bpf.c", "-o"])
        .arg(&out)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("clang could not compile xdp/steer.bpf.c ({status}); it needs libbpf-dev"),
        Err(error) => panic!("clang, which compiles the XDP program: {error}; `make setup` installs it"),
    }
}
