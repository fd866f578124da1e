#!/usr/bin/env python3
"""`make demo-fadc`: two simulated FADC crates send over TCP; their events go to HDF5, to ZeroMQ and to a page.

Usage: tools/demo_fadc.py [--windows N] [--port PORT] [--stay]

Everything runs in two network namespaces of its own; the page is made reachable at http://127.0.0.1:PORT/.
"""

import argparse
import asyncio
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import h5py
import zmq

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests"))
import fadc_model as model  # noqa: E402

FADELINK, SIM = TOP / "host/target/release/fadelink", TOP / "build/sim/fadelink-sim"
BOARD, PC = f"fadelink-board-{os.getpid()}", f"fadelink-pc-{os.getpid()}"
WINDOW_NS, RATE, CRATES = 16384, 10_000, 2


def sh(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def build_cable():
    for namespace in (BOARD, PC):
        sh("ip", "netns", "add", namespace)
    sh("ip", "link", "add", "feb0", "netns", BOARD, "type", "veth", "peer", "name", "eth0", "netns", PC)
    for namespace, name in ((BOARD, "feb0"), (PC, "eth0"), (PC, "lo")):
        sh("ip", "-n", namespace, "link", "set", name, "up")
    sh("ip", "-n", PC, "addr", "add", "10.9.0.1/24", "dev", "eth0")
    # A board sees frames as they are on a wire, with their checksums.
    sh("ip", "netns", "exec", PC, "ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off")


def start(namespace, *words, **options):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *(str(word) for word in words)], **options)


def socket_in(namespace):
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as here, open(f"/run/netns/{namespace}") as there:
        assert libc.setns(there.fileno(), 0) == 0
        try:
            return socket.socket()
        finally:
            assert libc.setns(here.fileno(), 0) == 0


async def relay(reader, writer, port):
    """A browser's connection, to the page in the namespace."""

    async def copy(source, sink):
        try:
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass
        sink.close()

    inside = socket_in(PC)
    inside.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(inside, ("127.0.0.1", port))
    except OSError:
        writer.close()
        return
    to_reader, to_writer = await asyncio.open_connection(sock=inside)
    await asyncio.gather(copy(reader, to_writer), copy(to_reader, writer))


def serve(listener, port):
    async def run():
        server = await asyncio.start_server(lambda r, w: relay(r, w, port), sock=listener)
        await server.serve_forever()

    asyncio.run(run())


def subscribe(endpoint, found):
    client = zmq.Context.instance().socket(zmq.SUB)
    client.subscribe(b"")
    client.connect(endpoint)

    def run():
        while True:
            event, messages = model.read_event(client.recv())
            found.append((event.record, sum(len(model.read_hits(message, WINDOW_NS // 4)[0]) for message in messages)))

    threading.Thread(target=run, daemon=True).start()


def demo(args, folder):
    out, endpoint = folder / "events.h5", f"ipc://{folder}/events"
    listener = socket.create_server(("127.0.0.1", args.port))
    build_cable()
    print(f"demo: {CRATES} simulated crates (the RTL, cycle by cycle) of 16 modules with 16 channels, over TCP", flush=True)
    builder = start(PC, FADELINK, "build", "--tcp", 10000, "--window-ns", WINDOW_NS, "--expect", CRATES, "--silence", 60,
                    *(() if args.stay else ("--streams", CRATES)), "--sink", f"hdf5:{out}", "--sink", f"zmq-pub:{endpoint}",
                    "--web", f"127.0.0.1:{args.port}", "--quiet", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    builder.stderr.readline()
    threading.Thread(target=serve, args=(listener, args.port), daemon=True).start()
    print(f"demo: rates, hit maps, charges and differences of time, live: http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    published = []
    subscribe(endpoint, published)
    board = start(BOARD, SIM, "--iface", "feb0", "--protocol", "fadc", "--phy", "gmii", "--boards", CRATES, "--window-ns", WINDOW_NS,
                  "--pulse-rate", RATE, "--windows", args.windows, "--status", "--json", stdout=subprocess.PIPE, text=True)  # fmt: skip
    if args.stay:
        print("demo: Ctrl-C ends it", flush=True)
        try:
            builder.wait()
        except KeyboardInterrupt:
            pass
    report = builder.communicate()[0]
    board.send_signal(signal.SIGTERM)
    generated = sum(crate["hits"] for crate in json.loads(board.communicate()[0])["boards"])
    found = json.loads(report)
    with h5py.File(out) as file:
        stored, windows = len(file["hits/charge"]), len(file["windows/window"])
    heard = sum(count for _, count in published)
    print(f"\nHDF5: {windows} windows, {stored} hits; ZeroMQ: {len(published)} windows, {heard} hits; the crates found {generated}")
    print(f"builder: {found['windows']}")
    good = builder.returncode == 0 and stored == heard == generated > 0 and windows == len(published) == args.windows
    print("demo: PASSED: every hit of both crates is in the file and was published, once" if good else "demo: FAILED")
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=120, help="time windows of 16 us to simulate; about 6 take a second")
    parser.add_argument("--port", type=int, default=8080, help="of the page")
    parser.add_argument("--stay", action="store_true", help="keep the page after the last window, until Ctrl-C")
    args = parser.parse_args()
    if os.geteuid() != 0:
        os.execvp("sudo", ["sudo", sys.executable, *sys.argv])
    try:
        with tempfile.TemporaryDirectory() as folder:
            return demo(args, Path(folder))
    finally:
        for namespace in (BOARD, PC):
            pids = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True).stdout.split()
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True)


if __name__ == "__main__":
    sys.exit(main())
