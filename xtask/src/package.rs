//! `cargo xtask package`: the packages of a built binary, each made by the tool of its kind from the files in packages/.
//!
//! Nothing is compiled and nothing is downloaded, besides the tool for wheels where the machine has none.

use crate::elf::{Binary, Processor};
use crate::tool;
use crate::workspace;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "cargo xtask package [--fast] BINARY FOLDER | cargo xtask package --index FOLDER";
const NAME: &str = "ptyd";
const DESCRIPTION: &str = "Real terminals for AI agents";
const LICENSE: &str = "MIT OR Apache-2.0";
const MAINTAINER: &str = "The ptyd developers <ptyd@localhost>";
/// The checksums of all files of a release.
const SUMS: &str = "SHA256SUMS";
/// `owner/name` on GitHub; its workflows have the variable. Without it nothing is made that names an address.
const REPOSITORY: &str = "GITHUB_REPOSITORY";

/// Makes the packages of a binary in a folder, or with `--index` what is about all files in it.
pub fn make(root: &Path, args: &[&str]) -> Result<()> {
    match args {
        ["--index", folder] => index(root, Path::new(folder)),
        ["--fast", binary, folder] => of_binary(root, Path::new(binary), Path::new(folder), true),
        [binary, folder] if !binary.starts_with('-') => of_binary(root, Path::new(binary), Path::new(folder), false),
        _ => bail!("{USAGE}"),
    }
}

/// Makes every package of a binary, and the index of the folder. Fast means larger.
pub fn of_binary(root: &Path, binary: &Path, folder: &Path, is_fast: bool) -> Result<()> {
    fs::create_dir_all(folder)?;
    let folder = fs::canonicalize(folder)?;
    let work = folder.join("work");
    let packages = Packages {
        root,
        elf: Binary::read(binary)?,
        binary: fs::canonicalize(binary)?,
        version: version(root)?,
        work: work.clone(),
        folder: &folder,
        is_fast,
    };
    let printed = workspace::printed(Command::new(&packages.binary).arg("--version"))?;
    if printed.trim() != format!("{NAME} {}", packages.version) {
        bail!("{} is {}, and the sources are {}", binary.display(), printed.trim(), packages.version);
    }
    packages.archive()?;
    packages.npm()?;
    packages.wheel()?;
    packages.deb()?;
    fs::remove_dir_all(work)?;
    index(root, &folder)
}

