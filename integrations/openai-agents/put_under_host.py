"""Makes ptyd the sandbox of the SDK's own tests, in the place of the one that runs programs on this machine."""

import agents.sandbox.sandboxes
from agents.sandbox.sandboxes import unix_local
from ptyd_agents import PtydSandboxClient, PtydSandboxClientOptions, PtydSandboxSession, PtydSandboxSessionState


class Client(PtydSandboxClient):
    """The client of the tests says which variables of this process its programs get; a server gives its own."""

    def __init__(self, *, inherit_host_environment: bool = True, host_environment_allowlist: object = None, **options: object) -> None:
        super().__init__(**options)


for module in unix_local, agents.sandbox.sandboxes:
    vars(module).update(
        UnixLocalSandboxClient=Client,
        UnixLocalSandboxClientOptions=PtydSandboxClientOptions,
        UnixLocalSandboxSession=PtydSandboxSession,
        UnixLocalSandboxSessionState=PtydSandboxSessionState,
    )
