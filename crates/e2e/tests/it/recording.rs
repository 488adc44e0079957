//! Recordings: a well-formed asciicast of both versions, every byte of it, that plays to the screen that was there.

use api::{Dimensions, OutputQuery, OutputView};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use e2e::{Server, Session};
use serde_json::Value;

/// A recording, taken apart.
#[derive(Debug, PartialEq)]
struct Cast {
    header: Value,
    /// Seconds since the beginning, kind, data.
    events: Vec<(f64, String, String)>,
}

impl Cast {
    fn of(server: &Server, shell: &Session, version: u64) -> Self {
        let path = format!("/terminals/{}/recording?version={version}", shell.id);
        let reply = server.connect().ask("GET", &path, "").expect("an answer");
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/x-asciicast")));
        let text = String::from_utf8(reply.body).expect("text");
        let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let header = lines.next().expect("a header");
        assert_eq!(header["version"], version);
        let mut now = 0.0;
        let events = lines.map(|event| {
            let [time, kind, data] = [&event[0], &event[1], &event[2]];
            let time = time.as_f64().expect("a time");
            now = if version == 3 { now + time } else { time };
            (now, kind.as_str().expect("a kind").to_owned(), data.as_str().expect("data").to_owned())
        });
        let events: Vec<_> = events.collect();
        assert!(events.is_sorted_by(|a, b| a.0 <= b.0), "time goes on");
        Self { header, events }
    }

    fn size(&self) -> (usize, usize) {
        let number = |value: &Value| value.as_u64().expect("a size") as usize;
        match self.header["version"].as_u64() {
            Some(2) => (number(&self.header["width"]), number(&self.header["height"])),
            _ => (number(&self.header["term"]["cols"]), number(&self.header["term"]["rows"])),
        }
    }

    fn output(&self) -> String {
        self.events.iter().filter(|(_, kind, _)| kind == "o").map(|(_, _, data)| data.as_str()).collect()
    }

    /// The screen that it ends with, as another terminal shows it.
    fn plays_to(&self) -> Vec<String> {
        let (cols, rows) = self.size();
        let mut terminal = avt::Terminal::new(cols, rows).expect("a size");
        for (_, kind, data) in &self.events {
            match kind.as_str() {
                "o" => terminal.feed(data.as_str()),
                "r" => {
                    let (cols, rows) = data.split_once('x').expect("a size");
                    terminal.resize(cols.parse().expect("cols"), rows.parse().expect("rows"));
                }
                _ => {}
            }
        }
        trimmed(terminal.screen().visible_lines().map(|line| line.text().trim_end().to_owned()).collect())
    }
}

fn trimmed(mut rows: Vec<String>) -> Vec<String> {
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

#[tokio::test]
// promise: output-14
async fn a_recording_holds_every_byte_and_plays_to_the_same_screen() {
    let server = Server::start();
    let shell = server.session().await;
    shell.run("echo before; printf 'h\\303\\251llo \\360\\237\\230\\200\\n'; seq 1 3000").await;
    let size = Dimensions { cols: 60, rows: 15 };
    server.client().resize(&shell.id, size).await.expect("a known session");
    let typed = shell.run_until("read -rsp 'secret? ' word", "secret").await;
    shell.types("swordfish").await;
    shell.end_of(&typed).await;
    // The last screen does not depend on how prompts were shown.
    let paint = "clear; printf '\\033[3;7Hpainted\\033[10;1H\\033[32mgreen\\033[0m\\033[6n\\nlast'; read -rs";
    shell.run_until(paint, "last").await;
    let check = async |screen: Option<Vec<String>>| {
        let casts = [Cast::of(&server, &shell, 2), Cast::of(&server, &shell, 3)];
        for cast in &casts {
            let stream =
                OutputQuery { view: Some(OutputView::Stream), max_bytes: Some(4 << 20), ..OutputQuery::default() };
            let stream = shell.output(&stream).await;
            let bytes = STANDARD.decode(stream.data_base64.expect("bytes")).expect("base64");
            let (text, recorded) = (String::from_utf8(bytes).expect("only text was printed"), cast.output());
            let same = recorded.bytes().zip(text.bytes()).take_while(|(a, b)| a == b).count();
            let near =
                |text: &str| text.bytes().skip(same.saturating_sub(40)).take(120).map(char::from).collect::<String>();
            assert!(recorded == text, "{:?} and {:?}", near(&recorded), near(&text));
            assert!(
                !recorded.contains("swordfish") && !recorded.contains("\x1b]7337"),
                "secrets and markers are left out"
            );
            let sizes: Vec<&str> = cast.events.iter().filter(|e| e.1 == "r").map(|e| e.2.as_str()).collect();
            assert_eq!((cast.size(), sizes), ((120, 40), vec!["60x15"]));
            if let Some(screen) = &screen {
                assert_eq!(&cast.plays_to(), screen);
            }
        }
        let [two, three] = casts;
        // How the bytes are cut depends on what is known of when they came, and that may be thinned out meanwhile.
        let others = |cast: &Cast| {
            let others = cast.events.iter().filter(|e| e.1 != "o");
            others.map(|e| (e.1.clone(), e.2.clone())).collect::<Vec<_>>()
        };
        let mut told = others(&three);
        let exit = told.pop_if(|(kind, _)| kind == "x");
        assert_eq!((two.output(), others(&two)), (three.output(), told), "both versions tell the same");
        exit
    };
    let screen = trimmed(shell.screen().await);
    assert!(screen.iter().any(|row| row == "      painted"), "{screen:?}");
    assert_eq!(check(Some(screen)).await, None);
    shell.types("").await;
    shell.run("exit 7").await;
    assert_eq!(check(None).await, Some(("x".to_owned(), "7".to_owned())));
    let reply = server.connect().ask("GET", &format!("/terminals/{}/recording?version=4", shell.id), "");
    assert_eq!(reply.expect("an answer").problem(), (422, "invalid_field".to_owned(), "version".to_owned()));
}

#[tokio::test]
// promise: output-14
async fn output_has_the_time_of_its_arrival() {
    let server = Server::start();
    let shell = server.session().await;
    let command = shell.run_until("echo one; read; echo two", "^one").await;
    server.session().await.run("sleep 0.3").await;
    shell.types("").await;
    shell.end_of(&command).await;
    let cast = Cast::of(&server, &shell, 3);
    let has = |event: &str, word: &str| event.contains(word) && !event.contains("echo");
    let at = |word: &str| cast.events.iter().find(|e| e.1 == "o" && has(&e.2, word)).expect("recorded").0;
    assert!(at("two") - at("one") >= 0.3, "{cast:?}");
}
