# Makes one interactive zsh (5.8 or later) attest the ends of its commands to the holder and take commands as data.
#
# Only this file defines names that begin with `__ptyd_`, and it keeps three rules: nothing on the normal path forks, no
# user setting (options, aliases, traps, redirections) may break it or show it more than unavoidable, and the user's own
# prompt, history and variables stay the user's. Records, keys and guarantees are in README.md.
#
# zsh reads it as $ZDOTDIR/.zshenv; or a person sources it at a prompt. It then sources itself once more for its functions.

if [[ -z ${__ptyd_defining-} ]]; then
  # ZDOTDIR is the user's again before any file of the user's or any child sees it, so zsh itself finds the others.
  if [[ ${ZDOTDIR-} == "${${(%):-%x}:h}" ]]; then
    if [[ -n ${PTYD_ZDOTDIR+set} ]]; then
      export ZDOTDIR=$PTYD_ZDOTDIR
    else
      unset ZDOTDIR
      # A global zshenv with `: ${ZDOTDIR:=…}` found it set. Only a zsh started without ZDOTDIR shows its value.
      if [[ "$(</etc/zshenv)$(</etc/zsh/zshenv)" == *ZDOTDIR* ]]; then
        ZDOTDIR=$(/proc/$$/exe -fc 'builtin print -rn -- "${ZDOTDIR-}"')
        if [[ -n $ZDOTDIR ]]; then export ZDOTDIR; else unset ZDOTDIR; fi
      fi
    fi 2>/dev/null
  fi
  unset PTYD_ZDOTDIR

  # The secret and the path come over the socket and not in the environment, which any child and `ps e` could read. This
  # must stay before the user's files: they may do anything, a `read` from the terminal included.
  if [[ -o interactive && -o zle && $ZSH_VERSION == (5.(8|9|<10->)|<6->.)* && -z ${__ptyd_secret-} ]] &&
    zmodload zsh/parameter zsh/zle && IFS= read -r -u 97 __ptyd_secret 2>/dev/null && IFS= read -r -u 97 __ptyd_file; then
    # zsh's own descriptor of the terminal, which nothing closes and no child inherits; without the module that writes to it (-1),
    # the terminal is opened by name each time.
    if [[ -t 10 ]] && zmodload -F zsh/system b:syswrite b:sysread; then __ptyd_tty=10; else __ptyd_tty=-1; fi 2>/dev/null
    typeset -gr +x __ptyd_secret __ptyd_file __ptyd_tty
    typeset -g +x __ptyd_defining=${(%):-%x}

    # Not in the emulation below, as they parse the text with the user's options and aliases: a text that is incomplete or
    # would include the code after it is found by asking zsh itself, which runs nothing, and forks only to refuse one.
    __ptyd_load() {
      {
        # None of these affects the parsing of the text; ALL_EXPORT would export it.
        [[ ! -o allexport && ! -o errexit && ! -o errreturn ]] || setopt localoptions noallexport noerrexit noerrreturn
        [[ $CONTEXT == start && -z $__ptyd_keeps ]] || __ptyd_look_closer || return 0
        __ptyd_take && functions[__ptyd_try]="$__ptyd_text"
        # Calling a function is what costs most in zsh; so the usual text is placed here, by what no option changes.
        if [[ -n $__ptyd_line && "${functions[__ptyd_try]-}" == *"$__ptyd_parsed" ]]; then
          BUFFER=" $__ptyd_line" CURSOR=${#BUFFER}
          return 0
        fi
        __ptyd_place || {
          # Twice, since an interrupt in the middle may be why the first time failed.
          functions[__ptyd_try]="$__ptyd_text"
          __ptyd_place
        } || {
          # A DEBUG trap would print into zsh's messages.
          setopt localoptions localtraps
          trap - DEBUG
          __ptyd_refuse "$(__ptyd_ask 2>&1)" "$(__ptyd_ask $'\n)' 2>&1)" "$(__ptyd_ask $'\n}' 2>&1)" \
            "$(__ptyd_ask $'\n))' 2>&1)" "$(__ptyd_ask $'\n]]' 2>&1)"
        }
      } 2>/dev/null
    }
    __ptyd_ask() { functions[__ptyd_try]="$__ptyd_raw${1-}"; }
    # Here, too, the user's options are seen. The usual prompt, behind a reported end, takes no other function; the first test is for
    # a widget or a command of the user's that runs all hooks, and __ptyd_prompt has it, too.
    __ptyd_hook() {
      {
        local code=$? pipe="${(j: :)pipestatus[@]}"
        if [[ ${(j: :)zsh_eval_context[@]} == shfunc && $__ptyd_told$__ptyd_id == 10 && ! -o allexport && ! -o errexit && ! -o errreturn &&
          "${precmd_functions[1]-} ${zshaddhistory_functions[1]-}" == '__ptyd_hook __ptyd_hide' ]]; then
          __ptyd_told='' __ptyd_text='' __ptyd_raw='' __ptyd_options="$-"
          unset 'functions[__ptyd_try]'
          bindkey '^[^_' __ptyd_load '^[^^' .accept-line '^[^N' __ptyd_report
          bindkey -M vicmd '^[^_' __ptyd_load '^[^^' .accept-line '^[^N' __ptyd_report
        else
          __ptyd_prompt $code "$pipe" "$-"
        fi
      } 2>/dev/null
    }

    # With its own options for every function that it defines, whatever the user sets later; that includes the trace.
    emulate -R zsh -o no_aliases -o no_xtrace -o no_bg_nice -c 'builtin source "$__ptyd_defining"'
    unset __ptyd_defining
  fi

  # A session without the user's files: zsh reads none of those that would follow either.
  if [[ -n ${PTYD_ZSH_CLEAN-} ]]; then
    setopt norcs
  fi
  unset PTYD_ZSH_CLEAN
  # The user's file, as zsh itself would have done now.
  if [[ ${zsh_eval_context[1]} != toplevel && -o rcs && -r ${ZDOTDIR-$HOME}/.zshenv ]]; then
    builtin source "${ZDOTDIR-$HOME}/.zshenv"
  fi
  return
fi

# The text to evaluate with the code after it, the text alone, the command's id (0: none is running), the greatest so far,
# its flags, its start marker, its status and its pipeline's, whether an end was reported since the last line, zsh's message
# about a bad text, whether the accept key does nothing, whether the line editor reports the next prompt (told: the hook has
# reported it), the user's options at the last prompt, the last reported PATH, the line that evaluates the text, and what that line
# calls when the text was cut short, and to end with its status.
typeset -g +x __ptyd_text= __ptyd_raw= __ptyd_id=0 __ptyd_taken=0 __ptyd_flags= __ptyd_mark= __ptyd_code=0 __ptyd_pipe= \
  __ptyd_told= __ptyd_said= __ptyd_keeps= __ptyd_deferred= __ptyd_options= __ptyd_path=$'\1' __ptyd_line= __ptyd_cut=__ptyd_cut __ptyd_finish=__ptyd_finish

# The code after every text. A line of its own, after a blank one, ends a comment and a trailing backslash. The
# redirection hides the trace, and no alias is expanded behind a backslash.
typeset -gr +x __ptyd_telling=$'\n\n{ \\__ptyd_tell; } &>/dev/null\n'
# The same as zsh prints it when it is a command of its own, and not a part of the text before it.
functions[__ptyd_try]=$__ptyd_telling
typeset -gr +x __ptyd_parsed=$functions[__ptyd_try]

# `eval` runs at top level, so that declarations, `return` and traps work as if typed. `always` reports the end of a text that an error or
# an interrupt cut short, before zsh marks an unfinished line of output. __ptyd_finish restores $? for the prompt;
# `&& :` keeps that from ending a shell with ERR_EXIT. Where there is nothing to do for either, its variable is `:`. The start marker is
# printed by expanding the argument, without a command.
typeset -gr +x __ptyd_evaluating='{ \builtin \eval "${__ptyd_text:__ptyd_begin()}"; } always { $__ptyd_cut; }; $__ptyd_finish && :'
# The same while the user has XTRACE on, which would show the whole text as the argument of `eval`. No function can turn it
# off for its caller. It is turned on again before the text, which finds $? as it was.
typeset -gr +x __ptyd_evaluating_quietly='{ __ptyd_code=$?; \unsetopt xtrace; } 2>/dev/null; '\
'{ \builtin \eval "${__ptyd_text:__ptyd_begin()}"; } always { { \__ptyd_cut; } 2>/dev/null; }; '\
'{ \__ptyd_finish && :; } 2>/dev/null'
typeset -gr +x __ptyd_tracing='{ \setopt xtrace; \__ptyd_finish && :; } 2>/dev/null; '

# Prints the start marker. A function of arithmetic, so that $? and pipestatus stay.
__ptyd_begin() {
  # The value of a function is the last that was computed in it. One statement, for a DEBUG trap sees each.
  [[ -t $__ptyd_tty ]] && builtin syswrite -o $__ptyd_tty -- $__ptyd_mark${${:-$((0))}#0} ||
    builtin print -rn -- $__ptyd_mark${${:-$((0))}#0} >/dev/tty
}
functions -M __ptyd_begin 0 0

# Reports an end, record and marker, and passes them to the prompt. It follows every text and runs only when
# the text ran to its end; or $1 and $2 are the status and the pipeline's.
__ptyd_tell() {
  # One statement, since the next one would already see other values.
  __ptyd_code=${1-$?} __ptyd_pipe=${2-${(j: :)pipestatus}}
  # zsh leaves pipestatus as it was for what runs no command (x=1, [[ ]]).
  [[ $__ptyd_pipe == *' '* ]] || __ptyd_pipe=$__ptyd_code
  # The nonce is made here and now, so nothing that ran before could print it. The kernel's, since $RANDOM can be predicted.
  local nonce="$(</proc/sys/kernel/random/uuid)" record
  nonce=$((16#${${nonce//-}[1,15]:-$RANDOM$RANDOM}))
  [[ ${PATH-} == "$__ptyd_path" ]] || __ptyd_tell_path
  record="D;$__ptyd_secret;$nonce;$__ptyd_id;$__ptyd_code;$__ptyd_pipe;$__ptyd_flags;${PWD-}"$'\0'
  # The record goes first, so a reader that finds the marker in the output has the record already. The marker goes to the
  # terminal itself, for a command may have redirected 1 and 2 for good. The holder takes datagrams of up to 8192 bytes, to which
  # `print` splits a longer record.
  [[ $__ptyd_tty != -1 && $#record -lt 2000 ]] && builtin syswrite -o 97 -- $record || builtin print -rnu97 -- $record
  [[ -t $__ptyd_tty ]] && builtin syswrite -o $__ptyd_tty -- $'\e]7337;D;'$nonce$'\a' ||
    builtin print -rn -- $'\e]7337;D;'$nonce$'\a' >/dev/tty
  __ptyd_id=0 __ptyd_told=1 __ptyd_flags= __ptyd_cut=:
  [[ $__ptyd_code != 0 || ${precmd_functions[1]-} != __ptyd_hook ]] || __ptyd_finish=:
  return 0
}

__ptyd_tell_path() {
  __ptyd_path=${PATH-}
  builtin print -rnu97 -- "P;$__ptyd_secret;$__ptyd_path"$'\0'
}

# Always runs after the text: an error or an interrupt may have discarded the rest of it.
__ptyd_cut() {
  local code=$?
  if (( __ptyd_id )); then
    # A child that SIGQUIT has ended interrupts zsh, too. After an interrupted loop of its own zsh reports one value or the other.
    (( TRY_BLOCK_INTERRUPT == 0 || code == 131 )) || code=130
    __ptyd_flags+=n
    __ptyd_tell $code $code 2>/dev/null
  fi
}

# Gives the line the status of the command.
__ptyd_finish() {
  [[ ${precmd_functions[1]-} == __ptyd_hook ]] || __ptyd_claim
  return $__ptyd_code
}

# Runs at every prompt, before other hooks, and reports the ends that are not reported yet: those of lines that a person typed, and of
# a command whose line was discarded.
__ptyd_prompt() {
  # Called by anything but the prompt (a widget or a command of the user's that runs all hooks) it does nothing.
  [[ ${(j: :)zsh_eval_context} == 'shfunc shfunc' ]] || return 0
  if (( __ptyd_id )); then
    __ptyd_flags+=n
    __ptyd_tell $1 $1
  elif [[ -z $__ptyd_told ]]; then
    __ptyd_tell $1 $2
    __ptyd_deferred=${__ptyd_deferred:+told}
    # zsh itself keeps the pipeline's.
    __ptyd_pipe=
  fi
  __ptyd_told= __ptyd_text= __ptyd_raw= __ptyd_options=$3
  (( ! ${+functions[__ptyd_try]} )) || unset 'functions[__ptyd_try]'
  __ptyd_claim
  return 0
}

# Puts the hooks in front of what the user has, and the keys into the keymaps in use. Fails where it may not.
__ptyd_claim() {
  bindkey '^[^_' __ptyd_load '^[^^' .accept-line '^[^N' __ptyd_report
  bindkey -M vicmd '^[^_' __ptyd_load '^[^^' .accept-line '^[^N' __ptyd_report
  [[ ${zshaddhistory_functions[1]-} == __ptyd_hide || ${(t)zshaddhistory_functions} == *readonly* ]] ||
    typeset -ga zshaddhistory_functions=(__ptyd_hide ${zshaddhistory_functions:#__ptyd_hide})
  [[ ${precmd_functions[1]-} != __ptyd_hook ]] || return 0
  [[ ${(t)precmd_functions} != *readonly* ]] || return 1
  typeset -ga precmd_functions=(__ptyd_hook ${precmd_functions:#__ptyd_hook})
}

# History keeps what people type: our line goes to a list of its own, which zsh drops as soon as the line is read. A status
# that is not zero, or HIST_IGNORE_SPACE, would leave it in reach of `!!` until the next line. The end of another line is due at the
# next prompt. An interrupted `precmd` of the user's may have kept our hook from noting that.
__ptyd_hide() {
  if [[ $__ptyd_id == 0 ]]; then
    __ptyd_told=
  elif [[ $1 == *__ptyd_text* ]]; then
    fc -p
  fi
  return 0
}

# Key 1: takes the staged command (its head, its id, its nonce, its text). __ptyd_place then puts a line that evaluates it in the place
# of what was being typed. The holder has rewound the descriptor, and children share its offset: if one has moved it, this one read
# does not begin with the head. A second read could begin anywhere. NULs follow the text, which has none.
__ptyd_take() {
  # In every case below, the accept key that follows must not run a line that a person has half typed.
  BUFFER=
  __ptyd_text= __ptyd_line=
  local text=
  builtin sysread -i 96 -s 1024 text
  local staged=("${(@ps:\0:)${text%%$'\0\0'*}}")
  [[ $staged[1] == ptyd\ *<-> && $staged[2] == <-> && ${staged[1]##* } -lt 976 ]] || __ptyd_open || return 1
  # A key that a person pressed by accident finds a command that was taken before.
  (( staged[2] > __ptyd_taken )) || return 1
  # A continuation line of what a person has begun, or an editor inside a command.
  if [[ $CONTEXT != start ]]; then
    __ptyd_say_running $staged[2]
    return 1
  fi
  __ptyd_id=$staged[2] __ptyd_taken=$staged[2] __ptyd_mark=$'\e]7337;C;'$staged[3]$'\a' __ptyd_flags= __ptyd_told= __ptyd_said= \
    __ptyd_raw=${staged[4]-} __ptyd_cut=__ptyd_cut __ptyd_finish=__ptyd_finish
  __ptyd_text=$__ptyd_raw$__ptyd_telling
  [[ $__ptyd_options == *x* || $__ptyd_pipe == *' '* && $__ptyd_text == *pipestatus* ]] || __ptyd_line=$__ptyd_evaluating
  # The last prompt has done so already, unless the hook was lost.
  (( ! ${+functions[__ptyd_try]} )) || unset 'functions[__ptyd_try]'
}

# The same for a long text, a moved offset and a zsh without the module: the file's name opens it at its beginning, and no child shares
# that offset. `staged` and `text` are the caller's.
__ptyd_open() {
  staged=()
  {
    while (( $#staged < 3 )) && IFS= builtin read -rd '' -u 0 text; do
      staged+=("$text")
    done
    [[ $staged[1] == ptyd\ *<-> && $staged[2] == <-> ]] || return 1
    text=
    builtin sysread -s ${staged[1]##* } text || IFS= builtin read -rd '' -u 0 text
    staged[4]=$text
  } <$__ptyd_file
}

# Has the accept key leave the line of a `vared` as it is, and fails there. Where that is one of a hook of the prompt, the prompt behind
# those hooks is reported, although the end of the command was.
__ptyd_look_closer() {
  local accept=.accept-line
  __ptyd_keeps=
  if [[ $CONTEXT == vared ]]; then
    # It does nothing where no completion has added anything.
    accept=.auto-suffix-retain __ptyd_keeps=1
    (( __ptyd_id )) || __ptyd_defer
    __ptyd_say_running 0
  fi
  bindkey '^[^^' $accept
  bindkey -M vicmd '^[^^' $accept
  [[ -z $__ptyd_keeps ]]
}

# Has the next line editor report that prompt, for our hook may have run before the one that asks.
__ptyd_defer() {
  __ptyd_told=
  [[ -z $__ptyd_deferred ]] || return 0
  __ptyd_deferred=1
  ! zle -l zle-line-init || zle -A zle-line-init __ptyd_users_init
  zle -N zle-line-init __ptyd_init
}

# The place of the user's own until then.
__ptyd_init() {
  local code=$?
  if [[ $CONTEXT == start ]]; then
    if zle -l __ptyd_users_init; then
      zle -A __ptyd_users_init zle-line-init
      zle -D __ptyd_users_init
    else
      zle -D zle-line-init
    fi
    [[ $__ptyd_deferred == told ]] || __ptyd_tell $code $code
    __ptyd_told= __ptyd_deferred=
    ! zle -l zle-line-init || zle zle-line-init
  else
    ! zle -l __ptyd_users_init || zle __ptyd_users_init
  fi
} 2>/dev/null

# Fails if the text was not parsed, or the code after it became part of it, and neither is a reason known yet nor $1 given.
__ptyd_place() {
  [[ -n $__ptyd_text ]] || return 0
  [[ ${functions[__ptyd_try][-$#__ptyd_parsed,-1]} == "$__ptyd_parsed" || -n $__ptyd_said || -n ${1-} ]] || return 1
  local line=$__ptyd_evaluating
  if [[ $__ptyd_options == *x* ]]; then
    line=$__ptyd_evaluating_quietly
    if [[ -z $__ptyd_said ]]; then
      __ptyd_text=$__ptyd_tracing$__ptyd_text
    else
      __ptyd_text="\\__ptyd_refused; $__ptyd_tracing$__ptyd_telling"
    fi
  elif [[ -n $__ptyd_said ]]; then
    # The redirection hides what a DEBUG trap prints in there.
    __ptyd_text="{ \\__ptyd_refused; \\__ptyd_finish && :; } >/dev/null$__ptyd_telling"
  fi
  # $? survives from the last command by itself. pipestatus does not, but only a text that names it can tell.
  [[ $__ptyd_pipe != *' '* || $__ptyd_text != *pipestatus* ]] ||
    line=${line/\"/'"${${(As: :)pipestatus::=$__ptyd_pipe}:+}'}
  BUFFER=" $line"
  CURSOR=$#BUFFER
}

# Finds out why the text cannot be run: it is incomplete, or has a syntax error. $1 is zsh's message about it, the others its messages
# about it with code after it: a text is incomplete if the message depends on the code after it.
__ptyd_refuse() {
  # After interrupts in the middle of such checks, one failed once for a correct text: never refuse that.
  if [[ ${functions[__ptyd_try]-} == *"$__ptyd_parsed" ]]; then
    __ptyd_place fit
    return
  fi
  __ptyd_flags=n
  local said
  for said; do
    [[ $said == "$1" && $said != *': unmatched '* ]] || __ptyd_flags=i
  done
  if [[ -n ${functions[__ptyd_try]-} ]]; then
    # It was parsed, but the code after it became part of it.
    __ptyd_flags=i
    __ptyd_said='zsh: incomplete: a here-document without its end, or nothing behind an operator or a head'
  else
    # In the words for a typed line.
    __ptyd_said="zsh: ${${${1%%$'\n'*}#*:}##(<->:|) }"
  fi
  __ptyd_place
}

# Takes the place of a refused text; zsh gives this status for it, too.
__ptyd_refused() {
  builtin print -ru2 -- $__ptyd_said
  __ptyd_code=1
}

# $1 is the id of the command that was not taken, or that is running.
__ptyd_say_running() {
  builtin print -rnu97 -- "R;$__ptyd_secret;$RANDOM$RANDOM;$1"$'\0'
}

# Key 2: reports the present state when the holder misses a report.
__ptyd_report() {
  local code=$?
  {
    # With the hook in place an end would have been reported, so this is an editor inside a command (vared), or no end is due.
    if [[ ${precmd_functions[1]-} == __ptyd_hook || $CONTEXT != start ]]; then
      __ptyd_say_running $__ptyd_id
    else
      __ptyd_claim
      (( ! __ptyd_id )) || __ptyd_flags+=n
      __ptyd_flags+=l
      __ptyd_tell $code $code
      __ptyd_told=
    fi
  } 2>/dev/null
}

# Before the user's files, so that the keys are there even if an error in them ends all of zsh's startup.
zle -N __ptyd_load
zle -N __ptyd_report
for __ptyd_keymap in emacs viins vicmd; do
  bindkey -M $__ptyd_keymap '^[^_' __ptyd_load '^[^^' .accept-line '^[^N' __ptyd_report
done
unset __ptyd_keymap
# The key that ends a search, which only emacs has by default. A binding of the user's comes later.
bindkey -M viins '^G' send-break

# After them, so that the hook is the first, even if they set the lists: a scheduled command runs at the first prompt
# and cannot be lost with a list.
__ptyd_start() {
  local code=$?
  {
    __ptyd_claim || __ptyd_flags+=l
    __ptyd_tell $code $code
    __ptyd_told=
  } 2>/dev/null
}
zmodload zsh/sched && sched +0 __ptyd_start
