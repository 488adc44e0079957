"""A sandbox of the OpenAI Agents SDK whose programs run in terminals of ptyd."""

from __future__ import annotations

import io
import uuid
from pathlib import Path
from typing import Literal

from agents.sandbox.errors import (
    ExecTimeoutError,
    ExecTransportError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
)
from agents.sandbox.manifest import Manifest
from agents.sandbox.materialization import MaterializationResult
from agents.sandbox.session import Dependencies, Instrumentation, SandboxSession, SandboxSessionState
from agents.sandbox.session.base_sandbox_session import BaseSandboxSession
from agents.sandbox.session.pty_types import PtyExecUpdate
from agents.sandbox.session.runtime_helpers import RESOLVE_WORKSPACE_PATH_HELPER, RuntimeHelperScript
from agents.sandbox.session.sandbox_client import BaseSandboxClient, BaseSandboxClientOptions
from agents.sandbox.session.workspace_payloads import coerce_write_payload
from agents.sandbox.snapshot import SnapshotBase, SnapshotSpec, resolve_snapshot
from agents.sandbox.types import ExecResult, ExposedPortEndpoint, User
from agents.sandbox.util.tar_utils import UnsafeTarMemberError, validate_tar_bytes
from agents.sandbox.workspace_paths import sandbox_path_str
from ptyd import PtydError, TimedOut

from ._processes import Processes

__all__ = ["PtydSandboxClient", "PtydSandboxClientOptions", "PtydSandboxSession", "PtydSandboxSessionState"]

_DEFAULT_ROOT = Manifest().root


class PtydSandboxSessionState(SandboxSessionState):
    """The state that is kept of a sandbox while nobody uses it. It has no address and no token."""

    type: Literal["ptyd"] = "ptyd"
    # Whether the folder was made for this sandbox, and is removed with it.
    workspace_root_owned: bool = False


class PtydSandboxClientOptions(BaseSandboxClientOptions):
    """The options of a new sandbox."""

    type: Literal["ptyd"] = "ptyd"
    exposed_ports: tuple[int, ...] = ()


