//! Views of the session: foreground, snapshot, screen, and the texts of its errors.

use super::*;

impl Session {
    pub(super) fn finish_where(&mut self, which: impl Fn(&Waiter) -> bool, ended_by: EndedBy) {
        let mut i = 0;
        while i < self.waiters.len() {
            if which(&self.waiters[i]) {
                let waiter = self.waiters.swap_remove(i);
                self.finish(waiter, ended_by, None);
            } else {
                i += 1;
            }
        }
    }

    pub(super) fn finish(&mut self, waiter: Waiter, ended_by: EndedBy, matched: Option<String>) {
        let snapshot = self.snapshot(waiter.command);
        let finished = Finished {
            ended_by,
            from: waiter.from,
            waited: waiter.began.elapsed(),
            matched,
            accepted_bytes: waiter.accepted_bytes,
            snapshot,
        };
        self.event_log.metrics.waited(ended_by);
        let _ = waiter.reply.send(finished);
    }

    /// Whether nothing runs: no command of ours, and no line typed at the prompt.
    pub(super) fn is_idle(&self) -> bool {
        let typed_line = self.timeline.has_typed_line || self.foreign_program_runs();
        self.timeline.newest_running().is_none() && self.timeline.prompt_seen && !typed_line
    }

    /// Whether a program, or the shell's own `read`, has the terminal although no command was handed over.
    pub(super) fn foreign_program_runs(&self) -> bool {
        let has_it = |s: State| {
            let somebody_reads = matches!(s.foreground, wire::Foreground::ShellReads | wire::Foreground::Reads);
            s.group != self.timeline.shell_pid || somebody_reads
        };
        self.timeline.current.is_none()
            && self.timeline.prompt_seen
            && !self.is_heuristic
            && self.state.is_some_and(has_it)
    }

    /// The public foreground state, derived from the kernel's state and the screen.
    pub(crate) fn foreground(&self) -> Foreground {
        if self.is_idle() {
            return if self.has_stopped_job { Foreground::Stopped } else { Foreground::Idle };
        }
        if self.state.is_some_and(|s| s.foreground == wire::Foreground::Stopped) {
            return Foreground::Stopped;
        }
        if self.paints() {
            return Foreground::Fullscreen;
        }
        let Some(state) = self.state else { return Foreground::Running };
        if self.typed_command_at().is_some() {
            return Foreground::Running;
        }
        match (self.asks(state), state.canonical && !state.echo) {
            (true, true) => Foreground::PasswordWanted,
            (true, false) if self.is_heuristic && self.timeline.newest_running().is_none() => Foreground::Idle,
            (true, false) => Foreground::InputWanted,
            (false, _) => Foreground::Running,
        }
    }

    /// Whether a program paints the whole screen, alternate or main.
    pub(super) fn paints(&self) -> bool {
        let scanner = &self.timeline.scanner;
        scanner.modes().alt_screen || scanner.paints_main_from().is_some()
    }

    /// Whether this state means that the program wants input.
    fn asks(&self, state: State) -> bool {
        match state.foreground {
            wire::Foreground::Reads | wire::Foreground::ShellReads => true,
            // Before the first prompt it is not known whether the editor is the shell's prompt.
            wire::Foreground::Editor => {
                let is_known = self.timeline.prompt_seen || self.is_heuristic;
                self.timeline.still_inside || self.timeline.current.is_none() && is_known
            }
            // Many programs poll the terminal without wanting input. One that wants input has left its line unfinished,
            // and one that has taken the whole screen waits for a key.
            wire::Foreground::Polls => self.timeline.scanner.line_is_open() || self.paints(),
            // A program that wakes up by a timeout has other work, such as a spinner behind its line.
            wire::Foreground::PollsForATime => self.paints(),
            // Another user's program (su, sudo): only the terminal's modes are visible, and no echo means a password.
            wire::Foreground::Unknown => state.canonical && !state.echo,
            wire::Foreground::PollsAndListens | wire::Foreground::Busy | wire::Foreground::Stopped => false,
        }
    }

    /// When a full-screen program, or one that has just left full screen, counts as waiting for a key: it also reads
    /// keys between two paints and while it leaves.
    pub(super) fn screen_settles_at(&self) -> Option<Instant> {
        self.painted_at.map(|at| at + limits::SCREEN_SETTLES)
    }

    /// The result of waits that end on wanted input, if they end now.
    pub(super) fn pause(&self) -> Option<EndedBy> {
        let is_unsettled = self.screen_settles_at().is_some_and(|at| Instant::now() < at);
        // The nested shell reads, but has not yet read the typed line.
        let is_unread = self.timeline.inside.as_ref().is_some_and(|inside| !inside.has_begun);
        let is_undecided = is_unread || self.is_undecided();
        if self.typing > 0 || self.editor_since.is_some() || is_unsettled || is_undecided {
            return None;
        }
        let is_idle = self.is_idle();
        match self.foreground() {
            Foreground::InputWanted | Foreground::PasswordWanted => Some(EndedBy::InputWanted),
            Foreground::Stopped if !is_idle => Some(EndedBy::Stopped),
            Foreground::Fullscreen if self.state.is_some_and(|s| self.asks(s)) => Some(EndedBy::InputWanted),
            // The shell reads again without a report of it.
            Foreground::Idle if self.is_heuristic && !is_idle => Some(EndedBy::InputWanted),
            Foreground::Fullscreen | Foreground::Stopped | Foreground::Idle | Foreground::Running => None,
        }
    }

