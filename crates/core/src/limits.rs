//! The limits of the server, each with its reason; some stand beside the one place that needs them.

use std::time::Duration;

/// Live sessions in total; each costs a PTY (kernel.pty.max is 4,096 by default), two processes and some descriptors.
/// The kernel may allow fewer: `ptyd doctor` tells.
pub const SESSIONS_MAX: usize = 4_000;
/// Live sessions per owner. Most servers have one owner, who may have them all; an operator with several sets less.
pub const SESSIONS_PER_OWNER_MAX: usize = SESSIONS_MAX;
/// The same per named token: a quarter, so that one agent leaves room for others.
pub const SESSIONS_PER_TOKEN_MAX: usize = SESSIONS_MAX / 4;
/// The sessions that a machine may have with sysctls, for which `ptyd doctor` shows the values.
pub const SESSIONS_MANY: u64 = 20_000;
/// Descriptors of the server for each session: the connection to its holder, the journal, and the events, which are read
/// in three places.
pub const SESSION_DESCRIPTORS: u64 = 5;
/// Descriptors of the server beside its sessions and its connections: listeners, history, logs, a spare holder, and files that it reads.
pub const SERVER_DESCRIPTORS: u64 = 64;
/// Processes of a session: the holder, the shell and a program.
pub const SESSION_THREADS: u64 = 3;
/// The shortest time limit (by age or inactivity) that can be set for all sessions: a shorter one would only lose work.
pub const LIFETIME_MIN: Duration = Duration::from_millis(100);
/// The longest one: a year.
pub const LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// Calls that take longer are logged: no immediate call takes this long on a machine that keeps up.
pub const SLOW_CALL: Duration = Duration::from_secs(2);
/// How long a container engine may take to start a container; its image is there already, but a disk can be slow.
pub const CONTAINER_START: Duration = Duration::from_secs(60);
/// How long a container's first process may take to connect once its engine says that it runs.
pub const CONTAINER_CONNECTS: Duration = Duration::from_secs(10);
/// How long an engine may take to remove a container.
pub const CONTAINER_ENDS: Duration = Duration::from_secs(60);
/// How long an engine may take to tell its version.
pub const CONTAINER_ENGINE_ANSWERS: Duration = Duration::from_secs(5);
/// How long ended sessions can be read.
pub const RETENTION_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// The disk space that all of them may take together; the oldest are removed first.
pub const RETENTION_BYTES: u64 = 10 << 30;
/// How many of the newest ended sessions a starting server reads to find default sessions: a client's repeated call may
/// be about one that ended with the earlier server.
pub const DEFAULTS_LOOKED_FOR: usize = 256;
/// The shortest interval between two rebuilds of a damaged store: more would not help against a disk that damages it
/// again.
pub const STORE_ANEW_EVERY: Duration = Duration::from_secs(60);
/// The interval after a rebuild that failed.
pub const STORE_RETRY_EVERY: Duration = Duration::from_secs(5);
/// How long a query waits for the store to be rebuilt: that may read gigabytes of journals.
pub const STORE_PATIENCE: Duration = Duration::from_secs(50);
/// How long a command or input waits for the store to give its caller's read cursor, without which it can do.
pub const READ_CURSOR_PATIENCE: Duration = Duration::from_millis(100);
/// How long a query of the store, or an action's line in the audit log, waits for the disk before it fails. A busy disk takes
/// a second or two, and a starved machine more.
pub const DISK_PATIENCE: Duration = Duration::from_secs(10);
/// Reads of ended sessions that may wait for the disk at once: each occupies one of the 512 threads of the blocking
/// pool.
pub const DISK_READERS_MAX: usize = 16;
/// The disk space to keep free; below it the oldest ended sessions are removed, because live ones need it more.
pub const RETENTION_FREE: u64 = 1 << 30;
/// Or this part of the disk if that is less: a small disk never has a gibibyte free.
pub const RETENTION_FREE_PART: u64 = 20;
/// Readers of one session whose cursors are in memory: each stdio client is one, and each REST client that names itself.
pub const READERS_PER_SESSION_MAX: usize = 256;
/// How long an ended session is kept at least, so that its callers still read its end: only age removes it sooner.
pub const ENDED_SESSION_STAYS: Duration = Duration::from_secs(10);
/// How often retention runs.
pub const RETENTION_EVERY: Duration = Duration::from_secs(600);
/// The longest command that a policy judges: its analysers read a text more than once.
pub use policy::ANALYSED_BYTES_MAX as POLICY_BYTES_MAX;
/// The longest command; the loader takes it in one read, and no shell script is longer.
pub const COMMAND_BYTES_MAX: usize = 1 << 20;
/// The longest input; input that does not fit the kernel's buffer waits in the holder.
pub const INPUT_BYTES_MAX: usize = 1 << 20;
/// Named keys in one input; more should be sent as text.
pub const INPUT_KEYS_MAX: usize = 1_000;
/// The longest name of a session.
pub const NAME_CHARS_MAX: usize = 100;
/// The widest terminal, in cells: wider ones break more programs than they help, and a screen's memory is per cell.
pub const COLS_MAX: u16 = 1_000;
/// The highest terminal, in cells.
pub const ROWS_MAX: u16 = 1_000;
/// The default width: wide enough for compilers' messages.
pub const COLS_DEFAULT: u16 = 120;
/// The default height.
pub const ROWS_DEFAULT: u16 = 40;
/// Journal bytes kept per session; older ones are freed on disk, and readers get a gap.
pub const JOURNAL_BYTES_MAX: u64 = 256 << 20;
/// The longest output of an ended command, in bytes, that is shown with a later answer instead of being announced.
pub const UNREAD_SHOWN_BYTES_MAX: u64 = 2 << 10;
/// Text in one answer by default: terminal-mcp.md §1.5.
pub const BUDGET_CHARS: usize = 30_000;
/// The largest budget: as much as clients take in one message.
pub const BUDGET_CHARS_MAX: usize = 1_000_000;
/// Journal bytes that one read returns at most.
pub const READ_BYTES_MAX: usize = 4 << 20;
/// Output up to this size is rendered whole; of more, only head and tail, which is all that fits a budget anyway.
pub const RENDER_BYTES_MAX: u64 = 1 << 20;
/// The default wait of `execute_in_terminal`, and of `POST …/execute` if its client asks for a wait without a time.
pub const EXECUTE_TIMEOUT: Duration = Duration::from_secs(30);
/// The wait of `POST …/execute` if its client asks for none: most commands end sooner, and no usual HTTP client gives up sooner.
pub const EXECUTE_UNASKED: Duration = Duration::from_secs(1);
/// The default of the `terminal` tool's soft timeout: no new output for this long ends the wait (terminal-mcp.md §4.1).
pub const SOFT_TIMEOUT: Duration = Duration::from_secs(30);
/// The shortest soft timeout: a short pause of a program is not silence.
pub const SOFT_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The default total timeout of the `terminal` tool: below the 60 s after which common clients give up.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(50);
/// The longest timeout of a wait.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);
/// How long the start-up files of a model's default session may take. After that it is started without them.
pub const START_FILES_WAIT: Duration = Duration::from_secs(20);
/// How long a program of those start-up files may have the whole screen.
pub const START_SCREEN_STANDS: Duration = Duration::from_secs(2);
/// Sessions of earlier clients that a new client's first answer names; the others are counted.
pub const LEFT_BEHIND_NAMED: usize = 3;
/// A create request answers at the first prompt, or after this time with the status `creating`.
pub const CREATE_WAIT: Duration = Duration::from_secs(1);
/// How long a profile's start-up command may take before the session is handed over without its end.
pub const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// A command without a wait is answered when its output begins, or after this time.
pub const START_WAIT: Duration = Duration::from_millis(500);
/// The longest line typed into a nested shell: a terminal in canonical mode keeps at most 4,095 bytes of a line
/// (termios(3)), and the mode of another machine's terminal is unknown.
pub const INSIDE_LINE_BYTES_MAX: usize = 4_000;
/// A nested shell reports a command's beginning within this time, or it is not a shell; allows for a slow connection.
pub const INSIDE_BEGINS: Duration = Duration::from_secs(5);
/// For this long after a nested command has begun, a state of the foreground from before counts for nothing.
pub const INSIDE_BEGUN: Duration = Duration::from_millis(200);
/// How long a nested shell may take to its prompt after a command.
pub const INSIDE_SETTLES: Duration = Duration::from_secs(2);
/// How long an interrupted nested command may take to report its end while a program reads.
pub const INSIDE_THROWN: Duration = Duration::from_millis(500);
/// How long a program may leave input unread before the rest is dropped.
pub const INPUT_PATIENCE: Duration = Duration::from_millis(1_500);
/// HUP, then this, TERM, then this, KILL: five seconds in all are promised (BEHAVIOUR 6).
pub const TERMINATE_GRACE: Duration = Duration::from_millis(1_500);
/// The longest grace period of a request.
pub const GRACE_MAX: Duration = Duration::from_secs(60);
/// The smallest limit in seconds or in MiB of output: a smaller one would end everything.
pub const LIMIT_MIN: f64 = 0.01;
/// The largest limit in seconds: a year.
pub const LIMIT_SECONDS_MAX: f64 = 31_536_000.0;
/// How long a session that a named token has started may be without input, command and output, where nobody says otherwise.
pub const TOKEN_INACTIVITY: Duration = Duration::from_secs(24 * 3_600);
/// The bounds of the memory limit in MiB: a shell needs some, and no machine has 16 TiB.
pub const LIMIT_MEMORY_MB: (u64, u64) = (8, 1 << 24);
/// The largest output limit in MiB, as for memory.
pub const LIMIT_OUTPUT_MB_MAX: f64 = 16_777_216.0;
/// The largest output rate limit in MiB per second: more than a terminal carries.
pub const LIMIT_OUTPUT_RATE_MB_MAX: f64 = 16_384.0;
/// The bounds of the process limit: the shell and one more; and the kernel's highest pid (PID_MAX_LIMIT).
pub const LIMIT_PROCESSES: (u64, u64) = (2, 1 << 22);
/// The bounds of the open files limit: bash and a program need some; and the kernel's own default (sysctl fs.nr_open).
pub const LIMIT_OPEN_FILES: (u64, u64) = (32, 1 << 20);
/// Named actions of one session.
pub const ACTIONS_MAX: usize = 64;
/// Characters of an action's name.
pub const ACTION_NAME_CHARS_MAX: usize = 64;
/// If the shell's line editor has the terminal for this long although a command runs, the report key is pressed.
pub const EDITOR_SUSPICION: Duration = Duration::from_millis(60);
/// A full-screen program counts as waiting for a key when it has painted nothing for this long: on leaving, vim waits
/// 10 ms for its terminal's replies, and a loaded machine takes longer.
pub const SCREEN_SETTLES: Duration = Duration::from_millis(100);
/// A full-screen program whose reads are not visible (tmux: another process reads) is treated as idle after its screen
/// has been unchanged for this long.
pub const SCREEN_STILL: Duration = Duration::from_secs(1);
/// The same after input that has not changed the screen at all.
pub const SCREEN_UNTOUCHED: Duration = Duration::from_secs(3);
/// A program that has asked a question, and wakes up by itself, asks the next one in the same way when it has been silent for
/// this long.
pub const QUESTION_BELIEVED: Duration = Duration::from_millis(200);
/// A program that listens on a port and has printed nothing for this long is a server that is ready.
pub const LISTENER_SILENT: Duration = Duration::from_secs(1);
/// How often that is looked at: at first and after output, and at most, in a long silence.
pub const LISTENER_EVERY_MIN: Duration = Duration::from_millis(250);
/// See [`LISTENER_EVERY_MIN`].
pub const LISTENER_EVERY_MAX: Duration = Duration::from_secs(4);
/// An interrupt that the program ignores is told after this time, in which it may show that it still asks something.
pub const IGNORED_WAIT: Duration = Duration::from_secs(1);
/// A wait for a pattern ends when the program has asked something else for this long: a program that pauses behind an open
/// line may still print more.
pub const QUESTION_STANDS: Duration = Duration::from_millis(1_500);
/// After this long, even a shell on an overloaded machine has read the keys that handed it a command.
pub const KEYS_READ: Duration = Duration::from_secs(3);
/// If the shell has read the report key and does not answer it for this long, its command is ended heuristically.
pub const REPORT_PATIENCE: Duration = Duration::from_millis(400);
/// The same if the kernel does not show that the shell has read the key: it gets no processor, or it is stopped.
pub const REPORT_READ_MAX: Duration = Duration::from_secs(10);
/// A typed command in a shell without our hooks cannot end earlier: the shell must have read it first.
pub const TYPED_AGE_MIN: Duration = Duration::from_millis(150);
/// If a report's marker has not come for this long although all output was read (the shell's output was redirected), the command ends
/// here. On a busy machine, holder and shell may wait for the processor in the moment between both.
pub const MARKER_PATIENCE: Duration = Duration::from_millis(500);
/// Commands kept in memory per session; older ones are in the store.
pub const COMMANDS_IN_MEMORY: usize = 64;
/// The bytes of their texts: those of one of the longest. A request that asks for them copies them.
pub const COMMANDS_TEXT_IN_MEMORY: usize = COMMAND_BYTES_MAX;
/// Open waits per session.
pub const WAITS_MAX: usize = 256;
/// A call that a client can take later is answered with a task after this time: a task costs a model one more turn.
pub const TASK_GRACE: Duration = Duration::from_secs(10);
/// A task whose caller named no timeout ends after this long without output: nothing may be a task for ever.
pub const TASK_QUIET: Duration = Duration::from_secs(300);
/// A task without a timeout ends after this time at the latest.
pub const TASK_TOTAL: Duration = Duration::from_secs(1_800);
/// How long an interrupted command may take to end before its task says that it runs on.
pub const TASK_CANCEL_WAIT: Duration = Duration::from_secs(10);
/// How long a query of a task waits for its end, from the second one on: below every client's timeout.
pub const TASK_HELD: Duration = Duration::from_secs(5);
/// Queries of tasks that wait at once; others are answered at once.
pub const TASKS_HELD_MAX: usize = 256;
/// Open tasks of one session: each is one of its waits.
pub const TASKS_OPEN_MAX: usize = 64;
/// How often a client is asked for the secret of one prompt: it may say that a person has typed it when none has.
pub const TASK_QUESTIONS_MAX: usize = 3;
/// Tasks of removed sessions that are known of; beyond that the oldest are unknown.
pub const TASKS_REMOVED_MAX: usize = 1_000;
/// How long the task of a removed session is known of: hosts ask for days, and nothing is kept for ever.
pub const TASK_REMOVED_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long an open task keeps a session whose client is gone.
pub const TASK_KEEPS_SESSION: Duration = Duration::from_secs(24 * 3600);
/// The pause between two looks at a session that an open task keeps.
pub const TASK_KEEPS_LOOKED_AT: Duration = Duration::from_secs(1);
/// Sessions of one wait.
pub const SESSIONS_AWAITED_MAX: usize = 32;
/// Conditions (`until`) of one wait.
pub const UNTIL_MAX: usize = 16;
/// The initial poll interval for ports and files: they appear soon, or take seconds.
pub const OUTSIDE_EVERY_MIN: Duration = Duration::from_millis(5);
/// The interval after a while.
pub const OUTSIDE_EVERY_MAX: Duration = Duration::from_millis(100);
/// Text must be gone from the screen for this long: while a screen is repainted, its text is missing for a moment.
pub const GONE_SETTLES: Duration = Duration::from_millis(50);
/// Output after an accepted command is held back from viewers until the command's own output begins, which takes a
/// fraction of a millisecond; after this time it is shown as it is.
pub const ECHO_HELD: Duration = Duration::from_millis(100);
/// The pause before a session whose actor panicked is adopted again.
pub const FAULT_PAUSE: Duration = Duration::from_millis(500);
/// How long a holder may take to end after its connection closed: the kernel closes its files a moment before it is
/// gone.
pub const HOLDER_ENDS: Duration = Duration::from_secs(1);
/// A holder that leaves a call unanswered for this long is pinged.
pub const HOLDER_PROBE_AFTER: Duration = Duration::from_secs(1);
/// A holder that leaves the ping unanswered for this long counts as silent: it serves requests in every turn, and a
/// turn takes milliseconds unless the holder is stopped, frozen, or waits for a disk.
pub const HOLDER_PATIENCE: Duration = Duration::from_secs(3);
/// Unanswered calls to one holder: as many as all connections may send at one moment.
pub const HOLDER_CALLS_MAX: usize = 1_024;
/// Unsent bytes to one holder: a few of the largest inputs.
pub const HOLDER_UNSENT_BYTES_MAX: usize = 8 << 20;
/// A holder from before the server sends its Hello within this time, or its session is reported as unreachable until it
/// does.
pub const ADOPT_PATIENCE: Duration = Duration::from_secs(2);
/// How long requests to an adopted session wait for the foreground state of what runs; the first sample takes
/// milliseconds.
pub const FIRST_STATE: Duration = Duration::from_millis(500);
/// The first retry interval for a holder that does not listen yet: a new one listens within milliseconds.
pub const ADOPT_AGAIN_MIN: Duration = Duration::from_millis(20);
/// The longest retry interval.
pub const ADOPT_AGAIN_MAX: Duration = Duration::from_secs(5);
/// How long a killed process may take to end, unless the kernel blocks it (a disk, a frozen cgroup).
pub const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// How long a holder may take after its session's end to send its last frames and write to its disk.
pub const HOLDER_LEAVES: Duration = Duration::from_secs(10);
/// After this many panics in a row a session is not adopted again: its output causes the panic each time.
pub const FAULTS_MAX: u32 = 5;
/// Panics further apart than this are not in a row.
pub const FAULTS_FORGOTTEN: Duration = Duration::from_secs(600);
/// Queued requests per session.
pub const MAILBOX_MAX: usize = 64;
/// The newest plain text against which a pattern is matched.
pub const PATTERN_TEXT_MAX: usize = 64 << 10;
/// The length of a pattern.
pub const PATTERN_LENGTH_MAX: usize = 4_096;
/// Character classes in a pattern. Each takes up to 1.5 ms to look up and fold before the compiled size is known; more
/// than 64 are longer than a line that a person would write.
pub const PATTERN_CLASSES_MAX: usize = 64;
/// The compiled size of a pattern in each direction: six times `\w`, which has every letter of Unicode.
pub const PATTERN_BYTES_MAX: usize = 256 << 10;
/// A pattern up to this length without classes, `.`, counted repetitions and flags does not wait for its principal's
/// turn: it is compiled in some ten microseconds.
pub const PLAIN_PATTERN_BYTES_MAX: usize = 64;
/// The cache of a pattern's matching in each direction; a fuller one is begun anew.
pub const PATTERN_CACHE_BYTES_MAX: usize = 256 << 10;
/// Patterns with a class, a `.` or a counted repetition in open requests of one principal. Each takes at most 1 to 1.5
/// MiB, compiled and with its caches; an ordinary one takes a hundredth.
pub const PATTERNS_PER_PRINCIPAL_MAX: usize = 128;
/// A pattern that is not plain counts each character this many times: one with nested repetitions takes up to 2 µs for
/// it, and must not take them of a thread that serves all.
pub const COSTLY_PATTERN_WEIGHT: usize = 16;
/// Characters that plain patterns may match in one turn of an actor before the work moves to the blocking pool: one
/// wait on a flood.
pub const MATCHED_AT_ONCE: usize = PATTERN_TEXT_MAX + SCAN_CHUNK;
/// After a turn that took longer, the next ones run on the blocking pool, too.
pub const MATCHED_SOON: Duration = Duration::from_millis(2);
/// Work that costs as much as reading so many bytes is done at once, in a fraction of a millisecond; more is done in its principal's
/// lane.
pub const WORK_AT_ONCE: usize = 16 << 10;
/// The server handles this many messages of one principal's viewers at once in [`SMALL_WORK_TIME`]: more than people type and drag.
/// Each further message takes turns.
pub const SMALL_WORK_AT_ONCE: u32 = 100;
/// The time in which [`SMALL_WORK_AT_ONCE`] counts.
pub const SMALL_WORK_TIME: Duration = Duration::from_millis(100);
/// A byte of a command costs as much as so many of a journal while a policy judges it: up to 0.6 µs.
pub const JUDGED_WEIGHT: usize = 16;
/// Processes and threads of an ordinary user's sandbox, where nobody asks for another limit: more than large builds have, and fewer than a
/// machine bears.
pub const SANDBOX_TASKS_MAX: u64 = 4_096;
/// Looks of one principal's waits at files and processes at once. One in a file system that does not answer takes its place for long.
pub const LOOKS_MAX: usize = 4;
/// The pause behind each of them, in lengths of that look: all of a principal take a quarter of a processor at most.
pub const LOOK_PAUSES: u32 = 15;
/// Bytes of one principal's output in answers that its clients have not taken yet.
pub const ANSWERS_BYTES_MAX: usize = 32 << 20;
/// The room that a recording takes among them: what it keeps between two of its parts.
pub const RECORDING_BYTES: usize = 1 << 20;
/// How long a read waits for room among them.
pub const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// Journal bytes scanned per turn of an actor.
pub const SCAN_CHUNK: usize = 64 << 10;
/// Events read per turn of an actor; most of them have a hundred bytes.
pub const EVENTS_CHUNK: usize = 256;
/// The default grace period for the sessions of a stdio client that disconnected.
pub const DETACH_GRACE: Duration = Duration::from_secs(600);
/// The least time that a client has to connect to the next server before its sessions end.
pub const CLIENT_RETURNS: Duration = Duration::from_secs(10);
/// Open connections per listener; each costs a descriptor and tens of KiB, and a session rarely has more than one
/// client.
pub const CONNECTIONS_MAX: usize = 2_048;
/// Open connections per listener, however few descriptors the server may have: a client has two, and a person needs one.
pub const CONNECTIONS_MIN: usize = 8;
/// Those of one address (of IPv6: of one network of 64 bits), where connections have addresses: the rest are a reserve for the others.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 1_792;
/// Viewers per session; each costs a connection, of which there are not many more.
pub const VIEWERS_MAX: usize = 1_500;
/// Events kept per session for viewers that are behind: a hundred bytes each, and a command in some.
pub const EVENTS_KEPT: usize = 64;
/// Bytes of commands in them: the beginning and the end of one of the longest.
pub const EVENTS_TEXT_KEPT: usize = 2 * COMMAND_BYTES_MAX;
/// Journal bytes that may be sent to a viewer without its acknowledgement: terminals in browsers parse some MB per
/// second, and a key's echo waits behind all of it.
pub const WINDOW_BYTES: u64 = 256 << 10;
/// A viewer blocked by its window or its connection that is this far behind gets a snapshot of the present screen
/// instead.
pub const BEHIND_BYTES_MAX: u64 = 512 << 10;
/// The shortest interval between two such snapshots: a screen is drawn from all skipped output.
pub const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);
/// Journal bytes in one frame; a connection keeps a buffer of the largest frame it has sent.
pub const FRAME_BYTES: usize = 16 << 10;
/// The read and write buffers of a WebSocket.
pub const SOCKET_BUFFER_BYTES: usize = 4 << 10;
/// The longest message of a viewer; a longer paste is several messages.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Inputs of one viewer that may wait for the program to read; beyond that its connection is not read.
pub const INPUTS_WAITING_MAX: usize = 16;
/// The interval of WebSocket pings.
pub const PING_EVERY: Duration = Duration::from_secs(15);
/// How long the pong may take.
pub const PONG_PATIENCE: Duration = Duration::from_secs(10);
/// How long the peer may take to answer a WebSocket close.
pub const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// How long another node may take to accept a connection, with the look-up of its name; it is on the same network.
pub const NODE_CONNECT: Duration = Duration::from_secs(3);
/// While forwarded requests wait for their answers, the other node is asked so often whether it still serves.
pub const NODE_PROBE_EVERY: Duration = Duration::from_secs(2);
/// Sockets that wait for a credential in their first message; their clients have shown none yet.
pub const SOCKETS_WITHOUT_CREDENTIAL_MAX: usize = 64;
/// How long such a socket waits.
pub fn first_message_patience() -> Duration {
    sys::fault::scaled(Duration::from_secs(10))
}
/// The lifetime of a ticket: a page requests it and connects at once.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(30);
/// Unused tickets; a user opens a few windows at once, not a thousand.
pub const TICKETS_MAX: usize = 1_024;
/// The same of one principal, so that the others have theirs.
pub const TICKETS_PER_PRINCIPAL_MAX: usize = 128;
/// How long a person may take to type a secret that a program reads.
pub const SECRET_REQUEST_LIFETIME: Duration = Duration::from_secs(600);
/// Open requests for secrets of one principal. A session has one at most, and a person does not answer more.
pub const SECRET_REQUESTS_MAX: usize = 64;
/// How long a take-over lasts whose request names no time.
pub const TAKE_OVER: Duration = Duration::from_secs(600);
/// The longest one, and one that ends with its connection: as long as a browser stays logged in.
pub const TAKE_OVER_MAX: Duration = Duration::from_secs(12 * 3_600);
/// The longest that a request waits for the keyboard.
pub const KEYBOARD_PATIENCE_MAX: Duration = Duration::from_secs(3_600);
/// Requests that wait for the keyboard of a session. Each keeps a command or an input in memory.
pub const KEYBOARD_WAITS_MAX: usize = 64;
/// How long an approval waits for a person's decision, and how long after that the same request must come again.
pub const APPROVAL_LIFETIME: Duration = Duration::from_secs(600);
/// How often a repetition looks whether the command of the first request has begun; that takes a write to the disk and a
/// call to the holder.
pub const UNDERWAY_INTERVAL: Duration = Duration::from_millis(10);
/// Approvals of one principal that wait for a decision or for their request; and as many denied ones are kept. A person reads
/// each of them.
pub const APPROVALS_PER_PRINCIPAL_MAX: usize = 16;
/// HTTP requests per second of one principal: an agent that sends nothing but requests reaches some hundreds, and a
/// machine of two cores answers several times this limit.
pub const REQUESTS_PER_SECOND: u32 = 5_000;
/// The burst in seconds of that rate: a program that starts two hundred sessions does so at once.
pub const REQUESTS_BURST_SECONDS: u32 = 4;
/// Requests per second with a wrong token or none, per listener, that are answered with 401; further ones are
/// answered with 429 and a time to wait. A valid token is always accepted.
pub const FAILURES_PER_SECOND: u32 = 20;
/// The burst in seconds of that rate: a program whose token was revoked retries in several places.
pub const FAILURES_BURST_SECONDS: u32 = 10;
/// How often a wrong token's sender is logged; others in this time are counted.
pub const REFUSED_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// Named tokens: one for each agent or program. A request's token that is not the server's own is compared with all of
/// them.
pub const TOKENS_MAX: usize = 1_000;
/// The records of revoked tokens that each of several nodes keeps. A node that was away while more were revoked could take an old
/// one again.
pub const REVOKED_TOKENS_MAX: usize = 4_096;
/// The shortest key by which nodes trust each other's tokens, in bytes.
pub const FLEET_KEY_BYTES_MIN: usize = 32;
/// The profiles that a token can be bound to.
pub const TOKEN_PROFILES_MAX: usize = 16;
/// The length of such a profile's name.
pub const PROFILE_NAME_CHARS_MAX: usize = 100;
/// Named secrets of a server: all are in memory.
pub const SECRETS_MAX: usize = 256;
/// Named secrets of one profile. A session's masks are made of them, and looked for in each of its reads.
pub const PROFILE_SECRETS_MAX: usize = 32;
/// The longest value: a private key or a service account's file. With each read, so much before and behind it is read,
/// too.
pub const SECRET_BYTES_MAX: usize = 8 << 10;
/// The longest name of a secret, which is a variable's.
pub const SECRET_NAME_CHARS_MAX: usize = 64;
/// The shortest token in a file; ptyd's own tokens have 43 characters.
pub const TOKEN_CHARS_MIN: usize = 16;
/// The longest name of a token, which is used in paths, in logs and in every session that it starts.
pub const TOKEN_NAME_CHARS_MAX: usize = 64;
/// The longest lifetime of an expiring token.
pub const TOKEN_LIFETIME_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
/// How long a request's head may take, and how long a connection may be idle before it: a client that sends nothing, or
/// a byte now and then, must not occupy a connection for ever, and one that polls every 20 s need not reconnect each
/// time.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest request body with a command or input: 1 MiB in JSON escapes.
pub const BODY_BYTES_MAX: usize = 8 << 20;
/// The longest other body: a wait with a few patterns in JSON escapes.
pub const BODY_PLAIN_BYTES_MAX: usize = 256 << 10;
/// How long a body may take: 8 MiB over the slowest usable tunnel.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// JSON values in one body: an environment of ten thousand variables. Each costs some tens of bytes of memory, however
/// short its text is.
pub const BODY_VALUES_MAX: usize = 32_768;
/// The deepest nesting of a body: no request has ten levels.
pub const BODY_DEPTH_MAX: usize = 64;
/// Bytes of one principal's request bodies held at once, until their requests are parsed.
pub const BODIES_BYTES_MAX: usize = 32 << 20;
/// Bodies of one principal being received at once; most arrive together with their head and are not counted.
pub const BODIES_ARRIVING_MAX: usize = 256;
/// Matches per search: each is a line, and a longer list is read in pages.
pub const SEARCH_MATCHES_MAX: usize = 1_000;
/// A longer line is searched in parts of this size, because the text of one part is in memory.
pub const SEARCH_LINE_BYTES_MAX: u64 = 4 << 20;
/// Characters of a matching line in the answer; the rest can be read at its offset.
pub const SEARCH_LINE_CHARS_MAX: usize = 1_000;
/// Commands that one search distinguishes; each costs its range and its first words. The next search continues behind
/// them.
pub const SEARCH_COMMANDS_MAX: usize = 20_000;
/// Threads of low priority that search a whole journal at once; further searches wait. Each takes some hundred KiB, and
/// the disk has one head.
pub const WHOLE_READS_MAX: usize = 8;
/// The same for one principal, so that its jobs wait for each other and not for those of others. Two of them fill a machine of two
/// processors, and a command of another principal then takes more than three times as long.
pub const WHOLE_READS_PER_PRINCIPAL_MAX: usize = 1;
/// Journal bytes in one server-sent event: the cost of a slow client, and still few events for a flood.
pub const EVENT_BYTES_MAX: usize = 64 << 10;
/// Events kept in the event log: some minutes of a busy server, a few hundred bytes each.
pub const EVENTS_OF_ALL_KEPT: usize = 4_096;
/// Bytes of commands in them: those of all usual ones, and of sixteen of the longest.
pub const EVENTS_OF_ALL_TEXT: usize = 16 << 20;
/// Commands with an open span; those beyond have none.
pub const COMMAND_SPANS_MAX: usize = 8_192;
/// Ended commands that are remembered: one may end before its caller knows its id.
pub const ENDED_COMMANDS_REMEMBERED_MAX: usize = 256;
/// Events in one part of an event stream.
pub const EVENTS_READ_MAX: usize = 256;
/// Followers of the event log per principal: a program needs one, and every event wakes each follower.
pub const FOLLOWERS_PER_PRINCIPAL_MAX: usize = 64;
/// The longest silence on an event stream: proxies and phones close a connection after 20 s to 60 s.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// Operations in one batch: they run one after the other, and the client waits for all.
pub const BATCH_OPERATIONS_MAX: usize = 64;
/// Bytes that the answers of one batch may hold together: they are in memory until the last is there.
pub const BATCH_ANSWER_BYTES_MAX: usize = 16 << 20;
/// Open MCP sessions over HTTP in total: each costs two tasks and tens of KiB. Beyond the limit a client is served
/// without one.
pub const MCP_SESSIONS_MAX: usize = 1_024;
/// The same per principal, so that one cannot keep the others out: an agent has one, a team with one token some dozens.
pub const MCP_SESSIONS_PER_PRINCIPAL_MAX: usize = 256;
/// An MCP session without a request or open stream for this long is closed: its client is gone. Common clients do not
/// reconnect by themselves, so a night or a weekend must not end it; terminals do not end with it.
pub const MCP_SESSION_IDLE: Duration = Duration::from_secs(3 * 24 * 3600);
/// The stored state of an MCP session: the client's `initialize`, which has a few hundred bytes.
pub const MCP_SESSION_BYTES_MAX: usize = 64 << 10;
/// How often idle MCP sessions are looked for: an hour more does not matter.
pub const MCP_SESSIONS_LOOKED_AT_EVERY: Duration = Duration::from_secs(3600);
/// Resources that one MCP client may follow at once: the list names 200, and no client needs all of them.
pub const SUBSCRIPTIONS_MAX: usize = 100;
/// The shortest interval between two notifications of one resource: a client reads the resource again for each.
pub const SUBSCRIPTION_PAUSE: Duration = Duration::from_millis(250);
/// The longest path of a socket: sockaddr_un has 108 bytes including the NUL (unix(7)).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;
/// The size at which a file of the audit log is full: some 200,000 lines, which one search reads in a second.
pub const AUDIT_BYTES: u64 = 64 << 20;
/// The smallest one: one command's line has its text.
pub const AUDIT_BYTES_MIN: u64 = 1 << 20;
/// Full files of the audit log that are kept, younger ones besides.
pub const AUDIT_FILES: u32 = 8;
/// The most that can be kept: each is opened to search the log.
pub const AUDIT_FILES_MAX: u32 = 1_000;
/// How long a full file is kept at least, where nothing runs that cannot be recorded.
pub const AUDIT_KEEP: Duration = Duration::from_secs(24 * 3_600);
/// The longest such time.
pub const AUDIT_KEEP_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);
/// Bytes of lines that a named token may fill in an hour, and at once: some 40 commands a second.
pub const AUDIT_SHARE: u64 = 64 << 20;
/// The smallest share: some 1,000 commands.
pub const AUDIT_SHARE_MIN: u64 = 1 << 20;
/// The longest line of the audit log: with its header it fits into a datagram for a syslog server.
pub const AUDIT_LINE_BYTES_MAX: usize = SYSLOG_DATAGRAM_BYTES_MAX - 512;
/// A command's text in a line, in bytes of JSON. A longer text has its length and its SHA-256 there.
pub const AUDIT_TEXT_BYTES_MAX: usize = 4 << 10;
/// A path, the reason of an error, or the names of a list in a line, in bytes of JSON.
pub const AUDIT_PATH_BYTES_MAX: usize = 1 << 10;
/// Any other text of a caller in a line, in bytes of JSON.
pub const AUDIT_NAME_BYTES_MAX: usize = 256;
/// How soon lines about actions that only read, and about ends of commands, are in the audit log.
pub const AUDIT_FLUSH_EVERY: Duration = Duration::from_secs(1);
/// A write that takes longer shows a busy disk; the next one keeps no other task waiting.
pub const AUDIT_WRITE_QUICK: Duration = Duration::from_millis(1);
/// A write of a line that takes longer may keep every other task waiting, so a thread wakes another worker.
pub const AUDIT_WRITE_STUCK: Duration = Duration::from_millis(50);
/// Bytes of lines that wait for the disk; what does not fit is counted.
pub const AUDIT_PENDING_BYTES_MAX: usize = 1 << 20;
/// Different reading actions that are counted before they are written.
pub const AUDIT_READS_MAX: usize = 1_000;
/// Lines about refused requests a second. Others are counted: nobody without a token can fill the audit log.
pub const AUDIT_REFUSALS_PER_SECOND: u32 = 1;
/// The same at once.
pub const AUDIT_REFUSALS_BURST: u32 = 100;
/// Lines of the audit log in one answer by default.
pub const AUDIT_LINES: usize = 100;
/// When the memory of the process is looked at behind a request: in all some 15 s later, and not again before the next request.
pub const MEMORY_LOOKED_AT: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// So much growth of what is unused since the last time is worth the milliseconds in which free memory is given back.
pub const MEMORY_GROWN_BYTES: u64 = 2 << 20;
/// How long a new server waits for the lock of one that has ended.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(1);
/// A datagram for a syslog server: what receivers take without a setting of their own.
pub const SYSLOG_DATAGRAM_BYTES_MAX: usize = 8 << 10;
/// The bytes of the audit log that are sent before the position is recorded; at least a line.
pub const SYSLOG_BATCH_BYTES: usize = 1 << 20;
/// How long a syslog server may take to accept a connection or bytes.
pub const SYSLOG_PATIENCE: Duration = Duration::from_secs(5);
