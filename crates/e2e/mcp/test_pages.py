"""Every command and snippet of the pages runs: README.md, CONTRIBUTING.md and docs/, except the decisions."""

import asyncio
import functools
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import websockets
from mcp import Client, StdioServerParameters, stdio_client
from client_packages import TypeScript, python_env, run
from mcp_client import CALL_SECONDS, PTYD, REPOSITORY, hindrance
from pages import PAGES, Page, blocks_of, prose_of, put_programs, shape_of, spans_of, text_of

pytestmark = pytest.mark.not_confined("the pages say themselves what is confined")

# A command, or the first line of another block, and the reason why it is not run.
NOT_RUN = {
    "cargo install --locked --path crates/cli      # builds ptyd in a few minutes and puts it into ~/.cargo/bin": "it builds ptyd",
    "cargo install --locked --path crates/cli": "it builds ptyd",
    "cargo xtask release                  # builds for glibc 2.17, into target/release-packages": "it builds ptyd; test_packages.py "
    "makes the packages",
    "npm publish --access public ptyd-linux-x64-0.1.0.tgz  # then the one for arm64, and ptyd-0.1.0.tgz last": "it needs an account",
    "cargo run --release -- serve": "it builds ptyd",
    "cargo xtask test --quick    # needs only Rust and a linker: a minute, and six for the first build": "it runs this suite",
    "journal: recover a torn tail": "a commit message is not a command",
    "docker compose --file deploy/compose.yaml up --detach": "test_compose.py starts the same without Docker",
    "docker compose --file deploy/compose.yaml logs setup     # shows the token of your team": "test_compose.py reads this token",
    "docker compose --file deploy/compose.yaml exec ptyd-1 ptyd ls": "it needs Docker; test_image.py runs ptyd in a container",
    "kubectl apply --kustomize deploy/kubernetes": "it needs a cluster; test_kubernetes.py checks these files",
    'kubectl --namespace=ptyd create secret generic ptyd-fleet --from-literal=fleet-key="$(openssl rand -hex 32)"': "it needs a cluster",
    "ssh -N -L 7893:127.0.0.1:7893 HOST": "it needs another machine",
    'claude mcp add --scope user --transport http ptyd-http http://127.0.0.1:7893/mcp --header "Authorization: Bearer $TOKEN"': "it needs "
    "Claude Code",
    "claude plugin marketplace add ./": "it needs Claude Code; test_plugin.py runs the parts",
    "claude plugin install ptyd@ptyd": "it needs Claude Code; test_plugin.py runs the parts",
    "map $http_upgrade $connection_upgrade {": "test_reachable.py runs it",
    "# The nodes of ptyd, for nginx.conf: one line in `any` and one upstream for each.": "test_nodes.py runs this file",
    "# nginx in front of several nodes of ptyd: each request with an id goes to the node in the id.": "test_nodes.py runs this file",
    "# HAProxy in front of several nodes of ptyd: each request with an id goes to the node in the id.": "test_nodes.py runs this file",
    "# Caddy in front of several nodes of ptyd: each request with an id goes to the node in the id.": "test_nodes.py runs this file",
    "python3 conformance/run.py --install    # pinned versions of the peers, into target/conformance": "it installs other products",
    "python3 conformance/run.py --write      # a quarter of an hour": "it takes a quarter of an hour; test_scoreboard.py plays the cases on ptyd",
    "python3 conformance/soak.py --minutes 20 --sessions 50 --rate 40 --kill-server 4 --json soak.json": "it takes twenty minutes; "
    "test_soak.py plays a short one",
    "python3 conformance/soak.py --commands 100000 --sessions 200": "it takes an hour",
    "answer   = body facts": "crates/server/src/mcp/text/tests.rs asserts each form of this grammar",
}

STORIES = {}


def story(name):
    """The function tells how the blocks of this page run."""

    def told(function):
        STORIES[name] = function
        return function

    return told


def needs(program):
    """Skips the page where a program that it uses is not installed."""
    if shutil.which(program) is None:
        pytest.skip(f"not installed: {program}")


@pytest.fixture(scope="module")
def programs():
    """A folder with ptyd and the programs that the pages use."""
    with tempfile.TemporaryDirectory(prefix="ptyd-") as folder:
        put_programs(Path(folder))
        yield Path(folder)


