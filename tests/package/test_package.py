"""The packages of `make package` in a bare Debian 12: installed, used by an ordinary user, upgraded and removed."""

import os
import re
import shutil
import subprocess

import pytest
from support.paths import BUILD, TOP

# `make test-package` makes the packages and the tree first.
pytestmark = pytest.mark.long

PACKAGE, BARE = BUILD / "package", BUILD / "bare"
# What an installation may change: logs, caches, and what Debian's own tools keep of their files.
KEPT = r"(proc|dev|packages|run|tmp|var/(cache|log|lib/(apt|dpkg|systemd|dkms$))|etc/(group|passwd|shadow|gshadow|subuid|subgid)-?$|etc/ld.so.cache|etc/\.pwd\.lock|boot|lib/modules)"


class Tree:
    """A bare Debian with the packages in /packages. The programs in it have no network but their own."""

    def __init__(self, path):
        self.path = path
        subprocess.run(["cp", "-a", "--reflink=auto", BARE / "tree", path], check=True)
        (path / "packages").mkdir()
        for file in PACKAGE.iterdir():
            shutil.copy(file, path / "packages")
        shutil.copytree(BARE / "wheels", path / "packages/wheels")
        (path / "dev/net").mkdir(parents=True, exist_ok=True)
        if not (path / "dev/net/tun").exists():
            os.mknod(path / "dev/net/tun", 0o020666, os.makedev(10, 200))
        os.chmod(path / "dev/net/tun", 0o666)

    def run(self, text, user=None, status=0):
        """What a shell says; `user`: an ordinary one."""
        inner = ["su", *user.split(), "-c", text] if user else ["bash", "-ec", text]
        mounts = 'mount --make-rprivate / && mount -t proc proc "$0/proc" && exec chroot "$0" "$@"'
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        words = ["unshare", "-m", "-n", "-p", "-f", "--kill-child", "bash", "-c", mounts, self.path, *inner]
        found = subprocess.run(words, capture_output=True, text=True, env=environment)
        assert found.returncode == status, found.stdout + found.stderr
        return found.stdout

    def install(self, *names):
        self.run(f"apt-get install -y -q --no-install-recommends {' '.join(names)}")

    def files(self):
        """All files but those that an installation may change."""
        found = subprocess.run(["find", ".", "-printf", "%P\n"], cwd=self.path, capture_output=True, text=True, check=True)
        return {name for name in found.stdout.splitlines() if name and not re.match(KEPT, name)}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return Tree(tmp_path_factory.mktemp("debian") / "tree")


def newer(tree, name):
    """The same package, of a later version."""
    (old,) = (tree.path / "packages").glob(f"{name}_0*.deb")
    folder = tree.path / "tmp/newer"
    subprocess.run(["dpkg-deb", "-R", old, folder], check=True)
    control = folder / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 99.0", control.read_text(), flags=re.M))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", folder, tree.path / f"packages/{name}_99.0.deb"], check=True, capture_output=True)
    shutil.rmtree(folder)


def of_another_group():
    """The commands of docs/install.md that let the group `daq` run the programs."""
    text = (TOP / "docs/install.md").read_text().partition("\nAnother group")[2]
    return "\n".join(line.strip() for line in text.splitlines() if line.startswith("    "))


