"""The cost of answers to a model, in tokens of o200k: recorded programs, the line of facts, the tools themselves.

The recordings are those of `crates/terminal/fixtures`, printed again by `cat`. The table in `docs/text-format.md` holds these
very figures, so that it cannot become untrue; `-s` prints the whole of it.
"""

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

from mcp_client import REPOSITORY
from test_other_clients import CLIENTS, NODE, NPM

FIXTURES = REPOSITORY / "crates/terminal/fixtures"
PROGRAMS = ["cargo-build", "cargo-test", "npm-ci", "pip-install", "apt-install", "git-clone", "git-log", "pytest", "layers", "top"]
# The parts that are not text: control sequences, carriage returns and other controls, as a careful agent would take them out.
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[@-Z\\-_7-8])|[\x00-\x08\x0b-\x1f]")

LINE_ENDS = re.compile(r" · (?:no newline at the end|\d+ lines end in CR LF)(?=\]$)")


def tokens(*texts: str) -> list[int]:
    """How many each of them has."""
    done = subprocess.run(
        [NODE, CLIENTS / "tokens.cjs"],
        env=os.environ | {"NODE_PATH": str(NPM)},
        input=json.dumps(texts),
        text=True,
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def recorded(name: str) -> str:
    """All that a recorded program printed."""
    events = [json.loads(line) for line in (FIXTURES / f"{name}.cast").read_text().splitlines()[1:]]
    return "".join(data for _, kind, data in events if kind == "o")


# promise: output-11
async def test_recorded_programs_cost_no_more_than_the_text_that_a_person_would_have_read(workspace):
    shell = await workspace.session(dimensions={"cols": 80, "rows": 24})
    await shell.run("true")
    page = (REPOSITORY / "docs/text-format.md").read_text()
    texts, rows = [], []
    for name in PROGRAMS:
        raw = recorded(name)
        Path(workspace.project / name).write_bytes(raw.encode())
        # The recording has the terminal's own line ends. How its last line ends, and that apt ends three with CR LF, are facts.
        answer = await shell.run(f"stty -onlcr; cat {name}; stty onlcr")
        assert answer.exit == 0, answer.text
        answer = replace(answer, text=LINE_ENDS.sub("", answer.text))
        texts += [raw, ESCAPES.sub("", raw), (FIXTURES / f"{name}.text").read_text(), answer.output, answer.text]
    # The tokenizer takes half a second to start.
    counts = iter(tokens(*texts))
    for name, *of_one in zip(PROGRAMS, *[counts] * 5, strict=True):
        of_raw, stripped, read, output, whole = of_one
        rows.append(f"| {name} | {of_raw:,} | {stripped:,} | {read:,} | {output:,} | {whole - output} |")
        assert output <= read, rows[-1]
        assert whole - output <= 10, rows[-1]
    print("\n".join(rows))
    missing = [row for row in rows if row not in page]
    assert not missing, "docs/text-format.md tells other figures than these:\n" + "\n".join(missing)


# promise: output-11
async def test_the_envelope_of_a_small_answer_is_small(workspace):
    await workspace.terminal("true")
    answer = await workspace.terminal("echo hello")
    hello, whole = tokens("hello\n", answer.text)
    assert answer.text == "hello\n[exit 0]"
    assert whole - hello <= 8


# promise: output-11
async def test_the_tools_that_a_model_is_shown_fit_their_budget(workspace):
    tools = (await workspace.agent.client.list_tools()).tools
    # Hosts give a model the name, the description and the parameters; hints and titles are for the host.
    shown = [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in tools]
    compact = {"ensure_ascii": False, "separators": (",", ":")}
    listed = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    told, whole, terminal = tokens(*(json.dumps(what, **compact) for what in (shown, listed, shown[-2])))
    print(f"shown to a model: {told} tokens, {terminal} for `terminal` alone; tools/list: {whole}")
    assert shown[-2]["name"] == "terminal"
    assert told <= 2_500
    assert whole <= 3_000


# promise: output-11
async def test_the_tools_for_agents_that_write_code_fit_a_smaller_budget(machine):
    async with machine.another_agent("--tools", "coding") as agent:
        tools = (await agent.client.list_tools()).tools
    shown = [{"name": t.name, "description": t.description, "parameters": t.input_schema} for t in tools]
    [told] = tokens(json.dumps(shown, ensure_ascii=False, separators=(",", ":")))
    print(f"shown to a model: {told} tokens")
    assert told <= 1_800


# promise: output-11
async def test_a_line_of_a_repl_costs_ten_tokens_of_facts(workspace):
    await workspace.terminal("python3 -q")
    answers = [await workspace.terminal(f"{i} * {i}", is_input=True) for i in range(26)]
    assert [answer.output.splitlines()[-2] for answer in answers] == [str(i * i) for i in range(26)]
    counts = tokens(*(text for answer in answers for text in (answer.text.rpartition("\n")[2], answer.text)))
    facts, whole = counts[::2], sum(counts[1::2])
    print(f"26 lines of python: {whole} tokens, of which {sum(facts)} are facts; the most in one answer: {max(facts)}")
    assert max(facts) <= 10, [answer.text for answer in answers]
    await workspace.terminal("exit()", is_input=True)
