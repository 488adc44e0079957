//! The seccomp filter of a confined process, in the kernel's classic BPF (seccomp(2)).
//!
//! By hand and not by a library: those match numbers exactly, and x86-64 has a second set of numbers for the same calls (x32).

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter,
};

/// Refused, whatever the arguments: they change mounts, namespaces, keys, clocks or the kernel, or reach into another process.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_move_pages,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// open_tree_attr(2), since Linux 6.15; the same number everywhere.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// Refused where shared memory is: segments, queues and semaphores that all processes of the user reach by numbers.
const SHARED: &[libc::c_long] = &[
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

/// fchmodat2(2), since Linux 6.6; the same number everywhere.
const FCHMODAT2: libc::c_long = 452;

/// The calls that give a file a mode, each with the place of the mode among its arguments. A file of root's with a bit of
/// [`SET_ID`] would make any user of the machine root.
const WITH_MODE: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
    (libc::SYS_mkdirat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// The calls that give a mode only to a file that they make, each with the place of its flags; the mode is behind them.
const WITH_FLAGS_AND_MODE: &[(libc::c_long, u32)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// The set-user-id and the set-group-id bit.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// The flags of open(2) that make a file. `O_TMPFILE` has a bit of its own beside that of `O_DIRECTORY`.
const MAKES: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();

/// Flags of clone(2) that make a namespace.
const NAMESPACES: libc::c_int = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// `struct seccomp_data`: the call's number, its architecture, and the lower halves of its arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

#[cfg(target_arch = "x86_64")]
const OWN_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OWN_ARCHITECTURE: u32 = 0xc000_00b7;
/// x32's numbers of the calls begin here.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// The part of a socket's type that is not a flag (`SOCK_TYPE_MASK` of the kernel).
const SOCKET_TYPE: u32 = 0xf;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

const fn errno(number: libc::c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | number.cast_unsigned()
}

const fn step(code: u32, value: u32, if_true: u8, if_false: u8) -> sock_filter {
    sock_filter { code: code as u16, jt: if_true, jf: if_false, k: value }
}

const fn load(offset: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

const fn result(value: u32) -> sock_filter {
    step(BPF_RET | BPF_K, value, 0, 0)
}

/// Skips the next `skipped` steps unless the loaded word compares so.
const fn unless(comparison: u32, value: u32, skipped: u8) -> sock_filter {
    step(BPF_JMP | comparison | BPF_K, value, 0, skipped)
}

/// The whole filter.
pub(super) fn program(network: bool, shared_memory: bool) -> Vec<sock_filter> {
    let mut steps = vec![
        load(ARCHITECTURE),
        step(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCHITECTURE, 1, 0),
        result(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER),
    ];
    #[cfg(target_arch = "x86_64")]
    steps.extend([unless(BPF_JGE, X32, 1), result(errno(libc::ENOSYS))]);
    let shared = if shared_memory { &[] } else { SHARED };
    for call in REFUSED.iter().chain(shared).chain(&[OPEN_TREE_ATTR]) {
        steps.extend([unless(BPF_JEQ, *call as u32, 1), result(errno(libc::EPERM))]);
    }
    // Their flags and modes are in memory, which a filter cannot read; libraries use clone(2) and openat(2) then.
    for call in [libc::SYS_clone3, libc::SYS_openat2] {
        steps.extend([unless(BPF_JEQ, call as u32, 1), result(errno(libc::ENOSYS))]);
    }
    for (call, mode) in WITH_MODE {
        steps.extend(refused_where(*call, *mode, &[(BPF_JSET, SET_ID)]));
    }
    for (call, flags) in WITH_FLAGS_AND_MODE {
        steps.extend(of_call(*call, opened(*flags)));
    }
    steps.extend(refused_where(libc::SYS_clone, 0, &[(BPF_JSET, NAMESPACES.cast_unsigned())]));
    // They type into a terminal.
    steps.extend(refused_where(
        libc::SYS_ioctl,
        1,
        &[(BPF_JEQ, libc::TIOCSTI as u32), (BPF_JEQ, libc::TIOCLINUX as u32)],
    ));
    // The limits of another process.
    steps.extend(refused_where(libc::SYS_prlimit64, 0, &[(BPF_JGE, 1)]));
    steps.extend(socket(network));
    steps.extend(of_call(libc::SYS_socketpair, pair()));
    steps.push(result(ALLOW));
    steps
}

/// Refuses a call where the argument compares so with one of the values.
fn refused_where(call: libc::c_long, index: u32, values: &[(u32, u32)]) -> Vec<sock_filter> {
    let mut tests = vec![load(argument(index))];
    for (comparison, value) in values {
        tests.extend([unless(*comparison, *value, 1), result(errno(libc::EPERM))]);
    }
    tests.push(result(ALLOW));
    of_call(call, tests)
}

/// Refuses to make a file with a bit of [`SET_ID`]. Without the flags, the mode is whatever was in that register.
fn opened(flags: u32) -> Vec<sock_filter> {
    vec![
        load(argument(flags)),
        unless(BPF_JSET, MAKES, 3),
        load(argument(flags + 1)),
        unless(BPF_JSET, SET_ID, 1),
        result(errno(libc::EPERM)),
        result(ALLOW),
    ]
}

/// Allows sockets of the Internet protocols, and those that list the network's interfaces, or none.
fn socket(network: bool) -> Vec<sock_filter> {
    let mut tests = Vec::new();
    if network {
        tests.push(load(argument(0)));
        for family in [libc::AF_INET, libc::AF_INET6] {
            tests.extend([unless(BPF_JEQ, family.cast_unsigned(), 1), result(ALLOW)]);
        }
        let protocol = [load(argument(2)), unless(BPF_JEQ, libc::NETLINK_ROUTE.cast_unsigned(), 1), result(ALLOW)];
        tests.push(unless(BPF_JEQ, libc::AF_NETLINK.cast_unsigned(), 3));
        tests.extend(protocol);
    }
    tests.push(result(errno(libc::EACCES)));
    of_call(libc::SYS_socket, tests)
}

/// Allows pairs that stay connected to each other. A socket of the third kind, for datagrams, can send to any name.
fn pair() -> Vec<sock_filter> {
    let mut tests = vec![load(argument(1)), step(BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE, 0, 0)];
    for kind in [libc::SOCK_STREAM, libc::SOCK_SEQPACKET] {
        tests.extend([unless(BPF_JEQ, kind.cast_unsigned(), 1), result(ALLOW)]);
    }
    tests.push(result(errno(libc::EACCES)));
    tests
}

/// These tests, which end with a result, for one call; the number is loaded before and after.
fn of_call(call: libc::c_long, tests: Vec<sock_filter>) -> Vec<sock_filter> {
    let skipped = u8::try_from(tests.len()).expect("invariant: few tests for each call");
    [vec![unless(BPF_JEQ, call as u32, skipped)], tests].concat()
}
