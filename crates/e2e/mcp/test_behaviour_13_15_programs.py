"""BEHAVIOUR 13 to 15: programs that talk: interpreters, questions for secrets, and whole screens.

ptyd tells that a program wants input the moment that it does; text typed at a secret's prompt stands nowhere.
"""

import asyncio
import sys
from pathlib import Path

import pytest
from fullscreen import needs
from mcp_client import PTYD, at_least

# promise: screen-4
async def test_enter_is_a_carriage_return_on_every_door(workspace):
    (workspace.project / "raw.py").write_text(
        "import os, tty\ntty.setraw(0)\nprint('ready', flush=True)\n"
        "read = b''\nwhile b'.' not in read: read += os.read(0, 99)\nprint(read)\n"
    )

    async def typed(door) -> str:
        """The bytes that a program which reads keys is given."""
        session = await workspace.session()
        await session.run("python3 raw.py", wait_for="ready")
        await door(session)
        return (await session.type(".", wait_for="b'.*'")).output

    async def by_command_line(session):
        send = await asyncio.create_subprocess_exec(PTYD, "send", session.id, "a", env=workspace.env, stdout=-3)
        assert await send.wait() == 0

    doors = [
        lambda session: session.type("a", end_with_newline=True),
        lambda session: session.press("a", "Enter"),
        by_command_line,
    ]
    for door in doors:
        assert "b'a\\r.'" in await typed(door)
    # The one-tool shell adds Enter by itself.
    await workspace.terminal("python3 raw.py")
    shown = await workspace.terminal("a\nb.", is_input=True)
    assert "b'a\\rb.\\r'" in shown.output


TWO_LEVELS = "def count(n):\n    if n:\n        return count(n - 1)\n    return 'two levels'\n"


@pytest.mark.parametrize(
    ["program", "text", "expected"],
    [
        ("bash --norc", "printf '%s|' 'a\tb'", "a\tb|"),
        ("sqlite3", "create table t(a);\ninsert into t values('a\tb');\nselect a, length(a) from t;", "a\tb|3"),
    ],
)
# promise: screen-4
async def test_a_tab_inside_a_line_is_text(workspace, program, text, expected):
    session = await workspace.session()
    assert (await session.run(program)).wants == "input"
    assert expected in (await session.type(text, end_with_newline=True)).output


@pytest.mark.not_confined("the interpreter of IPython may be in another home")
# promise: screen-4
async def test_editors_that_indent_by_themselves_run_the_program_that_was_sent(workspace):
    # IPython asks for pastes and indents what is typed; bash asks for them and does not indent; PyPy indents and does not ask for
    # them; python does neither.
    ipython = f"{Path(sys.executable).with_name('ipython')} --no-banner --colors=NoColor"
    for program, block, call, expected in [
        (ipython, TWO_LEVELS, "count(3)", "Out[2]: 'two levels'"),
        ("python3 -q", TWO_LEVELS, "count(3)", "'two levels'"),
        ("pypy3 -q", TWO_LEVELS, "count(3)", "'two levels'"),
        ("bash --norc", "count() {\n    echo two\n    echo levels\n}", "count", "two\nlevels"),
    ]:
        session = await workspace.session()
        await session.run(program)
        await session.type(block, end_with_newline=True)
        assert expected in (await session.type(call, end_with_newline=True)).output, program
        assert "Error" not in (await session.read()).output, program
    await workspace.terminal(ipython)
    shown = await workspace.terminal("for x in range(2):\n    print('v', x)\nprint('end')", is_input=True)
    assert [line for line in shown.output.splitlines() if line in ("v 0", "v 1", "end")] == ["v 0", "v 1", "end"]


# promise: signal-1
async def test_an_interrupted_dialogue_answers_when_it_asks_again(workspace):
    await workspace.terminal("python3 -q")
    interrupted = await workspace.terminal("C-c")
    assert (interrupted.wants, interrupted.output.splitlines()[-2:]) == ("input", ["KeyboardInterrupt", ">>> "])
    assert not interrupted.is_timed_out, interrupted.text
    assert (await workspace.terminal("C-d")).exit == 0


# promise: signal-1
async def test_an_interrupt_that_is_being_handled_is_not_a_question_yet(workspace):
    (workspace.project / "busy.py").write_text(
        "import select, signal\n"
        "def caught(*_):\n    select.select([], [], [], 0.4)\n    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, caught)\n"
        "try:\n    input('first? ')\nexcept KeyboardInterrupt:\n    input('again? ')\n"
    )
    asked = await workspace.terminal("python3 busy.py")
    assert (asked.wants, asked.output) == ("input", "first? ")
    with at_least(0.3):
        interrupted = await workspace.terminal("C-c")
    assert (interrupted.wants, interrupted.last_line, interrupted.is_timed_out) == ("input", "again? ", False)


