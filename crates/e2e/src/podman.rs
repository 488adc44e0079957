//! podman with a storage of its own, and images of folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::Home;
use crate::user::is_root;

/// podman with a storage of its own in a test's home.
pub struct Podman {
    /// The script that runs it: what a profile names as `engine`.
    pub program: PathBuf,
    /// The words that make the server's user run something.
    pub behind: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Drop for Podman {
    fn drop(&mut self) {
        self.does(&["rm", "--all", "--force", "--time", "0"]);
        // An ordinary user's has a process that keeps its namespaces.
        if !self.behind.is_empty() || !is_root() {
            self.does(&["system", "migrate"]);
        }
    }
}

impl Podman {
    /// `images` is a storage of images that root's containers share, if there is one.
    pub fn set_up(home: &Home, images: Option<&Path>) -> Self {
        let program = home.file("podman");
        let files = home.file("");
        fs::create_dir_all(home.file("storage")).expect("a folder of our own");
        fs::create_dir_all(home.file("run-of-root")).expect("a folder of our own");
        // No limits and no control groups: a machine that is itself a container may not give any.
        let containers = format!(
            "[containers]\ncgroups = \"disabled\"\nnetns = \"host\"\n\
             default_ulimits = [\"nofile=1024:1024\", \"nproc=1024:1024\"]\n\
             [engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nlock_type = \"file\"\n\
             tmp_dir = \"{0}storage/tmp\"\n",
            files.display(),
        );
        let shared = images.map_or_else(String::new, |images| {
            format!("[storage.options]\nadditionalimagestores = [\"{}\"]\n", images.display())
        });
        let storage = format!(
            "[storage]\ndriver = \"vfs\"\ngraphroot = \"{0}storage/graph\"\nrunroot = \"{0}storage/run\"\n{shared}",
            files.display()
        );
        fs::write(home.file("containers.conf"), containers).expect("written");
        fs::write(home.file("storage.conf"), storage).expect("written");
        // podman's mounts end with the namespace, and the files that root's crun writes into /run stay here. That
        // takes no second hierarchy of control groups beside the first.
        let script = format!(
            "#!/bin/sh\nexport CONTAINERS_CONF={0}containers.conf CONTAINERS_STORAGE_CONF={0}storage.conf\n\
             [ \"$(id -u)\" = 0 ] || exec podman \"$@\"\n\
             exec unshare -m sh -c 'mount --bind {0}run-of-root /run; umount /sys/fs/cgroup/unified 2>/dev/null\n\
             exec podman \"$@\"' podman \"$@\"\n",
            files.display(),
        );
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        Self { program, behind: Vec::new(), environment: home.environment() }
    }

    /// Runs it outside of all sessions.
    pub fn does(&self, words: &[&str]) -> Output {
        let program = self.program.display().to_string();
        let mut all = self.behind.iter().map(String::as_str).chain([program.as_str()]).chain(words.iter().copied());
        let mut podman = Command::new(all.next().expect("the script"));
        podman.args(all).env_clear().envs(self.environment.iter().cloned());
        podman.stdin(Stdio::null()).output().expect("sh")
    }

    /// The names of all containers.
    pub fn containers(&self) -> String {
        String::from_utf8(self.does(&["ps", "--all", "--format", "{{.Names}}"]).stdout).expect("text")
    }

    /// Imports an image of this folder.
    pub fn imports(&self, folder: &Path, image: &str) -> Result<(), String> {
        let archive = folder.with_extension("tar");
        let packed = Command::new("tar")
            .args(["--owner=0", "--group=0", "--numeric-owner", "-C"])
            .arg(folder)
            .arg("-cf")
            .arg(&archive)
            .arg(".")
            .status();
        assert!(packed.is_ok_and(|status| status.success()), "tar is there");
        let imported = self.does(&["import", "--change", "VOLUME /data", &archive.display().to_string(), image]);
        fs::remove_file(archive).expect("there");
        match imported.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&imported.stderr).into_owned()),
        }
    }
}
