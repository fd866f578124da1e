"""A virtual machine with Debian's kernel and the driver: build, boot, run, judge."""

import dataclasses
import functools
import gzip
import lzma
import os
import re
import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
MODULES = ["failover", "net_failover", "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
           "virtio_pci", "virtio_net"]  # fmt: skip
FADELINK = TOP / "host/target/release/fadelink"
PROGRAMS = [*(TOP / "tests/driver").glob("*.c"), TOP / "bench/tools/tcp_reader.c", *(TOP / "driver/examples").glob("*.c")]
# Another build of the module than that of build().
MODULE = None
# A kernel that watches itself is slow.
TIMEOUT = 1200 if os.environ.get("FADELINK_KERNEL") == "debug" else 280
WARNING = re.compile(r"WARNING:|BUG:|Oops|Call Trace|general protection|use-after-free|refcount_t|unregister_netdevice: waiting|unreferenced object|possible deadlock")

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
# Leaks, where the kernel looks for them: found by the second scan, for the first may be too early.
if [ -e /sys/kernel/debug/kmemleak ]; then
    for i in 1 2; do echo scan >/sys/kernel/debug/kmemleak; sleep 6; done
    echo "KMEMLEAK"; cat /sys/kernel/debug/kmemleak
fi
dmesg
reboot -f
"""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel to run: its image, what modules are built against, and the modules that it needs."""

    name: str
    image: Path
    headers: Path
    modules: Path | None

    @property
    def build(self):
        return TOP / "build/driver" / self.name


@functools.cache
def kernel():
    """FADELINK_KERNEL: `debug` for the one of tools/debug_kernel.sh, or a version; else Debian 12's."""
    name = os.environ.get("FADELINK_KERNEL")
    if name == "debug":
        tree = TOP / "build/debug-kernel/source"
        return Kernel(name, tree / "arch/x86/boot/bzImage", tree, None)
    if not name:
        depends = subprocess.run(["dpkg-query", "-W", "-f=${Depends}", "linux-image-amd64"], capture_output=True, text=True).stdout
        name = re.search(r"linux-image-(\S+)", depends)[1]
    modules = Path("/lib/modules") / name
    assert (modules / "build").exists(), f"no headers of kernel {name}: install linux-image-amd64 and linux-headers-amd64"
    return Kernel(name, Path(f"/boot/vmlinuz-{name}"), modules / "build", modules / "kernel")


def build():
    """The module and the test programs; warnings of the compiler are errors."""
    folder = kernel().build
    folder.mkdir(parents=True, exist_ok=True)
    for source in [*(TOP / "driver").glob("*.[ch]"), TOP / "driver/Kbuild"]:
        target = folder / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)
    make = ["make", "-s", "-C", kernel().headers, f"M={folder}", "W=1", "modules"]
    result = subprocess.run(make, capture_output=True, text=True)
    output = result.stdout + result.stderr
    assert result.returncode == 0 and "warning:" not in output, output
    for source in PROGRAMS:
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", f"-I{TOP}/driver", "-o", folder / source.stem, source], check=True)


@functools.cache
def accelerator():
    """KVM where it works: some machines offer it and then stand still. Else emulation."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        # A kernel without a root file system panics and ends, in a second or two.
        probe = ["qemu-system-x86_64", "-enable-kvm", "-cpu", "host", "-m", "256", "-display", "none", "-no-reboot",
                 "-nic", "none", "-kernel", kernel().image, "-append", "panic=-1 quiet"]  # fmt: skip
        try:
            subprocess.run(probe, capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=True)
            return ["-enable-kvm", "-cpu", "host"]
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            pass
    return ["-cpu", "max"]


def unpacked(module, folder):
    """A module of a kernel that may keep it compressed: its plain file in `folder`."""
    if module.suffix == ".xz":
        (folder / module.stem).write_bytes(lzma.decompress(module.read_bytes()))
    else:
        shutil.copy(module, folder)
    return folder / module.name.removesuffix(".xz")


def is_built_in(module):
    """True if the kernel has the module in itself; which ones differs from version to version."""
    if kernel().modules is None:
        return True
    built_in = (kernel().modules.parent / "modules.builtin").read_text()
    return f"/{module}.ko" in built_in


def install_program(program, root):
    """A program and the shared libraries that it names."""
    shutil.copy(program, root / "bin")
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+) \(0x", libraries):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def initramfs(path, script):
    root = kernel().build / "root"
    shutil.rmtree(root, ignore_errors=True)
    for folder in ["bin", "lib", "proc", "sys", "dev", "tmp"]:
        (root / folder).mkdir(parents=True)
    shutil.copy("/bin/busybox", root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    modules = [name for name in MODULES if not is_built_in(name)]
    for name in modules:
        unpacked(next(kernel().modules.rglob(f"{name}.ko*")), root / "lib")
    # Without its debugging information, for the memory of the guest.
    subprocess.run(["strip", "--strip-debug", "-o", root / "lib/fadelink.ko", MODULE or kernel().build / "fadelink.ko"], check=True)
    for program in PROGRAMS:
        shutil.copy(kernel().build / program.stem, root / "bin")
    install_program(FADELINK, root)
    init = root / "init"
    init.write_text(INIT.format(modules=" ".join(modules)))
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
        "-kernel", kernel().image, "-initrd", image,
        "-append", "console=ttyS0 panic=-1 quiet loglevel=4 rcupdate.rcu_cpu_stall_timeout=120",
        "-netdev", f"tap,id=n,ifname={tap},script=no,downscript=no",
        "-device", "virtio-net-pci,netdev=n,host_mtu=9000", stdin=subprocess.DEVNULL,
    )  # fmt: skip


def judge(guest):
    """Waits for the end: the guest's output. It ended by itself, its script did well, its kernel had
    nothing to complain of."""
    _, out, err = guest.finish(TIMEOUT)
    status = re.search(r"GUEST-STATUS (\d+)", out)
    assert status, out[-12000:] + err
    assert int(status[1]) == 0, out[-6000:]
    assert not WARNING.search(out), out[-6000:]
    return out