async def test_a_program_that_ends_on_an_interrupt_has_ended_although_a_thread_of_it_reads(workspace):
    (workspace.project / "reader.py").write_text(
        "import os, select, signal, sys, threading\n"
        "signal.signal(signal.SIGINT, lambda *_: (select.select([], [], [], 0.1), os._exit(7)))\n"
        "threading.Thread(target=sys.stdin.readline).start()\n"
        "while True:\n    signal.pause()\n"
    )
    assert (await workspace.terminal("python3 reader.py")).wants == "input"
    assert (await workspace.terminal("C-c")).exit == 7


async def test_a_program_that_is_deaf_to_interrupts_still_wants_input(workspace):
    assert (await workspace.terminal("sh -c 'trap \"\" INT; exec cat'")).wants == "input"
    interrupted = await workspace.terminal("C-c")
    assert (interrupted.wants, interrupted.is_timed_out) == ("input", False), interrupted.text
    assert "cat ignores C-c: send C-\\ with is_input, or reset" in interrupted.facts
    assert (await workspace.terminal("C-\\", is_input=True)).exit == 131


# promise: signal-1
async def test_a_program_that_ignores_an_interrupt_is_named_before_the_wait_for_its_end_is_over(workspace):
    (workspace.project / "deaf.py").write_text(
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('on', flush=True)\ntime.sleep(600)\n"
    )
    for ignores, name in [("python3 deaf.py", "python3"), ("python3 deaf.py | cat", None)]:
        await workspace.terminal(ignores, wait_for="on")
        interrupted = await workspace.terminal("C-c", timeout=1)
        named = [fact for fact in interrupted.facts if "ignores" in fact]
        # cat ends in the second one, so the interrupt is not ignored by all.
        assert (interrupted.is_running, named) == (True, [f"{name} ignores C-c: send C-\\ with is_input, or reset"] if name else []), interrupted.text
        ended = await workspace.terminal("C-\\", is_input=True)
        assert not ended.is_running, ended.text
        assert (await workspace.terminal("echo fine")).output == "fine"
    # An earlier program has left a raw terminal behind.
    await workspace.terminal("stty raw -echo; python3 deaf.py", wait_for="on")
    await workspace.terminal("", timeout=0.5)
    interrupted = await workspace.terminal("C-c", timeout=3600)
    assert "python3 ignores C-c: send C-\\ with is_input, or reset" in interrupted.facts, interrupted.text
    assert not (await workspace.terminal("C-\\", is_input=True)).is_running
    session = await workspace.session()
    await session.run("python3 deaf.py", wait_for="on")
    # The answer would come in an hour if it were the timeout's.
    interrupted = await session.press("C-c", timeout=3600)
    assert "python3 ignores C-c: send C-\\, or reset the session" in interrupted.facts, interrupted.text
    await session.press("C-\\")
    assert (await session.run("echo fine")).output == "fine"


@needs("vim")
# promise: screen-1, screen-3
async def test_an_interrupt_in_vim_shows_the_screen_and_no_paint(workspace):
    running = await workspace.terminal("vim -u NONE -N f")
    assert running.is_running
    interrupted = await workspace.terminal("C-c")
    assert ("full-screen" in interrupted.facts, interrupted.is_timed_out) == (True, False), interrupted.text
    shown = await workspace.agent.at(running.session_id).read(view="screen")
    # Only the message's row has changed since the answer before.
    [row] = interrupted.output.splitlines()
    assert (row.partition(": ")[2], "only changed rows" in interrupted.facts) == (shown.output.splitlines()[-1], True)
    # A look shows no paint either.
    looked = await workspace.terminal("")
    assert (looked.output, "no row changed" in looked.facts) == ("", True)


async def test_python_asks_in_its_plain_line_mode_too(workspace):
    session = await workspace.session(env={"PYTHON_BASIC_REPL": "1", "TERM": "dumb"})
    assert (await session.run("python3 -q -i -S")).wants == "input"
    await session.type("for i in range(2):\n    print('line', i)\n\n", timeout=60, wait_for="line 1")
    ended = await session.type("raise SystemExit(6)", end_with_newline=True, timeout=60)
    assert ended.exit == 6


# promise: send-6
async def test_a_typed_password_is_in_no_file_afterwards(workspace):
    secret = "hunter2-correct-horse"
    asked = await workspace.terminal("read -s -p 'Password: ' p; echo; echo ${#p}")
    assert (asked.output, asked.wants, asked.is_timed_out) == ("Password: ", "a password", False)
    answered = await workspace.terminal(secret, is_input=True)
    assert (answered.last_line, answered.exit) == (str(len(secret)), 0)
    session = workspace.agent.at(asked.session_id)
    for view in ("text", "raw", "screen"):
        assert secret not in (await session.read(view=view)).text
    await session.terminate()
    assert workspace.files_holding(secret.encode()) == []