class PtydSandboxSession(BaseSandboxSession):
    """A folder on the machine of a server of ptyd, and the programs there."""

    state: PtydSandboxSessionState

    def __init__(self, *, state: PtydSandboxSessionState, url: str | None = None, token: str | None = None) -> None:
        self.state = state
        self._processes = Processes(url, token)
        self._is_running = False

    @classmethod
    def from_state(cls, state: PtydSandboxSessionState) -> PtydSandboxSession:
        """The sandbox of a state, at the server of the environment."""
        return cls(state=state)

    async def _prepare_backend_workspace(self) -> None:
        result = await self._processes.execute(["mkdir", "-p", "--", self.state.manifest.root], timeout=None)
        if result[0] != 0:
            raise WorkspaceArchiveWriteError(path=Path(self.state.manifest.root), context={"stderr": result[2].decode(errors="replace")})

    async def _apply_manifest(self, *, only_ephemeral: bool = False, provision_accounts: bool = True) -> MaterializationResult:
        await self.provision_manifest_accounts()
        return await super()._apply_manifest(only_ephemeral=only_ephemeral, provision_accounts=provision_accounts)

    async def provision_manifest_accounts(self) -> None:
        # The machine is the one of the server, and no account is made on it.
        if self.state.manifest.users or self.state.manifest.groups:
            raise ValueError("a sandbox of ptyd does not support manifest users or groups")

    async def _after_start(self) -> None:
        self._is_running = True

    async def _after_start_failed(self) -> None:
        await self._after_stop()

    async def _after_stop(self) -> None:
        self._is_running = False
        await self._processes.close()

    async def _shutdown_backend(self) -> None:
        await self._processes.close()

    async def running(self) -> bool:
        return self._is_running

    def _runtime_helpers(self) -> tuple[RuntimeHelperScript, ...]:
        return (RESOLVE_WORKSPACE_PATH_HELPER,)

    async def _validate_path_access(self, path: Path | str, *, for_write: bool = False) -> Path:
        return await self._validate_remote_path_access(path, for_write=for_write)

    async def _resolve_exposed_port(self, port: int) -> ExposedPortEndpoint:
        return ExposedPortEndpoint(host=self._processes.host, port=port, tls=False)

    async def _in_workspace(self, command: tuple[str | Path, ...]) -> list[str]:
        """The command in the folder of the sandbox, with the variables of the sandbox."""
        root = self.state.manifest.root
        variables = {**await self.state.manifest.environment.resolve(), "HOME": root}
        set_here = [f"{name}={value}" for name, value in variables.items()]
        return ["sh", "-c", 'cd -- "$1" && shift && exec env -- "$@"', "sh", root, *set_here, *map(str, command)]

    async def _exec_internal(self, *command: str | Path, timeout: float | None = None) -> ExecResult:
        try:
            code, output, errors = await self._processes.execute(await self._in_workspace(command), timeout=timeout)
        except TimedOut as error:
            raise ExecTimeoutError(command=command, timeout_s=timeout, cause=error) from error
        except (PtydError, OSError) as error:
            raise ExecTransportError(command=command, cause=error) from error
        if code is None:
            raise ExecTransportError(command=command, context={"reason": "nobody knows the exit code"})
        return ExecResult(stdout=output, stderr=errors, exit_code=code)

    def supports_pty(self) -> bool:
        return True

    async def pty_exec_start(
        self,
        *command: str | Path,
        timeout: float | None = None,
        shell: bool | list[str] = True,
        user: str | User | None = None,
        tty: bool = False,
        yield_time_s: float | None = None,
        max_output_tokens: int | None = None,
    ) -> PtyExecUpdate:
        words = await self._in_workspace(tuple(self._prepare_exec_command(*command, shell=shell, user=user)))
        return await self._processes.start(words, tty=tty, seconds=yield_time_s, max_tokens=max_output_tokens)

    async def pty_write_stdin(
        self, *, session_id: int, chars: str, yield_time_s: float | None = None, max_output_tokens: int | None = None
    ) -> PtyExecUpdate:
        process = self._resolve_pty_session_entry(pty_processes=self._processes.running, session_id=session_id)
        return await self._processes.write(session_id, process, chars, seconds=yield_time_s, max_tokens=max_output_tokens)

    async def pty_terminate_all(self) -> None:
        await self._processes.terminate_all()

    async def read(self, path: Path, *, user: str | User | None = None) -> io.IOBase:
        if user is not None:
            await self._check_read_with_exec(path, user=user)
        found = await self._validate_path_access(path)
        try:
            return io.BytesIO(await self._processes.read(sandbox_path_str(found)))
        except FileNotFoundError as error:
            raise WorkspaceReadNotFoundError(path=path, cause=error) from error
        except (PtydError, OSError) as error:
            raise WorkspaceArchiveReadError(path=path, cause=error) from error

    async def write(self, path: Path, data: io.IOBase, *, user: str | User | None = None) -> None:
        payload = coerce_write_payload(path=path, data=data)
        if user is not None:
            await self._check_write_with_exec(path, user=user)
        found = await self._validate_path_access(path, for_write=True)
        try:
            await self._processes.write_file(sandbox_path_str(found), payload.stream.read())
        except (PtydError, OSError) as error:
            raise WorkspaceArchiveWriteError(path=found, cause=error) from error

    async def persist_workspace(self) -> io.IOBase:
        root = self.state.manifest.root
        # The paths are names, and tar would take them for patterns.
        skipped = ["--no-wildcards", "--anchored"]
        skipped += [f"--exclude=./{path.as_posix()}" for path in sorted(self._persist_workspace_skip_relpaths())]
        try:
            code, packed, errors = await self._processes.execute(["tar", "-C", root, "--hard-dereference", *skipped, "-cf", "-", "."], timeout=None)
        except (PtydError, OSError) as error:
            raise WorkspaceArchiveReadError(path=Path(root), cause=error) from error
        if code != 0:
            raise WorkspaceArchiveReadError(path=Path(root), context={"exit_code": code, "stderr": errors.decode(errors="replace")})
        return io.BytesIO(packed)

    async def hydrate_workspace(self, data: io.IOBase) -> None:
        packed = self._checked(data)
        try:
            await self._processes.unpack(packed, self.state.manifest.root)
        except (PtydError, OSError) as error:
            raise WorkspaceArchiveWriteError(path=Path(self.state.manifest.root), cause=error) from error

    def _checked(self, data: io.IOBase) -> bytes:
        packed: bytes = data.read()
        try:
            validate_tar_bytes(packed, allow_external_symlink_targets=False)
        except UnsafeTarMemberError as error:
            context: dict[str, object] = {"reason": error.reason, "member": error.member}
            raise WorkspaceArchiveWriteError(path=Path(self.state.manifest.root), context=context, cause=error) from error
        return packed

    async def _restore_snapshot_into_workspace_on_resume(self) -> None:
        # An archive that cannot be restored costs no file of the folder.
        packed = self._checked(await self.state.snapshot.restore(dependencies=self.dependencies))
        await self._clear_workspace_root_on_resume()
        await self.hydrate_workspace(io.BytesIO(packed))


