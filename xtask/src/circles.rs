//! Import circles: two files of which each names something that the other defines, directly or by way of further files. Neither can
//! be read, tested or moved without the other.
//!
//! The modules are found as the compiler finds them, from each target's root by `mod`, and without what is behind
//! `#[cfg(test)]`. A name leads to the file that defines it, through every re-export; the line that re-exports uses nothing.

use crate::source;
use crate::tree::{TextFile, Violation};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The words before the name of an item.
const ITEMS: [&str; 8] = ["const", "enum", "fn", "static", "struct", "trait", "type", "union"];

/// The files of all targets, and what each takes from the others.
#[derive(Default)]
pub struct Imports {
    /// Their paths from the workspace's root.
    files: Vec<String>,
    modules: Vec<Module>,
    /// The names that one file takes from another, by their places in `files`.
    edges: BTreeMap<(usize, usize), BTreeSet<String>>,
    /// The modules whose file was not found.
    lost: Vec<Violation>,
}

/// A module: a file, or `mod name { … }` in one.
struct Module {
    file: usize,
    /// The target's root.
    root: usize,
    parent: usize,
    /// The folder with its children's files.
    folder: String,
    children: BTreeMap<String, usize>,
    /// The names that it defines, each with whether others may see it.
    items: BTreeMap<String, bool>,
    imports: Vec<Import>,
    /// The paths in its code.
    paths: Vec<Vec<String>>,
    /// The types with methods in it: the paths behind `impl`, of no trait.
    with_methods: Vec<Vec<String>>,
}

/// One name of a `use` declaration, or `*`.
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

/// A path's end.
enum Found {
    Module(usize),
    /// A name that a file defines.
    Item(usize, String),
    /// Something of another crate.
    Foreign,
}

impl Imports {
    /// Reads the targets of `crates/*/src` and `xtask/src`.
    pub fn read(files: &[TextFile]) -> Self {
        let texts: BTreeMap<&str, &str> = files.iter().map(|file| (file.path.as_str(), file.text.as_str())).collect();
        let mut imports = Self::default();
        for path in texts.keys().filter(|path| is_root(path)) {
            imports.read_target(path, &texts);
        }
        for from in 0..imports.modules.len() {
            imports.connect(from);
        }
        imports
    }

    /// How many files were read, and how many pairs of them import.
    pub fn counted(&self) -> (usize, usize) {
        (self.files.len(), self.edges.len())
    }

