"""The packages that `cargo xtask package` makes of the tests' own binary, each installed from its file alone into an empty home."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from mcp_client import CALL_SECONDS, PTYD, Workspace, free_port
from prometheus import needed
from test_other_clients import NODE, TARGET

pytestmark = pytest.mark.not_confined("installing is not a session's work")

XTASK = PTYD.with_name("xtask")
PYTHON_WHEELS = Path("/usr/share/python-wheels")
SH = shutil.which("sh")
UV = shutil.which("uv") or TARGET / "uv/bin/uv"
VERSION = subprocess.run([PTYD, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
PROCESSOR = os.uname().machine
NPM_PROCESSOR, DEBIAN = {"x86_64": ("x64", "amd64"), "aarch64": ("arm64", "arm64")}[PROCESSOR]
ARCHIVE = f"ptyd-{VERSION}-{PROCESSOR}-linux"


def packaged(*words, repository: str | None = None, succeeds=True) -> str:
    """`cargo xtask package` runs; its words are returned."""
    env = {name: value for name, value in os.environ.items() if name != "GITHUB_REPOSITORY"}
    # The hatchling of the suite, beside its Python.
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    if repository:
        env["GITHUB_REPOSITORY"] = repository
    done = subprocess.run([XTASK, "package", *words], env=env, capture_output=True, text=True, timeout=CALL_SECONDS)
    assert (done.returncode == 0) == succeeds, done.stderr
    return done.stdout + done.stderr


def run(machine, *words, **more) -> str:
    """A person runs a program on a machine, and reads its output."""
    done = subprocess.run(words, env=machine.env, cwd=machine.project, capture_output=True, text=True, timeout=CALL_SECONDS, **more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


async def first_answer(machine, *program) -> str:
    """The answer to an agent's first command, from `ptyd mcp` of this program."""
    async with machine.lines("--detach", "0", program=program) as lines:
        await lines.initialize()
        answer = await lines.ask("tools/call", {"name": "terminal", "arguments": {"command": "echo ready; (exit 3)"}})
    return answer["result"]["content"][0]["text"]


def checks(machine, *program) -> list:
    """The checks of this program's `ptyd doctor`, and their results."""
    done = subprocess.run([*program, "doctor", "--json"], env=machine.env, cwd=machine.project, capture_output=True, timeout=CALL_SECONDS)
    return [(check["name"], check["state"]) for check in json.loads(done.stdout)]


def npx(machine, made):
    """npm alone: one command installs and starts."""
    machine.env["PATH"] = f"{Path(needed('npm')).parent}:{machine.env['PATH']}"
    files = (made / f"ptyd-linux-{NPM_PROCESSOR}-{VERSION}.tgz", made / f"ptyd-{VERSION}.tgz")
    return "npx", "--offline", "--yes", *(f"--package={file}" for file in files), "--", "ptyd"


def uvx(machine, made):
    """uv alone: one command installs and starts."""
    [wheel] = made.glob("*.whl")
    return UV, "tool", "run", "--offline", "--from", wheel, "ptyd"


def pip(machine, made):
    """pip alone, in an empty environment."""
    [wheel] = made.glob("*.whl")
    run(machine, machine.home / "venv/bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check", wheel)
    return (machine.home / "venv/bin/ptyd",)


def deb(machine, made):
    """Debian's own program, into an empty root."""
    run(machine, "dpkg", "--extract", made / f"ptyd_{VERSION}_{DEBIAN}.deb", machine.home / "root")
    return (machine.home / "root/usr/bin/ptyd",)


def script(machine, made):
    """The script that installs the archive."""
    said = run(machine, "sh", made / "install.sh")
    assert f"installed: ptyd {VERSION} in {machine.home}/.local/bin/ptyd" in said
    return (machine.home / ".local/bin/ptyd",)


