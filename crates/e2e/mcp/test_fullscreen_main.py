"""Programs that paint the main screen: full-screen without the alternate one, and their last picture stays as text."""

import os
import signal
from pathlib import Path

import pytest
from fullscreen import needs, played

pytestmark = pytest.mark.one_server

@needs("top")
# promise: screen-2, screen-3
async def test_top_on_the_main_screen_is_a_screen_while_it_runs_and_text_when_it_has_ended(workspace):
    async with played(workspace, "echo before; top -d 99", "COMMAND") as top:
        # Its paint is reported once, as the screen; earlier output is text.
        fields = await top.session.press("f", wait_for="Fields Management", timeout=60)
        assert (len(fields.output.splitlines()) <= 12, "full-screen" in fields.facts) == (True, True), fields.text
        await top.press("q", until="COMMAND")
        # A page that is longer than the screen scrolls: it is reported whole.
        help = await top.session.press("h", wait_for="to continue", timeout=60)
        assert (help.output.splitlines()[0][:8], "full-screen" in help.facts) == ("Help for", False), help.text
        again = await top.session.press("q", wait_for="COMMAND", timeout=60)
        assert "full-screen" in again.facts, again.text
        ended = await top.session.press("q", timeout=60)
        assert (ended.exit, ended.output.startswith("\n")) == (0, False), ended.text
        transcript = await top.session.read(command_id=top.command)
        assert transcript.output.startswith("before\ntop - "), transcript.text
        after = await top.session.run("echo after; (exit 7)")
        assert (after.output, after.exit, "full-screen" in after.facts) == ("after", 7, False)


@needs("top")
# promise: screen-2, screen-3
async def test_a_painter_that_was_killed_in_a_shell_inside_leaves_a_shell_and_no_screen(workspace):
    session = await workspace.session(dimensions={"cols": 80, "rows": 12})
    await session.run("bash --norc", timeout=60)
    shown = await session.type("top -d 99 & fg\n", wait_for="COMMAND", timeout=60)
    assert "full-screen" in shown.facts, shown.text
    top = next(p for p in workspace.processes() if Path(f"/proc/{p}/comm").read_text() == "top\n")
    os.kill(top, signal.SIGKILL)
    await session.until(lambda summary: summary["foreground"] == "input_wanted")
    # The output there is text again, to its last line, and a wait is not a look at a still screen.
    many = await session.type("seq 300; sleep 1.5; echo done$((1+1))\n", wait_for="done2", timeout=60)
    assert many.fact("matched") is not None, many.text
    assert [str(n) for n in range(1, 301)] == [line for line in many.output.splitlines() if line.isdigit()]


@pytest.mark.parametrize("command", ["clear", "printf '\\033[H\\033[2Jhello'", "seq 3 | less -XF", "tput cup 3 3"])
# promise: screen-2, screen-3
async def test_a_program_that_only_clears_or_places_is_not_full_screen(workspace, command):
    session = await workspace.session()
    done = await session.run(f"{command}; read -r line", timeout=60)
    assert ("wants input" in done.facts, "full-screen" in done.facts) == (True, False), done.text
    await session.type("x\n")
