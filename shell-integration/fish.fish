# Makes one interactive fish (3.6 or later) attest the ends of its commands to the holder and take commands as data.
#
# Only this file defines names that begin with `__ptyd_` in fish, and it keeps three rules: nothing on a command's way
# forks or substitutes a command (which costs ten builtins), no user setting (bindings, prompts, abbreviations, IFS,
# functions named like builtins) may break it, and the user's own prompt, history and variables stay the user's. Records,
# keys and guarantees are in README.md.

# Sourced by `--init-command`, which is after the user's files, and once more by the report key, which restores what
# the user has erased. The secret and the path come over the socket and not in the environment, which any child could
# read. It is asked whether there is a socket, for a redirection that fails cannot be silenced.
if not set -q __ptyd_secret
    status is-interactive; and test -S /proc/self/fd/97
    and string match -qr '^(3\.([6-9]|\d\d)|[4-9]|\d\d)' -- $version
    or return 0
    # No builtin of fish reads from a descriptor above 2, and a socket cannot be opened by name. `--line` takes the
    # lines as they are, whatever IFS is.
    /bin/sh -c 'read -r a; read -r b; printf "%s\n%s\n" "$a" "$b"' <&97 | read -g --line __ptyd_secret __ptyd_file
    test -n "$__ptyd_file"; or return 0
    # This file, the text to evaluate and how it was given, the line that does so, the command's id (0: none), the last id taken, its flags,
    # its start marker while it is not printed, whether it was interrupted until then, the statuses of the pipeline that the
    # last command of ours was, whether a line runs, the lines that run within it, whether its end is reported, the statuses
    # to report at the prompt, and the last reported PATH.
    set -g __ptyd_script (status filename)
    set -g __ptyd_text
    set -g __ptyd_given
    set -g __ptyd_line
    set -g __ptyd_id 0
    set -g __ptyd_taken 0
    set -g __ptyd_flags ''
    set -g __ptyd_mark
    set -g __ptyd_cut
    set -g __ptyd_last
    set -g __ptyd_busy
    set -g __ptyd_nested
    set -g __ptyd_told
    set -g __ptyd_end
    set -g __ptyd_path \1
end

# Accept key: takes the staged command (its head, its id, its nonce, its text) and executes a line that evaluates it, in the place
# of what was being typed. The load key, which comes before it, ends a search or a menu, which would eat the line.
function __ptyd_take
    set -l statuses $status $pipestatus
    begin
        read -fz head
        read -fz id
        read -fz nonce
        read -fz text
    end <$__ptyd_file
    set -l read_status $status
    if __ptyd_is_in_read
        # An answer that a person has begun to type stays.
        test -n "$__ptyd_busy"; or __ptyd_defer
        __ptyd_refuse "$id"
        return
    end
    if test $read_status = 122
        # The text is longer than the user's $fish_read_limit.
        __ptyd_refuse "$id"
        set id
    end
    set -l line ''
    # A key that a person pressed by accident finds a command that was taken before.
    if string match -qr '^\d+$' -- "$id"; and test "$id" -gt "$__ptyd_taken"
        set -g __ptyd_id $id
        set -g __ptyd_taken $id
        set -g __ptyd_busy 1
        set -g __ptyd_cut
        set -g __ptyd_end
        set -g __ptyd_mark \e']7337;C;'$nonce\a
        set -g __ptyd_given "$text"
        # The editor's own parser says whether the text is whole. It sees only what the key leaves behind at its end.
        # The two line ends make a trailing backslash or comment what it is in a script.
        builtin commandline -r -- "$text"\n\n
        builtin commandline --is-valid
        if test $status = 2
            # fish runs nothing of a text that is not whole: `eval` only says what is missing.
            set -g __ptyd_flags i
            set -g __ptyd_text "$text"
        else
            # The code after the text runs only when the text ran to its end. Since the text is whole, it is a
            # statement of its own. It captures the statuses in one expansion, since the next one would see others.
            set -g __ptyd_text "$text"\n\n'__ptyd_tell $status $pipestatus'
        end
        # $status survives by itself. Those of a pipeline do not, but only a text that names them can tell.
        if set -q __ptyd_last[1]
            set statuses $statuses[1] $__ptyd_last
            set -g __ptyd_last
        end
        if string match -q '*pipestatus*' -- $text
            test $statuses[1] = $statuses[-1]; or set line 'not '
            set line "$line"'__ptyd_pass '$statuses[2]
            for code in $statuses[3..]
                set line "$line | __ptyd_pass $code"
            end
            set line "$line; "
        end
        # The space in front keeps it out of the history file, the one behind it out of the reach of abbreviations.
        # If an interrupt ends an `eval`, fish sets its status to 130, wherever the interrupt came.
        set line " builtin eval '__ptyd_begin; $line"'builtin eval $__ptyd_text; __ptyd_finish'"' "
        # As Enter does in vi's other modes.
        switch "$fish_bind_mode:$fish_key_bindings"
            case 'default:*vi_key*' 'default:*hybrid*' 'visual:*' 'replace*' 'operator:*'
                set -g fish_bind_mode insert
        end
    end
    # An empty line, when there is no command to take: a new prompt reports that.
    set -g __ptyd_line "$line"
    builtin commandline -r -- "$line"
    builtin commandline -f execute
