"""The TypeScript client: its types are the document's, its package installs and is small in a page, and no disconnect costs a byte or
runs a command twice."""

import asyncio
import gzip
import json
import os
import random
import re
import shutil
from base64 import b64decode
from urllib.parse import urlsplit

import pytest

from client_packages import CUTS, KILLS, TRANSPORTS, TYPESCRIPT, TypeScript, everything, import_python, node_and_npm, run, shown
from cut_proxy import CutProxy
from mcp_client import PTYD, REPOSITORY

BUNDLE_MAX = 12_000
ptyd = import_python()
NODE, NPM = node_and_npm()


@pytest.fixture
def typescript(tmp_path_factory):
    """The built package."""
    return TypeScript(tmp_path_factory.getbasetemp())


# promise: client-1
def test_the_types_are_made_from_the_document(tmp_path):
    shutil.copytree(TYPESCRIPT, tmp_path / "clients/typescript", ignore=shutil.ignore_patterns("node_modules"))
    (tmp_path / "schema").symlink_to(REPOSITORY / "schema")
    (tmp_path / "node_modules").symlink_to(NPM)
    made = run(NODE, "clients/typescript/make-types.mjs", cwd=tmp_path)
    assert made == (TYPESCRIPT / "src/types.ts").read_text(), "run `npm run types` in clients/typescript"


# promise: client-1
def test_the_package_is_small_in_a_page_and_installs_without_anything_else(typescript, tmp_path):
    program = typescript.folder / "page.js"
    program.write_text('import * as all from "@ptyd/client";\nObject.assign(globalThis, all);\n')
    bundle = "import { rolldown } from %s;\nconst made = await rolldown({ input: %s, platform: 'browser' });\n" % (
        json.dumps(str(NPM / "rolldown/dist/index.mjs")),
        json.dumps(str(program)),
    )
    (tmp_path / "bundle.mjs").write_text(bundle + "await made.write({ file: 'bundle.js', minify: true, codeSplitting: false });\n")
    run(NODE, "bundle.mjs", cwd=tmp_path)
    page = (tmp_path / "bundle.js").read_bytes()
    size = len(gzip.compress(page, 9))
    print(f"{len(page)} bytes, {size} compressed")
    assert b"Viewer" in page and b"node:" not in page and size <= BUNDLE_MAX
    npm = {"npm_config_cache": str(tmp_path / "cache"), "npm_config_update_notifier": "false", "npm_config_offline": "true"}
    # The package builds itself, with the compiler that `npm install` in its folder brings.
    own = shutil.copytree(TYPESCRIPT, tmp_path / "own", ignore=shutil.ignore_patterns("node_modules", "dist"))
    (own / "node_modules").symlink_to(NPM)
    packed = run("npm", "pack", "--pack-destination", tmp_path, cwd=own, **npm)
    empty = tmp_path / "empty"
    empty.mkdir()
    run("npm", "install", "--no-audit", "--no-fund", tmp_path / packed.split()[-1], cwd=empty, **npm)
    installed = json.loads((empty / "node_modules/.package-lock.json").read_text())["packages"]
    assert list(installed) == ["node_modules/@ptyd/client"]
    exported = run(NODE, "--input-type=module", "-e", "import * as all from '@ptyd/client'; console.log(Object.keys(all))", cwd=empty)
    assert {"Ptyd", "Refused", "Unreachable", "Viewer"} <= set(re.findall(r"\w+", exported))


class Library:
    """The program `library.ts`, which works at a server, and what it has seen."""

    def __init__(self, typescript, served, url, silence, transports):
        [program] = typescript.compiled(library=(REPOSITORY / "crates/e2e/clients/library.ts").read_text())
        self.served, self.command = served, (NODE, program, url, served.token, served.root, silence, *transports)

    async def works(self, direct, half, whole):
        """Everything happened once, and every byte came."""
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(*map(str, self.command), stdin=pipe, stdout=pipe, limit=1 << 28)
        try:
            witness = await direct.session((await program.stdout.readline()).decode().strip())
            for enough in half, whole:
                # A program that ends too early has failed, and is not waited for.
                ends, waits = asyncio.ensure_future(program.wait()), asyncio.ensure_future(enough())
                await asyncio.wait((ends, waits), return_when=asyncio.FIRST_COMPLETED)
                assert waits.done() or waits.cancel() and not ends.done(), "the program failed"
                ends.cancel()
                program.stdin.write(b"\n")
            assert await program.stdout.readline() == b"worked\n"
            await witness.close()
            told = json.loads(await program.stdout.readline())
        finally:
            program.stdin.close()
            if program.returncode is None and not program.stdout.at_eof():
                program.kill()
            await program.wait()
        assert (self.served.root / "typed").read_text().split() == [str(n) for n in range(told["typed"])]
        assert (self.served.root / "ran").read_text().split() == [str(n) for n in range(told["ran"])]
        assert shown(b64decode(told["seen"])) == shown(await everything(witness))