/// The version of the workspace.
pub fn version(root: &Path) -> Result<String> {
    let metadata = workspace::printed(workspace::cargo(root).args(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let ours = packages.iter().find(|package| package["name"] == NAME).context("there is no crate ptyd")?;
    Ok(ours["version"].as_str().context("the crate has no version")?.to_owned())
}

/// The name of the server in the MCP registry, where the repository is known.
fn mcp_name() -> Option<String> {
    let repository = std::env::var(REPOSITORY).ok().filter(|name| !name.is_empty())?;
    let (owner, _) = repository.split_once('/')?;
    Some(format!("io.github.{owner}/{NAME}"))
}

struct Packages<'a> {
    root: &'a Path,
    binary: PathBuf,
    elf: Binary,
    version: String,
    /// Trees of packages that are being made.
    work: PathBuf,
    folder: &'a Path,
    is_fast: bool,
}

impl Packages<'_> {
    /// A file of packages/, with what it leaves open.
    fn filled(&self, file: &str, more: &[(&str, &str)]) -> Result<String> {
        let text = fs::read_to_string(self.root.join("packages").join(file))?;
        let known = [("VERSION", self.version.as_str()), ("DESCRIPTION", DESCRIPTION), ("LICENSE", LICENSE)];
        Ok(fill(text, known.iter().chain(more)))
    }

    /// A folder of this name with the licences and the README.
    fn tree(&self, name: &str) -> Result<PathBuf> {
        let tree = self.work.join(name);
        fs::create_dir_all(&tree)?;
        for file in ["README.md", "LICENSE", "LICENSE-APACHE", "LICENSE-MIT"] {
            fs::copy(self.root.join(file), tree.join(file))?;
        }
        Ok(tree)
    }

    /// The binary at this place of a tree.
    fn put_binary(&self, place: &Path) -> Result<()> {
        fs::create_dir_all(place.parent().context("a place is in a folder")?)?;
        // A link, because the tools only read it.
        if fs::hard_link(&self.binary, place).is_err() {
            fs::copy(&self.binary, place)?;
        }
        Ok(fs::set_permissions(place, fs::Permissions::from_mode(0o755))?)
    }

    /// A folder of the work as an archive whose files are root's.
    fn tar(&self, name: &str, archive: &str) -> Result<()> {
        let level = if self.is_fast { "gzip -1" } else { "gzip -9 -n" };
        let mut tar = Command::new("tar");
        tar.args([
            "--create",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            "--sort=name",
            "--use-compress-program",
            level,
        ]);
        tar.arg("--file").arg(self.folder.join(archive)).arg("--directory").arg(&self.work);
        workspace::succeed(tar.arg(name))
    }

    fn archive(&self) -> Result<()> {
        let name = format!("{NAME}-{}-{}-linux", self.version, self.elf.processor.machine());
        self.put_binary(&self.tree(&name)?.join(NAME))?;
        self.tar(&name, &format!("{name}.tar.gz"))
    }

    /// The binary is the whole of npm's package for a processor; the package `ptyd` asks for the one that fits, and starts it.
    /// Both are archives of a folder `package`, as npm has them.
    fn npm(&self) -> Result<()> {
        let names = Processor::ALL.map(|processor| (processor, format!("@{NAME}/linux-{}", processor.npm())));
        for (processor, name) in &names {
            if *processor != self.elf.processor {
                continue;
            }
            let package = self.tree("package")?;
            self.put_binary(&package.join("bin").join(NAME))?;
            let mut about = json!({ "os": ["linux"], "cpu": [processor.npm()], "libc": ["glibc"], "files": ["bin"] });
            about["preferUnplugged"] = json!(true);
            self.put_manifest(&package, name, about)?;
            self.tar("package", &format!("{NAME}-linux-{}-{}.tgz", processor.npm(), self.version))?;
            fs::remove_dir_all(package)?;
        }
        let package = self.tree("package")?;
        fs::write(package.join("ptyd.js"), self.filled("npm/ptyd.js", &[])?)?;
        fs::set_permissions(package.join("ptyd.js"), fs::Permissions::from_mode(0o755))?;
        let needs: serde_json::Map<_, _> = names.iter().map(|(_, name)| (name.clone(), json!(self.version))).collect();
        let mut about = json!({ "bin": { NAME: "ptyd.js" }, "files": ["ptyd.js"], "optionalDependencies": needs });
        about["engines"] = json!({ "node": ">=16" });
        if let Some(name) = mcp_name() {
            about["mcpName"] = json!(name);
        }
        self.put_manifest(&package, NAME, about)?;
        self.tar("package", &format!("{NAME}-{}.tgz", self.version))
    }

    fn put_manifest(&self, package: &Path, name: &str, about: Value) -> Result<()> {
        let mut manifest =
            json!({ "name": name, "version": self.version, "description": DESCRIPTION, "license": LICENSE });
        if let (Some(manifest), Value::Object(about)) = (manifest.as_object_mut(), about) {
            manifest.extend(about);
            if let Ok(repository) = std::env::var(REPOSITORY) {
                manifest.insert("repository".to_owned(), json!(format!("github:{repository}")));
            }
        }
        Ok(fs::write(package.join("package.json"), serde_json::to_string_pretty(&manifest)?)?)
    }

    fn wheel(&self) -> Result<()> {
        let tree = self.tree("wheel")?;
        let (major, minor) = self.elf.glibc;
        let platform = format!("manylinux_{major}_{minor}_{}", self.elf.processor.machine());
        let project = self.filled("python/pyproject.toml", &[("TAG", &format!("py3-none-{platform}"))])?;
        fs::write(tree.join("pyproject.toml"), project)?;
        fs::copy(self.root.join("packages/python/hatch_build.py"), tree.join("hatch_build.py"))?;
        if let Some(name) = mcp_name() {
            let readme = fs::read_to_string(tree.join("README.md"))?;
            // The MCP registry looks for this line where PyPI shows the page.
            fs::write(tree.join("README.md"), format!("{readme}\n<!-- mcp-name: {name} -->\n"))?;
        }
        self.put_binary(&tree.join(NAME))?;
        let hatchling = tool::HATCHLING.find(&workspace::target_dir(self.root)?)?;
        let mut build = Command::new(hatchling);
        workspace::succeed(build.args(["build", "--target", "wheel", "--directory"]).arg(self.folder).current_dir(tree))
    }

    fn deb(&self) -> Result<()> {
        let tree = self.work.join("deb");
        let at = |place: &str| -> Result<PathBuf> {
            let place = tree.join(place);
            fs::create_dir_all(place.parent().context("a place is in a folder")?)?;
            Ok(place)
        };
        self.put_binary(&at("usr/bin/ptyd")?)?;
        let made = [
            ("usr/share/man/man1/ptyd.1", &["man"][..]),
            ("usr/share/bash-completion/completions/ptyd", &["completion", "bash"]),
            ("usr/share/zsh/vendor-completions/_ptyd", &["completion", "zsh"]),
            ("usr/share/fish/vendor_completions.d/ptyd.fish", &["completion", "fish"]),
        ];
        for (place, words) in made {
            fs::write(at(place)?, workspace::printed(Command::new(&self.binary).args(words))?)?;
        }
        fs::copy(self.root.join("LICENSE"), at("usr/share/doc/ptyd/copyright")?)?;
        let (major, minor) = self.elf.glibc;
        let (architecture, version) = (self.elf.processor.debian(), &self.version);
        let kilobytes = fs::metadata(&self.binary)?.len().div_ceil(1024);
        let control = format!(
            "Package: {NAME}\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\nInstalled-Size: {kilobytes}\n\
             Depends: libc6 (>= {major}.{minor}), bash (>= 5.0)\nSection: utils\nPriority: optional\nDescription: {DESCRIPTION}\n"
        );
        fs::write(at("DEBIAN/control")?, control)?;
        let level: &[&str] = if self.is_fast { &["-Zgzip", "-z1"] } else { &["-Zxz"] };
        let mut build = Command::new("dpkg-deb");
        build.arg("--root-owner-group").args(level).arg("--build").arg(&tree);
        workspace::succeed(build.arg(self.folder.join(format!("{NAME}_{version}_{architecture}.deb"))))
    }
}

