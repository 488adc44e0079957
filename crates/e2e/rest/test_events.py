"""`GET /events` is what the document says of it: the one operation that the fuzzer cannot judge, because it has no end.

Its answers are looked at as the fuzzer does it (status, media type, problem), and the data of its events by their schema.
"""

import http.client
import json
import random
import re
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import jsonschema
import pytest

PATH = "/events"


@pytest.fixture
def document(server):
    return json.loads(server.ask("GET", "/openapi.json")[2])


@contextmanager
def followed(server, last=None, accept="text/event-stream", path=PATH):
    """The answer's head, and its lines as they come."""
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
        headers = {"Authorization": f"Bearer {server.token}", "Accept": accept}
        connection.request("GET", path, headers=headers | ({} if last is None else {"Last-Event-ID": last}))
        yield connection.getresponse()


def events(answer):
    """The names, ids and data of the events, as they come."""
    fields = {}
    while line := answer.readline().decode():
        name, _, value = line.rstrip("\n").partition(": ")
        if name in ("id", "event", "data"):
            fields[name] = value
        elif name == "" and "data" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


def valid(document, value, schema):
    """Whether a value is what a schema of the document says."""
    resolved = {"$defs": document.get("$defs", {}), "components": document["components"], **schema}
    jsonschema.Draft202012Validator(resolved).validate(value)


# promise: rest-2
def test_the_data_of_every_event_have_the_documented_form(server, document):
    content = document["paths"][PATH]["get"]["responses"]["200"]["content"]["text/event-stream"]["schema"]
    assert content["contentSchema"] == {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}
    # A place of another server is a gap.
    with followed(server, last="00000000-7") as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
        stream = events(answer)
        limits = {"outputMb": 0.05}
        session = json.loads(server.ask("POST", "/terminals", {"shell": "/bin/bash", "name": "watched", "limits": limits})[2])
        at = f"/terminals/{session['id']}"
        for command in ["exit() { :; }; (builtin exit 3)", "read x", "while :; do echo flood; done"]:
            server.ask("POST", f"{at}/execute", {"command": command, "timeout": 60})
            server.ask("POST", f"{at}/signal", {"signal": "INT"})
            server.ask("POST", f"{at}/wait", {"timeout": 60})
        for method in ["POST", "DELETE"]:
            assert server.ask(method, f"{at}/take", headers={"Ptyd-Client": "driver"})[0] == 200
        server.ask("DELETE", f"{at}?force=true")
        seen, fields = [], set()
        for name, id, data in stream:
            valid(document, [data], content["contentSchema"])
            assert name == data["event"]
            seen.append((name, id))
            fields |= set(data)
            if name == "session.terminated" and data["sessionId"] == session["id"]:
                break
    schemas = document["components"]["schemas"]
    # This server has no policy; a_request_runs_once_after_another_person_has_allowed_it reads those of approvals.
    assert {name for name, _ in seen} == set(schemas["EventKind"]["enum"]) - {"approval.requested", "approval.decided"}
    assert fields == set(schemas["Event"]["properties"]) - {"approvalId", "decision"}
    # It goes on behind any of them.
    with followed(server, last=seen[-2][1]) as answer:
        assert next(events(answer))[:2] == seen[-1]


# promise: rest-2
def test_the_data_of_an_output_stream_have_the_documented_form(server, document):
    responses = document["paths"]["/terminals/{sessionId}/output/stream"]["get"]["responses"]
    content = responses["200"]["content"]["text/event-stream"]["schema"]
    assert content["contentSchema"] == {"type": "array", "items": {"$ref": "#/components/schemas/Output"}}
    session = json.loads(server.ask("POST", "/terminals", {"shell": "/bin/bash"})[2])
    at = f"/terminals/{session['id']}"
    server.ask("POST", f"{at}/execute", {"command": "echo streamed", "timeout": 60})
    server.ask("DELETE", f"{at}?force=true")
    with followed(server, path=f"{at}/output/stream?kind=command") as answer:
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream")
        seen = list(events(answer))
    valid(document, [data for *_, data in seen], content["contentSchema"])
    assert [(name, data["text"]) for name, _, data in seen] == [("output", "streamed\n"), ("end", "")]
    assert all(id == str(data["nextOffset"]) for _, id, data in seen)
    # A client that has everything is told to stop.
    with followed(server, last=seen[-1][1], path=f"{at}/output/stream") as answer:
        assert (answer.status, "204" in responses) == (204, True)


# promise: rest-2
def test_every_place_to_continue_at_is_taken_or_refused_as_the_document_says(server, document):
    operation = document["paths"][PATH]["get"]
    [header] = [parameter for parameter in operation["parameters"] if parameter["name"] == "Last-Event-ID"]
    pattern = re.compile(header["schema"]["pattern"])
    chance = random.Random(1)
    made = ["", "0", "-", "zzzzzzzz-1", "00000000-", "00000000-999999999999999", "ffffffff-0", "00000000--1", "00000000-1-1", "a" * 4000]
    made += ["".join(chance.choices("0123456789abcdefxyz-", k=chance.randint(1, 20))) for _ in range(60)]
    made += [f"{chance.getrandbits(32):08x}-{chance.randrange(10 ** chance.randint(1, 15))}" for _ in range(60)]
    for last in made:
        with followed(server, last) as answer:
            responses = operation["responses"][str(answer.status)]
            media = answer.headers["content-type"]
            assert media in responses["content"], (last, answer.status)
            if pattern.search(last):
                assert answer.status == 200, last
            if answer.status != 200:
                valid(document, json.loads(answer.read()), responses["content"][media]["schema"])
