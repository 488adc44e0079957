//! Any other program: started under its name, with nothing of ours.

use super::{Shell, Start};

pub(super) fn start(start: &Start<'_>) -> Shell {
    // As login(1) says it (a hyphen before the name); a program that is no shell does not mind.
    let name = if start.wanted.login { format!("-{}", start.name) } else { start.name.to_owned() };
    Shell { argv: vec![name.into_bytes()], ..Shell::default() }
}
