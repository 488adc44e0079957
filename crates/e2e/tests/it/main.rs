//! End-to-end tests over REST and the command line: one file for each subject of what must hold.
//!
//! Every test has a server, a home and shells of its own, so any of them can run beside any other. Times are ten times
//! what is promised, because the machine is busy with the other tests.

mod attach;
mod boundaries;
mod cli;
mod containers;
mod copied_state;
mod crash;
mod damage;
mod delivery;
mod descendants;
mod dialects;
mod disk;
mod docs;
mod edges;
mod events;
mod fairness;
mod foreign;
mod forgers;
mod hostile;
mod idempotency;
mod inside;
mod isolation;
mod kinds;
mod leaks;
mod life;
mod limits;
mod load;
mod metrics;
mod news;
mod nushell;
mod ordinary;
mod output;
mod passwords;
mod posix;
mod premises;
mod processes;
mod profiles;
mod programs;
mod purge;
mod recording;
mod resize;
mod rest;
mod run_input;
mod search;
mod shell_ends;
mod shell_mixes;
mod shell_texts;
mod shells_inside;
mod signals;
mod socket;
mod tokens;
mod typed;
mod unreachable_holder;
mod waiting;
