"""Programs that let one choose, driven by keys to the choice: fzf, dialog, whiptail, git's hunks, menus of one's own.

The choice is looked at where a script would find it: printed, in a file, in git's index, in the exit code.
"""

import os
import subprocess

import pytest
from mcp_client import PTYD, REPOSITORY
from fullscreen import lines_of, needs, played
from transcripts import toolchain

pytestmark = pytest.mark.one_server

COLOURS = "printf 'red\\ngreen\\nblue\\ngrey\\n' > colours"
MENU = "--menu pick 10 30 3 a one b two c three"
# A menu as people write them: it asks for application cursor keys and hides nothing.
CURSES = '''\
import curses, sys
def menu(screen):
    at = 0
    while True:
        for row, name in enumerate(("red", "green", "blue")):
            screen.addstr(row + 1, 2, name, curses.A_REVERSE if row == at else 0)
        screen.move(at + 1, 2)
        match screen.getch():
            case curses.KEY_DOWN: at = min(at + 1, 2)
            case curses.KEY_UP: at = max(at - 1, 0)
            case curses.KEY_F2: curses.beep()
            case 10: return at
            case 27: return 9
sys.exit(curses.wrapper(menu))
'''


@needs("fzf")
# promise: screen-5
async def test_fzf_filters_picks_and_prints_the_pick(workspace):
    async with played(workspace, "fzf < colours", "^  4/4", before=COLOURS) as fzf:
        await fzf.type("gr", until="^> grey$(.|\\n)*^  2/4", cursor="row 12 column 5")
        await fzf.press("Up", until="^> green$(.|\\n)*^  2/4")
        picked = await fzf.leave("Enter", paint="2/4")
    assert picked.text == "green\n[exit 0]"


@needs("whiptail")
# promise: screen-5
async def test_whiptail_gives_the_item_that_arrows_go_to(workspace):
    async with played(workspace, f"whiptail {MENU} 2> picked", "c three", "hidden row 4 column 37") as whiptail:
        # The cursor is on the item although it is hidden.
        await whiptail.press("Down", until="b two", cursor="hidden row 5 column 37")
        await whiptail.press("Down", until="b two", cursor="hidden row 6 column 37")
        await whiptail.press("Up", until="b two", cursor="hidden row 5 column 37")
        await whiptail.leave("Enter", paint="<Cancel>")
    assert lines_of(workspace.project / "picked") == ["b"]


@needs("whiptail")
# promise: screen-6
async def test_an_entry_that_is_chosen_by_colour_is_a_change_of_its_row(workspace):
    async with played(workspace, f"whiptail {MENU} 2> picked", "c three") as whiptail:
        before = await whiptail.session.read(view="screen")
        moved = await whiptail.session.press("Down", wait_for="c three", timeout=60)
        rows = before.output.splitlines()
        # Their text is the same, so the answer names them by showing them.
        assert moved.output.splitlines() == [f"{row}: {rows[row - 1]}".rstrip() for row in (4, 5)]


@needs("dialog")
# promise: screen-5
async def test_dialog_gives_the_item_that_arrows_go_to(workspace):
    async with played(workspace, f"dialog --keep-tite {MENU} 2> picked", "c  three", "row 9 column 32") as dialog:
        await dialog.session.press("Down")
        await dialog.leave("Enter", paint="<Cancel>")
    assert lines_of(workspace.project / "picked") == ["b"]


@needs("git")
# promise: screen-5
async def test_git_stages_the_hunks_that_are_said_yes_to(workspace):
    session = await workspace.session()
    made = await session.run(
        "git init -q . && git config user.email a@b && git config user.name n && seq 1 30 > f && git add f"
        " && git commit -qm one && sed -i -e 's/^2$/two/' -e 's/^15$/fifteen/' -e 's/^29$/twentynine/' f"
    )
    assert made.exit == 0, made.text
    asked = await session.run("git add -p")
    assert (asked.wants, asked.last_line[:31]) == ("input", "(1/3) Stage this hunk [y,n,q,a,")
    refused = await session.run("echo no")
    assert (refused.is_error, "busy" in refused.text) == (True, True)
    wanted = {1: "y", 2: "n", 3: "y"}
    answers = [{"wait_for": rf"^\({n}/3\) .*\? $", "input": f"{answer}\r"} for n, answer in wanted.items()]
    done = await session.agent.call("send_input_to_terminal", session_id=session.id, steps=answers)
    assert done.exit == 0, done.text
    staged = await session.run("git diff --cached -U0 | grep '^[+-][^+-]'")
    assert staged.output.splitlines() == ["-2", "+two", "-29", "+twentynine"]
    left = await session.run("git diff -U0 | grep '^[+-][^+-]'; (exit 7)")
    assert (left.output.splitlines(), left.exit) == (["-15", "+fifteen"], 7)


# promise: screen-5
async def test_a_menu_of_curses_takes_arrows_and_ends_with_the_choice(workspace):
    (workspace.project / "menu.py").write_text(CURSES)
    async with played(workspace, "python3 menu.py", "^  blue$", "row 2 column 3") as menu:
        await menu.press("Down", "Down", until="^  blue$", cursor="row 4 column 3")
        chosen = await menu.press("Up", until="^  blue$", cursor="row 3 column 3")
        assert chosen.fact("inverse") == 'row 3 "green"'
        await menu.leave("F2", "Enter", exit=1, paint="^  blue$")


@pytest.fixture
def picker(workspace):
    """A program with ratatui, built once into the folder of everything that is built."""
    folder = PTYD.parents[1] / "ratatui"
    manifest = REPOSITORY / "crates/e2e/mcp/ratatui/Cargo.toml"
    build = ["cargo", "build", "--quiet", "--locked", "--manifest-path", manifest]
    rust = toolchain(workspace) | {"CARGO_TARGET_DIR": str(folder), "CARGO_NET_OFFLINE": "false"}
    subprocess.run(build, env=os.environ | rust, check=True)
    return folder / "debug/picker"


@needs("cargo")
# promise: screen-4, screen-5
async def test_a_list_of_ratatui_takes_arrows_while_it_has_mouse_and_paste_modes(workspace, picker):
    async with played(workspace, str(picker), "^  blue$") as program:
        journal = workspace.journal(program.session.id)
        # Bracketed paste and the mouse, as the terminal was asked for them.
        assert (b"\x1b[?2004h" in journal, b"\x1b[?1006h" in journal) == (True, True)
        await program.press("Down", "S-Down", until="^> green$")
        await program.press("End", until="^> blue$")
        await program.press("PageUp", "M-x", until="^> red$(.|\\n)*^last: Alt-x$")
        await program.press("C-Right", until="^last: Control-Right$")
        await program.type("two\nlines", until=r'^last: "two\\rlines"$', paste=True)
        await program.press("Click:3,1", until="^> blue$")
        await program.press("Up*2", until="^> red$")
        await program.leave("Down", "Enter", exit=1, paint="^  green$")
        picked = await program.session.read(command_id=program.command)
    assert picked.output == "picked green"
