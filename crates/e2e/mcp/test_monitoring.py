"""Prometheus and Grafana with the files of deploy/: the rules are tested, and they ask for metrics that a server has."""

import asyncio
import json
import os
import re
import signal
import subprocess
import urllib.request

import pytest
import yaml

from mcp_client import CALL_SECONDS, PTYD, REPOSITORY
from prometheus import Prometheus, needed

PROMETHEUS = REPOSITORY / "deploy/prometheus"
GRAFANA = REPOSITORY / "deploy/grafana"
TOKEN = "/var/lib/ptyd/public/token"
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))
ALERTS = {rule["alert"]: rule["expr"] for rule in yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"][0]["rules"]}


def promtool(*words, cwd=PROMETHEUS) -> str:
    """Runs promtool successfully, and gives its output."""
    done = subprocess.run([needed("promtool"), *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_alert_fires_when_it_should_and_not_otherwise(tmp_path):
    told = promtool("check", "rules", "alerts.yml")
    assert f"{len(ALERTS)} rules found" in told
    promtool("test", "rules", "alerts_test.yml")
    # Each alert has a series at which it fires, and one at which it does not.
    tested = [
        (of["alertname"], "exp_alerts" in of)
        for case in yaml.safe_load((PROMETHEUS / "alerts_test.yml").read_text())["tests"]
        for of in case["alert_rule_test"]
    ]
    assert set(tested) == {(alert, fires) for alert in ALERTS for fires in (True, False)}
    # The configuration names a token, which is not among the files.
    for file in PROMETHEUS.glob("*.yml"):
        (tmp_path / file.name).write_text(file.read_text().replace(TOKEN, "token"))
    (tmp_path / "token").touch()
    assert "is valid" in promtool("check", "config", "prometheus.yml", cwd=tmp_path)


def expressions() -> list[str]:
    """Every expression of the alerts and dashboards."""
    panels = [panel for file in DASHBOARDS for panel in json.loads(file.read_text())["panels"]]
    return [*ALERTS.values(), *(target["expr"] for panel in panels for target in panel["targets"])]


async def test_alerts_and_dashboards_ask_for_metrics_that_a_server_has(served):
    # Some metrics begin with the first command, or with the first refusal.
    served.ptyd("run", "true")
    with pytest.raises(subprocess.CalledProcessError):
        served.ptyd("kill", "nobody")
    request = urllib.request.Request(served.url.replace("/mcp", "/metrics"), headers={"Authorization": f"Bearer {served.token}"})
    with urllib.request.urlopen(request) as answer:
        samples = [line.partition(" ")[0] for line in answer.read().decode().splitlines() if not line.startswith("#")]
    names = {sample.partition("{")[0] for sample in samples}
    asked = {name for text in expressions() for name in re.findall(r"\b(?:ptyd|process)_[a-z_]+", text)}
    assert len(asked) >= 13 and asked <= names, asked - names
    # A series with the value of a label, such as a state, is there with this value.
    chosen = {text for expression in expressions() for text in re.findall(r'ptyd_[a-z_]+\{[a-z]+="[^"]+"\}', expression)}
    assert chosen and chosen <= set(samples), chosen - set(samples)


def test_a_dashboard_shows_the_data_source_that_is_provisioned():
    [source] = yaml.safe_load((GRAFANA / "provisioning/datasources/ptyd.yml").read_text())["datasources"]
    [provider] = yaml.safe_load((GRAFANA / "provisioning/dashboards/ptyd.yml").read_text())["providers"]
    assert provider["type"] == "file" and DASHBOARDS
    for file in DASHBOARDS:
        dashboard = json.loads(file.read_text())
        used = {panel["datasource"]["uid"] for panel in dashboard["panels"]}
        used |= {target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel["targets"]}
        assert used == {source["uid"]}
        # Panels lie side by side, and each says what it shows.
        places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
        assert len(set(places)) == len(places) == len({panel["id"] for panel in dashboard["panels"]})
        assert all(panel["title"] and panel["description"] for panel in dashboard["panels"])


@pytest.fixture
async def watched(served, tmp_path):
    """A server at which a Prometheus looks with a token that may only read."""
    token = served.ptyd("token", "new", "prometheus", "--scope", "read")
    (tmp_path / "token").write_text(token)
    texts = {file.name: file.read_text() for file in PROMETHEUS.glob("*.yml")}
    assert TOKEN in texts["prometheus.yml"]
    texts["prometheus.yml"] = texts["prometheus.yml"].replace(TOKEN, str(tmp_path / "token"))
    texts["nodes.yml"] = json.dumps([{"targets": [served.url.split("/")[2]], "labels": {"node": "1"}}])
    served.prometheus = Prometheus(tmp_path / "prometheus", texts)
    try:
        yield served
    finally:
        served.prometheus.end()


async def test_an_idle_node_raises_no_alert_and_one_that_is_gone_does(watched):
    prometheus = watched.prometheus
    [[seen]] = [[sample["value"][1]] for sample in await prometheus.samples('up{job="ptyd", node="1"} == 1')]
    assert seen == "1"
    watched.ptyd("run", "true")
    with pytest.raises(subprocess.CalledProcessError):
        watched.ptyd("kill", "nobody")
    # Each expression of the alerts and dashboards finds its series here, or compares one that is there.
    for text in expressions():
        await prometheus.samples(re.sub(r" [<>=]=? .*", "", text))
    # On a busy machine a scrape may come too late for its interval of 100 ms.
    async with asyncio.timeout(CALL_SECONDS):
        while await prometheus.alerts():
            pass
    watched.process.send_signal(signal.SIGSTOP)
    try:
        async with asyncio.timeout(CALL_SECONDS):
            while await prometheus.alerts() != {"PtydDown"}:
                pass
    finally:
        watched.process.send_signal(signal.SIGCONT)


# promise: log-1
async def test_each_log_line_is_one_json_object_whatever_a_caller_writes(machine):
    log = machine.root / "log"
    with log.open("wb") as stderr:
        server = machine.serve("--listen", "127.0.0.1:0", "--log-format", "json", "--slow-call", "0", stderr=stderr)
    try:
        forged = 'x"}\n{"level":"ERROR","message":"forged"}\u2028'
        refused = subprocess.run([PTYD, "new", "--name", forged], env=machine.env, capture_output=True, timeout=CALL_SECONDS)
        assert refused.returncode != 0
        machine.ptyd("kill", machine.ptyd("new", "--name", 'x"}{"level":"ERROR"}'))
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
        server.stdout.close()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert lines and all({"timestamp", "level", "target", "message"} <= line.keys() for line in lines), lines
    assert {line["level"] for line in lines} <= {"INFO", "WARN"} and any("slow" in line["message"] for line in lines), lines


async def test_a_server_on_demand_begins_a_new_log_file_when_the_old_one_is_full(machine):
    full = b"an earlier line\n" * (10 * 1024 * 1024 // 16)
    (machine.state / "server.log").write_bytes(full)
    async with machine.another_agent("--detach", "0") as machine.agent:
        await machine.terminal("true")
        assert (machine.state / "server.log.1").read_bytes() == full
        assert b"policies are read" in (machine.state / "server.log").read_bytes()
        # Panics and other programs write to the new file, too.
        stderr = os.readlink(f"/proc/{machine.server()}/fd/2")
        assert stderr == str(machine.state / "server.log")
        # A rotation failed half-way, and the full file has lost its name: the next line still begins a new file.
        os.truncate(machine.state / "server.log", len(full))
        (machine.state / "server.log").rename(machine.state / "server.log.1")
        machine.ptyd("token", "new", "bot", "--unconfined")
        assert b"a token was made" in (machine.state / "server.log").read_bytes()
    await machine.detached()
