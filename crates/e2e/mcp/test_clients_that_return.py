"""A client that returns has a new shell, and is told of the sessions that earlier clients have left behind."""


async def test_the_first_answer_names_the_sessions_that_a_client_has_left_behind(machine):
    async with machine.another_agent("--detach", "keep") as first:
        begun = await first.call("terminal", command="cd /tmp; sleep 300", timeout=0.3)
        assert begun.is_running, begun.text
        named = await first.session(name="idle")
        await named.run("cd /")
        async with machine.another_agent("--detach", "keep") as beside:
            said = await beside.call("terminal", command="echo beside")
            assert "earlier session" not in said.text, said.text
            await beside.at(said.session_id).terminate(force=True)
    async with machine.another_agent("--detach", "keep") as back:
        answer = await back.call("terminal", command="echo back")
        facts = [fact for fact in answer.facts if fact.startswith("earlier session")]
        assert facts == [
            f"earlier session {named.id} is idle in /",
            f'earlier session {begun.session_id} still runs "cd /tmp; sleep 300" in /tmp',
        ], answer.text
        assert "earlier session" not in (await back.call("terminal", command="echo again")).text
        machine.agent = back
        await machine.end_sessions()


async def test_a_continued_conversation_finds_its_shell_and_the_place_up_to_which_it_has_read(machine):
    conversation = {"CLAUDE_CODE_SESSION_ID": "0d7c3c1e-95a8-4d52-9a3e-2f1c6a7b8d90"}
    machine.gate()
    async with machine.another_agent("--detach", "60", **conversation) as first:
        await first.call("terminal", command="cd /tmp; secret=kept")
        running = await first.call("terminal", command="cat $OLDPWD/gate; echo end", timeout=0.3)
        assert running.is_running, running.text
        # A second process of the same conversation has a shell of its own.
        async with machine.another_agent("--detach", "0.1", **conversation) as beside:
            other = await beside.call("terminal", command="echo $secret; pwd")
            assert other.output == f"\n{machine.project}", other.text
    async with machine.another_agent("--detach", "0.1", **conversation) as back:
        await machine.open_gate()
        answer = await back.call("terminal", command="", timeout=60)
        assert answer.output == "opened\nend" and "earlier session" not in answer.text, answer.text
        answer = await back.call("terminal", command="echo $secret; pwd")
        assert answer.output == "kept\n/tmp", answer.text
        machine.agent = back
        await machine.end_sessions()
