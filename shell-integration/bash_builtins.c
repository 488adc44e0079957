/* Five builtins, a variable, three keys and a hook of the line editor for bash 5.1 to 5.3, which bash.sh loads with `enable -f`: they take a command
 * and report its end as the functions of that script do, for a fourth of their processor time.
 *
 * PROMPT_COMMAND has one owner, the user: the end of what a person typed is reported when the line editor begins to read.
 * The variables of bash.sh are the only state that both share, and bash.sh stays in charge of everything unusual: a text that may be
 * incomplete or has a syntax error, a PS0 of the user's own. Of bash, only what its own loadable builtins use is used here, and
 * fields at the beginning of structures that are the same in these versions. No library is linked: bash has its C library loaded. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* bash's own declarations. */
struct word { char *text; int flags; };
struct words { struct words *next; struct word *word; };
struct builtin {
  const char *name;
  int (*function)(struct words *);
  int flags;
  const char *const *long_doc;
  const char *short_doc;
  char *handle;
};
struct variable {
  char *name;
  void *value;
  char *exported;
  void *(*dynamic_value)(struct variable *), *(*assign)();
  int attributes, context;
};
enum { BUILTIN_ENABLED = 1, SEVAL_NOHIST = 4, ATT_READONLY = 2, ATT_ARRAY = 4 };
extern int last_command_exit_value, echo_command_at_execute, echo_input_at_read, exit_immediately_on_error, mark_modified_vars;
extern int already_making_children;
extern volatile int last_made_pid;
extern int stop_pipeline(int async, void *deferred);
extern int wait_for(int pid, int flags);
/* The first is above 0 inside a builtin, as in `read -e`, and the second once a line of a command was read. The prompts are the values of PS0
 * and PS1 when the present prompt was made. */
extern int executing_builtin, current_command_line_count;
extern int have_unwind_protects(void);
extern char *current_prompt_string, *ps0_prompt, *ps1_prompt;
extern int evalstring(char *text, const char *from, int flags);
extern struct variable *find_function(const char *name);
extern int execute_shell_function(struct variable *function, struct words *words);
extern char *get_string_value(const char *name);
extern struct variable *find_variable(const char *name);
extern struct variable *bind_variable(const char *name, const char *value, int flags);
extern void stupidly_hack_special_variables(const char *name);
extern void set_pipestatus_array(int *statuses, int count);
extern char *array_to_string(void *array, const char *separator, int quoted);
extern void *xmalloc(size_t bytes);
extern void xfree(void *memory);
extern int signal_is_trapped(int signal), signal_is_ignored(int signal);
extern char *trap_list[];
extern void restore_default_signal(int signal);
/* They copy the command. */
extern void set_debug_trap(char *command), set_error_trap(char *command), set_return_trap(char *command);
/* With NULL it allocates, for `xfree`. */
extern void *save_parser_state(void *state);
extern void restore_parser_state(void *state);
/* readline's, as documented. */
extern int rl_point, rl_end, rl_done;
extern FILE *rl_outstream;
extern struct keymap_entry { char type; int (*function)(int, int); } emacs_standard_keymap[], vi_insertion_keymap[], vi_movement_keymap[];
extern int rl_bind_keyseq_in_map(const char *keys, int (*function)(int, int), struct keymap_entry *map);
extern int rl_newline(int count, int key);
extern struct keymap_entry *rl_get_keymap(void);
extern int (*rl_function_of_keyseq(const char *keys, struct keymap_entry *map, int *type))(int, int);
/* 0 for vi's keys. */
extern int rl_editing_mode;
extern void rl_replace_line(const char *text, int clear_undo);
extern unsigned long rl_readline_state;
extern void rl_prep_terminal(int meta), (*rl_prep_term_function)(int meta);
extern void (*rl_redisplay_function)(void);
struct history_entry { char *line; };
extern struct history_entry **history_list(void);
extern int history_length;

