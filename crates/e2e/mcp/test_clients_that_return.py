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
