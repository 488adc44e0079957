"""No answer moves the read position over output that was not shown: neither before typed input, nor from the background,
nor at a session's end.
"""

from pathlib import Path


async def test_output_from_before_the_input_is_shown(workspace):
    go, asks = workspace.project / "go", workspace.project / "asks"
    reads = f"echo begun; until [ -e {go} ]; do :; done; echo 'disk full'; touch {asks}; read -p 'sure? '; echo got $REPLY"
    begun = await workspace.terminal(reads, wait_for="begun")
    go.touch()
    await workspace.agent.at(begun.session_id).until(lambda _: asks.exists())
    answered = await workspace.terminal("y", is_input=True)
    # The echo comes before the question if the program had not asked yet.
    assert (answered.output.splitlines()[0], answered.output.splitlines()[-1].endswith("got y")) == ("disk full", True)
    assert answered.exit == 0


async def test_background_output_is_shown_once_with_the_next_command(workspace):
    job, done = workspace.gate(), workspace.project / "done"
    started = await workspace.terminal(f"(cat {job}; echo CRASHED; touch {done}) &")
    assert started.exit == 0
    await workspace.open_gate()
    await workspace.agent.at(started.session_id).until(lambda _: done.exists())
    following = await workspace.terminal("echo following")
    # bash tells of the job's end at its next prompt, which may come before the command. Output at a prompt stands behind it.
    opened, crashed, own = [line for line in following.output.splitlines() if "Done" not in line][-3:]
    assert (opened.endswith("opened"), crashed, own) == (True, "CRASHED", "following"), following.text
    assert "came from the background before it" in following.text
    for _ in range(3):
        again = await workspace.terminal("echo again")
        assert [line for line in again.output.splitlines() if "Done" not in line] == ["again"], again.text


async def test_a_prompt_of_several_lines_is_not_output(workspace):
    (Path(workspace.env["HOME"]) / ".bashrc").write_text("PS1='\\n\\w\\n> '\n")
    assert (await workspace.terminal("echo first")).output == "first"
    for number in range(4):
        assert (await workspace.terminal(f"echo {number}")).text == f"{number}\n[exit 0]"


async def test_a_waiting_caller_gets_the_last_output_of_an_ended_session(workspace):
    session = await workspace.session()
    gate = workspace.gate()
    begun = await session.run(f"echo A; cat {gate}; echo B; exit 5", wait_for="A")
    assert begun.is_running
    await workspace.open_gate()
    ended = await session.read(since="last", wait_for="never", timeout=60)
    assert ("B" in ended.output, "session ended" in ended.text) == (True, True), ended.text
    again = await session.read(since="last", timeout=1)
    assert again.output == ""