@pytest.mark.parametrize("name", [page for page in PAGES if blocks_of(page)])
async def test_every_block_of_the_page_runs(machine, programs, tmp_path_factory, name):
    assert name in STORIES, f"nothing runs the blocks of {name}"
    page = Page(name, machine, programs, NOT_RUN)
    page.temporary = tmp_path_factory.getbasetemp()
    try:
        await STORIES[name](page)
        assert not page.blocks, f"nothing runs {page.blocks[0].first_line!r} of {name}"
    finally:
        await page.end()


@story("README.md")
async def readme(page: Page):
    page.machine.project = page.home
    async with page.machine.another_agent("--detach", "0") as agent:
        for call in page.next("text").text.split("\n\n"):
            asked, _, shown = call.partition("\n")
            answer = await agent.call("terminal", **json.loads(asked.removeprefix("terminal ")))
            # The page's machine has no Python.
            text = re.sub(r" · python [^ \]]+", "", answer.text)
            assert shape_of(text) == shape_of(shown), call
    # The next server is one of the page's own.
    await page.end()
    # Nobody is here to ask.
    page.replaced["ptyd setup"] = "ptyd setup --yes"
    await page.run()
    page.leave("sh")
    await page.run("console")
    await page.run("console")
    [configuration] = [span for span in spans_of(text_of(page.name)) if span.startswith('{"mcpServers"')]
    server = json.loads(configuration)["mcpServers"]["ptyd"]
    assert server["command"] == "/path/to/ptyd"
    parameters = StdioServerParameters(command=str(PTYD), args=server["args"], env=page.machine.env, cwd=page.home)
    async with Client(stdio_client(parameters)) as client:
        assert len((await client.list_tools()).tools) == 8


@story("CONTRIBUTING.md")
async def contributing(page: Page):
    assert os.access(REPOSITORY / ".ci/run", os.X_OK)
    page.leave("sh")
    page.leave("text")


@story("docs/install.md")
async def install(page: Page):
    for _ in range(3):
        page.leave("sh")


@story("docs/audit.md")
async def audit(page: Page):
    needs("jq")
    page.ptyd("new", "--name", "build")
    page.ptyd("run", "--session", "build", "(exit 3)", code=3)
    token = page.ptyd("token", "new", "ann", "--unconfined")
    made = page.ask("/terminals", {}, token)[1]
    page.ask(f"/terminals/{made['id']}/execute", {"command": "rm -r nothing", "waitForCompletion": True}, token)
    # The end of a command is on record some moments later.
    async with asyncio.timeout(CALL_SECONDS):
        while len((await asyncio.to_thread(page.ptyd, "audit", "--action", "end")).splitlines()) < 2:
            pass
    outputs = await page.run()
    assert all(outputs), outputs
    # Only `--json` prints JSON. The last command prints the commands that failed.
    assert [output.splitlines()[0].startswith("{") for output in outputs] == [False, False, True, False, False]
    assert [line.split("\t")[2] for line in outputs[4].splitlines()] == ["3", "1"]
    log = page.machine.root / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(str(log))
        syslog.settimeout(CALL_SECONDS)
        page.replaced["/dev/log"] = str(log)
        await page.run()
        page.ptyd("run", "true")
        assert b"ptyd" in syslog.recv(1 << 16)


@story("docs/watching.md")
async def watching(page: Page):
    page.ptyd("new", "--name", "build")
    every, one = [output.splitlines()[0] for output in await page.run()]
    link = rf"{page.address}/#ticket=[\w-]{{43}}"
    assert re.fullmatch(link, every), every
    assert re.fullmatch(rf"{link}&session={page.ptyd('ls', '--quiet')}", one), one


@story("docs/command-line.md")
async def command_line(page: Page):
    page.ptyd("new", "--name", "demo")
    await page.run("console")


@story("docs/clients.md")
async def clients(page: Page):
    # Nobody is here to ask.
    page.replaced["ptyd setup"] = "ptyd setup --yes"
    _, shown, _ = await page.run()
    assert "claude mcp add --scope user ptyd -- " in shown
    # The prefix beneath the shell tool.
    await page.run()
    # The plugin.
    page.leave("sh")
    # Over HTTP.
    page.leave("sh")