@pytest.mark.parametrize("transport", TRANSPORTS)
# promise: client-2
async def test_a_thousand_disconnects_cost_no_byte_and_run_nothing_twice(served, typescript, transport):
    address, seed = urlsplit(served.url), random.randrange(1 << 32)
    print(f"seed {seed}")
    async with (
        CutProxy(address.hostname, address.port, seed) as proxy,
        ptyd.AsyncPtyd(f"http://{address.netloc}", served.token) as direct,
    ):
        library = Library(typescript, served, proxy.url, 300, [transport])
        await library.works(direct, lambda: proxy.suffered(CUTS // 2), lambda: proxy.suffered(CUTS))


# promise: client-2
async def test_a_command_runs_once_and_its_output_is_whole_though_the_server_is_killed(served, typescript):
    url = served.url.removesuffix("/mcp")
    async with ptyd.AsyncPtyd(url, served.token) as direct:

        async def kill():
            for _ in range(KILLS):
                await asyncio.to_thread(served.serve_again)
                # The next one lives until it has answered.
                await direct.sessions()

        await Library(typescript, served, url, 5000, TRANSPORTS).works(direct, kill, kill)


HAPPY = """
import { Ptyd } from "@ptyd/client";

await using p = await Ptyd.connect();  await using sh = await p.open({ cwd: "app" });
const r = await sh.run("pwd; (exit 3)", { timeout: "5m" });
if (r.code !== 3 || !r.output.endsWith("/app\\n")) throw new Error(JSON.stringify(r));
const quick = await sh.start("echo quick").end();
if (quick.output !== "quick\\n") throw new Error(JSON.stringify(quick));
const q = sh.start("read -p 'package name: ' n; echo made $n; sleep 600");  await q.waitFor(/package name/);
await q.type("demo\\r");  await q.waitFor("made demo");  await sh.keys("C-c");
let whole = "";
for await (const c of sh.output({ since: 0 })) whole += new TextDecoder().decode(c.bytes);
if (!whole.includes("made demo") || !(await sh.screen()).text.includes("made demo")) throw new Error(whole);
if ((await q.end()).code !== 130) throw new Error("C-c was lost");
// Output comes at once, however long one request may wait.
await using slow = await Ptyd.connect({ silence: "1h" });  await using there = await slow.open();
const asking = there.start("printf zero; sleep 0.2; printf one; read -r line; printf two");  let told = "";
for await (const bytes of asking.bytes()) {
  told += new TextDecoder().decode(bytes);
  if (told === "zeroone") await asking.type("\\n");
}
if (!/^zeroone\\s*two$/.test(told)) throw new Error(told);
// A command that ends at once has its output.
for (let n = 0; n < 20; n++) if ((await sh.start(`echo ${n}`).end()).output !== `${n}\\n`) throw new Error(`${n} is lost`);
// A refused command leaves the one before it as it is.
const before = sh.start("read -p 'and now? '");  await before.waitFor("and now?");
const code = await sh.run("true").then(() => "none", (refused) => refused.code);
if (code !== "session_busy") throw new Error(code);
await sh.type("\\r");  if ((await sh.waitEnd()).id !== (await before.started).id) throw new Error("another command");
for await (const _ of sh.output());
// Its session is gone: nobody knows its code.
if ((await sh.run("kill -9 $$")).code !== null) throw new Error("a code that nobody knows");
"""


# promise: client-1
async def test_the_first_program_finds_the_server_of_the_command_line_and_starts_it(machine, typescript):
    (machine.project / "app").mkdir()
    [program] = typescript.compiled(happy=HAPPY)
    await asyncio.to_thread(run, NODE, program, cwd=machine.project, **machine.env, PTYD_BIN=str(PTYD))
    # The machine may have these, too.
    for other, *words in (("bun", "run"), ("deno", "run", "--allow-all")):
        if found := os.environ.get(f"PTYD_TEST_{other.upper()}") or shutil.which(other):
            await asyncio.to_thread(run, found, *words, program, cwd=machine.project, **machine.env, PTYD_BIN=str(PTYD))