enum {
  /* The key for a text that cannot make the code behind it a part of itself; the other one has bash.sh look. */
  PLAIN_KEY = 0x14,
  COMMAND_FD = 96,
  REPORTS_FD = 97,
  /* The staged command: its head and its longest text. */
  HEAD_BYTES = 48,
  TEXT_BYTES_MAX = 8 << 20,
  FIRST_READ_BYTES = 4096,
  DECIMAL_BYTES = 24,
  PIECE_BYTES = 4096,
  MARKER_BYTES = 16 + DECIMAL_BYTES,
  TELLING_BYTES = 64,
  RECORD_BYTES = 256,
  RL_STATE_SIGHANDLER = 0x8000,
  /* bash's numbers of the DEBUG trap and of the last one that it has for commands. */
  DEBUG_TRAP = NSIG,
  RETURN_TRAP = NSIG + 2,
  COMMAND_TRAPS = RETURN_TRAP - DEBUG_TRAP + 1,
  /* bash's status of a command that SIGINT has ended. */
  INTERRUPTED = 128 + SIGINT,
  /* bash's status of a text with a syntax error. */
  BAD_SYNTAX = 257,
  /* Elements of a pipeline whose statuses survive the parsing of bash.sh's functions. */
  PIPELINE_MAX = 256,
};

/* The code after every text. Looking the variable up reports the end. A loop without a word runs no command that a trace or a trap could
 * show, and its words see $? and PIPESTATUS as the text has left them. */
static const char TELLING[] = "\n\nfor __ptyd_none in $__ptyd_ran; do :; done\n";

/* `set -x` was on when our line was accepted, or at the end of its text, and `set -v` when it was accepted: our own commands run without. */
static int hidden_trace, hidden_echo;
/* The traps for commands of which our own commands are none, for `xfree`. */
static char *hidden_traps[COMMAND_TRAPS];
/* A text is evaluated whose end is not reported. */
static int evaluates;
/* The end of the command was reported, and no prompt was made since; and the status that was reported. */
static int told, told_status;
/* The next command may come with the key. */
static int usual;
/* The command that the key has accepted: its text, for `evalstring` to free, and its head with its id and its nonce. */
static char *text, head[HEAD_BYTES];
static const char *id, *nonce;
static size_t text_bytes;
static int is_plain;
/* The entry of the history that shows the command to preexec hooks, what it shows, and its own line. */
static struct history_entry *lent;
static char *shown, *own_line;
/* The next accept key belongs to a load key that has taken nothing, in a line that is not the shell's. */
static int keeps_line;
/* There was a DEBUG trap when the present prompt was made. In functions of bash.sh it does not show. */
static int is_trapped;

static const char *get(const char *name) {
  const char *value = get_string_value(name);
  return value ? value : "";
}

/* Sets a variable of ours, which `set -a` must not export. */
static void set(const char *name, const char *value) {
  int mark = mark_modified_vars;
  mark_modified_vars = 0;
  bind_variable(name, value, 0);
  mark_modified_vars = mark;
}

/* Copies a string, and returns the place behind it. */
static char *add(char *to, const char *from) {
  size_t bytes = strlen(from);
  memcpy(to, from, bytes);
  to[bytes] = 0;
  return to + bytes;
}

static char *add_decimal(char *to, uint64_t number) {
  char digits[DECIMAL_BYTES];
  int n = 0;
  do digits[n++] = (char)('0' + number % 10);
  while (number /= 10);
  while (n) *to++ = digits[--n];
  *to = 0;
  return to;
}

static int write_all(int fd, const char *bytes, size_t left) {
  while (left) {
    /* The holder takes no longer datagram; a record may come in several. Where the socket was closed, its number may be that of another
     * file, such as the terminal: `send` never writes there. */
    size_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
    ssize_t n = fd == REPORTS_FD ? send(fd, bytes, piece, MSG_NOSIGNAL) : write(fd, bytes, piece);
    if (n < 0 && errno != EINTR) return -1;
    if (n > 0) bytes += n, left -= (size_t)n;
  }
  return 0;
}

