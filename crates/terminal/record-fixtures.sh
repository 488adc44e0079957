#!/usr/bin/env bash
# Records the streams of real programs that crates/terminal/tests/recorded.rs and crates/e2e/mcp/test_tokens.py read.
#
# Only for who wants new ones, on a machine (or in a container) that may be changed: as root, because apt installs
# something; with cargo, npm, python3-venv, git, vim, htop, less, fzf, curl and a way to their registries. Everything
# happens in /tmp/demo with a home there, so that no name or path of this machine is in what is committed.
#
#   crates/terminal/record-fixtures.sh target/debug/ptyd [NAME...]
#   PTYD_WRITE_EXPECTED=1 cargo test -p terminal --test recorded     then read what changed

set -euo pipefail

ptyd=$(realpath "$1")
shift
fixtures=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/fixtures
wanted=" $* "
demo=/tmp/demo
cargo_home=${CARGO_HOME:-$HOME/.cargo} rustup_home=${RUSTUP_HOME:-$HOME/.rustup}

rm -rf "$demo"
mkdir -p "$fixtures" "$demo"
mkdir -m 700 "$demo/run"
echo "PS1='\$ '" >"$demo/.bashrc"
cd "$demo"

# Nothing of the caller's environment is there for a program to print.
run() {
  env -i HOME="$demo" PATH="$cargo_home/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" LANG=C.UTF-8 TERM=xterm-256color \
    USER=user LOGNAME=user CARGO_HOME="$cargo_home" RUSTUP_HOME="$rustup_home" PTYD_STATE_DIR="$demo/state" \
    PTYD_RUNTIME_DIR="$demo/run" GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.com GIT_COMMITTER_NAME=Ada \
    GIT_COMMITTER_EMAIL=ada@example.com "$@"
}

# Kept in this shell, so that the sessions share one server, which is ended by its process id.
run "$ptyd" serve --listen 127.0.0.1:0 >"$demo/served" &
server=$!
trap 'kill $server; wait $server' EXIT
until grep -q 'try it' "$demo/served"; do :; done

is_wanted() { [[ $wanted == "  " || $wanted == *" $1 "* ]]; }

# record NAME COMMAND: a command to its end.
record() {
  is_wanted "$1" || return 0
  rm -f "$fixtures/$1.cast"
  run "$ptyd" record --size 80x24 --timeout 300 --output "$fixtures/$1.cast" -- "$2" >/dev/null || echo "$1: exit $?"
}

post() { curl -sS --fail-with-body --unix-socket "$demo/run/ptyd.sock" -H 'Content-Type: application/json' "http://localhost/terminals/$1" -d "$2"; }

# Until nothing has come for half a second.
settle() { post "$session/wait" '{"timeout": 20, "quietMs": 500}' >/dev/null; }

# drive NAME COMMAND KEYS...: a program that stays on the screen, driven by keys, each of them when it has become quiet.
drive() {
  is_wanted "$1" || return 0
  rm -f "$fixtures/$1.cast"
  session=$(run "$ptyd" new --size 80x24)
  post "$session/execute" "{\"command\": \"$2\", \"timeout\": 1, \"maxChars\": 0}" >/dev/null
  local key
  for key in "${@:3}"; do
    settle
    post "$session/input" "{\"keys\": [$key]}" >/dev/null
  done
  settle
  run "$ptyd" record --output "$fixtures/$1.cast" "$session"
  run "$ptyd" kill --force "$session"
}

mkdir -p hello/src greeter/src
printf '[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\ngreeter = { path = "../greeter" }\n%s\n' \
  'anyhow = "1"
itoa = "1"' >hello/Cargo.toml
printf '[package]\nname = "greeter"\nversion = "0.1.0"\nedition = "2021"\n' >greeter/Cargo.toml
echo 'pub fn greet(name: &str) -> String { let unused = 1; format!("hello, {name}") }' >greeter/src/lib.rs
cat >hello/src/main.rs <<'RUST'
fn main() {
    println!("{}", greeter::greet("world"));
}
#[test]
fn greets() {
    assert_eq!(greeter::greet("world"), "hello, world");
}
#[test]
fn greets_nobody() {
    assert_eq!(greeter::greet(""), "hello");
}
RUST
record cargo-build 'cd hello && cargo build'
record cargo-test 'cd hello && cargo test'