async def test_a_dialogue_with_several_questions_is_one_call(workspace):
    session = await workspace.session()
    await session.run("read -p 'name? ' n; read -s -p 'word? ' w; echo; echo \"$n ${#w}\"")
    steps = [{"wait_for": "name\\? $", "input": "Jo\r"}, {"wait_for": "word\\? $", "input": "abc\r"}]
    done = await session.agent.call("send_input_to_terminal", session_id=session.id, steps=steps, timeout=60)
    assert (done.exit, done.last_line) == (0, "Jo 3")


@needs("vim")
async def test_vim_follows_a_resize_and_arrow_keys(workspace):
    session = await workspace.session(dimensions={"cols": 100, "rows": 30})
    await session.run("printf 'one\\ntwo\\nthree\\n' > f; vim -u NONE -N f", wait_for="three", timeout=60)
    resized = await session.agent.call("resize_terminal", session_id=session.id, cols=60, rows=12)
    assert resized.structured["dimensions"] == {"cols": 60, "rows": 12}
    moved = await session.press("Down", "Right", "Right", "x", wait_for="(?m)^tw$")
    assert (moved.fact("cursor"), moved.fact("screen")) == ("row 2 column 2", "60×12")
    assert (await session.to_the_end(await session.press(":q!<Enter>", timeout=60), "c1")).exit == 0
    assert (await session.run("stty size")).output == "12 60"


async def test_a_program_that_dies_in_the_alternate_screen_leaves_the_shell_usable(workspace):
    died = await workspace.terminal("printf '\\e[?1049h\\e[31mpaint'; sh -c 'kill -9 $$'")
    assert died.exit == 137
    assert (await workspace.terminal("echo ok")).text == "ok\n[exit 0]"


async def test_a_command_in_a_shell_inside_has_its_output_and_its_code(workspace):
    entered = await workspace.terminal("bash --norc")
    assert "wants input" in entered.text
    told = await workspace.terminal("cd /\npwd; (exit 3)", inside=True)
    assert (told.output, told.exit, told.facts[-1]) == ("/", 3, "boundary nonce")
    refused = await workspace.terminal("echo no", inside=True, is_input=True)
    assert refused.is_error and "inside" in refused.text
    left = await workspace.terminal("exit 4", inside=True)
    assert "[the inner shell has ended: exit 4" in left.text
    assert (await workspace.terminal("echo out")).text == "out\n[exit 0]"
    idle = await workspace.terminal("echo no", inside=True)
    assert idle.is_error and "no program in this session can be a nested shell" in idle.text


NODE_ASKS = 'console.log("name:"); process.stdin.on("data", d => { console.log("got " + d); process.exit(3) })'
NODE_WORKS = """
process.stdin.setRawMode(true).on("data", () => {})
let turns = 0
setInterval(() => { process.stdout.write("\\r- loading"); if (++turns == 12) process.exit(4) }, Number(process.argv[2]))
"""
NODE_THINKS = """
console.log("thinking")
process.stdin.on("data", () => {})
require("crypto").pbkdf2("a", "b", 2e6, 64, "sha512", () => process.exit(5))
"""


@needs("node")
# promise: ask-2, ask-3
async def test_an_event_loop_asks_when_nothing_else_can_wake_it_and_not_while_it_turns_a_wheel(workspace):
    (workspace.project / "asks.js").write_text(NODE_ASKS)
    (workspace.project / "works.js").write_text(NODE_WORKS)
    asked = await workspace.terminal("node asks.js")
    assert (asked.wants, asked.output, asked.is_timed_out) == ("input", "name:", False), asked.text
    assert (await workspace.terminal("x", is_input=True)).exit == 3
    for pause in (50, 300):
        assert (await workspace.terminal(f"node works.js {pause}")).exit == 4
    # A thread of its own is at work, and will wake it.
    (workspace.project / "thinks.js").write_text(NODE_THINKS)
    assert (await workspace.terminal("node thinks.js")).exit == 5


@pytest.mark.not_confined("the tier process has no further terminals", "process")
# promise: ask-4
async def test_a_password_prompt_on_a_nested_terminal_is_reported_as_one(workspace):
    for source in ("", "< /dev/tty"):
        asked = await workspace.terminal(f"""script -qec 'bash -c "read -s -p pass? x {source}; echo got \\$x"' /dev/null""")
        assert (asked.wants, asked.output) == ("a password", "pass?"), asked.text
        assert (await workspace.terminal("joe", is_input=True)).last_line == "got joe"
