//! The tests that skip themselves, and which of them may be skipped when everything is to run.

use crate::suite::LeftOut;
use std::fs;
use std::path::Path;

/// The variable with the path of the file in which tests of Rust note that they did not run (`e2e::not_run`).
pub const FILE: &str = "PTYD_TEST_NOT_RUN";

/// Something that a test may leave out where everything is to run.
struct Excuse {
    /// The beginning of the test's name.
    test: &'static str,
    /// A part of the reason that the test gives.
    why: &'static str,
    /// True if root is not excused.
    is_users: bool,
    because: &'static str,
}

/// Any other test left out there fails: the set-up brings it, or the machine is not one to test everything on.
const EXCUSES: [Excuse; 13] = [
    Excuse { test: "", why: "PTYD_TEST_FULL=1", is_users: false, because: "only --full has the time for it" },
    Excuse {
        test: "shells_inside::an_environment_of_condas_is_reported",
        why: "conda is not on PATH",
        is_users: false,
        because: "conda is on no registry that the set-up uses; the same test does by hand what its activation does",
    },
    Excuse {
        test: "",
        why: "only root",
        is_users: true,
        because: "an ordinary user cannot do it, and must not be asked for more than the packages",
    },
    Excuse { test: "", why: "sudo asks for a password", is_users: true, because: "nobody is there to type it" },
    Excuse {
        test: "limits::",
        why: "no control group can be made here",
        is_users: false,
        because: "a machine that is itself a container may not give any; then the holder keeps what it can, which is tested",
    },
    Excuse {
        test: "crates.e2e.mcp.test_starvation::",
        why: "no control group can be made here",
        is_users: false,
        because: "only a group of its own starves a test and nothing else",
    },
    Excuse {
        test: "containers::",
        why: "cannot run here",
        is_users: false,
        because: "a machine that is itself a container may not let another one be made",
    },
    Excuse {
        test: "crates.e2e.mcp.",
        why: "not in the tier ",
        is_users: false,
        because: "the same test runs where nothing is confined",
    },
    Excuse {
        test: "crates.e2e.mcp.",
        why: "no container can run here",
        is_users: false,
        because: "a machine that is itself a container may not let another one be made",
    },
    Excuse {
        test: "crates.e2e.mcp.test_kubernetes",
        why: "kubectl is not installed",
        is_users: false,
        because: "not every distribution has it; the other tests render the few fields that differ by themselves",
    },
    Excuse {
        test: "",
        why: "lets a test mount nothing",
        is_users: false,
        because: "the kernel may give an ordinary user no mounts of its own",
    },
    Excuse {
        test: "non_root::",
        why: "no program changes its user in",
        is_users: false,
        because: "the folder for temporary files may be mounted so",
    },
    Excuse {
        test: "upgrade::",
        why: "tag",
        is_users: false,
        because: "nothing is released yet, and a shallow clone or an export of the sources knows no tag",
    },
];

/// Why this may be left out where everything is to run; none where it may not.
pub fn excuse(left_out: &LeftOut, is_root: bool) -> Option<&'static str> {
    let fits =
        |e: &&Excuse| left_out.test.starts_with(e.test) && left_out.why.contains(e.why) && !(e.is_users && is_root);
    EXCUSES.iter().find(fits).map(|excuse| excuse.because)
}

/// The notes of a suite's tests.
pub fn noted(file: &Path) -> Vec<LeftOut> {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(note).collect()
}

fn note(line: &str) -> Option<LeftOut> {
    let mut parts = line.splitn(3, '\t');
    let (how, test, why) = (parts.next()?, parts.next()?, parts.next()?);
    Some(LeftOut { test: test.to_owned(), why: why.to_owned(), in_part: how == "in part" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(test: &str, why: &str) -> LeftOut {
        LeftOut { test: test.to_owned(), why: why.to_owned(), in_part: false }
    }

    #[test]
    // promise: check-1
    fn only_listed_tests_may_be_skipped_in_a_complete_run() {
        let is_excused = |test, why, is_root| excuse(&left_out(test, why), is_root).is_some();
        assert!(is_excused(
            "crates.e2e.mcp.test_requirement::test_thirty_seconds",
            "it takes 30 s: PTYD_TEST_FULL=1",
            true
        ));
        let tier = "not in the tier container: su gives no rights";
        assert!(is_excused("crates.e2e.mcp.test_behaviour_20_hostile::test_su", tier, true));
        assert!(is_excused("disk::a_full_disk", "only root can mount a small disk", false));
        assert!(!is_excused("disk::a_full_disk", "only root can mount a small disk", true));
        assert!(!is_excused("nushell::a_code", "there is no nu on PATH", false));
        assert!(!is_excused("session_lifetime::a_name", "no control group can be made here", true));
    }

    #[test]
    fn the_notes_of_a_test_are_read() {
        assert_eq!(note("not run\tdisk::a_b\tonly root"), Some(left_out("disk::a_b", "only root")));
        let in_part = LeftOut { in_part: true, ..left_out("a::b", "no conda") };
        assert_eq!(note("in part\ta::b\tno conda"), Some(in_part));
        assert_eq!(note("half a line"), None);
    }
}
