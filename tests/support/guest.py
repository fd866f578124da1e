"""A virtual machine with Debian's kernel and the driver: built and booted once, then it runs one script after another."""

import base64
import dataclasses
import functools
import gzip
import lzma
import os
import re
import shutil
import socket
import subprocess
import textwrap
import threading
from pathlib import Path

from support.netns import Process, add_tap
from support.paths import FADELINK, TOP

MODULES = ["failover", "net_failover", "virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev",
           "virtio_pci", "virtio_net", "e1000", "virtio_blk", "crc32c_generic", "jbd2", "mbcache", "crc16", "ext4",
           "llc", "stp", "bridge", "tun"]  # fmt: skip
PROGRAMS = [*(TOP / "tests/driver").glob("*.c"), TOP / "bench/tools/tcp_reader.c", *(TOP / "driver/examples").glob("*.c")]
LOAD = "insmod /lib/fadelink.ko"
# Until the program with the number $R hears SIGINT, which a shell lets its programs in the background ignore; or has ended.
UNTIL_IT_HEARS = "until grep -qE '^(SigCgt:.*[2367abef]|State:.Z.*)$' /proc/$R/status; do sleep 0.1; done"
# A kernel that watches itself is slow.
TIMEOUT = 1200 if os.environ.get("FADELINK_KERNEL") == "debug" else 280
WARNING = re.compile(
    r"WARNING:|BUG:|Oops|Call Trace|general protection|use-after-free|refcount_t|unregister_netdevice: waiting|unreferenced object|possible deadlock"
)

# Scripts come by the second serial port, in base64, with a line END behind each; what they say goes to the first.
INIT = """#!/bin/sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t debugfs debugfs /sys/kernel/debug
for module in {modules}; do insmod /lib/$module.ko; done
ip link set lo up
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo
echo GUEST-READY
while :; do
    rm -rf /tmp/*
    # As after the boot, whatever the script before did.
    [ ! -d /sys/module/fadelink ] || rmmod fadelink
    [ -e /sys/class/net/eth0 ] || for device in /sys/bus/virtio/devices/*; do
        echo $(basename $device) >/sys/bus/virtio/drivers/virtio_net/bind
    done 2>/dev/null
    ip link set eth0 mtu 9000 up
    while read -r line <&3; do [ "$line" != END ] || break; echo "$line"; done | base64 -d >/test.sh
    sh /test.sh
    echo "GUEST-STATUS $?"
    # Leaks, where the kernel looks for them: found by the second scan, for the first may be too early.
    if [ -e /sys/kernel/debug/kmemleak ]; then
        for i in 1 2; do echo scan >/sys/kernel/debug/kmemleak; sleep 6; done
        echo "KMEMLEAK"; cat /sys/kernel/debug/kmemleak
    fi
    dmesg -c
    echo GUEST-DONE
done
"""


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel to run: its image, what modules are built against, and the modules that it needs."""

    name: str
    image: Path
    headers: Path
    modules: Path | None
    # The tree of a 32-bit computer.
    root32: Path | None = None

    @property
    def build(self):
        return TOP / "build/driver" / self.name


@functools.cache
def default_kernel():
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


def kernel32():
    """That of 32-bit Debian 12, which tools/kernel32.sh has fetched."""
    tree = TOP / "build/kernel32"
    assert (tree / "ready").exists(), "no 32-bit kernel: tools/kernel32.sh fetches it"
    name, root = (tree / "ready").read_text().strip(), tree / "root"
    return Kernel(name, root / f"boot/vmlinuz-{name}", root / f"usr/src/linux-headers-{name}", root / f"lib/modules/{name}/kernel", root)


def compiler(root32):
    """The compiler of programs for the guest; `root32`: for 32 bits, with the C library of that tree."""
    words = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-pthread", f"-I{TOP}/driver"]
    if root32 is None:
        return words
    (parts,) = (root32 / "usr/lib/gcc").glob("*/*")
    return [*words, "-m32", f"--sysroot={root32}", f"-B{parts}", f"-L{parts}"]


def build(kernel):
    """The module and the test programs; warnings of the compiler are errors."""
    folder = kernel.build
    folder.mkdir(parents=True, exist_ok=True)
    for source in [*(TOP / "driver").glob("*.[ch]"), TOP / "driver/Kbuild"]:
        target = folder / source.name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy(source, target)
    make = ["make", "-s", "-C", kernel.headers, f"M={folder}", "W=1", "modules"]
    result = subprocess.run(make, capture_output=True, text=True)
    output = result.stdout + result.stderr
    assert result.returncode == 0 and "warning:" not in output, output
    for source in PROGRAMS:
        subprocess.run([*compiler(kernel.root32), "-o", folder / source.stem, source], check=True)


@functools.cache
def accelerator():
    """KVM where it works: some machines offer it and then stand still. Else emulation."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        # A kernel without a root file system panics and ends, in a second or two.
        probe = ["qemu-system-x86_64", "-enable-kvm", "-cpu", "host", "-m", "256", "-display", "none", "-no-reboot",
                 "-nic", "none", "-kernel", default_kernel().image, "-append", "panic=-1 quiet"]  # fmt: skip
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


def is_built_in(module, kernel):
    """True if the kernel has the module in itself; which ones differs from version to version."""
    if kernel.modules is None:
        return True
    built_in = (kernel.modules.parent / "modules.builtin").read_text()
    return f"/{module}.ko" in built_in


def install_program(program, root):
    """A program and the shared libraries that it names."""
    shutil.copy(program, root / "bin")
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    for library in re.findall(r"(/\S+) \(0x", libraries):
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


