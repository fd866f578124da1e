//! Builds the driver's rules in user space, with every warning an error.

/// The sources without kernel calls.
const RULES: [&str; 6] = ["fade_frames", "fade_window", "fade_start", "fade_feb", "fade1_feb", "fade1_rules"];

fn main() {
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/../../driver");
    println!("cargo::rerun-if-changed={driver}");
    cc::Build::new()
        .files(RULES.map(|name| format!("{driver}/{name}.c")))
        .flags(["-std=gnu11", "-Wall", "-Wextra", "-Wconversion", "-Werror"])
        .compile("fade_rules");
}
