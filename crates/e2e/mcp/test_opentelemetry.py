"""Traces for OpenTelemetry: what a server sends to a real receiver of OTLP, and what it does without one."""

import asyncio
import threading
from collections import defaultdict
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mcp_client import CALL_SECONDS, free_port

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{CALLER}-01", f"00-{TRACE}-{CALLER}-00"
# A command's text and its output stay out of the traces.
SECRET = "hunter2"


class Collector(ThreadingHTTPServer):
    """A receiver of OTLP over HTTP, which keeps every span."""

    def __init__(self, port: int = 0):
        super().__init__(("127.0.0.1", port), self.Requests)
        self.bodies: list[bytes] = []
        self.changed = threading.Condition()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    class Requests(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            assert (self.path, self.headers["content-type"]) == ("/v1/traces", "application/x-protobuf")
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()
            with self.server.changed:
                self.server.bodies.append(body)
                self.server.changed.notify_all()

        def log_message(self, *_):
            pass

    def spans(self) -> list[dict]:
        """The spans so far."""
        found = []
        for body in self.bodies:
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                service = attributes(resource.resource)
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        parts = {"id": span.span_id.hex(), "parent": span.parent_span_id.hex(), "trace": span.trace_id.hex()}
                        parts |= {"name": span.name, "kind": span.kind, "status": span.status.code, "service": service}
                        parts |= {"attributes": attributes(span)}
                        found.append(parts | {"took": span.end_time_unix_nano - span.start_time_unix_nano})
        return found

    async def when(self, is_there) -> list[dict]:
        """The spans, once they are as they should be."""

        def wait():
            with self.changed:
                assert self.changed.wait_for(lambda: is_there(self.spans()), CALL_SECONDS), self.spans()
            return self.spans()

        return await asyncio.to_thread(wait)


def attributes(of) -> dict:
    """The attributes of a span or a resource."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in of.attributes}


@asynccontextmanager
async def traced(machine, port: int, delay_ms: int = 50):
    """A server that exports to this port, with an agent over HTTP."""
    # The exporter's own variable for the time between two batches.
    machine.env["OTEL_BSP_SCHEDULE_DELAY"] = str(delay_ms)
    with open(machine.root / "serve.log", "w") as log:
        process = machine.serve("--listen", "127.0.0.1:0", "--otlp-endpoint", f"http://127.0.0.1:{port}", stderr=log)
    try:
        address = (machine.state / "listen").read_text().strip().removeprefix("http://")
        machine.url, machine.token = f"http://{address}/mcp", (machine.state / "token").read_text().strip()
        try:
            yield process
        finally:
            async with machine.another_agent() as machine.agent:
                await machine.end_sessions()
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.shutdown()
    collector.server_close()


def chain(spans: list[dict], span: dict) -> list[str]:
    """The names of a span and of all above it."""
    by_id = {span["id"]: span for span in spans}
    names = []
    while span:
        names.append(span["name"])
        span = by_id.get(span["parent"])
    return names


def commands(spans: list[dict]) -> list[dict]:
    return [span for span in spans if span["name"] == "command"]


# promise: trace-1
async def test_a_command_is_a_span_below_its_request_and_continues_the_callers_trace(machine, collector):
    async with traced(machine, collector.server_port), machine.http() as http:
        made = (await http.post("/terminals", json={"shell": "/bin/bash"})).json()
        body = {"command": f"echo {SECRET}; sleep 0.3; (exit 7)", "timeout": 60}
        asked = await http.post(f"/terminals/{made['id']}/execute", json=body, headers={"traceparent": SAMPLED})
        assert asked.json()["exitCode"] == 7, asked.text
        spans = await collector.when(commands)
        [command] = commands(spans)
        assert command["attributes"] == {"ptyd.session.id": made["id"], "ptyd.command.id": 1, "process.exit.code": 7}
        # A command that fails is an error in OpenTelemetry's conventions.
        assert (command["status"], command["trace"]) == (2, TRACE)
        assert command["took"] > 0.3e9
        spans = await collector.when(lambda spans: any(span["parent"] == CALLER for span in spans))
        assert chain(spans, command) == ["command", "execute", "POST /terminals/{session}/execute"]
        [request] = [span for span in spans if span["parent"] == CALLER]
        assert request["kind"] == 2 and request["attributes"]["http.response.status_code"] == 200
        assert request["service"]["service.name"] == "ptyd"
    assert SECRET.encode() not in b"".join(collector.bodies)


@pytest.mark.parametrize("door", ["stdio", "http"])
# promise: trace-1
async def test_a_tool_call_continues_the_trace_that_its_metadata_names(machine, collector, door):
    async with traced(machine, collector.server_port):
        async with machine.another_agent() if door == "stdio" else machine.agent_over_http() as agent:
            session = await agent.session()
            arguments = {"session_id": session.id, "command": f"echo {SECRET}"}
            await agent.client.session.call_tool("terminal", arguments, meta={"traceparent": SAMPLED})
            spans = await collector.when(lambda spans: commands(spans) and any(span["parent"] == CALLER for span in spans))
            [call] = [span for span in spans if span["parent"] == CALLER]
            assert (call["name"], call["kind"], call["trace"]) == ("tools/call terminal", 2, TRACE)
            facts = {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "terminal"}
            assert call["attributes"] == facts
            [command] = commands(spans)
            assert command["attributes"]["process.exit.code"] == 0 and command["status"] == 0
            assert chain(spans, command)[-1] == "tools/call terminal"
            assert "execute" in chain(spans, command)
    assert SECRET.encode() not in b"".join(collector.bodies)


async def test_a_command_that_goes_on_behind_its_answer_ends_its_span_at_its_end(machine, collector):
    async with traced(machine, collector.server_port), machine.http() as http:
        made = (await http.post("/terminals", json={"shell": "/bin/bash"})).json()
        execute = f"/terminals/{made['id']}/execute"
        await http.post(execute, json={"command": "read -r line; (exit 3)", "waitForCompletion": False})
        # The request's span is there, and the command's is not: it runs.
        route = "POST /terminals/{session}/execute"
        spans = await collector.when(lambda spans: any(span["name"] == route for span in spans))
        assert not commands(spans)
        await http.post(f"/terminals/{made['id']}/input", json={"input": "x", "endWithNewline": True})
        [command] = commands(await collector.when(commands))
        assert command["attributes"]["process.exit.code"] == 3
        assert "execute" in chain(collector.spans(), command)


async def test_a_command_has_one_span_and_a_request_that_runs_nothing_has_none(machine, collector):
    async with traced(machine, collector.server_port), machine.http() as http:
        made = (await http.post("/terminals", json={"shell": "/bin/bash"})).json()
        execute = f"/terminals/{made['id']}/execute"
        key = {"Idempotency-Key": "once"}
        waits = {"command": "read -r line", "waitForCompletion": False}
        for _ in range(2):
            assert (await http.post(execute, json=waits, headers=key)).status_code in (200, 202)
        refused = await http.post(execute, json={"command": "true"})
        assert refused.json()["code"] == "session_busy", refused.text
        await http.post(f"/terminals/{made['id']}/input", json={"input": "x", "endWithNewline": True})
        await collector.when(commands)
        assert (await http.post(execute, json=waits, headers=key)).status_code in (200, 202)
        # It is killed with its session.
        await http.post(execute, json={"command": "read -r line", "waitForCompletion": False})
        await http.delete(f"/terminals/{made['id']}", params={"force": "true"})
        spans = await collector.when(lambda spans: any(span["name"] == "DELETE /terminals/{session}" for span in spans) and commands(spans)[1:])
        ids = [span["attributes"]["ptyd.command.id"] for span in commands(spans)]
        assert ids == [1, 2], spans
        assert "process.exit.code" not in commands(spans)[1]["attributes"] and commands(spans)[1]["status"] == 2


async def test_a_caller_that_is_not_sampled_gets_no_spans(machine, collector):
    async with traced(machine, collector.server_port), machine.http() as http:
        made = (await http.post("/terminals", json={"shell": "/bin/bash"})).json()
        execute = f"/terminals/{made['id']}/execute"
        for parent in (NOT_SAMPLED, SAMPLED):
            body = {"command": "true", "timeout": 60}
            assert (await http.post(execute, json=body, headers={"traceparent": parent})).status_code == 200
        # The second command's span is there, and the first one's would have come before it.
        [command] = commands(await collector.when(commands))
        assert command["attributes"]["ptyd.command.id"] == 2


# promise: trace-2
async def test_without_a_collector_commands_run_and_the_log_says_so_once(machine):
    port = free_port()
    async with traced(machine, port), machine.http() as http:
        made = (await http.post("/terminals", json={"shell": "/bin/bash"})).json()
        execute = f"/terminals/{made['id']}/execute"
        for number in range(20):
            done = await http.post(execute, json={"command": f"(exit {number})", "timeout": 60})
            assert done.json()["exitCode"] == number
        # The collector starts, and gets what comes from now on.
        collector = Collector(port)
        async with asyncio.timeout(CALL_SECONDS):
            while not commands(collector.spans()):
                await http.post(execute, json={"command": "true", "timeout": 60})
        log = (machine.root / "serve.log").read_text()
        assert log.count("takes no spans") == 1, log
        collector.shutdown()
        collector.server_close()


async def test_a_server_that_stops_exports_its_last_spans(machine, collector):
    async with traced(machine, collector.server_port, delay_ms=3_600_000), machine.http() as http:
        made = (await http.post("/terminals", json={"shell": "/bin/bash"})).json()
        await http.post(f"/terminals/{made['id']}/execute", json={"command": "true", "timeout": 60})
    assert commands(collector.spans())
