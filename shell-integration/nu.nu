# Makes one interactive nushell (0.109 or later) report the ends of its commands to the holder and take commands as data.
#
# Only this file defines names that begin with `__ptyd_`, and it keeps three rules: nothing on a command's way starts a
# process, the user's own hooks, keys, history and prompt stay the user's, and its state is one record, for nushell gives
# children every variable that can be a string, and a record cannot. nushell writes to no descriptor that it inherits, so
# its reports are in the output, with numbers that only the shell and the holder know. Markers, keys and promises are in README.md.

# The next of a sequence that only the shell and the holder know; sh.sh counts the same way.
def __ptyd_next [number: int] { ($number * 1103515245 + 12345) mod 2147483648 }

def __ptyd_mark [words: string] { print --no-newline $"\u{1b}]7337;($words)\u{07}" }

# Load key: puts a line that runs the staged text in the place of what was being typed, and accepts it. `source` parses the
# text as a whole and runs it at top level, so what it defines stays. It wants a path that it can see before it runs, and
# one that is not a memory file; the space in front keeps the line out of the history.
def --env __ptyd_load [] {
    # First, for whatever fails below, this is not an end of a command.
    $env.__ptyd.is_loading = true
    let staged = open --raw $env.__ptyd.file | lines
    let id = $staged.0 | into int
    # A key that a person pressed by accident finds a command that was taken before.
    if $id > $env.__ptyd.taken {
        let line = $" source ($staged.2) #__ptyd_"
        $env.__ptyd = $env.__ptyd | merge {id: $id, taken: $id, nonce: $staged.1, text: $staged.2, line: $line}
        __ptyd_claim
        commandline edit --replace --accept $line
    }
}

# Before a line runs: where it is ours, its output begins here. Loading was a command of its own, so what the one before it
# left is put back.
def --env __ptyd_begin [] {
    if $env.__ptyd.line != '' and (commandline) == $env.__ptyd.line {
        $env.LAST_EXIT_CODE = $env.__ptyd.status
        $env.__ptyd.line = ''
        __ptyd_mark $"C;($env.__ptyd.nonce)"
    }
}

# Before a prompt: reports the end of the line that ran, a command of ours or a line that a person typed.
def --env __ptyd_end [] {
    if $env.__ptyd.is_loading {
        $env.__ptyd.is_loading = false
        return
    }
    let status = $env.LAST_EXIT_CODE
    let number = __ptyd_next $env.__ptyd.number
    # nushell writes a signal as a negative number.
    let code = if $status < 0 { 128 - $status } else { $status }
    let flags = if $status == 1 and $env.__ptyd.id != 0 { __ptyd_look } else { '' }
    __ptyd_mark $"D;($number).($code).($env.__ptyd.id)($flags)"
    $env.__ptyd = $env.__ptyd | merge {number: $number, status: $status, id: 0, line: ''}
    __ptyd_claim
}

# nushell also ends a text that it cannot parse with 1; its parser, which runs nothing, checks whether it can be parsed.
def __ptyd_look [] {
    let error = try { ast --json (open --raw $env.__ptyd.text) | get error | from json } catch { null }
    if $error == null {
        ''
    } else if ($error | describe) =~ 'UnexpectedEof|Unclosed' {
        '.i'
    } else {
        '.n'
    }
}

# Puts our hooks in front of the user's, and our key among theirs, unless they are there. Hook and key see to each other, for
# a person may put another configuration in the place of the one with ours.
def --env __ptyd_claim [] {
    for name in [pre_execution pre_prompt] {
        let ours = $env.__ptyd | get $name
        let now = $env.config.hooks | get --optional $name
        let now = if $now == null { [] } else if ($now | describe) =~ '^(list|table)' { $now } else { [$now] }
        if $ours not-in $now {
            $env.config.hooks = $env.config.hooks | upsert $name ([$ours] ++ $now)
        }
    }
    if ($env.config.keybindings | all {|key| $key.name? != __ptyd }) {
        # As nushell's editor names the bytes ESC 0x1f. Those of the accept key, which has nothing to do here, would be a 6.
        let key = {name: __ptyd, modifier: control_alt, mode: [emacs vi_normal vi_insert]}
        $env.config.keybindings ++= [
            ($key | merge {keycode: char_7, event: {send: executehostcommand, cmd: ' __ptyd_load'}})
            ($key | merge {keycode: char_6, event: {send: none}})
        ]
    }
}

# The path and a number come over the socket, behind a secret that is for shells that can answer there, and not in the
# environment, which any child could read. nushell reads no descriptor either, so a child does that, once. It says nothing
# where there is no socket, and the shell is just the user's.
let __ptyd_greeting = do { ^/bin/sh -c 'for i in 1 2 3; do read -r x <&9 && echo "$x"; done 2>/dev/null' | lines }
if ($__ptyd_greeting | length) == 3 {
    # Where the head of a command is staged, the last number, the command (0: none is running), the greatest so far, the nonce
    # of its start, where its text is, the line that runs it, the status of the one before, whether the key's own line
    # runs, and the user's lists of hooks.
    $env.__ptyd = {
        file: $__ptyd_greeting.1
        number: ($__ptyd_greeting.2 | into int)
        id: 0
        taken: 0
        nonce: ''
        text: ''
        line: ''
        status: 0
        is_loading: false
        pre_execution: {|| __ptyd_begin }
        pre_prompt: {|| __ptyd_end }
    }
    __ptyd_claim
}