/* The statuses in PIPESTATUS, with spaces between; for `xfree`. */
static char *pipestatus(void) {
  struct variable *variable = find_variable("PIPESTATUS");
  /* One of the environment is no array. */
  int is_array = variable && variable->value && variable->attributes & ATT_ARRAY;
  char *statuses = is_array ? array_to_string(variable->value, " ", 0) : NULL;
  return statuses ? statuses : add(xmalloc(1), "");
}

static void restore_pipestatus(const char *from) {
  int statuses[PIPELINE_MAX], count = 0;
  while (*from && count < PIPELINE_MAX) {
    char *behind;
    statuses[count++] = (int)strtol(from, &behind, 10);
    from = behind;
  }
  set_pipestatus_array(statuses, count);
}

static void hide_traps(void) {
  for (int i = 0; i < COMMAND_TRAPS; i++) {
    const char *command = trap_list[DEBUG_TRAP + i];
    if (!command || hidden_traps[i] || !signal_is_trapped(DEBUG_TRAP + i) || signal_is_ignored(DEBUG_TRAP + i)) continue;
    hidden_traps[i] = xmalloc(strlen(command) + 1);
    add(hidden_traps[i], command);
    restore_default_signal(DEBUG_TRAP + i);
  }
}

static void show_traps(void) {
  void (*const set_trap[])(char *) = {set_debug_trap, set_error_trap, set_return_trap};
  for (int i = 0; i < COMMAND_TRAPS; i++) {
    if (!hidden_traps[i]) continue;
    set_trap[i](hidden_traps[i]);
    xfree(hidden_traps[i]);
    hidden_traps[i] = NULL;
  }
}

/* Runs code of ours without a trace and without the user's traps. If an interrupt ends that code, the next prompt brings them back. */
struct traces { int trace, echo, hidden_trace, hidden_echo; };

static struct traces hide_traces(void) {
  struct traces before = {echo_command_at_execute, echo_input_at_read, hidden_trace, hidden_echo};
  hidden_trace |= echo_command_at_execute, hidden_echo |= echo_input_at_read;
  echo_command_at_execute = echo_input_at_read = 0;
  hide_traps();
  return before;
}

static void show_traces(struct traces before) {
  echo_command_at_execute |= before.trace, echo_input_at_read |= before.echo;
  hidden_trace = before.hidden_trace, hidden_echo = before.hidden_echo;
  show_traps();
}

/* Shows the traces again that our line has hidden. */
static void show_hidden_traces(void) {
  echo_command_at_execute |= hidden_trace;
  echo_input_at_read |= hidden_echo;
  hidden_trace = hidden_echo = 0;
  show_traps();
}

/* Calls a function of bash.sh with an argument. A call that is no command of its own is seen by no trace and no DEBUG trap. */
static void call(const char *function, const char *argument) {
  struct word words[2] = {{(char *)function, 0}, {(char *)argument, 0}};
  struct words second = {NULL, &words[1]}, first = {argument ? &second : NULL, &words[0]};
  struct variable *called = find_function(function);
  struct traces traces = hide_traces();
  if (called) execute_shell_function(called, &first);
  show_traces(traces);
}

/* Has the functions of bash.sh parsed that are not yet. They see $? and PIPESTATUS as they are. */
static void parse_functions(void) {
  static int parsed;
  if (parsed) return;
  int status = last_command_exit_value;
  char *statuses = pipestatus();
  call("__ptyd_read_on", NULL);
  parsed = find_function("__ptyd_hook") != NULL;
  restore_pipestatus(statuses);
  xfree(statuses);
  last_command_exit_value = status;
}

