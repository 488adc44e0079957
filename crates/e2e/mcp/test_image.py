"""The image of ptyd, built by podman from the Dockerfile, without a registry, and used as a container."""

import asyncio
import json
import re
import subprocess

import pytest

from containers import Podman
from mcp_client import CALL_SECONDS, PTYD, REPOSITORY

DOCKERFILE = REPOSITORY / "Dockerfile"


@pytest.fixture
def podman(tmp_path):
    """podman with a storage of its own."""
    podman = Podman(tmp_path)
    try:
        yield podman
    finally:
        podman.end()


def build(podman: Podman, target: str, *packages: str) -> str:
    """Builds a target of the Dockerfile upon these packages, with the binary of the tests."""
    base, image, context = podman.imports_base(*packages), f"localhost/ptyd:{target}", podman.folder / "context"
    context.mkdir()
    # Each container has a copy of the image, and the symbols of a debug binary are most of it.
    subprocess.run(["strip", "-o", context / "ptyd", PTYD], check=True)
    # Only in Docker's format an image has a health check.
    options = ["--format", "docker", "--isolation", "chroot", "--layers=false", "--target", target, "--tag", image]
    arguments = ["--build-arg", f"BUILD={base}", "--build-arg", f"BASE={base}"]
    podman.does("build", *options, *arguments, "--file", str(DOCKERFILE), str(context))
    return image


async def test_the_image_serves_as_an_ordinary_user_reaps_and_keeps_output(podman):
    image = build(podman, "full", "git", "openssl")
    start = ["run", "--detach", "--name", "one", "--volume", "state:/var/lib/ptyd", image, "serve", "--listen", "127.0.0.1:0"]

    def inside(*words):
        return podman.does("exec", "one", *words)

    async def is_healthy():
        """The image's own check, until it succeeds."""
        async with asyncio.timeout(CALL_SECONDS):
            while podman.run("healthcheck", "run", "one").returncode != 0:
                assert podman.does("inspect", "one", "--format", "{{.State.Running}}") == "true", podman.run("logs", "one").stderr

    podman.does(*start)
    await is_healthy()
    made = json.loads(inside("ptyd", "new", "--name", "kept", "--json"))
    ran = json.loads(inside("ptyd", "run", "--session", "kept", "--json", "id -un; id -u; git --version | cut -d ' ' -f 1; false | true"))
    assert (ran["output"], ran["pipestatus"], ran["boundary"]) == ("ptyd\n7893\ngit\n", [1, 0], "attested"), ran
    # Nothing of the image is this user's to change, besides its home and the volume.
    writable = inside("bash", "-c", "for place in / /usr /usr/local/bin/ptyd /etc/passwd; do [ -w $place ] && echo $place; done; true")
    assert writable == ""
    # Process 1 reaps a program that has lost its parent.
    inside("bash", "-c", "for _ in 1 2 3; do sleep 0 & done; exec true")
    async with asyncio.timeout(CALL_SECONDS):
        while re.search(r"\bZ", states := inside("ps", "-eo", "stat,ppid,args")):
            pass
    assert states.splitlines()[1].split(None, 2)[1:] == ["0", "tini -- ptyd serve --listen 127.0.0.1:0"], states
    # The server ends with the container, at once and well, and the output of its sessions stays.
    podman.does("stop", "--time", str(int(CALL_SECONDS)), "one")
    assert podman.does("inspect", "one", "--format", "{{.State.ExitCode}}") == "0"
    podman.does("rm", "one")
    podman.does(*start)
    await is_healthy()
    assert "7893\n" in inside("ptyd", "logs", made["id"])
    [ended] = json.loads(inside("ptyd", "ls", "--all", "--json"))
    assert (ended["id"], ended["status"]) == (made["id"], "terminated"), ended
    # A server that does not answer is not healthy.
    inside("mv", "/var/lib/ptyd/ptyd.sock", "/var/lib/ptyd/away")
    assert podman.run("healthcheck", "run", "one").returncode != 0


def test_the_slim_image_has_a_shell_and_no_git(podman):
    image = build(podman, "slim")
    said = podman.does("run", "--rm", image, "run", "echo ${BASH_VERSINFO[0]}; id -un; command -v git || echo no git")
    assert re.fullmatch(r"\d+\nptyd\nno git", said), said
