# shellcheck shell=bash
# shellcheck disable=SC2317 # The code after `return` is evaluated when it is needed.
#
# Makes one interactive bash (5.0 or later) attest the ends of its commands to the holder and take commands as data.
#
# Only this file defines names that begin with `__ptyd_`, and it keeps three rules: nothing on the normal path forks, no
# user setting (-e, -u, -x, -a, IFS, aliases, traps, redirections) may break it or show it more than unavoidable, and the
# user's own prompt, history and variables stay the user's. Records, keys and guarantees are in README.md.

# A login shell is started as `bash --posix -l`, because only then does bash read a file that we choose, $ENV. Everything
# that posix mode changed before this line is put back, so that the user's files run in the bash they were written for.
if [[ -o posix ]] && shopt -q login_shell; then
  set +o posix
  shopt -u inherit_errexit
  # Posix mode names another history file; bash itself would have said ~/.bash_history.
  [[ ${HISTFILE-} == ~/.sh_history ]] && HISTFILE=~/.bash_history
  unset ENV
  [[ -z ${PTYD_ENV+set} ]] || export ENV="$PTYD_ENV"
  unset PTYD_ENV
  # No end is reported for commands that run before the hook is installed.
  export -n PTYD_CLEAN
fi

# The secret comes over the socket and not in the environment, which any child and `ps e` could read. This
# must stay before the user's files: they may do anything, a `read` from the terminal included.
if ((BASH_VERSINFO[0] >= 5)) && ! declare -F __ptyd_hook >/dev/null &&
  builtin mapfile -d $'\f' -t __ptyd_parts <"${BASH_SOURCE[0]}" && ((${#__ptyd_parts[@]} == 4)) &&
  IFS= read -r -u 97 __ptyd_secret 2>/dev/null; then
  builtin eval "${__ptyd_parts[1]}"
fi

# The user's files, at top level as bash itself would run them, so that their `declare` makes globals.
# shellcheck source=/dev/null # They are the user's.
if ! shopt -q login_shell; then
  if [[ -z ${PTYD_CLEAN-} && -r ~/.bashrc ]]; then . ~/.bashrc; fi
else
  if [[ -r /etc/profile ]]; then . /etc/profile; fi
  if [[ -n ${PTYD_CLEAN-} ]]; then
    :
  elif [[ -r ~/.bash_profile ]]; then
    . ~/.bash_profile
  elif [[ -r ~/.bash_login ]]; then
    . ~/.bash_login
  elif [[ -r ~/.profile ]]; then
    . ~/.profile
  fi
fi
# bash cuts the history file to its own default of lines where no file of the user's has set another.
[[ -z ${PTYD_CLEAN-} ]] || unset HISTFILE
unset PTYD_CLEAN

# Without the builtins the hook comes into PROMPT_COMMAND after the user's files have set it, so the hook is the first to see $?.
# It ends in a command that succeeds, for the first prompt's PIPESTATUS.
if [[ -n ${__ptyd_key-} ]] || ! declare -F __ptyd_install >/dev/null; then
  :
else
  __ptyd_install || __ptyd_hook "$LINENO" l
fi

# bash parses the code after this, and after each form feed, only when it is needed.
return

# Opened by this name it is read from its beginning, whatever the descriptor's offset.
__ptyd_file=/proc/self/fd/96
# The first part has run, or does now.
__ptyd_parts[0]='' __ptyd_parts[1]=''
declare +x __ptyd_secret __ptyd_file
readonly __ptyd_secret __ptyd_file __ptyd_parts

# The beginning of PROMPT_COMMAND where the builtins are missing. Its last argument names the commands with which our lines begin:
# tools that call preexec hooks from a DEBUG trap compare a command with the lines of PROMPT_COMMAND, and call none for those.
# Redirecting the group hides the trace of `set -x`, the call itself included. A DEBUG trap that writes there must not fail: with
# `extdebug` bash would skip the call. `&& :` keeps a status that is not zero from ending a `set -e` shell or firing an
# ERR trap, yet passes it on to what is behind it.
# shellcheck disable=SC2016 # PROMPT_COMMAND expands it, not this line.
__ptyd_prompt=$'{ __ptyd_hook "$LINENO" "" \'\n__ptyd_take 2>&96\n__ptyd_begin\n__ptyd_pass "$?"\n'
# shellcheck disable=SC2016 # As above.
__ptyd_prompt+='\builtin eval -- "$__ptyd_text"'$'\n\' && :; } 2>/dev/null'
# shellcheck disable=SC2016 # As above.
__ptyd_preexec='__bp_precmd_invoke_cmd "$_"'$'\n'
# The beginning of PS0: empty for a typed line, the start marker for a command of ours. The value must be there
# when the prompt is made: bash keeps a pointer to it until the line is accepted, so a key must never assign PS0.
# shellcheck disable=SC2016 # PS0 expands it.
__ptyd_ps0='${__ptyd_mark-}'
# The code after every text. A line of its own, after a blank one, ends a comment and a trailing backslash. It has no
# brace and no quote that could close one left open by the text. It captures the status of the text's last command; `if`
# turns the capture's result into success, and its redirections hide the trace and what a DEBUG trap prints. They take what is
# written: a trap that fails would, with `extdebug`, skip the capture.
__ptyd_telling=$'\n\nif __ptyd_tell; then :; fi >/dev/null 2>&1\n'
# `eval` runs at top level, so that declare, return and traps work as if typed. It succeeds whatever the text did (a
# failing `eval` would fire ERR a second time); __ptyd_finish then restores $? for the prompt.
# shellcheck disable=SC2016 # eval's argument is expanded when the line runs.
__ptyd_evaluating='\builtin eval -- "$__ptyd_text"; __ptyd_finish && :'
# A text that ends in an operator or a function head: the capture behind it would become part of it. It may be wrong in
# the careful direction, for a parser decides then.
__ptyd_dangling='([[:space:]]|\\)*'
__ptyd_dangling="(\\|&?|&&|\\($__ptyd_dangling\\)|function[[:space:]][^[:space:]]+)$__ptyd_dangling(#.*)?\$"
# The text to evaluate, the command's id (0: none is running), its flags, its end ($?, PIPESTATUS, nonce, `told`: reported,
# `usual`: in the state below, and the flags that say so), its start marker, the PIPESTATUS of the one before, the state of the shell in which a command is
# taken with the short line (none where it must not be), whether to turn `set -x` on again, whether stderr left the terminal, the
# line number that the editor has after the last prompt and the last reported PATH. Arrays where an assignment may happen under
# `set -a`, for bash does not export them. The state is the only key of its array.
__ptyd_text='' __ptyd_id=0 __ptyd_taken=0 __ptyd_flags='' __ptyd_end=() __ptyd_mark='' __ptyd_last='' \
  __ptyd_staged=() __ptyd_xtrace=() __ptyd_stderr_gone=() __ptyd_line=0 __ptyd_path=$'\1'
declare -A __ptyd_state=()
# bash's own descriptor of the terminal; children do not inherit it. With few descriptors allowed, it has another number.
if [[ -t 255 ]]; then __ptyd_tty=255; else exec {__ptyd_tty}>/dev/tty; fi
# bash 5.0 has no SRANDOM, and ends when a text for `eval` ends early.
__ptyd_is_5_0=$((BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] == 0))
# The builtins of bash_builtins.c take a plain text in a fourth of the time. A bash that cannot load them, or whose structures may
# differ, does without.
__ptyd_key=''
if [[ ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]} == 5.[1-3] ]] &&
  builtin enable -f "${BASH_SOURCE[0]%/*}/bash_builtins.so" ___ptyd_run __ptyd_run __ptyd_is_usual __ptyd_is_reading \
    __ptyd_history 2>/dev/null; then
  # The line editor itself calls the hook, so PROMPT_COMMAND is the user's alone.
  __ptyd_key=k
