"""Writes docs/comparison.md from the results of runs."""

import os
import platform
import re

from bench import MEASURES

INTRODUCTION = """# Comparison

This page shows how ptyd and other terminals for agents behave in the cases that users report, and how much time and memory they take.

`python3 conformance/run.py --write` writes this page and [comparison.json](comparison.json). It ran on a machine with
{machine}. Each product has its version and the day of its run, because a run can keep results of earlier runs (`--json`).
Each case is a list of steps in `conformance/cases`. A driver performs the steps through each product's own interface, with the best settings
that we know. A case passes if the result of every step is as expected. `conformance/README.md` says how to add a case or a product. To repeat
the whole run:

```sh
python3 conformance/run.py --install    # pinned versions of the peers, into target/conformance
python3 conformance/run.py --write      # a quarter of an hour
```

| product | version | measured on | passes, of what it claims |
| --- | --- | --- | --- |
{products}

**yes**: the product passes. **no**: it fails, or does not answer in {seconds} s. **–**: it does not claim this feature. **?**: we could not
install it here, or the time of the run was over.

* {framed}
  carry bytes or screens, but do not know where a command ends. So their drivers do what their users do: they put a one-time number and the
  exit code into the prompt, and look for these in the output. The columns show how well that works.
* A run tests five products at the same time, but measures one at a time.
* A hang counts as a failure, and the run then kills the product. After each hang and each failure, it starts the product again. It restarts
  OpenHands, whose start takes 10 s, only after a hang. Each case has a session of its own.
* Some cases are only for products that claim a feature. For example, `busy` is for products that know whether a command runs, and
  `server-killed` for products whose commands outlive their server.
* microsoft/tui-test is absent. Its interface is a test file with one terminal, keys, and expectations about the screen. It cannot report a
  command's end, exit code or whole output, and each case needs one of these.
* ht is absent, because the registries of Python and JavaScript do not have it.

## Results

{table}

## Measures

Lower is better, except for *programs per second* and *kept*. If a cell has two figures, the first is the median and the second the 99th
percentile, unless the list below says otherwise. [performance.md](performance.md) compares ptyd with a bare terminal.

{measures}

* *`true`*: the time from the call to the answer for `true`, which the shell runs without a new process.
* *Processor time*: the time that the product itself uses for one `true`, without the shell. It includes the product's processes and clients,
  and for a library the program that uses it. For products that only carry bytes or screens, it does not include the driver.
* *Programs per second*: the number of times that `date` runs in one session, one after the other. Each answer must have a new number.
* *New session*: the time from the call to the answer of the session's first command.
* *Memory*: for each of five more sessions, the memory (`Pss`) with its shell / the shell's part of it.
* *Text*: the time from the moment that a program prints a text until the call that waits for the text returns.
* *100 MB*: the time until a command that prints 100 MB has ended / the product's own processor time in seconds. *Screen*: the time from then on
  until a screen has the last line. *Kept*: the share of 10 MB that can be read afterwards.
* *Restart*: the time from the kill of the server until the product reports the right end of a command that was running.
* If there are too few samples for a 99th percentile, the figure is the largest sample; comparison.json has the number of samples. The shell's
  configuration file has one line.
* **–**: the product does not offer this. **no**: the answer was wrong. *No answer*: there was no answer within {measure_seconds} s, or within
  25 s after a flood.

## The cases

| case | claim | seen in |
| --- | --- | --- |
{claims}

## How each failed

Each row quotes the message of a run, shortened.

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
