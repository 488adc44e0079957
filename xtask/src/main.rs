//! The project's own tools: test, tidy, layers, deps, schema, web, bench, soak, release, package.
//!
//! Only this crate knows how the project is checked; the continuous integration and people call the same commands. It
//! depends on nothing of ours, so that it works while the rest does not compile.

mod circles;
mod deps;
mod elf;
mod junit;
mod layers;
mod left_out;
mod load;
mod machine;
mod npm;
mod package;
mod promises;
mod release;
mod rooms;
mod schema;
mod sentences;
mod services;
mod source;
mod structure;
mod suite;
mod test;
mod tidy;
mod tool;
mod tools_page;
mod tree;
mod workspace;

use anyhow::{Result, bail};
use std::io::Write as _;
use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [filter]            run every suite; lists what the machine lacks, asks at a terminal, and installs it
                                     --yes: without asking; --no-install: leave out what needs it; --quick: only what needs
                                     nothing but Rust; --full: the slow ones too; --complete: fail where one was left out;
                                     --repeat N: N times; --load M: beside M busy loops
cargo xtask tidy [--map]             headers, lengths, banned calls, SPECIFICATION.md against the tests; --map: every promise with its tests
cargo xtask layers                   the walls between the crates, the floors in them, import circles between files and folders, and
                                     how many files a file names and the methods of a type are in
cargo xtask deps                     licences, banned crates, sources, the minimum Rust, and dependencies that nobody uses
cargo xtask schema [--check]         write schema/ from the built binary, or compare
cargo xtask web                      checks the types of the page's sources, and builds web/dist from them
cargo xtask bench [measure…]         compare with bare terminals: true, create, idle, load, viewers, flood; --quick: the
                                     first ones with few rounds; --check: fail where a figure got worse than docs/bench.json; --save: write
                                     that; --against PATH: compare with another ptyd; --sessions N
cargo xtask soak [args…]             run for hours
cargo xtask release                  the binary for glibc 2.17 without a path of this machine, its bill of materials (CycloneDX), and its
                                     packages below target/release-packages
cargo xtask package BINARY FOLDER    the packages of a built binary; --fast: larger ones, sooner; --index FOLDER: only what is about
                                     all packages of a folder";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let root = workspace::root();
    match args.as_slice() {
        ["test", rest @ ..] => test::run(&root, &test::Options::parse(rest)?),
        ["tidy"] => report("tidy", tidy::check(&root)?),
        ["tidy", "--map"] => {
            let map = promises::map(&tree::text_files(&root)?);
            Ok(std::io::stdout().write_all(map.as_bytes())?)
        }
        ["deps"] => deps::check(&root),
        ["layers"] => {
            let imports = circles::Imports::read(&tree::text_files(&root)?);
            let (files, pairs) = imports.counted();
            println!("layers: {files} files, {pairs} pairs of them import");
            let mut found = layers::check(&root)?;
            found.extend(imports.check());
            found.extend(rooms::check(&imports));
            report("layers", found)
        }
        ["schema"] => schema::write(&root),
        ["schema", "--check"] => schema::check(&root),
        ["web"] => npm::build_page(&root),
        ["bench", rest @ ..] => workspace::run_tool(&root, "bench", rest),
        ["package", rest @ ..] => package::make(&root, rest),
        ["release"] => release::make(&root),
        ["soak", rest @ ..] => workspace::run_tool(&root, "soak", rest),
        _ => bail!("{USAGE}"),
    }
}

fn report(what: &str, found: Vec<tree::Violation>) -> Result<()> {
    for violation in &found {
        println!("{violation}");
    }
    if !found.is_empty() {
        bail!("{what}: {} to put right", found.len());
    }
    println!("{what}: ok");
    Ok(())
}
