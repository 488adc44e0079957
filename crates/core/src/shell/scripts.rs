//! The scripts of `shell-integration/` and bash's builtins, embedded, and written into the state directory for the shells to read.

use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Their folder in the state directory.
const FOLDER: &str = "shell-integration";

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Bash,
    Zsh,
    Fish,
    Posix,
    Nu,
}

impl Script {
    const ALL: [Self; 5] = [Self::Bash, Self::Zsh, Self::Fish, Self::Posix, Self::Nu];

    /// The files of one integration are beside each other in a folder of their own where there is more than one, or where the shell
    /// looks for a fixed name.
    fn has_folder(self) -> bool {
        matches!(self, Self::Bash | Self::Zsh)
    }

    /// The compiled file beside it.
    fn builtins(self) -> Option<(&'static str, &'static [u8])> {
        let builtins: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bash_builtins.so"));
        (self == Self::Bash).then_some(("bash_builtins.so", builtins))
    }

    fn text(self) -> &'static str {
        match self {
            Self::Bash => include_str!("../../../../shell-integration/bash.sh"),
            Self::Zsh => include_str!("../../../../shell-integration/zsh.zsh"),
            Self::Fish => include_str!("../../../../shell-integration/fish.fish"),
            Self::Posix => include_str!("../../../../shell-integration/sh.sh"),
            Self::Nu => include_str!("../../../../shell-integration/nu.nu"),
        }
    }

    /// Its file, with a hash of the contents in its name or in that of its folder.
    fn file(self, content: u32) -> PathBuf {
        match self {
            Self::Bash => format!("bash-{content:08x}/bash.sh"),
            Self::Zsh => format!("zsh-{content:08x}/.zshenv"),
            Self::Fish => format!("fish-{content:08x}.fish"),
            Self::Posix => format!("posix-{content:08x}.sh"),
            Self::Nu => format!("nu-{content:08x}.nu"),
        }
        .into()
    }
}

/// The script files, written once for the shells to read.
#[derive(Debug)]
pub(crate) struct Integration {
    state_dir: PathBuf,
    files: OnceLock<Vec<(Script, PathBuf)>>,
}

impl Integration {
    /// Writes the scripts into the state directory. If a full disk has no room for them, that is retried when a shell
    /// is started, and the server still starts.
    pub(crate) fn install(state_dir: &Path) -> std::io::Result<Self> {
        let this = Self { state_dir: state_dir.to_owned(), files: OnceLock::new() };
        match this.write_missing() {
            Err(e) if matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                tracing::warn!(error = %e, "the shell integration waits for room on the disk");
                Ok(this)
            }
            installed => installed.map(|()| this),
        }
    }

    /// Writes the scripts if they are missing.
    pub(super) fn write_missing(&self) -> std::io::Result<()> {
        if self.files.get().is_none() {
            let _ = self.files.set(Self::write(&self.state_dir)?);
        }
        Ok(())
    }

    /// File names depend on the contents: shells that another version started continue to read theirs.
    fn write(state_dir: &Path) -> std::io::Result<Vec<(Script, PathBuf)>> {
        let folder = state_dir.join(FOLDER);
        std::fs::create_dir_all(&folder)?;
        // A user with a descriptor of a folder in here cannot reach the parent.
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700))?;
        crate::state_dir::check_private(&folder).map_err(std::io::Error::other)?;
        let install = |script: Script| {
            let text = without_comments(script.text());
            let builtins = script.builtins();
            let path = folder.join(
                script.file(crc32fast::hash(&[text.as_bytes(), builtins.map_or(&[], |(_, bytes)| bytes)].concat())),
            );
            if let Some(own) = path.parent().filter(|own| *own != folder) {
                std::fs::create_dir_all(own)?;
                std::fs::set_permissions(own, std::fs::Permissions::from_mode(0o755))?;
            }
            if let Some((name, bytes)) = builtins {
                write_once(&path.with_file_name(name), bytes)?;
            }
            write_once(&path, text.as_bytes())?;
            Ok((script, path))
        };
        Script::ALL.into_iter().map(install).collect()
    }

    /// The folder of all scripts.
    pub(crate) fn folder(&self) -> PathBuf {
        self.state_dir.join(FOLDER)
    }

    /// All files below that folder.
    pub(crate) fn all(&self) -> std::io::Result<Vec<PathBuf>> {
        self.write_missing()?;
        let with_builtins = |(script, path): &(Script, PathBuf)| {
            let builtins = script.builtins().map(|(name, _)| path.with_file_name(name));
            builtins.into_iter().chain([path.clone()]).collect::<Vec<_>>()
        };
        Ok(self.files.get().into_iter().flatten().flat_map(with_builtins).collect())
    }

    /// The path for the shell, or that of the folder, where `folder` has what our own folder has.
    pub(super) fn place(&self, script: Script, folder: Option<&Path>) -> Vec<u8> {
        let file = self.file(script);
        let place = if script.has_folder() { file.parent().unwrap_or(Path::new("/")) } else { file };
        let inside = folder.and_then(|folder| Some(folder.join(place.strip_prefix(self.folder()).ok()?)));
        inside.as_deref().unwrap_or(place).as_os_str().as_bytes().to_vec()
    }

    fn file(&self, script: Script) -> &Path {
        self.files
            .get()
            .into_iter()
            .flatten()
            .find(|(known, _)| *known == script)
            .map_or(Path::new("/"), |(_, path)| path)
    }
}

/// The script as `ENV`, with the user's own value kept for the script to read.
pub(super) fn as_env(script: Vec<u8>, users_own: Option<&[u8]>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let own = users_own.map(|own| (b"PTYD_ENV".to_vec(), own.to_vec()));
    [(b"ENV".to_vec(), script)].into_iter().chain(own).collect()
}

/// Written to a draft and renamed, so that a shell never reads half a script. It has no secret, and another user's
/// shell reopens it through its descriptor.
fn write_once(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let readable = std::fs::Permissions::from_mode(0o644);
    let is_ours =
        std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.uid() == rustix::process::geteuid().as_raw());
    if is_ours && std::fs::read(path).ok().as_deref() == Some(text) {
        // A copied or restored one may be private.
        return std::fs::set_permissions(path, readable);
    }
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
    file.write_all(text)?;
    file.set_permissions(readable)?;
    std::fs::rename(&draft, path)
}

/// The script without comments, which every shell would read at its start. No string of a script may have a line that
/// begins with `#`; a test would fail.
fn without_comments(script: &str) -> String {
    script.lines().filter(|l| !l.trim_start().starts_with('#')).flat_map(|l| [l, "\n"]).collect()
}
