//! Builds the driver's rules in user space, with every warning an error.

fn main() {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../../driver");
    println!("cargo::rerun-if-changed={driver}");
    cc::Build::new()
        .file(format!("{driver}/fade_rules.c"))
        .file(format!("{driver}/fade1_rules.c"))
        .flags(["-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Werror"])
        .compile("fade_rules");
}
