"""The answer while a program paints: no paint as text, and why its wait is over."""

import pytest
from fullscreen import needs, played

pytestmark = pytest.mark.one_server

MENU = "--menu pick 10 30 3 a one b two c three"
# Shows a screen and is quiet, while another process reads the terminal: as tmux does.
QUIET = "printf '\\e[?1049h\\e[Hpainted'; sleep 3600"


@pytest.mark.parametrize(
    "command, until, keys",
    [
        pytest.param("vim -u NONE -N f", "^~$", ["ihi<Esc>:wq<Enter>"], marks=needs("vim")),
        pytest.param(f"whiptail {MENU} 2> picked", "c three", ["Down", "Enter"], marks=needs("whiptail")),
    ],
)
# promise: screen-3
async def test_the_answer_in_which_a_program_ends_contains_no_paint(workspace, command, until, keys):
    async with played(workspace, command, until) as program:
        ended = await program.session.to_the_end(await program.session.press(*keys, timeout=60), program.command)
        assert (ended.exit, ended.output) == (0, "")


# promise: screen-1
async def test_a_screen_call_returns_at_once_if_the_pattern_is_already_shown(workspace):
    session = await workspace.session()
    begun = await session.run(QUIET, wait_for="painted", timeout=60)
    assert "full-screen" in begun.facts
    looked = await session.read(view="screen", wait_for="painted", timeout=60)
    assert (looked.fact("matched"), looked.is_timed_out) == ('"painted"', False), looked.text


# promise: screen-1
async def test_a_quiet_screen_whose_keys_another_process_reads_is_answered(workspace):
    session = await workspace.session()
    shown = await session.run(QUIET, timeout=60)
    assert ("full-screen" in shown.facts, shown.is_running, shown.is_timed_out) == (True, True, False), shown.text


# promise: screen-1
async def test_a_program_that_starts_anew_is_shown_whole(workspace):
    """Its screen is compared with none of a program before it."""
    (workspace.project / "a").write_text("".join(f"{n}\n" for n in range(1, 61)))
    (workspace.project / "b").write_text("".join(f"{n if n != 7 else 'XX'}\n" for n in range(1, 61)))
    for name in ("a", "a", "b"):
        answer = await workspace.terminal(f"less {name}", timeout=60)
        assert answer.output.splitlines()[:3] == ["1", "2", "3"], answer.text
        assert "only changed rows" not in answer.facts and "no row changed" not in answer.facts, answer.text
        await workspace.agent.at(answer.session_id or workspace_session).press("q")
        workspace_session = answer.session_id or workspace_session
