"""A development server of npm's, in as few calls as it takes (terminal-management.md §5.3).

The packages are real; the server is on loopback and chooses its port. `test_structured.py` has the examples verbatim.
"""

import json
import re
import shutil
import urllib.request
from pathlib import Path

from fullscreen import needs
from test_other_clients import NODE, NPM


def with_npm(workspace) -> dict[str, str]:
    """An environment in which `npm` is npm and `node` the one that came with the packages."""
    folders = [str(Path(NODE).parent)] if "/" in NODE else []
    return {
        "PATH": ":".join([*folders, str(Path(shutil.which("npm")).parent), workspace.env["PATH"]]),
        "npm_config_update_notifier": "false",
    }


@needs("npm")
# promise: screen-5
async def test_a_development_server_is_there_when_its_one_call_answers(workspace):
    # Links to what is installed, in a folder of the project's own: vite also writes there.
    installed = workspace.project / "node_modules"
    (installed / ".bin").mkdir(parents=True)
    (installed / "vite").symlink_to(NPM / "vite")
    (installed / ".bin/vite").symlink_to("../vite/bin/vite.js")
    scripts = {"dev": "vite --host 127.0.0.1 --port 0"}
    (workspace.project / "package.json").write_text(json.dumps({"name": "shop", "type": "module", "scripts": scripts}))
    (workspace.project / "index.html").write_text('<!doctype html><script type="module" src="/main.ts"></script>\n')
    (workspace.project / "main.ts").write_text("export const answer: number = 6 * 7\n")
    session = await workspace.session(env=with_npm(workspace))

    started = await session.run("npm run dev", wait_for=r"http://127\.0\.0\.1:\d+/", timeout=60)

    assert (started.is_running, started.fact("matched") is not None) == (True, True), started.text
    url = re.search(r"http://127\.0\.0\.1:\d+/", started.output).group()
    with urllib.request.urlopen(f"{url}main.ts", timeout=60) as reply:
        assert (reply.status, reply.readline()) == (200, b"export const answer = 6 * 7;\n")
    # It goes on: it is read further from where it was, and its own keys are answered.
    (workspace.project / "index.html").write_text("<!doctype html><p>changed</p>\n")
    told = await session.read(since="last", wait_for="page reload index.html", timeout=60)
    assert "page reload index.html" in told.output
    ended = await session.type("q", end_with_newline=True, timeout=60)
    assert ended.exit == 0, ended.text
