"""The Debian package, and DKMS building what is in it; the result runs."""

import re
import shutil
import subprocess

import pytest
from support.guest import default_kernel, file_of, strip, unpacked
from support.netns import FEBS
from support.paths import TOP


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package, unpacked."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(TOP / "driver", folder / "driver")
    build = ["dpkg-buildpackage", "-b", "-us", "-uc"]
    result = subprocess.run(build, cwd=folder / "driver", capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    (deb,) = folder.glob("fadelink-dkms_*_all.deb")
    subprocess.run(["dpkg-deb", "-x", deb, folder / "root"], check=True)
    return folder


def test_versions_agree(package):
    """One version: of the changelog, of DKMS and of the host's workspace."""
    changelog = re.match(r"fadelink \((\S+)\)", (TOP / "driver/debian/changelog").read_text())[1]
    workspace = re.search(r'^version = "(\S+)"', (TOP / "host/Cargo.toml").read_text(), re.M)[1]
    dkms = re.search(r'PACKAGE_VERSION="(\S+)"', (TOP / "driver/dkms.conf").read_text())[1]
    assert changelog == workspace == dkms
    sources = package / f"root/usr/src/fadelink-{dkms}"
    assert {path.name for path in sources.iterdir()} == {
        "dkms.conf", "Kbuild", "Makefile", *(path.name for path in (TOP / "driver").glob("fade*.[ch]") if not path.match("*.mod.c")),
    }  # fmt: skip
    assert (package / "root/usr/include/fadelink_uapi.h").exists()


def test_dkms_builds_it_and_it_runs(package, bench):
    if default_kernel().modules is None:
        pytest.skip("DKMS builds for installed kernels")
    (source,) = (package / "root/usr/src").iterdir()
    (package / "dkms").mkdir()
    dkms = ["dkms", "build", *source.name.split("-", 1)[:1], "-v", source.name.split("-", 1)[1], "-k", default_kernel().name,
            "--sourcetree", source.parent, "--dkmstree", package / "dkms"]  # fmt: skip
    result = subprocess.run(list(map(str, dkms)), capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    (module,) = (package / "dkms").rglob("fadelink.ko*")
    small = bench.tmp / "small.ko"
    strip(unpacked(module, package), small)
    bench.sim("--packet-socket", iface="fade0")
    load = "insmod /tmp/fadelink.ko"
    out = bench.guest.run("\n".join(["set -e", file_of(small, "/tmp/fadelink.ko"), load, f"abi_reader /dev/l3_fpga0 eth0 {FEBS[0]} 200000"]))
    assert "words, all right" in out