/* Evaluates code that calls functions of bash.sh. */
static void evaluate(const char *parts[]) {
  parse_functions();
  size_t bytes = 1;
  for (const char **part = parts; *part; part++) bytes += strlen(*part);
  char *code = xmalloc(bytes), *to = code;
  for (const char **part = parts; *part; part++) to = add(to, *part);
  *to = 0;
  struct traces traces = hide_traces();
  evalstring(code, "eval", SEVAL_NOHIST);
  show_traces(traces);
}

/* Returns the place behind the marker. */
static char *add_marker(char *to, char kind, const char *number) {
  to = add(to, "\033]7337;");
  *to++ = kind;
  *to++ = ';';
  return add(add(to, number), "\a");
}

/* Writes a marker to bash's own descriptor of the terminal, for a command may have redirected 1 and 2 for good. */
static int write_marker(char kind, const char *number) {
  char marker[MARKER_BYTES];
  size_t bytes = (size_t)(add_marker(marker, kind, number) - marker);
  if (write_all(atoi(get("__ptyd_tty")), marker, bytes) == 0) return 0;
  int terminal = open("/dev/tty", O_WRONLY | O_CLOEXEC | O_NOCTTY);
  int failed = terminal < 0 || write_all(terminal, marker, bytes) != 0;
  if (terminal >= 0) close(terminal);
  return -failed;
}

/* Whether the next command may come with the key: the pattern that keeps our lines out of the history is in place, a PS0 of the user's own
 * is not printed before the command's output begins, and a syntax error does not end the shell, as it does under `set -e` in
 * `evalstring` but not in a typed line. */
static int is_usual(void) {
  return !exit_immediately_on_error && strcmp(get("PS0"), get("__ptyd_ps0")) == 0 && strstr(get("HISTIGNORE"), "*__ptyd*");
}

static void report_path(void) {
  const char *path = get("PATH"), *secret = get("__ptyd_secret");
  size_t bytes = strlen(path);
  /* The socket takes no longer datagram. */
  if (strcmp(path, get("__ptyd_path")) == 0 || bytes >= 60000) return;
  char *record = xmalloc(strlen(secret) + bytes + 8), *end = add(record, "P;");
  end = add(end, secret);
  *end++ = ';';
  end = add(end, path);
  *end++ = 0;
  write_all(REPORTS_FD, record, (size_t)(end - record));
  xfree(record);
  set("__ptyd_path", path);
}

/* Reports the end of the command with its flag: the record, then the marker, so that a reader which finds the marker in the output has
 * the record already. The nonce is made here, so nothing that ran before could print it. */
static int report_end(int status, const char *statuses, const char *flag) {
  report_path();
  uint64_t random = 0;
  char number[DECIMAL_BYTES];
  if (getrandom(&random, sizeof random, 0) != sizeof random) return 0;
  add_decimal(number, random);
  const char *secret = get("__ptyd_secret"), *running = get("__ptyd_id"), *directory = get("PWD");
  size_t bytes = strlen(secret) + strlen(running) + strlen(directory) + strlen(statuses) + strlen(flag);
  char *record = xmalloc(bytes + 3 * DECIMAL_BYTES), *end = add(record, "D;");
  const char *fields[] = {secret, number, running};
  for (int i = 0; i < 3; i++) end = add(end, fields[i]), *end++ = ';';
  end = add_decimal(end, (uint64_t)status);
  *end++ = ';';
  end = add(end, statuses);
  *end++ = ';';
  end = add(end, flag);
  *end++ = usual ? 'k' : 'u';
  if (exit_immediately_on_error) *end++ = 'e';
  *end++ = ';';
  end = add(end, directory);
  *end++ = 0;
  int failed = write_all(REPORTS_FD, record, (size_t)(end - record)) || write_marker('D', number);
  xfree(record);
  return !failed;
}