end

# Says that command $argv[1] was not taken, or that it still runs.
function __ptyd_refuse
    set -l fish_trace
    read -l -d - nonce a b c d </proc/sys/kernel/random/uuid
    builtin printf 'R;%s;%s;%s\0' $__ptyd_secret $nonce$a$b$c$d "$argv[1]" >&97
end

# Whether a line runs now, so that the editor is that of a `read` in it.
function __ptyd_is_running
    status is-breakpoint; and return
    # A command substitution would be subject to the user's $fish_read_limit.
    status current-commandline | string match -qr '[^\s]'
end

# Whether the editor that runs our key is that of a `read`: in a line, or in a function that no line calls, as a hook of the
# prompt is. A line of the stack that is not indented names a function, or what called one; at the prompt all are ours.
function __ptyd_is_in_read
    __ptyd_is_running; and return
    status stack-trace | string match -qr '^\S(?!.*__ptyd_)'
end

# A hook of the prompt reads: the prompt behind it is reported, although the end of the command was.
function __ptyd_defer
    set -g __ptyd_id 0
    set -g __ptyd_told
    set -g __ptyd_flags ''
end

# A `read` begins. Between the end of a line and the prompt it is a hook's, and the holder is to press no keys.
function __ptyd_reads --on-event fish_read
    set -l fish_trace
    test -z "$__ptyd_busy"; and test -n "$__ptyd_told$__ptyd_end"; or return
    __ptyd_defer
    __ptyd_refuse 0
end

# Prints the start marker, and passes $status on. An interrupt that came since the command was taken is handled by
# the event: the text is not begun then. From where its handler is erased on, an interrupt ends what runs.
function __ptyd_begin
    set -l status_before $status
    set -l fish_trace
    builtin emit __ptyd_begins
    if set -q __ptyd_cut[1]
        set -g __ptyd_flags nc
        set -g __ptyd_text '__ptyd_tell 130 130'
        return 130
    end
    builtin printf %s $__ptyd_mark
    set -g __ptyd_mark
    builtin functions -e __ptyd_interrupt
    return $status_before
end

# One element of a pipeline that has to end as an earlier one did.
function __ptyd_pass
    return $argv[1]
end

# Reports an end, record and marker: $argv is the status and those of the pipeline.
function __ptyd_tell
    set -l fish_trace
    # If an interrupt comes before its handler is back, the end is told behind the line.
    set -g __ptyd_end $argv
    function __ptyd_interrupt --on-signal INT
        __ptyd_stay
    end
    # The nonce is made here and now, so nothing that ran before could print it.
    read -l -d - nonce a b c d </proc/sys/kernel/random/uuid
    set nonce $nonce$a$b$c$d
    if test "$PATH" != "$__ptyd_path"
        set -g __ptyd_path "$PATH"
        builtin printf 'P;%s;%s\0' $__ptyd_secret "$__ptyd_path" >&97
    end
    # The record goes first, so a reader that finds the marker in the output has the record already.
    builtin printf 'D;%s;%s;%s;%s;%s;%s;%s\0' $__ptyd_secret $nonce $__ptyd_id $argv[1] "$argv[2..]" \
        "$__ptyd_flags" "$PWD" >&97
    and builtin printf '\e]7337;D;%s\a' $nonce
    and set -g __ptyd_told 1
    set -g __ptyd_last
    test $__ptyd_id = 0; or set -g __ptyd_last $argv[2..]
    return $argv[1]
end

# Behind `eval`: gives the line the status of the command.
function __ptyd_finish
    set -l status_before $status
    set -l fish_trace
    if test -z "$__ptyd_told"
        # It was not run to its end, nor cut short: it could not be parsed.
        test -n "$__ptyd_flags"; or set -g __ptyd_flags n
        __ptyd_tell $status_before $status_before
    end
    return $status_before
end

# A line is about to run. If it is not ours, a person typed it; even after the accept key, for fish 3 lets a search
# in the history that was given up replace the line as late as that.
function __ptyd_preexec --on-event fish_preexec
    set -l fish_trace
    if test "$argv[1]" != "$__ptyd_line"
        if test $__ptyd_id != 0
            if not set -q __ptyd_mark[1]
                # Ours has begun: it runs a `breakpoint`, which has a prompt of its own.
                set -ga __ptyd_nested 1
                return
            end
            __ptyd_refuse $__ptyd_id
            set -g __ptyd_id 0
            set -g __ptyd_mark
            set -g __ptyd_flags ''
        end
        set -g __ptyd_busy 1
        set -g __ptyd_told
        set -g __ptyd_end
        set -g __ptyd_last
        builtin functions -e __ptyd_interrupt
    end
