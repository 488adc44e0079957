"""`get_terminal_output` counts what it leaves out, all of which can be read, and tells an end to a client that awaits it."""

import asyncio
import os
import re
import signal
import sqlite3
from contextlib import closing

from mcp_client import CALL_SECONDS, watched


# promise: wait-6, output-12
async def test_the_newest_lines_of_a_command_say_what_is_omitted(workspace):
    session = await workspace.session()
    done = await session.run("seq 1 20")
    newest = await session.read(command_id=done.fact("command") or "c1", max_lines=3)
    omission, *lines = newest.output.splitlines()
    assert lines == ["18", "19", "20"], newest.text
    assert re.match(r"\[… [\d,]+ bytes omitted: lines 1–17; ", omission), newest.text
    assert newest.exit == 0
    await session.run("seq 1 20000")
    newest = await session.read(command_id="c2", max_lines=3)
    omission, *lines = newest.output.splitlines()
    assert (lines, "lines 1–19997;" in omission) == (["19998", "19999", "20000"], True), newest.text


# promise: output-12
async def test_lines_from_a_marker_on_are_pages_and_all_pages_are_the_output(workspace):
    session = await workspace.session()
    await session.run("echo before")
    start = (await session.read()).fact("next")
    await session.run("seq 1 30")
    await session.run("printf 'a\\n\\nb\\n'")

    async def pages(**what):
        """The pages of at most 4 lines, each from the marker of the one before."""
        since, is_more = start, True
        while is_more:
            page = await session.read(since=since, max_lines=4, **what)
            assert "omitted" not in page.text, page.text
            yield page.output.splitlines()
            since, is_more = page.fact("next"), any("more byte" in fact for fact in page.facts)

    for what in ({}, {"command_id": "c2"}):
        read = [page async for page in pages(**what)]
        whole = (await session.read(since=start, **what)).output
        assert [line for page in read for line in page] == whole.splitlines()
        assert [len(page) for page in read[:-1]] == [4] * (len(read) - 1)


# promise: output-12
async def test_lines_since_the_last_reading_are_pages_too(workspace):
    session = await workspace.session()
    await session.run("echo before")
    workspace.gate()
    await session.run("cat gate; seq 1 5", wait_for_completion=False)
    await workspace.open_gate("0\n")
    pages = [await session.read(since="last", timeout=60 if n == 4 else 0, max_lines=n) for n in (4, 2, 2)]
    pages = [page.output.splitlines() for page in pages]
    # The prompt with the typed line may have come before the last reading or after it.
    assert [line for page in pages for line in page if line.isdigit()] == list("012345"), pages
    assert [len(page) <= n for page, n in zip(pages, (4, 2, 2))] == [True] * 3, pages


# promise: wait-6, output-12
async def test_reading_on_through_a_command_comes_to_its_end_and_stops_there(workspace):
    session = await workspace.session()
    await session.run("seq 1 9000")
    await session.run("echo after")
    whole, since = "", "o:0"
    for _ in range(20):
        page = await session.read(command_id="c1", since=since)
        whole += page.output + "\n"
        since = page.fact("next")
        if not any("more byte" in fact for fact in page.facts):
            break
    assert whole.split() == [str(n) for n in range(1, 9001)]
    assert (await session.read(command_id="c1", since=since)).output == ""


# promise: wait-6, output-12
async def test_a_caller_that_waits_by_reading_learns_how_the_command_ended(workspace):
    session = await workspace.session()
    workspace.gate()
    begun = await session.run("cat gate; (exit 3)", wait_for_completion=False)
    assert begun.is_running, begun.text
    waits = asyncio.Event()

    async def hear(*_):
        waits.set()

    reading = asyncio.create_task(session.read(timeout=60, on_progress=hear))
    async with asyncio.timeout(CALL_SECONDS):
        await waits.wait()
    await workspace.open_gate()
    ended = await reading
    assert (ended.exit, ended.fact("command")) == (3, "c1"), ended.text


async def test_a_screen_that_stands_still_is_not_a_silence_of_thirty_seconds(workspace):
    watching = await workspace.agent.terminal("less +F /etc/hostname", timeout=5)
    assert "full-screen" in " ".join(watching.facts), watching.text
    assert "no new output" not in watching.text
    await workspace.agent.terminal("C-c", is_input=True)
    await workspace.agent.terminal("q", is_input=True)


# promise: wait-6, output-12
async def test_a_read_of_long_output_shows_commands_as_they_were_given(workspace):
    session = await workspace.session()
    await session.run("echo p1")
    await session.run("seq 1 20000")
    look = await session.read()
    assert "__ptyd" not in look.text, look.text[:500]
    assert "seq 1 20000" in look.text


