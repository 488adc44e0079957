# shellcheck shell=sh
# shellcheck disable=SC2030,SC2031,SC2034 # Subshells try what must not harm the shell; the prompt reads some of the names.
#
# Makes one interactive dash, busybox ash or mksh attest the ends of its commands to the holder and take commands
# as data.
#
# Only this file defines names that begin with `__ptyd_`. None of these shells has a line editor with keys of ours, so the
# holder types a short line while the shell waits for one; the command is in a file and is read as a script is. README.md
# has what is promised.

# The secret, the path and a number come over the socket, and not in the environment, which any child could read. This
# must stay before the user's files, which may do anything.
if [ -z "${__ptyd_f-}" ] && IFS= read -r __ptyd_k 2>/dev/null <&9 && IFS= read -r __ptyd_f <&9 && IFS= read -r __ptyd_n <&9; then
  # How a report is written. Only a program that is part of the shell has the shell's pid, and mksh has no such printf.
  # shellcheck disable=SC2123 # It is the search path of this one subshell.
  if [ -n "${KSH_VERSION-}" ] && (PATH=/nowhere && ! command printf '' 2>/dev/null); then
    __ptyd_say() {
      command print -nr -- "$1"
      command print -n '\0'
    } >&9
    __ptyd_mark() { command print -n '\033]7337;'"$1"'\007'; } >/dev/tty
    __ptyd_put() { command print -nr -- "$1"; }
  else
    __ptyd_say() { command printf '%s\000' "$1" >&9; }
    __ptyd_mark() { command printf '\033]7337;%s\007' "$1" >/dev/tty; }
    __ptyd_put() { command printf %s "$1"; }
  fi

  # The next of a sequence that only the shell and the holder know; 31 bits, for mksh counts no further.
  # shellcheck disable=SC2016 # The prompt expands it, and __ptyd_d does.
  __ptyd_a='__ptyd_n=(__ptyd_n*1103515245+12345)&2147483647'
  # The line behind the first function below. The file evaluates the text, whose errors stay within it, and returns. The redirection
  # hides a trace.
  # shellcheck disable=SC2016 # The line evaluates it.
  readonly __ptyd_l='\command . "$__ptyd_f";{ __ptyd_r=$?.$__ptyd_i;\__ptyd_d;} 2>/dev/null'

  # The last reported PATH, the number of the text that runs (0: none), the greatest so far, and the flags of its end. __ptyd_r is
  # its status and that number, from its end until it is reported: a value there of another text (`readonly __ptyd_r`) means
  # nothing.
  __ptyd_p='' __ptyd_i=0 __ptyd_t=0 __ptyd_w=''

  # Before a text: `$1` is its number, `$2` goes into the marker where its output begins. `$?` passes through, for the
  # text may ask for it; but under `set -e` it would end the shell.
  __ptyd_c() {
    set -- "$?" "$@" "$__ptyd_n"
    # A variable assigned under `set -a` is exported to children, also the prompt's number; only a new variable is not.
    case $- in
      *a*) set +a && set -- "$@" -a ;;
      *) set -- "$@" +a ;;
    esac
    unset __ptyd_n __ptyd_r __ptyd_u
    __ptyd_n=$4
    # A trace is off until the text begins, in front of which the file has `__ptyd_u`.
    # mksh keeps `set -x` for each function, and turns it on again behind this one.
    case $-${KSH_VERSION-} in
      *v*' KSH'*) __ptyd_z=-v ;;
      *' KSH'*) ;;
      *x*v* | *v*x*) __ptyd_z=-xv ;;
      *x*) __ptyd_z=-x ;;
      *v*) __ptyd_z=-v ;;
    esac
    set +xv
    [ -z "${__ptyd_z-}" ] || __ptyd_u='{ \__ptyd_t "$?";} 2>/dev/null;'
    if [ "$2" -gt "$__ptyd_t" ]; then
      __ptyd_i=$2 __ptyd_t=$2
      __ptyd_mark "C;$3" 2>/dev/null
    fi
    # mksh takes `set -n` for nothing but what it sources.
    set +n "$5"
    case $- in *e*) return 0 ;; esac
    return "$1"
  }

  # In front of a text: the trace is on again.
  __ptyd_t() {
    set -- "$1" "$__ptyd_z"
    unset __ptyd_z
    set "$2"
    return "$1"
  }

  # After a text: reports its end. The record goes first, so a reader that finds the marker in the output has it already.
  __ptyd_d() {
    set -- "$?"
    [ -z "${KSH_VERSION-}" ] || set +x
    case $__ptyd_i:${__ptyd_r-} in
      0:) ;;
      [!0]*:*."$__ptyd_i") set -- "${__ptyd_r%.*}" ;;
      *) return 0 ;;
    esac
    case $- in
      *a*) set +a && set -- "$1" -a ;;
      *) set -- "$1" +a ;;
    esac
    __ptyd_w=''
    case $1 in [12]) __ptyd_look ;; esac
    [ "${PATH-}" = "$__ptyd_p" ] || {
      __ptyd_p=${PATH-}
      __ptyd_say "P;$__ptyd_k;$__ptyd_p"
    }
    : "$((__ptyd_n = (__ptyd_n * 1103515245 + 12345) & 2147483647))"
    __ptyd_say "D;$__ptyd_k;$__ptyd_n;$__ptyd_i;$1;$1;$__ptyd_w;${PWD-}"
    __ptyd_mark "D;$__ptyd_n"
    __ptyd_i=0
    unset __ptyd_r
    __ptyd_claim
    set "$2"
    # A text with a syntax error has not begun.
    [ -z "${__ptyd_z-}" ] || __ptyd_t 0
    return "$1"
  } 2>/dev/null

  # These shells end a text that they cannot parse with 1 or 2; another one checks whether it can be parsed, and
  # executes nothing.
  __ptyd_look() {
    # shellcheck disable=SC2086 # Empty, or one word.
    __ptyd_o=$( (__ptyd_v=__ptyd_put && command . "$__ptyd_f") 2>/dev/null | LC_ALL=C "$__ptyd_e" ${__ptyd_x-} -n 2>&1) &&
      [ -z "$__ptyd_o" ] && return 0
    case $__ptyd_o in
      *'end of file'* | *EOF* | *nterminated* | *unmatched* | *unclosed* | *'no closing'* | *"Missing '}'"* | *"missing '}'"*)
        __ptyd_w=in
        ;;
      *) __ptyd_w=n ;;
    esac
  }

  # The prompt itself reports the end of a line that a person typed, and of a text that a signal discarded.
  __ptyd_claim() {
    case ${PS1-} in
      "$__ptyd_q"*) ;;
      # Assigning to a readonly variable would throw the whole line away.
      *) (PS1='') 2>/dev/null && PS1=$__ptyd_q${PS1-} ;;
    esac
  }
  __ptyd_esc=$(command printf '\033') __ptyd_bel=$(command printf '\007')
  # shellcheck disable=SC2016 # The prompt expands it.
  __ptyd_q="$__ptyd_esc]7337;D;"'$(('"$__ptyd_a"')).${__ptyd_r:-$?}'"$__ptyd_bel"
fi

# The shell's program, and the applet that a program of many programs has to be.
__ptyd_e=${PTYD_SHELL-} __ptyd_x=${PTYD_APPLET-}
unset ENV PTYD_SHELL PTYD_APPLET __ptyd_v
# A login shell without any of the user's files is not started as one, or it would read one before this.
if [ -n "${PTYD_CLEAN-}" ] && unset PTYD_CLEAN && [ -r /etc/profile ]; then
  # shellcheck source=/dev/null # It is the system's.
  . /etc/profile
fi
if [ -n "${PTYD_ENV+set}" ]; then
  export ENV="$PTYD_ENV"
  unset PTYD_ENV
  # As the shell itself would have read it.
  # shellcheck source=/dev/null # It is the user's.
  if [ -r "$ENV" ]; then . "$ENV"; fi
fi

if [ -n "${__ptyd_f-}" ]; then
  __ptyd_claim
  (exit 0)
  __ptyd_d
fi
