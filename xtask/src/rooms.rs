//! The rooms of the code: how much a reader must know to read one file.
//!
//! * A file names at most [`NAMED_MAX`] other files of its crate. The gate counts the modules on the paths as they are written: many
//!   names from one module count once, and a module that re-exports counts as one.
//! * The methods of a type are in at most [`METHODS_MAX`] files.
//! * The folders of [`HOUSE`] do not import each other in a circle. The files beside the folders belong to no room.
//!
//! The excuses are exact: one that is too large, or no longer needed, is a violation, so that they only shrink.

use crate::circles::Imports;
use crate::tree::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// The crates in which files and methods are counted.
const CRATES: [&str; 4] = ["crates/cli/", "crates/core/", "crates/holder/", "crates/server/"];

/// The most files of its crate that a file names.
const NAMED_MAX: usize = 15;

/// The files that name more. Each line of these tables names another part, and a split would hide the table: `main.rs` has the
/// subcommands, `perform.rs` the actions, `routes.rs` the endpoints and `services.rs` the parts of a server, which `lifecycle.rs` makes
/// once. `authentication` names each way by which a caller proves who it is.
const NAMED_EXCUSES: &[(&str, usize)] = &[
    ("crates/cli/src/main.rs", 37),
    ("crates/core/src/sessions/lifecycle.rs", 25),
    ("crates/core/src/sessions/perform.rs", 34),
    ("crates/core/src/sessions/services.rs", 17),
    ("crates/core/src/sessions/session/machine/context.rs", 16),
    ("crates/server/src/rest/routes.rs", 22),
    ("crates/server/src/serve/authentication/mod.rs", 16),
];

/// The most files with methods of one type.
const METHODS_MAX: usize = 3;

/// The types whose methods are in more files.
const METHODS_EXCUSES: &[(&str, usize)] = &[("Session", 7)];

/// The folder whose folders are rooms.
const HOUSE: &str = "crates/core/src/sessions/";

pub fn check(imports: &Imports) -> Vec<Violation> {
    let named: Vec<Count> =
        imports.named_files().into_iter().map(|(file, named)| Count::of(file, file, &named)).collect();
    let methods = imports.files_with_methods();
    let methods: Vec<Count> = methods.iter().map(|((file, name), files)| Count::of(file, name, files)).collect();
    let mut found = over(&named, NAMED_MAX, NAMED_EXCUSES, "files are named");
    found.extend(over(&methods, METHODS_MAX, METHODS_EXCUSES, "files have methods of it"));
    found.extend(circle(imports));
    found
}

/// How many files something takes.
struct Count {
    file: String,
    name: String,
    count: usize,
    files: String,
}

impl Count {
    fn of(file: &str, name: &str, files: &BTreeSet<&str>) -> Self {
        let all: Vec<&str> = files.iter().copied().collect();
        Self { file: file.to_owned(), name: name.to_owned(), count: files.len(), files: all.join("\n    ") }
    }
}

fn over(counts: &[Count], most: usize, excuses: &[(&str, usize)], what: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for Count { file, name, count, files } in
        counts.iter().filter(|it| CRATES.iter().any(|it_is| it.file.starts_with(it_is)))
    {
        let excused = excuses.iter().find(|(excused, _)| excused == name).map_or(most, |(_, excused)| *excused);
        if *count > excused {
            let what = format!("`{name}`: {count} {what}, and {excused} is the most:\n    {files}");
            found.push(Violation::at(file, 1, what));
        }
    }
    for (name, excused) in excuses {
        let count = counts.iter().filter(|it| it.name == *name).map(|it| it.count).max().unwrap_or_default();
        if count < *excused || *excused <= most {
            found.push(Violation::at(
                "xtask/src/rooms.rs",
                1,
                format!("`{name}` is excused for {excused} and has {count}"),
            ));
        }
    }
    found
}

