"""Tries to leave the confinement of its session, and prints the name of each attempt that has succeeded.

Its arguments: a home, the server's state folder, its socket, its pid, the holder's pid, another session's id and terminal, and
the tier. The variables OUTSIDE and SEGMENT name a file in the machine's folder for temporary files and a segment of its
shared memory.
"""

import ctypes
import errno
import fcntl
import os
import platform
import signal
import socket
import struct
import sys
import termios

home, state, server_socket, server, holder, other, terminal, tier = sys.argv[1:]
outside, segment = os.environ["OUTSIDE"], int(os.environ["SEGMENT"])
server, holder = int(server), int(holder)
libc = ctypes.CDLL(None, use_errno=True)
is_x86 = platform.machine() == "x86_64"


def syscall(number, *arguments):
    """Raises the error of a system call."""
    result = libc.syscall(number, *arguments)
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def reads(path):
    with open(path, "rb") as file:
        file.read(1)


def writes(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))


def changes(path):
    os.close(os.open(path, os.O_WRONLY))


def leaves_by_descriptor(change):
    """Does it to a file of the machine that the shell has inherited, or by the way up from such a folder."""
    for descriptor in range(90, 100):
        at = f"/proc/self/fd/{descriptor}"
        if os.path.isdir(at):
            return change(at + "/.." * 40 + f"{home}/open")
        if os.path.isfile(at) and not os.readlink(at).startswith("/memfd:"):
            return change(at)
    raise OSError("there is none")


def opens_terminal(path):
    """A sandbox has terminals of its own, which have the same names."""
    if os.fstat(0).st_rdev == os.stat(path).st_rdev and os.path.samestat(os.fstat(0), os.stat(path)):
        raise OSError("its own")
    changes(path)


def watches(path):
    """inotify(7) tells what is made in a folder; an empty one in its place has a file system of its own."""
    if os.stat(path).st_dev != os.stat(".").st_dev:
        raise OSError("another folder")
    if libc.inotify_add_watch(libc.inotify_init(), path.encode(), 0x100) == -1:
        raise OSError(ctypes.get_errno(), "refused")


def through_link(path):
    os.symlink(path, "link")
    try:
        reads("link")
    finally:
        os.unlink("link")


def connects(path):
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)


def datagram_pair(kind):
    """A pair of datagram sockets can send to any name."""
    for end in socket.socketpair(socket.AF_UNIX, kind):
        end.close()


def own_shared_memory(number, *arguments):
    """Succeeds unless the call itself is refused: without a segment it may fail in another way."""
    try:
        syscall(number, *arguments)
    except OSError as error:
        if error.errno == errno.EPERM:
            raise


def sets_bit(bit):
    """Makes a file with this bit by one of all calls that give a mode; succeeds if one of them is not refused."""
    with open("plain", "w") as file:
        descriptor = os.dup(file.fileno())
    mode, make = 0o755 | bit, os.O_CREAT | os.O_WRONLY
    how = struct.pack("QQQ", make, mode, 0)
    calls = [
        lambda: libc.chmod(b"plain", mode),
        lambda: libc.fchmod(descriptor, mode),
        lambda: libc.syscall(53 if not is_x86 else 268, -100, b"plain", mode),
        lambda: libc.syscall(452, -100, b"plain", mode, 0),
        lambda: libc.open(b"opened", make, mode),
        lambda: libc.openat(-100, b"opened at", make, mode),
        lambda: libc.openat(-100, b".", 0o20200000 | os.O_WRONLY, mode),
        lambda: libc.syscall(437, -100, b"opened with a structure", how, len(how)),
        lambda: libc.mknod(b"node", mode | 0o100000, 0),
        lambda: libc.mknodat(-100, b"node at", mode | 0o100000, 0),
        lambda: libc.mkdir(b"folder", mode),
        lambda: libc.mkdirat(-100, b"folder at", mode),
    ]
    if is_x86:
        calls += [
            lambda: libc.syscall(2, b"opened by its number", make, mode),
            lambda: libc.syscall(85, b"created", mode),
            lambda: libc.syscall(90, b"plain", mode),
            lambda: libc.syscall(83, b"folder by its number", mode),
            lambda: libc.syscall(133, b"node by its number", mode | 0o100000, 0),
        ]
    if not any([call() != -1 for call in calls]):
        raise OSError("refused")


