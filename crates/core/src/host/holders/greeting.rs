//! The greeting of a holder, and the errors of one that could not start.

use std::io;
use std::path::Path;

use sys::spawn::{SpawnError, Step};
use wire::{FromHolder, Namespaces, PROTOCOL, Status};

use super::super::capacity;
use super::connection::HolderConnection;
use super::folder::SessionFolder;
use crate::action::ActionError;

/// The longest log of a holder that could not start: it has a line or two.
const LOG_BYTES_MAX: u64 = 64 << 10;

/// The reason why a holder cannot be talked to.
#[derive(Debug)]
pub(crate) enum NoGreeting {
    /// The holder reported it: the step, and the errno.
    Refused(u64),
    /// Its Hello names this protocol, which this server does not know.
    Foreign(u16),
    /// The connection ended.
    Ended(io::Error),
}

/// The first frames of a holder, up to its Hello.
pub(crate) async fn greeting(connection: &mut HolderConnection) -> Result<Vec<FromHolder>, NoGreeting> {
    let mut early = Vec::new();
    loop {
        for frame in connection.receive().await.map_err(NoGreeting::Ended)? {
            if let FromHolder::Done { seq: 0, status: Status::Failed, value, .. } = frame {
                return Err(NoGreeting::Refused(value));
            }
            early.push(frame);
        }
        match early
            .iter()
            .find_map(|frame| if let FromHolder::Hello(hello) = frame { Some(hello.protocol) } else { None })
        {
            Some(PROTOCOL) => return Ok(early),
            Some(other) => return Err(NoGreeting::Foreign(other)),
            None => {}
        }
    }
}

/// The message about a holder of a protocol that this server does not know.
pub(crate) fn speaks_another_protocol(protocol: u16) -> String {
    format!(
        "its holder speaks protocol {protocol}, and this ptyd speaks {PROTOCOL}: run the version that started it, or end the session by force"
    )
}

/// The error of a session that could not be started: `Exhausted` if the machine lacks a resource, else `Start`.
pub(crate) fn start_error(what: &str, error: &io::Error) -> ActionError {
    start_error_from(format!("{what}: {error}"), Some(error))
}

/// The same for an error of which only the text is known.
pub(crate) fn start_error_of(why: String) -> ActionError {
    let error = errno_of(&why).map(io::Error::from_raw_os_error);
    start_error_from(why, error.as_ref())
}

fn start_error_from(why: String, error: Option<&io::Error>) -> ActionError {
    let Some(error) = error.filter(|e| is_passing(e)) else { return ActionError::Start { why } };
    match used_up(&why, error) {
        Some(limit) => ActionError::Exhausted { why: format!("{why}: {limit}") },
        None => ActionError::Exhausted { why },
    }
}

/// The limit of the kernel that a failed start ran into, and how to raise it.
fn used_up(why: &str, error: &io::Error) -> Option<String> {
    use rustix::io::Errno;
    use sys::capacity::Resource::{Descriptors, GroupThreads, MountedTerminals, Pids, Terminals, Threads, UserThreads};
    let is = |errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    // The kernel says ENOSPC; musl's posix_openpt makes EAGAIN of it.
    if (is(Errno::NOSPC) || is(Errno::AGAIN)) && why.contains(wire::NO_TERMINAL) {
        capacity::used_up(&[Terminals, MountedTerminals])
    } else if is(Errno::MFILE) {
        capacity::used_up(&[Descriptors])
    } else if is(Errno::AGAIN) {
        capacity::used_up(&[Pids, Threads, UserThreads, GroupThreads])
    } else {
        None
    }
}

