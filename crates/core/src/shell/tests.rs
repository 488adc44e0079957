//! Each name selects a program, and a name without one gives an error that lists the choices.

use super::*;
use crate::host::LocalHost;

fn integration() -> (tempfile::TempDir, Integration) {
    let folder = tempfile::tempdir().unwrap();
    let scripts = Integration::install(folder.path()).unwrap();
    (folder, scripts)
}

/// A folder with programs, and links to them.
fn programs(names: &[&str], links: &[(&str, &str)]) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (link, target) in links {
        std::os::unix::fs::symlink(folder.path().join(target), folder.path().join(link)).unwrap();
    }
    folder
}

#[test]
// promise: shell-4
fn a_link_is_the_shell_that_it_leads_to() {
    let (_folder, scripts) = integration();
    let bin =
        programs(&["bash", "dash", "busybox", "nu", "tool"], &[("sh", "dash"), ("ash", "busybox"), ("posh", "bash")]);
    let path = bin.path().to_str().unwrap().as_bytes();
    let pick = |shell| {
        let shell = scripts
            .pick(&LocalHost::default(), &Wanted { shell: Some(shell), path: Some(path), ..Wanted::default() })
            .unwrap();
        let argv: Vec<_> = shell.argv.iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect();
        let handover = shell.handover;
        (shell.name, argv[0].clone(), handover.has_hooks(), handover.attestation_fd, handover.line().is_none())
    };
    let told = |name: &str, argv: &str, attests, fd, keys| (name.to_owned(), argv.to_owned(), attests, fd, keys);
    assert_eq!(pick("bash"), told("bash", "bash", true, 0, true));
    assert_eq!(pick("posh"), told("bash", "bash", true, 0, true));
    assert_eq!(pick("sh"), told("dash", "sh", true, 9, false));
    assert_eq!(pick("ash"), told("busybox", "ash", true, 9, false));
    assert_eq!(pick("busybox"), told("busybox", "ash", true, 9, false));
    assert_eq!(pick("nu"), told("nu", "nu", true, 9, true));
    assert_eq!(pick("tool"), told("tool", "tool", false, 0, true));
}

#[test]
fn a_missing_shell_is_refused_with_the_list_of_existing_ones() {
    let (_folder, scripts) = integration();
    let bin = programs(&["bash", "dash"], &[]);
    let path = bin.path().to_str().unwrap().as_bytes();
    let why = |shell| match scripts
        .pick(&LocalHost::default(), &Wanted { shell: Some(shell), path: Some(path), ..Wanted::default() })
    {
        Err(ActionError::Invalid { field: "shell", problem }) => problem,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        why("fishy"),
        "no program \"fishy\" on PATH; the installed shells are bash, dash; install it, or give another name or an absolute path"
    );
    assert_eq!(why("./x"), "\"./x\" is not the absolute path of a program; the installed shells are bash, dash");
}

#[test]
// promise: shell-4
fn the_default_shell_is_the_users_own_unless_people_cannot_use_it() {
    let (_folder, scripts) = integration();
    let bin = programs(&["bash", "zsh", "dash", "nologin"], &[("mine", "zsh")]);
    let path = bin.path().to_str().unwrap().to_owned();
    let pick = |own: &str| {
        let own = format!("{path}/{own}");
        let wanted = Wanted { own_shell: Some(own.as_bytes()), path: Some(path.as_bytes()), ..Wanted::default() };
        scripts.pick(&LocalHost::default(), &wanted).unwrap().program
    };
    assert_eq!(pick("mine"), bin.path().join("mine"));
    assert_eq!(["bash", "dash", "nologin", "gone"].map(pick), [(); 4].map(|()| bin.path().join("bash")));
}

#[test]
// promise: shell-5
fn powershell_is_pwsh_and_the_error_names_its_package_if_it_is_missing() {
    let (_folder, scripts) = integration();
    let pick = |bin: &tempfile::TempDir, shell| {
        let path = bin.path().to_str().unwrap().as_bytes();
        scripts.pick(&LocalHost::default(), &Wanted { shell: Some(shell), path: Some(path), ..Wanted::default() })
    };
    let bin = programs(&["pwsh"], &[]);
    for asked in ["powershell", "pwsh"] {
        let shell = pick(&bin, asked).unwrap();
        assert_eq!((shell.name.as_str(), shell.program), (asked, bin.path().join("pwsh")));
        assert!(!shell.handover.has_hooks());
    }
    let Err(ActionError::Invalid { field: "shell", problem }) = pick(&programs(&["bash"], &[]), "powershell") else {
        panic!("not refused")
    };
    assert!(problem.contains("\"pwsh\" on PATH") && problem.contains("install the package `powershell`"), "{problem}");
}