fi
declare +x __ptyd_preexec __ptyd_prompt __ptyd_ps0 __ptyd_telling __ptyd_evaluating __ptyd_dangling __ptyd_text __ptyd_id __ptyd_taken \
  __ptyd_flags __ptyd_mark __ptyd_last __ptyd_line __ptyd_path __ptyd_tty __ptyd_is_5_0 __ptyd_key

# Calls a rarely needed function, with $? as it is. Those are parsed only then, from the last part of this file; with the builtins
# those of every round trip are rarely needed, too.
__ptyd_seldom() {
  # shellcheck disable=SC2319 # Of any command.
  local status_before=$?
  declare -F "$1" >/dev/null || __ptyd_read_on
  __ptyd_pass "$status_before"
  "$@"
}

# In their original form, independent of the user's settings.
__ptyd_read_on() {
  local - options=$BASHOPTS
  set +aeuvx
  builtin shopt -u expand_aliases
  builtin shopt -s interactive_comments
  [[ -z $__ptyd_key ]] || builtin eval "${__ptyd_parts[2]}"
  builtin eval "${__ptyd_parts[3]}"
  [[ $options != *expand_aliases* ]] || builtin shopt -s expand_aliases
  [[ $options == *interactive_comments* ]] || builtin shopt -u interactive_comments
} 2>/dev/null