impl NoGreeting {
    /// The error of a session whose new holder cannot be talked to.
    pub(crate) fn error(self, folder: &SessionFolder) -> ActionError {
        match self {
            NoGreeting::Refused(value) => {
                let error = start_failure(value);
                let namespaces = folder.spec().ok().and_then(|spec| spec.confinement).map(|rules| rules.namespaces);
                // Those of a container are there already.
                if namespaces != Some(Namespaces::Container)
                    && let Some(why) = sys::sandbox::refusal(&error)
                {
                    return ActionError::Start { why: format!("its confinement {why}") };
                }
                start_error(step_name(error.step), &io::Error::from_raw_os_error(error.errno))
            }
            NoGreeting::Foreign(protocol) => ActionError::Start { why: speaks_another_protocol(protocol) },
            NoGreeting::Ended(e) => match last_words(folder.path()) {
                Some(words) => start_error_of(format!("the holder ended: {words}")),
                None => start_error("the holder ended", &e),
            },
        }
    }
}

fn start_failure(value: u64) -> SpawnError {
    let step = u8::try_from(value >> 32).map_or(Step::Exec, Step::of_code);
    SpawnError { step, errno: i32::try_from(value & 0xffff_ffff).unwrap_or(0) }
}

fn step_name(step: Step) -> &'static str {
    match step {
        Step::Fork => "fork",
        Step::Session => "setsid",
        Step::Terminal => "taking the terminal",
        Step::Descriptors => "placing descriptors (a shell needs a limit of at least 98 open files, ulimit -n)",
        Step::Directory => "entering the working directory",
        Step::Exec => "executing the shell",
        Step::Group => "joining its control group",
        Step::Limit => "setting its limits",
        Step::User => "becoming its user",
        Step::Namespaces => "entering its namespaces",
        Step::Confinement | Step::Mounts | Step::Proc => "confining the shell",
    }
}

/// The last line of the holder's log, without the names of program and folder.
fn last_words(folder: &Path) -> Option<String> {
    let log = String::from_utf8(journal::read_whole(&folder.join("holder.log"), LOG_BYTES_MAX).ok()?).ok()?;
    let last = log.lines().last().filter(|line| !line.is_empty())?;
    let own = format!("ptyd-holder: {}: ", folder.display());
    Some(last.strip_prefix(own.as_str()).unwrap_or(last).to_owned())
}

/// The errno in the text of an `io::Error`.
fn errno_of(words: &str) -> Option<i32> {
    words.rsplit_once("(os error ")?.1.strip_suffix(')')?.parse().ok()
}

/// Whether the machine, this process or the holder's queue lacks a resource, so that a retry may succeed.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::NOBUFS,
        Errno::NOSPC,
        Errno::DQUOT,
        Errno::INTR,
    ];
    error.raw_os_error().is_some_and(|errno| passing.iter().any(|passing| passing.raw_os_error() == errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holders_last_words_are_reported_and_a_lack_of_resources_is_recognised() {
        let dir = tempfile::tempdir().expect("a directory");
        let ended = || NoGreeting::Ended(io::ErrorKind::UnexpectedEof.into());
        let say = |words: &str| {
            let line = format!("ptyd-holder: {}: {words}\n", dir.path().display());
            std::fs::write(dir.path().join("holder.log"), line).expect("written");
            ended().error(&SessionFolder::at(dir.path().to_owned()))
        };
        let told = say("No space left on device (os error 28)");
        assert!(
            matches!(&told, ActionError::Exhausted { why } if why == "the holder ended: No space left on device (os error 28)")
        );
        let told = say("Permission denied (os error 13)");
        assert!(
            matches!(&told, ActionError::Start { why } if why == "the holder ended: Permission denied (os error 13)")
        );
        let fork = NoGreeting::Refused(11).error(&SessionFolder::at(dir.path().to_owned()));
        assert!(matches!(&fork, ActionError::Exhausted { why } if why.starts_with("fork: ")), "{fork:?}");
        let exec = NoGreeting::Refused(5 << 32 | 2).error(&SessionFolder::at(dir.path().to_owned()));
        assert!(matches!(&exec, ActionError::Start { why } if why.starts_with("executing the shell: ")), "{exec:?}");
    }
}
