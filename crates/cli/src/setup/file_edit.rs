//! Edits of a host's files: each adds one part, keeps everything else byte for byte, and can take its part away again.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde::{Deserialize, Serialize};

/// The part that an edit adds to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A member of an object of JSON with comments: the names down to it, and its value as strings and lists of strings.
    Member { at: Vec<String>, value: Vec<(String, Value)> },
    /// A string in a list of JSON with comments.
    Item { at: Vec<String>, item: String },
    /// Lines at the end of a text.
    Lines(String),
    /// The whole file.
    Whole(String),
}

/// A value in an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    Text(String),
    List(Vec<String>),
}

impl From<&Value> for CstInputValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::Text(text) => Self::from(text.clone()),
            Value::List(list) => Self::Array(list.iter().cloned().map(Self::from).collect()),
        }
    }
}

impl Part {
    /// The text with this part; without change if it has the part already.
    pub fn added_to(&self, before: &str) -> Result<String, String> {
        match self {
            Self::Member { at, value } => {
                let (root, object, name) = object_at(before, at)?;
                let members = value.iter().map(|(name, value)| (name.clone(), value.into())).collect();
                let value = CstInputValue::Object(members);
                match object.get(name) {
                    Some(member) => member.set_value(value),
                    None => drop(object.append(name, value)),
                }
                Ok(root.to_string())
            }
            Self::Item { at, item } => {
                let (root, object, name) = object_at(before, at)?;
                let list = object.array_value_or_create(name).ok_or_else(|| format!("{name} is not a list"))?;
                if !list.elements().iter().any(|element| is_text(element, item)) {
                    list.append(item.clone().into());
                }
                Ok(root.to_string())
            }
            Self::Lines(lines) if before.contains(lines) => Ok(before.to_owned()),
            Self::Lines(lines) => {
                let gap = if before.is_empty() || before.ends_with("\n\n") {
                    ""
                } else if before.ends_with('\n') {
                    "\n"
                } else {
                    "\n\n"
                };
                Ok(format!("{before}{gap}{lines}"))
            }
            Self::Whole(text) => Ok(text.clone()),
        }
    }

    /// The text without this part, where others have changed the text meanwhile.
    pub fn removed_from(&self, text: &str) -> Result<String, String> {
        match self {
            Self::Member { at, .. } => {
                let (root, object, name) = object_at(text, at)?;
                if let Some(member) = object.get(name) {
                    member.remove();
                }
                Ok(root.to_string())
            }
            Self::Item { at, item } => {
                let (root, object, name) = object_at(text, at)?;
                let elements = object.array_value(name).map(|list| list.elements()).unwrap_or_default();
                elements.into_iter().filter(|element| is_text(element, item)).for_each(|element| element.remove());
                Ok(root.to_string())
            }
            Self::Lines(lines) => Ok(text.replacen(lines, "", 1)),
            Self::Whole(ours) => Ok(if text == ours { String::new() } else { text.to_owned() }),
        }
    }
}

fn is_text(node: &jsonc_parser::cst::CstNode, text: &str) -> bool {
    node.as_string_lit().and_then(|literal| literal.decoded_value().ok()).as_deref() == Some(text)
}

/// The document, the object that holds the last of these names, and that name. Missing objects are made.
fn object_at<'a>(text: &str, at: &'a [String]) -> Result<(CstRootNode, CstObject, &'a str), String> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|e| e.to_string())?;
    let (name, above) = at.split_last().ok_or("an entry needs a name")?;
    let mut object = root.object_value_or_create().ok_or("the file is not a JSON object")?;
    for above in above {
        object = object.object_value_or_create(above).ok_or_else(|| format!("{above} is not an object"))?;
    }
    Ok((root, object, name))
}

/// A part, and the file that gets it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileEdit {
    pub path: PathBuf,
    pub part: Part,
    /// The text before and after it was written; `None`: there was no file.
    #[serde(default)]
    before: Option<String>,
    #[serde(default)]
    after: String,
    /// The folders that were made for it, the innermost first.
    #[serde(default)]
    made: Vec<PathBuf>,
}

