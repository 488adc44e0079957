"""A password that a program reads is typed by a person, at a page of the server or with `ptyd send --secret`, and stands
nowhere afterwards: in no answer, file, log or event.
"""

import asyncio
import json
import os
import pty
import re
import select
import subprocess
import termios
from html import unescape

import httpx2
import pytest

from fullscreen import ROOT
from mcp_client import CALL_SECONDS, PTYD

SECRET = "hunter2 cörrect+horse%"
READS = "read -s -p 'Word? ' x; echo; echo got ${#x}"
NOBODY = 65534


# The server says all that it can.
pytestmark = pytest.mark.environment(PTYD_LOG="trace")


def address(answer) -> str:
    """The page that an answer names for a person."""
    wants = re.fullmatch(
        r"wants a password: a person types it at (http://127\.0\.0\.1:\d+/ask/p0-[\w-]{22}) or with ptyd send --secret "
        r"(s0-\w+); do not ask for it here",
        next(fact for fact in answer.facts if fact.startswith("wants")),
    )
    assert wants, answer.text
    return wants[1]


def page(text) -> dict[str, str]:
    """The entries of a page, by name."""
    entries = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text)
    return {unescape(name): unescape(re.sub("<.*?>", "", value)) for name, value in entries}


def get(url, **headers):
    """A page."""
    return httpx2.get(url, headers=headers, timeout=CALL_SECONDS)


def post(url, secret=SECRET, **headers):
    """A page's form."""
    return httpx2.post(url, data={"secret": secret}, headers=headers, timeout=CALL_SECONDS)


async def printed(session) -> list[str]:
    """The lines of a command until its end."""
    return (await session.read(since="last", timeout=60)).output.splitlines()


PROGRAMS = {
    "read": (READS, "/bash", "Word? "),
    "getpass": ("python3 -c 'import getpass; print(\"got\", len(getpass.getpass()))'", "python3", "Password: "),
    "fake": (
        "python3 -c 'import getpass; print(\"got\", len(getpass.getpass(\"[sudo] password for root: \")))'",
        "python3",
        "[sudo] password for root: ",
    ),
}


@pytest.mark.parametrize("door", ["stdio", "http"])
@pytest.mark.parametrize("name", PROGRAMS)
# promise: access-12
async def test_a_password_that_a_person_types_is_in_no_file(served, name, door):
    """Everything that can be read is looked through."""
    agents = served.agent_over_http() if door == "http" else served.another_agent("--detach", "0")
    command, program, prompt = PROGRAMS[name]
    async with agents as agent:
        session = await agent.session(name="<b>build</b>")
        asked = await session.run(command)
        url = address(asked)
        # Told once; a later answer is short.
        again = await session.read(since="last")
        assert "wants a password" in again.facts, again.text
        shown = get(url)
        assert (shown.status_code, shown.headers["cache-control"]) == (200, "no-store")
        assert "script" not in shown.headers["content-security-policy"]
        said = page(shown.text)
        by_system, process = said["Program, as the system names it"].split(", process ")
        # A program is what it is, whatever it prints.
        assert program in by_system and "sudo" not in by_system
        assert by_system == os.readlink(f"/proc/{process}/exe")
        assert said["The program’s own words, which any program can print"] == prompt
        assert said["It runs with the rights of"].endswith(f"(user {os.getuid()})")
        assert said["Session"] == f"{session.id} (<b>build</b>)" and "<b>" not in shown.text
        assert said["Command"] == command
        typed = post(url)
        assert typed.status_code == 200 and "was typed" in typed.text and SECRET not in typed.text
        ended = await session.read(since="last", timeout=60)
        assert f"got {len(SECRET)}" in ended.output.splitlines(), ended.text
        for late in (get(url), post(url)):
            assert late.status_code == 409 and "already been answered" in late.text, late.text
        events = httpx2.get(f"{url.partition('/ask')[0]}/terminals/{session.id}/output", headers=bearer(served), timeout=CALL_SECONDS)
        views = [(await session.read(view=view)).text for view in ("text", "raw", "screen")]
        assert not any(SECRET in text for text in [asked.text, again.text, ended.text, events.text, *views])
        for written in (SECRET, "hunter2", "rrect%2Bhorse"):
            assert served.files_holding(written.encode()) == [], written