async def test_zeros_are_binary_output(workspace):
    session = await workspace.session()
    done = await session.run("head -c 2000 /dev/zero; echo END")
    assert re.match(r"\[… binary output among [\d,]+ bytes, beginning .*\]\nEND$", done.output), done.text


# promise: ask-5
async def test_a_line_that_is_typed_at_the_prompt_is_waited_for(workspace):
    session = await workspace.session()
    typed = await session.type("echo ty''ped\n", timeout=60)
    assert "typed" in typed.output, typed.text
    slow = await session.type("sleep 1; echo sl''ow\n", timeout=60)
    assert ("slow" in slow.output, slow.facts[0]) == (True, "idle"), slow.text
    reads = await session.type("cat\n", timeout=60)
    assert "wants input" in reads.facts, reads.text
    await session.press("C-d")


async def test_lines_of_the_raw_view_are_refused_and_not_forgotten(workspace):
    session = await workspace.session()
    await session.run("seq 1 20")
    refused = await session.read(view="raw", max_lines=3)
    assert (refused.is_error, "omit one of the two" in refused.text) == (True, True), refused.text


# promise: output-4
async def test_a_page_within_a_long_line_ends_between_two_characters(workspace):
    session = await workspace.session()
    await session.run("python3 -c \"print('x' + 'é' * 40000)\"")
    page, told, is_within = await session.read(since="o:0"), "", False
    while page.output:
        told += page.output
        assert "\\x" not in page.text, page.text[-200:]
        is_within |= told.endswith("é")
        page = await session.read(since=page.fact("next"))
    assert is_within


# promise: wait-6, output-12
async def test_two_clients_of_one_user_read_on_from_their_own_positions_also_in_the_next_server(workspace):
    async with workspace.another_agent() as other:
        mine = await workspace.session()
        theirs = other.at(mine.id)
        await mine.run("echo one")
        await mine.read(since="last")
        assert "one" in (await theirs.read(since="last")).output
        await mine.run("echo t$((1+1))")
        assert "t2" in (await theirs.read(since="last")).output
        assert "t2" not in (await theirs.read(since="last")).output
        workspace.gate()
        begun = await mine.run("cat gate; echo late", wait_for_completion=False)
        assert begun.is_running
        await workspace.open_gate()
        told = await theirs.read(since="last", wait_for="^late", timeout=60)
        # A server that is killed before it has written the position down shows the output once more, and loses none.
        with closing(sqlite3.connect(f"file:{workspace.state / 'store.db'}?mode=ro", uri=True)) as store:
            async with asyncio.timeout(CALL_SECONDS):
                while (int(told.next.removeprefix("o:")),) not in store.execute("SELECT read_to FROM looks").fetchall():
                    await other.client.list_tools()
        with watched([workspace.server()]) as ends:
            os.kill(workspace.server(), signal.SIGKILL)
            await ends()
        assert "late" in (await mine.read(since="last")).output, "the other client has read it, this one has not"
        assert "late" not in (await theirs.read(since="last")).output


# promise: output-13
async def test_a_search_gives_the_newest_matches_first_below_their_commands(workspace):
    session = await workspace.session()
    # The typed lines are not to match: they stand behind the prompt, outside of commands.
    await session.run("echo FAI''LED old")
    await session.run("echo fine")
    await session.run("printf 'FAI''LED one\\nok\\nFAI''LED two\\n'")
    newest = await session.read(search="FAILED")
    command = "printf 'FAI''LED one\\nok\\nFAI''LED two\\n'"
    headings = re.findall(r"^(c\d+) \"(.*)\":$", newest.text, re.M)
    assert headings == [("c3", command.replace("\\", "\\\\")), ("c1", "echo FAI''LED old")], newest.text
    assert re.findall(r"^\d+: (.*)$", newest.text, re.M) == ["FAILED one", "FAILED two", "FAILED old"]
    part = await session.read(search="FAILED", max_lines=1)
    assert re.findall(r"^\d+: (.*)$", part.text, re.M) == ["FAILED two"]
    assert part.facts[0].startswith("newest 1 of 3 matching lines in "), part.text
    # From a position on, a search goes forward.
    pages = await session.read(search="FAILED", since="o:0", max_lines=2)
    assert re.findall(r"^\d+: (.*)$", pages.text, re.M) == ["FAILED old", "FAILED one"]
    rest = await session.read(search="FAILED", since=pages.fact("next"))
    assert re.findall(r"^\d+: (.*)$", rest.text, re.M) == ["FAILED two"]