def clients_of(page: Page, after: str = ""):
    """The blocks of the page as programs of both languages in its home, the text behind the last one in TypeScript, and how to run one."""
    env = python_env(page.machine.env) | {"PTYD_BIN": str(PTYD)}
    blocks = [page.next(block.language) for block in list(page.blocks)]
    typescript = [page.here(block.text) for block in blocks if block.language == "ts"]
    typescript[-1] += after
    name = Path(page.name).stem.replace("-", "")
    files = TypeScript(page.temporary).compiled(**{f"{name}{n}": text for n, text in enumerate(typescript)})

    async def told(*command) -> str:
        """The output of a program in the page's home."""
        return await asyncio.to_thread(run, *command, cwd=page.home, **env)

    return files, [page.here(block.text) for block in blocks if block.language == "python"], told


@story("docs/client-libraries.md")
async def client_libraries(page: Page):
    from test_other_clients import NODE

    (page.home / "app").mkdir()
    # The back end of the page is a program of its own.
    viewer = """
import { Ptyd } from "@ptyd/client";
const p = await Ptyd.connect();
const s = await p.open();
let shown = "";
await show((await s.info()).connection.socket, () => s.ticket("write"), (bytes) => {
  shown += new TextDecoder().decode(bytes);
  if (shown.includes("app")) void s.close();
});
"""
    files, programs, told = clients_of(page, viewer)
    first, dialogue, output = [await told(NODE, file) for file in files[:-1]]
    assert re.match(r"2 ls: .*no-such-file.*\n", first), first
    assert "made demo 1.0.0" in dialogue and "INT" in dialogue and "sleep 600" in dialogue
    assert "1\n2\n3\n" in output.replace("\r", ""), output
    # A page has no socket of this user, but the address of a server.
    page.ptyd("stop")
    page.ptyd("serve", "--background", "--listen", "127.0.0.1:0")
    await told(NODE, files[-1])
    first, dialogue, output, events = programs
    assert re.match(r"2 ls: .*no-such-file.*\n", await told(sys.executable, "-c", first))
    told_dialogue = await told(sys.executable, "-c", dialogue)
    assert "made demo 1.0.0" in told_dialogue and "INT" in told_dialogue and "sleep 600" in told_dialogue
    assert "1\n2\n3\n" in await told(sys.executable, "-c", output)
    assert await told(sys.executable, "-c", events) in ("command.started\n", "session.created\n", "command.completed\n")


@story("docs/recipes.md")
async def recipes(page: Page):
    needs("git")
    needs("npm")
    from test_other_clients import NODE

    # The package that is installed is a folder; nothing is fetched.
    (page.home / "express").mkdir()
    (page.home / "express/package.json").write_text('{"name": "express", "version": "5.0.0"}')
    page.replaced["npm install express"] = "npm install ../express --offline --no-audit --no-fund"
    page.machine.env["npm_config_update_notifier"] = "false"
    files, [tools, asking, server, fixture], told = clients_of(page)
    programs = [[(NODE, file), (sys.executable, "-c", text)] for file, text in zip(files, (tools, asking, server), strict=True)]
    (page.home / "test_page.py").write_text(fixture)
    for command in programs[0]:
        assert await told(*command) == 'first\n echo "it\'s built"\n\nit\'s built\n\n'
    for command in programs[1]:
        made, installed, package = (await told(*command)).split(" ", 2)
        assert (made, installed) == ("0", "0")
        assert json.loads(package) == {"name": "my-project", "dependencies": {"express": "file:../express"}}
    for command in programs[2]:
        output = await told(*command)
        assert output.startswith("200") and "Keyboard interrupt received, exiting." in output, output
    pytest_of_page = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:hypothesispytest", "test_page.py")
    assert "1 passed" in await told(sys.executable, *pytest_of_page)


