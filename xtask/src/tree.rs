//! The project's own text files, and complaints about their lines.

use anyhow::{Context as _, Result};
use std::fmt;
use std::fs;
use std::path::Path;

/// Folders that are made by tools, wherever they are.
const MADE: [&str; 5] = [".git", ".venv", "__pycache__", "node_modules", ".pytest_cache"];

/// One text file.
pub struct TextFile {
    /// Its path from the workspace's root.
    pub path: String,
    /// All of it.
    pub text: String,
}

impl TextFile {
    /// The part of the name after the last dot; empty if there is none.
    pub fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Whether the name or a folder on the way is called so.
    pub fn has_part(&self, part: &str) -> bool {
        self.path.split('/').any(|found| found == part)
    }

    /// Whether this is a recording that a program made and that must stay as it is.
    pub fn is_recorded(&self) -> bool {
        ["fixtures", "snapshots", "corpus"].iter().any(|part| self.has_part(part))
    }
}

/// Something to put right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The problem, and the remedy.
    pub what: String,
}

impl Violation {
    /// Something to put right at a line of a file.
    pub fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// All text files below `root`, in the order of their paths. The folders are walked rather than git asked, so that a new
/// file is checked before it is added, and an unpacked archive can be checked too.
pub fn text_files(root: &Path) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    walk(root, "", &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn walk(dir: &Path, prefix: &str, files: &mut Vec<TextFile>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        // In a second work tree `.git` is a file, too.
        if MADE.contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            let is_built = prefix.is_empty() && name.starts_with("target");
            if !is_built {
                walk(&entry.path(), &path, files)?;
            }
        } else if kind.is_file() {
            // A file that is not text (a recording, a picture) has no style.
            if let Ok(text) = String::from_utf8(fs::read(entry.path())?) {
                files.push(TextFile { path, text });
            }
        }
    }
    Ok(())
}