# promise: package-1
async def test_each_package_installs_from_its_file_alone_and_answers(workspace, tmp_path):
    stripped, made = tmp_path / "ptyd", tmp_path / "made"
    # A debug binary is mostly symbols.
    subprocess.run(["strip", "-o", stripped, PTYD], check=True)
    begun = time.monotonic()
    packaged("--fast", stripped, made)
    making = time.monotonic() - begun
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=made, check=True, capture_output=True)
    sums = {line.split()[1] for line in (made / "SHA256SUMS").read_text().splitlines()}
    assert sums == {file.name for file in made.iterdir() if not file.name.startswith(".")} - {"SHA256SUMS"}
    # The newest glibc that the binary asks for is the one that the packages name.
    symbols = subprocess.run(["readelf", "--version-info", "--wide", stripped], capture_output=True, text=True, check=True).stdout
    newest = max(tuple(map(int, one.split("."))) for one in re.findall(r"GLIBC_(\d+\.\d+)", symbols))
    assert [file.name for file in made.glob("*.whl")] == [f"ptyd-{VERSION}-py3-none-manylinux_{newest[0]}_{newest[1]}_{PROCESSOR}.whl"]
    needs = subprocess.run(["dpkg-deb", "--field", made / f"ptyd_{VERSION}_{DEBIAN}.deb", "Depends"], capture_output=True, text=True)
    assert f"libc6 (>= {newest[0]}.{newest[1]})" in needs.stdout

    known, bare = checks(workspace, PTYD), None
    for install in (None, script, deb, npx, uvx, pip):
        machine = Workspace()
        try:
            if install is pip:
                # To copy Debian's pip into the environment would take longer than all the rest.
                machine.env |= {"PYTHONPATH": str(wheel)} if (wheel := next(PYTHON_WHEELS.glob("pip-*.whl"), None)) else {}
                run(machine, "python3", "-m", "venv", *(["--without-pip"] if wheel else []), machine.home / "venv")
            begun = time.monotonic()
            program = install(machine, made) if install else (PTYD,)
            answer = await first_answer(machine, *program)
            took = time.monotonic() - begun
            assert answer.startswith("ready\n[exit 3 · "), answer
            await machine.detached()
            assert checks(machine, *program) == known
            # Both read, pack or unpack the same bytes, on the same machine at the same load.
            assert took <= 2 * making, f"{took:.2f} s, and all packages were made in {making:.2f} s"
            bare = bare or took
            how = install.__name__ if install else "the binary"
            print(f"{how}: first answer after {took:.2f} s: {took / bare:.1f} × the binary's, {took / making:.2f} × making the packages")
            await machine.close()
        finally:
            machine.remove()


