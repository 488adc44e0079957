"""podman with a storage of its own, and an image to build upon that comes from no registry."""

import os
import re
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from mcp_client import PTYD

# The Debian packages whose files are an image to build upon; the machine has them.
_PACKAGES = "base-files base-passwd bash coreutils dash grep login passwd procps sed tini".split()
_LEFT_OUT = ("/etc", "/usr/share/doc", "/usr/share/info", "/usr/share/locale", "/usr/share/man", "/usr/share/bash-completion")
# The settings of programs that the image of links has.
_SETTINGS = "alternatives bash.bashrc fish group inputrc ld.so.cache less locale.alias manpath.config nanorc passwd profile vim zsh".split()
_PASSWD = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"
_GROUP = "root:x:0:\nnogroup:x:65534:\n"


class Podman:
    """podman with everything of its own below a folder. Containers have the machine's network and no control groups, because a machine
    that is itself a container may give neither."""

    def __init__(self, folder: Path):
        for program in "podman", "tini", "git":
            if shutil.which(program) is None:
                pytest.skip(f"not installed: {program}")
        for name in "graph", "run", "tmp", "run-of-root":
            (folder / name).mkdir()
        (folder / "containers.conf").write_text(
            '[containers]\ncgroups = "disabled"\nnetns = "host"\ndefault_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]\n'
            f'[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nlock_type = "file"\ntmp_dir = "{folder}/tmp"\n'
        )
        (folder / "storage.conf").write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'
        )
        (folder / "policy.json").write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self.folder = folder
        # podman's mounts end with the namespace, and what root's crun writes into /run stays in the folder.
        inside = f'mount --bind {folder}/run-of-root /run; umount /sys/fs/cgroup/unified 2>/dev/null; exec podman "$@"'
        # The script that runs it: what a profile names as `engine`.
        self.program = folder / "podman"
        self.program.write_text(
            f"#!/bin/sh\nexport CONTAINERS_CONF={folder}/containers.conf CONTAINERS_STORAGE_CONF={folder}/storage.conf HOME={folder}\n"
            f"[ $(id -u) = 0 ] || exec podman \"$@\"\nexec unshare -m sh -c '{inside}' podman \"$@\"\n"
        )
        self.program.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess:
        """Runs it."""
        return subprocess.run([self.program, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def does(self, *words: str) -> str:
        """Runs it successfully, and gives its output."""
        done = self.run(*words)
        assert done.returncode == 0, f"podman {' '.join(words)}: {done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    def imports_base(self, *packages: str) -> str:
        """Makes an image to build upon of files of this machine, those of some packages besides. Skips a test where no container runs."""
        image = "-".join(["localhost/base", *packages])
        listed = subprocess.run(["dpkg", "-L", *_PACKAGES, *packages], capture_output=True, text=True, check=True).stdout.split("\n")
        files = {Path(file) for file in listed if file.startswith("/") and not file.startswith(_LEFT_OUT)}
        programs = [file for file in files if file.is_file() and os.access(file, os.X_OK)]
        linked = subprocess.run(["ldd", PTYD, *programs], capture_output=True, text=True).stdout
        libraries = {Path(library) for library in re.findall(r"(/\S+) \(0x", linked)}
        files |= libraries | {library.resolve() for library in libraries}
        with tarfile.open(self.folder / "base.tar", "w") as archive:
            for name in "bin", "sbin", "lib", "lib64":
                link = tarfile.TarInfo(name)
                link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
                archive.addfile(link)
            for name, mode in ("tmp", 0o1777), ("etc", 0o755), ("home", 0o755), ("root", 0o700), ("proc", 0o755), ("dev", 0o755):
                place = tarfile.TarInfo(name)
                place.type, place.mode = tarfile.DIRTYPE, mode
                archive.addfile(place)
            for file in sorted({Path(os.path.realpath(file.parent)) / file.name for file in files if os.path.lexists(file)}):
                if file.parent == Path("/") or file.is_dir() and not file.is_symlink():
                    continue
                archive.add(file, str(file)[1:], recursive=False, filter=_as_root)
        etc = self.folder / "etc"
        etc.mkdir()
        for name, text in ("passwd", _PASSWD), ("group", _GROUP), ("shadow", ""):
            (etc / name).write_text(text)
        shutil.copy("/etc/login.defs", etc)
        with tarfile.open(self.folder / "base.tar", "a") as archive:
            for file in sorted(etc.iterdir()):
                archive.add(file, f"etc/{file.name}", filter=_as_root)
        return self._imports_archive(image)

    def imports_links(self) -> str:
        """Makes an image that has the links into /usr and the settings of this machine; the containers mount its /usr. As its files are few,
        each container is there at once, although the storage copies them."""
        with tarfile.open(self.folder / "base.tar", "w") as archive:
            for name in "bin", "sbin", "lib", "lib64":
                archive.add(f"/{name}", name, recursive=False)
            for name, mode in ("tmp", 0o1777), ("var", 0o755), ("var/tmp", 0o1777), ("usr", 0o755), ("root", 0o700), ("proc", 0o755), ("dev", 0o755):
                place = tarfile.TarInfo(name)
                place.type, place.mode = tarfile.DIRTYPE, mode
                archive.addfile(place)
            for name in _SETTINGS:
                if os.path.exists(f"/etc/{name}"):
                    archive.add(f"/etc/{name}", f"etc/{name}", filter=_as_root)
        return self._imports_archive("localhost/links", "--volume", "/usr:/usr:ro")

    def _imports_archive(self, image: str, *options: str) -> str:
        """Makes an image of the archive. Skips a test where no container runs."""
        self.does("import", str(self.folder / "base.tar"), image)
        (self.folder / "base.tar").unlink()
        if (tried := self.run("run", "--rm", *options, image, "true")).returncode != 0:
            pytest.skip(f"no container can run here: {tried.stderr}")
        return image

    def end(self) -> None:
        """Removes its containers and images."""
        self.run("rm", "--all", "--force", "--time", "0")
        if os.geteuid() != 0:
            # The files there belong to users of the containers.
            self.run("unshare", "rm", "-rf", str(self.folder / "graph"))
            self.run("system", "migrate")


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """A file of root's, without the bits that make it run as its owner."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode &= ~(stat.S_ISUID | stat.S_ISGID)
    return entry
