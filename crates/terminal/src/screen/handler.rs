//! Control functions of the [`Model`]: the emulator's own handling, followed by repairs.

use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::color::COUNT as COLOUR_COUNT;
use alacritty_terminal::vte::ansi::{
    Attr, CharsetIndex, ClearMode, CursorShape, CursorStyle, Handler, Hyperlink, KeyboardModes,
    KeyboardModesApplyBehavior, LineClearMode, Mode, NamedPrivateMode, PrivateMode, Rgb, StandardCharset,
    TabulationClearMode,
};
use unicode_width::UnicodeWidthChar;

use super::model::{COMBINING_MAX, Mirror, Model, STACK_MAX, TITLE_CHARS_MAX};

/// Methods that are passed on unchanged.
macro_rules! pass_on {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method(&mut self, $($argument: $type),*) {
            self.term.$method($($argument),*);
        })*
    };
}

/// Methods that move rows or the cursor in ways that misplace wrap marks.
macro_rules! pass_on_and_repair_wrap {
    ($($method:ident($($argument:ident: $type:ty)?);)*) => {
        $(fn $method(&mut self, $($argument: $type)?) {
            self.term.$method($($argument)?);
            self.repair_last_row();
            self.repair_wrap();
        })*
    };
}

/// Methods that may leave half a wide character in the cursor's row.
macro_rules! pass_on_and_repair {
    ($($method:ident($argument:ident: $type:ty);)*) => {
        $(fn $method(&mut self, $argument: $type) {
            self.term.$method($argument);
            self.repair_row();
        })*
    };
}

/// Queries are left out: the server answers them, from the scanner's findings.
impl Handler for Model {
    pass_on! {
        set_cursor_style(style: Option<CursorStyle>);
        set_cursor_shape(shape: CursorShape);
        goto(line: i32, col: usize);
        goto_line(line: i32);
        move_forward(cols: usize);
        move_backward(cols: usize);
        backspace();
        carriage_return();
        substitute();
        move_forward_tabs(count: u16);
        save_cursor_position();
        terminal_attribute(attribute: Attr);
        set_mode(mode: Mode);
        unset_mode(mode: Mode);
        set_keypad_application_mode();
        unset_keypad_application_mode();
        configure_charset(index: CharsetIndex, charset: StandardCharset);
        set_color(index: usize, colour: Rgb);
        reset_color(index: usize);
        decaln();
        set_hyperlink(link: Option<Hyperlink>);
    }

    pass_on_and_repair! {
        insert_blank(count: usize);
        erase_chars(count: usize);
        delete_chars(count: usize);
        clear_line(mode: LineClearMode);
        clear_screen(mode: ClearMode);
    }

    pass_on_and_repair_wrap! {
        linefeed();
        newline();
        reverse_index();
        scroll_up(lines: usize);
        scroll_down(lines: usize);
        insert_blank_lines(lines: usize);
        delete_lines(lines: usize);
        move_backward_tabs(count: u16);
    }

    fn goto_col(&mut self, col: usize) {
        self.move_to(0, col);
    }

    fn move_up(&mut self, lines: usize) {
        self.move_to(-(lines as i32), self.term.grid().cursor.point.column.0);
    }

    fn move_down(&mut self, lines: usize) {
        self.move_to(lines as i32, self.term.grid().cursor.point.column.0);
    }

    fn move_up_and_cr(&mut self, lines: usize) {
        self.move_to(-(lines as i32), 0);
    }

    fn move_down_and_cr(&mut self, lines: usize) {
        self.move_to(lines as i32, 0);
    }

    fn restore_cursor_position(&mut self) {
        self.term.restore_cursor_position();
        self.keep_to_margins();
        self.repair_wrap();
    }

    fn input(&mut self, character: char) {
        if character.width() == Some(0) && self.combining_at_cursor() >= COMBINING_MAX {
            return;
        }
        self.term.input(character);
        if self.has(TermMode::INSERT) {
            self.repair_row();
        }
        self.repair_after_print();
    }

    /// A tab behind the last column wraps like a character.
    fn put_tab(&mut self, count: u16) {
        self.term.put_tab(count);
        self.repair_after_print();
    }

    fn set_active_charset(&mut self, index: CharsetIndex) {
        self.mirror.charset = index;
        self.term.set_active_charset(index);
    }

