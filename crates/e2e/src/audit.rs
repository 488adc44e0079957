//! The audit log.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Every line in all files, oldest file first; each must be JSON.
pub fn audit_lines(state: &Path) -> Vec<Value> {
    let mut files: Vec<PathBuf> = (1..100).rev().map(|number| state.join(format!("audit.{number}.jsonl"))).collect();
    files.push(state.join("audit.jsonl"));
    let texts: Vec<String> = files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect();
    let all = texts.iter().flat_map(|text| text.lines());
    all.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line:?}"))).collect()
}
