"""A wait ends when nothing that it waits for can come any more, and by nothing that the call itself typed."""

import statistics
import time

import pytest
from mcp_client import at_least
from test_other_clients import NODE


@pytest.mark.parametrize("asks", ["read -p 'q? ' x", "read -sp 'password: ' x", "python3 -q"])
async def test_a_wait_for_a_pattern_ends_if_the_program_asks_something_else(workspace, asks):
    with at_least(0.9):
        asked = await workspace.terminal(asks, wait_for="never", timeout=60)
    assert (asked.is_running, asked.wants) == (True, "a password" if "-s" in asks else "input"), asked.text
    session = workspace.agent.at(asked.session_id)
    again = await session.read(wait_for="never", timeout=60)
    assert any("wants" in fact or "waits for" in fact for fact in again.facts), again.text
    assert (asked.is_timed_out, again.is_timed_out) == (False, False), again.text


async def test_a_dialogue_ends_when_the_program_asks_something_else(workspace):
    asked = await workspace.terminal("read -p 'one? ' x; read -p 'two? ' y; echo $x$y")
    session = workspace.agent.at(asked.session_id)
    for steps in ([{"input": "a\r"}, {"wait_for": "three", "input": "b\r"}], [{"wait_for": "three", "input": "b\r"}]):
        told = await workspace.agent.call("send_input_to_terminal", session_id=session.id, steps=steps, timeout=60)
        assert ("did not match" in told.facts[0], told.wants, told.is_timed_out) == (True, "input", False), told.text
        assert ("two?" in told.output) == (len(steps) == 2), told.text
    assert (await workspace.terminal("b", is_input=True)).last_line == "ab"


RAW = """
import os, sys, tty
from time import sleep
tty.setraw(0)
print("press h for help\\r")
sleep(0)
if not os.fork():
    sleep(2)
    print("ready\\r", flush=True)
    os._exit(0)
os.read(0, 1)
"""


async def test_a_program_that_always_reads_keys_does_not_end_the_wait_for_a_pattern(workspace):
    (workspace.project / "raw.py").write_text(RAW)
    answer = await workspace.terminal("python3 raw.py; stty sane", wait_for="ready", timeout=60)
    assert answer.fact("matched") == '"ready"', answer.text
    await workspace.terminal("q", is_input=True)


async def test_no_step_matches_the_input_of_an_earlier_one(workspace):
    started = await workspace.terminal("python3 -q")
    session = workspace.agent.at(started.session_id)
    steps = [{"input": "from time import sleep; sleep(1.5); print('ready')\r"}, {"wait_for": "ready", "input": "print('after')\r"}]
    with at_least(1.5):
        told = await workspace.agent.call("send_input_to_terminal", session_id=session.id, steps=steps)
    assert told.output.splitlines()[-2:] == ["after", ">>> "], told.text
    await workspace.terminal("C-d")


@pytest.mark.parametrize("shell", ["bash", "python3"])
async def test_the_line_that_runs_a_command_does_not_match(workspace, shell):
    session = await workspace.session(shell=shell)
    ready = "sleep 1; echo ready; sleep 3600" if shell == "bash" else "from time import sleep; sleep(1); print('ready'); sleep(3600)"
    with at_least(1):
        told = await session.run(ready, wait_for="ready", timeout=60)
    assert told.fact("matched") == '"ready"', told.text
    await session.press("C-c")


async def test_text_that_a_program_prints_again_matches(workspace):
    await workspace.terminal("read x; echo $x; cat")
    told = await workspace.terminal("ready", is_input=True, wait_for="ready", timeout=60)
    # The echo is neither matched nor shown.
    assert (told.fact("matched"), told.output) == ('"ready"', "ready"), told.text
    told = await workspace.terminal("some ready words", is_input=True, wait_for="^some ready words$", timeout=60)
    assert (told.output, told.fact("matched") is None) == ("some ready words", False), told.text
    await workspace.terminal("C-c")
    await workspace.terminal("stty -echo; cat", timeout=1)
    told = await workspace.terminal("ready", is_input=True, wait_for="ready", timeout=60)
    assert (told.fact("matched"), told.output.count("ready")) == ('"ready"', 1), told.text
    await workspace.terminal("C-c")