def bearer(machine, token=None):
    """The headers of a program."""
    return {"Authorization": f"Bearer {token or (machine.state / 'token').read_text().strip()}"}


@ROOT
# promise: access-12
async def test_su_is_named_with_the_rights_that_it_has(workspace):
    session = await workspace.session()
    asked = await session.run(f"setpriv --reuid {NOBODY} --clear-groups su root -c id", timeout=60)
    said = page(get(address(asked)).text)
    assert re.fullmatch(r"/(usr/)?bin/su, process \d+", said["Program, as the system names it"]), said
    assert said["It runs with the rights of"] == "root (user 0), set-user-id"
    await session.press("C-c")


# promise: access-12
async def test_a_request_is_for_one_prompt(workspace):
    session = await workspace.session()
    first = address(await session.run(READS))
    # The model types something, or the program is gone: nothing is typed into what comes next.
    await session.type("other\n")
    for answer in (get(first), post(first)):
        assert answer.status_code == 409 and "no longer reads" in answer.text, answer.text
    second = address(await session.run(READS))
    assert second != first
    await session.press("C-c")
    assert post(second).status_code == 409
    # A secret is one line, and a refused one uses no request up.
    third = address(await session.run(READS))
    for wrong in ("a\nb", "a\x03", "x" * 1025):
        refused = post(third, wrong)
        assert refused.status_code == 422 and "one line" in refused.text + " one line" * (len(wrong) > 9), refused.text
    assert httpx2.post(third, content="token=x", timeout=CALL_SECONDS).status_code == 422
    assert post(third, "fünf!").status_code == 200
    assert "got 5" in await printed(session)


# promise: access-12
async def test_two_secrets_one_after_the_other_have_a_request_each(workspace):
    session = await workspace.session()
    first = address(await session.run("read -sp 'Same? ' a; echo; read -sp 'Same? ' b; echo; echo $((${#a}${#b}))"))
    assert [post(first, "abc").status_code, post(first, "abc").status_code] == [200, 409]
    asked = await session.read(since="last", wait_for="Same", timeout=60)
    assert post(address(asked), "de").status_code == 200
    assert "32" in await printed(session)


# promise: access-12
async def test_knowing_the_address_lets_nobody_type(workspace):
    session = await workspace.session()
    url = address(await session.run(READS))
    authority = url.split("/")[2]
    made_up = url[:-22] + "A" * 22
    for answer in (get(made_up), post(made_up), get(f"http://{authority}/ask/"), get(url + "x")):
        assert answer.status_code == 404, answer.text
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        for ask in (get, post):
            assert ask(url, **headers).status_code == 403, headers
    # Another page of this machine passes elsewhere, but has nothing to do with this form.
    assert post(url, Origin="http://localhost:5173").status_code == 403
    # A browser that leaves the origin out still says from where a form comes. A link to the page may stand anywhere.
    for site in ("cross-site", "same-site"):
        assert post(url, **{"Sec-Fetch-Site": site}).status_code == 403, site
        assert get(url, **{"Sec-Fetch-Site": site}).status_code == 200, site
    # A person reads why the page does not open.
    browser = {"Accept": "text/html,application/xhtml+xml;q=0.9"}
    refusals = (
        get(url, Host="evil.example", **browser),
        get(url, Authorization="Bearer wrong", **browser),
        post(url, Origin="null", **browser),
        post(url, **{"Sec-Fetch-Site": "cross-site"}),
    )
    for refused in refusals:
        assert refused.headers["content-type"].startswith("text/html") and "does not open" in refused.text, refused.text
        assert "script" not in refused.headers["content-security-policy"]
    for wrong in ({"Authorization": "Bearer wrong"}, {"Authorization": "Basic eDp3cm9uZw=="}):
        refused = get(url, **wrong)
        assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Basic realm=")
    # The browser's log-in counts here and nowhere else.
    token = (workspace.state / "token").read_text().strip()
    login = httpx2.BasicAuth("anybody", token)
    assert httpx2.get(url, auth=login, timeout=CALL_SECONDS).status_code == 200
    assert httpx2.get(f"http://{authority}/terminals", auth=login, timeout=CALL_SECONDS).status_code == 401
    # Nor does the kernel's word.
    assert get(f"http://{authority}/terminals").status_code == 401
    stranger = workspace.ptyd("token", "new", "stranger", "--unconfined")
    reader = workspace.ptyd("token", "new", "reader", "--scope", "read")
    assert get(url, **bearer(workspace, stranger)).status_code == 404
    assert post(url, **bearer(workspace, stranger)).status_code == 404
    assert get(url, **bearer(workspace, reader)).status_code == 403
    assert post(url, "four", Origin=f"http://{authority}", **bearer(workspace, token)).status_code == 200
    assert "got 4" in await printed(session)


