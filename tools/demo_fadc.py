#!/usr/bin/env python3
"""`make demo-fadc`: two simulated FADC crates send over TCP; their events go to HDF5, to ZeroMQ and to a page.

Usage: tools/demo_fadc.py [--windows N] [--port PORT] [--stay] [--picture FILE]

Everything runs in two network namespaces of its own; the page is made reachable at http://127.0.0.1:PORT/ (0: at a free port).
"""

import argparse
import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import h5py
import zmq
from support import fadc_model as model
from support import sandbox
from support.netns import Bench, add_address, sh
from support.paths import SIM

WINDOW_NS, RATE, CRATES = 16384, 10_000, 2
# Time from the first data to the picture of the page.
PICTURE_SECONDS = 40


async def relay(bench, reader, writer, port):
    """A browser's connection, to the page in the namespace."""

    async def copy(source, sink):
        try:
            while data := await source.read(1 << 16):
                sink.write(data)
                await sink.drain()
        except ConnectionError:
            pass
        sink.close()

    inside = bench.in_namespace(bench.pc_ns, socket.socket)
    inside.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(inside, ("127.0.0.1", port))
    except OSError:
        writer.close()
        return
    to_reader, to_writer = await asyncio.open_connection(sock=inside)
    await asyncio.gather(copy(reader, to_writer), copy(to_reader, writer))


def serve(bench, listener, port):
    async def run():
        server = await asyncio.start_server(lambda r, w: relay(bench, r, w, port), sock=listener)
        await server.serve_forever()

    asyncio.run(run())


def take_picture(page, path, folder):
    """Writes a picture of the page, when it shows data."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for word in ("--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1240,960"):
        options.add_argument(word)
    browser = webdriver.Chrome(options, webdriver.ChromeService("/usr/bin/chromedriver", env=os.environ | {"TMPDIR": str(folder)}))
    try:
        browser.get(page)
        time.sleep(PICTURE_SECONDS)
        browser.save_screenshot(str(path))
    finally:
        browser.quit()


def subscribe(endpoint, found):
    client = zmq.Context.instance().socket(zmq.SUB)
    client.subscribe(b"")
    client.connect(endpoint)

    def run():
        while True:
            event, messages = model.read_event(client.recv())
            found.append((event.record, sum(len(model.read_hits(message, WINDOW_NS // 4)[0]) for message in messages)))

    threading.Thread(target=run, daemon=True).start()


def demo(args, bench):
    folder = bench.tmp
    out, endpoint = folder / "events.h5", f"ipc://{folder}/events"
    listener = socket.create_server(("127.0.0.1", args.port))
    add_address(bench)
    sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")
    print(f"demo: {CRATES} simulated crates (the RTL, cycle by cycle) of 16 modules with 16 channels, over TCP", flush=True)
    builder = bench.fadelink("build", "--tcp", 10000, "--window-ns", WINDOW_NS, "--expect", CRATES, "--silence", 60, "--end", "told",
                    *(() if args.stay else ("--streams", CRATES)), "--sink", f"hdf5:{out},every=0", "--sink", f"zmq-pub:{endpoint}",
                    "--web", f"127.0.0.1:{args.port}", "--quiet", "--json")  # fmt: skip
    builder.popen.stderr.readline()
    threading.Thread(target=serve, args=(bench, listener, args.port), daemon=True).start()
    print(f"demo: rates, hit maps, charges and differences of time, live: http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    published = []
    subscribe(endpoint, published)
    board = bench.start(bench.board_ns, SIM, "--iface", "feb0", "--protocol", "fadc", "--phy", "gmii", "--boards", CRATES, "--window-ns", WINDOW_NS,
                  "--pulse-rate", RATE, "--windows", args.windows, "--status", "--json", stderr_to=None)  # fmt: skip
    if args.picture:
        take_picture(f"http://127.0.0.1:{listener.getsockname()[1]}/", args.picture, folder)
    if args.stay:
        print("demo: Ctrl-C ends it", flush=True)
        try:
            builder.popen.wait()
        except KeyboardInterrupt:
            builder.signal(signal.SIGINT)
    status, report, _ = builder.finish(timeout=None)
    board.signal(signal.SIGTERM)
    generated = sum(crate["hits"] for crate in json.loads(board.finish()[1])["boards"])
    found = json.loads(report)
    with h5py.File(out) as file:
        stored, windows = len(file["hits/charge"]), len(file["windows/window"])
    heard = sum(count for _, count in published)
    print(f"\nHDF5: {windows} windows, {stored} hits; ZeroMQ: {len(published)} windows, {heard} hits; the crates found {generated}")
    print(f"builder: {found['windows']}")
    good = status == 0 and stored == heard == generated > 0 and windows == len(published) and (args.stay or windows == args.windows)
    print("demo: PASSED: every hit of both crates is in the file and was published, once" if good else "demo: FAILED")
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=120, help="time windows of 16 us to simulate; about 6 take a second")
    parser.add_argument("--port", type=int, default=8080, help="of the page")
    parser.add_argument("--stay", action="store_true", help="keep the page after the last window, until Ctrl-C")
    parser.add_argument("--picture", type=Path, help="write a picture of the page to this file (needs Chromium; 1000 windows or more)")
    args = parser.parse_args()
    # The page is for a browser outside.
    sandbox.enter(network="host", root=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Bench(Path(folder))) as bench:
        return demo(args, bench)


if __name__ == "__main__":
    sys.exit(main())
