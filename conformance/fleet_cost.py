#!/usr/bin/env python3
"""Measures what a fleet costs, each time beside the same without it, in turns: a hop, a create with Redis, its records, a forwarded WebSocket."""

import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time

import chaos
import soak
from soak import Viewer

ROUNDS, REQUESTS, CREATES, RECORDS, VIEWERS = 15, 200, 8, 10_000, 200
NGINX = """daemon off; master_process off; user root; pid {0}/pid; error_log {0}/error.log; events {{}}
http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
server {{ listen {1}; location / {{ proxy_pass http://{2}; proxy_set_header Host $http_host; }} }} }}"""
HAPROXY = """defaults
    mode http
    timeout connect 3s
    timeout client 1h
    timeout server 1h
frontend one
    bind {1}
    default_backend two
backend two
    server one {2}
"""


def asked(place: str, path: str, token: str, count: int, method: str = "GET", body: dict | None = None) -> list[float]:
    """The milliseconds of so many requests, one after the other on one connection."""
    connection, times = http.client.HTTPConnection(place, timeout=60), []
    headers = {"Host": chaos.NAME, "Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    for _ in range(count):
        begun = time.perf_counter()
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read()
        times.append(1000 * (time.perf_counter() - begun))
        if answer.status >= 300:
            raise soak.Broken(f"{method} {path} at {place}: {answer.status} {text[:300]}")
    connection.close()
    return times


def in_turns(ways: dict, rounds: int = ROUNDS) -> dict:
    """Each way in each round; the medians of the ratios to the first one, of their medians and p99."""
    found = {name: [] for name in ways}
    for round_ in range(rounds + 1):
        names = list(ways)
        random.Random(round_).shuffle(names)
        for name in names:
            found[name].append(ways[name]())
    first, *others = ways
    report = {first: {"median_ms": round(statistics.median(statistics.median(times) for times in found[first][1:]), 2)}}

    def ratio(name: str, part: float) -> float:
        def at(times: list[float]) -> float:
            return sorted(times)[min(len(times) - 1, int(part * len(times)))]

        return round(statistics.median(at(one) / at(other) for one, other in zip(found[name][1:], found[first][1:])), 2)

    # The p99 of a round of few is its longest.
    return report | {name: {"median": ratio(name, 0.5), "p99": ratio(name, 0.99)} for name in others}


def proxied(fleet: chaos.Fleet, kind: str, host: int) -> tuple[subprocess.Popen, str]:
    """A proxy before node 2, and its address."""
    folder, place = fleet.folder / kind, f"{fleet.net}.200.{host}:{fleet.port}"
    folder.mkdir()
    (folder / "conf").write_text({"nginx": NGINX, "haproxy": HAPROXY}[kind].format(folder, place, fleet.nodes[2].listen))
    words = {"nginx": ["/usr/sbin/nginx", "-p", folder, "-c", folder / "conf"], "haproxy": ["/usr/sbin/haproxy", "-db", "-f", folder / "conf"]}
    process = subprocess.Popen(words[kind], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            http.client.HTTPConnection(place, timeout=5).connect()
            return process, place
        except ConnectionRefusedError:
            os.sched_yield()


def memory_of_redis(fleet: chaos.Fleet) -> int:
    """The bytes that Redis says it uses."""
    said = subprocess.run(["redis-cli", "-h", fleet.address(0, 100)[0], "-p", str(fleet.port), "INFO", "memory"], capture_output=True, text=True).stdout
    return int(said.partition("used_memory:")[2].split()[0])


def of_records(fleet: chaos.Fleet, session: dict) -> dict:
    """The list at node 1, with so many more records of node 9, which are copies of a genuine one."""
    host, port = fleet.address(0, 100)
    cli = ["redis-cli", "-h", host, "-p", str(port)]
    [record] = subprocess.run([*cli, "HVALS", f"ptyd:{{2}}:sessions:{session['owner']}"], capture_output=True, text=True).stdout.splitlines()
    before, ways = memory_of_redis(fleet), lambda: asked(fleet.nodes[1].listen, "/terminals?limit=100", fleet.token, 5)
    few = [time for _ in range(5) for time in ways()]
    lines = [f"SADD ptyd:nodes 9\r\nSADD ptyd:{{9}}:owners {session['owner']}\r\nSET ptyd:{{9}}:node x\r\n"]
    for number in range(RECORDS):
        name = "".join("abcdefghij"[int(digit)] for digit in f"{number:010d}")
        facts = record.replace(session["id"], f"s9-{name}")
        words = ["HSET", f"ptyd:{{9}}:sessions:{session['owner']}", f"s9-{name}", facts]
        lines.append(f"*{len(words)}\r\n" + "".join(f"${len(word.encode())}\r\n{word}\r\n" for word in words))
    subprocess.run([*cli, "--pipe"], input="".join(lines), text=True, check=True, stdout=subprocess.DEVNULL)
    used, many = memory_of_redis(fleet) - before, [time for _ in range(5) for time in ways()]
    connection = http.client.HTTPConnection(fleet.nodes[1].listen, timeout=60)
    connection.request("GET", "/terminals?limit=1", headers={"Host": chaos.NAME, "Authorization": f"Bearer {fleet.token}"})
    total = json.loads(connection.getresponse().read())["total"]
    return {"listed": total, "bytes_in_redis_each": used // RECORDS, "list_of_few_ms": round(statistics.median(few), 1), "list_of_all_ms": round(statistics.median(many), 1)}


def of_sockets(fleet: chaos.Fleet, path: str) -> dict:
    """The memory of the first node for each viewer of a session on the second, and of the second."""
    def measured() -> list[int]:
        return [soak.pss(fleet.nodes[number].process.pid) for number in (1, 2)]

    def opened(place: str) -> list[Viewer]:
        door = type("Door", (), {"listen": place, "token": fleet.token, "host": chaos.NAME})
        viewers = [Viewer(door, path) for _ in range(VIEWERS)]
        for viewer in viewers:
            viewer.next()
        return viewers

    before = measured()
    direct = opened(fleet.nodes[2].listen)
    with_direct = measured()
    forwarded = opened(fleet.nodes[1].listen)
    after = measured()
    for viewer in direct + forwarded:
        viewer.__exit__()
    each = [round((now - then) / VIEWERS, 1) for now, then in ((with_direct[1], before[1]), (after[0], with_direct[0]), (after[1], with_direct[1]))]
    return dict(zip(("direct_kib", "forwarded_kib_at_the_forwarding_node", "forwarded_kib_at_the_owner"), each))


def main() -> int:
    """The command."""
    fleet, proxies, alone = chaos.Fleet(), [], soak.Server()
    try:
        fleet.start()
        # Not by relays: nodes reach each other, and Redis, at once.
        for node in fleet.nodes.values():
            node.end(signal.SIGTERM)
            node.env["PTYD_REDIS"] = "redis://{}:{}".format(*fleet.address(0, 100))
            node.env["PTYD_PEERS"] = f"http://{fleet.net}.0.{{node}}:{fleet.port}"
            node.start()
        alone.env["PTYD_PUBLIC_URL"] = f"https://{chaos.NAME}"
        alone.listen = f"{fleet.net}.0.50:{fleet.port}"
        alone.start()
        own = subprocess.run([soak.PTYD, "token", "new", "cost", "--unconfined"], env=alone.env, check=True, capture_output=True, text=True).stdout.strip()
        run = chaos.Chaos(chaos.options_of(["--seed", "1"]), fleet)
        session = run.ask(random.Random(1), "POST", "/terminals", {"shell": "bash"}, at=2)
        path, direct = f"/terminals/{session['id']}", fleet.nodes[2].listen
        (nginx, at_nginx), (haproxy, at_haproxy) = (proxied(fleet, kind, host) for kind, host in (("nginx", 1), ("haproxy", 2)))
        proxies += [nginx, haproxy]
        ways = {"direct": direct, "direct again": direct, "nginx": at_nginx, "haproxy": at_haproxy, "peers": fleet.nodes[1].listen}
        report = {"version": subprocess.run([soak.PTYD, "--version"], capture_output=True, text=True).stdout.strip(), "load_average": os.getloadavg()[0]}
        show = lambda place: lambda: asked(place, path, fleet.token, REQUESTS)
        report["a request"] = in_turns({name: show(place) for name, place in ways.items()})
        execute = lambda place: lambda: asked(place, f"{path}/execute", fleet.token, REQUESTS // 10, "POST", {"command": "true"})
        report["a true"] = in_turns({name: execute(place) for name, place in ways.items()})

        def creates(server: soak.Server, token: str):
            def once() -> list[float]:
                times = asked(server.listen, "/terminals", token, CREATES, "POST", {"shell": "bash"})
                rows = json.loads(subprocess.run([soak.PTYD, "ls", "--json"], env=server.env, stdout=subprocess.PIPE, check=True).stdout)
                own = [row["id"] for row in rows if row["id"][1] == server.env.get("PTYD_NODE", "0")]
                quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                subprocess.run([soak.PTYD, "kill", "--force", *own], env=server.env, check=True, **quiet)
                return times

            return once

        report["a create"] = in_turns({"without Redis": creates(alone, own), "with Redis": creates(fleet.nodes[3], fleet.token)})
        report["a forwarded WebSocket"] = of_sockets(fleet, f"{path}/socket")
        report["records"] = {"count": RECORDS} | of_records(fleet, session)
        print(json.dumps(report, indent=1))
        return 0
    finally:
        for proxy in proxies:
            proxy.kill()
            proxy.wait()
        for pid in alone.processes():
            os.kill(pid, signal.SIGKILL)
        if alone.process:
            alone.process.wait()
            alone.process.stdout.close()
        soak.shutil.rmtree(alone.root, ignore_errors=True)
        fleet.end()


if __name__ == "__main__":
    sys.exit(main())