/* Reads the staged command; 0 if there is none that was not taken before. */
static int read_staged(void) {
  if (text) xfree(text), text = NULL;
  char first[FIRST_READ_BYTES];
  ssize_t got = pread(COMMAND_FD, first, sizeof first, 0);
  if (got < HEAD_BYTES || memcmp(first, "ptyd", 4) || !memchr(first, 0, HEAD_BYTES)) return 0;
  memcpy(head, first, HEAD_BYTES);
  size_t bytes = text_bytes = strtoul(head + 4, NULL, 10);
  id = head + strlen(head) + 1;
  nonce = id + strlen(id) + 1;
  if (bytes > TEXT_BYTES_MAX || nonce >= head + HEAD_BYTES || atol(id) <= atol(get("__ptyd_taken"))) return 0;
  text = xmalloc(bytes + TELLING_BYTES);
  size_t have = (size_t)got - HEAD_BYTES < bytes ? (size_t)got - HEAD_BYTES : bytes;
  memcpy(text, first + HEAD_BYTES, have);
  for (; have < bytes; have += (size_t)got) {
    got = pread(COMMAND_FD, text + have, bytes - have, (off_t)(HEAD_BYTES + have));
    if (got <= 0) return 0;
  }
  text[bytes] = 0;
  return 1;
}

/* Has bash.sh examine the text: one that is incomplete, or with `e` has a syntax error, is replaced by what refuses it. */
static void examine(const char *options) {
  int status = last_command_exit_value;
  set("__ptyd_text", text);
  evaluate((const char *[]){"__ptyd_examine '", options, "' && :", NULL});
  if (*get("__ptyd_flags")) {
    text_bytes = strlen(get("__ptyd_text"));
    xfree(text);
    text = xmalloc(text_bytes + TELLING_BYTES);
    add(text, get("__ptyd_text"));
  }
  set("__ptyd_text", "");
  last_command_exit_value = status;
}

/* Preexec hooks take what runs from the last line of the history, where ours is not. So that line shows the command while they look: with a
 * space before it, which says that it is not to be remembered. Nothing is added, for a full history would lose its first line. */
static void lend_history(const char *command) {
  if (!history_length || lent || (!is_trapped && strcmp(get("PS0"), get("__ptyd_ps0")) == 0)) return;
  lent = history_list()[history_length - 1];
  own_line = lent->line;
  /* bash frees it where a hook clears the history. */
  shown = lent->line = xmalloc(strlen(command) + 2);
  add(add(shown, " "), command);
}

static void take_history_back(void) {
  for (int i = lent ? history_length : 0; i--;) {
    struct history_entry *entry = history_list()[i];
    if (entry != lent || entry->line != shown) continue;
    entry->line = own_line;
    xfree(shown);
    break;
  }
  lent = NULL;
}

/* For bash.sh: lends the history to its argument, and succeeds if that was needed; without one, takes it back and passes $? on. */
static int history_builtin(struct words *arguments) {
  int status = last_command_exit_value;
  take_history_back();
  if (!arguments) return status;
  lend_history(arguments->word->text);
  return !lent;
}

/* Runs only when the text ran to its end. */
static void report_ran(void) {
  char *statuses = pipestatus();
  told_status = last_command_exit_value;
  usual = is_usual();
  told = report_end(told_status, statuses, get("__ptyd_flags"));
  set("__ptyd_flags", "");
  set("__ptyd_last", statuses);
  xfree(statuses);
}

/* The variable's value, which stays empty. */
static void *ran(struct variable *variable) {
  if (evaluates) evaluates = 0, report_ran();
  return variable;
}

