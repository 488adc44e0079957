"""What ptyd does not do yet for programs that paint, each with the shortest way to see it.

Every test here is expected to fail, strictly: who mends one takes the mark away and moves the test to its program.
"""

import pytest
from fullscreen import needs

MENU = "--menu pick 10 30 3 a one b two c three"


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