class PtydSandboxClient(BaseSandboxClient[PtydSandboxClientOptions | None]):
    """Makes sandboxes on the machine of the server at `url`, or of this user's own."""

    backend_id = "ptyd"
    supports_default_options = True

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        instrumentation: Instrumentation | None = None,
        dependencies: Dependencies | None = None,
    ) -> None:
        self._address = (url, token)
        self._instrumentation = instrumentation or Instrumentation()
        self._dependencies = dependencies

    async def create(
        self,
        *,
        snapshot: SnapshotSpec | SnapshotBase | None = None,
        manifest: Manifest | None = None,
        options: PtydSandboxClientOptions | None = None,
    ) -> SandboxSession:
        manifest = self._validate_manifest_for_create(manifest or Manifest())
        session_id = uuid.uuid4()
        is_owned = manifest.root == _DEFAULT_ROOT
        if is_owned:
            manifest = manifest.model_copy(update={"root": f"/tmp/ptyd-sandbox-{session_id}"}, deep=True)
        state = PtydSandboxSessionState(
            session_id=session_id,
            manifest=manifest,
            snapshot=resolve_snapshot(snapshot, str(session_id)),
            workspace_root_owned=is_owned,
            exposed_ports=options.exposed_ports if options else (),
        )
        return self._session(state)

    def _session(self, state: PtydSandboxSessionState) -> SandboxSession:
        url, token = self._address
        return self._wrap_session(PtydSandboxSession(state=state, url=url, token=token), instrumentation=self._instrumentation)

    async def delete(self, session: SandboxSession) -> SandboxSession:
        inner = session._inner
        if not isinstance(inner, PtydSandboxSession):
            raise TypeError("the sandbox is not one of ptyd")
        is_bare = True
        for mount, path in inner.state.manifest.ephemeral_mount_targets() if inner.state.workspace_root_owned else ():
            try:
                await mount.unmount(inner, path, Path("/"))
            except Exception:
                # Files that are mounted there belong to others.
                is_bare = False
        if is_bare and inner.state.workspace_root_owned:
            await inner._processes.execute(["rm", "-rf", "--", inner.state.manifest.root], timeout=None)
        await inner._processes.close()
        return session

    async def resume(self, state: SandboxSessionState) -> SandboxSession:
        if not isinstance(state, PtydSandboxSessionState):
            raise TypeError("the state is not one of ptyd")
        state.assert_path_grants_rebound()
        return self._session(state)

    def deserialize_session_state(self, payload: dict[str, object]) -> SandboxSessionState:
        return self._deserialize_session_state_payload(payload, PtydSandboxSessionState)