end

# A line has ended. `exit` passes here too, so unreported ends wait for the prompt; except for an interrupted line,
# because fish's output before a prompt would be in its output.
function __ptyd_postexec --on-event fish_postexec
    set -l statuses $status $pipestatus
    set -l fish_trace
    if set -q __ptyd_nested[1]
        set -e __ptyd_nested[1]
        return
    end
    # A second interrupt would end what follows.
    function __ptyd_interrupt --on-signal INT
        __ptyd_stay
    end
    set -g __ptyd_busy
    __ptyd_follow
    if test -z "$__ptyd_told"
        if set -q __ptyd_end[1]
            # The text ran to its end, and an interrupt came before the report.
            __ptyd_tell $__ptyd_end
            return
        end
        set -g __ptyd_end $statuses
        if test $__ptyd_id != 0
            set -g __ptyd_flags n
            test $statuses[1] != 130; or __ptyd_tell $statuses
        end
    end
end

# A prompt is about to be shown: the shell's own, unless a line runs.
function __ptyd_prompt
    set -l statuses $status $pipestatus
    set -l fish_trace
    if test -n "$__ptyd_busy"; and __ptyd_is_running
        return
    end
    if test -z "$__ptyd_told"
        if set -q __ptyd_mark[1]
            # A command was taken, and its line is lost.
            set -g __ptyd_flags nc"$__ptyd_flags"
            __ptyd_tell 130 130
        else if set -q __ptyd_end[1]
            __ptyd_tell $__ptyd_end
        else
            __ptyd_tell $statuses
        end
    end
    set -g __ptyd_told
    set -g __ptyd_id 0
    set -g __ptyd_busy
    set -g __ptyd_flags ''
    set -g __ptyd_text
    set -g __ptyd_line
    set -g __ptyd_mark
    set -g __ptyd_end
    # A loop of the shell's own does not end by an interrupt that has a handler. So there is one while none of the
    # user's code runs: an interrupt without a handler would end ours anywhere.
    function __ptyd_interrupt --on-signal INT
        __ptyd_stay
    end
    # The user's files and commands may erase all bindings, and another set of bindings has other modes.
    builtin bind -M $fish_bind_mode \e\x1e >/dev/null 2>&1; or __ptyd_bind
end

# Puts our handler behind those of the user, for a prompt is there when all of them have run.
function __ptyd_follow
    function __ptyd_prompts --on-event fish_prompt
        __ptyd_prompt
    end
end

# The report key may come while the user's handlers run, and one that is defined anew is not called any more.
functions -q __ptyd_prompts; or __ptyd_follow

# A line that a person typed cannot be parsed, or an interrupt came, with or without something typed: the same prompt
# continues. A command that was taken is not begun any more.
function __ptyd_stay --on-event fish_posterror
    set -l statuses $status $pipestatus
    set -l fish_trace
    if set -q __ptyd_mark[1]
        set -g __ptyd_cut 1
    else if test $__ptyd_id = 0
        __ptyd_tell $statuses
        set -g __ptyd_told
        set -g __ptyd_end
    end
end

# The window's title is the running line; for a line of ours, the command's text. A function that the
# user defines later is the user's.
if not functions -q __ptyd_title; and functions -q fish_title
    functions -c fish_title __ptyd_title
    function fish_title
        set -l statuses $status $pipestatus
        if test -n "$__ptyd_busy"; and not set -q argv[1]; and not __ptyd_is_running
            # It is the prompt's title: the second of two interrupts has ended the events behind the line and those of
            # this prompt.
            function __ptyd_interrupt --on-signal INT
                __ptyd_stay
            end
            set -q __ptyd_end[1]; or set -g __ptyd_end $statuses
            __ptyd_prompt >&2
        end
        if set -q argv[1]; and test "$argv[1]" = "$__ptyd_line"
            # The text of a title must not contain its end.
            string replace -ar '[[:cntrl:]]+' ' ' -- "$__ptyd_given" | read -l --line given
            set argv[1] "$given"
        end
        __ptyd_title $argv
    end
end

# Report key: reports the present state when the holder misses a report. The file was sourced again before.
function __ptyd_report
    if __ptyd_is_in_read
        __ptyd_refuse $__ptyd_id
    else
        set -q __ptyd_end[1]; or set -g __ptyd_end $__ptyd_seen
        set -g __ptyd_flags "$__ptyd_flags"l
        set -g __ptyd_told
        set -g __ptyd_busy
        __ptyd_prompt
    end
end

function __ptyd_bind
    for mode in default insert visual replace replace_one operator
        builtin bind -M $mode \e\x1f cancel
        builtin bind -M $mode \e\x1e __ptyd_take
        builtin bind -M $mode \e\x0e \
            'set -g __ptyd_seen $status $pipestatus; source $__ptyd_script; __ptyd_report'
    end
end

__ptyd_bind