SLOW_TUI = """
import os, sys, tty
from time import sleep
tty.setraw(0)
print("\\x1b[?1049h\\x1b[2J\\x1b[Hrow 0", end="", flush=True)
for row in range(1, 99):
    key = os.read(0, 1)
    sleep(float(sys.argv[1]))
    print(f"\\x1b[Hrow {row}", end="", flush=True)
    if key == b"q": break
print("\\x1b[?1049l", end="")
"""


async def test_keys_at_a_slow_full_screen_program_return_its_reaction(workspace):
    (workspace.project / "tui.py").write_text(SLOW_TUI)
    session = workspace.agent.at((await workspace.terminal("python3 tui.py 0.7; stty sane")).session_id)
    for row in range(1, 4):
        with at_least(0.7):
            pressed = await session.press("j")
        assert (pressed.output, "no row changed" in pressed.facts) == (f"row {row}", False), pressed.text
    assert (await session.press("q")).exit == 0


async def test_a_screen_that_may_still_change_is_not_reported_as_unchanged(workspace):
    (workspace.project / "tui.py").write_text(SLOW_TUI)
    session = workspace.agent.at((await workspace.terminal("python3 tui.py 4; stty sane")).session_id)
    # The program's four seconds begin with the first key.
    with at_least(4):
        pressed = await session.press("j", timeout=1)
        assert ("no reaction yet" in pressed.facts, "no row changed" in pressed.facts) == (True, False), pressed.text
        pressed = await session.press("q")
    assert "no row changed" not in pressed.facts, pressed.text
    await session.press("q", timeout=60)
    await workspace.terminal("", timeout=60)


async def test_input_is_answered_when_the_program_asks_again_and_not_when_it_is_silent(workspace):
    started = await workspace.terminal("read x; sleep 1.5; echo got $x; read -p 'more? ' y; sleep 1.5; echo and $y")
    session = workspace.agent.at(started.session_id)
    with at_least(1.5):
        told = await session.type("one\n")
    assert (told.output, told.wants, told.is_timed_out) == ("got one\nmore? ", "input", False), told.text
    with at_least(1.5):
        steps = [{"wait_for": "more", "input": "two\r"}]
        told = await workspace.agent.call("send_input_to_terminal", session_id=session.id, steps=steps)
    assert (told.output.splitlines()[-1], told.exit) == ("and two", 0), told.text


LISTENER = """
import socket, sys, tty, select
from time import sleep
if "raw" in sys.argv: tty.setraw(0)
if "late" in sys.argv: sleep(1.5)
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
print("port", s.getsockname()[1], end="\\r\\n", flush=True)
if "tests" in sys.argv:
    for n in range(36): print("test", n, flush=True); sleep(0.1)
    print("tests ..", end="", flush=True); sleep(3); sys.exit()
while True:
    if 0 in select.select([0, s] if "raw" in sys.argv else [s], [], [])[0]: sys.exit()
"""


@pytest.mark.parametrize("how", ["", "raw", "late"])
# promise: wait-5
async def test_a_server_is_reported_as_ready_with_its_port_once_it_is_silent(workspace, how):
    (workspace.project / "listener.py").write_text(LISTENER)
    for tool in ("terminal", "execute"):
        session = await workspace.session()
        run = session.run if tool == "execute" else lambda line: workspace.terminal(line, session_id=session.id)
        ready = await run(f"python3 listener.py {how}; stty sane")
        port = ready.output.split()[-1]
        assert (ready.is_running, ready.fact("listens on")) == (True, port), ready.text
        # That it listens and is silent is known already.
        async with workspace.promised(0.2):
            looked = await workspace.terminal(session_id=session.id)
        assert looked.fact("listens on") == port, looked.text
        await session.terminate(force=True)