    fn set_horizontal_tabstop(&mut self) {
        self.mirror.tabs[self.term.grid().cursor.point.column.0] = true;
        self.term.set_horizontal_tabstop();
    }

    fn clear_tabs(&mut self, mode: TabulationClearMode) {
        match mode {
            TabulationClearMode::Current => {
                self.mirror.tabs[self.term.grid().cursor.point.column.0] = false;
            }
            TabulationClearMode::All => self.mirror.tabs.fill(false),
        }
        self.term.clear_tabs(mode);
    }

    /// Margins outside of the screen are refused as in xterm; the emulator would accept an empty region.
    fn set_scrolling_region(&mut self, top: usize, bottom: Option<usize>) {
        let rows = self.term.screen_lines();
        let bottom = bottom.unwrap_or(rows).min(rows);
        if top < bottom {
            self.mirror.margins = (top - 1, bottom);
            self.term.set_scrolling_region(top, Some(bottom));
        }
    }

    fn set_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Unknown(47 | 1047) => {
                self.term.set_private_mode(NamedPrivateMode::SwapScreenAndSetRestoreCursor.into());
            }
            PrivateMode::Unknown(1048) => self.term.save_cursor_position(),
            PrivateMode::Named(NamedPrivateMode::ColumnMode) => {
                self.term.set_private_mode(mode);
                self.use_full_margins();
            }
            _ => self.term.set_private_mode(mode),
        }
    }

    fn unset_private_mode(&mut self, mode: PrivateMode) {
        match mode {
            PrivateMode::Unknown(47 | 1047) | PrivateMode::Named(NamedPrivateMode::SwapScreenAndSetRestoreCursor) => {
                if self.has(TermMode::ALT_SCREEN) {
                    self.term.unset_private_mode(NamedPrivateMode::SwapScreenAndSetRestoreCursor.into());
                    // The margins may have moved while the cursor was saved.
                    self.keep_to_margins();
                    self.repair_wrap();
                }
            }
            PrivateMode::Unknown(1048) => self.restore_cursor_position(),
            PrivateMode::Named(NamedPrivateMode::ColumnMode) => {
                self.term.unset_private_mode(mode);
                self.use_full_margins();
            }
            _ => self.term.unset_private_mode(mode),
        }
    }

    /// The emulator keeps colours over a full reset; other terminals do not.
    fn reset_state(&mut self) {
        for index in 0..COLOUR_COUNT {
            if self.term.colors()[index].is_some() {
                self.term.reset_color(index);
            }
        }
        self.term.reset_state();
        let (cols, rows) = self.size();
        self.mirror = Mirror::new(cols, rows);
    }

    fn set_title(&mut self, title: Option<String>) {
        let clean = |title: String| {
            let visible = title.chars().filter(|character| !character.is_control());
            let title: String = visible.take(TITLE_CHARS_MAX).collect();
            title.trim().to_owned()
        };
        self.mirror.title = title.map(clean).filter(|title| !title.is_empty());
    }

    fn push_title(&mut self) {
        if self.mirror.titles.len() < STACK_MAX {
            self.mirror.titles.push(self.mirror.title.clone());
        }
    }

    fn pop_title(&mut self) {
        if let Some(title) = self.mirror.titles.pop() {
            self.mirror.title = title;
        }
    }

    fn push_keyboard_mode(&mut self, mode: KeyboardModes) {
        let keyboard = self.keyboard();
        if keyboard.pushed.len() < STACK_MAX {
            keyboard.pushed.push(mode.bits());
        }
    }

    fn pop_keyboard_modes(&mut self, count: u16) {
        let keyboard = self.keyboard();
        let left = keyboard.pushed.len().saturating_sub(usize::from(count));
        keyboard.pushed.truncate(left);
    }

    fn set_keyboard_mode(&mut self, mode: KeyboardModes, behaviour: KeyboardModesApplyBehavior) {
        let flags = self.keyboard().top();
        match behaviour {
            KeyboardModesApplyBehavior::Replace => *flags = mode.bits(),
            KeyboardModesApplyBehavior::Union => *flags |= mode.bits(),
            KeyboardModesApplyBehavior::Difference => *flags &= !mode.bits(),
        }
    }
}