/* Evaluates the accepted command as `eval` does. The status is the command's own. */
static int run(struct words *arguments) {
  (void)arguments;
  take_history_back();
  show_hidden_traces();
  if (!text) return last_command_exit_value;
  /* bash prints the lines that it reads (`set -v`), and would print code behind the text. So `bash -n` looks for a syntax error before. */
  int echoed = echo_input_at_read;
  if (echoed || !is_plain) examine(echoed ? "e" : "");
  if (!echoed) add(text + text_bytes, TELLING);
  /* Those of the last command, whose place our own line has taken. */
  if (*get("__ptyd_last")) restore_pipestatus(get("__ptyd_last"));
  char *evaluated = text;
  text = NULL;
  told = 0;
  set("__ptyd_id", id);
  set("__ptyd_taken", id);
  write_marker('C', nonce);
  /* What refuses a text is not the user's, and is not shown. */
  int refuses = *get("__ptyd_flags") != 0;
  struct traces traces;
  if (refuses) traces = hide_traces();
  evaluates = !echoed;
  int status = evalstring(evaluated, "eval", SEVAL_NOHIST);
  evaluates = 0;
  if (refuses) show_traces(traces);
  /* An alias can hide a syntax error from `bash -n`. */
  if (echoed && last_command_exit_value != BAD_SYNTAX) last_command_exit_value = status, report_ran();
  hidden_trace = echo_command_at_execute;
  echo_command_at_execute = 0;
  if (told) status = told_status;
  if (!told || !usual || !isatty(2)) {
    /* bash.sh finds out why there was no end, or repairs what it can. */
    char number[DECIMAL_BYTES];
    add_decimal(number, (uint64_t)status);
    if (told) evaluate((const char *[]){"__ptyd_end=(", number, " '", get("__ptyd_last"), "' '' told)", NULL});
    told = 0;
    last_command_exit_value = status;
    evaluate((const char *[]){"__ptyd_finish && :", NULL});
  }
  return status;
}

/* An interrupt that comes while bash reads our line has taken its first character: bash goes on with the next one, which makes the name
 * of this builtin. The command has not begun. */
static int not_begun(struct words *arguments) {
  (void)arguments;
  take_history_back();
  show_hidden_traces();
  if (!text) return last_command_exit_value;
  xfree(text);
  text = NULL;
  set("__ptyd_id", id);
  set("__ptyd_taken", id);
  usual = is_usual();
  told_status = INTERRUPTED;
  told = report_end(told_status, "130", "nc");
  set("__ptyd_last", "130");
  return told_status;
}

/* Puts the start marker's place into PS0, and the pattern that keeps our lines out of the history into HISTIGNORE, where they are empty.
 * What the user has there is left to bash.sh. */
static void claim(const char *name, const char *value) {
  struct variable *variable = find_variable(name);
  if (*get(name) || (variable && variable->attributes & ATT_READONLY)) return;
  set(name, value);
  stupidly_hack_special_variables(name);
}

/* For bash.sh, where it reports an end. */
static int is_usual_builtin(struct words *arguments) {
  (void)arguments;
  return !is_usual();
}

/* Reports the ends that are not reported yet: those of lines that a person typed, and of a command that was cut short. */
static void at_prompt(void) {
  char line[DECIMAL_BYTES];
  int status = last_command_exit_value;
  /* An interrupt came while bash made a child. bash would wait for the child behind its next simple command. */
  if (already_making_children && last_made_pid > 0) {
    stop_pipeline(0, NULL);
    wait_for(last_made_pid, 0);
    last_command_exit_value = status;
  }
  show_hidden_traces();
  evaluates = 0;
  take_history_back();
  is_trapped = signal_is_trapped(DEBUG_TRAP);
  unsigned long number = strtoul(get("LINENO"), NULL, 10);
  if (!number) number = 1;
  /* These have something where bash.sh has taken a command. */
  int is_ours = !*get("__ptyd_end") && !*get("__ptyd_flags") && !*get("__ptyd_text") && !*get("__ptyd_xtrace");
  /* Without 96, or where no descriptor is free, the code behind a text cannot run: its end is not known, and the next one would not be. */
  int spare = told ? -1 : fcntl(COMMAND_FD, F_DUPFD_CLOEXEC, 10);
  if (!told && spare < 0) return;
  if (spare >= 0) close(spare);
  if (!told && is_ours) {
    claim("PS0", get("__ptyd_ps0"));
    claim("HISTIGNORE", "*__ptyd*");
    usual = is_usual();
    if (usual) {
      char *statuses = pipestatus();
      told = report_end(status, statuses, strcmp(get("__ptyd_id"), "0") ? "n" : "");
      set("__ptyd_last", statuses);
      xfree(statuses);
    }
  }
  if (told) {
    told = 0;
    set("__ptyd_id", "0");
    add_decimal(line, number);
    set("__ptyd_line", line);
  } else {
    /* bash.sh has hidden a trace. */
    int trace = *get("__ptyd_xtrace");
    if (trace) set("__ptyd_xtrace", "");
    /* The parser waits for the line: what it has is kept, with $? and PIPESTATUS; and $_. */
    void *parser = save_parser_state(NULL);
    const char *before = get("_");
    char *last = add(xmalloc(strlen(before) + 1), before) - strlen(before);
    /* It expects that of a prompt command, one before the editor's. */
    add_decimal(line, number - 1);
    parse_functions();
    call("__ptyd_hook", line);
    set("_", last);
    xfree(last);
    restore_parser_state(parser);
    xfree(parser);
    if (trace) echo_command_at_execute = 1;
  }
  /* The prompt was made before PS0 may have changed. */
  ps0_prompt = get_string_value("PS0");
}

