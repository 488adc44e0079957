"""The variables of sessions that a model starts: no pager waits for a key, unless the user wants one."""

SHOW = 'echo "$PAGER $GIT_PAGER $MANPAGER"'


# promise: profile-1
async def test_a_models_sessions_have_no_pager_whatever_the_user_has(machine):
    async with machine.another_agent(PAGER="less", GIT_PAGER="less") as agent:
        machine.agent = agent
        assert (await agent.terminal(SHOW)).output == "cat cat cat"
        assert (await (await agent.session()).run(SHOW)).output == "cat cat cat"
        most = await agent.session(env={"PAGER": "most"})
        assert (await most.run(SHOW)).output == "most cat cat"
        await machine.end_sessions()


async def test_a_profile_named_agent_replaces_them(machine):
    config = machine.project / "config.toml"
    config.write_text("[profiles.agent]\nenv = { MINE = '1' }\n")
    async with machine.another_agent(PTYD_CONFIG=str(config), PAGER="less", GIT_PAGER="", MANPAGER="") as agent:
        machine.agent = agent
        assert (await agent.terminal('echo "$PAGER $GIT_PAGER $MANPAGER $MINE"')).output == "less   1"
        await machine.end_sessions()
