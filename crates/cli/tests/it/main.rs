//! Tests of the binary as people and agents use it: with real servers and shells.

mod command_line;
mod faces;
mod first_guesses;
mod home;
mod shell_prefix;
