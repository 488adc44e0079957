//! The store on a disk that serves, on one that does not, and with every part of its file damaged.

use std::fs;

use super::writer::READERS_MAX;
use super::*;

fn session(id: &str, owner: &str, created_us: u64, ended_us: Option<u64>) -> SessionRow {
    SessionRow { id: id.into(), owner: owner.into(), name: None, created_us, ended_us, key: Some("k".into()) }
}

fn command(session: &str, id: u32) -> HistoryRow {
    HistoryRow {
        session: session.into(),
        id,
        started_us: 6,
        ended_us: Some(7),
        lasted_us: Some(3),
        status: "completed".into(),
        exit: Some(0),
        start_offset: 10,
        end_offset: 20,
        command: format!("echo {id} {}", "x".repeat(200)),
        boundary: Some("attested".into()),
    }
}

/// A file with some pages of rows, as a server in peace leaves it.
fn filled(path: &Path) {
    let store = Store::open(path).expect("a fresh store");
    for number in 0..60 {
        let id = format!("s0-{number:010}");
        store.put_session(session(&id, "me", number, Some(number + 1)));
        (0..3).for_each(|c| store.put_command(command(&id, c)));
    }
    store.flush().expect("written");
}

fn ended(store: &Store, wanted: &SessionQuery<'_>) -> (Vec<String>, usize) {
    store.ended(wanted).expect("a query")
}

#[test]
fn rows_are_read_back_and_a_damaged_file_is_put_aside() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("store.db");
    let session = session("s0-a", "me", 5, Some(9));
    let command = command("s0-a", 1);
    {
        let store = Store::open(&path).expect("a fresh store");
        store.put_session(session.clone());
        store.put_command(command.clone());
        store.flush().expect("written");
        assert_eq!(store.sessions().expect("a query"), [session]);
        assert_eq!(store.commands("s0-a", &[], 10, 0).expect("a query"), (vec![command.clone()], 1));
        assert_eq!(store.commands("s0-a", &[], 10, 1).expect("a query"), (vec![], 1));
        assert_eq!(store.commands("s0-a", &[1], 10, 0).expect("a query"), (vec![], 0));
        assert_eq!(store.command("s0-a", 1).expect("a query"), Some(command));
        store.forget("s0-a");
        store.flush().expect("written");
        assert_eq!(store.sessions().expect("a query"), []);
    }
    fs::write(&path, b"this is not a database, and long enough to be taken for one ................").expect("a write");
    let store = Store::open(&path).expect("a fresh store in place of the damaged one");
    assert_eq!(store.sessions().expect("a query"), []);
    assert!(dir.path().join("store.damaged").exists());
}

#[test]
fn the_companions_of_a_file_go_aside_with_it() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let files = |name: &str| ["", "-wal", "-shm"].map(|end| dir.path().join(format!("{name}{end}")));
    // The log of another file would be taken for this one's.
    files("store.damaged").iter().for_each(|file| fs::write(file, "older").expect("a write"));
    fs::write(&files("store.db")[0], "db").expect("a write");
    fs::write(&files("store.db")[1], "wal").expect("a write");
    file::put_aside(&dir.path().join("store.db")).expect("renamed");
    assert!(files("store.db").iter().all(|file| !file.exists()));
    assert_eq!(
        files("store.damaged").map(|file| fs::read_to_string(file).ok()),
        [Some("db".into()), Some("wal".into()), None]
    );
    file::remove_aside(&dir.path().join("store.db"));
    assert!(files("store.damaged").iter().all(|file| !file.exists()));
}

#[test]
// promise: damage-2
fn a_file_of_another_schema_is_set_aside_with_its_rows_and_a_new_one_is_begun() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("store.db");
    filled(&path);
    Connection::open(&path).and_then(|c| c.execute_batch("PRAGMA user_version = 4")).expect("an earlier file");
    let store = Store::open(&path).expect("a fresh store in place of the other one");
    assert_eq!(store.sessions().expect("a query"), []);
    let aside = Connection::open(dir.path().join("store.damaged")).expect("set aside");
    let rows = aside.query_row("SELECT count(*) FROM sessions", [], |r| r.get::<_, i64>(0));
    assert_eq!(rows, Ok(60));
    store.put_session(session("s0-again", "me", 1, Some(2)));
    store.flush().expect("written");
    assert_eq!(store.sessions().expect("a query").len(), 1);
}

