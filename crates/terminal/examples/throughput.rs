//! Measures the throughput of each parser: `cargo run --release -p terminal --example throughput`.
//!
//! Prints MB/s for kinds of output that differ in what makes them slow. The numbers are for a comparison before and
//! after a change; nothing checks them.

use std::hint::black_box;
use std::time::Instant;

use terminal::{Scanner, Screen, Transcript};

const INPUT_BYTES: usize = 16 << 20;
/// The chunk size of the server.
const CHUNK_BYTES: usize = 64 << 10;

fn repeated(line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(INPUT_BYTES);
    for number in 0.. {
        bytes.extend(line(number).bytes());
        if bytes.len() >= INPUT_BYTES {
            break;
        }
    }
    bytes
}

/// Bytes without any order, the same ones each time.
fn noise() -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..INPUT_BYTES).map(|_| next()).collect()
}

fn measure(input: &[u8], mut feed: impl FnMut(&[u8])) -> f64 {
    let start = Instant::now();
    input.chunks(CHUNK_BYTES).for_each(&mut feed);
    input.len() as f64 / 1e6 / start.elapsed().as_secs_f64()
}

fn main() {
    let eighty = "x".repeat(78);
    let inputs = [
        ("short lines", repeated(|number| format!("{number}\r\n"))),
        ("80-column lines", repeated(|_| format!("{eighty}\r\n"))),
        ("coloured lines", repeated(|number| format!("\x1b[1;32mok\x1b[0m test {number} ... \x1b[33mfine\x1b[0m\r\n"))),
        ("UTF-8 lines", repeated(|number| format!("✓ Prüfung {number} bestanden\r\n"))),
        ("progress by CR", repeated(|number| format!("\rprogress {}", number % 1_000))),
        ("progress by rows", repeated(|number| format!("\x1b[3A\x1b[Ka {number}\r\n\x1b[Kb\r\n\x1b[Kc\r\n"))),
        ("one endless line", repeated(|_| "x".to_owned())),
        ("noise", noise()),
    ];
    println!("{:20} {:>10} {:>10} {:>10}  MB/s", "", "scanner", "transcript", "screen");
    for (name, input) in &inputs {
        let mut scanner = Scanner::new(0);
        let scanned = measure(input, |chunk| scanner.feed(chunk, &mut |found| drop(black_box(found))));
        let mut transcript = Transcript::new(80);
        let read = measure(input, |chunk| {
            transcript.feed(chunk);
            black_box(transcript.take_finished());
        });
        let mut screen = Screen::new(80, 24);
        let drawn = measure(input, |chunk| screen.feed(chunk));
        println!("{name:20} {scanned:>10.0} {read:>10.0} {drawn:>10.0}");
    }

    let mut screen = Screen::new(80, 24);
    screen.feed(&inputs[2].1[..CHUNK_BYTES]);
    let start = Instant::now();
    let bytes: usize = (0..1_000).map(|_| black_box(screen.ansi()).len()).sum();
    println!("snapshot 80x24: {:.0} µs, {} bytes", start.elapsed().as_secs_f64() * 1e3, bytes / 1_000);
    let progress: String = (0..1_000).map(|number| format!("\rprogress {number}")).collect();
    let start = Instant::now();
    (0..100).for_each(|_| drop(black_box(terminal::render(progress.as_bytes(), 80))));
    println!("render of 1,000 \\r progress: {:.0} µs", start.elapsed().as_secs_f64() * 1e4);
    let start = Instant::now();
    (0..1_000).for_each(|_| drop(black_box(terminal::render(b"\x1b[31mx\x1b[0m\r\ny\r", 80))));
    println!("render of a short command: {:.1} µs", start.elapsed().as_secs_f64() * 1e3);
}
