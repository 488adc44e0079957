"""Every field of every answer in the document is shown by some answer, and every answer is what the document says."""

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest

ROOT = Path(__file__).resolve().parents[3]
SHELL = {"shell": "/bin/bash", "env": {"PATH": "/usr/bin:/bin"}}

# Fields that no quiet machine shows, and the tests that do.
LIMITS = {"openFiles": 512, "outputMb": 1, "outputMbPerSecond": 100, "cpuSeconds": 60, "commandSeconds": 600, "memoryMb": 4096}
ELSEWHERE = {
    # It needs a control group.
    "Limits.processes": "a_fork_bomb_in_an_ordinary_users_sandbox_fills_only_its_own_bound",
    "Gap.from": "a_viewer_learns_which_output_and_events_are_no_longer_kept",
    "Gap.to": "a_viewer_learns_which_output_and_events_are_no_longer_kept",
    "SentSignal.error": "a_signal_that_the_kernel_refuses_is_on_record_with_the_reason",
    "CommandExecution.background": "background_output_is_returned_with_the_next_command_and_apart_from_its_own",
    "Output.gap": "old_output_is_freed_and_its_readers_learn_of_the_gap",
    "SearchAnswer.gap": "old_output_is_freed_and_its_readers_learn_of_the_gap",
    "SessionList.degraded": "without_the_directory_sessions_work_and_lists_say_that_they_are_not_whole",
    # No session of these tests has a profile.
    "TerminalSession.profile": "a_profile_starts_a_session_and_the_request_takes_precedence",
    "TerminalSession.confinement": "a_confined_session_works_as_any_other",
    "Process.sandboxPid": "a_sandbox_is_used_as_any_session",
    "TerminalSession.policy": "a_refused_request_has_not_happened_and_is_on_record",
    "SessionPolicy.name": "a_refused_request_has_not_happened_and_is_on_record",
    **{
        f"Approval.{field}": "a_request_runs_once_after_another_person_has_allowed_it"
        for field in "id sessionId sessionName owner principal policy rule why command inside cwd input inputLength keys state decidedBy askedAt expiresIn".split()
    },
    **{
        f"{of}.{field}": test
        for of in ("NewToken", "TokenInfo")
        for field, test in {
            "policy": "a_tokens_policy_counts_besides_the_sessions_and_the_stricter_decides",
            "secrets": "the_sessions_of_a_token_get_its_secrets_masked_and_the_next_server_knows",
        }.items()
    },
    "SessionPolicy.advisory": "a_refused_request_has_not_happened_and_is_on_record",
    "SessionPolicy.unprovable": "after_typed_input_or_an_alias_nothing_is_proven_until_a_fresh_session_and_the_next_server_knows",
    "TerminalSession.startupFailed": "commands_at_the_start_that_fail_are_reported_and_the_session_can_be_used",
    "StartupFailure.command": "commands_at_the_start_that_fail_are_reported_and_the_session_can_be_used",
    "StartupFailure.reason": "commands_at_the_start_that_fail_are_reported_and_the_session_can_be_used",
    "SessionEnvironment.profile": "a_profile_starts_a_session_and_the_request_takes_precedence",
    "SessionEnvironment.user": "only_a_server_of_root_starts_shells_of_other_users",
    **{
        field: "only_the_driver_types_until_the_keyboard_is_returned"
        for field in "TerminalSession.driver Driver.name Driver.client Driver.since Driver.until".split()
    },
    "WaitAnswer.lineExitCode": "a_wait_tells_the_code_of_the_last_typed_line_and_of_nothing_else",
    "TerminalSession.viewers": "an_attached_person_is_listed_and_no_longer_after_leaving",
    "TerminalSession.unreachable": "a_request_to_a_silent_holder_is_refused_in_time_and_others_notice_nothing",
    "TerminalSession.trouble": "a_full_disk_stops_the_program_and_room_lets_it_continue",
}


