"""Nothing but the shell itself can tell an end."""

from rig import same
from shells import ALL, Bash, Fish, Zsh, in_each

FORGER = """
import os, sys
os.write(97, sys.argv[1].encode() + b"\\0")
"""


@in_each(*ALL)
def test_markers_in_the_output_end_nothing(shell, words):
    with shell() as sh:
        traced = "" if shell is Fish else "set -x; true; set +x;"
        sh.run(
            r"printf '\e]7337;D;1234567890\a\e]7337;C;1\a\e]133;D;0\a\e]633;D;0\a\e]1337;x\a###PS1END###\n';"
            f"cat '{words.script}'; env; {traced} echo done"
        )
        same((sh.printed().endswith("done\n"), sh.records, sh.rejected), (True, [], []))


@in_each(*ALL)
# promise: end-2
def test_children_that_write_to_the_inherited_socket_are_rejected_by_their_pid(shell, words):
    with shell(files={"forge.py": FORGER}) as sh:
        # They even know the secret here: the kernel's stamp alone is enough.
        record = f"D;{sh.secret};99;1;0;0;;/forged"
        forgers = [f"/usr/bin/printf '{record}\\0' >&97", f"python3 forge.py '{record}'"]
        forgers += [] if shell is Fish else [f"(printf '{record}\\0' >&97)", f"printf '{record}\\0' >&97 | cat"]
        for code, forger in enumerate(forgers, 3):
            same((forger, sh.run(f"{forger}; {words.exit.format(code)}").facts), (forger, (code, [code], "")))
        if shell is not Fish:
            sh.run(f"{{ while [[ ! -e go ]]; do :; done; python3 forge.py '{record}'; }} &")
            sh.run("touch go; wait")
        same([body for _, body in sh.rejected], [record.encode()] * (2 if shell is Fish else 5))
        assert sh.pid not in {pid for pid, _ in sh.rejected}


@in_each(Bash, Zsh)
def test_records_of_the_shell_without_the_secret_are_rejected(shell, _words):
    with shell() as sh:
        same(sh.run("builtin printf 'D;guess;99;1;0;0;;/forged\\0' >&97; (exit 3)").facts, (3, [3], ""))
        same(sh.rejected, [(sh.pid, b"D;guess;99;1;0;0;;/forged")])


@in_each(Zsh)
def test_a_subshell_that_runs_our_functions_is_rejected(shell, _words):
    with shell() as sh:
        same(sh.run("(__ptyd_tell); (__ptyd_cut); : $(__ptyd_tell); __ptyd_tell &; wait; (exit 3)").facts, (3, [3], ""))
        assert sh.pid not in {pid for pid, _ in sh.rejected}
        same(len(sh.rejected), 4)


@in_each(*ALL)
def test_children_do_not_inherit_the_secret(shell, words):
    inner = {Bash: "printenv; export -p; bash -c 'set; declare -p'", Zsh: "printenv; export -p; zsh -c 'set; typeset -p'", Fish: "set -x"}
    with shell() as sh:
        for before in "true", *(["setopt allexport; true"] if shell is Zsh else []):
            sh.run(before)
            sh.run(f"env; {inner[shell]}; cat /proc/self/environ /proc/{words.pid}/environ /proc/{words.pid}/cmdline")
            assert sh.secret not in sh.printed()


@in_each(Bash, Zsh)
def test_allexport_does_not_export_anything_of_ptyd(shell, _words):
    with shell() as sh:
        sh.run("set -a")
        sh.run("false | true")
        sh.run("fi")
        sh.type("true")
        same(sh.prints("x=1; env >e; grep -c __ptyd e || grep '^x=' e"), "0\nx=1\n")


@in_each(Bash)
def test_set_shows_the_secret_because_code_that_the_shell_runs_is_the_shell(shell, _words):
    with shell() as sh:
        sh.run("set")
        assert sh.secret in sh.printed()


@in_each(Bash)
def test_a_nested_shell_does_not_report(shell, _words):
    with shell() as sh:
        same(sh.run("bash -ic 'true; exit 8'").facts, (8, [8], ""))
        same((sh.records, sh.rejected), ([], []))


@in_each(Zsh)
def test_nonces_cannot_be_predicted(shell, _words):
    with shell() as sh:
        nonces = []
        for _ in range(3):
            sh.run("RANDOM=1; SECONDS=0")
            nonces += [sh.run("true").nonce, sh.type("true").nonce]
        same(len(set(nonces)), 6)
        assert all(n.isdigit() for n in nonces), nonces