    /// The files that each file takes names from.
    pub fn between_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.edges.keys().map(|(from, to)| (self.files[*from].as_str(), self.files[*to].as_str()))
    }

    /// The files whose modules each file names, as its paths are written: behind a re-export is the module that re-exports.
    pub fn named_files(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut named: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (from, module) in self.modules.iter().enumerate() {
            let private = module.imports.iter().filter(|import| !import.is_public).map(|import| &import.path);
            let ways = private.chain(&module.paths).filter_map(|path| self.way(from, path));
            let files = ways.map(|to| self.modules[to].file).filter(|file| *file != module.file);
            let known = named.entry(self.files[module.file].as_str()).or_default();
            known.extend(files.map(|file| self.files[file].as_str()));
        }
        named
    }

    /// The last module on a path; none if its first name is not known here.
    fn way(&self, from: usize, path: &[String]) -> Option<usize> {
        let leads = |len: usize| match self.find(from, &path[..len], &mut Vec::new()) {
            Some(Found::Module(module)) => Some(module),
            _ => None,
        };
        if let Some(module) = (1..=path.len()).rev().find_map(leads) {
            return Some(module);
        }
        let import = self.modules[from].imports.iter().find(|import| Some(&import.name) == path.first())?;
        if import.path == path { None } else { self.way(from, &import.path) }
    }

    /// The files with methods of each type, by its file and its name.
    pub fn files_with_methods(&self) -> BTreeMap<(&str, String), BTreeSet<&str>> {
        let mut found: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
        for (at, module) in self.modules.iter().enumerate() {
            for path in &module.with_methods {
                if let Some(Found::Item(file, name)) = self.find(at, path, &mut Vec::new()) {
                    let files = found.entry((self.files[file].as_str(), name)).or_default();
                    files.insert(self.files[module.file].as_str());
                }
            }
        }
        found
    }

    /// Every circle, with the names on each way inside it.
    pub fn check(&self) -> Vec<Violation> {
        let mut found = self.lost.clone();
        let ahead: Vec<BTreeSet<usize>> = (0..self.files.len()).map(|file| self.ahead(file)).collect();
        let mut told = BTreeSet::new();
        for file in 0..self.files.len() {
            let circle: BTreeSet<usize> =
                ahead[file].iter().copied().filter(|other| ahead[*other].contains(&file)).collect();
            if circle.len() > 1 && told.insert(circle.clone()) {
                found.push(self.circle(&circle));
            }
        }
        found
    }

    /// The files that a file reaches by imports, in one step or more.
    fn ahead(&self, file: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![file];
        while let Some(at) = open.pop() {
            let next = self.edges.range((at, 0)..=(at, usize::MAX)).map(|((_, to), _)| *to);
            open.extend(next.filter(|to| reached.insert(*to)));
        }
        reached
    }

    fn circle(&self, circle: &BTreeSet<usize>) -> Violation {
        let mut paths: Vec<&str> = circle.iter().map(|file| self.files[*file].as_str()).collect();
        paths.sort_unstable();
        let mut what = format!("{} files import each other in a circle:", paths.len());
        for path in &paths {
            what += &format!("\n    {path}");
        }
        what += "\n  by these names; move what both need into a file below both:";
        let mut lines = Vec::new();
        for ((from, to), names) in &self.edges {
            if circle.contains(from) && circle.contains(to) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                lines.push(format!("\n    {} -> {}: {}", self.files[*from], self.files[*to], names.join(", ")));
            }
        }
        lines.sort_unstable();
        what += &lines.concat();
        Violation::at(paths[0], 1, what)
    }

    fn read_target(&mut self, root: &str, texts: &BTreeMap<&str, &str>) {
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        let first = self.modules.len();
        let file = self.add_file(root);
        self.modules.push(Module::new(file, first, first, folder.to_owned()));
        let mut unread = VecDeque::from([first]);
        while let Some(module) = unread.pop_front() {
            let path = self.files[self.modules[module].file].clone();
            let code = source::shipped(&source::code(texts[path.as_str()]));
            for (parent, name) in self.read_code(module, &tokens(&code)) {
                let folder = format!("{}/{name}", self.modules[parent].folder);
                let places = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
                let Some(place) = places.iter().find(|place| texts.contains_key(place.as_str())) else {
                    let what = format!("`mod {name}`: neither {} nor {} is there", places[0], places[1]);
                    self.lost.push(Violation::at(&path, 1, what));
                    continue;
                };
                let file = self.add_file(place);
                unread.push_back(self.add_module(file, parent, &name));
            }
        }
    }

    fn add_file(&mut self, path: &str) -> usize {
        self.files.push(path.to_owned());
        self.files.len() - 1
    }

    fn add_module(&mut self, file: usize, parent: usize, name: &str) -> usize {
        let module = self.modules.len();
        let folder = format!("{}/{name}", self.modules[parent].folder);
        self.modules.push(Module::new(file, self.modules[parent].root, parent, folder));
        self.modules[parent].children.insert(name.to_owned(), module);
        module
    }

    /// Reads a file into its module; returns the modules that are declared in it and have files of their own.
    fn read_code(&mut self, module: usize, tokens: &[&str]) -> Vec<(usize, String)> {
        let file = self.modules[module].file;
        let mut declared = Vec::new();
        // Each open module of this file with the number of braces around its items.
        let mut open = vec![(module, 0)];
        let mut depth = 0_usize;
        let mut is_public = false;
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let (module, floor) = open.last().copied().unwrap_or((module, 0));
            let next = tokens.get(at + 1).copied().unwrap_or_default();
            let before = at.checked_sub(1).map_or("", |before| tokens[before]);
            at += 1;
            match *token {
                "pub" => {
                    is_public = true;
                    // The module in brackets may see the item; the file does not use it.
                    if next == "(" {
                        at += tokens[at..].iter().position(|token| *token == ")").map_or(0, |len| len + 1);
                    }
                }
                "impl" if depth == floor => self.modules[module].with_methods.extend(read_impl(&tokens[at..])),
                "use" if next != "<" => {
                    let end = tokens[at..].iter().position(|token| *token == ";").map_or(tokens.len(), |len| at + len);
                    self.modules[module].imports.extend(read_use(&tokens[at..end], is_public));
                    at = end;
                }
                "mod" if is_name(next) => match tokens.get(at + 1) {
                    Some(&"{") => {
                        depth += 1;
                        open.push((self.add_module(file, module, next), depth));
                        is_public = false;
                        at += 2;
                    }
                    _ => {
                        declared.push((module, next.to_owned()));
                        at += 1;
                    }
                },
                word if ITEMS.contains(&word) && is_name(next) && !ITEMS.contains(&next) && before != "*" => {
                    if depth == floor {
                        self.modules[module].items.insert(next.to_owned(), is_public);
                    }
                    at += 1;
                }
                "{" => {
                    is_public = false;
                    depth += 1;
                }
                "}" => {
                    is_public = false;
                    if open.len() > 1 && depth == floor {
                        open.pop();
                    }
                    depth = depth.saturating_sub(1);
                }
                ";" => is_public = false,
                word if is_name(word) => {
                    let mut path = vec![word.to_owned()];
                    // A field, a method, or the rest of a path through a type.
                    let is_inner = [".", "::"].contains(&before);
                    while let Some(&["::", name]) = tokens.get(at..at + 2)
                        && is_name(name)
                    {
                        path.push(name.to_owned());
                        at += 2;
                    }
                    if !is_inner {
                        self.modules[module].paths.push(path);
                    }
                }
                _ => {}
            }
        }
        declared
    }

    /// Adds the edges of a module: the items at the ends of its paths and of its own imports. A module that is imported is used by
    /// the paths through it.
    fn connect(&mut self, from: usize) {
        let module = &self.modules[from];
        let file = module.file;
        let imported = module.imports.iter().filter(|import| !import.is_public && import.name != "*");
        let taken: BTreeSet<&Vec<String>> = imported.map(|import| &import.path).chain(&module.paths).collect();
        let found: Vec<Found> = taken.iter().filter_map(|path| self.find(from, path, &mut Vec::new())).collect();
        for found in found {
            if let Found::Item(to, name) = found
                && to != file
            {
                self.edges.entry((file, to)).or_default().insert(name);
            }
        }
    }

    /// The end of a path that is written in a module; none if its first name is not known here. `open` has the questions that
    /// wait for this one, because two modules can re-export all of each other.
    fn find(&self, from: usize, path: &[String], open: &mut Vec<(usize, String)>) -> Option<Found> {
        let mut at = Found::Module(from);
        for (i, name) in path.iter().enumerate() {
            let Found::Module(module) = at else { break };
            let leads_on = i + 1 < path.len();
            at = match name.as_str() {
                "crate" => Found::Module(self.modules[module].root),
                "self" => Found::Module(module),
                "super" => Found::Module(self.modules[module].parent),
                _ => match self.look_up(module, name, leads_on, false, open) {
                    Some(found) => found,
                    None if i == 0 => return None,
                    // A macro may have made it.
                    None => Found::Item(self.modules[module].file, name.clone()),
                },
            };
        }
        Some(at)
    }

    /// A name in a module. A path that leads on means the module of this name, rather than the function; a glob takes what is public.
    fn look_up(
        &self,
        module: usize,
        name: &str,
        leads_on: bool,
        by_glob: bool,
        open: &mut Vec<(usize, String)>,
    ) -> Option<Found> {
        let here = &self.modules[module];
        let child = here.children.get(name).map(|child| Found::Module(*child));
        if leads_on && child.is_some() {
            return child;
        }
        if here.items.get(name).is_some_and(|is_public| *is_public || !by_glob) {
            return Some(Found::Item(here.file, name.to_owned()));
        }
        let question = (module, name.to_owned());
        if open.contains(&question) {
            return None;
        }
        open.push(question);
        let imports = || here.imports.iter().filter(|import| import.is_public || !by_glob);
        let named = imports().find(|import| import.name == name);
        let mut found = named.map(|import| self.find(module, &import.path, open).unwrap_or(Found::Foreign)).or(child);
        for import in imports().filter(|import| import.name == "*") {
            if found.is_none()
                && let Some(Found::Module(all)) = self.find(module, &import.path, open)
            {
                found = self.look_up(all, name, leads_on, true, open);
            }
        }
        open.pop();
        found
    }
}

