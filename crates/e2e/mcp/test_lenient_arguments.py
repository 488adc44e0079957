"""Arguments as models write them: other JSON types with the same meaning, and the names of control keys as input."""


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
        await workspace.terminal(shows, wait_for="ready", timeout=10)
        pressed = await workspace.terminal(name, is_input=True)
        assert (pressed.exit, byte in pressed.output) == (0, True), pressed.text