@story("docs/operations.md")
async def operations(page: Page):
    needs("curl")
    listens, checked, _ = await page.run()
    assert "listens" in listens and "attested its end" in checked
    checked, works, _ = await page.run()
    assert "attested its end" in checked and works.splitlines()[-1] == "it works"
    assert "listens" in (await page.run())[0]
    # These commands are not run; test_compose.py starts the same services.
    assert await page.run() == []
    # systemd does not run in tests; crates/e2e/tests/it/service.rs takes its part.
    _, units, _ = await page.run()
    assert "Type=notify" in units and not (page.config.parent / "systemd").exists()
    await page.run()
    page.ptyd("run", "true")
    page.toml("config.toml")
    shown = page.ptyd("config", "show")
    assert re.search(r"^soft_timeout = 10\.0 .*config\.toml$", shown, re.MULTILINE), shown
    assert (page.ptyd("run", "exit 7", code=7), page.ptyd("run", "(exit 7)", code=7)) == ("exit", "")
    page.replaced["127.0.0.1:7893"] = page.address.removeprefix("http://")
    # Refusals are counted from the first one on.
    page.ptyd("kill", "nobody", code=3)
    [metrics] = await page.run()
    described = set(re.findall(r"`((?:ptyd|process)_[a-z_]+)[`{]", text_of(page.name)))
    shown = {line.split()[0].partition("{")[0] for line in metrics.splitlines() if line[0] != "#"}
    assert described == {re.sub("_(bucket|count|sum)$", "", name) for name in shown}
    del page.replaced["127.0.0.1:7893"]
    kept = json.loads(page.ptyd("new", "--json"))["id"]
    await page.run()
    [*_, restored] = await page.run()
    assert re.search(rf"^{kept} +\S+ +ended ", restored, re.MULTILINE), restored
    # Here, too, the first server again.
    await page.end()
    page.ptyd("run", "true")
    everything, did, *_ = await page.run()
    assert kept in everything and " rest " in did
    assert kept in (await page.run())[-1]
    await page.run()
    assert not page.machine.state.exists() and not page.config.exists()


@story("docs/policy.md")
async def policy(page: Page):
    page.toml("config.toml")
    page.toml("policy.toml")
    page.ptyd("run", "ls /")
    page.ptyd("run", "touch /tmp/x", code=4)
    await page.run()
    example = (page.config / "policy.toml").read_text()
    page.toml("policy.toml")
    page.ptyd("policy", "test", "--policy", "careful", "rm a", code=4)
    (page.config / "policy.toml").write_text(example)

    # The user decides on what an agent asks.
    token = page.ptyd("token", "new", "ada", "--unconfined")
    project = page.home / "src/app"
    project.mkdir(parents=True)

    def refused() -> tuple[str, str]:
        """A session, and the approval that its command waits for."""
        made = page.ask("/terminals", {"cwd": str(project)}, token)[1]
        status, answer = page.ask(f"/terminals/{made['id']}/execute", {"command": "make install > log"}, token)
        assert (status, answer["code"]) == (403, "approval_needed"), answer
        return made["id"], re.search(r"a0-[a-z0-9]{10}", answer["detail"])[0]

    session, approval = refused()
    page.replaced |= {"a0-k3v9q2m7xa": approval, "s0-nvjfqu6wm8": session, "/home/ada/src/app": str(project)}
    await page.run("console")
    page.ptyd("approvals", "allow", "--always", refused()[1])
    remembered = (page.config / "policy.remembered.toml").read_text()
    block = page.toml("policy.remembered.toml")
    user = page.ptyd("run", "whoami")
    assert shape_of(remembered.partition("\n\n")[2]) == shape_of(block.replace('by = "ada"', f'by = "{user}"'))


@story("docs/profiles.md")
async def profiles(page: Page):
    if why := hindrance("sandbox"):
        pytest.skip(why)
    project = page.home / "src/web"
    (project / ".venv/bin").mkdir(parents=True)
    (project / ".venv/bin/activate").write_text("")
    (page.home / ".local/bin").mkdir(parents=True)
    page.toml("config.toml")
    await page.run()
    (page.config / "policy.toml").write_text('[policies.dev]\ndefault = "allow"\nunproven = "allow"\n')
    for name in "DEPLOY_KEY", "GCP_ACCOUNT":
        page.ptyd("secret", "set", name, stdin="correct horse")
    page.toml("config.toml")
    told = page.ptyd("run", "--profile", "web", "pwd; umask; echo $RUST_LOG $COLUMNS $DEPLOY_KEY; cat $GCP_ACCOUNT_FILE")
    assert told.split() == [str(project), "0027", "info", "120", "*" * 13, "*" * 13]
    await page.run()
    page.machine.env["key"] = "correct horse"
    await page.run()
    page.toml("config.toml")
    page.ptyd("run", "--cwd", str(project), "true")
    # Its image would come from a registry.
    page.toml("config.toml")


@story("docs/proxy.md")
async def proxy(page: Page):
    for _ in range(3):
        await page.run()
    page.leave("nginx")