def initramfs(path, kernel, more):
    root = path.parent / "root"
    for folder in ["bin", "lib", "proc", "sys", "dev", "tmp"]:
        (root / folder).mkdir(parents=True)
    shutil.copy((kernel.root32 or Path("/")) / "bin/busybox", root / "bin/busybox")
    (root / "bin/sh").symlink_to("busybox")
    modules = [name for name in MODULES if not is_built_in(name, kernel)]
    for name in modules:
        unpacked(next(kernel.modules.rglob(f"{name}.ko*")), root / "lib")
    strip(kernel.build / "fadelink.ko", root / "lib/fadelink.ko")
    for program in PROGRAMS:
        shutil.copy(kernel.build / program.stem, root / "bin")
    for program in more:
        shutil.copy(program, root / "bin")
    for program in () if kernel.root32 else (FADELINK, shutil.which("ethtool", path="/usr/sbin:/sbin:/usr/bin")):
        install_program(program, root)
    init = root / "init"
    init.write_text(INIT.format(modules=" ".join(modules)))
    init.chmod(0o755)
    names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=root, input=names, capture_output=True, check=True)
    path.write_bytes(gzip.compress(archive.stdout, 1))


def strip(module, target):
    """The module without its debugging information, for the memory of the guest."""
    subprocess.run(["strip", "--strip-debug", "-o", target, module], check=True)


def file_of(path, target):
    """Lines of a script that put a file of the computer into the guest."""
    return f"base64 -d >{target} <<EOF\n{encoded(path.read_bytes())}\nEOF"


def encoded(data):
    return "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 1000))


class Guest:
    """A running virtual machine whose network card is the other side of a TAP in the bench's namespace of boards.

    One script runs at a time: `start` begins it, `finish` waits for its end. A guest whose script did not end, or whose
    kernel complained, is `spoilt`: nothing that it does from then on can be trusted.
    """

    def __init__(self, bench, memory=512, disk=None, kernel=None, programs=()):
        """Boots it. `disk`: the file of a disk that it has as /dev/vda; `programs`: static ones beside those of the tests.

        A bench that had a guest before may have another.
        """
        kernel = kernel or default_kernel()
        build(kernel)
        self.spoilt, self.running, self.output = False, False, ""
        self.changed = threading.Condition()
        image = bench.tmp / "initramfs.gz"
        if not image.exists():
            initramfs(image, kernel, programs)
            add_tap(bench)
        drive = ["-drive", f"file={disk},if=none,id=d,format=raw", "-device", "virtio-blk-pci,drive=d"] if disk else []
        ours, theirs = socket.socketpair()
        self.scripts = ours
        words = ["qemu-system-x86_64", *accelerator(), "-smp", "2", "-m", memory, "-display", "none", "-monitor", "none", "-no-reboot",
                 "-kernel", kernel.image, "-initrd", image,
                 "-append", "console=ttyS0 panic=-1 quiet loglevel=4 rcupdate.rcu_cpu_stall_timeout=120",
                 "-serial", "stdio", "-chardev", f"socket,id=scripts,fd={theirs.fileno()}", "-serial", "chardev:scripts",
                 "-netdev", "tap,id=n,ifname=fade0,script=no,downscript=no",
                 "-device", "virtio-net-pci,netdev=n,host_mtu=9000",
                 # One with a ring and interrupts that can be set.
                 "-netdev", "hubport,id=h,hubid=0", "-device", "e1000-82545em,netdev=h", *drive]  # fmt: skip
        self.process = Process(bench.board_ns, *words, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        threading.Thread(target=self.listen, daemon=True).start()
        try:
            self.wait("GUEST-READY")
        except BaseException:
            self.close()
            raise

    def listen(self):
        """Keeps what the guest says."""
        for line in self.process.popen.stdout:
            with self.changed:
                self.output += line
                self.changed.notify_all()
        with self.changed:
            self.running = None
            self.changed.notify_all()

    def wait(self, text):
        """Waits until the guest has said `text`: all that it said."""
        with self.changed:
            found = self.changed.wait_for(lambda: text in self.output or self.running is None, TIMEOUT)
            if not found or text not in self.output:
                self.spoilt = True
                raise AssertionError(f"the guest did not say {text!r}; it said: {self.output[-12000:]}")
            return self.output

    def is_busy(self):
        """True while a script runs."""
        with self.changed:
            return bool(self.running) and "GUEST-DONE" not in self.output

    def start(self, script):
        """Begins a script."""
        assert not self.running, "the script before is still running"
        self.output, self.running = "", True
        self.scripts.sendall(f"{encoded(script.encode())}\nEND\n".encode())

    def finish(self):
        """Waits for the end of the script: the guest's output. The script did well, the kernel had nothing to complain of."""
        out = self.wait("GUEST-DONE")
        self.running = False
        status = re.search(r"GUEST-STATUS (\d+)", out)
        self.spoilt = bool(WARNING.search(out))
        # The script's words, not those of the kernel behind them.
        assert int(status[1]) == 0, out[: status.end()][-6000:]
        assert not self.spoilt, out[-6000:]
        return out

    def run(self, script):
        self.start(script)
        return self.finish()

    def close(self):
        self.process.popen.kill()
        self.process.popen.wait()
        self.process.popen.stderr.close()


def session(bench, script, *sim, parameters=""):
    """Boards, the driver and the script's lines in order, each of which must succeed: the guest's output and the boards' summary."""
    boards = bench.sim("--packet-socket", *sim, iface="fade0")
    out = bench.guest.run("\n".join(["set -e", f"{LOAD} {parameters}", *script]))
    return out, bench.end_sim(boards)["boards"]
