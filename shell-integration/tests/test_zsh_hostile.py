"""zsh: what users, their files and their commands do to a shell; each time the ends stay right and the user's things work."""

import os
import signal
import termios

from rig import Zsh, same
from shells import survives

OPTIONS = """
    nounset shwordsplit ksharrays kshglob ksharrays nonomatch nullglob cshnullglob noglob globsubst globassign cshjunkiequotes
    printexitvalue errreturn noaliases rcexpandparam rcquotes ignorebraces ignoreclosebraces posixbuiltins posixaliases
    posixidentifiers posixstrings posixtraps posixjobs posixcd posixargzero posixregex noshortloops interactivecomments nobanghist
    cshjunkiehistory histverify histignorespace histnostore sharehistory nopromptsp nopromptcr promptsubst promptbang
    warncreateglobal warnnestedvar allexport localtraps localoptions nofunctionargzero forcefloat octalzeroes cbases cprecedences
    noclobber noequals nomultibyte nomultios nonotify nobgnice nohup nocheckjobs nomonitor autocd autopushd cdablevars chaselinks
    correct correctall completealiases extendedglob globdots kshtypeset kshoptionprint pathdirs noevallineno typesetsilent
    nodebugbeforecmd singlelinezle vi rmstarsilent verbose noprompt noprompt transientrprompt ignoreeof nobeep sunkeyboardhack
    continueonerror aliasfuncdef bashrematch bashautolist braceccl combiningchars cshnullcmd dvorak flowcontrol globalexport hashcmds
    incappendhistory longlistjobs magicequalsubst markdirs nobareglobqual overstrike printeightbit pushdminus shfileexpansion
    shglob shnullcmd shoptionletters trapsasync noglobalrcs norcs
""".split()


def test_options_that_break_careless_scripts():
    for option in dict.fromkeys(OPTIONS):
        if option not in ("printexitvalue", "errreturn", "verbose"):
            same((option, survives(Zsh, f"setopt {option}")), (option, "fine\n"))


def test_functions_of_the_user_handle_an_interrupt_and_the_exit():
    with Zsh() as sh:
        sh.run("TRAPINT() { echo int; return $((128 + $1)); }")
        sh.start("echo on; sleep 60; echo after")
        sh.sees(b"on\r\n")
        os.killpg(sh.foreground("sleep"), signal.SIGINT)
        same(sh.done().exit, 130)
        same(sh.run("false").facts, (1, [1], ""))
        sh.run("TRAPEXIT() { echo bye; }")
        same(sh.prints("echo a"), "a\n")


def test_commands_work_in_emulations_of_other_shells():
    for mode in "sh", "ksh", "csh", "-R sh", "-R ksh", "-R csh":
        same((mode, survives(Zsh, f"emulate {mode}")), (mode, "fine\n"))


def test_variables_aliases_and_reserved_words_of_the_users_change_nothing():
    for command in (
        "IFS=x7",
        "IFS=",
        "unset IFS",
        "LC_ALL=C",
        "RANDOM=1",
        "unset RANDOM",
        "unset HOME",
        "alias eval=no builtin=no print=no local=no typeset=no",
        "functions() { :; }; print() { :; }; zle() { :; }; bindkey() { :; }",
        "HISTCHARS='/#%'",
        "HISTSIZE=0",
        "KEYTIMEOUT=1",
        "FPATH=; fpath=()",
        "TMPPREFIX=/nowhere/x",
        "path=()",
        "READNULLCMD=false NULLCMD=false",
        "PS1= PS2= PROMPT_EOL_MARK=",
        "unset TERM",
        "TERM=nosuch 2>/dev/null",
        "POSTEDIT=edit",
        "ZDOTDIR=/nowhere",
        "typeset -i nonce=1 code=1 line=1 end=1; typeset -A staged; typeset -r first=1 parsed=1",
        "typeset -r nonce=1 code=1 line=1 staged=1 said=1 pipe=1 old=1 REPLY=1; typeset -i reply=3 MATCH=1",
    ):
        same((command, survives(Zsh, command)), (command, "fine\n"))


def test_errreturn_ends_the_text_and_says_so():
    with Zsh() as sh:
        sh.run("setopt errreturn")
        same(sh.run("false").facts, (1, [1], "n"))
        same(sh.run("true").facts, (0, [0], ""))
        same(sh.type("false").facts, (1, [1], ""))


