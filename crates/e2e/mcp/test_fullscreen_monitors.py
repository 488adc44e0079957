"""Programs that paint by themselves, driven by keys to what they do: htop, and tmux, a terminal in the terminal.

Where one is told to kill, it is shown one process of the test's own and no other.
"""

import pytest

from fullscreen import needs, played

pytestmark = pytest.mark.one_server

# A process to find, which ends with the session at the latest.
NEEDLE = "exec -a ptyd-needle sleep 600 & pid=$!"


@needs("htop")
# promise: screen-5
async def test_htop_kills_the_processes_that_its_filter_shows(workspace):
    # It looks at processes every 10 s, and at keys at once.
    async with played(workspace, "htop -d 100 -p $pid,$$", "^F1Help .*F10Quit", before=NEEDLE) as htop:
        await htop.press("F4", until="Filter:")
        await htop.type("ptyd-nee", until="Filter: ptyd-nee$")
        # Only this one is between the head and the foot of the table.
        await htop.press("Enter", until=r"Command$\n.* ptyd-needle 600$\s+^F1Help")
        await htop.press("F9", until="^Send signal:(.|\\n)*^15 SIGTERM")
        await htop.press("Enter", until="^F1Help")
        await htop.leave("F10", paint="F10Quit")
        assert (await htop.session.run("wait $pid")).exit == 143


@needs("htop")
# promise: screen-5
async def test_htop_sorts_by_the_column_that_is_picked_and_survives_a_stop(workspace):
    async with played(workspace, "htop -d 100", "^F1Help .*F10Quit") as htop:
        await htop.press("F6", until="^Sort by(.|\\n)*^PERCENT_CPU")
        await htop.press("Home", until="^Sort by.*\\nPID +")
        # The arrow is at the column, and the process with the first number is on top.
        await htop.press("Enter", until="^ *PID△USER .*\\n +1 ")
        stopped = await htop.session.press("C-z", timeout=60)
        assert (stopped.exit, stopped.fact("TSTP")) == (148, None), stopped.text
        assert "F10Quit" not in stopped.output
        again = await htop.session.run("fg", wait_for="F10Quit", timeout=60)
        assert "full-screen" in again.facts
        htop.command = again.fact("command")
        await htop.leave("q", paint="F10Quit")


@needs("tmux")
# promise: screen-5
async def test_tmux_splits_runs_a_command_in_a_pane_and_is_left(workspace):
    own = {"TMUX_TMPDIR": str(workspace.root / "run"), "PS1": "pane> "}
    start = "tmux -f /dev/null new 'exec sh'"
    async with played(workspace, start, r"^\[0\] 0:\w+\*", "row 1 column 3", **own) as tmux:
        await tmux.press("C-b", "%", until="│")
        await tmux.type("echo in-pane-$((6*7))\r", until="│in-pane-42 *$")
        await tmux.press("C-b", "Left", until="│", cursor="row 1 column 3")
        await tmux.type("stty size; tty\r", until="^(10|11) 40 *│")
        left = await tmux.leave("C-b", "d", paint="│")
        assert left.last_line == "[detached (from session 0)]"
        panes = await tmux.session.run("tmux list-panes -F '#{pane_index} #{pane_width}'")
        assert panes.output.splitlines() == ["0 40", "1 39"]
        again = await tmux.session.run("tmux attach", wait_for="│in-pane-42", timeout=60)
        assert "full-screen" in again.facts
        tmux.command = again.fact("command")
        await tmux.leave("C-b", "d", paint="│")
        assert (await tmux.session.run("tmux kill-server")).exit == 0