/// The circles of rooms, each with the files that close it.
fn circle(imports: &Imports) -> Vec<Violation> {
    let room = |file: &str| file.strip_prefix(HOUSE)?.split_once('/').map(|(room, _)| room.to_owned());
    let mut ways: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (from, to) in imports.between_files() {
        if let (Some(from_room), Some(to_room)) = (room(from), room(to))
            && from_room != to_room
        {
            let files = format!("\n    {} -> {}", &from[HOUSE.len()..], &to[HOUSE.len()..]);
            ways.entry(from_room).or_default().entry(to_room).or_default().push(files);
        }
    }
    let ahead = |room: &str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![room];
        while let Some(room) = open.pop() {
            let next = ways.get(room).into_iter().flat_map(BTreeMap::keys);
            open.extend(next.map(String::as_str).filter(|next| reached.insert(next.to_string())));
        }
        reached
    };
    let mut found = Vec::new();
    for (from, next) in &ways {
        for (to, files) in next.iter().filter(|(to, _)| ahead(to).contains(from)) {
            let what = format!("`{from}` imports `{to}`, which imports it, perhaps by other rooms:{}", files.concat());
            found.push(Violation::at(&format!("{HOUSE}{from}"), 1, what));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::TextFile;

    fn imports(files: &[(&str, &str)]) -> Imports {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: format!("crates/core/src/{path}"),
            text: (*text).to_owned(),
        };
        Imports::read(&files.iter().map(file).collect::<Vec<_>>())
    }

    fn complaints(found: &[Violation]) -> Vec<String> {
        found.iter().filter_map(|violation| violation.what.lines().next().map(str::to_owned)).collect()
    }

    fn counted(name: &str, count: usize) -> Count {
        Count { file: format!("crates/core/src/{name}.rs"), name: name.to_owned(), count, files: String::new() }
    }

    #[test]
    fn a_file_names_the_modules_on_its_paths_and_a_re_export_is_one() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\n"),
            ("a.rs", "use crate::b::{One, Two, inner::Three};\nfn f() -> One { crate::c::make(Two, Three) }\n"),
            ("b/mod.rs", "mod hidden;\npub mod inner;\npub use hidden::One;\npub struct Two;\n"),
            ("b/hidden.rs", "pub struct One;\n"),
            ("b/inner.rs", "pub struct Three;\n"),
            ("c.rs", "pub fn make() {}\n#[cfg(test)]\nmod tests { use crate::a::f; }\n"),
        ];
        let imports = imports(&files);
        let named = imports.named_files();
        let path = |name: &str| format!("crates/core/src/{name}.rs");
        let of = |name: &str| named[path(name).as_str()].iter().copied().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of("a"), [path("b/inner"), path("b/mod"), path("c")]);
        assert!(of("c").is_empty() && of("b/mod").is_empty());
    }

    #[test]
    fn the_methods_of_a_type_are_found_in_each_file_and_those_of_traits_are_not() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "pub struct State<T>(T);\nimpl<T> State<T> { fn new() {} }\nimpl<T> Drop for State<T> {}\n"),
            (
                "b.rs",
                "use crate::a::State;\nimpl State<fn() -> u8> where u8: Copy {\n    fn f(x: impl Fn()) {}\n}\nstruct State2;\nimpl State2 {}\n",
            ),
        ];
        let imports = imports(&files);
        let methods = imports.files_with_methods();
        let counts: Vec<_> = methods.iter().map(|((_, name), files)| (name.as_str(), files.len())).collect();
        assert_eq!(counts, [("State", 2), ("State2", 1)]);
    }

    #[test]
    fn an_excuse_is_exact_and_needed() {
        let counts = [counted("a", 16), counted("b", 15), counted("c", 20)];
        let told = |excuses: &[(&str, usize)]| complaints(&over(&counts, 15, excuses, "files"));
        assert_eq!(told(&[("a", 16), ("c", 20)]), [""; 0]);
        assert_eq!(told(&[("c", 20)]), ["`a`: 16 files, and 15 is the most:"]);
        assert_eq!(told(&[("a", 16), ("c", 21)]), ["`c` is excused for 21 and has 20"]);
        assert_eq!(told(&[("a", 16), ("b", 15), ("c", 20)]), ["`b` is excused for 15 and has 15"]);
    }

    #[test]
    fn rooms_that_import_each_other_by_a_third_one_are_found() {
        let files = |back: &str| {
            [
                ("lib.rs", "mod sessions;\n".to_owned()),
                ("sessions/mod.rs", "mod a;\nmod b;\nmod c;\nmod flat;\n".to_owned()),
                ("sessions/a/mod.rs", "use crate::sessions::b::B;\npub struct A;\n".to_owned()),
                ("sessions/b/mod.rs", "use crate::sessions::c::C;\npub struct B;\n".to_owned()),
                ("sessions/c/mod.rs", format!("use crate::sessions::{back};\npub struct C;\n")),
                ("sessions/flat.rs", "use super::a::A;\npub struct Flat;\n".to_owned()),
            ]
        };
        let of = |back| {
            let files = files(back);
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            complaints(&circle(&imports(&files)))
        };
        assert_eq!(of("flat::Flat"), [""; 0]);
        let expected = ["a` imports `b", "b` imports `c", "c` imports `a"];
        assert_eq!(of("a::A"), expected.map(|pair| format!("`{pair}`, which imports it, perhaps by other rooms:")));
    }
}