# One element of a pipeline that has to end as an earlier one did.
__ptyd_pass() { return "$1"; }

readonly -f __ptyd_seldom __ptyd_read_on __ptyd_pass

readonly __ptyd_preexec __ptyd_prompt __ptyd_ps0 __ptyd_telling __ptyd_evaluating __ptyd_dangling __ptyd_tty __ptyd_is_5_0 __ptyd_key
[[ -n $__ptyd_key ]] || builtin eval "${__ptyd_parts[2]}"

# Binds the keys in these keymaps; those of vi only where they are used, with the builtins.
__ptyd_bind() {
  local __ptyd_keymap
  for __ptyd_keymap; do
    # shellcheck disable=SC2016 # The editor runs it.
    \builtin bind -m "$__ptyd_keymap" -x '"\e\x1f":{ __ptyd_seldom __ptyd_load "$LINENO" && :; } 2>/dev/null'
    # shellcheck disable=SC2016
    \builtin bind -m "$__ptyd_keymap" -x '"\e\x0e":{ __ptyd_seldom __ptyd_report "$LINENO" && :; } 2>/dev/null <<<"$BASH_COMMAND"'
    [[ -n $__ptyd_key ]] || \builtin bind -m "$__ptyd_keymap" '"\e\x1e":accept-line'
  done
}
readonly -f __ptyd_bind
# Before the user's files, so that the keys are there even if an error in them ends all of bash's startup.
__ptyd_bind emacs
[[ -n $__ptyd_key ]] || __ptyd_bind vi-insert vi-command

# bash copies the body of a function for each call. So the code of every round trip (take, tell, finish, hook) is
# kept short, and rarely needed code is a function of its own, even with a single caller.

# Where the shell does not expand the alias of this name. It would expand it here, too.
__ptyd() { __ptyd_leave "$?"; }
# The short line: a plain text in the usual state is taken when the line runs, so it needs no key and no expansion of PS0. As
# an alias its words run at top level, too.
alias __ptyd='if __ptyd_take 2>&96; then \builtin eval -- "$__ptyd_text"; else \builtin eval -- "$__ptyd_text"; fi; __ptyd_finish && :'