impl Module {
    fn new(file: usize, root: usize, parent: usize, folder: String) -> Self {
        Self {
            file,
            root,
            parent,
            folder,
            children: BTreeMap::new(),
            items: BTreeMap::new(),
            imports: Vec::new(),
            paths: Vec::new(),
            with_methods: Vec::new(),
        }
    }
}

/// Whether a file is the root of a target.
fn is_root(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let inside = match parts.as_slice() {
        ["crates", _, "src", inside @ ..] | ["xtask", "src", inside @ ..] => inside,
        _ => return false,
    };
    match inside {
        ["lib.rs" | "main.rs"] | ["bin", _, "main.rs"] => true,
        ["bin", name] => name.ends_with(".rs"),
        _ => false,
    }
}

/// The imports of the tokens between `use` and its semicolon.
fn read_use(tokens: &[&str], is_public: bool) -> Vec<Import> {
    let mut found = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut alias = None;
    // How much of the path is before each open brace.
    let mut bases = vec![0];
    // `::name` is another crate's.
    if tokens.first() == Some(&"::") {
        return found;
    }
    let mut tokens = tokens.iter().copied();
    loop {
        let token = tokens.next();
        let base = bases.last().copied().unwrap_or_default();
        match token {
            Some("{") => bases.push(path.len()),
            Some("as") => alias = tokens.next().map(str::to_owned),
            Some("," | "}") | None => {
                if path.len() > base {
                    let name = alias.take().or_else(|| path.last().cloned()).unwrap_or_default();
                    // `{self}` is the module before the brace, `*` everything in it.
                    let is_whole = path.len() > 1 && path.last().is_some_and(|last| last == "self" || last == "*");
                    let whole = path[..path.len() - usize::from(is_whole)].to_vec();
                    let name = if name == "self" { whole.last().cloned().unwrap_or_default() } else { name };
                    found.push(Import { path: whole, name, is_public });
                }
                path.truncate(base);
                if token == Some("}") {
                    bases.pop();
                    path.truncate(bases.last().copied().unwrap_or_default());
                }
            }
            Some("::") => {}
            Some(name) => path.push(name.to_owned()),
        }
        if token.is_none() {
            return found;
        }
    }
}

