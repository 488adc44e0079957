//! End-to-end tests over REST and the command line: one file for each subject of what must hold.
//!
//! Every test has a server, a home and shells of its own, so any of them can run beside any other. Times are ten times
//! what is promised, because the machine is busy with the other tests.

mod attach;
mod boundaries;
mod cli;
mod containers;
mod contract_edges;
mod copied_state;
mod crash;
mod damage;
mod delivery;
mod descendants;
mod disk;
mod docs;
mod events;
mod fairness;
mod foreign;
mod forgers;
mod hostile;
mod idempotency;
mod inside;
mod isolation;
mod leaks;
mod limits;
mod load;
mod metrics;
mod non_root;
mod nushell;
mod output;
mod output_by_kind;
mod passwords;
mod posix;
mod processes;
mod profiles;
mod programs;
mod purge;
mod recording;
mod resize;
mod rest;
mod run_input;
mod search;
mod server_events;
mod session_lifetime;
mod shell_ends;
mod shell_matrix;
mod shell_mixes;
mod shell_texts;
mod shells_inside;
mod signals;
mod socket;
mod state_dir;
mod tokens;
mod typed_at_prompt;
mod unreachable_holder;
mod waiting;