#[test]
fn ended_sessions_are_counted_filtered_and_given_by_the_page() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(&dir.path().join("store.db")).expect("a fresh store");
    for number in 0..30_u64 {
        let owner = if number % 3 == 0 { "ann" } else { "bob" };
        let ended_us = (number != 7).then_some(100 + number);
        store.put_session(SessionRow {
            name: (number % 10 == 1).then(|| "build".to_owned()),
            ..session(&format!("s0-{number:02}"), owner, number, ended_us)
        });
        if number == 15 {
            store.flush().expect("written");
        }
    }
    let ids = |numbers: &[u64]| numbers.iter().map(|n| format!("s0-{n:02}")).collect::<Vec<_>>();
    let page = |offset, is_newest_first| SessionQuery { limit: 3, offset, is_newest_first, ..SessionQuery::default() };
    // The same whether a row is written or waits to be.
    for _ in 0..2 {
        assert_eq!(ended(&store, &page(0, false)), (ids(&[0, 1, 2]), 29));
        assert_eq!(ended(&store, &page(6, false)), (ids(&[6, 8, 9]), 29));
        assert_eq!(ended(&store, &page(28, false)), (ids(&[29]), 29));
        assert_eq!(ended(&store, &page(0, true)), (ids(&[29, 28, 27]), 29));
        let of_ann = SessionQuery { owner: Some("ann"), ..page(2, false) };
        assert_eq!(ended(&store, &of_ann), (ids(&[6, 9, 12]), 10));
        let named = SessionQuery { name: Some("build"), ..page(0, true) };
        assert_eq!(ended(&store, &named), (ids(&[21, 11, 1]), 3));
        let (living, ending) = (ids(&[8, 29]), ids(&[7]));
        let now = SessionQuery { living: &living, ending: &ending, ..page(6, false) };
        assert_eq!(ended(&store, &now), (ids(&[6, 7, 9]), 28));
        store.flush().expect("written");
    }
    store.forget("s0-00");
    assert_eq!(ended(&store, &page(0, false)), (ids(&[1, 2, 3]), 28));
    store.flush().expect("written");
    assert_eq!(ended(&store, &page(0, false)), (ids(&[1, 2, 3]), 28));
}

/// The steps of the database for pages so far.
fn steps(store: &Store) -> i32 {
    let reads = locked(&store.state.reads);
    let of = |sql| {
        let query = reads.connection.prepare_cached(sql).expect("a query");
        query.get_status(rusqlite::StatementStatus::VmStep)
    };
    of(KNOWN_COMMANDS) + of(&page_of_commands())
}

#[test]
fn a_page_of_the_history_costs_the_page_wherever_it_is() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(&dir.path().join("store.db")).expect("a fresh store");
    for id in 1..=5_000 {
        store.put_command_in_time(command("s0-many", id));
        if id <= 100 {
            store.put_command_in_time(command("s0-few", id));
        }
    }
    store.flush().expect("written");
    // The first runs while the newest end, as a command in the background does.
    let page = |session: &'static str, newest: u32, offset: usize| {
        let left_out: Vec<u32> = std::iter::once(1).chain(newest - 5..=newest + 2).collect();
        let before = steps(&store);
        let (rows, total) = store.commands(session, &left_out, 10, offset).expect("a query");
        assert_eq!(total as u32, newest - 7);
        let first = 2 + offset as u32;
        assert_eq!(rows.iter().map(|row| row.id).collect::<Vec<_>>(), (first..first + 10).collect::<Vec<_>>());
        steps(&store) - before
    };
    let short = page("s0-few", 100, 0);
    for offset in [0, 100, 2_500, 4_983] {
        let steps = page("s0-many", 5_000, offset);
        assert!(steps <= 2 * short, "{steps} steps at {offset}, {short} in a short history");
    }
    store.put_command_in_time(command("s0-many", 5_000));
    store.flush().expect("written");
    assert_eq!(store.commands("s0-many", &[], 1, 4_999).expect("a query").1, 5_000, "one that is written again");
}

