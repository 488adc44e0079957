//! The facts of one sample of the foreground. No field is a judgement: each is something that proc(5) or a terminal shows.

/// How many threads of one process are examined, besides the first.
pub const THREADS_MAX: usize = 16;
/// How many nested terminals are followed.
pub const NESTED_MAX: usize = 4;
/// The silences that are told apart, in milliseconds: the facts of a program that polls are sent again at each of them.
const QUIET_STEPS_MS: [u32; 8] = [0, 100, 300, 600, 1_200, 2_400, 5_000, 10_000];

/// The longest of the silences told apart that has passed.
#[must_use]
pub fn quiet_step(quiet_us: u64) -> u32 {
    let passed = QUIET_STEPS_MS.iter().rev().find(|step| u64::from(**step) * 1_000 <= quiet_us);
    passed.copied().unwrap_or(0)
}

/// One sample of the foreground of a session's terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// The foreground process group.
    pub group: u32,
    /// The modes of the session's terminal.
    pub modes: Modes,
    /// How long no output has come, in milliseconds, as [`quiet_step`] counts.
    pub quiet_ms: u32,
    /// The shell's own process, if the foreground group is the shell's.
    pub shell: Option<Shell>,
    /// Other processes that wait for the shell's terminal, and so may take keys from it; examined only while the shell waits for
    /// input.
    pub rivals: Vec<u32>,
    /// Every process of the job that waits for no other one of it is stopped by a signal; this is the first process.
    pub stopped: Option<u32>,
    /// The job on the session's terminal, and behind it those on the terminals that it has given to its descendants.
    pub jobs: Vec<Job>,
}

/// The shell's own process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    /// It has no line editor, or one without our keys: commands are handed over to it as lines.
    pub takes_lines: bool,
    /// It is stopped by a signal.
    pub is_stopped: bool,
    /// The object of its wait.
    pub process: Process,
}

/// The processes that have a terminal, as far as they wait for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Job {
    /// The modes of its terminal.
    pub modes: Modes,
    /// All its processes were examined, and not only the leader.
    pub is_whole: bool,
    /// A process of it runs, or sleeps in a call that has nothing to do with the terminal.
    pub has_others: bool,
    /// Those that wait for the terminal, or that may not be examined.
    pub processes: Vec<Process>,
    /// A process of it has a listening socket; `None` if that was not examined.
    pub listens: Option<bool>,
    /// The process that decides has given a terminal to a descendant, whose job is the next one; `None` if that was
    /// not examined.
    pub has_nested: Option<bool>,
    /// The event loop of the process that decides; `None` if that was not examined.
    pub event_loop: Option<EventLoop>,
}

/// One process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// The wait of its first thread.
    pub first: Wait,
    /// The waits of its other threads for the terminal.
    pub others: Vec<Wait>,
    /// It has more than one thread, and an epoll instance with a socket in it; examined only if it reads.
    pub has_connection: bool,
}

/// The wait of a thread, with regard to its terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// It may not be examined (ptrace(2), access mode checks).
    Hidden,
    /// It runs, or sleeps in a call that has nothing to do with the terminal.
    #[default]
    Elsewhere,
    /// It sleeps without a time limit until another thread of its process, or a signal, wakes it.
    ForItself,
    /// It sleeps in a read of the terminal.
    Reads {
        /// How many bytes it asks for.
        bytes: u64,
    },
    /// It sleeps until the terminal, or another descriptor, is ready.
    Polls {
        /// The call.
        call: PollCall,
        /// How many of the descriptors are the terminal; never 0.
        terminal: u32,
        /// How many are not.
        others: u32,
        /// The time limit; `None` without one.
        limit_ms: Option<u64>,
    },
}

/// The calls that wait for several descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollCall {
    /// poll(2).
    Poll,
    /// select(2).
    Select,
    /// epoll_wait(2).
    Epoll,
}

/// An event loop (such as Node's) that waits in epoll_wait(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventLoop {
    /// How long the first thread waits in it.
    pub limit: LoopLimit,
    /// How many other threads do something else than to wait for a lock or in an epoll instance of their own.
    pub working_threads: u32,
    /// How many children the process has.
    pub children: u32,
    /// How many descriptors it watches that are neither the terminal, nor events, nor pipes of which it has both ends.
    pub foreign: u32,
}

/// The time limit of an event loop's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoopLimit {
    /// It wakes up within a second.
    #[default]
    Short,
    /// It waits a second or longer, as V8 does before it frees memory.
    Long,
    /// It has none.
    Endless,
}

/// The modes of a terminal (termios(3)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modes {
    /// ICANON: input is delivered line by line, edited by the kernel.
    pub canonical: bool,
    /// ECHO: the kernel echoes input.
    pub echo: bool,
    /// ISIG: the interrupt characters raise signals.
    pub isig: bool,
    /// ICRNL: a carriage return is read as a newline.
    pub maps_cr: bool,
    /// INLCR: a newline is read as a carriage return.
    pub maps_nl: bool,
}

impl Modes {
    /// The modes of a shell's line editor: readline and fish switch every translation off, zsh has both on. Programs that
    /// read single keys mostly leave ICRNL on and INLCR off.
    #[must_use]
    pub fn are_an_editors(self) -> bool {
        !self.canonical && self.maps_cr == self.maps_nl
    }

    /// A password is read so.
    #[must_use]
    pub fn hide_a_line(self) -> bool {
        self.canonical && !self.echo
    }
}
