//! Builds the holder and puts it where `include_bytes!` finds it, so that ptyd ships as one file.
//!
//! Static and not position-independent for musl where that target is installed: 12 KiB of memory a session instead of
//! ten times as much. Otherwise the host's own target; nothing is downloaded.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new(&var("CARGO_MANIFEST_DIR")).join("../..");
    for watched in ["crates/holder", "crates/journal", "crates/sys", "Cargo.lock"] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    let host = var("TARGET");
    let musl = host.replace("-gnu", "-musl");
    let (target, flags) = if is_installed(&musl) {
        (musl, "-C target-feature=+crt-static -C relocation-model=static")
    } else {
        (host, "")
    };
    // Tests may kill the holder of a debug build at named points; a release has no such thing.
    let features = if var("PROFILE") == "debug" { "faults" } else { "" };
    // Beside the other profiles' folders and shared by them: only the feature differs.
    let out = PathBuf::from(var("OUT_DIR"));
    let target_dir = out.ancestors().nth(4).unwrap_or(&out).join("holder-build");
    let status = Command::new(var("CARGO"))
        .current_dir(&root)
        .args(["build", "--quiet", "--package", "holder", "--bin", "ptyd-holder", "--profile", "holder"])
        .args(["--features", features, "--target", &target, "--target-dir"])
        .arg(&target_dir)
        .env("RUSTFLAGS", flags)
        // The outer cargo's (or clippy's) own settings are not for this build.
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_TARGET_DIR")
        .status();
    assert!(status.is_ok_and(|s| s.success()), "building the holder for {target} failed");
    let built = target_dir.join(&target).join("holder/ptyd-holder");
    std::fs::copy(&built, out.join("ptyd-holder")).expect("the holder was just built");
}

fn var(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn is_installed(target: &str) -> bool {
    let sysroot = Command::new(var("RUSTC")).args(["--print", "sysroot"]).output();
    sysroot.is_ok_and(|o| {
        let root = String::from_utf8_lossy(&o.stdout).trim().to_owned();
        Path::new(&root).join("lib/rustlib").join(target).join("lib").is_dir()
    })
}