@ROOT
# promise: access-12
async def test_another_user_of_the_machine_gets_no_page(workspace):
    session = await workspace.session()
    url = address(await session.run(READS))

    def as_nobody(*words):
        asked = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", "curl", "-s", "-w", "%{http_code}", *words, url]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout

    for words in ((), ("-d", "secret=x")):
        refused = as_nobody(*words)
        assert refused.endswith("401") and "for the user that runs the server" in refused, refused
    token = (workspace.state / "token").read_text().strip()
    assert as_nobody("-u", f"me:{token}", "-d", "secret=12").endswith("200")
    assert "got 2" in await printed(session)


async def test_an_operator_can_turn_the_secret_page_off(machine):
    async with machine.another_agent("--detach", "0", PTYD_SECRET_PAGE="false") as agent:
        session = await agent.session()
        asked = await session.run(READS)
        told = f"wants a password: a person types it with ptyd send --secret {session.id}; do not ask for it here"
        assert told in asked.facts, asked.text
        address = (machine.state / "listen").read_text().strip()
        headers = bearer(machine)
        assert httpx2.get(f"http://{address}/terminals", headers=headers, timeout=CALL_SECONDS).status_code == 200
        # The answer of any path without a route, and no page that knows no such request.
        left_out = httpx2.get(f"http://{address}/ask/{'x' * 22}", headers=headers, timeout=CALL_SECONDS)
        assert (left_out.status_code, "html" in left_out.headers.get("content-type", "")) == (404, False)
        await session.terminate()


# promise: access-12
async def test_the_command_line_types_a_secret_that_no_terminal_shows(workspace):
    session = await workspace.session()
    await session.run(READS)
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    send = [PTYD, "send", "--secret", session.id]
    try:
        for typed, code in ((b"\x03", 1), (SECRET.encode() + b"\n", 0)):
            process = subprocess.Popen(send, env=workspace.env, stdin=theirs, stdout=theirs, stderr=theirs)
            shown = await asyncio.to_thread(shown_until, ours, b"Secret: ")
            os.write(ours, typed)
            assert await asyncio.to_thread(process.wait, CALL_SECONDS) == code
            assert termios.tcgetattr(theirs) == before
            while select.select([ours], [], [], 0)[0]:
                shown += os.read(ours, 4096)
            assert SECRET.encode() not in shown
    finally:
        os.close(ours)
        os.close(theirs)
    assert f"got {len(SECRET)}" in await printed(session)
    assert workspace.files_holding(SECRET.encode()) == []


def shown_until(terminal, words) -> bytes:
    """The output of a terminal until these words."""
    shown = b""
    while not shown.endswith(words):
        assert select.select([terminal], [], [], CALL_SECONDS)[0], shown
        shown += os.read(terminal, 4096)
    return shown


# promise: access-12
async def test_the_secret_page_is_undocumented_and_no_log_has_its_name(workspace):
    session = await workspace.session()
    url = address(await session.run(READS))
    base, _, name = url.partition("/ask/")
    document = httpx2.get(f"{base}/openapi.json", headers=bearer(workspace), timeout=CALL_SECONDS).json()
    assert not [path for path in document["paths"] if path.startswith("/ask")], json.dumps(document)[:200]
    assert post(url, "x").status_code == 200
    assert workspace.files_holding(name.encode()) == []