    pub(crate) fn snapshot(&mut self, command: Option<u32>) -> Snapshot {
        let status = if self.timeline.exit.is_some() || self.holder_gone {
            SessionStatus::Terminated
        } else if self.timeline.prompt_seen || self.is_heuristic || self.timeline.damage.is_some() {
            SessionStatus::Running
        } else {
            SessionStatus::Creating
        };
        let (first, end) = (self.shared.reader.first().unwrap_or_default().0, self.tail.borrow().journal.0);
        // The holder notices a cut journal only when it writes.
        if !self.holder_gone && self.shared.reader.len().is_ok_and(|size| size.0 < end) {
            self.is_cut(end);
        }
        let boundary = match self.is_heuristic {
            true => Boundary::Heuristic,
            false if self.shared.spec.handover.is_in_band() => Boundary::Nonce,
            false => Boundary::Attested,
        };
        let mut view =
            views::session_view(&self.shared, &self.timeline, status, self.foreground(), boundary, first, end);
        view.last_activity = time(self.last_activity_us.max(self.timeline.started_us));
        if let Some(trouble) = self.silent_trouble() {
            (view.is_unreachable, view.trouble) = (true, Some(trouble));
        }
        Snapshot {
            view,
            command: command
                .and_then(|id| self.timeline.command(id))
                .map(|c| views::command_view(&self.shared, c, self.timeline.scanner.position())),
            paint: self.paint.clone(),
            was_not_ready: self.was_not_ready,
            background_from: self.timeline.background_from,
            shown_to: self.shown_to(),
            holder_pid: self.timeline.holder_pid,
        }
    }

    /// The offset up to which viewers may read.
    pub(super) fn shown_to(&self) -> u64 {
        self.timeline.shown_to(micros(SystemTime::now()))
    }

    pub(super) fn screen_now(&mut self) -> &mut Screen {
        let at = self.timeline.scanner.position();
        self.screen_at(at)
    }

    /// The screen at this journal offset, fed only on demand, from where the last call ended.
    pub(super) fn screen_at(&mut self, to: u64) -> &mut Screen {
        let (cols, rows) = (self.timeline.cols, self.timeline.rows);
        let first = self.shared.reader.first().unwrap_or_default().0;
        let echoes: Vec<_> = self.timeline.echoes().cloned().collect();
        let (screen, at) = self.screen.get_or_insert_with(|| (Screen::new(cols, rows), first));
        while *at < to {
            let limit = to.min(*at + limits::SCAN_CHUNK as u64);
            match super::super::output_text::read(&self.shared.reader, *at, limit) {
                Ok(slice) if !slice.bytes.is_empty() => {
                    screen.feed(&handover_echo::show(&slice.bytes, slice.from, &echoes));
                    *at = slice.from + slice.bytes.len() as u64;
                }
                _ => *at = limit,
            }
        }
        screen
    }

    pub(super) fn screen_view(&mut self) -> ScreenView {
        let cols = self.timeline.cols;
        let is_alternate = self.timeline.scanner.modes().alt_screen;
        let at = self.shown_to();
        let screen = self.screen_at(at);
        let cursor = screen.cursor();
        ScreenView {
            rows: screen.text(),
            cursor_row: cursor.row,
            cursor_col: cursor.col,
            cursor_visible: cursor.visible,
            title: screen.title().unwrap_or_default().to_owned(),
            cols,
            inverse: screen.inverse(),
            marks: screen.row_marks(),
            changed: None,
            is_alternate,
            ansi: screen.ansi(),
            at,
        }
    }

    pub(super) fn busy_error(&self, id: u32) -> ActionError {
        let text = self.timeline.command(id).map_or("", |c| &c.text);
        let words: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
        let with = format!("command {} ({})", CommandId(id), api::quote::line(&words));
        ActionError::Busy { session: self.shared.id.clone(), with, may_be_a_shell: self.may_be_a_shell() }
    }

    pub(super) fn typed_busy_error(&self) -> ActionError {
        let with = "what somebody typed at its prompt".to_owned();
        ActionError::Busy { session: self.shared.id.clone(), with, may_be_a_shell: self.may_be_a_shell() }
    }

    pub(super) fn not_ready(&self, why: &str) -> ActionError {
        ActionError::NotReady { session: self.shared.id.clone(), why: why.to_owned() }
    }

    pub(super) fn why_not_ready(&self) -> String {
        if let Some(damage) = &self.timeline.damage {
            return format!("{damage}; end it and start another one");
        }
        if self.is_heuristic && !self.shared.spec.handover.has_hooks() {
            return "it is not waiting for a command; send_input_to_terminal types at what runs in it".to_owned();
        }
        match (self.timeline.prompt_seen, self.foreground()) {
            (false, Foreground::InputWanted | Foreground::PasswordWanted) => {
                "its start-up file waits for input; send some with send_input_to_terminal".to_owned()
            }
            (false, _) => "it is still starting; ask again in a moment".to_owned(),
            // A zsh prompt without its line editor goes on reading after an interrupt.
            (true, _) if self.shared.meta.shell == "zsh" => {
                "its line editor does not have the terminal; if `unsetopt zle` took it away, type `setopt zle` with \
                 send_input_to_terminal; else send C-c, or reset the session"
                    .to_owned()
            }
            (true, _) => "its line editor does not have the terminal; send C-c, or reset the session".to_owned(),
        }
    }

    pub(super) fn ended_error(&self) -> ActionError {
        // The holder may know of the exit long before it can record it, on a full disk.
        let unrecorded = if self.holder_gone { "its holder is gone" } else { "the shell has exited" };
        let reason = views::exit_of(&self.timeline).map_or_else(|| unrecorded.to_owned(), |e| e.reason);
        ActionError::Ended { session: self.shared.id.clone(), reason }
    }
}