WAITS = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
print("up", flush=True)
signal.sigwait([signal.SIGTERM])
print("told", flush=True)
raise SystemExit(5)
"""


@pytest.mark.parametrize("node", [NODE, "/usr/bin/node"])
# promise: package-1
def test_the_launcher_of_npm_passes_on_words_input_codes_and_signals(tmp_path, node):
    needed(node)
    modules = tmp_path / "node_modules"
    binary = modules / f"@ptyd/linux-{NPM_PROCESSOR}/bin/ptyd"
    binary.parent.mkdir(parents=True)
    launcher = modules / "ptyd/ptyd.js"
    launcher.parent.mkdir()
    shutil.copy(Path(__file__).parents[3] / "packages/npm/ptyd.js", launcher)
    binary.write_text('#!/bin/sh\nread -r line\nprintf "%s|" "$0" "$@" "$line"\n[ "$1" = stay ] && kill -s "$2" $$\nexit 7\n')
    binary.chmod(0o755)
    for words, code in ((["a b", ""], 7), (["stay", "TERM"], -15), (["stay", "KILL"], -9)):
        done = subprocess.run([node, launcher, *words], input="typed\n", capture_output=True, text=True, timeout=CALL_SECONDS)
        assert (done.stdout, done.returncode) == ("|".join([str(binary), *words, "typed", ""]), code), done.stderr
    # An older Node does not end by these, but says so as a shell does. A newer one hands on that it ignores SIGPIPE.
    for signal, codes in (("PIPE", (7, 141)), ("USR1", (-10, 138))):
        done = subprocess.run([node, launcher, "stay", signal], input="typed\n", capture_output=True, text=True, timeout=CALL_SECONDS)
        assert done.returncode in codes, done
    # A signal to the launcher reaches the binary, which ends in its own way.
    binary.write_text(f"#!{sys.executable}\n{WAITS}")
    with subprocess.Popen([node, launcher], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "up\n"
        process.terminate()
        assert (process.stdout.read(), process.wait(CALL_SECONDS)) == ("told\n", 5)
    shutil.rmtree(modules / "@ptyd")
    done = subprocess.run([node, launcher], capture_output=True, text=True, timeout=CALL_SECONDS)
    assert done.returncode == 1 and f"no package @ptyd/linux-{NPM_PROCESSOR}" in done.stderr


def archived(folder: Path, processor: str, text: str) -> Path:
    """An archive with a script in place of the binary."""
    tree = folder / f"ptyd-{VERSION}-{processor}-linux"
    tree.mkdir(parents=True)
    (tree / "ptyd").write_text(text)
    (tree / "ptyd").chmod(0o755)
    with tarfile.open(folder / f"{tree.name}.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.add(tree, tree.name)
    shutil.rmtree(tree)
    return folder / f"{tree.name}.tar.gz"


# promise: package-2
async def test_the_script_installs_nothing_that_the_checksums_do_not_name(machine, tmp_path):
    release = tmp_path / "a release"
    archive = archived(release, PROCESSOR, "#!/bin/sh\necho 1.2.3\n")
    packaged("--index", release)
    prefix, script = machine.home / "a prefix", release / "install.sh"
    checked = subprocess.run([needed("shellcheck"), script], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout

    def install(*words, code=0, **env):
        env = {name: str(value) for name, value in (machine.env | env).items() if value is not None}
        done = subprocess.run([SH, script, *words], env=env, cwd=machine.project, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    assert f"installed: 1.2.3 in {prefix}/bin/ptyd" in install("--prefix", prefix)
    assert f'export PATH="{prefix}/bin:$PATH"' in install("--prefix", prefix)
    # A second release over the first.
    archived(release, PROCESSOR, "#!/bin/sh\necho 1.2.4\n")
    assert "the SHA-256 of" in install("--prefix", prefix, code=1)
    assert run(machine, prefix / "bin/ptyd") == "1.2.3\n"
    packaged("--index", release)
    assert "installed: 1.2.4" in install("--prefix", prefix)
    assert [file.name for file in (prefix / "bin").iterdir()] == ["ptyd"]
    # A third one does not start, and the second stays.
    archived(release, PROCESSOR, "#!/bin/sh\nexit 1\n")
    packaged("--index", release)
    assert "does not start here: nothing was installed" in install("--prefix", prefix, code=1)
    assert run(machine, prefix / "bin/ptyd") == "1.2.4\n"
    assert [file.name for file in (prefix / "bin").iterdir()] == ["ptyd"]
    archived(release, PROCESSOR, "#!/bin/sh\necho 1.2.5\n")
    packaged("--index", release)
    # A machine with few programs, and a user without a home.
    few, temporary = tmp_path / "few", tmp_path / "temporary"
    few.mkdir()
    temporary.mkdir()
    for program in ("uname", "mktemp", "grep", "tar", "gzip", "mkdir", "cp", "chmod", "mv", "rm"):
        (few / program).symlink_to(shutil.which(program))
    assert "sha256sum is not here: nothing" in install("--prefix", prefix, code=1, PATH=few)
    (few / "sha256sum").symlink_to(shutil.which("sha256sum"))
    assert "HOME is not set" in install(code=1, HOME=None)
    assert "installed: 1.2.5" in install("--prefix", prefix, PATH=few, HOME=None, TMPDIR=temporary)
    # A signal comes during a download.
    (few / "curl").write_text(f"#!{SH}\nkill -s TERM $PPID\n")
    (few / "curl").chmod(0o755)
    install("--prefix", prefix, "--from", "http://127.0.0.1", code=1, PATH=few, TMPDIR=temporary)
    assert not list(temporary.iterdir())
    (release / "SHA256SUMS").write_text("")
    assert f"SHA256SUMS does not name {archive.name}: nothing was installed" in install("--prefix", prefix, code=1)
    assert "cannot be fetched" in install("--from", f"http://127.0.0.1:{free_port()}", code=1)
    assert "--prefix takes a value" in install("--prefix", code=1)
    assert not (machine.home / ".local/bin").exists()
    # The first half of a script that breaks off changes nothing, wherever it breaks.
    text = script.read_text()
    for end in range(0, text.rindex("\n}\n"), 97):
        subprocess.run(["sh", "-s", "--", "--prefix", machine.home / "half"], input=text[:end], text=True, env=machine.env, capture_output=True)
    assert not (machine.home / "half").exists()


# promise: package-2
def test_the_formula_and_the_registrys_entry_name_the_files_of_the_release(tmp_path):
    archives = [archived(tmp_path, processor, processor) for processor in ("x86_64", "aarch64")]
    packaged("--index", tmp_path, repository="someone/ptyd")
    sums = dict(reversed(line.split()) for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    assert set(sums) == {*(archive.name for archive in archives), "install.sh", "ptyd.rb", "server.json"}
    address = f"https://github.com/someone/ptyd/releases/download/v{VERSION}"
    formula = (tmp_path / "ptyd.rb").read_text()
    named = re.findall(r'on_(\w+) do\n +url "(.*)"\n +sha256 "(.*)"\n', formula)
    assert named == [(on, f"{address}/{file.name}", sums[file.name]) for on, file in zip(("intel", "arm"), archives, strict=True)]
    entry = json.loads((tmp_path / "server.json").read_text())
    assert (entry["name"], entry["version"], len(entry["description"]) <= 100) == ("io.github.someone/ptyd", VERSION, True)
    assert {one["version"] for one in entry["packages"]} == {VERSION}
    assert f"from='{address}'" in (tmp_path / "install.sh").read_text()
    for text in (formula, (tmp_path / "install.sh").read_text(), json.dumps(entry)):
        assert not re.search("@[A-Z]+@", text)


# promise: package-2
def test_only_a_binary_of_this_version_becomes_a_package(tmp_path):
    assert "is not a binary of ptyd" in packaged(__file__, tmp_path / "made", succeeds=False)
    assert not list((tmp_path / "made").iterdir())
    said = packaged(shutil.which("true"), tmp_path / "made", succeeds=False)
    assert "and the sources are" in said, said
