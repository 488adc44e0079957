"""Hooks of the prompt that are not ours: whatever they do to PROMPT_COMMAND, it does not grow."""

from rig import Shell, plain_functions, same

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


# The bodies of hooks.
HOOKS = {
    "sets the variable": "PROMPT_COMMAND=f",
    "sets the array": "PROMPT_COMMAND=(f)",
    "moves to the front": 'PROMPT_COMMAND="f;${PROMPT_COMMAND//f;/}"',
    "adds what it does not find": '[[ $PROMPT_COMMAND == *"f;"* ]] || PROMPT_COMMAND="$PROMPT_COMMAND;f;"',
    "moves to the front of the array": """local e o=(); for e in "${PROMPT_COMMAND[@]}"; do [[ $e == f* ]] || o+=("$e"); done
        PROMPT_COMMAND=(f "${o[@]}")""",
}


def lengths(sh, commands=8):
    """The greatest length of PROMPT_COMMAND, its elements and its bytes, over a few commands and over as many more."""
    look = 'IFS=" "; all="${PROMPT_COMMAND[*]}"; echo ${#PROMPT_COMMAND[@]} ${#all}'
    over = lambda: [tuple(map(int, sh.prints(look).split())) for _ in range(commands)]
    return max(over()), max(over())


def test_no_hook_of_a_person_makes_the_variable_grow():
    for name, what_it_does in HOOKS.items():
        with Shell(bashrc=f"f() {{ ((n += 1)); {what_it_does}; }}; PROMPT_COMMAND='f;'") as sh:
            early, late = lengths(sh)
            same((name, late), (name, early))


def test_hooks_around_all_others_are_called_once_for_each_prompt_and_do_not_grow():
    with Shell(bashrc=PREEXEC) as sh:
        early, late = lengths(sh)
        same(late, early)
        # The first prompt, and one for each command but this one.
        same(sh.prints("echo $prompts"), "17\n")
        same(sh.run("(exit 4) | (exit 3)").facts, (3, [4, 3], ""))


load_tests = plain_functions(globals())
