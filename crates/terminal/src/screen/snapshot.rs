//! Writes a screen as escape sequences.
//!
//! The order matters: some settings move the cursor (margins, origin mode), some change printing (insert mode,
//! wrapping, character sets). So everything is painted in the default state first, and modes are set last.

use alacritty_terminal::grid::{Charsets, Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line, Point};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::color::COUNT as COLOUR_COUNT;
use alacritty_terminal::vte::ansi::{CharsetIndex, Color, CursorShape, CursorStyle, NamedColor, StandardCharset};

use super::cells::wraps;
use super::masked::{Mask, masked};
use super::model::{Keyboard, Mirror, Model, is_default_tab};

/// Modes that are off in a new terminal, with the sequences that set them.
const OFF_BY_DEFAULT: [(TermMode, &str); 11] = [
    (TermMode::APP_CURSOR, "\x1b[?1h"),
    (TermMode::APP_KEYPAD, "\x1b="),
    (TermMode::MOUSE_REPORT_CLICK, "\x1b[?1000h"),
    (TermMode::MOUSE_DRAG, "\x1b[?1002h"),
    (TermMode::MOUSE_MOTION, "\x1b[?1003h"),
    (TermMode::FOCUS_IN_OUT, "\x1b[?1004h"),
    (TermMode::UTF8_MOUSE, "\x1b[?1005h"),
    (TermMode::SGR_MOUSE, "\x1b[?1006h"),
    (TermMode::BRACKETED_PASTE, "\x1b[?2004h"),
    (TermMode::LINE_FEED_NEW_LINE, "\x1b[20h"),
    (TermMode::INSERT, "\x1b[4h"),
];

/// Modes that are on in a new terminal, with the sequences that reset them.
const ON_BY_DEFAULT: [(TermMode, &str); 4] = [
    (TermMode::LINE_WRAP, "\x1b[?7l"),
    (TermMode::SHOW_CURSOR, "\x1b[?25l"),
    (TermMode::ALTERNATE_SCROLL, "\x1b[?1007l"),
    (TermMode::URGENCY_HINTS, "\x1b[?1042l"),
];

pub(super) fn write(model: &mut Model, mask: Mask<'_>) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new(), mask, pen: Pen::default(), charsets: Charsets::default() };
    writer.put("\x1bc");
    writer.colours(model);
    writer.titles(&model.mirror);
    let is_alternate = model.has(TermMode::ALT_SCREEN);
    if is_alternate {
        model.with_other_grid(|primary| {
            let primary = &*masked(primary, mask);
            writer.paint(primary);
            writer.cursor(primary, &primary.cursor);
            writer.charsets(&primary.cursor.charsets);
            writer.pen(&primary.cursor.template);
        });
        writer.keyboard(&model.mirror.keyboards[0]);
        // The alternate screen begins in the pen's background colour.
        writer.put("\x1b[?1049h");
        writer.pen(&Cell::default());
        writer.put("\x1b[2J");
    } else {
        let saved_cursor = model.with_other_grid(|alternate| alternate.saved_cursor.clone());
        let keyboard = &model.mirror.keyboards[1];
        if saved_cursor != Cursor::default() || *keyboard != Keyboard::default() {
            writer.put("\x1b[?1049h");
            writer.saved_cursor(&saved_cursor);
            writer.keyboard(keyboard);
            writer.put("\x1b[?1049l");
            // Leaving restores the primary screen's cursor, which is still in its initial state.
            writer.pen = Pen::default();
            writer.charsets = Charsets::default();
        }
    }
    writer.keyboard(&model.mirror.keyboards[usize::from(is_alternate)]);

    let grid = &*masked(model.term.grid(), mask);
    writer.tabs(&model.mirror.tabs);
    writer.saved_cursor(&grid.saved_cursor);
    writer.paint(grid);
    writer.margins(model.mirror.margins, model.term.screen_lines());
    writer.final_cursor(model, grid);
    writer.charsets(&grid.cursor.charsets);
    if model.mirror.charset == CharsetIndex::G1 {
        writer.put("\x0e");
    }
    writer.pen(&grid.cursor.template);
    writer.modes(model);
    writer.out
}

/// The attributes of printed text: a cell without its character.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pen(Cell);

impl Pen {
    fn of(cell: &Cell) -> Self {
        let mut pen = Cell { c: ' ', flags: cell.flags - NOT_PEN, ..cell.clone() };
        if pen.extra.is_some() {
            pen.extra = None;
            pen.set_underline_color(cell.underline_color());
            pen.set_hyperlink(cell.hyperlink());
        }
        Self(pen)
    }
}

/// Flags that come from a character's position, not from the pen.
const NOT_PEN: Flags =
    Flags::WRAPLINE.union(Flags::WIDE_CHAR).union(Flags::WIDE_CHAR_SPACER).union(Flags::LEADING_WIDE_CHAR_SPACER);