impl FileEdit {
    /// Reads the file and prepares the edit.
    pub fn plan(path: PathBuf, part: Part) -> io::Result<Self> {
        let before = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(named(&path, e)),
        };
        let after = part.added_to(before.as_deref().unwrap_or_default());
        let mut after = after.map_err(|why| named(&path, io::Error::other(why)))?;
        if before.is_none() && !after.ends_with('\n') {
            after.push('\n');
        }
        Ok(Self { path, part, before, after, made: Vec::new() })
    }

    /// Whether the file has the part already.
    pub fn is_done(&self) -> bool {
        self.before.as_ref() == Some(&self.after)
    }

    /// The lines that are new in the file, for people.
    pub fn shown(&self) -> String {
        /// More lines of a text tell nobody more.
        const SHOWN_MAX: usize = 12;
        let before: Vec<&str> = self.before.as_deref().unwrap_or_default().lines().collect();
        let new: Vec<&str> = self.after.lines().filter(|line| !before.contains(line)).collect();
        let mut shown: String = new.iter().take(SHOWN_MAX).map(|line| format!("  + {line}\n")).collect();
        if new.len() > SHOWN_MAX {
            shown.push_str(&format!("  + … {} more lines\n", new.len() - SHOWN_MAX));
        }
        shown
    }

    /// Writes the file.
    pub fn apply(&mut self) -> io::Result<()> {
        let folders = self.path.ancestors().skip(1).take_while(|folder| !folder.exists());
        self.made = folders.map(Path::to_owned).collect();
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(|e| named(folder, e))?;
        }
        write(&self.path, &self.after)
    }

    /// Takes the part away. A file that nobody has changed since gets its old bytes.
    pub fn undo(&self) -> io::Result<()> {
        let now = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(named(&self.path, e)),
        };
        let is_untouched = now == self.after;
        let text = match &self.before {
            Some(before) if is_untouched => Some(before.clone()),
            None if is_untouched => None,
            _ => Some(self.part.removed_from(&now).map_err(|why| named(&self.path, io::Error::other(why)))?),
        };
        match text {
            Some(text) if text != now => write(&self.path, &text),
            Some(_) => Ok(()),
            None => {
                fs::remove_file(&self.path).map_err(|e| named(&self.path, e))?;
                // Folders in which somebody has put something stay.
                self.made.iter().take_while(|folder| fs::remove_dir(folder).is_ok()).for_each(drop);
                Ok(())
            }
        }
    }
}

/// Replaces the file behind `path` at once, with the mode that it had; a link stays a link.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mode = fs::metadata(&target).map_or(0o600, |metadata| metadata.permissions().mode() & 0o777);
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let fresh = target.with_file_name(name);
    let written = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &target)
    });
    written.map_err(|e| {
        let _ = fs::remove_file(&fresh);
        named(&target, e)
    })
}

fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member() -> Part {
        let value = vec![
            ("command".to_owned(), Value::Text("/usr/bin/ptyd".to_owned())),
            ("args".to_owned(), Value::List(vec!["mcp".to_owned()])),
        ];
        Part::Member { at: vec!["mcpServers".to_owned(), "ptyd".to_owned()], value }
    }

    #[test]
    fn comments_order_and_other_entries_survive_an_edit() {
        let before = "// mine\n{\n  // theirs\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}, // kept\n  },\n  \"z\": 1\n}\n";
        let after = member().added_to(before).expect("an object");
        for kept in ["// mine", "// theirs", "\"other\": {\"command\": \"x\"}, // kept", "\"z\": 1"] {
            assert!(after.contains(kept), "{after}");
        }
        assert!(after.contains("\"ptyd\"") && after.contains("/usr/bin/ptyd"));
        assert_eq!(member().added_to(&after), Ok(after.clone()), "twice is once");
        let removed = member().removed_from(&after).expect("an object");
        assert!(!removed.contains("ptyd") && removed.contains("// kept"), "{removed}");
    }

    #[test]
    fn a_file_that_is_something_else_is_refused() {
        assert!(member().added_to("[]").is_err());
        assert!(member().added_to("{\"mcpServers\": []}").is_err());
        assert!(member().added_to("{\"a\": ").is_err());
    }

    #[test]
    fn an_item_and_lines_are_added_once_and_taken_away() {
        let item = Part::Item { at: vec!["permissions".to_owned(), "allow".to_owned()], item: "mcp__ptyd".to_owned() };
        let after = item.added_to("{\"permissions\": {\"allow\": [\"Bash\"]}}").expect("a list");
        assert_eq!(item.added_to(&after), Ok(after.clone()));
        assert!(item.removed_from(&after).expect("a list").contains("[\"Bash\"]"));
        let lines = Part::Lines("Use ptyd.\n".to_owned());
        let after = lines.added_to("# Mine").expect("text");
        assert_eq!((after.as_str(), lines.added_to(&after)), ("# Mine\n\nUse ptyd.\n", Ok(after.clone())));
    }

    #[test]
    fn an_edit_is_undone_to_the_byte_and_leaves_no_folder() {
        let dir = tempfile::tempdir().expect("a directory");
        let fresh = dir.path().join("a/b/mcp.json");
        let mut edit = FileEdit::plan(fresh.clone(), member()).expect("planned");
        edit.apply().expect("written");
        assert!(fresh.exists());
        edit.undo().expect("undone");
        assert!(!dir.path().join("a").exists());
        let old = dir.path().join("settings.json");
        let text = "{ /* odd */ \"x\":1 , }";
        fs::write(&old, text).expect("written");
        let mut edit = FileEdit::plan(old.clone(), member()).expect("planned");
        edit.apply().expect("written");
        // Somebody else changes the file meanwhile: only our part goes.
        let changed = fs::read_to_string(&old).expect("text").replace("\"x\":1", "\"x\":2");
        fs::write(&old, &changed).expect("written");
        edit.undo().expect("undone");
        let left = fs::read_to_string(&old).expect("text");
        assert!(left.contains("\"x\":2") && left.contains("/* odd */") && !left.contains("/usr/bin/ptyd"), "{left}");
        fs::write(&old, text).expect("written");
        let mut edit = FileEdit::plan(old.clone(), member()).expect("planned");
        edit.apply().expect("written");
        edit.undo().expect("undone");
        assert_eq!(fs::read_to_string(&old).expect("text"), text);
    }
}
