"""A session's name stands wherever its id does, and an unknown one is answered with the sessions there are."""


async def test_a_name_is_taken_for_the_id_and_an_unknown_one_names_the_sessions(workspace):
    session = await workspace.session(name="build server")
    named = workspace.agent.at("build server")
    assert (await named.run("echo hello")).output == "hello"
    assert "hello" in (await named.read()).output
    assert (await workspace.terminal("echo $PPID $$", session_id="build server")).exit == 0
    unknown = await workspace.agent.at("server").run("echo no")
    assert (unknown.is_error, unknown.text.startswith('no session server; live: ')) == (True, True), unknown.text
    assert f"{session.id} (build server)" in unknown.text
    malformed = await workspace.agent.at("s0-nope").run("echo no")
    assert f"{session.id} (build server)" in malformed.text


async def test_a_name_has_one_session_and_the_refusal_names_it(workspace):
    session = await workspace.session(name="build server")
    twice = await workspace.agent.call("start_terminal_session", name="build server")
    assert (twice.is_error, session.id in twice.text, "already named build server" in twice.text) == (True, True, True), twice.text


async def test_the_list_shows_the_commands_and_no_known_facts(workspace):
    session = await workspace.session(name="web")
    await session.run("cat > 'a \"file\"'")
    [line] = [line for line in (await workspace.agent.call("list_terminal_sessions")).text.splitlines() if session.id in line]
    assert line.startswith(f'[{session.id} · name "web" · input wanted · command c1 "cat > \'a \\"file\\"\'" · bash · '), line
    assert " · owner " not in line