#[test]
fn the_pages_of_any_history_equal_its_whole_list() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(&dir.path().join("store.db")).expect("a fresh store");
    let cases: [(&[u32], &[u32]); 7] = [
        (&[], &[]),
        (&[], &[1, 2]),
        (&[1, 2, 3, 4], &[]),
        (&[1, 2, 3, 4, 5, 6], &[2, 5, 6, 7]),
        (&[2, 3, 5, 6], &[1, 4, 6]),
        (&[3, 4, 9, 12], &[4, 13]),
        (&[5, 6, 7], &[5, 6, 7]),
    ];
    for (number, (stored, left_out)) in cases.into_iter().enumerate() {
        let id = format!("s0-{number}");
        stored.iter().for_each(|n| store.put_command(command(&id, *n)));
        store.flush().expect("written");
        let all: Vec<u32> = stored.iter().copied().filter(|n| !left_out.contains(n)).collect();
        for offset in 0..7 {
            let (rows, total) = store.commands(&id, left_out, 2, offset).expect("a query");
            let page: Vec<u32> = all.iter().copied().skip(offset).take(2).collect();
            let ids: Vec<u32> = rows.iter().map(|row| row.id).collect();
            assert_eq!((ids, total), (page, all.len()), "{stored:?} without {left_out:?} from {offset}");
        }
    }
}

#[test]
// promise: stop-6
fn nothing_of_a_forgotten_session_stays_in_the_files() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("store.db");
    let store = Store::open(&path).expect("a fresh store");
    for id in ["s0-gone", "s0-kept"] {
        store.put_session(session(id, "me", 1, Some(2)));
        let rows = (0..50).map(|n| HistoryRow { command: format!("echo {id} {}", "x".repeat(900)), ..command(id, n) });
        rows.for_each(|row| store.put_command(row));
    }
    store.flush().expect("written");
    store.forget("s0-gone");
    store.flush().expect("written");
    let mut bytes = Vec::new();
    for file in fs::read_dir(dir.path()).expect("there").flatten() {
        bytes.extend(fs::read(file.path()).expect("readable"));
    }
    let holds = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    assert!(holds(b"echo s0-kept") && !holds(b"s0-gone"));
    assert_eq!(store.command("s0-kept", 3).expect("a query").map(|c| c.id), Some(3));
}

/// A damaged file gives a reader all rows or an error, and then a fresh file takes rows again.
#[tokio::test]
// promise: damage-2
async fn damage_anywhere_is_found_and_the_file_is_begun_anew() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let sound = dir.path().join("sound.db");
    filled(&sound);
    let whole = fs::read(&sound).expect("there");
    let pages = whole.len() / 4096;
    assert!(pages > 10, "{pages}");
    let mut found = 0;
    for page in 0..pages {
        let path = dir.path().join(format!("{page}.db"));
        let mut bytes = whole.clone();
        bytes[page * 4096..(page + 1) * 4096].fill(0xa5);
        fs::write(&path, &bytes).expect("a write");
        let store = Store::open(&path).expect("it opens in any case");
        let is_aside = fs::exists(path.with_extension("damaged")).expect("it can be looked at");
        if !is_aside {
            // The writer looks at every page before it writes anything.
            let _ = store.flush();
            assert!(store.is_damaged(), "page {page}");
            store.calls().await;
            store.begin_anew().expect("a fresh one");
            found += 1;
        }
        store.put_session(session("s0-again", "me", 1, Some(2)));
        store.flush().expect("written");
        assert_eq!(store.sessions().expect("a query").len(), 1, "page {page}");
        assert!(fs::exists(path.with_extension("damaged")).expect("it can be looked at"));
    }
    assert!(found > pages / 2, "{found} of {pages}");
}