struct Writer<'a> {
    out: Vec<u8>,
    mask: Mask<'a>,
    /// The pen and the character sets of the terminal that reads this.
    pen: Pen,
    charsets: Charsets,
}

impl Writer<'_> {
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn masked(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        if let Some(mask) = self.mask {
            mask(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn goto(&mut self, line: usize, col: usize) {
        self.put(&format!("\x1b[{};{}H", line + 1, col + 1));
    }

    fn colours(&mut self, model: &Model) {
        for index in 0..COLOUR_COUNT {
            let Some(colour) = model.term.colors()[index] else {
                continue;
            };
            let name = match index {
                0..=255 => format!("4;{index}"),
                _ => (index - NamedColor::Foreground as usize + 10).to_string(),
            };
            let (r, g, b) = (colour.r, colour.g, colour.b);
            self.put(&format!("\x1b]{name};rgb:{r:02x}/{g:02x}/{b:02x}\x1b\\"));
        }
    }

    fn titles(&mut self, mirror: &Mirror) {
        let mut title = |title: &Option<String>, then: &str| {
            let title = self.masked(title.as_deref().unwrap_or_default());
            self.put(&format!("\x1b]2;{title}\x1b\\{then}"));
        };
        for pushed in &mirror.titles {
            title(pushed, "\x1b[22t");
        }
        if mirror.title.is_some() || !mirror.titles.is_empty() {
            title(&mirror.title, "");
        }
    }

    fn keyboard(&mut self, keyboard: &Keyboard) {
        if keyboard.base != 0 {
            self.put(&format!("\x1b[={}u", keyboard.base));
        }
        for flags in &keyboard.pushed {
            self.put(&format!("\x1b[>{flags}u"));
        }
    }

    /// Paints all rows. Wrapped rows are printed without a break, so that they wrap again.
    fn paint(&mut self, grid: &Grid<Cell>) {
        self.charsets(&Charsets::default());
        let mut is_continued = false;
        for line in 0..grid.screen_lines() {
            let row = &grid[Line(line as i32)][..];
            let wraps = wraps(grid, line);
            let leaves_gap = wraps && is_gap(&row[row.len() - 1], &grid[Line(line as i32 + 1)][Column(0)]);
            let len = match row.iter().rposition(|cell| !is_blank(cell)) {
                _ if wraps => row.len() - usize::from(leaves_gap),
                Some(last) => last + 1,
                // The first cell of a continued row makes the row above wrap.
                None => usize::from(is_continued),
            };
            if len > 0 && !is_continued {
                self.goto(line, 0);
            }
            for cell in &row[..len] {
                self.cell(cell);
            }
            is_continued = wraps;
        }
    }

    /// Prints one cell; the second half of a wide character comes with the first.
    fn cell(&mut self, cell: &Cell) {
        if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
            return;
        }
        self.pen(cell);
        let mut utf8 = [0; 4];
        let shown = if cell.c == '\t' { ' ' } else { cell.c };
        self.put(shown.encode_utf8(&mut utf8));
        for combining in cell.zerowidth().into_iter().flatten() {
            self.put(combining.encode_utf8(&mut utf8));
        }
    }

    fn pen(&mut self, cell: &Cell) {
        let pen = Pen::of(cell);
        if pen == self.pen {
            return;
        }
        let link = pen.0.hyperlink();
        if link != self.pen.0.hyperlink() {
            match &link {
                Some(link) => {
                    let (id, uri) = (self.masked(link.id()), self.masked(link.uri()));
                    self.put(&format!("\x1b]8;id={id};{uri}\x1b\\"));
                }
                None => self.put("\x1b]8;;\x1b\\"),
            }
        }
        let mut codes = String::from("\x1b[0");
        for (flag, code) in ATTRIBUTES {
            if pen.0.flags.contains(flag) {
                codes.push_str(code);
            }
        }
        push_colour(&mut codes, 38, pen.0.fg);
        push_colour(&mut codes, 48, pen.0.bg);
        if let Some(colour) = pen.0.underline_color() {
            push_colour(&mut codes, 58, colour);
        }
        codes.push('m');
        self.put(&codes);
        self.pen = pen;
    }

    fn charsets(&mut self, charsets: &Charsets) {
        let slots =
            [(CharsetIndex::G0, '('), (CharsetIndex::G1, ')'), (CharsetIndex::G2, '*'), (CharsetIndex::G3, '+')];
        for (index, slot) in slots {
            if self.charsets[index] != charsets[index] {
                let set = match charsets[index] {
                    StandardCharset::Ascii => 'B',
                    StandardCharset::SpecialCharacterAndLineDrawing => '0',
                };
                self.put(&format!("\x1b{slot}{set}"));
                self.charsets[index] = charsets[index];
            }
        }
    }

    fn tabs(&mut self, tabs: &[bool]) {
        if tabs.iter().enumerate().all(|(col, tab)| *tab == is_default_tab(col)) {
            return;
        }
        self.put("\x1b[3g");
        for (col, _) in tabs.iter().enumerate().filter(|(_, tab)| **tab) {
            self.goto(0, col);
            self.put("\x1bH");
        }
    }

    /// To be called before painting: a cursor that waits to wrap needs a blank in the last column.
    fn saved_cursor(&mut self, saved: &Cursor<Cell>) {
        if *saved == Cursor::default() {
            return;
        }
        self.goto(saved.point.line.0 as usize, saved.point.column.0);
        if saved.input_needs_wrap {
            self.cell(&Cell::default());
        }
        self.charsets(&saved.charsets);
        self.pen(&saved.template);
        self.put("\x1b7");
    }

    fn margins(&mut self, (top, bottom): (usize, usize), rows: usize) {
        if (top, bottom) != (0, rows) {
            self.put(&format!("\x1b[{};{bottom}r", top + 1));
        }
    }

    /// Restores the cursor. Printing in the last column makes it wait to wrap.
    fn cursor(&mut self, grid: &Grid<Cell>, cursor: &Cursor<Cell>) {
        self.cursor_at(grid, cursor, cursor.point.line.0 as usize);
    }

    /// The same with a row that counts from the margin, as in origin mode.
    fn cursor_at(&mut self, grid: &Grid<Cell>, cursor: &Cursor<Cell>, line: usize) {
        let Point { line: row, column } = cursor.point;
        if !cursor.input_needs_wrap {
            self.goto(line, column.0);
            return;
        }
        let is_second_half = grid[row][column].flags.contains(Flags::WIDE_CHAR_SPACER);
        let col = column.0 - usize::from(is_second_half);
        self.goto(line, col);
        self.charsets(&Charsets::default());
        self.cell(&grid[row][Column(col)]);
    }

    fn final_cursor(&mut self, model: &Model, grid: &Grid<Cell>) {
        if !model.has(TermMode::ORIGIN) {
            self.cursor(grid, &grid.cursor);
            return;
        }
        self.put("\x1b[?6h");
        let line = grid.cursor.point.line.0 as usize - model.mirror.margins.0;
        self.cursor_at(grid, &grid.cursor, line);
    }

    fn modes(&mut self, model: &Model) {
        let style = model.term.cursor_style();
        if style != CursorStyle::default() {
            let shape = match style.shape {
                CursorShape::Underline => 4,
                CursorShape::Beam => 6,
                CursorShape::Block | CursorShape::HollowBlock | CursorShape::Hidden => 2,
            };
            self.put(&format!("\x1b[{} q", shape - u8::from(style.blinking)));
        }
        for (mode, set) in OFF_BY_DEFAULT {
            if model.has(mode) {
                self.put(set);
            }
        }
        for (mode, reset) in ON_BY_DEFAULT {
            if !model.has(mode) {
                self.put(reset);
            }
        }
    }
}

/// A wide character that does not fit leaves a gap at the end of its row. Printing it again does the same, unless a
/// resize made the gap, which then has no colours.
fn is_gap(last: &Cell, next: &Cell) -> bool {
    last.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER)
        && next.flags.contains(Flags::WIDE_CHAR)
        && Pen::of(last) == Pen::of(next)
}

