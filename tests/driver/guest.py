"""A virtual machine with Debian's kernel and the driver: build, boot, run, judge."""

import functools
import gzip
import os
import re
import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / "build/driver"
MODULES = ["failover", "net_failover", "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
           "virtio_pci", "virtio_net"]  # fmt: skip
PROGRAMS = [*(TOP / "tests/driver").glob("*.c"), *(TOP / "driver/examples").glob("*.c")]
WARNING = re.compile(r"WARNING:|BUG:|Oops|Call Trace|general protection|use-after-free|refcount_t|unregister_netdevice: waiting")

INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t debugfs debugfs /sys/kernel/debug
for module in {modules}; do insmod /lib/$module.ko; done
ip link set lo up
ip link set eth0 mtu 9000 up
sh /test.sh
echo "GUEST-STATUS $?"
dmesg
poweroff -f
"""


def kernel():
    """Version of the newest Debian kernel that is here with its headers."""
    found = [p.name for p in Path("/lib/modules").glob("*") if (p / "build").exists() and Path(f"/boot/vmlinuz-{p.name}").exists()]
    assert found, "no kernel with headers: install linux-image-amd64 and linux-headers-amd64"
    return sorted(found, key=lambda v: [int(n) for n in re.findall(r"\d+", v)])[-1]


def build():
    """The module and the test programs; warnings of the compiler are errors."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for source in [*(TOP / "driver").glob("*.[ch]"), TOP / "driver/Kbuild"]:
        target = BUILD / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)
    make = ["make", "-s", "-C", f"/lib/modules/{kernel()}/build", f"M={BUILD}", "W=1", "modules"]
    result = subprocess.run(make, capture_output=True, text=True)
    output = result.stdout + result.stderr
    assert result.returncode == 0 and "warning:" not in output, output
    for source in PROGRAMS:
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", BUILD / source.stem, source], check=True)


@functools.cache
def accelerator():
    """KVM where it works: some machines offer it and then stand still. Else emulation."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        # A kernel without a root file system panics and ends, in a second or two.
        probe = ["qemu-system-x86_64", "-enable-kvm", "-cpu", "host", "-m", "256", "-display", "none", "-no-reboot",
                 "-nic", "none", "-kernel", f"/boot/vmlinuz-{kernel()}", "-append", "panic=-1 quiet"]  # fmt: skip
        try:
            subprocess.run(probe, capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=True)
            return ["-enable-kvm", "-cpu", "host"]
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            pass
    return ["-cpu", "max"]


def initramfs(path, script):
    root = BUILD / "root"
    shutil.rmtree(root, ignore_errors=True)
    for folder in ["bin", "lib", "proc", "sys", "dev", "tmp"]:
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    for name in MODULES:
        source = next(Path(f"/lib/modules/{kernel()}/kernel").rglob(f"{name}.ko"))
        shutil.copy(source, root / "lib")
    # Without its debugging information, for the memory of the guest.
    subprocess.run(["strip", "--strip-debug", "-o", root / "lib/fadelink.ko", BUILD / "fadelink.ko"], check=True)
    for program in PROGRAMS:
        shutil.copy(BUILD / program.stem, root / "bin")
    init = root / "init"
    init.write_text(INIT.format(modules=" ".join(MODULES)))
    init.chmod(0o755)
    (root / "test.sh").write_text(script)
    names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=root, input=names, capture_output=True, check=True)
    path.write_bytes(gzip.compress(archive.stdout, 1))


def start(bench, script, tap="fade0", memory=512):
    """Boots a guest whose network card is the other side of TAP `tap` in the board's namespace."""
    image = bench.tmp / "initramfs.gz"
    initramfs(image, script)
    return bench.start(
        bench.board_ns, "qemu-system-x86_64", *accelerator(), "-smp", "2", "-m", memory, "-nographic", "-no-reboot",
        "-kernel", f"/boot/vmlinuz-{kernel()}", "-initrd", image,
        "-append", "console=ttyS0 panic=-1 quiet loglevel=4",
        "-netdev", f"tap,id=n,ifname={tap},script=no,downscript=no",
        "-device", "virtio-net-pci,netdev=n,host_mtu=9000", stdin=subprocess.DEVNULL,
    )  # fmt: skip


def judge(finished):
    """The guest's output: it ended by itself, its script did well, its kernel had nothing to complain of."""
    _, out, err = finished
    status = re.search(r"GUEST-STATUS (\d+)", out)
    assert status, out[-12000:] + err
    assert int(status[1]) == 0, out[-6000:]
    assert not WARNING.search(out), out[-6000:]
    return out