#[test]
// promise: disk-2
fn a_disk_without_room_is_not_damage_and_rows_wait_for_it() {
    // A file system of a few pages; without root there is none.
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("store.db");
    filled(&path);
    let before = fs::read(&path).expect("there");
    // If no file can be made beside it, the log cannot be made either.
    let blocked = dir.path().join("store.db-wal");
    fs::create_dir(&blocked).expect("made");
    let store = Store::open(&path).expect("it opens in any case");
    store.put_session(session("s0-fresh", "me", 1_000, Some(1_001)));
    assert!(matches!(store.flush(), Err(StoreError::Unavailable(_))));
    assert!(!store.is_damaged() && !path.with_extension("damaged").exists());
    assert_eq!(fs::read(&path).expect("there"), before);
    fs::remove_dir(&blocked).expect("removed");
    store.flush().expect("written");
    let newest = SessionQuery { limit: 1, is_newest_first: true, ..SessionQuery::default() };
    assert_eq!(ended(&store, &newest), (vec!["s0-fresh".to_owned()], 61));
}

#[test]
fn the_stored_cursors_of_a_session_are_bounded_and_the_farthest_behind_goes_first() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Store::open(&dir.path().join("store.db")).expect("a fresh store");
    let max = READERS_MAX as u64;
    let reader = |session: &str, number: u64| (session.to_owned(), format!("me\n{number}"));
    store.put_read_cursor(reader("s0-b", 0), 1);
    for number in 0..=max {
        store.put_read_cursor(reader("s0-a", number), 10 + number);
        if number % 500 == 0 {
            store.flush().expect("written");
        }
    }
    store.flush().expect("written");
    let kept = |session, number| store.read_cursor(&reader(session, number)).expect("a query");
    assert_eq!((kept("s0-a", 0), kept("s0-a", 1), kept("s0-a", max)), (None, Some(11), Some(10 + max)));
    assert_eq!(kept("s0-b", 0), Some(1), "another session's is its own");
}

/// Each value that a query answers, with another value in its place.
#[test]
// promise: damage-4
fn no_changed_value_of_a_row_is_answered() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let sound = dir.path().join("sound.db");
    filled(&sound);
    let store = Store::open(&sound).expect("it is sound");
    store.put_read_cursor(("s0-0000000007".to_owned(), "me".to_owned()), 70);
    store.flush().expect("written");
    drop(store);
    let values = [
        ("sessions", ["owner", "name", "created_us", "ended_us", "key"].as_slice()),
        (
            "commands",
            &[
                "started_us",
                "ended_us",
                "status",
                "exit",
                "start_offset",
                "end_offset",
                "command",
                "boundary",
                "lasted_us",
            ],
        ),
        ("looks", &["read_to"]),
        ("counts", &["commands"]),
    ];
    let columns = values.iter().flat_map(|(table, columns)| columns.iter().map(move |column| (*table, *column)));
    for (table, column) in columns {
        let path = dir.path().join(format!("{table}-{column}.db"));
        fs::copy(&sound, &path).expect("copied");
        let connection = Connection::open(&path).expect("it opens");
        let is_session = if table == "sessions" { "id" } else { "session" };
        let change = format!(
            "UPDATE {table} SET {column} = CASE typeof({column}) WHEN 'integer' THEN {column} + 1 ELSE 'other' END
             WHERE {is_session} = 's0-0000000007'"
        );
        assert!(connection.execute(&change, []).expect("changed") > 0, "{table}.{column}");
        drop(connection);
        let store = Store::open(&path).expect("it opens");
        let answer = match table {
            "sessions" => Some(store.sessions().map(drop)),
            "commands" => Some(store.commands("s0-0000000007", &[], 10, 0).map(drop)),
            "looks" => Some(store.read_cursor(&("s0-0000000007".to_owned(), "me".to_owned())).map(drop)),
            _ => None,
        };
        assert!(answer.is_none_or(|answer| matches!(answer, Err(StoreError::Damaged(_)))), "{table}.{column}");
        // The writer looks at every row before it writes anything.
        let _ = store.flush();
        assert!(store.is_damaged(), "{table}.{column}");
    }
}
