// Made from schema/openapi.json by openapi-typescript: npm run types.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A command or an input that waits for a person's decision, or has one. */
        Approval: {
            /**
             * Format: date-time
             * @description When it was asked for; RFC 3339.
             */
            askedAt: string;
            /** @description The command's whole text; absent for input. */
            command?: string;
            /** @description The directory of the session's shell, where it is known. The same request in another one is asked about again. */
            cwd?: string;
            /** @description The principal that has decided. */
            decidedBy?: string;
            /**
             * Format: uint64
             * @description In how many seconds it is forgotten.
             */
            expiresIn: number;
            /** @description Its id. */
            id: string;
            /** @description The input; absent for a command or keys, and where it is secret. */
            input?: string;
            /**
             * Format: uint
             * @description How many bytes the input has, or how many keys it was where they are secret.
             */
            inputLength?: number;
            /** @description The command would run in a shell inside the session's own. */
            inside?: boolean;
            /** @description The keys, by their names; absent for anything else. */
            keys?: string[];
            /** @description The session's owner. */
            owner: string;
            /** @description The policy. */
            policy: string;
            /** @description The principal that asks: a user or a token. */
            principal: string;
            /** @description The rule that asks. */
            rule: string;
            /** @description The session. */
            sessionId: string;
            /** @description The session's name, if it has one. */
            sessionName?: string;
            /** @description The decision. */
            state: components["schemas"]["ApprovalState"];
            /** @description Why the rule matches. */
            why: string;
        };
        /** @description `GET /approvals`. */
        ApprovalList: {
            /** @description The approvals that the caller may see, oldest first. */
            approvals: components["schemas"]["Approval"][];
        };
        /**
         * @description The state of an approval.
         * @enum {string}
         */
        ApprovalState: "pending" | "allowed" | "denied";
        /** @description `GET /audit`. */
        AuditList: {
            /** @description Whether there are older ones. */
            hasMore: boolean;
            /** @description The lines, newest first, each as it is in the file; `docs/audit.md` has their fields, and later versions add some. */
            lines: {
                [key: string]: unknown;
            }[];
        };
        /** @description The results of the operations. */
        BatchAnswer: {
            /** @description One answer for each operation, in the same order. */
            responses: components["schemas"]["OperationAnswer"][];
        };
        /** @description `POST /batch`. */
        BatchRequest: {
            /** @description The operations, performed in this order; at most 64. */
            operations: components["schemas"]["Operation"][];
        };
        /**
         * @description The certainty of a command's end.
         * @enum {string}
         */
        Boundary: "attested" | "nonce" | "heuristic";
        /** @description `GET /capabilities`. */
        Capabilities: {
            /** @description The tiers of confinement, the weakest first. */
            confinement: components["schemas"]["ConfinementCapability"][];
        };
        /** @description A command as it is now. */
        CommandExecution: {
            /** @description Background output that came before it and that its caller has not been shown, within `maxChars`. */
            background?: string;
            /** @description The certainty of its end. */
            boundary: components["schemas"]["Boundary"];
            /** @description The text. */
            command: string;
            /**
             * Format: date-time
             * @description When it ended; RFC 3339.
             */
            completedAt?: string;
            /**
             * Format: uint64
             * @description The number of lines that the program ended with CR LF. The text ends them with LF.
             * @default 0
             */
            crlfLines: number;
            /** @description The working directory when it ended; bytes that are not UTF-8 appear as `\xNN`. */
            cwd?: string;
            /** @description The exact bytes of a working directory that is not UTF-8. */
            cwdBase64?: string;
            /**
             * Format: uint64
             * @description Its running time.
             */
            durationMs?: number;
            /**
             * Format: uint64
             * @description Behind the last byte of its output.
             */
            endOffset?: number;
            /** @description Why the wait is over, where there was one. */
            endedBy?: components["schemas"]["EndedBy"];
            /** @description Why it failed, or why it has no exit code. */
            error?: string;
            /**
             * Format: uint64
             * @description The number of bytes of `output` that are not text (most control characters, or not UTF-8) and appear as `\xNN`.
             * @default 0
             */
            escaped: number;
            /**
             * Format: int32
             * @description The shell's `$?`; absent while it runs.
             */
            exitCode?: number;
            /** @description The present state of the session's foreground. */
            foreground?: components["schemas"]["Foreground"];
            /** @description Its id, unique in its session. */
            id: string;
            /** @description The limits that it ran into. */
            limitsHit?: components["schemas"]["Limit"][];
            /** @description The text that matched `waitFor`. */
            matched?: string;
            /**
             * Format: uint64
             * @description The offset at which `outputBase64` ends; more follows while this is below `endOffset`.
             */
            nextOffset?: number;
            /** @description The exact amounts left out of `output`. */
            omitted?: components["schemas"]["Omitted"];
            /** @description The server did this because the command's `timeout` was over, if this answer has waited for it. */
            onTimeout?: components["schemas"]["OnTimeout"];
            /** @description Its output as text, within `maxChars`; absent if the request did not wait. */
            output?: string;
            /** @description Every byte of its output, up to `nextOffset`, where the raw format was asked for. */
            outputBase64?: string;
            /**
             * Format: uint64
             * @description The number of output bytes so far.
             */
            outputSize: number;
            /** @description The exit codes of every part of the last pipeline. */
            pipestatus?: number[];
            /** @description The screen, when a program paints it. */
            screen?: components["schemas"]["Screen"];
            /** @description Its session. */
            sessionId: string;
            /** @description The signal behind an exit code above 128, without `SIG`. */
            signal?: string;
            /**
             * Format: uint64
             * @description The first byte of its output.
             */
            startOffset: number;
            /**
             * Format: date-time
             * @description When it was accepted; RFC 3339.
             */
            startedAt: string;
            /** @description Its state. */
            status: components["schemas"]["CommandStatus"];
            /**
             * @description True if a part of the output is not in this answer.
             * @default false
             */
            truncated: boolean;
            /**
             * Format: uint64
             * @description The number of bytes of control sequences without an end. They are not in the text.
             * @default 0
             */
            unfinished: number;
            /**
             * Format: uint64
             * @description The duration of the wait.
             */
            waitedMs?: number;
        };
        /** @description `GET …/commands`. */
        CommandList: {
            /** @description The commands, oldest first. */
            commands: components["schemas"]["CommandExecution"][];
            /**
             * Format: uint
             * @description The total number.
             */
            total: number;
        };
        /**
         * @description A command's state.
         * @enum {string}
         */
        CommandStatus: "running" | "completed" | "failed" | "terminated";
        /**
         * @description The forms of a command's output.
         * @enum {string}
         */
        CommandView: "text" | "raw";
        /** @description A tier of confinement. */
        ConfinementCapability: {
            /** @description Whether sessions can be started with it. */
            available: boolean;
            /** @description Why they cannot. */
            reason?: string;
            /** @description The tier. */
            tier: components["schemas"]["ConfinementTier"];
        };
        /**
         * @description How strong the confinement of a session is.
         * @enum {string}
         */
        ConfinementTier: "process" | "sandbox" | "container";
        /** @description The addresses of its endpoints. */
        Connection: {
            /** @description The command that attaches a person's terminal. */
            attach: string;
            /** @description MCP over HTTP, where the tools take the session's id. */
            mcp: string;
            /** @description Its WebSocket (docs/websocket.md). */
            socket: string;
            /** @description The session's REST resource; output and input are below it. */
            url: string;
        };
        /** @description `POST /terminals`: everything has a default. */
        CreateRequest: {
            /** @description Named actions, performed by `POST …/actions/{name}`: for example `reload`, as a signal, keys or a command. */
            actions?: {
                [key: string]: components["schemas"]["SessionAction"];
            };
            /**
             * @description The least confinement of its shell and programs; its profile's or the token's may be stronger. Where the machine cannot give
             *     it (`GET /capabilities`), the session is not started.
             */
            confinement?: components["schemas"]["ConfinementTier"];
            /** @description The absolute path of the directory in which it starts. */
            cwd?: string;
            /** @description The size; the default is 120 × 40. */
            dimensions?: components["schemas"]["Dimensions"];
            /** @description Variables on top of the server's environment; null is none. */
            env?: {
                [key: string]: string;
            };
            /** @description The directory in which it starts if neither `cwd` nor the profile names one; an absolute path. */
            fallbackCwd?: string;
            /**
             * Format: double
             * @description It ends when it had no input, command or output for so many seconds; 0 is never, whatever the server's default is.
             */
            inactivityTimeout?: number;
            /** @description Its limits. */
            limits?: components["schemas"]["Limits"];
            /** @description As a login shell. */
            login?: boolean;
            /**
             * Format: double
             * @description It ends after so many seconds; 0 is never, whatever the server's default is.
             */
            maxAge?: number;
            /** @description For people; without control characters. Of one owner's live sessions only one has it. */
            name?: string;
            /** @description The treatment of background processes when the session ends. */
            onEnd?: components["schemas"]["OnEnd"];
            /** @description Its owner; only an admin may name another one. */
            owner?: string;
            /**
             * @description The profile of the configuration file that goes behind everything that is said here; the default is the one that is
             *     called `default`, if there is one.
             */
            profile?: string;
            /** @description A name (`bash`) or a path; the default is the user's own shell. */
            shell?: string;
        };
        /** @description A cursor. */
        Cursor: {
            /**
             * Format: uint16
             * @description From 0.
             */
            col: number;
            /**
             * Format: uint16
             * @description From 0.
             */
            row: number;
            /** @description True if it is visible. */
            visible: boolean;
        };
        /**
         * @description A person's decision.
         * @enum {string}
         */
        Decision: "allow" | "always" | "deny";
        /** @description `POST /approvals/{approval}`. */
        DecisionRequest: {
            /** @description The decision. */
            decision: components["schemas"]["Decision"];
        };
        /** @description A terminal's size in cells; also the body of `POST …/resize`. */
        Dimensions: {
            /**
             * Format: uint16
             * @description Columns, 1 to 1,000.
             */
            cols: number;
            /**
             * Format: uint16
             * @description Rows, 1 to 1,000.
             */
            rows: number;
        };
        /** @description `/drain`. */
        Drain: {
            /** @description Whether the server refuses new sessions. */
            draining: boolean;
            /**
             * Format: uint16
             * @description The number of the server among several behind one load balancer.
             */
            node: number;
            /**
             * Format: uint64
             * @description How many sessions live.
             */
            sessions: number;
            /**
             * Format: date-time
             * @description Since when it drains; RFC 3339.
             */
            since?: string;
        };
        /** @description The client that has taken the keyboard of a session. */
        Driver: {
            /** @description The client's own name (`Ptyd-Client`). */
            client?: string;
            /** @description The principal. */
            name: string;
            /**
             * Format: date-time
             * @description Since when; RFC 3339.
             */
            since: string;
            /**
             * Format: date-time
             * @description When the take-over ends at the latest; RFC 3339.
             */
            until: string;
        };
        /**
         * @description Why a wait is over.
         * @enum {string}
         */
        EndedBy: "accepted" | "ended" | "matched" | "input_wanted" | "stopped" | "quiet" | "timed_out" | "exited";
        /**
         * @description The process or mechanism that enforces a limit.
         * @enum {string}
         */
        Enforcer: "cgroup" | "rlimit" | "holder" | "server";
        /**
         * @description Everything that can go wrong, as a client sees it.
         * @enum {string}
         */
        ErrorCode: "malformed_body" | "invalid_field" | "body_too_large" | "body_late" | "malformed_head" | "unauthorized" | "host_refused" | "origin_refused" | "forbidden" | "policy_denied" | "approval_needed" | "route_not_found" | "method_not_allowed" | "upgrade_required" | "session_not_found" | "other_node" | "command_not_found" | "token_not_found" | "session_ended" | "session_alive" | "session_busy" | "session_not_ready" | "nothing_runs" | "input_stalled" | "session_driven" | "would_echo" | "already_decided" | "limit_reached" | "rate_limited" | "key_reused" | "name_taken" | "start_failed" | "session_unreachable" | "resources_exhausted" | "removal_continues" | "server_draining" | "server_restarting" | "node_unreachable" | "internal";
        /** @description The data of one event. Only what belongs to its kind is there. */
        Event: {
            /** @description The approval, whose request `GET /approvals` has. */
            approvalId?: string;
            /**
             * Format: date-time
             * @description When; RFC 3339.
             */
            at: string;
            /** @description The command that began, ended, or ran into a limit. */
            commandId?: string;
            /** @description The person's decision. */
            decision?: components["schemas"]["Decision"];
            /** @description The client that has taken the keyboard, or had it. */
            driver?: components["schemas"]["Driver"];
            /** @description How its take-over ended. */
            endedBy?: components["schemas"]["TakeOverEnd"];
            /** @description The kind of event, which is also its name. */
            event: components["schemas"]["EventKind"];
            /** @description The end of the session. */
            exit?: components["schemas"]["Exit"];
            /**
             * Format: int32
             * @description The command's exit code.
             */
            exitCode?: number;
            /** @description The awaited input: `input_wanted` or `password_wanted`. */
            foreground?: components["schemas"]["Foreground"];
            /** @description The limit. */
            limit?: components["schemas"]["Limit"];
            /** @description Its name. */
            name?: string;
            /** @description Its owner. */
            owner?: string;
            /** @description The session; none for a gap. */
            sessionId?: string;
            /** @description The end of the command. */
            status?: components["schemas"]["CommandStatus"];
        };
        /**
         * @description The kind of event.
         * @enum {string}
         */
        EventKind: "session.created" | "session.terminated" | "command.started" | "command.completed" | "attention" | "limit" | "approval.requested" | "approval.decided" | "keyboard.taken" | "keyboard.returned" | "gap";
        /** @description `POST …/execute`. */
        ExecuteRequest: {
            /**
             * Format: double
             * @description Seconds to wait at most for a person's decision, where the policy asks for one (`approval_needed`); the default is 0, which
             *     answers at once. Then it runs, and its own `timeout` begins.
             */
            approvalTimeout?: number;
            /** @description The text, at most 1 MiB; no NUL, which no shell takes. */
            command: string;
            /**
             * Format: double
             * @description Seconds to wait at most while another client drives the session (`session_driven`); the default is 0, which answers at
             *     once. Then it runs, and its own `timeout` begins.
             */
            driverTimeout?: number;
            /**
             * @description Run it in the shell that reads there now, and not in the session's own: after `ssh`, `su`, `docker exec -it`, `bash`.
             *     It is typed as one line of at most 4,000 bytes.
             */
            inside?: boolean;
            /**
             * Format: uint64
             * @description The maximum number of characters of output in the answer; the default is 30,000.
             */
            maxChars?: number;
            /**
             * @description The server does this when `timeout` is over and the command still runs. For anything but `continue`, `timeout` must be given;
             *     it then holds although the answer comes before (a question, a match, no wait at all) or the client goes away.
             */
            onTimeout?: components["schemas"]["OnTimeout"];
            /**
             * Format: double
             * @description Seconds to wait for it at most. The default is 1: a command that takes longer is answered with its id and runs on. With
             *     `waitForCompletion`, `waitFor` or `until` the default is 30. `onTimeout` says what becomes of the command then.
             */
            timeout?: number;
            /**
             * @description Further conditions, any of which ends the wait: `listening`, `listening:5173` (a TCP port of the session's processes),
             *     `file:PATH`, `gone:REGEX` (off the screen), `bell`, `quiet:MILLISECONDS`, `input`.
             */
            until?: string[];
            /** @description A regular expression whose match in the output ends the wait. */
            waitFor?: string;
            /** @description `true` waits up to 30 seconds unless `timeout` says otherwise; `false` answers as soon as the command is accepted. */
            waitForCompletion?: boolean;
        };
        /** @description The end of a session. */
        Exit: {
            /**
             * Format: date-time
             * @description When; RFC 3339.
             */
            at: string;
            /**
             * Format: int32
             * @description The shell's exit code.
             */
            exitCode?: number;
            /** @description In words. */
            reason: string;
            /** @description The signal that ended it, without `SIG`. */
            signal?: string;
        };
        /**
         * @description The state of the foreground.
         * @enum {string}
         */
        Foreground: "idle" | "running" | "input_wanted" | "password_wanted" | "fullscreen" | "stopped";
        /** @description Bytes that are gone. */
        Gap: {
            /**
             * Format: uint64
             * @description The first of them.
             */
            from: number;
            /**
             * Format: uint64
             * @description Behind the last of them.
             */
            to: number;
        };
        /** @description `POST …/input`: exactly one of `input`, `inputBase64` and `keys`. */
        InputRequest: {
            /**
             * Format: double
             * @description Seconds to wait at most for a person's decision, where the policy asks for one (`approval_needed`); the default is 0, which
             *     answers at once. Then it is typed, and its own `timeout` begins.
             */
            approvalTimeout?: number;
            /**
             * Format: double
             * @description Seconds to wait at most while another client drives the session (`session_driven`); the default is 0, which answers at
             *     once. Then it is typed, and its own `timeout` begins.
             */
            driverTimeout?: number;
            /** @description Press Enter after it. */
            endWithNewline?: boolean;
            /** @description Text, at most 1 MiB. */
            input?: string;
            /** @description Bytes as base64, at most 1 MiB of them. */
            inputBase64?: string;
            /** @description Named keys, such as `C-c`, `Up`, `Enter`. */
            keys?: string[];
            /**
             * Format: uint64
             * @description The maximum number of characters of output in the answer; the default is 30,000.
             */
            maxChars?: number;
            /**
             * @description Hand `input` over as a paste: in brackets where the program has asked for them (mode 2004), so that an editor or a line
             *     editor takes it as one piece of text.
             */
            paste?: boolean;
            /** @description Keep it out of every record. */
            secret?: boolean;
            /**
             * Format: double
             * @description Seconds to wait at most. Without this and `waitFor` the answer comes once the input is typed.
             */
            timeout?: number;
            /**
             * @description Further conditions, any of which ends the wait: `listening`, `listening:5173` (a TCP port of the session's processes),
             *     `file:PATH`, `gone:REGEX` (off the screen), `bell`, `quiet:MILLISECONDS`, `input`.
             */
            until?: string[];
            /** @description A regular expression whose match in the new output ends the wait. */
            waitFor?: string;
        };
        /** @description A range of a session's output. */
        Journal: {
            /**
             * Format: uint64
             * @description Behind the newest byte.
             */
            endOffset: number;
            /**
             * Format: uint64
             * @description The oldest byte that is kept.
             */
            firstOffset: number;
        };
        /** @description The name of a limit. */
        Limit: ("cpuSeconds" | "memoryMb" | "processes" | "openFiles" | "outputMb" | "outputMbPerSecond" | "commandSeconds") | "inactivityTimeout" | "maxAge";
        /** @description A limit that was hit. */
        LimitHit: {
            /**
             * Format: date-time
             * @description When it was seen first; RFC 3339.
             */
            at: string;
            /** @description The command that ran then. */
            commandId?: string;
            /**
             * Format: uint64
             * @description The count: processes killed for `memoryMb`, forks refused for `processes`.
             */
            count: number;
            /** @description The limit. */
            limit: components["schemas"]["Limit"];
        };
        /**
         * @description The limits of a session; an absent one is the server's default, which is none unless the server was started with one. A limit
         *     that this machine cannot enforce is refused.
         */
        Limits: {
            /**
             * Format: double
             * @description Seconds that one command may run; then it is ended.
             */
            commandSeconds?: number;
            /**
             * Format: double
             * @description Seconds on processors that all processes but the shell may use from the start of one command to the start of the
             *     next; what goes beyond is ended.
             */
            cpuSeconds?: number;
            /**
             * Format: uint64
             * @description MiB of memory: of all processes together where a control group can be made, else of each one's address space.
             */
            memoryMb?: number;
            /**
             * Format: uint64
             * @description Descriptors that each process may have open (`RLIMIT_NOFILE`).
             */
            openFiles?: number;
            /**
             * Format: double
             * @description MiB that one command may print; then it is ended.
             */
            outputMb?: number;
            /**
             * Format: double
             * @description MiB a second that the terminal takes from all programs together, and as much at once after a pause. A program
             *     that prints faster waits; nothing is ended and nothing is lost.
             */
            outputMbPerSecond?: number;
            /**
             * Format: uint64
             * @description Processes and threads at once, the shell included; a fork beyond that fails. It needs a control group.
             */
            processes?: number;
        };
        /** @description The answer to `POST /login`, which also sets a cookie. It has no `Debug`, so that no log contains it. */
        Login: {
            /**
             * Format: uint64
             * @description For so many seconds.
             */
            expiresIn: number;
            /** @description Every request of the browser sends it in the header `Ptyd-Login`, beside the cookie. */
            key: string;
            /** @description The principal as which the browser acts. */
            principal: string;
            /** @description Its scope. */
            scope: components["schemas"]["TokenScope"];
        };
        /** @description A line that matches. */
        Match: {
            /** @description The command whose output it is; absent for what came while none ran. */
            commandId?: string;
            /**
             * Format: uint64
             * @description Its number, counted from 1 in the searched output.
             */
            line: number;
            /**
             * Format: uint64
             * @description The journal offset at which the line begins; for an overwritten line, the offset of its final text.
             */
            offset: number;
            /** @description The line as a person would see it, at most 1,000 characters of it. */
            text: string;
        };
        /**
         * @description A method.
         * @enum {string}
         */
        Method: "GET" | "POST" | "DELETE";
        /** @description A named secret, without its value. */
        NamedSecret: {
            /** @description Its name, which is a variable's. */
            name: string;
            /** @description The profiles that give it to their sessions. */
            profiles: string[];
            /**
             * Format: date-time
             * @description When its value was set; RFC 3339.
             */
            setAt: string;
        };
        /** @description The answer, the only one that shows the token itself. It has no `Debug`, so that no log contains it. */
        NewToken: {
            /** @description The least confinement of the sessions that it starts. */
            confinement?: components["schemas"]["ConfinementTier"];
            /**
             * Format: date-time
             * @description RFC 3339.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it is no longer good, if ever; RFC 3339.
             */
            expiresAt?: string;
            /** @description Its name. */
            name: string;
            /** @description The policy that counts for its requests besides the sessions' own. */
            policy?: string;
            /** @description The only profiles with which it may start sessions; empty if it may use all. */
            profiles?: string[];
            /** @description Its scope. */
            scope: components["schemas"]["TokenScope"];
            /** @description The named secrets that its sessions get besides the profile's: `NAME`, or `NAME=VARIABLE`. */
            secrets?: string[];
            /**
             * Format: uint
             * @description Live sessions of this name that the token cannot use, because they are outside its bounds.
             */
            sessionsOutOfBounds: number;
            /** @description For `Authorization: Bearer …`. */
            token: string;
        };
        /** @description A number or a name. */
        NumberOrName: number | string;
        /** @description The exact amounts left out of a text. */
        Omitted: {
            /**
             * Format: uint64
             * @description Bytes of the journal, freed ones included.
             */
            bytes: number;
            /**
             * Format: uint64
             * @description The first line left out, counted from 1 in this output; 0 where freed bytes make it unknown.
             */
            firstLine: number;
            /**
             * Format: uint64
             * @description The number of bytes at the beginning of the range that are no longer kept: a reading begins behind them.
             * @default 0
             */
            freed: number;
            /**
             * Format: uint64
             * @description The first byte left out.
             */
            fromOffset: number;
            /**
             * Format: uint64
             * @description The last line left out; 0 where freed bytes make it unknown.
             */
            lastLine: number;
            /**
             * Format: uint64
             * @description The offset at which the range ends.
             */
            toOffset: number;
        };
        /**
         * @description The treatment of background processes when the session ends.
         * @enum {string}
         */
        OnEnd: "kill" | "keep";
        /**
         * @description The server's way to deal with a command whose `timeout` is over.
         * @enum {string}
         */
        OnTimeout: "continue" | "interrupt" | "kill";
        /** @description One operation: a request as it would be sent on its own. */
        Operation: {
            /** @description The body, where the operation takes one. */
            body?: unknown;
            /** @description The operation's `Idempotency-Key`. */
            idempotencyKey?: string;
            /** @description The method. */
            method: components["schemas"]["Method"];
            /** @description The path with its query, such as `/terminals?limit=10`. */
            path: string;
        };
        /** @description The result of one operation. */
        OperationAnswer: {
            /** @description The body: JSON as it is, text as a string, other bytes as base64. */
            body?: unknown;
            /**
             * Format: uint16
             * @description The status that it would have had on its own.
             */
            status: number;
        };
        /**
         * @description The order of a list of sessions.
         * @enum {string}
         */
        Order: "oldest" | "newest";
        /** @description Output from a position on. */
        Output: {
            /**
             * Format: uint64
             * @description The number of lines that the program ended with CR LF. The text ends them with LF.
             * @default 0
             */
            crlfLines: number;
            /** @description The bytes, in the views raw and stream. */
            dataBase64?: string;
            /**
             * Format: uint64
             * @description Behind the newest byte.
             */
            endOffset: number;
            /**
             * Format: uint64
             * @description The number of bytes that are not text (most control characters, or not UTF-8) and appear as `\xNN`.
             * @default 0
             */
            escaped: number;
            /** @description The session has ended and this reaches its last byte. */
            final: boolean;
            /**
             * Format: uint64
             * @description The oldest byte that is kept.
             */
            firstOffset: number;
            /**
             * Format: uint64
             * @description The first byte that this stands for.
             */
            fromOffset: number;
            /** @description Bytes that are gone between what was asked for and `fromOffset`. */
            gap?: components["schemas"]["Gap"];
            /**
             * Format: uint64
             * @description The offset at which the next reading begins.
             */
            nextOffset: number;
            /** @description The exact amounts left out of `text`. */
            omitted?: components["schemas"]["Omitted"];
            /** @description The text, in the views text and screen. */
            text?: string;
            /**
             * Format: uint64
             * @description The number of bytes of control sequences without an end. They are not in the text.
             * @default 0
             */
            unfinished: number;
            /** @description The form. */
            view: components["schemas"]["OutputView"];
        };
        /**
         * @description The kind of output.
         * @enum {string}
         */
        OutputKind: "command" | "background";
        /**
         * @description The forms of output that can be followed.
         * @enum {string}
         */
        OutputStreamView: "text" | "raw" | "stream";
        /**
         * @description The forms of output.
         * @enum {string}
         */
        OutputView: "text" | "raw" | "stream" | "screen";
        /** @description An error document: `application/problem+json`. */
        Problem: {
            /** @description The code. */
            code: components["schemas"]["ErrorCode"];
            /** @description The failure, and the remedy. */
            detail: string;
            /** @description The field that is wrong, as the client wrote it (`dimensions.cols`). */
            field?: string;
            /** @description Names this request in the server's log. */
            requestId: string;
            /**
             * Format: uint16
             * @description The HTTP status.
             */
            status: number;
            /** @description The code in a few words. */
            title: string;
            /** @description `urn:ptyd:error:<code>`: a name, not an address. */
            type: string;
        };
        /** @description A process as it is now. */
        Process: {
            /** @description The command line, at most 1,000 characters. */
            commandLine: string;
            /**
             * Format: double
             * @description Percent of one core since the list was asked for last.
             */
            cpu: number;
            /**
             * Format: double
             * @description Seconds on processors so far.
             */
            cpuSeconds: number;
            /** @description It is of the terminal's foreground process group. */
            isForeground: boolean;
            /**
             * Format: double
             * @description MiB.
             */
            memory: number;
            /** @description The command's name, at most 15 bytes. */
            name: string;
            /**
             * Format: uint32
             * @description Its parent, if that is of the session: the shell and orphans have none.
             */
            parentPid?: number;
            /**
             * Format: uint32
             * @description Its id on the machine, which signals take.
             */
            pid: number;
            /**
             * Format: uint32
             * @description Its process group.
             */
            processGroup: number;
            /**
             * Format: uint32
             * @description Its id inside of the session's sandbox or container, which its programs see and print; absent where the session has none.
             */
            sandboxPid?: number;
            /**
             * Format: uint32
             * @description Its kernel session (setsid(2)).
             */
            session: number;
            /**
             * Format: date-time
             * @description RFC 3339, exact to 10 ms.
             */
            startedAt: string;
            /** @description The state of the process. */
            state: components["schemas"]["ProcessState"];
        };
        /** @description `GET …/processes`. */
        ProcessList: {
            /** @description The processes, parents before children; none of a session that has ended. */
            processes: components["schemas"]["Process"][];
        };
        /**
         * @description The state of a process.
         * @enum {string}
         */
        ProcessState: "running" | "sleeping" | "blocked" | "stopped" | "ended";
        /** @description A process that got a signal. */
        Receiver: {
            /** @description The command's name. */
            name: string;
            /**
             * Format: uint32
             * @description Its id.
             */
            pid: number;
            /** @description Its present state. */
            state: components["schemas"]["ProcessState"];
        };
        /** @description `POST …/rename`, of a live session. */
        RenameRequest: {
            /** @description Its new name. */
            name: string;
        };
        /** @description `POST …/resize`: the session with its new size. */
        Resized: {
            /** @description The certainty of its commands' ends. */
            boundary: components["schemas"]["Boundary"];
            /** @description The same of `cargo`. */
            cargo?: string;
            /** @description The name by which the client that started it calls itself: `clientInfo.name` over MCP, `User-Agent` over REST. */
            clientName?: string;
            /** @description How the kernel confines its shell and programs; absent if it does not. */
            confinement?: components["schemas"]["ConfinementTier"];
            /** @description The addresses of its endpoints. */
            connection: components["schemas"]["Connection"];
            /**
             * Format: date-time
             * @description RFC 3339.
             */
            createdAt: string;
            /** @description The command that runs. */
            currentCommand?: string;
            /** @description The shell's working directory; bytes that are not UTF-8 appear as `\xNN`, and then `cwdBase64` is there. */
            cwd: string;
            /** @description The exact bytes of a working directory that is not UTF-8. */
            cwdBase64?: string;
            /** @description Its size. */
            dimensions: components["schemas"]["Dimensions"];
            /** @description The client that has taken its keyboard: nobody else types there meanwhile. */
            driver?: components["schemas"]["Driver"];
            /** @description The variables that were given at the start, values that look like secrets redacted. */
            env: {
                [key: string]: string;
            };
            /** @description Its end. */
            exit?: components["schemas"]["Exit"];
            /** @description The state of the foreground. */
            foreground: components["schemas"]["Foreground"];
            /** @description Its id; opaque. */
            id: string;
            /**
             * Format: double
             * @description It ends when it had no input, command or output for so many seconds.
             */
            inactivityTimeout?: number;
            /** @description The range of output that can be read. */
            journal: components["schemas"]["Journal"];
            /**
             * Format: date-time
             * @description The last input, command or output; RFC 3339.
             */
            lastActivity: string;
            /** @description Its limits. */
            limits?: components["schemas"]["Limits"];
            /** @description The process or mechanism that enforces each of its limits, `inactivityTimeout` and `maxAge`. */
            limitsEnforcedBy?: {
                [key: string]: components["schemas"]["Enforcer"];
            };
            /** @description The limits that it ran into, the newest ones. */
            limitsHit?: components["schemas"]["LimitHit"][];
            /** @description The file that holds every byte of output. */
            logFile: string;
            /**
             * Format: double
             * @description It ends after so many seconds.
             */
            maxAge?: number;
            /** @description For people. */
            name?: string;
            /** @description The same of `node`. */
            node?: string;
            /** @description Its owner. */
            owner: string;
            /**
             * Format: uint32
             * @description The shell's process, while it lives.
             */
            pid?: number;
            /** @description The policy of its commands and input; absent if it has none. */
            policy?: components["schemas"]["SessionPolicy"];
            /** @description The profile by which it was started. */
            profile?: string;
            /** @description The python that a command named `python` (else `python3`) would run. */
            python?: string;
            /** @description The resource usage of its processes. */
            resourceUsage: components["schemas"]["ResourceUsage"];
            /** @description The same of `rustc`. */
            rustc?: string;
            /** @description The shell's name. */
            shell: string;
            /** @description Commands of that profile that failed at the start, as long as the server runs. */
            startupFailed?: components["schemas"]["StartupFailure"][];
            /** @description Its state. */
            status: components["schemas"]["SessionStatus"];
            /** @description True: the terminal has this size. */
            success: boolean;
            /** @description A present problem, such as a full disk. */
            trouble?: string;
            /**
             * @description It is alive, but its holder process cannot be reached; `trouble` says why. Requests that need that process are refused
             *     with `session_unreachable` until it answers again.
             */
            unreachable?: boolean;
            /** @description The principals of its viewers, such as `ptyd attach` and the page, one name for each viewer. */
            viewers?: string[];
        };
        /** @description The resource usage of a session's processes. */
        ResourceUsage: {
            /**
             * Format: double
             * @description Percent of one core.
             */
            cpu: number;
            /**
             * Format: double
             * @description MiB.
             */
            memory: number;
            /**
             * Format: uint32
             * @description Their number.
             */
            processes: number;
        };
        /** @description A screen. */
        Screen: {
            /** @description A program paints the alternate screen. */
            alternate: boolean;
            /** @description The bytes that paint this screen in a fresh terminal of the same size. */
            ansiBase64: string;
            /** @description The rows, from 0, whose text or colours changed since this caller last read the screen; absent in its first reading. */
            changedRows?: number[];
            /**
             * Format: uint16
             * @description The width in cells.
             */
            cols: number;
            /** @description The cursor. */
            cursor: components["schemas"]["Cursor"];
            /** @description The spans shown in inverse video, such as the selected entry of a menu. */
            inverse: components["schemas"]["Span"][];
            /**
             * Format: uint64
             * @description The offset up to which the output is in it: read on from here with the view `stream`.
             */
            offset: number;
            /** @description The rows, blanks at their ends cut off. */
            rows: string[];
            /** @description The window's title. */
            title: string;
        };
        /** @description The result of a search. */
        SearchAnswer: {
            /**
             * Format: uint64
             * @description Behind the newest byte.
             */
            endOffset: number;
            /** @description Bytes that are gone between `since` and what was searched. */
            gap?: components["schemas"]["Gap"];
            /**
             * Format: uint64
             * @description The number of lines searched.
             */
            lines: number;
            /** @description The lines that match, in order. */
            matches: components["schemas"]["Match"][];
            /** @description There is more to be searched, from `nextOffset` on. */
            more: boolean;
            /**
             * Format: uint64
             * @description The offset at which the next search begins: behind the last match when `more`, else behind all searched output.
             */
            nextOffset: number;
        };
        /** @description `GET /secrets`. */
        SecretList: {
            /** @description The secrets, by name. */
            secrets: components["schemas"]["NamedSecret"][];
        };
        /** @description `PUT /secrets/{secret}`. It has no `Debug`, so that no log contains the value. */
        SecretRequest: {
            /** @description Its value: text of 8 to 8,192 bytes. */
            value: string;
        };
        /** @description A signal that was sent. */
        SentSignal: {
            /**
             * Format: date-time
             * @description When; RFC 3339.
             */
            at: string;
            /** @description Why the kernel refused it. */
            error?: string;
            /** @description The processes that received it, and their state now; empty if an earlier server or a typed key sent it. */
            receivers: components["schemas"]["Receiver"][];
            /** @description Its name, without `SIG`. */
            signal: string;
            /** @description `foreground`, `session` or the id of a process. */
            target: components["schemas"]["NumberOrName"];
        };
        /** @description A named action: exactly one of these. */
        SessionAction: {
            /** @description A command to run; it is not waited for. */
            command?: string;
            /** @description Keys to press. */
            keys?: string[];
            /** @description A signal to the foreground, by name or number. */
            signal?: components["schemas"]["NumberOrName"];
        };
        /** @description `GET /terminals/{sessionId}/environment`: what the shell was started with. */
        SessionEnvironment: {
            /** @description It is a login shell. */
            login: boolean;
            /** @description The profile. */
            profile?: string;
            /** @description The shell's program. */
            shell: string;
            /** @description The toolchains on its PATH as it is now, by their commands' names. */
            toolchains: {
                [key: string]: string;
            };
            /** @description The file mode mask, in octal digits. */
            umask: string;
            /** @description The user that runs the shell, if it is not the server's own. */
            user?: string;
            /** @description All variables, values that look like secrets redacted; bytes that are not UTF-8 appear as `\xNN`. */
            variables: {
                [key: string]: string;
            };
        };
        /** @description `GET /terminals`. */
        SessionList: {
            /** @description Sessions on other nodes are missing, because the directory of all nodes does not answer. */
            degraded?: boolean;
            /** @description The sessions, in the order that was asked for. */
            terminals: components["schemas"]["TerminalSession"][];
            /**
             * Format: uint
             * @description The total number.
             */
            total: number;
        };
        /** @description The policy of a session's commands and input. */
        SessionPolicy: {
            /** @description The session is not confined: once a program runs, only the policy's own words keep it from anything. */
            advisory: boolean;
            /** @description Its name in the policy file. */
            name: string;
            /**
             * @description Why none of its commands can be proven any more, so that `allow` by a rule becomes what the policy says of the
             *     unproven; absent while they can.
             */
            unprovable?: string;
        };
        /**
         * @description A session's state.
         * @enum {string}
         */
        SessionStatus: "creating" | "running" | "terminated";
        /** @description `GET …/signals`. */
        SignalList: {
            /** @description The newest 64, oldest first. */
            signals: components["schemas"]["SentSignal"][];
        };
        /** @description `POST …/signal`. */
        SignalRequest: {
            /** @description A name (`INT`, `SIGTERM`) or a number. */
            signal: components["schemas"]["NumberOrName"];
            /** @description `foreground` (the default), `session`, or the id of a process of the session. */
            target?: components["schemas"]["NumberOrName"];
        };
        /** @description A text message from the server with the sub-protocol `ptyd.v1`: something has happened in the session. */
        SocketEvent: components["schemas"]["SocketEventControl"] | components["schemas"]["SocketEventCommandStarted"] | components["schemas"]["SocketEventCommandCompleted"] | components["schemas"]["SocketEventReady"] | components["schemas"]["SocketEventForeground"] | components["schemas"]["SocketEventResize"] | components["schemas"]["SocketEventLimit"] | components["schemas"]["SocketEventKeyboardTaken"] | components["schemas"]["SocketEventKeyboardReturned"] | components["schemas"]["SocketEventExit"] | components["schemas"]["SocketEventMissed"] | components["schemas"]["SocketEventPong"] | components["schemas"]["SocketEventError"];
        /** @description A command has ended. */
        SocketEventCommandCompleted: {
            /** @description The command, without its output. */
            command: components["schemas"]["CommandExecution"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "command.completed";
        };
        /** @description A command was accepted. */
        SocketEventCommandStarted: {
            /** @description The command. */
            command: components["schemas"]["CommandExecution"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "command.started";
        };
        /** @description The first message: the state of the session and of the connection. */
        SocketEventControl: {
            /** @description The name under which this client numbers its inputs. */
            client: string;
            /** @description The command that runs. */
            currentCommand?: string;
            /** @description The terminal's size. */
            dimensions: components["schemas"]["Dimensions"];
            /** @description The client that has taken the keyboard. */
            driver?: components["schemas"]["Driver"];
            /**
             * Format: uint64
             * @description The offset behind the newest byte.
             */
            endOffset: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "control";
            /**
             * Format: uint64
             * @description The oldest byte that is kept.
             */
            firstOffset: number;
            /** @description The state of the foreground. */
            foreground: components["schemas"]["Foreground"];
            /** @description Whether the client may type. */
            mayWrite: boolean;
            /**
             * Format: uint64
             * @description The offset at which output begins.
             */
            offset: number;
            /** @description The session's id. */
            session: string;
            /** @description Its state; only with `ptyd.v1`, because other messages have it beside the event. */
            status?: components["schemas"]["SessionStatus"];
            /**
             * Format: uint64
             * @description How many bytes may be unconfirmed; only with `ptyd.v1`.
             */
            windowBytes?: number;
        };
        /** @description A request of the client failed; the connection stays open. */
        SocketEventError: {
            /** @description The code, as in REST. */
            code: components["schemas"]["ErrorCode"];
            /** @description The reason, in words. */
            detail: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "error";
            /**
             * Format: uint64
             * @description The number of the input that was not typed, or only in part.
             */
            seq?: number;
        };
        /** @description The shell has ended. */
        SocketEventExit: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "exit";
            /** @description How it ended, if that is known. */
            exit?: components["schemas"]["Exit"];
        };
        /** @description Another state of the foreground. */
        SocketEventForeground: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "foreground";
            /** @description The state. */
            foreground: components["schemas"]["Foreground"];
        };
        /** @description Its take-over has ended. */
        SocketEventKeyboardReturned: {
            /** @description The client. */
            driver: components["schemas"]["Driver"];
            /** @description How it ended. */
            endedBy: components["schemas"]["TakeOverEnd"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "keyboard.returned";
        };
        /** @description A client has taken the keyboard. */
        SocketEventKeyboardTaken: {
            /** @description The client. */
            driver: components["schemas"]["Driver"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "keyboard.taken";
        };
        /** @description The session has reached a limit. */
        SocketEventLimit: {
            /** @description The command that was running. */
            commandId?: string;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "limit";
            /** @description The limit. */
            limit: components["schemas"]["Limit"];
        };
        /** @description The server no longer has some events. */
        SocketEventMissed: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "missed";
            /**
             * Format: uint64
             * @description Their number.
             */
            events: number;
        };
        /** @description The answer to a ping. */
        SocketEventPong: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "pong";
        };
        /** @description The session was `creating`, and is now `running`. */
        SocketEventReady: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "ready";
        };
        /** @description The terminal has another size. */
        SocketEventResize: {
            /** @description The size. */
            dimensions: components["schemas"]["Dimensions"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "resize";
        };
        /** @description A message from the client without a sub-protocol. */
        SocketInput: components["schemas"]["SocketInputInput"] | components["schemas"]["SocketInputResize"] | components["schemas"]["SocketInputPing"];
        /** @description Types text or bytes: exactly one of both. */
        SocketInputInput: {
            /** @description Text. */
            data?: string;
            /** @description Bytes that are not text. */
            dataBase64?: string;
            /**
             * Format: uint64
             * @description A number that this client has not used; repeated, it is not typed again.
             */
            seq?: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "input";
        };
        /** @description Asks for a pong. A page cannot send a ping of the WebSocket. */
        SocketInputPing: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "ping";
        };
        /** @description Sets the size of the terminal. */
        SocketInputResize: {
            /**
             * Format: uint16
             * @description Columns.
             */
            cols: number;
            /**
             * Format: uint16
             * @description Rows.
             */
            rows: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "resize";
        };
        /** @description A message from the server without a sub-protocol. */
        SocketMessage: components["schemas"]["SocketMessageOutput"] | components["schemas"]["SocketMessageStatus"] | components["schemas"]["SocketMessageGap"] | components["schemas"]["SocketMessageTyped"] | components["schemas"]["SocketMessagePong"] | components["schemas"]["SocketMessageError"];
        /** @description A request of the client failed; the connection stays open. */
        SocketMessageError: {
            /** @description The code, as in REST. */
            code: components["schemas"]["ErrorCode"];
            /** @description The reason, in words. */
            detail: string;
            /**
             * Format: uint64
             * @description The number of the input that was not typed, or only in part.
             */
            seq?: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "error";
        };
        /** @description A range that the server does not send. */
        SocketMessageGap: {
            /**
             * Format: uint64
             * @description Its first byte.
             */
            fromOffset: number;
            /**
             * Format: uint64
             * @description Behind its last byte.
             */
            nextOffset: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "gap";
        };
        /** @description Output, or the screen. */
        SocketMessageOutput: {
            /** @description For a terminal or a reader. */
            data: string;
            /** @description Every byte, if `data` is not exact. */
            dataBase64?: string;
            /** @description The size of that screen. */
            dimensions?: components["schemas"]["Dimensions"];
            /**
             * Format: uint64
             * @description The offset of its first byte; a screen has none.
             */
            fromOffset?: number;
            /**
             * Format: uint64
             * @description The offset to continue at.
             */
            nextOffset: number;
            /** @description `data` paints the screen, and begins with a full reset. */
            snapshot?: boolean;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "output";
        };
        /** @description The answer to a ping. */
        SocketMessagePong: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "pong";
        };
        /** @description An event of the session, with the fields of a `SocketEvent`. */
        SocketMessageStatus: {
            /** @description The session's state. */
            status: components["schemas"]["SessionStatus"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "status";
        } & {
            [key: string]: unknown;
        };
        /** @description An input was typed. */
        SocketMessageTyped: {
            /**
             * Format: uint64
             * @description Its number.
             */
            seq: number;
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            type: "typed";
        };
        /** @description A text message from the client with the sub-protocol `ptyd.v1`. */
        SocketRequest: components["schemas"]["SocketRequestResize"] | components["schemas"]["SocketRequestPing"];
        /** @description Asks for a pong. A page cannot send a ping of the WebSocket. */
        SocketRequestPing: {
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "ping";
        };
        /** @description Sets the size of the terminal. */
        SocketRequestResize: {
            /** @description The size. */
            dimensions: components["schemas"]["Dimensions"];
            /**
             * @description discriminator enum property added by openapi-typescript
             * @enum {string}
             */
            event: "resize";
        };
        /** @description A stretch of a row. */
        Span: {
            /**
             * Format: uint16
             * @description Its first column, from 0.
             */
            col: number;
            /**
             * Format: uint16
             * @description From 0.
             */
            row: number;
            /** @description Without blanks at its ends. */
            text: string;
        };
        /** @description A command of a profile that failed at the start. */
        StartupFailure: {
            /** @description Its text. */
            command: string;
            /** @description Its failure, in words. */
            reason: string;
        };
        /**
         * @description How a take-over ended.
         * @enum {string}
         */
        TakeOverEnd: "returned" | "forced" | "timed_out" | "disconnected";
        /** @description `POST …/take`. */
        TakeRequest: {
            /**
             * Format: double
             * @description Seconds until the take-over ends by itself; the default is 600, and 43,200 with `hold`. The same client may take the keyboard
             *     again, which begins this time anew.
             */
            for?: number;
            /** @description Take it from another driver. */
            force?: boolean;
            /** @description Answer only when the take-over has ended, and end it when this request's connection does. */
            hold?: boolean;
        };
        /** @description A session as it is now. */
        TerminalSession: {
            /** @description The certainty of its commands' ends. */
            boundary: components["schemas"]["Boundary"];
            /** @description The same of `cargo`. */
            cargo?: string;
            /** @description The name by which the client that started it calls itself: `clientInfo.name` over MCP, `User-Agent` over REST. */
            clientName?: string;
            /** @description How the kernel confines its shell and programs; absent if it does not. */
            confinement?: components["schemas"]["ConfinementTier"];
            /** @description The addresses of its endpoints. */
            connection: components["schemas"]["Connection"];
            /**
             * Format: date-time
             * @description RFC 3339.
             */
            createdAt: string;
            /** @description The command that runs. */
            currentCommand?: string;
            /** @description The shell's working directory; bytes that are not UTF-8 appear as `\xNN`, and then `cwdBase64` is there. */
            cwd: string;
            /** @description The exact bytes of a working directory that is not UTF-8. */
            cwdBase64?: string;
            /** @description Its size. */
            dimensions: components["schemas"]["Dimensions"];
            /** @description The client that has taken its keyboard: nobody else types there meanwhile. */
            driver?: components["schemas"]["Driver"];
            /** @description The variables that were given at the start, values that look like secrets redacted. */
            env: {
                [key: string]: string;
            };
            /** @description Its end. */
            exit?: components["schemas"]["Exit"];
            /** @description The state of the foreground. */
            foreground: components["schemas"]["Foreground"];
            /** @description Its id; opaque. */
            id: string;
            /**
             * Format: double
             * @description It ends when it had no input, command or output for so many seconds.
             */
            inactivityTimeout?: number;
            /** @description The range of output that can be read. */
            journal: components["schemas"]["Journal"];
            /**
             * Format: date-time
             * @description The last input, command or output; RFC 3339.
             */
            lastActivity: string;
            /** @description Its limits. */
            limits?: components["schemas"]["Limits"];
            /** @description The process or mechanism that enforces each of its limits, `inactivityTimeout` and `maxAge`. */
            limitsEnforcedBy?: {
                [key: string]: components["schemas"]["Enforcer"];
            };
            /** @description The limits that it ran into, the newest ones. */
            limitsHit?: components["schemas"]["LimitHit"][];
            /** @description The file that holds every byte of output. */
            logFile: string;
            /**
             * Format: double
             * @description It ends after so many seconds.
             */
            maxAge?: number;
            /** @description For people. */
            name?: string;
            /** @description The same of `node`. */
            node?: string;
            /** @description Its owner. */
            owner: string;
            /**
             * Format: uint32
             * @description The shell's process, while it lives.
             */
            pid?: number;
            /** @description The policy of its commands and input; absent if it has none. */
            policy?: components["schemas"]["SessionPolicy"];
            /** @description The profile by which it was started. */
            profile?: string;
            /** @description The python that a command named `python` (else `python3`) would run. */
            python?: string;
            /** @description The resource usage of its processes. */
            resourceUsage: components["schemas"]["ResourceUsage"];
            /** @description The same of `rustc`. */
            rustc?: string;
            /** @description The shell's name. */
            shell: string;
            /** @description Commands of that profile that failed at the start, as long as the server runs. */
            startupFailed?: components["schemas"]["StartupFailure"][];
            /** @description Its state. */
            status: components["schemas"]["SessionStatus"];
            /** @description A present problem, such as a full disk. */
            trouble?: string;
            /**
             * @description It is alive, but its holder process cannot be reached; `trouble` says why. Requests that need that process are refused
             *     with `session_unreachable` until it answers again.
             */
            unreachable?: boolean;
            /** @description The principals of its viewers, such as `ptyd attach` and the page, one name for each viewer. */
            viewers?: string[];
        };
        /** @description The query of `DELETE /terminals/{sessionId}`. */
        TerminateQuery: {
            /**
             * @description At once, with KILL.
             * @default false
             */
            force: boolean;
            /**
             * Format: double
             * @description Seconds to wait after the first signal, and after TERM; the default is 1.5.
             */
            graceSeconds?: number;
            /** @description Remove what is kept of it: its output, its commands and their texts. A living session is only purged with `force`. */
            purge?: boolean;
            /** @description The first signal, by name or number, instead of HUP. */
            signal?: string;
        };
        /** @description `DELETE /terminals/{sessionId}`. */
        Terminated: {
            /**
             * Format: uint64
             * @description Bytes on the disk that were freed, where it was purged: there is no such session any more.
             */
            freedBytes?: number;
            /**
             * Format: uint64
             * @description The number of processes that were ended.
             */
            killed: number;
            /**
             * Format: uint64
             * @description The number of processes that are still alive.
             */
            left: number;
            /** @description The session as it is now. */
            session: components["schemas"]["TerminalSession"];
            /** @description The session's state now. */
            status: components["schemas"]["SessionStatus"];
            /** @description True if the session had already ended. */
            wasOver: boolean;
        };
        /** @description The answer. It has no `Debug`, so that no log contains it. */
        Ticket: {
            /**
             * Format: uint64
             * @description For so many seconds.
             */
            expiresIn: number;
            /**
             * @description Good once: as `?ticket=…`, or at a socket as the sub-protocol `ptyd.ticket.…` beside `ptyd.v1`. For the page `sessions`, as the
             *     bearer token of `POST /login`.
             */
            ticket: string;
            /** @description The link to the page `sessions`, with the ticket. */
            url?: string;
        };
        /**
         * @description A page that is entered by a ticket.
         * @enum {string}
         */
        TicketPage: "docs" | "sessions";
        /** @description `POST /tickets`: exactly one of `session` and `page`. */
        TicketRequest: {
            /** @description The page that it is for. */
            page?: components["schemas"]["TicketPage"];
            /**
             * @description The scope of the socket.
             * @default read
             */
            scope: components["schemas"]["TicketScope"];
            /** @description The session whose socket it is for. */
            session?: string;
        };
        /**
         * @description The scope of a ticket.
         * @enum {string}
         */
        TicketScope: "read" | "write";
        /** @description A token, without the token itself. */
        TokenInfo: {
            /** @description The least confinement of the sessions that it starts. */
            confinement?: components["schemas"]["ConfinementTier"];
            /**
             * Format: date-time
             * @description RFC 3339.
             */
            createdAt: string;
            /**
             * Format: date-time
             * @description When it is no longer good, if ever; RFC 3339.
             */
            expiresAt?: string;
            /**
             * @description The named token that made it, or that made the one which did, and so on; none where the user has made it. Tokens with
             *     one first maker, and that one, decide on none of each other's requests.
             */
            firstMaker?: string;
            /** @description Its name. */
            name: string;
            /** @description The policy that counts for its requests besides the sessions' own. */
            policy?: string;
            /** @description The only profiles with which it may start sessions; empty if it may use all. */
            profiles?: string[];
            /** @description Its scope. */
            scope: components["schemas"]["TokenScope"];
            /** @description The named secrets that its sessions get besides the profile's: `NAME`, or `NAME=VARIABLE`. */
            secrets?: string[];
        };
        /** @description `GET /tokens`. */
        TokenList: {
            /** @description The tokens, by name. */
            tokens: components["schemas"]["TokenInfo"][];
        };
        /** @description `POST /tokens`. */
        TokenRequest: {
            /** @description The least confinement of the sessions that it starts; not for scope `admin`. */
            confinement?: components["schemas"]["ConfinementTier"];
            /**
             * Format: double
             * @description For how many seconds it is good; without it until it is revoked.
             */
            expiresIn?: number;
            /** @description Its name, and the owner of the sessions that are started with it: letters, digits, `-`, `_` and `.`, 64 at most. */
            name: string;
            /**
             * @description The policy that counts for its requests besides the sessions' own, and is that of its sessions which have none; not
             *     for scope `admin`.
             */
            policy?: string;
            /** @description The only profiles with which it may start sessions; the first one is its default. Without any it may use all, and none. */
            profiles?: string[];
            /**
             * @description Its scope.
             * @default write
             */
            scope: components["schemas"]["TokenScope"];
            /** @description The named secrets that the sessions which it starts get besides the profile's: `NAME`, or `NAME=VARIABLE`. */
            secrets?: string[];
        };
        /**
         * @description The scope of a token; each includes the ones before it.
         * @enum {string}
         */
        TokenScope: "read" | "write" | "admin";
        /** @description The result of an input or a wait. */
        WaitAnswer: {
            /**
             * Format: uint
             * @description The number of input bytes that were accepted, if there was input.
             */
            acceptedBytes?: number;
            /** @description The command that was waited for or typed at. */
            command?: components["schemas"]["CommandExecution"];
            /**
             * Format: uint64
             * @description The number of lines that the program ended with CR LF. The text ends them with LF.
             * @default 0
             */
            crlfLines: number;
            /** @description Why the wait is over. */
            endedBy: components["schemas"]["EndedBy"];
            /**
             * Format: uint64
             * @description The number of bytes that are not text (most control characters, or not UTF-8) and appear as `\xNN`.
             */
            escaped: number;
            /** @description The state of the session's foreground. */
            foreground: components["schemas"]["Foreground"];
            /**
             * Format: uint64
             * @description The range of the journal that `output` stands for.
             */
            fromOffset: number;
            /** @description The name of the program that was interrupted and runs on because it ignores that. */
            ignoredBy?: string;
            /**
             * Format: int32
             * @description The exit code of the last line that was typed at the prompt, if the wait ended with it and the shell reported the code.
             */
            lineExitCode?: number;
            /** @description The text that matched `waitFor`. */
            matched?: string;
            /**
             * Format: uint64
             * @description The offset at which the next reading begins.
             */
            nextOffset: number;
            /** @description The exact amounts left out. */
            omitted?: components["schemas"]["Omitted"];
            /** @description The new output as text, within `maxChars`. */
            output: string;
            /** @description The screen, when a program paints it. */
            screen?: components["schemas"]["Screen"];
            /** @description The session's state. */
            status: components["schemas"]["SessionStatus"];
            /** @description True if something was left out of `output`. */
            truncated: boolean;
            /**
             * Format: uint64
             * @description The number of bytes of control sequences without an end. They are not in the text.
             * @default 0
             */
            unfinished: number;
            /**
             * Format: uint64
             * @description Its duration.
             */
            waitedMs: number;
        };
        /** @description `POST …/wait`: the first of these ends the wait; the end of the command and of the session always do. */
        WaitRequest: {
            /** @description The program wants input. */
            inputWanted?: boolean;
            /**
             * Format: uint64
             * @description The maximum number of characters of output in the answer; the default is 30,000.
             */
            maxChars?: number;
            /**
             * Format: uint64
             * @description No new output for this many milliseconds.
             */
            quietMs?: number;
            /**
             * Format: double
             * @description Seconds at most; the default is 30.
             */
            timeout?: number;
            /**
             * @description Further conditions, any of which ends the wait: `listening`, `listening:5173` (a TCP port of the session's processes),
             *     `file:PATH`, `gone:REGEX` (off the screen), `bell`, `quiet:MILLISECONDS`, `input`.
             */
            until?: string[];
            /** @description A regular expression that matches the output since the wait began. */
            waitFor?: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Approval = components['schemas']['Approval'];
export type ApprovalList = components['schemas']['ApprovalList'];
export type ApprovalState = components['schemas']['ApprovalState'];
export type AuditList = components['schemas']['AuditList'];
export type BatchAnswer = components['schemas']['BatchAnswer'];
export type BatchRequest = components['schemas']['BatchRequest'];
export type Boundary = components['schemas']['Boundary'];
export type Capabilities = components['schemas']['Capabilities'];
export type CommandExecution = components['schemas']['CommandExecution'];
export type CommandList = components['schemas']['CommandList'];
export type CommandStatus = components['schemas']['CommandStatus'];
export type CommandView = components['schemas']['CommandView'];
export type ConfinementCapability = components['schemas']['ConfinementCapability'];
export type ConfinementTier = components['schemas']['ConfinementTier'];
export type Connection = components['schemas']['Connection'];
export type CreateRequest = components['schemas']['CreateRequest'];
export type Cursor = components['schemas']['Cursor'];
export type Decision = components['schemas']['Decision'];
export type DecisionRequest = components['schemas']['DecisionRequest'];
export type Dimensions = components['schemas']['Dimensions'];
export type Drain = components['schemas']['Drain'];
export type Driver = components['schemas']['Driver'];
export type EndedBy = components['schemas']['EndedBy'];
export type Enforcer = components['schemas']['Enforcer'];
export type ErrorCode = components['schemas']['ErrorCode'];
export type Event = components['schemas']['Event'];
export type EventKind = components['schemas']['EventKind'];
export type ExecuteRequest = components['schemas']['ExecuteRequest'];
export type Exit = components['schemas']['Exit'];
export type Foreground = components['schemas']['Foreground'];
export type Gap = components['schemas']['Gap'];
export type InputRequest = components['schemas']['InputRequest'];
export type Journal = components['schemas']['Journal'];
export type Limit = components['schemas']['Limit'];
export type LimitHit = components['schemas']['LimitHit'];
export type Limits = components['schemas']['Limits'];
export type Login = components['schemas']['Login'];
export type Match = components['schemas']['Match'];
export type Method = components['schemas']['Method'];
export type NamedSecret = components['schemas']['NamedSecret'];
export type NewToken = components['schemas']['NewToken'];
export type NumberOrName = components['schemas']['NumberOrName'];
export type Omitted = components['schemas']['Omitted'];
export type OnEnd = components['schemas']['OnEnd'];
export type OnTimeout = components['schemas']['OnTimeout'];
export type Operation = components['schemas']['Operation'];
export type OperationAnswer = components['schemas']['OperationAnswer'];
export type Order = components['schemas']['Order'];
export type Output = components['schemas']['Output'];
export type OutputKind = components['schemas']['OutputKind'];
export type OutputStreamView = components['schemas']['OutputStreamView'];
export type OutputView = components['schemas']['OutputView'];
export type Problem = components['schemas']['Problem'];
export type Process = components['schemas']['Process'];
export type ProcessList = components['schemas']['ProcessList'];
export type ProcessState = components['schemas']['ProcessState'];
export type Receiver = components['schemas']['Receiver'];
export type RenameRequest = components['schemas']['RenameRequest'];
export type Resized = components['schemas']['Resized'];
export type ResourceUsage = components['schemas']['ResourceUsage'];
export type Screen = components['schemas']['Screen'];
export type SearchAnswer = components['schemas']['SearchAnswer'];
export type SecretList = components['schemas']['SecretList'];
export type SecretRequest = components['schemas']['SecretRequest'];
export type SentSignal = components['schemas']['SentSignal'];
export type SessionAction = components['schemas']['SessionAction'];
export type SessionEnvironment = components['schemas']['SessionEnvironment'];
export type SessionList = components['schemas']['SessionList'];
export type SessionPolicy = components['schemas']['SessionPolicy'];
export type SessionStatus = components['schemas']['SessionStatus'];
export type SignalList = components['schemas']['SignalList'];
export type SignalRequest = components['schemas']['SignalRequest'];
export type SocketEvent = components['schemas']['SocketEvent'];
export type SocketEventCommandCompleted = components['schemas']['SocketEventCommandCompleted'];
export type SocketEventCommandStarted = components['schemas']['SocketEventCommandStarted'];
export type SocketEventControl = components['schemas']['SocketEventControl'];
export type SocketEventError = components['schemas']['SocketEventError'];
export type SocketEventExit = components['schemas']['SocketEventExit'];
export type SocketEventForeground = components['schemas']['SocketEventForeground'];
export type SocketEventKeyboardReturned = components['schemas']['SocketEventKeyboardReturned'];
export type SocketEventKeyboardTaken = components['schemas']['SocketEventKeyboardTaken'];
export type SocketEventLimit = components['schemas']['SocketEventLimit'];
export type SocketEventMissed = components['schemas']['SocketEventMissed'];
export type SocketEventPong = components['schemas']['SocketEventPong'];
export type SocketEventReady = components['schemas']['SocketEventReady'];
export type SocketEventResize = components['schemas']['SocketEventResize'];
export type SocketInput = components['schemas']['SocketInput'];
export type SocketInputInput = components['schemas']['SocketInputInput'];
export type SocketInputPing = components['schemas']['SocketInputPing'];
export type SocketInputResize = components['schemas']['SocketInputResize'];
export type SocketMessage = components['schemas']['SocketMessage'];
export type SocketMessageError = components['schemas']['SocketMessageError'];
export type SocketMessageGap = components['schemas']['SocketMessageGap'];
export type SocketMessageOutput = components['schemas']['SocketMessageOutput'];
export type SocketMessagePong = components['schemas']['SocketMessagePong'];
export type SocketMessageStatus = components['schemas']['SocketMessageStatus'];
export type SocketMessageTyped = components['schemas']['SocketMessageTyped'];
export type SocketRequest = components['schemas']['SocketRequest'];
export type SocketRequestPing = components['schemas']['SocketRequestPing'];
export type SocketRequestResize = components['schemas']['SocketRequestResize'];
export type Span = components['schemas']['Span'];
export type StartupFailure = components['schemas']['StartupFailure'];
export type TakeOverEnd = components['schemas']['TakeOverEnd'];
export type TakeRequest = components['schemas']['TakeRequest'];
export type TerminalSession = components['schemas']['TerminalSession'];
export type TerminateQuery = components['schemas']['TerminateQuery'];
export type Terminated = components['schemas']['Terminated'];
export type Ticket = components['schemas']['Ticket'];
export type TicketPage = components['schemas']['TicketPage'];
export type TicketRequest = components['schemas']['TicketRequest'];
export type TicketScope = components['schemas']['TicketScope'];
export type TokenInfo = components['schemas']['TokenInfo'];
export type TokenList = components['schemas']['TokenList'];
export type TokenRequest = components['schemas']['TokenRequest'];
export type TokenScope = components['schemas']['TokenScope'];
export type WaitAnswer = components['schemas']['WaitAnswer'];
export type WaitRequest = components['schemas']['WaitRequest'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