mkdir -p page && (cd page && run npm init -y >/dev/null && run npm install --package-lock-only --save express >/dev/null)
record npm-ci 'cd page && npm ci'

run python3 -m venv tools
record pip-install 'tools/bin/pip install pytest rich'
mkdir -p app
cat >app/test_app.py <<'PYTHON'
import pytest

@pytest.mark.parametrize("number", range(30))
def test_square(number):
    assert number * number >= number

def test_words():
    assert {"name": "hello", "size": [1, 2, 3]} == {"name": "hallo", "size": [1, 2, 4]}

def test_division():
    assert 1 / 0
PYTHON
record pytest 'cd app && ../tools/bin/pytest --color=yes'
mkdir sources && cp /etc/apt/sources.list.d/debian.sources sources
record apt-install 'apt-get install -y -o Dir::Etc::SourceParts=/tmp/demo/sources --reinstall -o Dpkg::Progress-Fancy=1 -o Dpkg::Use-Pty=1 hello'

mkdir -p repo && (
  cd repo
  run git init -q -b main
  for number in {1..40}; do
    printf 'line %s\n' $(seq "$number" $((number + 30))) >"file$((number % 7)).txt"
    run git add . && run git commit -q -m "change number $number of the files" --date="2026-01-01T12:00:$((number + 10))Z"
  done
  run git branch topic HEAD~5
)
record git-log 'git -C repo --no-pager log --graph --color=always --stat -12 --decorate'
(cd repo && run bash -c 'for i in {1..600}; do head -c 3000 /dev/urandom >blob$i; done; git add . && git commit -qm blobs')
record git-clone 'git clone --progress --no-local file:///tmp/demo/repo copy'

cat >layers.py <<'PYTHON'
# Rows of progress like those of a container's layers: the cursor goes up to a row, rewrites it, and comes back.
import random, sys, time
random.seed(7)
names = [f"{random.getrandbits(48):012x}" for _ in range(7)]
done = [0] * len(names)
print("latest: Pulling from library/demo")
print("\n".join(f"{name}: Waiting" for name in names))
while min(done) < 100:
    row = random.choice([i for i, part in enumerate(done) if part < 100])
    done[row] = min(100, done[row] + random.randint(1, 9))
    bar = "=" * (done[row] // 4) + ">"
    state = "Pull complete" if done[row] == 100 else f"Downloading [{bar:26}] {done[row] / 4:.2f}MB/25MB"
    up = len(names) - row
    sys.stdout.write(f"\x1b[{up}A\r\x1b[2K{names[row]}: {state}\x1b[{up}B\r")
    sys.stdout.flush()
    time.sleep(0.002)
print("Digest: sha256:" + "5e" * 32)
print("Status: Downloaded newer image for demo:latest")
PYTHON
record layers 'python3 layers.py'

# Only what is in a namespace of their own is shown by those that show processes.
printf '#!/bin/sh\nhostname demo\nfor i in 1 2 3 4 5 6; do sleep 300 & done\n"$@"\n' >alone
chmod +x alone
record top 'unshare -fpu --mount-proc ./alone top -b -n 3 -d 0.3'
drive htop 'unshare -fpu --mount-proc ./alone htop -d 5' '"Down", "Down"' '"F6"' '"Down", "Enter"' '"F4", "s", "l", "e"'
drive vim 'vim -n -u NONE -c \"set nocp nu hls syntax=c\" hello/src/main.rs' '"j", "i", "t", "w", "o", " "' '"Escape", "/", "g", "r", "e", "e", "t"' '"Enter"' '":", "s", "p", "Enter"'
drive vim-quit 'vim -n -u NONE hello/src/main.rs' '":", "q", "!", "Enter"'
drive less 'less repo/file1.txt' '"Space"' '"/", "4", "5", "Enter"'
drive fzf 'seq 1 200 | fzf --color=16 --height=100%' '"1", "7"' '"Up", "Up"'
ls -l "$fixtures"