@story("docs/scaling.md")
async def scaling(page: Page):
    # The machine's own addresses; nothing else has to be free.
    page.replaced["10.0.0.2:7893"] = "127.0.0.2:0"
    await page.run()
    for language, file in ("nginx", "nginx-nodes.conf"), ("nginx", "nginx.conf"), ("haproxy", "haproxy.cfg"), ("caddy", "Caddyfile"):
        assert page.blocks[0].text + "\n" == (REPOSITORY / "deploy" / file).read_text(), f"the page shows another {file}"
        page.leave(language)
    await page.run()
    assert json.loads(page.ptyd("new", "--json"))["id"].startswith("s2-")
    assert await page.run() == []
    for settings in ("redis",), ("redis", "fleet_key"):
        if "fleet_key" in settings:
            await page.run()
        page.toml("config.toml")
        shown = page.ptyd("config", "show")
        for name in settings:
            assert re.search(rf'^{name} = ".*config\.toml$', shown, re.MULTILINE), shown


@story("docs/rest.md")
async def rest(page: Page):
    needs("curl")
    page.ptyd("new")
    page.replaced["127.0.0.1:7893"] = page.address.removeprefix("http://")
    outputs = await page.run()
    done, ended = json.loads(outputs[3]), json.loads(outputs[4])
    assert (done["exitCode"], done["pipestatus"], ended["status"]) == (0, [1, 0], "terminated"), done
    [*_, shown] = await page.run()
    assert "<html" in shown


@story("docs/performance.md")
async def performance(page: Page):
    await page.run()


@story("docs/comparison.md")
async def comparison(page: Page):
    await page.run()


@story("docs/text-format.md")
async def text_format(page: Page):
    page.leave("abnf")
    page.machine.env["PTYD_JOURNAL_BYTES_MAX"] = "1MiB"
    async with page.machine.another_agent("--detach", "0") as agent:
        session = await agent.session()

        def omission(answer) -> str:
            """The line about what the answer leaves out."""
            lines = [as_form(line) for line in answer.output.splitlines() if "bytes omitted" in line]
            assert len(lines) == 1, lines
            return lines[0]

        def as_form(line: str) -> str:
            """A line in which all numbers and all sessions are the same."""
            return re.sub(r"[\d,]*\d", "9", re.sub(r"s0-(…|[a-z0-9]{10})", "s…", line))

        long = await session.run("seq 100000 140000")
        flood = await session.run("seq 2000000 2600000")
        flood = await session.read(command_id=flood.fact("command"))
        gone = await session.read(command_id=long.fact("command"))
        assert omission(long) == as_form(page.next("text").text)
        assert [omission(flood), omission(gone)] == [as_form(line) for line in page.next("text").text.splitlines()]


@story("docs/threat-model.md")
async def threat_model(page: Page):
    await page.run()


@story("docs/websocket.md")
async def websocket(page: Page):
    # Skips where there is no Node.
    from test_other_clients import NODE, NPM

    (page.home / "a-file-to-list").touch()
    session = json.loads(page.ptyd("new", "--json"))
    posted, answered = page.next("http").text.splitlines()
    [method, route, body] = re.match(r"(\S+) +(\S+) +(\{.*\})", posted).groups()
    [status, fields] = re.match(r"(\d+) +(\{.*\})", answered).groups()

    def ticket() -> str:
        """A new ticket, as the page says."""
        answer = page.ask(route, json.loads(body.replace("<id>", session["id"])))
        assert (method, answer[0]) == ("POST", int(status))
        assert answer[1] | {"ticket": "<ticket>"} == json.loads(fields)
        return answer[1]["ticket"]

    def node(program: str) -> None:
        """Runs JavaScript, which ends by itself once it has seen what it should."""
        known = {"ticket": ticket(), "session": session, "socket": session["connection"]["socket"]}
        new = {name: value for name, value in known.items() if f"const {name} " not in program}
        constants = "".join(f"const {name} = {json.dumps(value)}\n" for name, value in new.items())
        # Node has its own WebSocket from version 22 on.
        given = f"globalThis.WebSocket ??= require('ws').WebSocket\n{constants}"
        env = page.machine.env | {"NODE_PATH": str(NPM)}
        subprocess.run([NODE, "-e", f"{given}{program}"], env=env, check=True, timeout=CALL_SECONDS)

    for line in page.next("js").text.splitlines():
        node(f"const made = {line.split(' // ')[0]}\nmade.onopen = () => process.exit(0)")
    [by_token] = [span for span in spans_of(text_of(page.name)) if span.startswith('{"type": "auth", "token"')]
    token = (page.machine.state / "token").read_text().strip()
    for message in page.next("json").text, by_token:
        message = message.replace("<ticket>", ticket()).replace("<token>", token)
        async with websockets.connect(session["connection"]["socket"]) as viewer:
            await viewer.send(message)
            async with asyncio.timeout(CALL_SECONDS):
                first = json.loads(await viewer.recv())
            assert first["type"] in ("status", "output")
    terminal = "let seen = ''\nconst terminal = { write: (text) => (seen += text).includes('a-file-to-list') && process.exit(0) }"
    node(f"{terminal}\n{page.next('js').text}")