def test_the_command(tree):
    """No compiler, no source: an ordinary user runs the demo. Upgraded, it does the same. Removed, nothing is left."""
    before = tree.files()
    tree.install("/packages/fadelink_0*.deb")
    assert tree.run("command -v cc gcc rustc verilator || true") == ""
    tree.run("adduser --quiet --disabled-password --gecos '' ann && adduser --quiet ann fadelink")
    tree.run("adduser --quiet --disabled-password --gecos '' bob")
    out = tree.run("cd && fadelink demo --seconds 3", user="ann")
    assert "PASSED: all" in out, out
    tree.run("fadelink --version", user="bob", status=126)
    for path in ("usr/share/man/man1/fadelink-run.1.gz", "usr/share/man/man1/fadelink-sim.1.gz", "usr/share/bash-completion/completions/fadelink",
                 "usr/lib/systemd/system/fadelink-run@.service", "usr/share/fadelink/monitoring/alerts.yml"):  # fmt: skip
        assert (tree.path / path).exists(), path

    # Another group: now, and after an upgrade.
    tree.run("addgroup --quiet daq && adduser --quiet bob daq")
    tree.run(of_another_group())
    assert "PASSED: all" in tree.run("cd && fadelink demo --seconds 3", user="bob")
    assert tree.run("stat -c '%A %G' /run/fadelink /var/lib/fadelink/csn").splitlines() == ["drwxrwsr-x daq"] * 2
    tree.run("fadelink --version", user="ann", status=126)
    tree.run("fadelink --version", user="fadelink -s /bin/sh")
    newer(tree, "fadelink")
    (tree.path / "var/lib/fadelink").mkdir(exist_ok=True)
    (tree.path / "var/lib/fadelink/data").write_text("of a run")
    tree.install("/packages/fadelink_99*.deb")
    assert "99.0" in tree.run("dpkg-query -W -f '${Version}' fadelink")
    assert "PASSED: all" in tree.run("cd && fadelink demo --seconds 3", user="bob")
    tree.run("fadelink --version", user="ann", status=126)

    tree.run("apt-get purge -y -q fadelink")
    assert (tree.path / "var/lib/fadelink/data").read_text() == "of a run", "data is the user's"
    shutil.rmtree(tree.path / "var/lib/fadelink")
    tree.run("for name in fadelink fadelink-sim; do dpkg-statoverride --remove /usr/bin/$name; done; userdel -r ann; userdel -r bob; delgroup daq")
    tree.run("rm /etc/tmpfiles.d/fadelink.conf && rmdir --ignore-fail-on-non-empty /etc/tmpfiles.d")
    tree.run("apt-get autoremove --purge -y -q")
    assert tree.files() - before == set() and "fadelink" not in (tree.path / "etc/passwd").read_text() + (tree.path / "etc/group").read_text()


def test_the_library(tree):
    """The example is compiled and linked by what pkg-config says."""
    before = tree.files()
    tree.install("/packages/libfadelink0_*.deb", "/packages/libfadelink-dev_*.deb", "gcc", "libc6-dev", "pkg-config")
    version = tree.run("pkg-config --modversion fadelink").strip()
    tree.run("cc -o /tmp/receive /usr/share/doc/libfadelink-dev/examples/receive.c $(pkg-config --cflags --libs fadelink)")
    assert f"libfadelink.so.{version}" in tree.run("readlink -f /usr/lib/*/libfadelink.so")
    assert "libfadelink.so.0 =>" in tree.run("ldd /tmp/receive")
    tree.run("cc -static -o /tmp/static /usr/share/doc/libfadelink-dev/examples/receive.c $(pkg-config --static --cflags --libs fadelink)")
    tree.run("/tmp/static", status=2)
    tree.run("apt-get purge -y -q libfadelink0 libfadelink-dev gcc libc6-dev pkg-config && apt-get autoremove --purge -y -q")
    assert tree.files() - before == set()


def test_the_driver(tree):
    """DKMS builds it for Debian's kernel, and removes it again."""
    tree.install("linux-headers-amd64", "/packages/fadelink-dkms_*.deb")
    kernel = tree.run("ls /lib/modules | head -1").strip()
    tree.run(f"dkms status fadelink -k {kernel} | grep -q installed || dkms install fadelink/0.1.0 -k {kernel}")
    assert list((tree.path / "lib/modules" / kernel).rglob("fadelink.ko*"))
    tree.run("apt-get purge -y -q fadelink-dkms")
    assert not list((tree.path / "lib/modules").rglob("fadelink.ko*"))
    assert not list((tree.path / "usr/src").glob("fadelink-*")) and not (tree.path / "var/lib/dkms/fadelink").exists()


def test_the_wheel(tree):
    """It needs numpy alone."""
    tree.install("python3-pip", "python3-venv")
    tree.run("python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -q --no-index --find-links /packages/wheels /packages/fadelink-*.whl")
    out = tree.run("/tmp/venv/bin/python -c 'import fadelink; print(fadelink.Receiver, fadelink.runs(\"/tmp\"))'")
    assert "class 'fadelink.Receiver'" in out and "[]" in out
    assert tree.run("ls /tmp/venv/lib/python3*/site-packages/fadelink/py.typed")


def test_the_cores(tree):
    """All files that the FuseSoC descriptions name are there."""
    tree.install("/packages/fadelink-rtl_*.deb")
    folder = tree.path / "usr/share/fadelink/rtl"
    named = {word for core in folder.glob("*.core") for word in re.findall(r"[\w/]+\.svh?\b", core.read_text())}
    assert len(named) > 100 and all((folder / name).exists() for name in named), [name for name in named if not (folder / name).exists()][:5]
    tree.run("apt-get purge -y -q fadelink-rtl")
    assert not folder.exists()