class Witness:
    """Asks, checks each answer against its schema, and remembers which fields it has seen."""

    def __init__(self, server, document):
        self.server, self.document, self.seen = server, document, set()

    def ask(self, method, template, body=None, query="", **parts):
        path = template.format(**parts) + query
        status, headers, text = self.server.ask(method, path, body)
        answer = self.document["paths"][template][method.lower()]["responses"][str(status)]
        kind = headers["content-type"]
        schema = answer["content"][kind]["schema"]
        value = json.loads(text) if kind.endswith("json") else text
        whole = schema | {"components": self.document["components"]}
        jsonschema_rs.validator_for(whole).validate(value)
        self.look(schema, value)
        return value

    def look(self, schema, value):
        """Walks a value along its schema."""
        if name := schema.get("$ref", "").rpartition("/")[2]:
            schema = self.document["components"]["schemas"][name]
        for field, inner in schema.get("properties", {}).items():
            if isinstance(value, dict) and field in value:
                self.seen.add(f"{name}.{field}")
                self.look(inner, value[field])
        for item in value if isinstance(value, list) else []:
            self.look(schema.get("items", {}), item)


def fields_of_answers(document):
    """The fields of every schema that an answer may hold."""
    fields, names = set(), set()
    open_ = re.findall(r"schemas/(\w+)", json.dumps([o["responses"] for p in document["paths"].values() for o in p.values()]))
    while open_:
        if (name := open_.pop()) not in names:
            names.add(name)
            schema = document["components"]["schemas"][name]
            fields |= {f"{name}.{field}" for field in schema.get("properties", {})}
            open_ += re.findall(r"schemas/(\w+)", json.dumps(schema))
    return fields


@pytest.fixture
def witness(server):
    return Witness(server, json.loads(server.ask("GET", "/openapi.json")[2]))