/* Whether the line editor begins to read a command. It also begins anew after a signal, after a key that has run an editor on the line, for further
 * lines of a command (PS2), and for `read -e`, inside which bash has always something to undo. */
static int reads_command(void) {
  if (rl_readline_state & RL_STATE_SIGHANDLER || rl_done || current_command_line_count || current_prompt_string != ps1_prompt) return 0;
  if (executing_builtin && have_unwind_protects()) return 0;
  /* bash leaves it above 0 when an interrupt ends a `select`. */
  executing_builtin = 0;
  return 1;
}

static int accept_run(int count, int key), accept_loaded(int count, int key), load_late(int count, int key), report_late(int count, int key);

static void bind_keys(struct keymap_entry *map) {
  rl_bind_keyseq_in_map("\\e\\x14", accept_run, map);
  rl_bind_keyseq_in_map("\\e\\x10", accept_run, map);
  rl_bind_keyseq_in_map("\\e\\x1e", accept_loaded, map);
}

/* Binds the keys of bash.sh in vi's two maps, where they take 16 KiB, once the editor uses those. */
static void bind_vi_keys(void) {
  static int are_bound;
  if (are_bound) return;
  are_bound = 1;
  int status = last_command_exit_value;
  char *statuses = pipestatus();
  void *parser = save_parser_state(NULL);
  evaluate((const char *[]){"__ptyd_bind vi-insert vi-command", NULL});
  restore_parser_state(parser);
  xfree(parser);
  restore_pipestatus(statuses);
  xfree(statuses);
  last_command_exit_value = status;
}

/* Those keys until then: a key of the user's may have changed to vi's maps at this prompt. */
static int press_late(const char *keys, int count, int key) {
  bind_vi_keys();
  int (*pressed)(int, int) = rl_function_of_keyseq(keys, rl_get_keymap(), NULL);
  return pressed && pressed != load_late && pressed != report_late ? pressed(count, key) : 0;
}

static int load_late(int count, int key) { return press_late("\033\037", count, key); }

static int report_late(int count, int key) { return press_late("\033\016", count, key); }

/* The editor's painter, while our line is in the editor. */
static void (*painter)(void);

static void paint_nothing(void) {}

/* Readline paints its line once more when an interrupt ends it, and bash then reads the next one. */
static void hide_line(void) {
  if (rl_redisplay_function == paint_nothing) return;
  painter = rl_redisplay_function;
  rl_redisplay_function = paint_nothing;
}

static void show_line(void) {
  if (rl_redisplay_function == paint_nothing) rl_redisplay_function = painter;
}

/* The line editor calls it before it takes the terminal, when all prompt commands have run. */
static void before_editing(int meta) {
  /* An interrupt of our line calls it, too. */
  if (!rl_done) show_line();
  if (!rl_editing_mode) bind_vi_keys();
  if (reads_command()) at_prompt();
  rl_prep_terminal(meta);
}

