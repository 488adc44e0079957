//! Recorded output of real programs: converted to the expected text and screen, wherever it is cut, and to the screen
//! that tmux shows for the same bytes.
//!
//! The streams in `fixtures/` are made by `record-fixtures.sh`. With `PTYD_WRITE_EXPECTED=1` the expected files beside them are
//! written instead of read; a person judges the changes in them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proptest::prelude::*;
use serde_json::Value;
use terminal::{Screen, Transcript};

/// One recording.
struct Stream {
    path: PathBuf,
    cols: u16,
    rows: u16,
    bytes: Vec<u8>,
}

impl Stream {
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).expect("a recording");
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let header = lines.next().expect("a header");
        let side = |name: &str| header[name].as_u64().and_then(|n| u16::try_from(n).ok()).expect("a size");
        let mut bytes = Vec::new();
        for event in lines {
            match event[1].as_str() {
                Some("o") => bytes.extend_from_slice(event[2].as_str().expect("output").as_bytes()),
                other => panic!("{}: {other:?} is not played here", path.display()),
            }
        }
        Self { cols: side("width"), rows: side("height"), path, bytes }
    }

    fn name(&self) -> &str {
        self.path.file_stem().and_then(OsStr::to_str).expect("a name")
    }

    /// The expected text; written first where the environment asks for that.
    fn expected(&self, what: &str, found: &str) -> String {
        let path = self.path.with_extension(what);
        if std::env::var_os("PTYD_WRITE_EXPECTED").is_some() {
            fs::write(&path, found).expect("room for what is expected");
        }
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The text and the screen, read in pieces that end at these places.
    fn read_in_pieces(&self, cuts: &[usize]) -> (String, Vec<String>) {
        let (mut transcript, mut screen) = (Transcript::new(self.cols), Screen::new(self.cols, self.rows));
        let mut text = String::new();
        let mut from = 0;
        for to in cuts.iter().copied().chain([self.bytes.len()]) {
            transcript.feed(&self.bytes[from..to]);
            screen.feed(&self.bytes[from..to]);
            text += &transcript.take_finished();
            from = to;
        }
        let rest = transcript.finish();
        assert_eq!(rest.escaped, 0, "a recording is text");
        (text + &rest.text, screen.text())
    }
}

fn streams() -> Vec<Stream> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let paths = fs::read_dir(folder).expect("recordings").map(|entry| entry.expect("readable").path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension() == Some(OsStr::new("cast"))).collect();
    paths.sort();
    assert!(paths.len() >= 15, "recordings are missing: {paths:?}");
    paths.into_iter().map(Stream::read).collect()
}

fn lines(rows: &[String]) -> String {
    rows.iter().flat_map(|row| [row, "\n"]).collect()
}

#[test]
// promise: output-8
fn recorded_programs_give_the_expected_text_and_screen() {
    for stream in streams() {
        let (text, screen) = stream.read_in_pieces(&[]);
        assert_eq!(text, stream.expected("text", &text), "{}", stream.name());
        let screen = lines(&screen);
        assert_eq!(screen, stream.expected("screen", &screen), "{}", stream.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    // promise: output-8
    fn recorded_programs_are_read_alike_wherever_they_are_cut(
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..40)
    ) {
        for stream in streams() {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.bytes.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(stream.read_in_pieces(&cuts), stream.read_in_pieces(&[]), "{}", stream.name());
        }
    }
}

/// How far into each recording the screens are compared, in percent. There is no exception: in all of these both agree.
const LOOKS: [usize; 5] = [20, 45, 70, 90, 100];

#[test]
// promise: output-8
fn tmux_shows_the_same_screen_of_recorded_programs() {
    let tmux = Tmux::new();
    for stream in streams() {
        for percent in LOOKS {
            // Half a sequence or character is on no screen, so that it is cut behind a line's end or where it is over.
            let to = stream.bytes.len() * percent / 100;
            let to =
                stream.bytes[to..].iter().position(|byte| *byte == b'\n').map_or(stream.bytes.len(), |at| to + at + 1);
            let mut screen = Screen::new(stream.cols, stream.rows);
            screen.feed(&stream.bytes[..to]);
            let (ours, theirs) = (lines(&screen.text()), tmux.shows(&stream, to));
            assert!(ours == theirs, "{} up to {to}\n--- ours\n{ours}--- tmux\n{theirs}", stream.name());
        }
    }
}

/// A server of tmux of its own.
struct Tmux(tempfile::TempDir);

impl Tmux {
    fn new() -> Self {
        let tmux = Self(tempfile::tempdir().expect("a folder"));
        let conf = "set -g status off\nset -g default-shell /bin/bash\nset -g exit-empty off\n";
        fs::write(tmux.0.path().join("conf"), conf).expect("room");
        tmux.run(&["start-server"]);
        tmux
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        tmux.env("LANG", "C.UTF-8").env("TERM", "xterm-256color").env("HOME", self.0.path()).current_dir(self.0.path());
        let output =
            tmux.args(["-S", "socket", "-f", "conf", "-u"]).args(words).output().expect("tmux, of Debian's tmux");
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The screen of a pane of the same size, in which the same bytes were written.
    fn shows(&self, stream: &Stream, to: usize) -> String {
        fs::write(self.0.path().join("bytes"), &stream.bytes[..to]).expect("room");
        // The answer to a question behind the bytes comes when tmux has drawn them, and `wait-for` passes it on.
        let written =
            r"stty raw -echo; cat bytes; printf '\e[5n'; read -rsd n; tmux -S socket wait-for -S drawn; read -rsd ''";
        let (cols, rows) = (stream.cols.to_string(), stream.rows.to_string());
        self.run(&["new-session", "-d", "-x", &cols, "-y", &rows, written]);
        self.run(&["wait-for", "drawn"]);
        let shown = self.run(&["capture-pane", "-p"]).stdout;
        self.run(&["kill-session"]);
        let shown = String::from_utf8(shown).expect("UTF-8");
        // Blanks at the end of a row are not compared.
        shown.lines().flat_map(|row| [row.trim_end(), "\n"]).collect()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}