async def test_a_test_suite_with_ports_is_awaited_and_a_background_job_is_not_a_server(workspace):
    (workspace.project / "listener.py").write_text(LISTENER)
    tested = await workspace.terminal("python3 listener.py tests")
    assert (tested.exit, tested.fact("listens on")) == (0, None), tested.text
    await workspace.terminal("python3 listener.py </dev/null &", timeout=2)
    slept = await workspace.terminal("sleep 4")
    assert (slept.exit, slept.fact("listens on")) == (0, None), slept.text
    await workspace.terminal("kill %1; wait")


# An event loop with a timer asks as node's readline does: it paints the line and places the cursor.
READLINE = """
import select, sys, time, tty
tty.setraw(0)
def ask(words):
    print(time.time(), file=open("asked", "a"))
    print(f"\\x1b[1G\\x1b[0J{words}\\x1b[{len(words) + 1}G", end="", flush=True)
    polls(3600)
def polls(seconds):
    ends = time.time() + seconds
    while time.time() < ends:
        if select.select([0], [], [], 0.5)[0]: return sys.stdin.buffer.raw.read(99)
for n in range(4): ask(f"question {n}: "); print(end="\\r\\n")
print(end="Installing: ", flush=True); polls(0.9)
print(end="\\x1b[1G\\x1b[0JInstalling (3) \\x1b[16G", flush=True); polls(0.9)
print(end="done\\r\\n")
"""


async def test_an_event_loops_next_question_is_recognised_sooner_and_its_progress_is_not_a_question(workspace):
    (workspace.project / "asks.py").write_text(READLINE)

    def late():
        """How long ago the last question was asked."""
        return time.time() - float((workspace.project / "asked").read_text().splitlines()[-1])

    first = await workspace.terminal("python3 asks.py; stty sane")
    by_its_silence, by_its_form = late(), []
    assert first.output == "question 0: ", first.text
    for n in range(1, 4):
        asked = await workspace.terminal("", is_input=True)
        by_its_form.append(late())
        assert (asked.output.splitlines()[-1], asked.wants) == (f"question {n}: ", "input"), asked.text
    assert statistics.median(by_its_form) < by_its_silence
    installed = await workspace.terminal("", is_input=True)
    assert (installed.output.splitlines()[-1], installed.exit) == ("Installing (3) done", 0), installed.text


# promise: ask-4
async def test_node_is_said_to_ask_before_it_has_freed_its_memory(workspace):
    """V8 limits Node's waits to 8 s once there is something to free; the prompt hides the cursor and ends its line."""
    (workspace.project / "ask.js").write_text(
        "let a = []; for (let i = 0; i < 1e6; i++) a.push({ i }); a = null;\n"
        "process.stdin.setRawMode(true); process.stdin.resume();\n"
        "process.stdout.write('\\x1b[?25l◆  Project name:\\n│  vite-project\\n└\\n');\n"
        "process.stdin.on('data', d => { console.log(JSON.stringify(String(d))); process.exit(); });\n"
    )
    await workspace.terminal("true")
    async with workspace.promised(3):
        asked = await workspace.terminal(f"{NODE} ask.js")
    assert asked.wants == "input", asked.text
    answered = await workspace.terminal("x", is_input=True)
    assert (answered.exit, '"x' in answered.output) == (0, True), answered.text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
# promise: shell-13
async def test_a_wait_for_the_end_covers_every_line_that_was_typed_before_it(workspace, shell):
    session = await workspace.session(shell=shell)
    for line in ("sleep 0.2", "sleep 0.2", "sleep 0.3; touch last"):
        await session.type(f"{line}\r", timeout=0)
    answer = await session.read(since="last", wait_for="never", timeout=60)
    assert (workspace.project / "last").exists() and not answer.is_timed_out, answer.text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
# promise: shell-13
async def test_a_wait_tells_the_exit_code_of_the_last_typed_line(workspace, shell):
    session = await workspace.session(shell=shell)
    for code in (3, 0):
        await session.type(f"sleep 0.2; sh -c 'exit {code}'\r", timeout=0)
        answer = await session.read(since="last", wait_for="never", timeout=60)
        assert f"exit {code} of the last typed line" in answer.facts, answer.text
