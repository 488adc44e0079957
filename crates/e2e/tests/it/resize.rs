//! Sizes: a storm of changes, and sizes that no terminal has.

use api::{CreateRequest, Dimensions, ErrorCode};
use e2e::{Random, Server};

#[tokio::test]
async fn after_a_storm_of_changes_the_last_size_holds() {
    let server = Server::start();
    let shell = server.session().await;
    let mut random = Random::seeded();
    let counter = shell
        .run_until(
            // The shell itself keeps the foreground: the kernel signals the foreground group.
            "n=0; trap 'n=1' WINCH; echo armed; for i in 1 2 3 4 5 6 7 8; do read -t 0.25 _ || :; done; echo $n",
            "armed",
        )
        .await;
    for _ in 0..200 {
        let side = |random: &mut Random| u16::try_from(1 + random.below(1_000)).expect("small");
        let next = Dimensions { cols: side(&mut random), rows: side(&mut random) };
        let answer = server.client().resize(&shell.id, next).await.expect("a size that terminals have");
        assert_eq!(answer.dimensions, next);
    }
    let last = Dimensions { cols: 132, rows: 43 };
    server.client().resize(&shell.id, last).await.expect("a usual size");
    assert_eq!(shell.end_of(&counter).await.output.as_deref(), Some("armed\n1\n"));
    assert_eq!(shell.gives("stty size; echo $COLUMNS $LINES").await, (0, "43 132\n132 43\n".to_owned()));
    assert_eq!(shell.screen().await.len(), 43);
    server.kill9();
    server.again();
    assert_eq!((shell.look().await.dimensions, shell.gives("stty size").await.1), (last, "43 132\n".to_owned()));
}

#[tokio::test]
async fn a_size_that_no_terminal_has_is_refused_and_changes_nothing() {
    let server = Server::start();
    let shell = server.session().await;
    let before = shell.look().await.dimensions;
    for (cols, rows) in [(0, 24), (80, 0), (1_001, 24), (80, 1_001), (65_535, 65_535)] {
        let refused = server.client().resize(&shell.id, Dimensions { cols, rows }).await.expect_err("no size");
        assert_eq!(refused.code(), Some(ErrorCode::InvalidField), "{cols} × {rows}");
        let wish = CreateRequest { dimensions: Some(Dimensions { cols, rows }), ..CreateRequest::default() };
        let refused = server.client().create(&wish, None).await.expect_err("no size");
        assert_eq!(refused.code(), Some(ErrorCode::InvalidField), "{cols} × {rows}");
    }
    assert_eq!(shell.look().await.dimensions, before);
    let smallest = Dimensions { cols: 1, rows: 1 };
    server.client().resize(&shell.id, smallest).await.expect("small, but a size");
    assert_eq!(shell.gives("echo narrow").await, (0, "narrow\n".to_owned()));
}