/// The type of the block behind `impl`, if no trait is implemented there.
fn read_impl(tokens: &[&str]) -> Option<Vec<String>> {
    let head = &tokens[..tokens.iter().position(|token| *token == "{")?];
    let mut depth = 0_usize;
    let mut path = Vec::new();
    for token in head {
        match *token {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            "for" if depth == 0 => return None,
            "where" => break,
            name if depth == 0 && is_name(name) => path.push(name.to_owned()),
            _ => {}
        }
    }
    Some(path)
}

/// The words, `::`, `..`, and every other sign alone; no lifetimes.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let from = usize::from(first == '\'');
        let word = rest[from..].find(|c| !is_word(c)).map_or(rest.len(), |len| from + len);
        let len = match first {
            _ if rest.starts_with("::") || rest.starts_with("..") => 2,
            '\'' => word,
            _ => word.max(first.len_utf8()),
        };
        found.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    found
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tree, workspace};

    /// The imports of a crate `x` with these files.
    fn imports(files: &[(&str, &str)]) -> Imports {
        let file =
            |(path, text): &(&str, &str)| TextFile { path: format!("crates/x/src/{path}"), text: (*text).to_owned() };
        Imports::read(&files.iter().map(file).collect::<Vec<_>>())
    }

    /// Each pair of files that import, with the names.
    fn edges(files: &[(&str, &str)]) -> Vec<String> {
        let imports = imports(files);
        assert_eq!(imports.lost, []);
        let short = |file: usize| imports.files[file].trim_start_matches("crates/x/src/").to_owned();
        let mut lines: Vec<String> = imports
            .edges
            .iter()
            .map(|((from, to), names)| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("{} -> {}: {}", short(*from), short(*to), names.join(", "))
            })
            .collect();
        lines.sort_unstable();
        lines
    }

    #[test]
    fn a_circle_of_two_files_is_found_with_the_names_that_make_it() {
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\npub mod c;\n"),
            ("a.rs", "use crate::b::{self, Beta};\npub struct Alpha;\nfn f(_: Beta) { b::make() }\n"),
            ("b.rs", "pub struct Beta;\npub fn make() { let _ = super::a::Alpha; }\n"),
            ("c.rs", "use crate::a::Alpha;\nuse crate::b::Beta;\n"),
        ])
        .check();
        let what = "2 files import each other in a circle:\n    crates/x/src/a.rs\n    crates/x/src/b.rs\n  \
                    by these names; move what both need into a file below both:\n    \
                    crates/x/src/a.rs -> crates/x/src/b.rs: Beta, make\n    \
                    crates/x/src/b.rs -> crates/x/src/a.rs: Alpha";
        assert_eq!(found, [Violation::at("crates/x/src/a.rs", 1, what)]);
    }

    #[test]
    fn a_circle_through_three_files_is_one_and_files_beside_it_are_in_none() {
        let found = imports(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod below;\nuse a::A;\n"),
            ("a.rs", "use crate::b::B;\nuse crate::below::Below;\npub struct A;\n"),
            ("b.rs", "use crate::c::C;\npub struct B;\n"),
            ("c.rs", "use crate::a::A;\npub struct C;\n"),
            ("below.rs", "pub struct Below;\n"),
        ])
        .check();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.starts_with("3 files") && !found[0].what.contains("below.rs"), "{}", found[0]);
    }

    #[test]
    fn a_name_leads_through_re_exports_to_the_file_that_defines_it() {
        let files = [
            ("lib.rs", "mod door;\nmod user;\n"),
            (
                "door/mod.rs",
                "mod inner;\nmod all;\npub(crate) use inner::{Deep as Renamed, Used};\npub use all::*;\nfn f(_: Used) {}\n",
            ),
            ("door/inner/mod.rs", "mod deep;\npub use deep::Deep;\npub struct Used;\n"),
            ("door/inner/deep.rs", "pub struct Deep;\n"),
            ("door/all.rs", "use super::Used;\npub enum Glob { One }\nstruct Private;\n"),
            ("user.rs", "use crate::door::Renamed;\nfn f() { crate::door::Glob::One; crate::door::Private; }\n"),
        ];
        let expected = [
            "door/all.rs -> door/inner/mod.rs: Used",
            "door/mod.rs -> door/inner/mod.rs: Used",
            "user.rs -> door/all.rs: Glob",
            "user.rs -> door/inner/deep.rs: Deep",
            "user.rs -> door/mod.rs: Private",
        ];
        assert_eq!(edges(&files), expected);
    }

    #[test]
    fn a_module_is_used_by_the_paths_through_it() {
        let files = [
            ("lib.rs", "mod a;\nmod views;\nmod idle;\n"),
            (
                "a.rs",
                "use super::{idle, views as v};\nfn f(idle: u8) -> u8 { v::text(); x.idle + v::made_by_macro() }\n",
            ),
            ("views/mod.rs", "mod text;\npub use text::text;\n"),
            ("views/text.rs", "pub fn text() {}\n"),
            ("idle.rs", "pub fn idle() {}\n"),
        ];
        assert_eq!(edges(&files), ["a.rs -> views/mod.rs: made_by_macro", "a.rs -> views/text.rs: text"]);
    }

    #[test]
    fn nested_braces_and_chains_of_super_are_followed() {
        let files = [
            ("main.rs", "mod a;\nmod b;\nfn root() {}\n"),
            ("a/mod.rs", "pub mod c;\npub mod d;\npub struct Parent;\n"),
            (
                "a/c.rs",
                "use super::{super::{b::{self, B, inner::{C as _, D}}, root}, Parent, d::{E, F as G}};\nuse ::b::X;\nuse std::b::Y;\n\
                 mod e {\n    use super::super::d::H;\n    fn f() { super::super::super::b::z(); }\n}\n",
            ),
            ("a/d.rs", "pub struct E;\npub struct F;\npub struct H;\n"),
            ("b.rs", "pub mod inner {\n    pub trait C {}\n    pub struct D;\n}\npub struct B;\npub fn z() {}\n"),
        ];
        let expected = [
            "a/c.rs -> a/d.rs: E, F, H",
            "a/c.rs -> a/mod.rs: Parent",
            "a/c.rs -> b.rs: B, C, D, z",
            "a/c.rs -> main.rs: root",
        ];
        assert_eq!(edges(&files), expected);
    }

    #[test]
    fn tests_comments_and_literals_import_nothing() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod test_support;\n"),
            (
                "a.rs",
                "pub struct A;\n#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n#[cfg(test)]\nuse crate::b::B;\n",
            ),
            (
                "b.rs",
                "// crate::a::C\nuse crate::a::A;\npub struct B;\nconst C: &str = \"crate::a::D\";\n#[cfg(test)]\nmod tests;\n",
            ),
            ("b/tests.rs", "use crate::a::E;\n"),
            ("test_support.rs", "use crate::a::E;\n"),
        ];
        assert_eq!(edges(&files), ["b.rs -> a.rs: A"]);
        assert_eq!(imports(&files).counted(), (3, 1));
    }

    #[test]
    fn modules_that_re_export_all_of_each_other_are_read_to_the_end() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use a::*;\npub use b::*;\n"),
            ("a.rs", "pub use crate::b::*;\npub use crate::*;\n"),
            ("b.rs", "pub use crate::a::*;\nfn f() { crate::Nowhere; crate::B; }\npub struct B;\n"),
        ];
        assert_eq!(edges(&files), ["b.rs -> lib.rs: Nowhere"]);
    }

    #[test]
    fn every_target_is_read_and_a_module_without_a_file_is_reported() {
        let files = [
            ("lib.rs", "mod a;\n"),
            ("main.rs", "mod b;\n"),
            ("b.rs", ""),
            ("bin/one.rs", ""),
            ("bin/two/main.rs", "mod c;\n"),
            ("bin/two/c.rs", ""),
        ];
        let imports = imports(&files);
        assert_eq!(imports.counted().0, 6);
        let what = "`mod a`: neither crates/x/src/a.rs nor crates/x/src/a/mod.rs is there";
        assert_eq!(imports.check(), [Violation::at("crates/x/src/lib.rs", 1, what)]);
    }

    #[test]
    fn the_workspace_is_read() {
        let files = tree::text_files(&workspace::root()).unwrap();
        let imports = Imports::read(&files);
        let (read, pairs) = imports.counted();
        assert!(read > 300 && pairs > 900, "{read} files, {pairs} pairs");
        // Every file that does not ship is one of tests.
        let unread = files.iter().map(|file| file.path.as_str()).filter(|path| {
            let is_source =
                path.ends_with(".rs") && (path.starts_with("xtask/") || path.split('/').nth(2) == Some("src"));
            is_source && !imports.files.iter().any(|read| read == path)
        });
        let unread: Vec<&str> = unread.filter(|path| !path.contains("test")).collect();
        assert_eq!(
            unread,
            [
                "crates/core/src/host/fake.rs",
                "crates/server/src/mcp/conformance.rs",
                "crates/server/src/mcp/task_fixtures.rs"
            ]
        );
    }
}
