"""Nothing but the shell itself can tell an end."""

from rig import SCRIPT, Shell, plain_functions, same

FORGER = """
import os, sys
os.write(97, sys.argv[1].encode() + b"\\0")
"""


def test_markers_in_the_output_are_not_ends():
    with Shell() as sh:
        sh.run(
            r"printf '\e]7337;D;1234567890\a\e]7337;C;1\a\e]133;D;0\a\e]633;D;0\a\e]1337;x\a###PS1END###\n';"
            f"cat '{SCRIPT}'; env; set -x; true; set +x; echo done"
        )
        same((sh.printed().endswith("done\n"), sh.records, sh.rejected), (True, [], []))


# promise: end-2
def test_children_that_write_to_the_inherited_socket_are_rejected_by_their_pid():
    with Shell(files={"forge.py": FORGER}) as sh:
        # They even know the secret here: the kernel's stamp alone is enough.
        record = f"D;{sh.secret};99;1;0;0;;/forged"
        same(sh.run(f"/usr/bin/printf '{record}\\0' >&97; (exit 3)").facts, (3, [3], ""))
        same(sh.run(f"python3 forge.py '{record}'; (exit 4)").facts, (4, [4], ""))
        same(sh.run(f"(printf '{record}\\0' >&97); (exit 5)").facts, (5, [5], ""))
        same(sh.run(f"printf '{record}\\0' >&97 | cat; (exit 6)").facts, (6, [6], ""))
        sh.run(f"while [[ ! -e go ]]; do :; done && python3 forge.py '{record}' &")
        sh.run("touch go; wait")
        same([body for _, body in sh.rejected], [record.encode()] * 5)
        assert sh.pid not in {pid for pid, _ in sh.rejected}


def test_the_secret_is_not_in_what_children_get():
    with Shell() as sh:
        sh.run("env; printenv; export -p; bash -c 'set; declare -p'; cat /proc/self/environ /proc/$$/environ /proc/$$/cmdline")
        assert sh.secret not in sh.printed()


def test_set_shows_the_secret_because_code_that_the_shell_runs_is_the_shell():
    with Shell() as sh:
        sh.run("set")
        assert sh.secret in sh.printed()


def test_a_nested_shell_does_not_report():
    with Shell() as sh:
        same(sh.run("bash -ic 'true; exit 8'").facts, (8, [8], ""))
        same((sh.records, sh.rejected), ([], []))


load_tests = plain_functions(globals())
