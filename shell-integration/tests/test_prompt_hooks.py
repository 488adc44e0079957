"""Hooks of the prompt that are not ours: each runs once for each prompt, whatever it does to PROMPT_COMMAND, and learns the truth."""

from rig import HAS_BUILTINS, Shell, same

# The mechanism of bash-preexec 0.6, without its code: it takes its place around all others at each prompt, is armed by the last
# prompt command, and calls `preexec` from the DEBUG trap of the next command with the last line of the history.
PREEXEC = r"""
first='__bp_precmd_invoke_cmd "$_"' last=__bp_interactive_mode
is_first_and_last() { local IFS=$'\n'; [[ ${PROMPT_COMMAND[*]} == "$first"$'\n'*"$last" ]]; }
__bp_precmd_invoke_cmd() {
  status=$? BP_PIPESTATUS=("${PIPESTATUS[@]}")
  local at element IFS=$' \t\n'
  if ! is_first_and_last; then
    ((moves += 1))
    for at in "${!PROMPT_COMMAND[@]}"; do
      element=${PROMPT_COMMAND[at]//"$first"$'\n'/}
      element=${element//"$last"/:}
      if [[ $element == : || $element == "$first" ]]; then unset "PROMPT_COMMAND[$at]"; else PROMPT_COMMAND[at]=$element; fi
    done
    PROMPT_COMMAND=$first${PROMPT_COMMAND:+$'\n'$PROMPT_COMMAND}
    PROMPT_COMMAND+=("$last")
  fi
  ((prompts += 1))
  return "$status"
}
__bp_interactive_mode() { armed=1; }
is_of_the_prompt() {
  local IFS=$'\n;' part parts
  read -rd '' -a parts <<<"${PROMPT_COMMAND[*]}"
  for part in "${parts[@]}"; do
    [[ ${part#"${part%%[! ]*}"} != "$1" ]] || return 0
  done
  return 1
}
debug() {
  [[ -n $armed && -z ${READLINE_POINT-} ]] || return 0
  armed=
  ! is_of_the_prompt "$BASH_COMMAND" || return 0
  local line=$(HISTTIMEFORMAT= builtin history 1)
  [[ -z $line ]] || preexec "${line#*[0-9]  }"
}
preexec() { told+=("$1"); }
trap debug DEBUG
PROMPT_COMMAND=$first
PROMPT_COMMAND+=("$last")
"""


def lengths(sh, commands=8):
    """Runs commands, then gives the length of PROMPT_COMMAND after a few of them and after all: its elements and its bytes."""
    got = []
    for _ in range(2):
        for _ in range(commands):
            sh.run("true")
            # Without the builtins a hook that assigns PROMPT_COMMAND takes ours away until the next command of ours.
            (sh.type if HAS_BUILTINS else sh.run)("true")
        got.append(sh.prints('IFS=" "; all="${PROMPT_COMMAND[*]}"; echo ${#PROMPT_COMMAND[@]} ${#all}'))
    return got


def test_a_hook_that_sets_the_variable_runs_once_for_each_prompt():
    for name, what_it_does in {
        "sets the variable": "PROMPT_COMMAND=f",
        "sets the array": "PROMPT_COMMAND=(f)",
        "moves to the front": 'PROMPT_COMMAND="f;${PROMPT_COMMAND//f;/}"',
        "adds what it does not find": '[[ $PROMPT_COMMAND == *"f;"* ]] || PROMPT_COMMAND="$PROMPT_COMMAND;f;"',
        "adds an element when it does not find itself": '[[ $PROMPT_COMMAND == *"f;"* ]] || PROMPT_COMMAND+=("f;")',
        "repeats the others": 'o=${PROMPT_COMMAND//f;/}; PROMPT_COMMAND=("$o" "$o" "f;")',
    }.items():
        with Shell(bashrc=f"f() {{ ((n += 1)); {what_it_does}; }}; PROMPT_COMMAND='f;'") as sh:
            early, late = lengths(sh)
            same((name, late), (name, early))
            # One prompt for each of the commands, and the first.
            same((name, sh.prints("echo $n")), (name, "35\n"))


def test_a_hook_that_moves_to_the_front_of_the_array_lengthens_nothing():
    moves = 'local e o=(); for e in "${PROMPT_COMMAND[@]}"; do [[ $e == f ]] || o+=("$e"); done; PROMPT_COMMAND=(f "${o[@]}")'
    with Shell(bashrc=f"f() {{ ((n += 1)); {moves}; }}; g() {{ ((m += 1)); }}; PROMPT_COMMAND=(g f)") as sh:
        early, late = lengths(sh)
        same(late, early)
        # Without the builtins our hook is in the first element, so this hook does not find its own name there and runs twice.
        same(sh.prints("echo $m $n"), "35 35\n" if HAS_BUILTINS else "35 68\n")


