//! Tests of the relations, with the processes of real pipelines.

use super::*;

const SHELL: u32 = 10;
const OURS: Terminal = Terminal::Pseudo(1);

/// A process of the shell's session.
fn member(pid: u32, parent: u32, group: u32) -> Member {
    Member { pid, parent, group, session: SHELL, terminal: OURS, foreground: Some(20), is_stopped: false }
}

/// The leader of a session on another terminal.
fn leader(pid: u32, parent: u32, terminal: Terminal, foreground: u32) -> Member {
    Member { session: pid, group: pid, terminal, foreground: Some(foreground), ..member(pid, parent, pid) }
}

fn pids(members: &[Member]) -> Vec<u32> {
    members.iter().map(|process| process.pid).collect()
}

#[test]
fn a_job_is_its_group_and_the_children_that_left_the_session() {
    let all = [
        member(SHELL, 1, SHELL),
        // `sort | su -c less` in the foreground, with a server in the background.
        member(20, SHELL, 20),
        member(21, SHELL, 20),
        member(30, SHELL, 30),
        Member { session: 22, group: 22, ..member(22, 21, 22) },
        member(31, 30, 30),
        Member { session: 32, group: 32, ..member(32, 30, 32) },
    ];
    assert_eq!(pids(&members(all, 20, SHELL)), [20, 21, 22]);
    // A child with job control of its own is in the shell's session, and has not the terminal.
    assert_eq!(pids(&members([member(20, SHELL, 20), member(23, 20, 23)], 20, SHELL)), [20]);
}

#[test]
fn a_job_is_stopped_with_the_processes_that_wait_for_no_other_one() {
    let stopped = |process: Member| Member { is_stopped: true, ..process };
    let (parent, child, other) = (member(20, SHELL, 20), member(21, 20, 20), member(22, SHELL, 20));
    assert_eq!(all_are_stopped(&[]), None);
    assert_eq!(all_are_stopped(&[parent, stopped(child)]), Some(true));
    assert_eq!(all_are_stopped(&[stopped(parent), child]), Some(false));
    assert_eq!(all_are_stopped(&[parent, stopped(child), other]), Some(false));
}

#[test]
fn a_terminal_belongs_to_the_processes_that_it_controls_and_to_those_without_one() {
    let none = Member { terminal: Terminal::None, ..member(21, 20, 20) };
    let all = [member(20, SHELL, 20), none, leader(22, 20, Terminal::Pseudo(2), 22)];
    assert_eq!(at_terminal(&all, OURS), [20, 21]);
}

#[test]
// promise: ask-4
fn a_nested_terminal_is_that_of_the_first_descendant_that_leads_a_session_on_it() {
    let there = Terminal::Pseudo(2);
    let inner = leader(23, 22, there, 24);
    let all = [
        member(20, SHELL, 20),
        // `sudo` keeps a process between itself and the one on its terminal.
        member(21, SHELL, 20),
        Member { session: 22, ..member(22, 20, 22) },
        leader(25, 21, Terminal::Pseudo(3), 25),
        inner,
        Member { session: 23, terminal: there, ..member(24, 23, 24) },
        Member { session: 23, terminal: there, ..member(26, 23, 26) },
    ];
    assert_eq!((nested(&all, 20), nested_job(&all, inner)), (Some(inner), Some(vec![24])));
    assert_eq!(nested(&all, 23), None, "a terminal is not nested in itself");
    assert_eq!(nested_job(&all, Member { foreground: None, ..inner }), None);
    let console = [member(20, SHELL, 20), leader(21, 20, Terminal::Other, 21)];
    assert_eq!(nested(&console, 20), None);
}
