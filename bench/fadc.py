#!/usr/bin/env python3
"""FADC streaming: hits of a link, messages by window length, the event builder by number of crates beside a plain reader.

Usage: bench/fadc.py [link] [window] [time] [builder] [resources]     default: all
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from support import fadc_model as model
from support import sandbox
from support.crate_time import CRATES, compare_pulses, run_crates
from support.paths import FADELINK, SIM
from support.synth import synthesize, totals

# More than can be read out: a thousand million pulses a second.
OVERLOAD = 4e6
WARM_MS = 0.4


def link(phy, window_ns, rate, *options):
    """(bit/s of messages, hits a byte, messages a byte, all flags) once buffers are full."""
    # Many segments in the time that is measured, for their number is whole.
    mtu, length_ms = (1500, 2) if phy == "gmii" else (9000, 1)
    with tempfile.TemporaryDirectory() as folder:
        words = [SIM, "--virtual", "--json", "--protocol", "fadc", "--phy", phy, "--window-ns", window_ns, "--pulse-rate", rate, "--mtu", mtu,
                 "--save", f"{folder}/s", "--share-from-ms", WARM_MS, "--limit-ms", WARM_MS + length_ms, *options]  # fmt: skip
        board = json.loads(subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout)["boards"][0]
        size = hits = messages = 0
        for path in Path(folder).iterdir():
            data = path.read_bytes()
            place = 0
            while place + 48 <= len(data):
                _, length, payload, *_ = model.Header.unpack_from(data, place)
                if place + length > len(data):
                    break
                # The first messages hold what came before the buffers were full.
                if place > len(data) // 2:
                    found = np.frombuffer(data, "<u4", payload // 4, place + 48)
                    hits += int((found >> 31 == 0).sum())
                    size += length
                    messages += 1
                place += length
    return board["goodput_bps"], hits / size, messages / size, board


def by_link():
    print("## Hits a second of a link, more pulses than can be read out\n")
    print("| link | window, ns | messages, Gb/s | of the line | hits/s | bytes a hit |")
    print("|---|---|---|---|---|---|")
    for phy, line in (("gmii", 1e9), ("xgmii", 1e10)):
        for window_ns in (1024, 4096, 16384):
            bps, hits, _, _ = link(phy, window_ns, OVERLOAD)
            name = "1 Gb/s, MTU 1500" if phy == "gmii" else "10 Gb/s, 4 connections, MTU 9000"
            print(
                f"| {name} | {window_ns} | {bps / 1e9:.3f} | {100 * bps / line:.1f} % | {bps / 8 * hits / 1e6:.1f} M | {1 / hits:.2f} |", flush=True
            )


def by_window():
    print("\n## Messages a second by window, each window sent (10 kHz a channel, 2.56 M hits/s)\n")
    print("| window, ns | windows/s | messages/s of 1 link of 1 Gb/s | windows lost | hits lost |")
    print("|---|---|---|---|---|")
    for window_ns in (32, 128, 512, 1024, 4096, 65536):
        bps, _, messages, board = link("gmii", window_ns, 1e4)
        kept = bps / 8 * messages
        lost = "none" if board["windows_lost"] == 0 else f"{100 * (1 - kept / (1e9 / window_ns)):.0f} %"
        print(f"| {window_ns} | {1e9 / window_ns:,.0f} | {kept:,.0f} | {lost} | {board['hits_lost']} |", flush=True)


def by_time():
    print("## Two crates with PTP: by how much the slave has a common pulse later\n")
    print("| crates | oscillators | pulses | mean | deviation | most |")
    print("|---|---|---|---|---|---|")
    for crate in CRATES:
        for ppm in (0, 100):
            with tempfile.TemporaryDirectory() as folder:
                found, _ = run_crates(Path(folder), crate, 16384, "2,1", "--spread-ppm", ppm, windows=800)
            later, _ = compare_pulses(found, 16384)
            most = max(later, key=abs)
            print(
                f"| {crate} | {f'up to {ppm} ppm wrong' if ppm else 'right'} | {len(later)} | {np.mean(later):.1f} ns | {np.std(later):.1f} ns | {most} ns |",
                flush=True,
            )


def stream(source, messages, hits):
    """Messages of one crate, as one array of bytes."""
    r = np.random.default_rng(source)
    words = [1 << 31 | 1 << 15 | 3, *(int(w) for w in r.integers(0, 1 << 29, hits) & ~(0x3FFF << 17) | (r.integers(0, 4096, hits) << 17))]
    one = np.frombuffer(model.message(source, 0, words=words, window_ns=16384), np.uint8)
    out = np.tile(one, (messages, 1))
    records = np.arange(messages, dtype=np.uint64)
    ns = records * np.uint64(16384)
    out[:, 24:32] = records.view(np.uint8).reshape(-1, 8)
    out[:, 32:40] = (np.uint64(1_700_000_000) + ns // np.uint64(10**9)).view(np.uint8).reshape(-1, 8)
    out[:, 40:48] = (ns % np.uint64(10**9)).view(np.uint8).reshape(-1, 8)
    return out.tobytes()


def receive(words, streams):
    """(seconds, CPU seconds of the receiver) until it has taken all streams."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    words = [FADELINK, *words, "--tcp", port, "--listen", "127.0.0.1", "--streams", len(streams), "--quiet", "--json"]
    receiver = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE)
    sockets = []
    while len(sockets) < len(streams):
        try:
            sockets.append(socket.create_connection(("127.0.0.1", port)))
        except ConnectionRefusedError:
            time.sleep(0.02)
    begin = time.monotonic()
    senders = []
    for connection, data in zip(sockets, streams, strict=True):
        if (pid := os.fork()) == 0:
            connection.sendall(data)
            os._exit(0)
        senders.append(pid)
    for connection in sockets:
        connection.close()
    out = receiver.stdout.read()
    _, status, usage = os.wait4(receiver.pid, 0)
    seconds = time.monotonic() - begin
    for pid in senders:
        os.waitpid(pid, 0)
    assert status == 0, (status, out[-500:])
    return seconds, usage.ru_utime + usage.ru_stime


