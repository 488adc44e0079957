"""Makes ptyd the sandbox of the SDK's own tests, in the place of the one that runs programs on this machine."""

import agents.sandbox.sandboxes
from agents.sandbox.sandboxes import unix_local
from ptyd_agents import PtydSandboxClient, PtydSandboxClientOptions, PtydSandboxSession, PtydSandboxSessionState

for module in unix_local, agents.sandbox.sandboxes:
    vars(module).update(
        UnixLocalSandboxClient=PtydSandboxClient,
        UnixLocalSandboxClientOptions=PtydSandboxClientOptions,
        UnixLocalSandboxSession=PtydSandboxSession,
        UnixLocalSandboxSessionState=PtydSandboxSessionState,
    )
