"""Writes docs/comparison.md from the results of runs."""

import os
import platform
import re

INTRODUCTION = """# Comparison

I want to know how ptyd and other terminals for agents behave in the cases that users report.

`python3 conformance/run.py --write` writes this page, here on a machine with {machine}. It can keep the results
of earlier runs (`--json`), so each row names its version and its day.
Each case is a list of steps in `conformance/cases`, and each product is driven through its own interface with the best settings that we
know. A case passes if every step does what the case says. `conformance/README.md` says how to add a case or a product. To repeat all of it:

```sh
python3 conformance/run.py --install    # pinned versions of the peers, into target/conformance
python3 conformance/run.py --write      # half an hour
```

| product | version | measured on | passes, of what it claims |
| --- | --- | --- | --- |
{products}

**yes**: it passes. **no**: it fails, or does not answer in {seconds} s. **–**: the product does not claim this. **?**: it cannot be installed here.

* {framed} carry bytes and know no commands. As their users do, `conformance/drivers/framed.py` puts a nonce and the exit
  code into the prompt, and finds the ends of commands by them. These columns show how far that goes.
* A hang counts as a failure: the run ends the product from outside. It starts a peer afresh after each hang and each failure; OpenHands,
  whose start takes 10 s, only after a hang. Each case has a session of its own.
* Speed is not compared here: [performance.md](performance.md).
* node-pty is absent: its package has no binary for Linux, and builds one only with headers that it downloads. microsoft/tui-test and ht are
  absent, because the registries of Python and JavaScript do not have them.

## Results

{table}

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


def written(cases: list[dict], drivers: list[dict], results: dict, table: list[str], counts: list[str], seconds: int) -> str:
    """The text of the page."""
    products = []
    for driver, count in zip(drivers, counts, strict=True):
        version, answers = results[driver["name"]]
        days = ", ".join(sorted({answers[case["id"]]["date"] for case in cases}))
        products.append(f"| {driver['title']} | {version or 'not installed'} | {days} | {count} |")
    claims = [f"| {case['id']} | {case['claim'].replace('|', chr(92) + '|')} | {plain(case['source'])} |" for case in cases]
    failures = []
    for case in cases:
        for driver in drivers:
            answer = results[driver["name"]][1][case["id"]]
            if answer["verdict"] in ("fails", "hangs", "not here"):
                failures.append(f"| {case['id']} | {driver['name']} | {plain(answer['why'], 240)} |")
    framed = " and ".join(driver["title"] for driver in drivers if driver.get("framed"))
    return INTRODUCTION.format(
        machine=machine(), products="\n".join(products), seconds=seconds, framed=framed,
        table="\n".join(table), claims="\n".join(claims), failures="\n".join(failures) or "| – | – | – |",
    )  # fmt: skip
