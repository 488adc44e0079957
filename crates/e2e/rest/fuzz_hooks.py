"""The fuzzer's hooks: they keep it at sessions that are there, short and harmless, and judge more than it does.

Its values stay as they were made in a part of the requests; in the others some are replaced by ones that mean something,
because a random name is not a session, nor a random word a signal.
"""

import base64
import json
import os
import random
import shlex
import string
import urllib.request
from collections import Counter, defaultdict
from pathlib import Path

import schemathesis

URL, TOKEN = os.environ["PTYD_FUZZ_URL"], os.environ["PTYD_FUZZ_TOKEN"]
SEEN = Path(os.environ["PTYD_FUZZ_SEEN"])
CHANCE = random.Random(int(os.environ["PTYD_FUZZ_SEED"]))
# Statuses by operation, for the test to look at.
seen = defaultdict(Counter)
sessions = {"live": None, "ended": None}
PUNCTUATION = str.maketrans({c: "_" for c in string.punctuation})


def ask(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data, {"Authorization": f"Bearer {TOKEN}"}, method=method)
    with urllib.request.urlopen(request, timeout=75) as reply:
        return json.load(reply)


def start():
    return ask("POST", "/terminals", {"shell": "/bin/bash", "actions": {"go": {"signal": "CONT"}}})["id"]


def live():
    if sessions["live"] is None:
        sessions["live"] = start()
        # A command to ask for, where none is run.
        ask("POST", f"/terminals/{sessions['live']}/execute", {"command": "true"})
    return sessions["live"]


def ended():
    if sessions["ended"] is None:
        sessions["ended"] = start()
        ask("DELETE", f"/terminals/{sessions['ended']}?force=true")
    return sessions["ended"]


def a_token():
    name = f"t{CHANCE.getrandbits(60):x}"
    return ask("POST", "/tokens", {"name": name})["name"]


def a_secret():
    return ask("PUT", f"/secrets/S{CHANCE.getrandbits(3)}", {"value": "correct horse battery staple"})["name"]


def often():
    return CHANCE.random() < 0.75


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


BOUNDS = {"timeout": 86_400, "driverTimeout": 3_600, "for": 43_200}


def shorten(values, name, most):
    """Shortens a time of up to a day to a moment; a value out of bounds stays so."""
    if isinstance(values, dict) and is_number(values.get(name)) and most < values[name] <= 86_400_000:
        values[name] = most if values[name] <= BOUNDS.get(name, 86_400_000) else values[name]


def without_nulls(value):
    """The document has no null, and the server takes one for an optional field as absent: a wrong value has another wrong type here."""
    if value is None:
        return [False]
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items()}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


def is_positive(case):
    return case.meta is None or case.meta.generation.mode.is_positive


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw.get("operationId")
    path, query, body = case.path_parameters, case.query, case.body
    if is_positive(case):
        if path and "sessionId" in path and often():
            path["sessionId"] = live() if CHANCE.random() < 0.85 else ended()
        if path and "commandId" in path and often():
            path["commandId"] = CHANCE.choice(["c1", "c2"])
        if path and "token" in path and often():
            path["token"] = a_token()
        if path and "secret" in path and often():
            path["secret"] = a_secret()
        if path and "action" in path and often():
            path["action"] = "go"
        if query and often():
            mend_query(query)
        if isinstance(body, dict) and often():
            mend_body(operation, body)
        if operation in ("postMcp", "getMcp") and often():
            case.headers["Accept"] = "application/json, text/event-stream"
    elif isinstance(body, dict):
        body.update(without_nulls(body))
    for values in (query, body):
        for name, most in [("timeout", 0.2), ("driverTimeout", 0.2), ("for", 0.2), ("graceSeconds", 0.2), ("quietMs", 50), ("waitMs", 100)]:
            shorten(values, name, most)
    if isinstance(body, dict):
        if operation in ("executeCommand", "sendInput", "wait") and body.get("timeout") is None:
            body["timeout"] = 0.2
        if operation == "takeKeyboard" and body.get("for") is None:
            body["for"] = 0.2
        disarm(body)


