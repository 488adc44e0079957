"""Hooks of the prompt that ask something: nothing of ours is their answer, and the answer is the caller's."""

import pytest

HOOKS = {
    "fish": "function hk --on-event fish_prompt; set -q asked; or begin; set -g asked 1; read -P 'a''sk? ' -g hkv; end; end",
}


@pytest.mark.parametrize("shell", HOOKS)
async def test_a_hook_that_asks_gets_the_callers_answer_and_no_other(workspace, shell):
    session = await workspace.session(shell=shell)
    assert (await session.run(HOOKS[shell])).exit == 0
    await session.read(wait_for=r"ask\?")
    refused = await session.run("echo ran >>ran")
    assert "not run" in refused.text and "a hook of the prompt asks something" in refused.text, refused.text
    looked = await session.read()
    assert (looked.wants, looked.output.splitlines()[-1].strip()) == ("input", "ask?"), looked.text
    await session.type("Jo\r")
    answer = await session.run('echo "hk=[$hkv]"; test -e ran')
    assert (answer.output, answer.exit) == ("hk=[Jo]", 1), answer.text