# Takes the staged command: its head, its id, its nonce, its text. The holder has rewound the descriptor, and the whole is short
# enough for one read(2): children share the offset, and one that moves it must not change what is read. From another
# place the head is not found; behind the text are NULs only.
__ptyd_take() {
  builtin local status=$?
  builtin mapfile -d '' -t -n 4 -u 96 __ptyd_staged
  if [[ ${__ptyd_staged-} != ptyd* || $- == *[aeuvxT]* || ${#__ptyd_state[@]} == 0 || ${__ptyd_staged[1]} -le __ptyd_taken ||
    -n ${BASH_XTRACEFD-} ]]; then
    __ptyd_leave "$status"
  else
    __ptyd_id=${__ptyd_staged[1]} __ptyd_taken=$__ptyd_id __ptyd_text=${__ptyd_staged[3]}$__ptyd_telling
    builtin printf '\e]7337;C;%s\a' "${__ptyd_staged[2]}" >&"$__ptyd_tty" ||
      builtin printf '\e]7337;C;%s\a' "${__ptyd_staged[2]}" >/dev/tty
  fi
  builtin return "$status"
}

# Leaves the command to the load key, which the holder presses where the short line has ended without an end of the command. $1 is
# the status to keep.
__ptyd_leave() {
  local -
  set +aeux
  __ptyd_text='' __ptyd_end[0]=$1 __ptyd_end[1]=$1
}

# Reports an end, record and marker. It follows every text and runs only when the text ran to its end; or $1 and $2
# are the status and the pipeline's. Its state is an array, which `set -a` does not export.
__ptyd_tell() {
  # One statement, since the next one would already see other values. A scalar joins `[@]` with spaces whatever IFS is.
  # The nonce is made here and now, so nothing that ran before could print it.
  # shellcheck disable=SC2124
  __ptyd_end[0]=${1-$?} __ptyd_end[1]=${2-"${PIPESTATUS[@]}"} \
    __ptyd_end[2]=${SRANDOM:-$RANDOM$RANDOM}${SRANDOM:-${EPOCHREALTIME//[!0-9]/}}
  # Looked up, which takes a third of the time of a comparison.
  if [[ -n ${__ptyd_state[$-;${PS0-};${PROMPT_COMMAND[*]-};${HISTIGNORE-};${PATH-}]-} ]]; then
    __ptyd_end[4]=usual __ptyd_end[5]=$__ptyd_key
  else
    __ptyd_end[5]=u
    [[ $- != *e* ]] || __ptyd_end[5]=ue
    [[ $- != *x* && ${PATH-} == "$__ptyd_path" ]] || __ptyd_look_closer
    # The hook has turned `set -e` off; the flag `e` says that it was on.
    [[ -z $__ptyd_key || $__ptyd_flags == *e* ]] || ! __ptyd_is_usual || __ptyd_end[5]=k
  fi
  # The record goes first, so a reader that finds the marker in the output has the record already. The marker goes to the
  # terminal itself, for a command may have redirected 1 and 2 for good.
  # Where the socket was closed, bash saves the stderr that `2>&96` replaces under its number: 97 may be the terminal.
  [[ -S /dev/fd/97 ]] && builtin printf 'D;%s;%s;%s;%s;%s;%s;%s\0' "$__ptyd_secret" "${__ptyd_end[2]}" "$__ptyd_id" \
    "${__ptyd_end[0]}" "${__ptyd_end[1]}" "$__ptyd_flags${__ptyd_end[5]-}" "${PWD-}" >&97 &&
    { builtin printf '\e]7337;D;%s\a' "${__ptyd_end[2]}" >&"$__ptyd_tty" ||
      builtin printf '\e]7337;D;%s\a' "${__ptyd_end[2]}" >/dev/tty; } && __ptyd_end[3]=told
  # Not true, so that `if` runs no further command for a DEBUG trap to see.
  builtin return 1
}

__ptyd_look_closer() {
  [[ $- != *x* ]] || { __ptyd_xtrace=(x) && set +x; }
  [[ ${PATH-} == "$__ptyd_path" ]] || __ptyd_tell_path
}

# Runs at every prompt, first of all prompt commands or, with the builtins, behind them all. It reports the ends that are not reported
# yet: those of lines that a person typed, and of a command that was cut short. $1 is the line number, $2 a further flag.
__ptyd_hook() {
  # One statement, as above.
  # shellcheck disable=SC2124
  local status=$? pipestatus="${PIPESTATUS[@]}" options=$-
  if [[ -n ${__ptyd_end[4]-} && -n ${__ptyd_end[3]-} ]]; then
    # The editor is one line ahead of the prompt.
    __ptyd_line=$(($1 + 1)) __ptyd_last=${__ptyd_end[1]} __ptyd_id=0 __ptyd_text='' __ptyd_flags='' __ptyd_mark='' __ptyd_end=()
  else
    __ptyd_hook_otherwise "$1" "${2-}"
  fi
  builtin return "$status"
}

# The same where nothing was reported yet, or the state is another one; `status`, `pipestatus` and `options` are the hook's.
__ptyd_hook_otherwise() {
  if [[ $-${__ptyd_xtrace-} == *[aeux]* ]]; then
    # In this order: `local -` puts back on return what was set when it ran.
    [[ -z ${__ptyd_xtrace-} ]] || set -x
    options+=${__ptyd_xtrace-}
    __ptyd_xtrace=()
    local -
    set +aeux
  fi
  __ptyd_line=$(($1 + 1))
  [[ ${PROMPT_COMMAND-} != __bp* || -n $__ptyd_key ]] || pipestatus=${BP_PIPESTATUS[*]}
  if [[ -n ${__ptyd_end-} ]]; then
    status=${__ptyd_end[0]} pipestatus=${__ptyd_end[1]}
  elif ((__ptyd_id)); then
    # Neither __ptyd_tell nor __ptyd_finish ran: a signal threw the line away.
    __ptyd_flags+=n
  fi
  [[ ${PS0-} == "$__ptyd_ps0"* || -n $2 ]] || __ptyd_claim_ps0
  [[ ${HISTIGNORE-} == *'*__ptyd*'* ]] || __ptyd_claim_history
  [[ ${PATH-} == "$__ptyd_path" ]] || __ptyd_tell_path
  __ptyd_judge "$options"
  if [[ -z ${__ptyd_end[3]-} || -n $2 ]]; then
    __ptyd_flags+=$2
    [[ $options != *e* ]] || __ptyd_flags+=e
    __ptyd_tell "$status" "$pipestatus"
  fi
  __ptyd_last=$pipestatus
  __ptyd_restore
}

# Forgets a command.
__ptyd_restore() {
  __ptyd_id=0 __ptyd_text='' __ptyd_flags='' __ptyd_end=() __ptyd_mark=''
}

# Sets the state in which a command may be taken with the short line; $1 is the shell's options. A PS0 of the user's own is
# printed before the short line runs, but belongs to the command's output.
__ptyd_judge() {
  __ptyd_state=()
  [[ $1 == *[aeuvxT]* || ${PS0-} != "$__ptyd_ps0" || __ptyd_is_5_0 -ne 0 || ${HISTIGNORE-} != *'*__ptyd*'* ]] || ! __ptyd_is_hooked ||
    __ptyd_state=(["$1;$PS0;${PROMPT_COMMAND[*]};$HISTIGNORE;${PATH-}"]=usual)
}

# Whether the hook runs first, and once. bash-preexec would put its line back before it at each prompt, which takes a second; but that line
# passes $? on, and keeps PIPESTATUS.
__ptyd_is_hooked() {
  [[ -z $__ptyd_key ]] || return 0
  local all=${PROMPT_COMMAND[*]-}
  [[ $all != __bp* ]] || all=${all#"$__ptyd_preexec"}
  [[ ${all:0:${#__ptyd_prompt}} == "$__ptyd_prompt" && ${all:${#__ptyd_prompt}} != *__ptyd_hook* ]]
}

# Puts the start marker's place in front of the user's PS0. Not from a key, as said above.
__ptyd_claim_ps0() {
  if [[ ${PS0@a} != *r* && $BASHOPTS == *promptvars* ]]; then
    PS0=$__ptyd_ps0${PS0-}
  fi
}

# History keeps what people type. `set +o history` does not serve: switching it on again reads HISTFILE once more.
__ptyd_claim_history() {
  if [[ ${HISTIGNORE@a} != *r* ]]; then
    HISTIGNORE=${HISTIGNORE:+$HISTIGNORE:}'*__ptyd*'
  elif [[ ${HISTCONTROL-} != *ignore[sb]* && ${HISTCONTROL@a} != *r* ]]; then
    # The line of the load key begins with a space.
    HISTCONTROL=${HISTCONTROL:+$HISTCONTROL:}ignorespace
  fi
}

__ptyd_tell_path() {
  __ptyd_path=${PATH-}
  # A datagram that the socket does not take would spoil the next one, too (unix(7), EMSGSIZE).
  [[ ${#__ptyd_path} -lt 60000 && -S /dev/fd/97 ]] || return 0
  builtin printf 'P;%s;%s\0' "$__ptyd_secret" "$__ptyd_path" >&97
}

# Puts the hook in front of whatever PROMPT_COMMAND has become, in the same element: tools look there for theirs, and assign that element.
# It takes out what others moved or doubled of the hook, so nothing grows, and fails where it may not assign.
__ptyd_install() {
  local -
  set +aeu
  ! __ptyd_is_hooked || return 0
  # Assigning to a readonly variable would throw the whole line away.
  [[ ${PROMPT_COMMAND@a} != *r* ]] || return 1
  local at others
  for at in "${!PROMPT_COMMAND[@]}"; do
    others=${PROMPT_COMMAND[at]//"$__ptyd_prompt"$'\n'/}
    others=${others//$'\n'"$__ptyd_prompt"/}
    others=${others//"$__ptyd_prompt"/:}
    # shellcheck disable=SC2178 # A scalar stays one.
    if ((at == 0)); then PROMPT_COMMAND=$others; else PROMPT_COMMAND[at]=$others; fi
    [[ $others != : ]] || unset "PROMPT_COMMAND[$at]"
  done
  others=${PROMPT_COMMAND-}$'\n' at=''
  [[ $others != "$__ptyd_preexec"* ]] || at=$__ptyd_preexec others=${others#"$__ptyd_preexec"}
  others=${others%$'\n'}
  # shellcheck disable=SC2178 # The first element is meant.
  PROMPT_COMMAND=$at$__ptyd_prompt${others:+$'\n'$others}
}

# Key 1 (bind -x): takes the staged command (its head, its id, its nonce, its text) and puts a line that evaluates it in the place
# of what was being typed. $1 is the line number.
__ptyd_load() {
  # shellcheck disable=SC2034 # __ptyd_load_carefully uses them.
  local status=$? staged=()
  [[ -z $__ptyd_key ]] || ! __ptyd_is_reading || return 0
  # In every case below, the accept key that follows must not run a line that a person has half typed.
  READLINE_LINE='' READLINE_POINT=0
  # Not `$(<file)`: inside bind -x that breaks bash 5.2's parser.
  builtin mapfile -d '' -t -n 4 staged <"$__ptyd_file"
  __ptyd_seldom __ptyd_load_carefully "$1"
}

# Behind `eval`: gives the line the status of the command.
__ptyd_finish() {
  local status=$?
  [[ -n ${__ptyd_end[4]-} && -n ${__ptyd_end[3]-} && -t 2 && -z ${__ptyd_stderr_gone-} ]] || __ptyd_seldom __ptyd_finish_otherwise
  builtin return "${__ptyd_end[0]-$status}"
}

readonly -f __ptyd __ptyd_take __ptyd_leave __ptyd_tell __ptyd_look_closer __ptyd_hook __ptyd_hook_otherwise __ptyd_restore __ptyd_judge \
  __ptyd_is_hooked __ptyd_claim_ps0 __ptyd_claim_history __ptyd_tell_path __ptyd_install __ptyd_load __ptyd_finish

# The same whatever the shell's state and the text are; `status` and `staged` are the loader's.
# $2 is the shell's options where __ptyd_load_quietly has dealt with them.
__ptyd_load_carefully() {
  local id line telling=$__ptyd_telling
  if [[ $- == *[aeux]* && -z ${2-} ]]; then
    __ptyd_load_quietly "$1"
    return
  fi
  [[ ${staged-} == ptyd* && ${staged[1]} == [0-9]* ]] || return 0
  id=${staged[1]}
  # A key that a person pressed by accident finds a command that was taken before.
  ((id > __ptyd_taken)) || return 0
  if ! __ptyd_is_hooked; then
    __ptyd_install
  elif ((${1:-1} > ${__ptyd_line:-1})); then
    # The editor is one line ahead of the prompt; more means a continuation line (PS2) of what a person has begun.
    __ptyd_say_running "$id"
    return 0
  fi
  # The last command's end was never reported, else the hook had done this.
  ((__ptyd_id == 0)) || __ptyd_restore
  __ptyd_id=$id __ptyd_text=${staged[3]-}
  # These alone can make the capture behind them a part of themselves (a here-document, an operator, a function head) or of bash's
  # message (another head). Behind an operator or a head there may be comments.
  if [[ $- == *v* ]]; then
    # bash prints the lines that it reads, and would print the capture. So none is behind the text, which is known to have no syntax error.
    __ptyd_examine e
    telling=''
  elif [[ $__ptyd_text == *[\|\&\)\\[:space:]] || $__ptyd_text == *'#'* || $__ptyd_text == *'<<'* ||
    $__ptyd_text == *function* || ${2-} == *e* || __ptyd_is_5_0 -ne 0 ]] || __ptyd_has_head; then
    __ptyd_examine "${2-}"
  fi
  # A trace goes where the user wants it.
  [[ -z $telling || ${BASH_XTRACEFD-} != @([3-9]|[1-8][0-9]) ]] || telling=${telling%$'\n'}" $BASH_XTRACEFD>&96"$'\n'
  __ptyd_text+=$telling
  [[ ${2-} != *x* ]] || __ptyd_text=$'{ set -x; } 2>/dev/null\n'$__ptyd_text
  line=$__ptyd_evaluating
  [[ -n $telling || -z $__ptyd_flags ]] || line="$__ptyd_text; __ptyd_finish && :"
  # $? survives from the last command by itself. PIPESTATUS does not, but only a text that names it can tell.
  [[ -z $__ptyd_last || $__ptyd_text != *PIPESTATUS* ]] || __ptyd_repeat_pipestatus
  # PS0 is printed after the line was accepted and before it runs, without a fork and without a command of its own; but
  # on stderr, and only if it was ours when the prompt was made.
  __ptyd_mark=$'\e]7337;C;'${staged[2]}$'\a'
  if [[ ${PS0-} != "$__ptyd_ps0"* || -n ${__ptyd_stderr_gone-} || $BASHOPTS != *promptvars* ]]; then
    line="{ __ptyd_begin && :; } 2>/dev/null; $line"
  fi
  # Before anything else runs, and before PS0 is printed, preexec hooks are shown the text.
  [[ -z $__ptyd_key ]] || ! __ptyd_history "${staged[3]-}" || line="{ __ptyd_history && :; } 2>&96; $line"
  __ptyd_taken=$id
  READLINE_LINE=" $line" READLINE_POINT=$((${#line} + 1))
}

# The same under options that would show it, end it or export what it assigns.
__ptyd_load_quietly() {
  local options=$-
  # Not put back on return: the trace of our line would show the whole text. The text itself turns it on again.
  set +x
  local -
  set +aeu
  __ptyd_load_carefully "$1" "$options"
  # Nothing was taken, so nothing will turn it on again but the hook.
  [[ $options != *x* || -n $READLINE_LINE ]] || __ptyd_xtrace=(x)
}

# A head that may lack its body, or a list its end: bash would say that it did not expect the code behind the text. Wrong in the
# careful direction, and four patterns, for one with alternatives takes seconds for a long text.
__ptyd_has_head() {
  [[ $__ptyd_text == *for[[:space:]\(]* || $__ptyd_text == *select[[:space:]]* || $__ptyd_text == *case[[:space:]]* ||
    $__ptyd_text == *'=('* ]]
}

# Refuses a text that is incomplete, before it runs; $1 is the shell's options. Only here a round trip forks.
__ptyd_examine() {
  [[ $__ptyd_text == *'<<'* || $1 == *e* || __ptyd_is_5_0 -ne 0 ]] || __ptyd_has_head ||
    [[ $__ptyd_text =~ $__ptyd_dangling ]] || return 0
  __ptyd_check
  case $? in
    3) __ptyd_flags=i __ptyd_text='__ptyd_refuse && :' ;;
    # A syntax error is left to `eval`, since an option that the text itself sets may make it none. But under `set -e`
    # a failing `eval` would end the shell, where a typed error does not.
    2) [[ $1 != *e* ]] || __ptyd_flags=n __ptyd_text='__ptyd_refuse && :' ;;
  esac
}

# Makes the line begin with a pipeline that ends as the last command's did; `line` and `status` are the loader's.
__ptyd_repeat_pipestatus() {
  local again="__ptyd_pass \"\$?\" && :; __ptyd_pass ${__ptyd_last// / | __ptyd_pass }"
  # `&& :` for the reason given with PROMPT_COMMAND; but a `:` that runs would be the new PIPESTATUS.
  ((status == 0)) || again+=' && :'
  line="$again; $line"
}

# $1 is the id of the command that was not taken, or that is running.
__ptyd_say_running() {
  [[ ! -S /dev/fd/97 ]] || builtin printf 'R;%s;%s;%s\0' "$__ptyd_secret" "${SRANDOM:-$RANDOM$RANDOM}${EPOCHREALTIME//[!0-9]/}" "$1" >&97
}

# Prints the start marker where PS0 cannot, and passes $? on.
__ptyd_begin() {
  local status=$?
  builtin printf '%s' "$__ptyd_mark" >/dev/tty
  return "$status"
}

# Asks a bash that executes nothing: 0 complete, 2 a syntax error, 3 incomplete. Prints its message on the terminal.
__ptyd_parses() (
  options=()
  shopt -q extglob && options=(-O extglob)
  builtin mapfile -d '' -t -n 4 staged <"$__ptyd_file"
  # A pipe, and no here-document, which may be a file on a full disk.
  said=$(builtin printf %s "${staged[3]}" 2>/dev/null | LC_ALL=C BASH_ENV='' "$BASH" "${options[@]}" -n 2>&1)
  [[ -n $said ]] || exit 0
  builtin printf '%s\n' "$said"
  [[ $said != *' unexpected end of file'* && $said != *' unexpected EOF while'* && $said != *' here-document at line '* ]] || exit 3
  exit 2
)

# The same in silence and without job control, which would hand the terminal over under the line editor.
__ptyd_check() {
  local -
  set +m
  __ptyd_parses >/dev/null
}

# Takes the place of a refused text: prints bash's message about it, and returns bash's status for it.
__ptyd_refuse() {
  __ptyd_parses >&2
  return 2
}

# `status` is the caller's.
__ptyd_finish_otherwise() {
  if [[ -n ${__ptyd_end-} ]]; then
    :
  elif [[ -n $__ptyd_text && $__ptyd_text != *'if __ptyd_tell; then'* ]]; then
    # Nothing was behind the text, for `set -v`.
    __ptyd_tell "$status" "$status"
  else
    __ptyd_explain "$status"
  fi
  status=${__ptyd_end[0]} __ptyd_end[4]=''
  # Readline's echo goes to stderr, and so does PS0.
  if [[ -t 2 ]]; then __ptyd_stderr_gone=(); else __ptyd_stderr_gone=(1); fi
  # The command may have lost the hook (PROMPT_COMMAND=); if it cannot be restored, the end is reported from here.
  __ptyd_install || __ptyd_hook "$((__ptyd_line - 1))"
}

# Finds out why there was no capture: the text has a syntax error, which may be that it is incomplete.
__ptyd_explain() {
  local -
  set +aeux
  __ptyd_end=("$1" "$1") __ptyd_flags+=n
  __ptyd_check
  if (($? == 3)); then __ptyd_flags+=i; fi
}

# Key 2 (bind -x): reports the present state when the holder misses a report. Stdin is the command that the shell ran last.
__ptyd_report() {
  local status=$? last=()
  # Not `read`: its delimiter is one variable of the process, and the `read -e` that this may interrupt uses it too.
  builtin mapfile -d '' last
  # With the hook in place an end would have been reported, so this is a `read -e` inside a command. Without it, the command that the
  # shell ran last decides; before the first end that is a start-up file, which an interrupt may have discarded.
  if __ptyd_is_hooked || [[ $__ptyd_path == $'\1' && ${last-} == *'read '*-*e* ||
    __ptyd_id -ne 0 && -z ${__ptyd_end-} && (${#FUNCNAME[@]} -gt 2 || ${last-} == *read*) ]]; then
    __ptyd_say_running "$__ptyd_id"
  else
    __ptyd_install
    __ptyd_pass "$status"
    __ptyd_hook "$1" l
  fi
}

readonly -f __ptyd_load_carefully __ptyd_load_quietly __ptyd_has_head __ptyd_examine __ptyd_repeat_pipestatus __ptyd_say_running \
  __ptyd_begin __ptyd_parses __ptyd_check __ptyd_refuse __ptyd_finish_otherwise __ptyd_explain __ptyd_report
