"""What ptyd does not do yet for programs that paint, each with the shortest way to see it.

Every test here is expected to fail, strictly: who mends one takes the mark away and moves the test to its program.
"""

import pytest
from desk import within
from fullscreen import needs, played

MENU = "--menu pick 10 30 3 a one b two c three"
# Shows a screen and is quiet, while another process reads the terminal: as tmux does.
QUIET = "printf '\\e[?1049h\\e[Hpainted'; sleep 60"


@pytest.mark.xfail(strict=True, reason="an answer that begins inside the alternate screen takes its paint for text")
@pytest.mark.parametrize(
    "command, until, keys",
    [
        pytest.param("vim -u NONE -N f", "^~$", ["ihi<Esc>:wq<Enter>"], marks=needs("vim")),
        pytest.param(f"whiptail {MENU} 2> picked", "c three", ["Down", "Enter"], marks=needs("whiptail")),
    ],
)
async def test_the_answer_in_which_a_program_ends_has_none_of_its_paint(desk, command, until, keys):
    async with played(desk, command, until) as program:
        ended = await program.session.press(*keys, timeout=20)
        assert (ended.exit, ended.output) == (0, "")


@pytest.mark.xfail(strict=True, reason="a program is full-screen only in the alternate screen, which these do without")
@pytest.mark.parametrize(
    "command, until",
    [
        pytest.param("top -d 99", "COMMAND", marks=needs("top")),
        pytest.param(f"dialog {MENU} 2> picked", "<Cancel>", marks=needs("dialog")),
    ],
)
async def test_a_program_that_paints_the_main_screen_is_full_screen_too(desk, command, until):
    session = await desk.session(dimensions={"cols": 80, "rows": 12})
    shown = await session.run(command, wait_for=until, timeout=20)
    assert shown.fact("matched") is not None, shown.text
    assert "full-screen" in shown.facts


@needs("whiptail")
@pytest.mark.xfail(strict=True, reason="rows are compared by their text, and a choice may be shown by its colour alone")
async def test_an_entry_that_is_chosen_by_colour_is_a_change_of_its_row(desk):
    async with played(desk, f"whiptail {MENU} 2> picked", "c three") as whiptail:
        before = await whiptail.session.read(view="screen")
        moved = await whiptail.session.press("Down", wait_for="c three", timeout=20)
        assert (before.output, moved.fact("changed")) == (moved.output, "rows 4–5")


@pytest.mark.xfail(strict=True, reason="the pattern is looked for in what comes after the call, and not on the screen")
async def test_a_look_at_the_screen_answers_at_once_when_the_pattern_stands_there(desk):
    session = await desk.session()
    begun = await session.run(QUIET, wait_for="painted", timeout=20)
    assert "full-screen" in begun.facts
    with within(0.1):
        await session.read(view="screen", wait_for="painted", timeout=2)


@pytest.mark.xfail(strict=True, reason="the facts of a reading say nothing of how its wait ended")
async def test_a_reading_says_why_its_wait_is_over(desk):
    session = await desk.session()
    await session.run("echo one; sleep 60", wait_for="one", timeout=20)
    late = await session.read(wait_for="two", timeout=0.1)
    assert "timeout" in late.facts, late.text


@pytest.mark.xfail(strict=True, reason="who reads for it is another process, so it is never seen to want input")
async def test_a_quiet_screen_whose_keys_another_process_reads_is_answered(desk):
    session = await desk.session()
    shown = await session.run(QUIET, timeout=2)
    assert ("full-screen" in shown.facts, "timeout" in shown.facts) == (True, False), shown.text