/* A `read -e` has the editor, as in a hook of the prompt: reports that nothing was taken, and the end of the hooks later. */
static int refuse(void) {
  uint64_t random = 0;
  told = 0;
  set("__ptyd_id", "0");
  char record[RECORD_BYTES], *end = add(record, "R;");
  const char *secret = get("__ptyd_secret");
  if (strlen(secret) >= RECORD_BYTES / 2 || getrandom(&random, sizeof random, 0) != sizeof random) return 0;
  end = add(add(end, secret), ";");
  end = add(add_decimal(end, random), ";0");
  write_all(REPORTS_FD, record, (size_t)(end + 1 - record));
  return 0;
}

/* For bash.sh, in which the load key runs: whether a `read -e` has the editor, whose line the accept key must not end. */
static int is_reading(struct words *arguments) {
  (void)arguments;
  /* This builtin counts, too. */
  keeps_line = executing_builtin > 1;
  if (keeps_line) refuse();
  return !keeps_line;
}

static int accept_loaded(int count, int key) {
  if (!keeps_line) return rl_newline(count, key);
  keeps_line = 0;
  return 0;
}

/* The keys: accepts our line in the place of what is in the editor. The line is not painted: a mark stands in its place. `&& :`
 * keeps a status that is not zero from ending a `set -e` shell or firing an ERR trap a second time. */
static int accept_run(int count, int key) {
  char marker[MARKER_BYTES];
  if (executing_builtin && have_unwind_protects()) return refuse();
  if (!read_staged()) return 0;
  is_plain = key == PLAIN_KEY;
  add_marker(marker, 'A', nonce);
  /* readline writes it with the end of the line; where it draws elsewhere, no mark is wanted. */
  if (isatty(fileno(rl_outstream))) fputs(marker, rl_outstream);
  hidden_trace = echo_command_at_execute;
  hidden_echo = echo_input_at_read;
  echo_command_at_execute = echo_input_at_read = 0;
  lend_history(text);
  hide_line();
  rl_replace_line("___ptyd_run && :", 1);
  rl_point = rl_end;
  return rl_newline(count, key);
}

/* `enable -f` calls this, and refuses the builtin where it returns 0. Nine calls of `bind` would take a tenth of a millisecond. */
int ___ptyd_run_builtin_load(char *name) {
  (void)name;
  set("__ptyd_ran", "");
  find_variable("__ptyd_ran")->dynamic_value = ran;
  rl_prep_term_function = before_editing;
  bind_keys(emacs_standard_keymap);
  struct keymap_entry *vi_maps[] = {vi_insertion_keymap, vi_movement_keymap};
  for (int i = 0; i < 2; i++) {
    bind_keys(vi_maps[i]);
    rl_bind_keyseq_in_map("\\e\\x1f", load_late, vi_maps[i]);
    rl_bind_keyseq_in_map("\\e\\x0e", report_late, vi_maps[i]);
  }
  return 1;
}

static const char *const documentation[] = {"ptyd's shell integration; see its README.", NULL};
struct builtin ___ptyd_run_struct = {"___ptyd_run", run, BUILTIN_ENABLED, documentation, "___ptyd_run", NULL};
struct builtin __ptyd_run_struct = {"__ptyd_run", not_begun, BUILTIN_ENABLED, documentation, "__ptyd_run", NULL};
struct builtin __ptyd_is_usual_struct = {"__ptyd_is_usual", is_usual_builtin, BUILTIN_ENABLED, documentation, "__ptyd_is_usual", NULL};
struct builtin __ptyd_is_reading_struct = {"__ptyd_is_reading", is_reading, BUILTIN_ENABLED, documentation, "__ptyd_is_reading", NULL};
struct builtin __ptyd_history_struct = {"__ptyd_history", history_builtin, BUILTIN_ENABLED, documentation, "__ptyd_history [command]", NULL};
