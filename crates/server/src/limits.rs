//! Every bound in one place, each with its reason.

use std::time::Duration;

/// Sessions that are alive at once, in all; each costs a PTY (kernel.pty.max is 4,096 by default) and two processes.
pub const SESSIONS_MAX: usize = 2_000;
/// The same for one owner, so that one cannot starve the others.
pub const SESSIONS_PER_OWNER_MAX: usize = 1_000;
/// The shortest life that all sessions can be given, by age or by inactivity: below, it is only a way to lose what one does.
pub const LIFETIME_MIN: Duration = Duration::from_millis(100);
/// And the longest: a year, after which nobody remembers.
pub const LIFETIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);
/// A call that takes longer is logged: nothing that is done at once takes so long on a machine that keeps up.
pub const SLOW_CALL: Duration = Duration::from_secs(2);
/// Ended sessions can be read for so long.
pub const RETENTION_AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// And so much room on the disk they may take together; the oldest go first.
pub const RETENTION_BYTES: u64 = 10 << 30;
/// Of so many sessions that ended last a server that starts finds out whose default session they were: a call that its client
/// sends again is about one that ended with the server before it.
pub const DEFAULTS_LOOKED_FOR: usize = 256;
/// A damaged store is made again from the folders no more often than this: a disk that damages it again is not helped by more.
pub const STORE_ANEW_EVERY: Duration = Duration::from_secs(60);
/// Whoever asks for what is in the store waits so long for it to be made again: gigabytes of journals are read for that.
pub const STORE_PATIENCE: Duration = Duration::from_secs(50);
/// Whoever asks for what is in the store waits so long for its disk; then it is told that the disk does not answer. A disk that
/// others keep busy takes a second or two.
pub const DISK_PATIENCE: Duration = Duration::from_secs(10);
/// Reads of what has ended that wait for the disk at once, each on a thread, of which the runtime has 512 for all.
pub const DISK_READERS_MAX: usize = 16;
/// So much of the disk is to stay free, else the oldest of them go: a living session needs it more than an ended one.
pub const RETENTION_FREE: u64 = 1 << 30;
/// Or this part of the disk, where that is less: on a small one a gibibyte is never free.
pub const RETENTION_FREE_PART: u64 = 20;
/// How often it is looked whether some are to go: a folder is not looked at more often than it is worth.
pub const RETENTION_EVERY: Duration = Duration::from_secs(600);
/// A command's text; the loader takes it in one read, and no shell script is longer.
pub const COMMAND_BYTES_MAX: usize = 1 << 20;
/// One input; what does not fit the kernel's buffer waits in the holder.
pub const INPUT_BYTES_MAX: usize = 1 << 20;
/// A session's name.
pub const NAME_CHARS_MAX: usize = 100;
/// Cells; wider ones break programs more than they help, and a screen's memory is cells.
pub const COLS_MAX: u16 = 1_000;
/// Cells.
pub const ROWS_MAX: u16 = 1_000;
/// The default size: wide enough for compilers' messages.
pub const COLS_DEFAULT: u16 = 120;
/// The default size.
pub const ROWS_DEFAULT: u16 = 40;
/// Journal bytes that are kept for each session; older ones are given back to the disk, and readers are told.
pub const JOURNAL_BYTES_MAX: u64 = 256 << 20;
/// Text in one answer by default: terminal-mcp.md §1.5.
pub const BUDGET_CHARS: usize = 30_000;
/// The largest budget that a caller may ask for: what clients take in one message.
pub const BUDGET_CHARS_MAX: usize = 1_000_000;
/// Journal bytes that one read returns at most.
pub const READ_BYTES_MAX: usize = 4 << 20;
/// Output that is rendered whole; of a longer one only head and tail are, which is all that fits a budget anyway.
pub const RENDER_BYTES_MAX: u64 = 1 << 20;
/// The default wait of `execute_in_terminal` and `POST …/execute`.
pub const EXECUTE_TIMEOUT: Duration = Duration::from_secs(30);
/// The default of the `terminal` tool's soft time-out: no new output for this long ends the wait (terminal-mcp.md §4.1).
pub const SOFT_TIMEOUT: Duration = Duration::from_secs(30);
/// The shortest one: a program that only thinks for a moment has not fallen silent.
pub const SOFT_TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The default of the whole wait of the `terminal` tool: below the 60 s after which common clients give up.
pub const TOTAL_TIMEOUT: Duration = Duration::from_secs(50);
/// The longest wait that can be asked for.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);
/// A create answers at the first prompt, or after this as `creating`.
pub const CREATE_WAIT: Duration = Duration::from_secs(1);
/// A command of a profile may take so long before the session is handed over without its end.
pub const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// A command that nobody waits for is answered when its output begins, or after this.
pub const START_WAIT: Duration = Duration::from_millis(500);
/// A line that is typed at a shell inside: a terminal that hands lines over keeps no more than 4,095 bytes of one
/// (termios(3)), and of another machine's nobody sees which kind it is.
pub const INSIDE_LINE_BYTES_MAX: usize = 4_000;
/// A shell inside tells within this that a command has begun, or it is no shell: time for a slow connection.
pub const INSIDE_BEGINS: Duration = Duration::from_secs(5);
/// A shell inside may take so long to its prompt after a command.
pub const INSIDE_SETTLES: Duration = Duration::from_secs(2);
/// What was interrupted inside may take so long to say how it ends, while something reads.
pub const INSIDE_THROWN: Duration = Duration::from_millis(500);
/// How long a program may leave its input unread before the rest is given up.
pub const INPUT_PATIENCE: Duration = Duration::from_millis(1_500);
/// HUP, then this, TERM, then this, KILL: five seconds in all are promised (BEHAVIOUR 6).
pub const TERMINATE_GRACE: Duration = Duration::from_millis(1_500);
/// The longest grace that can be asked for.
pub const GRACE_MAX: Duration = Duration::from_secs(60);
/// The least of a limit in seconds or MiB of output: what comes earlier ends everything.
pub const LIMIT_MIN: f64 = 0.01;
/// A session's limits in seconds: a year, and then it is none.
pub const LIMIT_SECONDS_MAX: f64 = 31_536_000.0;
/// A session's limit of memory in MiB: a shell needs some, and no machine has 16 TiB.
pub const LIMIT_MEMORY_MB: (u64, u64) = (8, 1 << 24);
/// A session's limit of output in MiB, as the one of memory.
pub const LIMIT_OUTPUT_MB_MAX: f64 = 16_777_216.0;
/// A session's limit of output in MiB a second: more than a terminal carries.
pub const LIMIT_OUTPUT_RATE_MB_MAX: f64 = 16_384.0;
/// A session's limit of processes: the shell and one more, and what the kernel has numbers for (PID_MAX_LIMIT).
pub const LIMIT_PROCESSES: (u64, u64) = (2, 1 << 22);
/// A session's limit of open files: bash and a program need some, and the kernel's own bound (sysctl fs.nr_open) by default.
pub const LIMIT_OPEN_FILES: (u64, u64) = (32, 1 << 20);
/// Actions of one session.
pub const ACTIONS_MAX: usize = 64;
/// The characters of an action's name.
pub const ACTION_NAME_CHARS_MAX: usize = 64;
/// The line editor of the shell has the terminal although a command runs: after this the shell is asked to report.
pub const EDITOR_SUSPICION: Duration = Duration::from_millis(60);
/// A full-screen program is believed to wait for a key when nothing was painted for this long: vim looks for its
/// terminal's answers for 10 ms when it leaves, and a loaded machine makes more of it.
pub const SCREEN_SETTLES: Duration = Duration::from_millis(100);
/// A full-screen program of which nobody sees that it waits for a key (another process reads for it, as with tmux) has done
/// what it was run for when its screen stays as it is for this long.
pub const SCREEN_STILL: Duration = Duration::from_secs(1);
/// After this long even a shell on an overloaded machine has read the keys that handed it a command.
pub const KEYS_READ: Duration = Duration::from_secs(3);
/// The shell does not answer the report key: after this its command is given up as ended, heuristically.
pub const REPORT_PATIENCE: Duration = Duration::from_millis(400);
/// A command that was typed into a shell without our hooks has not ended before this: the shell must have read it first.
pub const TYPED_AGE_MIN: Duration = Duration::from_millis(150);
/// A report's marker did not come although the shell reads again (its output was redirected): the end is here.
pub const MARKER_PATIENCE: Duration = Duration::from_millis(150);
/// Commands whose records stay in memory for each session; older ones are in the store.
pub const COMMANDS_IN_MEMORY: usize = 64;
/// Waits that may be open on one session.
pub const WAITS_MAX: usize = 256;
/// Words of one wait that say what else ends it.
pub const UNTIL_MAX: usize = 16;
/// How often ports and files are looked for at first: an answer that is asked for is soon there, or takes seconds.
pub const OUTSIDE_EVERY_MIN: Duration = Duration::from_millis(5);
/// And how often after a while.
pub const OUTSIDE_EVERY_MAX: Duration = Duration::from_millis(100);
/// A screen that is painted anew lacks for a moment what is on it.
pub const GONE_SETTLES: Duration = Duration::from_millis(50);
/// Viewers are not shown what comes behind an accepted command before its output begins, which takes a fraction of a
/// millisecond; a shell that does not begin is shown as it is.
pub const ECHO_HELD: Duration = Duration::from_millis(100);
/// A session whose actor panicked is taken up again no sooner than this after it was taken up before.
pub const FAULT_PAUSE: Duration = Duration::from_millis(500);
/// A holder whose connection has ended ends within this: the kernel closes its files a moment before it is gone.
pub const HOLDER_ENDS: Duration = Duration::from_secs(1);
/// A holder that is asked something and says nothing for so long is asked whether it is there.
pub const HOLDER_PROBE_AFTER: Duration = Duration::from_secs(1);
/// And one that has not answered that either after so long does not answer: it looks at its requests in every turn, and a turn
/// is milliseconds unless it is stopped, frozen, or waits for a disk.
pub const HOLDER_PATIENCE: Duration = Duration::from_secs(3);
/// Questions to one holder that are not answered: as many as may be asked over all connections in a moment.
pub const HOLDER_CALLS_MAX: usize = 1_024;
/// Bytes for one holder that its socket does not take: a few of the largest inputs.
pub const HOLDER_UNSENT_BYTES_MAX: usize = 8 << 20;
/// A holder that is there before the server greets within this, or its session is told as unreachable until it does.
pub const ADOPT_PATIENCE: Duration = Duration::from_secs(2);
/// And where a command runs it says what that does within this; its first look takes milliseconds.
pub const FIRST_LOOK: Duration = Duration::from_millis(500);
/// How soon a holder that nobody listens for is looked for again: one that is just beginning listens in some milliseconds.
pub const ADOPT_AGAIN_MIN: Duration = Duration::from_millis(20);
/// And how often after a while.
pub const ADOPT_AGAIN_MAX: Duration = Duration::from_secs(5);
/// A process that was killed ends within this, unless the kernel holds it (a disk, a frozen control group).
pub const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// After its session's end a holder has its last frames and its disk to wait for.
pub const HOLDER_LEAVES: Duration = Duration::from_secs(10);
/// A session whose actor panics so often in a row is not taken up again: what it has written does it each time.
pub const FAULTS_MAX: u32 = 5;
/// Faults that are further apart than this are not of one row.
pub const FAULTS_FORGOTTEN: Duration = Duration::from_secs(600);
/// Requests that may queue for one session.
pub const MAILBOX_MAX: usize = 64;
/// The clean text that a pattern is matched against: the newest part.
pub const PATTERN_TEXT_MAX: usize = 64 << 10;
/// A compiled pattern's memory.
pub const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Characters that patterns are held against in one turn of an actor before others go on elsewhere: one wait on a flood.
pub const MATCHED_AT_ONCE: usize = PATTERN_TEXT_MAX + SCAN_CHUNK;
/// A turn that took longer has a costly pattern, and the next ones are done so, too.
pub const MATCHED_SOON: Duration = Duration::from_millis(2);
/// Journal bytes that one turn of an actor scans before others get theirs.
pub const SCAN_CHUNK: usize = 64 << 10;
/// Events that one turn of an actor reads, for the same reason; most of them are a hundred bytes.
pub const EVENTS_CHUNK: usize = 256;
/// The grace period for the sessions of a stdio client that has gone.
pub const DETACH_GRACE: Duration = Duration::from_secs(600);
/// Connections that are open at once on one listener; each costs a descriptor and tens of KiB, and a session rarely has
/// more than one client.
pub const CONNECTIONS_MAX: usize = 2_048;
/// Viewers of one session; each costs a connection, of which there are not many more.
pub const VIEWERS_MAX: usize = 1_500;
/// Events of a session that viewers who were away can still be told: a hundred bytes each, and a command in some.
pub const EVENTS_KEPT: usize = 64;
/// Journal bytes that a viewer may have been sent and not have parsed: terminals in browsers parse some MB a second, and
/// a key's echo waits behind all of it.
pub const WINDOW_BYTES: u64 = 256 << 10;
/// A viewer that was stopped by its window, or by its connection, and is this far behind is shown the present instead.
pub const BEHIND_BYTES_MAX: u64 = 512 << 10;
/// How often a viewer is brought to the present at most: a screen is drawn from all that it skips.
pub const SNAPSHOT_EVERY: Duration = Duration::from_millis(250);
/// Journal bytes in one frame; a connection keeps the room for the largest that it has sent.
pub const FRAME_BYTES: usize = 16 << 10;
/// What a WebSocket reads and writes at once when nothing larger is asked of it.
pub const SOCKET_BUFFER_BYTES: usize = 4 << 10;
/// One message of a viewer; a longer paste is several.
pub const MESSAGE_BYTES_MAX: usize = 256 << 10;
/// Inputs of one viewer that may wait for the program to read; then its connection waits, too.
pub const INPUTS_WAITING_MAX: usize = 16;
/// How often a viewer is asked whether it is there.
pub const PING_EVERY: Duration = Duration::from_secs(15);
/// And how long it may take to answer.
pub const PONG_PATIENCE: Duration = Duration::from_secs(10);
/// How long the other side of a socket that is closed may take to say so, too.
pub const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// How long a ticket is good: a page asks for it and connects.
pub const TICKET_LIFETIME: Duration = Duration::from_secs(30);
/// Tickets that were not used yet; a user opens a few windows at once, not a thousand.
pub const TICKETS_MAX: usize = 1_024;
/// Requests a second of one principal, over HTTP: an agent that does nothing but ask comes to some hundreds, and a machine of
/// two cores answers a few times more than this.
pub const REQUESTS_PER_SECOND: u32 = 5_000;
/// Seconds of that which may come at once: a program that starts two hundred sessions does so in one go.
pub const REQUESTS_BURST_SECONDS: u32 = 4;
/// Requests a second with a wrong token or none, at one listener, that are told so; further ones are told to wait. A right
/// token is looked for all the same.
pub const FAILURES_PER_SECOND: u32 = 20;
/// Seconds of that which may come at once: a program whose token was revoked asks in several places.
pub const FAILURES_BURST_SECONDS: u32 = 10;
/// How often the log names somebody who showed a wrong token; the others of that time are counted.
pub const REFUSED_LOGGED_EVERY: Duration = Duration::from_secs(10);
/// Named tokens: one for each agent or program that is let in; each request that shows none of the server's own is compared
/// with all of them.
pub const TOKENS_MAX: usize = 1_000;
/// A token in a file has at least so many characters; one that ptyd makes has 43.
pub const TOKEN_CHARS_MIN: usize = 16;
/// A token's name, which stands in paths, in logs and in every session that it starts.
pub const TOKEN_NAME_CHARS_MAX: usize = 64;
/// The longest life of a token that is to expire: whoever wants more wants one that does not.
pub const TOKEN_LIFETIME_MAX: Duration = Duration::from_secs(10 * 366 * 24 * 3600);
/// How long a request's head may take to come, and how long a connection may be idle before it: whoever says nothing, or
/// a byte now and then, must not hold a place for ever, and a client that asks every 20 s is not to connect again each time.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// A request body that holds a command or input: 1 MiB in JSON escapes.
pub const BODY_BYTES_MAX: usize = 8 << 20;
/// Any other body: the longest are waits, with a few patterns in JSON escapes.
pub const BODY_PLAIN_BYTES_MAX: usize = 256 << 10;
/// How long a body may take to come: one of 8 MiB over the slowest tunnel that anybody works through.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// JSON values of one body: an environment of ten thousand variables. Each costs some tens of bytes of memory, however short
/// it is written.
pub const BODY_VALUES_MAX: usize = 32_768;
/// How deep they may nest: no request has ten levels.
pub const BODY_DEPTH_MAX: usize = 64;
/// Bytes of bodies of one principal that are held at once, until their requests have been understood.
pub const BODIES_BYTES_MAX: usize = 32 << 20;
/// Bodies of one principal that are on their way at once; most come with their head, and are never counted.
pub const BODIES_ARRIVING_MAX: usize = 256;
/// Matches that one search gives at most: each is a line, and a longer list is read in pages.
pub const SEARCH_MATCHES_MAX: usize = 1_000;
/// A longer line is searched in parts of this size, because the text of one part is held in memory.
pub const SEARCH_LINE_BYTES_MAX: u64 = 4 << 20;
/// Characters of a matching line that are given: more is read at its offset.
pub const SEARCH_LINE_CHARS_MAX: usize = 1_000;
/// Commands that one search tells apart; each costs its place and its first words. A search over more goes on behind them.
pub const SEARCH_COMMANDS_MAX: usize = 20_000;
/// Threads that read a whole journal for somebody (a search, a recording) at once; others wait for their turn. Each has
/// some hundred KiB, and the disk has one head.
pub const WHOLE_READS_MAX: usize = 8;
/// The same for one principal: what it asks for at once waits for its own turn, and not for others'.
pub const WHOLE_READS_PER_PRINCIPAL_MAX: usize = 2;
/// Journal bytes in one server-sent event: what a slow client costs, and still few events for a flood.
pub const EVENT_BYTES_MAX: usize = 64 << 10;
/// Events of all sessions that are kept for those who follow them: some minutes of a busy server, a few hundred bytes each.
pub const EVENTS_OF_ALL_KEPT: usize = 4_096;
/// Events of all sessions in one part of a stream.
pub const EVENTS_READ_MAX: usize = 256;
/// Principals each may follow the events of all sessions so often at once: a program does it once, and each follower is woken
/// by every event.
pub const FOLLOWERS_PER_PRINCIPAL_MAX: usize = 64;
/// The longest silence on a stream of events: proxies and phones give a connection up after 20 s to 60 s.
pub const HEARTBEAT: Duration = Duration::from_secs(15);
/// Operations in one batch: they are done one after the other, and the client waits for all.
pub const BATCH_OPERATIONS_MAX: usize = 64;
/// What the answers of one batch may hold together: they are in memory until the last is there.
pub const BATCH_ANSWER_BYTES_MAX: usize = 16 << 20;
/// MCP sessions over HTTP that are open at once, of all principals: each costs two tasks and tens of KiB, and its client is
/// served without one where there is no place.
pub const CONVERSATIONS_MAX: usize = 1_024;
/// The same of one principal, so that one cannot keep the others out: an agent has one, a team with one token some dozens.
pub const CONVERSATIONS_PER_PRINCIPAL_MAX: usize = 256;
/// An MCP session in which nobody asks or listens for so long has ended: its client has gone. Common clients do not begin
/// anew by themselves, so a night or a weekend is not to end one; terminals do not end with it.
pub const CONVERSATION_IDLE: Duration = Duration::from_secs(3 * 24 * 3600);
/// What is kept of an MCP session for the next server: a client's hello, which has a few hundred bytes.
pub const CONVERSATION_BYTES_MAX: usize = 64 << 10;
/// How often it is looked for those: an hour more does not matter.
pub const CONVERSATIONS_LOOKED_AT_EVERY: Duration = Duration::from_secs(3600);
/// Resources that one MCP client follows at once: the list names 200, and nobody watches all of them.
pub const SUBSCRIPTIONS_MAX: usize = 100;
/// The least time between two words about one resource: a client reads it again for each.
pub const SUBSCRIPTION_PAUSE: Duration = Duration::from_millis(250);
