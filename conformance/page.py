"""Writes docs/comparison.md from the results of runs."""

import os
import platform
import re

from bench import MEASURES

INTRODUCTION = """# Comparison

I want to know how ptyd and other terminals for agents behave in the cases that users report, and what they cost.

`python3 conformance/run.py --write` writes this page and [comparison.json](comparison.json), here on a machine with
{machine}. Each row names its version and its day, because a run can keep the results of earlier ones (`--json`).
Each case is a list of steps in `conformance/cases`, and each product is driven through its own interface with the best settings that we
know. A case passes if every step does what the case says. `conformance/README.md` says how to add a case or a product. To repeat all of it:

```sh
python3 conformance/run.py --install    # pinned versions of the peers, into target/conformance
python3 conformance/run.py --write      # a quarter of an hour
```

| product | version | measured on | passes, of what it claims |
| --- | --- | --- | --- |
{products}

**yes**: it passes. **no**: it fails, or does not answer in {seconds} s. **–**: the product does not claim this. **?**: it could not be
installed here, or the time of the run was over.

* {framed}
  carry bytes or screens and know no commands. As their users do, the drivers put a nonce and the exit code into the prompt, and find the
  ends of commands by them. These columns show how far that goes.
* Cases are played on five products at a time, and measures are taken of one product at a time.
* A hang counts as a failure: the run ends the product from outside. It starts a peer afresh after each hang and each failure; OpenHands,
  whose start takes 10 s, only after a hang. Each case has a session of its own.
* Only products that claim it play `busy` (they know that a command runs), `server-killed` (commands outlive their server), and the like.
* microsoft/tui-test is absent. Its interface is a test in a file of its runner, with one terminal, keys, and expectations about the
  screen. It can tell neither the end, nor the code, nor the whole output of a command, and each case needs one of them.
* ht is absent, because the registries of Python and JavaScript do not have it.

## Results

{table}

## Measures

Lower is better, except for *programs per second* and *kept*. A figure behind a slash is the 99th percentile, unless a
line below says more. [performance.md](performance.md) compares ptyd with a bare terminal, and says where its time goes.

{measures}

* *`true`*: a command that the shell performs itself, from the call to its answer. *Processor time* is
  the product's own for one `true`, without the shell: its processes, its clients, and for a library the program that uses it. For the
  streams it lacks the driver, which finds the ends of commands.
* *Programs per second*: `date`, a real program, one after the other in one session. Each answer must be another number.
* *New session*: until the answer of its first command.
* *Memory*: what each of five more sessions costs, with its shell (`Pss`) / the shell's part of it.
* *Text*: from the text that a program prints to the return of the call that waits for it.
* *100 MB*: until the command that prints them has ended / the product's own processor time in seconds. *Screen*: from then on
  until a screen has the last line. *Kept*: the share of 10 MB that can be read afterwards.
* *Restart*: from the kill of the server to the right end of a command that ran meanwhile.
* If there are too few samples for a 99th percentile, the figure is the largest sample; comparison.json has the number of samples.
  A shell's configuration is one line. **–**: the product does not offer this. **no**: a wrong answer. *No answer*: in {measure_seconds} s, or for
  a flood in 25 s.

## The cases

| case | claim | seen in |
| --- | --- | --- |
{claims}

## How each failed

Each line is from a run, cut to its beginning.

| case | product | failure |
| --- | --- | --- |
{failures}
"""


def plain(text: str, longest: int = 1000) -> str:
    """A text of a run or a case as the cell of a table."""
    text = re.sub(r"/tmp/ptyd-\w+/home/", "", text)
    text = text.replace("\\x1b", "ESC").replace("`", "'").replace("|", "/").replace("*", "\\*").replace("<", "&lt;").replace("[", "\\[")
    return text if len(text) <= longest else f"{text[:longest].rstrip()} …"


def machine() -> str:
    """The machine in words."""
    release = platform.freedesktop_os_release()
    return f"{release['NAME']} {release.get('VERSION_ID', '')} and {os.cpu_count()} processors"


def figures(drivers: list[dict], results: dict) -> dict:
    """The measures of each product."""
    found = {}
    for driver in drivers:
        version, answers = results[driver["name"]]
        taken = {name: answers[name] for name in MEASURES if name in answers}
        measures = {name: answer.get("figures", {"verdict": answer["verdict"], "why": plain(answer["why"], 240)}) for name, answer in taken.items()}
        found[driver["name"]] = {"version": version, "days": sorted({answer["date"] for answer in taken.values()}), "measures": measures}
    return found


def number(value: float) -> str:
    """A figure with two or three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def bench_table(drivers: list[dict], results: dict) -> list[str]:
    """The table of the measures."""
    # The measure, and the figures of the cell.
    columns = {
        "`true`, ms": ("true", "p50_ms", "p99_ms"),
        "processor time, ms": ("true", "processor_ms"),
        "programs per second": ("program", "per_second"),
        "new session, ms": ("create", "p50_ms", "p99_ms"),
        "memory, MiB": ("memory", "whole_mib", "shell_mib"),
        "text, ms": ("wait", "p50_ms", "p99_ms"),
        "100 MB, s": ("lines", "seconds", "processor_s"),
        "kept, %": ("kept", "kept_percent"),
        "screen, ms": ("lines", "screen_ms"),
        "restart, ms": ("restart", "p50_ms", "p99_ms"),
    }

    def cell(answers: dict, measure: str, names: list[str]) -> str:
        answer = answers.get(measure)
        if answer is None or answer["verdict"] == "not here":
            return "?"
        if answer["verdict"] == "hangs":
            # Without the flood there is nothing to see on a screen.
            return "–" if "screen_ms" in names else "no answer"
        if answer["verdict"] != "passes":
            return "–" if answer["verdict"] == "n/a" else "**no**"
        return " / ".join(number(answer["figures"][name]) for name in names if name in answer["figures"]) or "–"

    lines = [f"| product | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns)]
    for driver in drivers:
        answers = results[driver["name"]][1]
        lines.append(f"| {driver['name']} | {' | '.join(cell(answers, measure, names) for measure, *names in columns.values())} |")
    return lines


def written(cases: list[dict], drivers: list[dict], results: dict, table: list[str], counts: list[str], seconds: int, measure_seconds: int) -> str:
    """The text of the page."""
    products = []
    for driver, count in zip(drivers, counts, strict=True):
        version, answers = results[driver["name"]]
        days = ", ".join(sorted({answer["date"] for answer in answers.values()}))
        products.append(f"| {driver['title']} | {version or 'not installed'} | {days} | {count} |")
    claims = [f"| {case['id']} | {case['claim'].replace('|', chr(92) + '|')} | {plain(case['source'])} |" for case in cases]
    failures = []
    for case in cases:
        for driver in drivers:
            answer = results[driver["name"]][1][case["id"]]
            if answer["verdict"] in ("fails", "hangs", "not here"):
                failures.append(f"| {case['id']} | {driver['name']} | {plain(answer['why'], 240)} |")
    *some, last = (driver["title"] for driver in drivers if driver.get("framed"))
    framed = f"{', '.join(some)} and {last}"
    return INTRODUCTION.format(
        machine=machine(), products="\n".join(products), seconds=seconds, framed=framed,
        table="\n".join(table), measures="\n".join(bench_table(drivers, results)), measure_seconds=measure_seconds, claims="\n".join(claims), failures="\n".join(failures) or "| – | – | – |",
    )  # fmt: skip