def test_printexitvalue_prints_the_users_values():
    with Zsh() as sh:
        sh.run("setopt printexitvalue")
        same(sh.run("(exit 3)").facts, (3, [3], ""))
        same(sh.printed(), "zsh: exit 3     ( exit 3; )\n")
        same(sh.run("false").facts, (1, [1], ""))


def test_ends_stay_right_with_a_hook_list_that_a_startup_file_replaces_or_locks():
    with Zsh(zshrc="precmd_functions=(mine); mine() { :; }; zshaddhistory_functions=(mine)") as sh:
        same(sh.first.facts, (0, [0], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))
        sh.run("echo staged")
        same(sh.prints("fc -ln 1"), "(exit 5)\n")
    with Zsh(zshrc="readonly precmd_functions=() zshaddhistory_functions=()") as sh:
        same(sh.first.flags, "l")
        same(sh.run("(exit 7)").facts, (7, [7], ""))
        same(sh.run("fi").facts, (1, [1], "n"))
        same(sh.prints("echo fine"), "fine\n")


def test_a_line_behind_an_interrupted_hook_reports_its_end():
    with Zsh(zshrc="precmd() { [[ -z $cut ]] || { cut=; kill -INT $$; }; }") as sh:
        same(sh.run("cut=1; (exit 3)").facts, (3, [3], ""))
        same(sh.type("(exit 5)").facts, (5, [5], ""))
        same(sh.run("(exit 6)").facts, (6, [6], ""))


def test_hooks_that_the_user_runs_end_nothing():
    zshrc = """
    all() { local f; for f in $precmd_functions; do $f; done; }
    widget() { all; zle reset-prompt; print -n seen; }; zle -N widget; bindkey '^X^W' widget
    """
    with Zsh(zshrc=zshrc) as sh:
        same(sh.run("all; (exit 4)").facts, (4, [4], ""))
        same(sh.type("all; (exit 5)").facts, (5, [5], ""))
        sh.at_prompt()
        sh.keys(b"\x18\x17")
        sh.sees(b"seen")
        same(sh.records, [])
        same(sh.run("(exit 6)").facts, (6, [6], ""))


def test_closed_descriptors_and_missing_builtins_spoil_no_end():
    for command in (
        "exec 0</dev/null",
        "exec 0<&- 1>&- 2>&-; exec 0</dev/tty 1>/dev/tty 2>/dev/tty",
        "zmodload -u zsh/system",
        "disable syswrite",
        "syswrite() { :; }; sysread() { :; }; print() { :; }",
        ":() { return 3 }",
        "typeset -r code=1 pipe=2 record=3 nonce=4 text=5",
        "bindkey -d",
        "bindkey -r '^[^_'; bindkey -r '^[^^'",
        "bindkey -N mine emacs; bindkey -M mine -r '^[^_'; bindkey -A mine main",
        "bindkey -v; bindkey -M vicmd -r '^[^_'",
    ):
        same((command, survives(Zsh, command)), (command, "fine\n"))


def test_no_descriptor_of_the_users_is_written_to_by_us():
    with Zsh() as sh:
        # zsh keeps its own open.
        sh.run("for fd in {3..60}; do exec {fd}>&-; done 2>/dev/null")
        sh.run("for n in {1..20}; do exec {fd}>>file; done")
        same(sh.run("(exit 7)").facts, (7, [7], ""))
        same(sh.prints("wc -c <file"), "0\n")


def test_a_shell_that_replaces_ours_is_just_the_users():
    with Zsh(zshrc="PS1='again> '") as sh:
        sh.start("exec zsh")
        sh.sees(b"again> ")
        sh.at_prompt()
        sh.keys(b"echo $+functions[__ptyd_hook] $ZDOTDIR.\r")
        sh.sees(b"\n0 .\r\n")
        same(sh.records, [])


def test_without_the_module_that_reads_descriptors_texts_arrive():
    with Zsh() as sh:
        sh.run("zmodload -u zsh/system; zmodload -a nothing b:sysread")
        for text in "x", "x" * 5000, "äöü\n€":
            same(sh.prints(f"print -r -- '{text}'"), text + "\n")


def test_a_resize_while_the_editor_waits_spoils_no_command():
    with Zsh() as sh:
        sh.run("TRAPWINCH() { :; }")
        sh.reads_keys()
        termios.tcsetwinsize(sh.leader, (10, 20))
        same(sh.prints("echo fine"), "fine\n")
