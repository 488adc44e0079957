"""A login shell reads what bash's own would read, and is in the state that bash's own would be in."""

import os
import pty
import select
import tempfile
import time

from rig import BASH, DEADLINE_SECONDS, Shell, plain_functions, same

STATE = "shopt -p; set +o; echo HISTFILE=$HISTFILE PS4=$PS4 ENV=${ENV-unset} PTYD_ENV=${PTYD_ENV-unset} POSIX=${POSIXLY_CORRECT-unset}"


def test_a_login_shell_runs_the_first_of_the_users_profiles():
    names = ".bash_profile", ".bash_login", ".profile"
    for first in range(3):
        files = {name: f"ran=${{ran}}{name}; shopt -q login_shell && ran=$ran:login" for name in names[first:]}
        with Shell(login=True, files=files) as sh:
            same(sh.prints("echo $ran"), f"{names[first]}:login\n")
    with Shell(login=True, bashrc="ran=rc") as sh:
        same(sh.prints("echo ${ran-none}"), "none\n")


def test_a_login_shell_has_true_ends_and_keeps_env():
    with Shell(login=True, env={"ENV": "/some/file"}) as sh:
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        same(sh.prints("echo $ENV ${PTYD_ENV-unset}; printenv ENV"), "/some/file unset\n/some/file\n")


def test_a_login_shell_is_in_the_state_of_an_ordinary_one():
    for login in True, False:
        with Shell(login=login) as sh:
            ours = sh.prints(STATE)
            same(_ordinary(login, sh.home), ours)


def _ordinary(login, home):
    """The answer of a plain bash to the same question."""
    answer = tempfile.mktemp(prefix="ptyd-bash-")
    pid, leader = pty.fork()
    if pid == 0:
        os.chdir(home)
        env = {"HOME": str(home), "PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8", "USER": "tester"}
        os.execvpe(BASH, ["bash", "-l"] if login else ["bash"], env)
    os.write(leader, f"( {STATE} ) >{answer}; exit\r".encode())
    end = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < end and select.select([leader], [], [], end - time.monotonic())[0]:
        try:
            os.read(leader, 65536)
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(leader)
    with open(answer) as file:
        text = file.read()
    os.unlink(answer)
    return text


load_tests = plain_functions(globals())
