"""Arguments as models write them: other JSON types with the same meaning, and the names of control keys as input."""

import pytest

pytestmark = pytest.mark.one_server


async def test_texts_for_numbers_flags_and_lists_are_taken(workspace):
    begun = await workspace.agent.call("terminal", command="cat > taken", timeout="5")
    assert begun.wants == "input"
    typed = await workspace.agent.call("terminal", command="line", is_input="true", timeout="0.2")
    assert typed.is_running
    ended = await workspace.agent.call("send_input_to_terminal", session_id=begun.session_id, keys="C-d")
    assert (ended.exit, (workspace.project / "taken").read_text()) == (0, "line\n")
    started = await workspace.agent.call(
        "start_terminal_session", env={"NUMBER": 7}, dimensions={"cols": "90", "rows": 20.0}
    )
    shown = await workspace.agent.at(started.session_id).run("echo $NUMBER $COLUMNS")
    assert shown.output == "7 90"
    refused = await workspace.agent.call("terminal", command="true", timeout="soon")
    assert (refused.is_error, "timeout" in refused.text or "invalid type" in refused.text) == (True, True), refused.text


async def test_a_control_key_as_input_is_pressed_and_not_typed(workspace):
    shows = "python3 -c 'import sys, tty; tty.setraw(0); print(\"ready\", flush=True); print(repr(sys.stdin.read(1)))'"
    for name, byte in (("C-x", "\\x18"), ("^O", "\\x0f"), ("Escape", "\\x1b")):
        await workspace.terminal(shows, wait_for="ready", timeout=60)
        pressed = await workspace.terminal(name, is_input=True)
        assert (pressed.exit, byte in pressed.output) == (0, True), pressed.text


async def test_a_block_whose_last_line_has_its_newline_is_followed_by_enter(workspace):
    """Python runs `def` behind the empty line that Enter makes."""
    started = await workspace.terminal("python3 -q")
    assert (started.wants, started.is_timed_out, started.output) == ("input", False, ">>> ")
    defined = await workspace.terminal("def f():\n  return 6 * 7\n", is_input=True)
    assert defined.wants and not defined.output.rstrip().endswith("..."), defined.text
    called = await workspace.terminal("f()", is_input=True)
    assert called.output.splitlines()[0] == "42", called.text
    for closed in ("if f():\n  print('y' + 'es')\n\n", "if f():\n  print('y' + 'es')"):
        answer = await workspace.terminal(closed, is_input=True)
        # Without a newline behind it the block stays open, as Enter ends its last line.
        assert ("yes" in answer.output) == closed.endswith("\n"), answer.text
    assert "yes" in (await workspace.terminal("\n", is_input=True)).output
    assert (await workspace.terminal("C-d")).exit == 0


async def test_a_single_lines_own_newline_is_its_enter(workspace):
    """A second one would answer the question behind it."""
    asks = "read -p 'first? ' a; read -p 'second? ' b; echo $a-$b"
    for text in ("y", "y\n", "y\r", "y\r\n"):
        assert (await workspace.terminal(asks)).wants
        answer = await workspace.terminal(text, is_input=True)
        assert answer.wants and answer.output.endswith("second? "), (text, answer.text)
        answer = await workspace.terminal("n", is_input=True)
        assert answer.last_line == "y-n", (text, answer.text)


@pytest.mark.parametrize(
    "keys, call",
    [
        (["hello", "Enter"], r'{"keys":["hello<Enter>"]}'),
        (["ls -l"], r'{"input":"ls -l"}'),
        (["dd", 'say "hi"', "Escape", ":wq", "Enter"], r'{"keys":["ddsay \"hi\"<Escape>:wq<Enter>"]}'),
    ],
)
async def test_a_word_among_keys_is_refused_with_the_call_that_types_it(workspace, keys, call):
    """A misspelt key that was typed as text could not be taken back."""
    session = await workspace.session()
    await session.run("cat > typed", timeout=2)
    refused = await session.press(*keys)
    assert refused.is_error and refused.text.endswith(f"; nothing was typed; as text: {call}"), refused.text
    await session.press("hello<Enter>", "C-d")
    assert (workspace.project / "typed").read_text() == "hello\n"
