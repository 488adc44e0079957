"""zsh reads what it would have read without us, in that order and state, and only itself tells ends."""

import os
import tempfile

from rig import ZSH, ZSH_SCRIPT, Zsh, ordinary, same

NAMES = ".zshenv", ".zprofile", ".zshrc", ".zlogin"
STATE = "setopt; alias; typeset -p ZDOTDIR PTYD_ZDOTDIR HISTFILE PS4 PROMPT fpath path 2>&1; print -r -- $0 $ARGC; functions +; bindkey -L"


def startup_files(folder=""):
    return {folder + name: f"ran+=({name}:${{ZDOTDIR-unset}}); typeset v{name[1:]}=global; [[ -o login ]] && ran+=(l)" for name in NAMES}


def test_the_users_files_run_as_zsh_itself_runs_them():
    for login in True, False:
        with Zsh(login=login, files=startup_files()) as sh:
            wanted = [f"{name}:unset{' l' if login else ''}" for name in NAMES if login or name in (".zshenv", ".zshrc")]
            same(sh.prints("echo $ran; echo $vzshenv $vzshrc ${ZDOTDIR-unset} ${PTYD_ZDOTDIR-unset}; env | grep -c ZDOTDIR; :"),
                 " ".join(wanted) + "\nglobal global unset unset\n0\n")


def test_a_zdotdir_of_the_users_is_theirs():
    with Zsh(login=True, files={"dot": ""}, wait=False) as sh:
        home = sh.home
    for variable in "env", "zshenv":
        with tempfile.TemporaryDirectory() as folder:
            for name, text in startup_files().items():
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            kind = {"env": {"ZDOTDIR": folder}} if variable == "env" else {"files": {".zshenv": f"export ZDOTDIR={folder}"}}
            with Zsh(login=True, **kind) as sh:
                ran = [f"{name}:{folder} l" for name in NAMES if variable == "env" or name != ".zshenv"]
                same(sh.prints("echo $ran; printenv ZDOTDIR"), " ".join(ran) + f"\n{folder}\n")
    assert not home.exists()


def test_the_shell_of_a_user_without_startup_files_reads_none():
    with Zsh(files={".zshenv": "setopt norcs; early=1", ".zshrc": "late=1"}) as sh:
        same(sh.prints("echo $early ${late-none}"), "1 none\n")
    with Zsh(files=startup_files(), env={"PTYD_ZSH_CLEAN": "1"}) as sh:
        same(sh.prints("echo ${ran-none} ${PTYD_ZSH_CLEAN-unset}"), "none unset\n")
        same(sh.run("false | true").facts, (0, [1, 0], ""))


def test_the_script_can_be_read_at_a_prompt():
    with Zsh(wait=False, files=startup_files(), script=os.devnull) as sh:
        sh.reads_keys()
        sh.keys(f" . '{ZSH_SCRIPT}'\r".encode())
        same(sh.done().facts, (0, [0], ""))
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))
        same(sh.prints("echo ${ran-none}"), "none\n")
    # The same file, where nothing of the user's is read at all (NO_RCS in a global file).
    with Zsh(wait=False, files=startup_files(), options=["-f"]) as sh:
        sh.reads_keys()
        sh.keys(b" . $ZDOTDIR/.zshenv\r")
        same(sh.done().facts, (0, [0], ""))
        same(sh.prints("echo ${ran-none} ${ZDOTDIR-unset}; env | grep -c ZDOTDIR; :"), "none unset\n0\n")


def test_the_shell_is_in_the_state_of_an_ordinary_one():
    for login in True, False:
        with Zsh(login=login, files=startup_files()) as sh:
            ours = sh.prints(STATE)
            hidden = ("__ptyd", '"^[^', '"^G" send-break', '"^G" list-expand', "precmd_functions", "zshaddhistory_functions")
            got = [line for line in ours.splitlines() if not any(h in line for h in hidden)]
            wanted = [line for line in ordinary([ZSH, *["-l"] * login], f"{{ {STATE} }}", sh.home).splitlines() if not any(h in line for h in hidden)]
            same(got, wanted)


def test_the_script_is_read_once():
    with Zsh() as sh:
        same(sh.run(f". '{ZSH_SCRIPT}'").facts, (0, [0], ""))
        same(sh.run("false | true").facts, (0, [1, 0], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))
