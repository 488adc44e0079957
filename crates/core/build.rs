//! Builds the holder and bash's builtins, and puts them where `include_bytes!` finds them, so that ptyd is one file.
//!
//! Static and not position-independent, because one runs for each session: a dynamic one takes another 80 KiB of memory
//! and a millisecond to start. It is built for musl if that target is installed, or else with the C library of the
//! machine. If that cannot be linked statically, the build fails, unless `PTYD_HOLDER_MAY_BE_DYNAMIC=1` accepts a dynamic
//! holder, which `ptyd doctor` reports. Nothing is downloaded.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Flags for a static program at a fixed address.
const STATIC: [&str; 4] = ["-C", "target-feature=+crt-static", "-C", "relocation-model=static"];

/// Names the C compiler that links the holder and builds the builtins. Zig's, which builds the rest of a release, has no static
/// glibc and takes fewer flags. Both parts use no C library of the machine that runs them.
const CC: &str = "PTYD_HOLDER_CC";
/// Accepts a dynamic holder.
const MAY_BE_DYNAMIC: &str = "PTYD_HOLDER_MAY_BE_DYNAMIC";
const REMEDY: &str = "the errors above say why. If the static C library is missing, install it (libc6-dev on Debian, \
    glibc-static on Fedora) or Rust's musl target (`rustup target add x86_64-unknown-linux-musl` or that of your \
    machine); PTYD_HOLDER_MAY_BE_DYNAMIC=1 builds a dynamic one, which takes almost twice the memory of each session";

fn main() {
    let root = Path::new(&var("CARGO_MANIFEST_DIR")).join("../..");
    for name in ["foreground", "holder", "journal", "sys", "wire"] {
        // Their tests are not part of it.
        for watched in ["src", "Cargo.toml"] {
            println!("cargo::rerun-if-changed={}", root.join("crates").join(name).join(watched).display());
        }
    }
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());
    println!("cargo::rerun-if-env-changed={MAY_BE_DYNAMIC}");
    println!("cargo::rerun-if-env-changed={CC}");
    let host = var("TARGET");
    let musl = host.replace("-gnu", "-musl");
    let target = if is_installed(&musl) { musl } else { host };
    let built = build(&root, &target, &STATIC).or_else(|| {
        let may_be_dynamic = std::env::var(MAY_BE_DYNAMIC).is_ok_and(|value| value == "1");
        assert!(may_be_dynamic, "ptyd-holder does not build or link statically for {target}: {REMEDY}");
        println!("cargo::warning=ptyd-holder is dynamic: each session takes almost twice the memory");
        build(&root, &target, &[])
    });
    let built = built.unwrap_or_else(|| panic!("building ptyd-holder for {target} failed"));
    let holder = std::fs::read(built).expect("the holder was just built");
    let compressed = lz4_flex::block::compress_prepend_size(&holder);
    std::fs::write(PathBuf::from(var("OUT_DIR")).join("ptyd-holder.lz4"), compressed).expect("cargo made the folder");
    build_builtins(&root.join("shell-integration/bash_builtins.c"));
}

/// All symbols are looked up when bash loads the file, so that one which lacks a symbol refuses it; it has few segments to map,
/// and it stays when its builtins are deleted, for the keys lead to it. Its data fit in one page, which each bash has for itself;
/// a part that is read-only after the start would end at a page of its own.
const LOADED_WHOLE: &str = "-Wl,-z,now,-z,noseparate-code,-z,nodelete,-z,norelro";
/// Nothing unwinds the stack through the builtins.
const NO_UNWIND_TABLES: &str = "-fno-asynchronous-unwind-tables";

/// Compiles bash's builtins. They are linked to no library, so they suit a bash with any C library.
fn build_builtins(source: &Path) {
    println!("cargo::rerun-if-changed={}", source.display());
    let mut build = cc::Build::new();
    if let Some(compiler) = std::env::var_os(CC) {
        build.compiler(compiler);
    }
    let status = build
        .opt_level(2)
        .debug(false)
        .get_compiler()
        .to_command()
        .args(["-shared", "-fPIC", "-nostdlib", "-fno-stack-protector", "-U_FORTIFY_SOURCE"])
        .args([NO_UNWIND_TABLES, LOADED_WHOLE, "-s", "-o"])
        .arg(PathBuf::from(var("OUT_DIR")).join("bash_builtins.so"))
        .arg(source)
        .status();
    assert!(status.is_ok_and(|status| status.success()), "the C compiler does not build {}", source.display());
}

/// Builds it with these flags besides those of this build; `None` if that fails.
fn build(root: &Path, target: &str, flags: &[&str]) -> Option<PathBuf> {
    // Tests may kill the holder of a debug build at named points; a release has no such points.
    let features = if var("PROFILE") == "debug" { "faults" } else { "" };
    // Beside the folders of the other profiles and shared by them: only the feature differs.
    let out = PathBuf::from(var("OUT_DIR"));
    let target_dir = out.ancestors().nth(4).unwrap_or(&out).join("holder-build");
    let given = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let flags: Vec<&str> = given.split('\x1f').filter(|flag| !flag.is_empty()).chain(flags.iter().copied()).collect();
    let mut cargo = Command::new(var("CARGO"));
    if let Some(compiler) = std::env::var_os(CC) {
        cargo.env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_")), compiler);
    }
    let status = cargo
        .current_dir(root)
        .args(["build", "--quiet", "--package", "holder", "--bin", "ptyd-holder", "--profile", "holder"])
        .args(["--features", features, "--target", target, "--target-dir"])
        .arg(&target_dir)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"))
        // The outer cargo's (or clippy's) own settings must not affect this build.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .env_remove("RUSTC_WRAPPER")
        .env_remove("CARGO_TARGET_DIR")
        .status();
    status.is_ok_and(|s| s.success()).then(|| target_dir.join(target).join("holder/ptyd-holder"))
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
