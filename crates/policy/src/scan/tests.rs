//! Tests of the scan.

use super::*;

fn finds(text: &str) -> Vec<String> {
    let said = |words: &Vec<Word>| {
        words.iter().map(|word| word.text().unwrap_or("…").to_owned()).collect::<Vec<_>>().join(" ")
    };
    scan(text).commands.iter().map(said).collect()
}

#[test]
// promise: policy-3
fn a_command_is_found_at_any_depth() {
    for text in [
        "rm -rf x",
        "ls; rm -rf x",
        "ls\nrm -rf x",
        "ls & rm -rf x",
        "ls |& rm -rf x",
        "(cd a && rm -rf x)",
        "{ rm -rf x; }",
        "if ls; then rm -rf x; fi",
        "for i in a b; do rm -rf x; done",
        "for i in $(rm -rf x); do ls; done",
        "for ((i=0;i<3;i++)); do rm -rf x; done",
        "while true; do rm -rf x; done",
        "until rm -rf x; do :; done",
        "case $a in b) ls ;; (c|d) rm -rf x ;; esac",
        "case a in b) case c in d) rm -rf x ;; esac ;; esac",
        "case a in rm) ls;; esac; rm -rf x",
        "echo $(case a in b) rm -rf x;; esac)",
        "f() { rm -rf x; }; f",
        "function f { rm -rf x; }",
        "! rm -rf x",
        "time -p rm -rf x",
        "coproc rm -rf x",
        "echo $(rm -rf x)",
        "echo \"a $(rm -rf x)\"",
        "echo `rm -rf x`",
        "echo \"`rm -rf x`\"",
        "echo ${a:-$(rm -rf x)}",
        "echo $((1 + $(rm -rf x)))",
        "(( $(rm -rf x) ))",
        "echo $((1<<2))\nrm -rf x",
        "((1<<2))\nrm -rf x",
        "((rm -rf x); ls)",
        "$( (rm -rf x) )",
        "$((rm -rf x) )",
        "cat <(rm -rf x)",
        "cat > >(rm -rf x)",
        "a=$(rm -rf x)",
        "a=1 b=2 rm -rf x",
        "a=(1 2 $(rm -rf x)) ls",
        "a[$(rm -rf x)]=1",
        "declare -a a=(1 $(rm -rf x)); ls",
        "cat <<E\n$(rm -rf x)\nE",
        "cat <<'E'\n$(ls\nE\nrm -rf x",
        "cat <<-E\n\ta\n\tE\nrm -rf x",
        "bash <<E\nrm -rf x\nE",
        "bash <<< 'rm -rf x'",
        "> out rm -rf x",
        "2>&1 rm -rf x",
        "ls &> out; rm -rf x",
        "r\\m -rf x",
        "'rm' -rf x",
        "\"r\"m -rf x",
        "r''m -rf x",
        "$'rm' -rf x",
        "$'\\x72m' -rf x",
        "$'\\162m' -rf x",
        "r\\\nm -rf x",
        "{rm,-rf,x}",
        "[[ -f a ]] && rm -rf x",
        "[[ $a =~ ^(b|c)$ ]] || rm -rf x",
        "[ -f a ] && rm -rf x",
        "# a comment (\nrm -rf x",
        "ls # a 'comment\nrm -rf x",
        "echo a#b; rm -rf x",
        "env A=1 nice -n 5 rm -rf x",
        "sh -c 'sh -c \"rm -rf x\"'",
        "sudo bash -c 'if true; then rm -rf x; fi'",
        "eval 'rm -rf x'",
        "find . -exec sh -c 'rm -rf x' \\;",
        "ls | xargs -I{} rm -rf x",
        "select a in b; do rm -rf x; done",
        "echo @(a|b); rm -rf x",
    ] {
        assert!(finds(text).iter().any(|found| found == "rm -rf x"), "{text}: {:?}", finds(text));
    }
    assert!(finds("$HOME/bin/rm -rf x").contains(&"rm -rf x".to_owned()));
    assert!(finds("/bin/rm -rf x").contains(&"/bin/rm -rf x".to_owned()));
}

#[test]
fn text_that_only_looks_like_a_command_is_not_one() {
    for text in [
        "echo rm -rf x",
        "echo 'a; rm -rf x'",
        "echo \"a; rm -rf x\"",
        "cat <<E\nrm -rf x\nE",
        "git commit -m 'rm -rf x'",
        "case a in rm) ls;; esac",
        "# rm -rf x",
        "echo $((rm -rf x))",
    ] {
        assert!(!finds(text).iter().any(|found| found.starts_with("rm")), "{text}: {:?}", finds(text));
        assert!(scan(text).is_whole, "{text}");
    }
}

#[test]
fn an_unclosed_or_too_deep_text_is_rejected_quickly() {
    for text in ["echo 'a", "echo \"a", "echo $(ls", "(ls", "ls)", "echo `ls", "echo ${a", "case a in b) ls", "[[ a"] {
        assert!(!scan(text).is_whole, "{text}");
    }
    for (part, behind) in [
        ("(", ")"),
        ("((", "))"),
        ("$(", ")"),
        ("$((", "))"),
        ("\"$(", ")\""),
        ("${", "}"),
        ("{ ", "; }"),
        ("if ", ""),
        ("case x in x) ", ""),
        ("a=(", ")"),
        ("[[ (", ""),
        ("`", ""),
        ("$(case a in a)", ""),
        ("sudo ", ""),
        ("<(", ""),
        ("cat <<a ", "\n"),
        ("eval ", ""),
        ("sh -c 'eval \"", ""),
    ] {
        for times in [12, 200, 5_000] {
            let text = format!("{}ls{}", part.repeat(times), behind.repeat(times));
            scan(&text);
        }
    }
}