def builder():
    print("\n## The event builder, crates on loopback\n")
    print("Both in turns in one run, the best of three each; senders use the same two processors. The plain reader is `fadelink receive --tcp`, "
          "which reads and forgets.\n")  # fmt: skip
    print("| crates | message | builder, GB/s | events/s | hits/s | CPU s a GB | plain reader, GB/s | CPU s a GB | builder / reader |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for hits, total, sinks in ((100, 400e6, ""), (2000, 800e6, ""), (100, 100e6, "HDF5")):
            for crates in (1, 2, 4, 8):
                size = len(stream(1, 1, hits))
                messages = int(total / crates / size)
                streams = [stream(source, messages, hits) for source in range(1, crates + 1)]
                nbytes = sum(map(len, streams))
                build = ["build", "--window-ns", 16384, "--expect", crates, "--end", "told"]
                if sinks:
                    build += ["--sink", f"hdf5:{folder}/x.h5"]
                best = {}
                for _ in range(3):
                    for name, words in (("build", build), ("read", ["receive", "--end", "told"])):
                        best[name] = min(best.get(name, (9e9, 9e9)), receive(words, streams))
                (seconds, cpu), (plain, plain_cpu) = best["build"], best["read"]
                name = f"{size} B" + (f", {sinks}" if sinks else "")
                print(f"| {crates} | {name} | {nbytes / seconds / 1e9:.2f} | {messages / seconds:,.0f} | {messages * crates * hits / seconds / 1e6:.0f} M | "
                      f"{cpu / nbytes * 1e9:.2f} | {nbytes / plain / 1e9:.2f} | {plain_cpu / nbytes * 1e9:.2f} | {plain / seconds:.2f} |", flush=True)  # fmt: skip


def resources():
    print("\n## Resources (Yosys, Xilinx 7 series)\n")
    print("| module | LUT | FF | BRAM | DSP |")
    print("|---|---|---|---|---|")
    for top, settings in (
        ("fadc_module", {}),
        ("fadc_builder", {}),
        ("fadc_link", {"MODULES": 4, "BITS": 16}),
        ("fadc_link", {"MODULES": 16, "BITS": 16}),
    ):
        cells = synthesize(top, **settings)
        luts, ffs, brams = totals(cells)
        name = f"{top}, {settings['MODULES']} modules" if settings else top
        print(f"| {name} | {luts:,} | {ffs:,} | {brams:g} | {cells.get('DSP48E1', 0)} |", flush=True)


def main():
    parts = {"link": by_link, "window": by_window, "time": by_time, "builder": builder, "resources": resources}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    sandbox.enter()
    main()
