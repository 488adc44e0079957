"""Users, their files and their commands disturb a fish; each time the ends stay right and the user's things work."""

import os
import signal
import tempfile
from pathlib import Path

from rig import FISH, FISH_SCRIPT as SCRIPT, Fish as Shell, quoted, same
from shells import survives


def test_settings_that_break_careless_scripts_change_nothing():
    for setting in (
        "set -g IFS",
        "set -g IFS x7",
        "set -g fish_trace 1; set -e fish_trace",
        "set -gx LC_ALL C",
        "set -e PATH",
        "set -g fish_features all",
        "set -g fish_autosuggestion_enabled 0",
        "set -g fish_escape_delay_ms 10",
        "set -g TERM dumb",
        "set -g id 5; set -g text x; set -g nonce y; set -g statuses 1 2; set -g line z; set -g code 3",
        "function printf; end; function commandline; end; function bind; end; function echo; end",
        "function fish_prompt; end; function fish_right_prompt; echo right; end; function fish_mode_prompt; echo m; end",
        "function fish_prompt; false; commandline -f repaint; end",
        "function fish_title; echo title; false; end",
        "function pre --on-event fish_preexec; false; end; function post --on-event fish_postexec; sh -c 'exit 9'; end",
        "function pr --on-event fish_prompt; echo prompt; sh -c 'exit 9'; end",
        "function fish_command_not_found; sh -c 'exit 8'; end",
        "fish_vi_key_bindings",
        "fish_hybrid_key_bindings",
        "bind --erase --all",
        "bind --erase --all; bind --erase --all --preset; bind '' self-insert; bind \\r execute",
        "bind -M default \\e\\x1e true; bind \\e\\x1f true; bind -e \\e\\x1e; bind -e \\e\\x1f",
        "set -g fish_key_bindings fish_vi_key_bindings",
        "set -g fish_private_mode 1",
        "set -g fish_history ''",
        "set -g fish_read_limit 50",
        "status job-control none",
        "status job-control full",
        "cd /; cd -",
    ):
        same((setting, survives(Shell, setting)), (setting, "fine\n"))


def test_the_users_key_bindings_stay():
    config = "function fish_user_key_bindings; bind --erase --all; bind \\cx 'echo bound; commandline -f repaint'; end"
    with Shell(config=config) as sh:
        sh.run("true")
        sh.reads_keys()
        sh.keys(b"\x18")
        sh.sees(b"bound")
        sh.reads_keys()
        same(sh.prints("echo fine"), "fine\n")


def test_bindings_that_are_changed_at_the_prompt_come_back():
    with Shell() as sh:
        sh.type("bind --erase --all")
        same(sh.prints("echo fine"), "fine\n")
        sh.type("fish_vi_key_bindings")
        same(sh.prints("echo fine"), "fine\n")


def test_a_handler_that_a_person_erased_comes_back_with_the_report_key():
    names = "take tell begin finish preexec postexec prompt report bind refuse is_running stay pass interrupt"
    for name in names.split():
        with Shell() as sh:
            sh.reads_keys()
            sh.keys(b"functions -e __ptyd_" + name.encode() + b"\r")
            sh.sees(b"\x1b[?2004l")
            sh.reads_keys()
            sh.report()
            sh.until("answer", lambda: any(kind == "D" and b";l;" in body for kind, body in sh.records))
            sh.records.clear()
            sh._seen = len(sh.output)
            same((name, sh.run("false").facts), (name, (1, [1], "")))


def test_an_interrupt_at_the_prompt_is_reported_and_leaves_the_shell_ready():
    with Shell() as sh:
        for keys in b"half\x03", b"\x03", b"if true\rhalf\x03":
            sh.reads_keys()
            sh.keys(keys)
            same((keys, sh.done().id), (keys, 0))
        sh.reads_keys()
        os.kill(sh.pid, signal.SIGINT)
        same(sh.done().id, 0)
        same(sh.prints("echo fine"), "fine\n")


def test_our_line_run_again_by_a_person_runs_nothing():
    with Shell() as sh:
        sh.run("echo x >>got")
        sh.reads_keys()
        sh.keys(b"\x1b[A")
        sh.sees(b"__ptyd_begin")
        sh.keys(b"\r")
        same((sh.done().id, (sh.home / "got").read_text()), (0, "x\n"))
        same(sh.prints("echo fine"), "fine\n")


def test_the_prompt_of_a_breakpoint_is_not_an_end():
    with Shell() as sh:
        sh.start("breakpoint; sh -c 'exit 4'")
        for name in b"one", b"two":
            sh.reads_keys()
            sh.keys(b"echo " + name + b"\r")
            sh.sees(name + b"\r\n")
        sh.reads_keys()
        sh.keys(b"exit\r")
        same((sh.done().facts, sh.records), ((4, [4], ""), []))
        same(sh.prints("echo fine"), "fine\n")


def test_a_nested_fish_with_our_script_does_not_report():
    with Shell() as sh:
        same(sh.run(f"{FISH} --no-config -c 'source {quoted(SCRIPT)}; functions -q __ptyd_tell'").facts, (1, [1], ""))


def test_odd_paths_of_the_script_and_the_command_file_work():
    text = SCRIPT.read_text()
    with tempfile.TemporaryDirectory(prefix="ptyd 'q\\ $x (y) *") as folder:
        script = Path(folder) / "it's\\ $here.fish"
        script.write_text(text)
        same(survives(Shell, script=script), "fine\n")