fn is_blank(cell: &Cell) -> bool {
    matches!(cell.c, ' ' | '\t') && Pen::of(cell) == Pen::default() && cell.zerowidth().is_none_or(<[char]>::is_empty)
}

const ATTRIBUTES: [(Flags, &str); 11] = [
    (Flags::BOLD, ";1"),
    (Flags::DIM, ";2"),
    (Flags::ITALIC, ";3"),
    (Flags::UNDERLINE, ";4"),
    (Flags::DOUBLE_UNDERLINE, ";4:2"),
    (Flags::UNDERCURL, ";4:3"),
    (Flags::DOTTED_UNDERLINE, ";4:4"),
    (Flags::DASHED_UNDERLINE, ";4:5"),
    (Flags::INVERSE, ";7"),
    (Flags::HIDDEN, ";8"),
    (Flags::STRIKEOUT, ";9"),
];

/// `selector` is 38, 48 or 58: foreground, background, underline.
fn push_colour(codes: &mut String, selector: u8, colour: Color) {
    match colour {
        Color::Spec(rgb) => {
            codes.push_str(&format!(";{selector};2;{};{};{}", rgb.r, rgb.g, rgb.b));
        }
        Color::Indexed(index) => codes.push_str(&format!(";{selector};5;{index}")),
        // Named colours below 8 have codes of their own, and so have the bright ones; the others are the default.
        Color::Named(name) => match name as usize {
            index @ 0..=7 => codes.push_str(&format!(";{}", usize::from(selector) - 8 + index)),
            index @ 8..=15 => {
                codes.push_str(&format!(";{}", usize::from(selector) + 52 + index - 8));
            }
            _ => {}
        },
    }
}
