"""Commands in the shell that reads inside the session's own: typed only into a shell at its prompt."""

import pytest


@pytest.mark.parametrize("program", ["python3 -q", "cat", "while read x; do :; done", "bash --norc -c 'read -e x'"])
async def test_nothing_is_typed_into_a_program_that_is_no_shell_at_its_prompt(workspace, program):
    before = await workspace.terminal(program)
    assert before.wants == "input", before.text
    busy = await workspace.terminal("echo no")
    assert (busy.is_error, "with inside" in busy.text) == (True, False), busy.text
    refused = await workspace.terminal("echo no", inside=True)
    assert refused.is_error, refused.text
    assert "is_input" in refused.text or "send it input" in refused.text, refused.text
    raw = await workspace.agent.at(before.session_id).read(view="raw")
    assert "printf" not in raw.text, raw.text
    await workspace.terminal("C-d")
