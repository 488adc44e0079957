"""Sessions under a policy: what an agent may run and type, and what it is told where it may not."""

import re

import pytest

CONFIG = "[profiles.default]\nshell = 'bash'\nrc = 'clean'\npolicy = 'strict'\n"
POLICY = """
[policies.strict]
[[policies.strict.rules]]
name = "look"
verdict = "allow"
program = ["ls", "echo", "cat", "bash", "true"]
match = ["ls | cat"]
[[policies.strict.rules]]
name = "no-rm"
verdict = "deny"
program = "rm"
match = ["env rm x"]
"""


@pytest.fixture
async def governed(machine):
    """A machine with an agent whose sessions have a policy."""
    machine.configure(CONFIG, POLICY)
    async with machine.another_agent() as machine.agent:
        yield machine
        await machine.end_sessions()


# promise: policy-1
async def test_a_refused_command_of_the_terminal_tool_has_not_run_and_says_why(governed):
    assert (await governed.terminal("echo one && ls | cat")).exit == 0
    denied = await governed.terminal("echo a; env rm -f keep")
    assert "not run: rule no-rm of policy strict denies it: `rm -f keep`" in denied.text
    asked = await governed.terminal("echo b > made", timeout=0.1)
    assert "needs approval by a person: rule unproven of policy strict" in asked.text
    assert re.search(r"waiting for approval a0-\w{10} .*\(advisory: the session is not confined\)", asked.text), asked.text
    assert list(governed.project.iterdir()) == []
    hidden = await governed.terminal("ls\u00a0-l")
    assert "U+00A0" in hidden.text
    assert (await governed.terminal("echo two")).output == "two"


# promise: policy-7
async def test_a_person_allows_an_agents_command_once(governed):
    command, typed = "echo b > made; cat made", "read x; echo got:$x"
    for text in (command, typed):
        refused = await governed.terminal(text, timeout=0.1)
        found = re.search(r"waiting for approval (a0-\w{10}) \(ptyd approvals\); send the same request again", refused.text)
        assert found, refused.text
        listed = governed.ptyd("approvals")
        assert found[1] in listed and text in listed, listed
        governed.ptyd("approvals", "allow", found[1])
        answer = await governed.terminal(text)
        assert "needs approval" not in answer.text, answer.text
    assert (governed.project / "made").read_text() == "b\n"
    # The input to it is asked about by itself.
    refused = await governed.terminal("ann", is_input=True, timeout=0.1)
    found = re.search(r"nothing was typed: .*waiting for approval (a0-\w{10}) ", refused.text)
    assert found, refused.text
    assert re.search(r'type "ann\\[rn]" in "[^"]*"$', governed.ptyd("approvals"), re.MULTILINE)
    governed.ptyd("approvals", "allow", found[1])
    assert "got:ann" in (await governed.terminal("ann", is_input=True)).text


# promise: policy-7
async def test_the_list_of_approvals_tells_text_keys_and_secrets_apart(governed):
    async def listed(refused):
        found = re.search(r"waiting for approval (a0-\w{10}) ", refused.text)
        assert found, refused.text
        line = next(line for line in governed.ptyd("approvals").splitlines() if line.startswith(found[1]))
        what, _, directory = line.rpartition(" in ")
        assert directory == f'"{governed.project}"', line
        return what

    lines, slashes = "echo a\necho b > made", "echo a\\necho b > made"
    assert (await listed(await governed.terminal(lines, timeout=0.1))).endswith(r'run "echo a\necho b > made"')
    assert (await listed(await governed.terminal(slashes, timeout=0.1))).endswith(r'run "echo a\\necho b > made"')
    asks = "read x; read -rs word; echo ${#word}"
    governed.ptyd("approvals", "allow", (await listed(await governed.terminal(asks, timeout=0.1))).split()[0])
    await governed.terminal(asks)
    assert (await listed(await governed.terminal("C-v", is_input=True, timeout=0.1))).endswith("press C-v")
    typed = await listed(await governed.terminal("C-v\n", is_input=True, timeout=0.1))
    assert re.search(r'type "C-v\\[rn]"$', typed), typed
    governed.ptyd("approvals", "allow", typed.split()[0])
    assert "password" in (await governed.terminal("C-v\n", is_input=True)).text
    typed = await listed(await governed.terminal("hunter2", is_input=True, timeout=0.1))
    assert typed.endswith("type a secret (8)") and "hunter2" not in typed


# promise: policy-5
async def test_typed_input_needs_approval_and_an_interrupt_does_not(governed):
    session = await governed.session()
    assert (await session.run("cat", timeout=0.1)).is_running
    refused = await session.type("x\n", timeout=0.1)
    assert "nothing was typed: needs approval by a person: rule typed_input" in refused.text
    assert "nothing was typed" in (await session.press("Enter", timeout=0.1)).text
    stopped = await session.press("C-c")
    assert "needs approval" not in stopped.text
    await session.idle()
    assert (await session.run("echo still proven")).output == "still proven"
    # The same of the one-tool shell.
    await governed.terminal("cat", timeout=0.1)
    assert "nothing was typed" in (await governed.terminal("x", is_input=True, timeout=0.1)).text
    assert "needs approval" not in (await governed.terminal("C-c", is_input=True)).text


# promise: policy-6
async def test_a_proven_command_never_goes_to_a_nested_shell(governed):
    await governed.terminal("bash --norc", timeout=1)
    refused = await governed.terminal("echo inside")
    assert "busy" in refused.text, refused.text
    await governed.terminal("", reset=True)
    assert (await governed.terminal("echo own")).output == "own"