def mend_query(query):
    if "since" in query:
        query["since"] = CHANCE.choice(["o:0", "0", "last", "2026-01-01T00:00:00Z"])
    if "since" in query and "commandId" in query:
        del query["since"]
    if "commandId" in query:
        query["commandId"] = "c1"
    if "signal" in query:
        query["signal"] = CHANCE.choice(["TERM", "9"])
    if "q" in query:
        query["q"] = CHANCE.choice(["x", "^", "$ "])


def mend_body(operation, body):
    if "waitFor" in body:
        body["waitFor"] = CHANCE.choice(["x", "^$"])
    if operation == "createSession":
        meant = {"shell": "/bin/bash", "cwd": "/", "name": "any", "env": {"A": "b"}, "owner": "somebody"}
        body |= {name: value for name, value in meant.items() if name in body}
    if operation == "executeCommand":
        body["command"] = CHANCE.choice(["printf x", "false", "read x", "exit 3"] + 8 * [f": {body.get('command')}"])
    if operation == "sendInput":
        of = [name for name in ("input", "inputBase64", "keys") if name in body] or ["input"]
        for name in of[1:]:
            del body[name]
        body[of[0]] = {"input": "x\n", "inputBase64": "eA0=", "keys": ["C-c"]}[of[0]]
    if operation == "sendSignal":
        body["signal"] = CHANCE.choice(["INT", "SIGTERM", 2, "CONT"])
        body["target"] = CHANCE.choice(["foreground", "session", ask("GET", f"/terminals/{live()}").get("pid", 1)])
    if operation == "createTicket":
        body.pop("page" if "session" in body else "session", None)
        if "session" in body:
            body["session"] = live()
        else:
            body["page"] = CHANCE.choice(["docs", "sessions"])
    if operation == "runBatch":
        for one in body.get("operations", []):
            one["path"] = CHANCE.choice(["/terminals", f"/terminals/{live()}", f"/terminals/{live()}/output", "/nowhere"])
            one["method"] = "GET"


def disarm(body):
    """Words may reach a shell, and then only builtins that cannot harm: there is nothing on its path, and without
    punctuation nothing is redirected, joined or expanded."""
    command = body.get("command")
    if isinstance(command, str) and command not in ("printf x", "false", "read x", "exit 3"):
        body["command"] = f": {shlex.quote(command)}"
    if isinstance(body.get("input"), str):
        body["input"] = body["input"].translate(PUNCTUATION)
    if isinstance(body.get("inputBase64"), str):
        try:
            raw = base64.b64decode(body["inputBase64"], validate=True)
        except ValueError:
            return
        body["inputBase64"] = base64.b64encode(raw.translate(bytes(map(disarmed, range(256))))).decode()


def disarmed(byte):
    return ord("_") if chr(byte) in string.punctuation else byte


@schemathesis.hook
def after_call(context, case, response):
    operation = case.operation.definition.raw.get("operationId")
    if str(getattr(response.request, "method", "")).upper() == case.operation.method.upper():
        seen[operation][response.status_code] += 1
    SEEN.write_text(json.dumps(seen))
    named = (case.path_parameters or {}).get("sessionId")
    if named is not None and named == sessions["live"]:
        if response.status_code == 410 or operation == "terminateSession" or "terminated" in (response.text or ""):
            sessions["live"] = None
    if operation == "beginDrain":
        # Everything after it needs new sessions.
        ask("DELETE", "/drain")
    if operation == "createSession" and response.status_code == 201:
        ask("DELETE", f"/terminals/{response.json()['id']}?force=true")


@schemathesis.check
def codes_are_documented(ctx, response, case):
    """A problem's code is one of those that the document names for this operation and status."""
    if not response.headers.get("content-type", [""])[0].startswith("application/problem+json"):
        return
    problem = response.json()
    documented = case.operation.definition.raw["responses"].get(str(response.status_code))
    if documented is not None:
        assert problem["code"] in documented["x-codes"], f"{problem['code']} is not documented: {problem['detail']}"
