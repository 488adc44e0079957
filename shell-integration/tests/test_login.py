"""A login shell reads what bash's own would read, and is in the state that bash's own would be in."""

from rig import BASH, Shell, ordinary, same

STATE = "shopt -p; set +o; echo HISTFILE=$HISTFILE PS4=$PS4 ENV=${ENV-unset} PTYD_ENV=${PTYD_ENV-unset} POSIX=${POSIXLY_CORRECT-unset}"


def test_a_login_shell_runs_the_first_of_the_users_profiles():
    names = ".bash_profile", ".bash_login", ".profile"
    for first in range(3):
        files = {name: f"ran=${{ran}}{name}; shopt -q login_shell && ran=$ran:login" for name in names[first:]}
        with Shell(login=True, files=files) as sh:
            same(sh.prints("echo $ran"), f"{names[first]}:login\n")
    with Shell(login=True, bashrc="ran=rc") as sh:
        same(sh.prints("echo ${ran-none}"), "none\n")


def test_a_login_shell_reports_true_ends_and_keeps_its_environment():
    with Shell(login=True, env={"ENV": "/some/file"}) as sh:
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        same(sh.prints("echo $ENV ${PTYD_ENV-unset}; printenv ENV"), "/some/file unset\n/some/file\n")


def test_a_login_shell_is_in_the_state_of_an_ordinary_one():
    for login in True, False:
        with Shell(login=login) as sh:
            same(sh.prints(STATE), ordinary([BASH, *["-l"] * login], f"( {STATE} )", sh.home))
