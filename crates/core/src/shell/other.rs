//! Any other program: started under its name, without an integration.

use super::start::{Shell, Start};

pub(super) fn start(start: &Start<'_>) -> Shell {
    // Like login(1), with a hyphen before the name; a program that is not a shell ignores it.
    let name = if start.wanted.login { format!("-{}", start.name) } else { start.name.to_owned() };
    Shell { argv: vec![name.into_bytes()], ..Shell::default() }
}