# ---- what stands outside of blocks ----

# Options of ptyd that no help shows, as docs/command-line.md says.
HIDDEN = {("serve",): "--detached", (): "--runtime-dir"}
# Options of other programs.
FOREIGN = {"--from", "--map-gw", "--norc", "--prefix", "--protocol-era", "--upload-pac"}
XTASK = re.search(r"const USAGE: &str = \"\\\n(.*?)\";\n", (REPOSITORY / "xtask/src/main.rs").read_text(), re.DOTALL)[1]
XTASK_OPTIONS = set(re.findall("--[a-z-]+", XTASK))


@functools.cache
def helps() -> dict[tuple[str, ...], str]:
    """The help of every command of ptyd, by its words."""
    found, open_commands = {}, [(), ("schema",)]
    for command in open_commands:
        # Not `--help`, which `ptyd run` could take for a part of its command.
        found[command] = subprocess.run([PTYD, "help", *command], capture_output=True, text=True, check=True).stdout
        _, _, listed = found[command].partition("\nCommands:\n")
        names = re.findall(r"^  ([a-z-]+)", listed.partition("\n\n")[0], re.MULTILINE)
        open_commands += [(*command, name) for name in names if name != "help"]
    for command, option in HIDDEN.items():
        found[command] += f"\n  {option}\n"
    return found


def has(text: str, option: str, value: str) -> bool:
    """Whether a help has this option, and each value of a list such as `all|terminal`."""
    values = [one for one in value.split("|") if "|" in value and re.fullmatch("[a-z-]+", one)]
    is_there = re.search(rf"^ +(-\w, )?{option}(?![\w-])", text, re.MULTILINE)
    return bool(is_there) and all(re.search(rf"\b{one}\b", text) for one in values)


def commands_in(text: str) -> list[list[str]]:
    """The commands of a line, each as its words."""
    # A bar between two values is not a pipe.
    lexer = shlex.shlex(re.sub(r"(?<=\w)\|(?=\w)", r"\\|", text), posix=True, punctuation_chars=";|&()<>")
    lexer.whitespace_split = True
    commands = [[]]
    try:
        for word in lexer:
            if set(word) <= set(";|&()<>"):
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:
        # It has a single apostrophe, as a sentence may have.
        pass
    return commands


def wrong_in(words: list[str], bases: list[tuple[str, ...]]) -> list[str]:
    """The options among these words that none of these commands has, and none below them."""
    for word in words:
        longer = [(*base, word) for base in bases if (*base, word) in helps()]
        if not longer:
            break
        bases = longer
    texts = [text for command, text in helps().items() if any(command[: len(base)] == base for base in bases)]
    options = [(word.partition("=")[0].rstrip("…"), value) for word, value in zip(words, [*words[1:], ""], strict=True)]
    options = [(option, value) for option, value in options if re.match("--?[a-z]", option)]
    return [option for option, value in options if not any(has(text, option, value) for text in texts)]


def test_the_table_of_blocks_that_do_not_run_names_nothing_else():
    blocks = [block for page in PAGES for block in blocks_of(page)]
    commands = {command for block in blocks for command, _ in block.commands}
    assert NOT_RUN.keys() <= commands | {block.first_line for block in blocks}


@pytest.mark.parametrize("name", PAGES)
def test_every_block_of_the_page_is_fenced_and_names_its_language(name):
    assert all(block.language for block in blocks_of(name))
    assert not re.search(r"\n\n    \S", prose_of(name)), "a block is indented and not fenced"