def group_files():
    for folder, _, files in os.walk("/sys/fs/cgroup"):
        yield from (os.path.join(folder, name) for name in files if name in ("cgroup.procs", "tasks"))


def leaves_its_group():
    refused = None
    for path in group_files():
        try:
            with open(path, "w") as file:
                file.write("0")
            return
        except OSError as error:
            refused = error
    raise refused or OSError("no control groups")


ATTEMPTS = {
    "reads a secret": lambda: reads(f"{home}/.ssh/id"),
    "reads a secret by a link": lambda: through_link(f"{home}/.ssh/id"),
    "reads a secret by a hard link": lambda: (os.link(f"{home}/.ssh/id", "hard"), reads("hard")),
    "moves a secret into its reach": lambda: os.rename(f"{home}/.ssh", "moved"),
    "lists the folder of secrets": lambda: os.listdir(f"{home}/.ssh"),
    "makes the secret that did not exist": lambda: writes(f"{home}/.netrc"),
    "reads the token": lambda: reads(f"{state}/token"),
    "reads the configuration": lambda: reads(f"{home}/config/ptyd/config.toml"),
    "reads another session": lambda: reads(f"{state}/sessions/{other}/journal"),
    "reads its own record": lambda: reads(f"{state}/sessions/{os.environ['PTYD_SESSION']}/spec"),
    "reads the passwords of the machine": lambda: reads("/etc/shadow"),
    "reads another home": lambda: os.listdir("/root" if not home.startswith("/root") else "/home"),
    "reads shared temporary files": lambda: reads(outside),
    "reads by another process's root": lambda: reads(f"/proc/{holder}/root/{state}/token"),
    "reads by another process's directory": lambda: os.listdir(f"/proc/{server}/cwd/"),
    "writes into its home": lambda: writes(f"{home}/new"),
    "writes its shell's start-up file": lambda: writes(f"{home}/.bashrc"),
    "writes into the system": lambda: writes("/usr/local/confined"),
    "writes settings of the system": lambda: writes("/etc/confined"),
    "writes settings of the kernel": lambda: writes("/proc/sys/kernel/core_pattern"),
    "writes into shared temporary files": lambda: changes(outside),
    "writes into shared memory": lambda: changes(f"/dev/shm/{os.path.basename(outside)}"),
    "writes into another session": lambda: writes(f"{state}/sessions/{other}/journal"),
    "opens another terminal": lambda: opens_terminal(terminal),
    "opens the disk": lambda: reads("/dev/vda"),
    "reads the holder's descriptors": lambda: os.readlink(f"/proc/{holder}/fd/0"),
    "reads the holder's environment": lambda: reads(f"/proc/{holder}/environ"),
    "opens the server's memory": lambda: os.close(os.open(f"/proc/{server}/mem", os.O_RDONLY)),
    "traces the holder": lambda: syscall(101 if is_x86 else 117, 16, holder, 0, 0),
    "takes a descriptor of the holder": lambda: syscall(438, os.pidfd_open(holder), 0, 0),
    "copies the memory of the holder": lambda: syscall(310 if is_x86 else 270, holder, 0, 0, 0, 0, 0),
    "stops the holder": lambda: os.kill(holder, signal.SIGSTOP),
    "signals the holder": lambda: os.kill(holder, 0),
    "signals the server": lambda: os.kill(server, 0),
    "signals by a descriptor": lambda: signal.pidfd_send_signal(os.pidfd_open(server), signal.SIGCONT),
    "limits the holder": lambda: syscall(302 if is_x86 else 261, holder, 7, struct.pack("QQ", 9, 9), None),
    "connects to the server": lambda: connects(server_socket),
    "connects to its holder": lambda: connects(f"{state}/sessions/{os.environ['PTYD_SESSION']}/control"),
    "makes a Unix socket": lambda: socket.socket(socket.AF_UNIX),
    "makes a socket": lambda: socket.socket(socket.AF_INET),
    "makes a datagram socket": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "makes a packet socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
    "reaches a virtual machine": lambda: socket.socket(socket.AF_VSOCK),
    "makes a pair for datagrams": lambda: datagram_pair(socket.SOCK_DGRAM),
    "makes a pair for raw datagrams": lambda: datagram_pair(socket.SOCK_RAW),
    "attaches shared memory": lambda: syscall(30 if is_x86 else 196, segment, None, 0),
    "opens a tree of files": lambda: syscall(467, -100, b".", 0, None, 0),
    "makes a user namespace": lambda: syscall(272 if is_x86 else 97, 0x10000000),
    "clones into a namespace": lambda: syscall(56 if is_x86 else 220, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) or os._exit(0),
    "enters a namespace": lambda: syscall(308 if is_x86 else 268, os.open("/proc/self/ns/net", os.O_RDONLY), 0),
    "mounts": lambda: syscall(165 if is_x86 else 40, b"none", b".", b"tmpfs", 0, None),
    "changes its root": lambda: os.chroot("."),
    "makes a device": lambda: os.mknod("device", 0o020666, os.makedev(1, 3)),
    "changes the mode of a file": lambda: os.chmod(f"{home}/open", 0o600),
    "changes the mode of a file by a descriptor": lambda: leaves_by_descriptor(lambda path: os.chmod(path, 0o600)),
    "changes the times of a file": lambda: os.utime(f"{home}/open"),
    "makes a set-user-id file": lambda: sets_bit(0o4000),
    "makes a set-group-id file": lambda: sets_bit(0o2000),
    "types into its terminal": lambda: fcntl.ioctl(0, termios.TIOCSTI, b"x"),
    "becomes another user": lambda: os.setuid(12345),
    "joins a keyring": lambda: syscall(250 if is_x86 else 219, 1, 0, 0, 0, 0),
    "loads a program into the kernel": lambda: syscall(321 if is_x86 else 280, 5, 0, 0),
    "uses a ring of requests": lambda: syscall(425, 1, ctypes.create_string_buffer(120)),
    "opens by a handle": lambda: syscall(304 if is_x86 else 265, -100, ctypes.create_string_buffer(64), 0),
    "calls by x32's numbers": lambda: syscall(0x40000000 | 39) if is_x86 else os.kill(server, 0),
    "leaves its control group": leaves_its_group,
    "signals the first process": lambda: os.kill(1, 0),
    "takes the environment of the first process": lambda: reads("/proc/1/environ"),
    "goes through the root of the first process": lambda: os.listdir("/proc/1/root/"),
    "takes a mount away": lambda: syscall(166 if is_x86 else 39, b"/proc", 2),
}
# A container has these files for itself; whoever has started it looks at the machine's.
OWN = (
    "writes into its home",
    "writes its shell's start-up file",
    "makes the secret that did not exist",
    "writes settings of the system",
)
if tier == "container":
    del ATTEMPTS["reads another home"]
    ATTEMPTS |= {
        "changes the program of the first process": lambda: changes("/.ptyd/ptyd-init"),
        "writes beside that program": lambda: writes("/.ptyd/new"),
        "takes a descriptor of the first process": lambda: [os.open(f"/proc/1/fd/{fd}", os.O_PATH) for fd in os.listdir("/proc/1/fd")],
    }
