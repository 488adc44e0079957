"""Hooks of the prompt that ask something: nothing of ours is their answer, and the answer is the caller's."""

import pytest

HOOKS = {
    "fish": "function hk --on-event fish_prompt; set -q asked; or begin; set -g asked 1; {reads}; end; end",
    "bash": "PROMPT_COMMAND='[[ -n $asked ]] || {{ asked=1; {reads}; }}'",
    "zsh": "precmd() {{ [[ -n $asked ]] || {{ asked=1; {reads}; }} }}",
    # Behind our own hook, with a widget of the user's that must not be lost.
    "zsh list": "zle-line-init() {{ (( inits += 1 )); }}; zle -N zle-line-init; "
    "hk() {{ [[ -n $asked ]] || {{ asked=1; {reads}; }} }}; precmd_functions+=(hk)",
}
# Whole lines, by the terminal and by the shell's own editor, and keys.
ASKING = [
    ("fish", "read -P 'a''sk? ' -g hkv", "Jo\r"),
    ("bash", 'read -p a""sk?\\  hkv', "Jo\r"),
    ("bash", 'read -ep a""sk?\\  hkv', "Jo\r"),
    ("bash", 'read -n 2 -p a""sk?\\  hkv', "Jo"),
    ("zsh", "read 'hkv?a''sk? '", "Jo\r"),
    ("zsh", "read -k 2 'hkv?a''sk? '", "Jo"),
    ("zsh", "hkv=; vared -p 'a''sk? ' hkv", "Jo\r"),
    ("zsh list", "hkv=; vared -p 'a''sk? ' hkv", "Jo\r"),
]


@pytest.mark.parametrize(("shell", "reads", "typed"), ASKING)
async def test_a_hook_that_asks_is_reported_and_gets_the_callers_answer_and_no_other(workspace, shell, reads, typed):
    session = await workspace.session(shell=shell.split()[0])
    assert (await session.run(HOOKS[shell].format(reads=reads))).exit == 0
    await session.read(wait_for=r"ask\?")
    if "-e" not in reads and "vared" not in reads:
        await session.until(lambda summary: summary["foreground"] == "input_wanted")
        looked = await session.read()
        assert (looked.wants, looked.output.splitlines()[-1].strip()) == ("input", "ask?"), looked.text
    for _ in range(2):
        refused = await session.run("echo ran >>ran", timeout=2)
        assert "not run" in refused.text and "a hook of the prompt asks something" in refused.text, refused.text
    await session.type(typed)
    answer = await session.run('echo "hk=[$hkv]"; test -e ran')
    assert (answer.output, answer.exit) == ("hk=[Jo]", 1), answer.text
    await session.until(lambda summary: summary["foreground"] == "idle")
    assert (await session.run("true")).exit == 0
    if shell == "zsh list":
        before = await session.run("echo $inits; zle -lL zle-line-init")
        inits, *widget = before.output.splitlines()
        assert (int(inits) >= 4, widget) == (True, ["zle -N zle-line-init"]), before.text


# A line of each shell that reads with the shell's own editor.
READS = {"bash": ("PROMPT_COMMAND={hook!r}", "read -ep Q x"), "zsh": ("precmd() {{ {hook}; }}", "x=; vared -p Q x")}


@pytest.mark.parametrize("shell", READS)
async def test_a_line_typed_ahead_of_the_prompt_gets_no_command_for_its_input(workspace, shell):
    define, reads = READS[shell]
    gate = workspace.gate()
    session = await workspace.session(shell=shell)
    await session.run(define.format(hook=f"[[ -p {gate} ]] && cat {gate} && rm {gate}"))
    await session.type(reads + "\r", timeout=0.5)
    await workspace.open_gate("")
    await session.read(wait_for=r"\nQ", timeout=5)
    refused = await session.run("touch ran")
    assert "not run" in refused.text, refused.text
    await session.type("Jo\r")
    answer = await session.run('echo "[$x]"; test -e ran')
    assert (answer.output, answer.exit) == ("[Jo]", 1), answer.text


async def test_a_call_that_does_not_wait_is_taken_while_the_shell_paints_its_prompt(workspace):
    session = await workspace.session(shell="zsh")
    # zsh reports its prompt before it computes its text.
    await session.run("setopt promptsubst; PS1='$(sleep 0.05)> '")
    for number in range(3):
        answer = await session.run(f"echo {number}", timeout=0)
        assert answer.fact("command"), answer.text
        await session.read(command_id=answer.fact("command"), timeout=60)