# promise: rest-1
def test_every_field_of_every_answer_has_its_documented_form(witness):
    ask, of = witness.ask, "/terminals/{sessionId}"
    session = ask("POST", "/terminals", SHELL | {"name": "witness", "limits": LIMITS} | {"inactivityTimeout": 600, "maxAge": 600})
    at = {"sessionId": session["id"]}

    def run(command, **wish):
        return ask("POST", f"{of}/execute", {"command": command} | wish, **at)

    run("sleep 60", timeout=0.1, onTimeout="interrupt")
    tools = f"{witness.server.home}/tools"
    run(f"mkdir {tools} && ln -s /bin/true {tools}/node && cp -P {tools}/node {tools}/rustc && cp -P {tools}/node {tools}/cargo")
    run(f"PATH={tools}:$PATH")
    # A directory that is not text, a signal, a pattern, bytes that are not text, and more output than was asked for.
    run(f"mkdir -p {witness.server.home}/$'d\\xff' && cd {witness.server.home}/$'d\\xff'")
    run("bash -c 'kill -9 $$' | cat; bash -c 'kill -9 $$'")
    run("printf 'a\\xffb\\n'; read x; echo got $x", waitFor="a")
    ask("POST", f"{of}/input", {"input": "x", "endWithNewline": True, "waitFor": "got", "timeout": 60}, **at)
    # The match may have come before its end.
    ask("POST", f"{of}/wait", {"timeout": 60}, **at)
    long = run("for i in {1..2000}; do echo line $i; done", maxChars=200)
    ask("GET", f"{of}/commands/{{commandId}}", query="?view=raw&maxBytes=10", commandId=long["id"], **at)
    ask("GET", f"{of}/output", query=f"?commandId={long['id']}&maxChars=200", **at)
    ask("GET", f"{of}/output", query="?view=raw&maxBytes=10", **at)
    ask("GET", f"{of}/search", query="?q=^line", **at)
    ask("GET", of, **at)
    # A program that has the whole screen, typed at and waited for.
    painter = "printf '\\e[?1049h\\e[2J\\e[7mpaint'; read x; printf '\\e[?1049l'"
    assert run(painter, timeout=60)["foreground"] == "fullscreen"
    assert ask("GET", of, **at)["currentCommand"]
    ask("GET", f"{of}/screen", **at)
    ask("POST", f"{of}/wait", {"waitFor": "never", "timeout": 0.1, "maxChars": 1}, **at)
    ask("POST", f"{of}/signal", {"signal": "INT"}, **at)
    # Else the next command is refused, and the signal after it is the shell's.
    assert ask("POST", f"{of}/wait", {"timeout": 60}, **at)["endedBy"] == "ended"
    assert run("cat", timeout=0.1)["status"] == "running"
    ask("GET", f"{of}/processes", **at)
    ask("POST", f"{of}/signal", {"signal": "KILL"}, **at)
    ask("GET", f"{of}/signals", **at)
    ask("GET", f"{of}/environment", **at)
    ask("POST", f"{of}/wait", {"timeout": 60}, **at)
    # A program that ignores its interrupt is named long before the timeout.
    run("sh -c 'trap \"\" INT; exec cat'", timeout=60)
    assert ask("POST", f"{of}/input", {"keys": ["C-c"], "timeout": 3600}, **at)["ignoredBy"] == "cat"
    ask("POST", f"{of}/signal", {"signal": "KILL"}, **at)
    ask("POST", f"{of}/wait", {"timeout": 60}, **at)
    run("for i in {1..2000}; do echo line $i; done; read x", timeout=60, waitFor="line 2000")
    ask("POST", f"{of}/input", {"input": "x", "endWithNewline": True, "timeout": 60, "maxChars": 0}, **at)
    # A limit that is hit, and a command that cannot be.
    run("while :; do echo 0123456789012345678901234567890123456789012345678901234567890; done", timeout=60)
    run("if", timeout=60)
    ask("GET", f"{of}/commands", **at)
    ask("POST", "/batch", {"operations": [{"method": "GET", "path": f"/terminals/{session['id']}"}]})
    ask("POST", "/tickets", {"session": session["id"], "scope": "write"})
    ask("POST", "/tickets", {"page": "sessions"})
    ask("POST", "/login")
    ask("POST", "/tokens", {"name": "witness", "scope": "read", "expiresIn": 60, "profiles": ["witness"], "confinement": "process"})
    ask("GET", "/tokens")
    ask("PUT", "/secrets/{secret}", {"value": "correct horse battery staple"}, secret="WITNESS")
    ask("GET", "/secrets")
    ask("DELETE", "/secrets/{secret}", secret="WITNESS")
    ask("GET", "/capabilities")
    assert ask("PUT", "/drain")["sessions"] == ask("GET", "/drain")["sessions"] == 1
    assert not ask("DELETE", "/drain")["draining"]
    ask("GET", "/approvals")
    ask("DELETE", "/tokens/{token}", token="witness")
    ask("GET", "/audit", query="?limit=5")
    ask("POST", f"{of}/rename", {"name": "watcher"}, **at)
    ask("POST", f"{of}/resize", {"cols": 90, "rows": 30}, **at)
    ask("POST", f"{of}/resize", {"cols": 0, "rows": 1}, **at)
    ask("GET", "/terminals", query="?limit=1")
    ended = ask("DELETE", of, query="?force=true", **at)
    assert ended["session"]["exit"]["signal"] == "KILL"
    second = ask("POST", "/terminals", SHELL)
    ask("POST", f"{of}/execute", {"command": "exit 3"}, sessionId=second["id"])
    ask("DELETE", of, sessionId=second["id"])
    assert ask("DELETE", of, query="?purge=true", sessionId=second["id"])["freedBytes"] > 0

    # Those of a stream are shown by test_events.py. The answer to a resize has a session's fields beside its own.
    fields = fields_of_answers(witness.document)
    of_session = {field.replace("TerminalSession.", "Resized.") for field in fields if field.startswith("TerminalSession.")}
    unseen = {field for field in fields - of_session - witness.seen if not field.startswith("Event.")}
    known = set(ELSEWHERE)
    assert unseen == known, f"not shown: {unseen - known}; shown after all: {known - unseen}"


def test_a_command_that_asks_is_answered_with_its_question_as_it_was_printed(witness):
    at = {"sessionId": witness.ask("POST", "/terminals", SHELL)["id"]}
    request = {"command": "read -p 'name? ' name; echo got:$name"}
    asked = witness.ask("POST", "/terminals/{sessionId}/execute", request, **at)
    assert (asked["output"], asked["status"], asked["endedBy"]) == ("name? ", "running", "input_wanted")
    witness.ask("DELETE", "/terminals/{sessionId}", query="?force=true", **at)


def test_fields_that_are_shown_elsewhere_are_tested_there():
    texts = "".join(path.read_text() for path in ROOT.glob("crates/**/*.rs") if "target" not in path.parts)
    missing = {name for name in ELSEWHERE.values() if f"fn {name}(" not in texts}
    assert missing == set()