def test_hooks_that_want_to_be_outermost_keep_their_place():
    with Shell(bashrc=PREEXEC) as sh:
        early, late = lengths(sh)
        same(late, early)
        same(sh.prints("echo $prompts $((moves < 3))"), "35 1\n")
        same(sh.type("(exit 4) | (exit 3)").facts, (3, [4, 3], ""))
        same(sh.prints('echo "$? ${PIPESTATUS[@]}"'), "3 4 3\n")


def test_a_tool_finds_its_hook_in_the_variable():
    # zoxide 0.9.7 warns where it does not.
    with Shell(bashrc="PROMPT_COMMAND='__zoxide_hook;'; __zoxide_hook() { :; }") as sh:
        sh.type("true")
        same(sh.prints('[[ $PROMPT_COMMAND == *__zoxide_hook* ]] && declare -p PROMPT_COMMAND | head -c 10; echo'), "declare --\n")


def test_the_variable_is_the_users_where_the_builtins_are():
    with Shell(bashrc="PROMPT_COMMAND=mine; mine() { :; }") as sh:
        sh.type("true")
        sh.run("false")
        same(sh.prints('echo "${PROMPT_COMMAND[@]}"') == "mine\n", HAS_BUILTINS)


def test_only_a_prompt_for_a_command_is_an_end():
    for prompts in "", "PS1= PS2=", "unset PS1 PS2":
        with Shell(env={"EDITOR": "true"}) as sh:
            sh.run(prompts)
            sh.at_prompt()
            sh.keys(b"if (exit 5)\r")
            sh.sees(b"if (exit 5)\r\n")
            sh.reads_keys()
            same((prompts, sh.records), (prompts, []))
            sh.keys(b"then :; else (exit 4); fi\r")
            same((prompts, sh.done().facts), (prompts, (4, [4], "")))
            # An editor of the line runs what it left, and bash keeps $? as it was.
            sh.at_prompt()
            sh.keys(b"(exit 7)\x18\x05")
            sh.sees(b"\r(exit 7)\r\n")
            sh.reads_keys()
            same((prompts, sh.records), (prompts, []))
            same((prompts, sh.type("(exit 3)").facts), (prompts, (3, [3], "")))
    if HAS_BUILTINS:
        with Shell(bashrc="asks() { (( n++ )) || read -e -p 'who? ' who; }; PROMPT_COMMAND=asks", wait=False) as sh:
            sh.sees(b"who? ")
            sh.reads_keys()
            same(sh.records, [])
            sh.keys(b"I\r")
            same(sh.done().facts, (0, [0], ""))
            same(sh.prints("echo $who"), "I\n")


def test_an_interrupted_select_of_a_person_has_an_end():
    # bash itself believes from then on that a builtin runs.
    with Shell() as sh:
        sh.at_prompt()
        sh.keys(b"select x in a b; do :; done\r")
        sh.sees(b"#? ")
        sh.sleeps()
        sh.keys(b"\x03")
        same(sh.done().facts, (130, [130], ""))
        same(sh.type("(exit 3)").facts, (3, [3], ""))
        same(sh.prints("echo fine"), "fine\n")


# promise: send-2
def test_a_preexec_hook_is_not_told_another_command():
    with Shell(bashrc=f"history -s 'rm -rf /danger'\n{PREEXEC}") as sh:
        for command in "echo one", "cat <<E\ntwo\nE", "false | true", 'echo "${PIPESTATUS[@]}"', "set -e; true", "echo four", "set +e":
            sh.run(command)
        sh.type("echo five")
        # The space says that the command is not to be remembered.
        agents = [" echo one", " cat <<E\ntwo\nE", " false | true", ' echo "${PIPESTATUS[@]}"', " set -e; true", " echo four", " set +e", "echo five"]
        same(sh.run("trap - DEBUG").exit, 0)
        agents.append(" trap - DEBUG")
        same(sh.prints("printf '%s\\0' \"${told[@]}\"").split("\0")[:-1], agents if HAS_BUILTINS else ["echo five"])
        same(sh.prints("history >h; sed 's/^ *[0-9]* *//' h"), "rm -rf /danger\necho five\n")


def test_the_persons_last_line_is_back_whatever_a_preexec_hook_does():
    hooks = {"history -c": "", "history -s new": "old", "history -c; history -s new": "new", "kill -INT $$": "old"}
    for hook, left in hooks.items():
        with Shell(bashrc=f"history -s old\ntrap '[[ $BASH_COMMAND != ___ptyd_run* ]] || {{ {hook}; }}' DEBUG") as sh:
            sh.run("echo one")
            sh.run("trap - DEBUG")
            history = sh.prints("history")
            # Without the builtins the hook runs for other commands, too.
            assert "echo one" not in history and (left in history or not HAS_BUILTINS), (hook, history)
