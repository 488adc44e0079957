"""The echo of what a call has typed is not in its answer, and nothing that the program printed is left out with it."""

import asyncio

import pytest
from fullscreen import needs
from mcp_client import CALL_SECONDS

pytestmark = pytest.mark.one_server


async def begun(session, command, asks=""):
    """A command that reads now; its output so far has been shown."""
    answer = await session.run(command, wait_for=asks or "reads")
    if not answer.wants:
        answer = await session.read(since="last", until=["input"], timeout=60)
    assert answer.wants, answer.text
    return answer


async def shown(session, answer):
    """The output of an answer, or the next one where it came before there was any."""
    async with asyncio.timeout(CALL_SECONDS):
        while not answer.output:
            answer = await session.read(since="last", timeout=0.1)
    return answer.output


@pytest.mark.parametrize("end", ["\n", "\r"])
# promise: output-11
async def test_the_terminals_echo_is_omitted_once(workspace, end):
    session = await workspace.session()
    await begun(session, "echo reads; cat")
    answer = await session.type(f"one{end}", wait_for="one")
    assert answer.output == "one", answer.text
    # The transcript and the screen keep the echo.
    whole = await session.read(since="first")
    assert whole.output.count("one") == 2, whole.text
    screen = await session.read(view="screen")
    assert screen.output.count("\none") == 2, screen.text


# promise: output-11
async def test_lines_that_are_echoed_one_behind_the_other_are_omitted(workspace):
    session = await workspace.session()
    gate = workspace.gate()
    await begun(session, f"echo reads; read -r a; read -r b; cat {gate}; echo $a-$b")
    answer = await session.type("first\nsecond\n", timeout=0.1)
    assert answer.output == "", answer.text
    await workspace.open_gate()
    assert "first-second" in (await session.read(since="last", wait_for="first-second")).output


# promise: output-11
async def test_a_program_without_echo_that_repeats_its_input_is_shown(workspace):
    for modes in ("-echo", "-icanon -echo", "raw -echo"):
        session = await workspace.session()
        # The modes are set before it says that it reads.
        await session.run(f"stty {modes}; echo reads; cat", wait_for="reads")
        answer = await session.type("one\n", until=["quiet:200"])
        assert (await shown(session, answer)).strip() == "one", (modes, answer.text)
        await session.terminate()


# promise: output-11
async def test_an_echo_without_a_lines_end_or_behind_other_output_stays(workspace):
    session = await workspace.session()
    await begun(session, "echo reads; cat")
    assert await shown(session, await session.type("hal", timeout=0.1)) == "hal"
    answer = await session.type("f\n", wait_for="half")
    assert answer.output == "half", answer.text
    await session.press("C-c")
    # Its words came behind the last answer, so they stand before the echo.
    gate = workspace.gate()
    await begun(session, f"echo reads; (cat {gate}; touch said) & read -r line; echo got $line")
    await workspace.open_gate()
    await session.until(lambda _: (workspace.project / "said").exists())
    answer = await session.type("word\n", wait_for="got word")
    assert answer.output.splitlines() == ["opened", "word", "got word"], answer.text


@pytest.mark.parametrize(
    "program, typed",
    [
        ("python3 -q", "6*7"),
        pytest.param("node", "6*7", marks=needs("node")),
        ("bash --norc", "echo $((6*7))"),
        pytest.param("sqlite3", "select 6*7;", marks=needs("sqlite3")),
    ],
)
# promise: output-11
async def test_the_line_that_an_editor_paints_is_omitted(workspace, program, typed):
    agent = workspace.agent
    assert (await agent.terminal(program)).wants
    for _ in range(3):
        answer = await agent.terminal(typed, is_input=True)
        assert answer.output.startswith("42"), answer.text
        assert typed not in answer.output, answer.text


# promise: output-11
async def test_a_typed_line_stays_if_its_reader_prints_nothing_else(workspace):
    agent = workspace.agent
    await agent.terminal("stty raw -echo icrnl; printf '> '; head -n 1; stty sane", wait_for="> ")
    answer = await agent.terminal("one", is_input=True)
    assert "one" in answer.output, answer.text


# promise: output-11
async def test_behind_a_program_that_passes_keys_on_everything_stays(workspace):
    agent = workspace.agent
    program = workspace.project / "asks"
    program.write_text("read -sp 'Word: ' x; echo $x; echo more; read y\n")
    await agent.terminal(f"script -qc 'bash {program}' /dev/null", wait_for="Word: ")
    answer = await agent.terminal("one", is_input=True)
    assert answer.output == "one\nmore", answer.text
    await agent.terminal("C-c")