/// Writes what is about all files of a folder: the script that installs, the formula, the entry of the MCP registry, the checksums.
fn index(root: &Path, folder: &Path) -> Result<()> {
    let folder = fs::canonicalize(folder)?;
    let version = version(root)?;
    let repository = std::env::var(REPOSITORY).ok().filter(|name| !name.is_empty());
    let homepage = repository.as_ref().map(|repository| format!("https://github.com/{repository}"));
    let address = match &homepage {
        Some(homepage) => format!("{homepage}/releases/download/v{version}"),
        None => format!("file://{}", folder.display()),
    };
    let read = |file: &str| fs::read_to_string(root.join("packages").join(file));
    let script = fill(read("install.sh")?, &[("VERSION", version.as_str()), ("URL", &quoted(&address))]);
    fs::write(folder.join("install.sh"), script)?;
    fs::set_permissions(folder.join("install.sh"), fs::Permissions::from_mode(0o755))?;
    if let (Some(homepage), Some(name)) = (&homepage, mcp_name()) {
        let mut archives = String::new();
        for processor in Processor::ALL {
            let archive = format!("{NAME}-{version}-{}-linux.tar.gz", processor.machine());
            if folder.join(&archive).exists() {
                let sum = sums(&folder, std::slice::from_ref(&archive))?;
                let sum = sum.split(' ').next().unwrap_or_default();
                let on = processor.homebrew();
                archives +=
                    &format!("    on_{on} do\n      url \"{address}/{archive}\"\n      sha256 \"{sum}\"\n    end\n");
            }
        }
        let known = [
            ("VERSION", version.as_str()),
            ("DESCRIPTION", DESCRIPTION),
            ("HOMEPAGE", homepage),
            ("ARCHIVES", &archives),
        ];
        fs::write(folder.join("ptyd.rb"), fill(read("homebrew/ptyd.rb")?, &known))?;
        let known =
            [("VERSION", version.as_str()), ("DESCRIPTION", DESCRIPTION), ("HOMEPAGE", homepage), ("NAME", &name)];
        fs::write(folder.join("server.json"), fill(read("server.json")?, &known))?;
    } else {
        println!("package: without {REPOSITORY} there is no address for the formula and the MCP registry");
    }
    let mut files: Vec<String> = fs::read_dir(&folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<Result<_>>()?;
    // hatchling leaves a file that keeps its folder out of git.
    files.retain(|file| file != SUMS && !file.starts_with('.'));
    files.sort();
    fs::write(folder.join(SUMS), sums(&folder, &files)?)?;
    files.iter().for_each(|file| println!("package: {}", folder.join(file).display()));
    Ok(())
}

/// The lines of `sha256sum` for these files.
fn sums(folder: &Path, files: &[String]) -> Result<String> {
    workspace::printed(Command::new("sha256sum").arg("--").args(files).current_dir(folder))
}

/// A text with each `@NAME@` replaced.
fn fill<'a>(text: String, known: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> String {
    known.into_iter().fold(text, |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

/// A word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}