# Landlock does not judge these.
if tier in ("sandbox", "container"):
    ATTEMPTS |= {
        "looks at a file by a descriptor": lambda: leaves_by_descriptor(os.stat),
        "sees what is made in a hidden folder": lambda: watches(f"{home}/.ssh"),
        "sees a process outside": lambda: os.stat(f"/proc/{holder}"),
        "changes the priority of the server": lambda: os.setpriority(os.PRIO_PROCESS, server, 19),
    }
# A sandbox has these for itself.
else:
    ATTEMPTS |= {
        "lists shared temporary files": lambda: os.listdir("/tmp"),
        "makes shared memory": lambda: writes("/dev/shm/confined"),
        "takes shared memory": lambda: own_shared_memory(29 if is_x86 else 194, 0, 100, 0o600),
        "opens a queue of messages": lambda: own_shared_memory(240 if is_x86 else 180, b"ptyd", os.O_RDONLY, 0, None),
    }

# Without confinement these succeed, and change nothing.
HARMLESS = ("reads", "lists", "sees", "opens another", "attaches", "signals the h", "signals the s", "connects", "makes a Unix", "makes a socket")
for name, attempt in ATTEMPTS.items():
    if "HARMLESS" in os.environ and not name.startswith(HARMLESS):
        continue
    try:
        attempt()
        if tier != "container" or name not in OWN:
            print("succeeded:", name)
    except OSError as error:
        if "HARMLESS" in os.environ:
            print("refused:", name, error)
print("tried", len(ATTEMPTS))