@pytest.mark.parametrize("name", PAGES)
def test_every_command_that_the_page_names_exists_with_its_options(name):
    # `from ptyd import Ptyd` is not a command.
    blocks = [block for block in blocks_of(name) if block.language not in ("python", "ts")]
    lines = [line for block in blocks for line in block.text.splitlines()]
    for line in lines + spans_of(prose_of(name)):
        for words in commands_in(line):
            for at, word in enumerate(words):
                # `claude mcp add ptyd -- …` gives a server its name.
                if Path(word).name == "ptyd" and words[at + 1 :] and words[at + 1] != "--":
                    command = words[at + 1 :]
                    assert (command[0],) in helps() or command[0] == "COMMAND" or command[0].startswith("-"), line
                    assert not wrong_in(command, [()]), f"ptyd has no {wrong_in(command, [()])}: {line}"
            if words[:2] == ["cargo", "xtask"]:
                assert re.search(rf"^cargo xtask {words[2]}\b", XTASK, re.MULTILINE), line
                assert {word for word in words if word.startswith("--")} <= XTASK_OPTIONS, line
            elif len(words) > 1 and (words[0],) in helps() and words[1].startswith("--"):
                assert not wrong_in(words, [()]), f"ptyd has no {wrong_in(words, [()])}: {line}"


@pytest.mark.parametrize("name", PAGES)
def test_every_option_that_the_page_names_alone_exists(name):
    for span in spans_of(prose_of(name)):
        [words, *_] = commands_in(span)
        if words and words[0].startswith("--") and words[0].partition("=")[0] not in FOREIGN | XTASK_OPTIONS:
            assert not wrong_in(words, [()]), f"nothing has the option {span}"
    # The rows of a table that begin with commands describe these.
    for row in re.findall(r"^\| (`ptyd .*)", prose_of(name), re.MULTILINE):
        names, *cells = re.split(r"(?<!\\)\|", row)
        bases = [tuple(word for word in span.split() if word != "ptyd") for span in spans_of(names)]
        bases = [base for base in bases if base in helps()]
        for words in (commands_in(span)[0] for span in spans_of("|".join(cells))):
            if bases and words and (words[0].startswith("--") or any((*base, words[0]) in helps() for base in bases)):
                assert not wrong_in(words, bases), f"{bases} have no {wrong_in(words, bases)}"


@pytest.mark.parametrize("name", PAGES)
def test_every_object_that_the_page_shows_is_json(name):
    for span in spans_of(prose_of(name)):
        if span.startswith('{"'):
            # An ellipsis stands for any value.
            assert isinstance(json.loads(span.replace("…", "null")), dict), span


@pytest.mark.parametrize("name", PAGES)
def test_every_route_that_the_page_names_exists(name):
    document = json.loads((REPOSITORY / "schema/openapi.json").read_text())
    routes = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    # The page for a password is not a part of REST.
    routes = {re.sub("{.*?}", "{}", route) for route in routes} | {"GET /ask/{}", "POST /ask/{}"}
    for span in spans_of(prose_of(name)):
        if re.fullmatch(r"(GET|POST|PUT|DELETE) (…|/)\S*", span):
            route = re.sub("{.*?}|(?<=/)[A-Z_]+", "{}", span.partition("?")[0].replace("…", "/terminals/{}"))
            assert route in routes, span


async def test_every_example_of_a_tool_is_a_call_that_works(workspace):
    tools = re.findall(r"^## `(\w+)`\n\n.*Example: (\{.*\})\.", text_of("docs/tools.md"), re.MULTILINE)
    assert [tool for tool, _ in tools] == re.findall(r"^## `(\w+)`", text_of("docs/tools.md"), re.MULTILINE)
    workspace.gate()
    (workspace.project / "ask").write_text("read -sp Password: word\necho\nread -p 'ftp> ' command\n")
    # Each is there before its tool is called.
    before = {
        "get_terminal_output": "read -r <gate; echo ready in 3 ms",
        "send_input_to_terminal": "bash ask",
    }
    for tool, example in tools:
        arguments = json.loads(example.replace('"/app"', json.dumps(str(workspace.project))))
        if "session_id" in arguments:
            session = await workspace.session()
            arguments["session_id"] = session.id
            if tool in before:
                await session.run(before[tool], wait_for_completion=False)
            if tool == "get_terminal_output":
                opened = asyncio.create_task(workspace.open_gate())
        answer = await workspace.agent.call(tool, **arguments)
        assert not answer.is_error and not answer.is_timed_out, f"{tool}: {answer.text}"
    await opened
