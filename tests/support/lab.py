"""Experiments of `fadelink run`, and what is in the folders of their runs."""

import json
import signal
import sys

import blake3
import numpy

from support.netns import FEBS, sh


def sealed(manifest):
    """The text of a manifest, with the hash of its text (host/runs/src/manifest.rs)."""
    none = "0" * 64
    text = json.dumps(manifest | {"seal": none}, indent=2) + "\n"
    return text.replace(f'\n  "seal": "{none}', f'\n  "seal": "{blake3.blake3(text.encode()).hexdigest()}', 1)


def sealed_list(transmissions):
    """The list of a board's transmissions, and its hash (host/cli/src/receive/transmissions.rs)."""
    text = json.dumps(transmissions, separators=(",", ":"))
    return f"{text}\n{blake3.blake3(text.encode()).hexdigest()}\n"


class Lab:
    """An experiment file and its runs."""

    def __init__(self, bench):
        self.bench, self.file = bench, bench.tmp / "experiment.toml"
        self.runs = bench.tmp / "runs"
        sh("ip", "-n", bench.pc_ns, "link", "set", "lo", "up")

    def write(self, text):
        self.file.write_text(text)

    def start(self, *options):
        return self.bench.fadelink("run", self.file, "--quiet", *options)

    def run(self, *options):
        """A whole run: its exit status, its manifest, its messages."""
        status, _, err = self.start(*options).finish()
        assert list(self.runs.glob("run_*")), err
        return status, self.manifest(), err

    def folder(self, number=None):
        folders = sorted(self.runs.glob("run_*"))
        return folders[-1] if number is None else self.runs / f"run_{number:06}"

    def manifest(self, number=None):
        return json.loads((self.folder(number) / "manifest.json").read_text())

    def change(self, number=None, **entries):
        """Changes entries of a manifest, and seals it again."""
        path = self.folder(number) / "manifest.json"
        path.write_text(sealed(json.loads(path.read_text()) | entries))

    def check(self, number=None):
        status, out, err = self.bench.run("check", self.folder(number), "--json")
        assert out, err
        return status, json.loads(out)

    def ask(self, wish):
        status, out, err = self.bench.run(wish, self.file)
        assert status == 0, err
        return json.loads(out)


def fade(name, number=0, more=""):
    return f'[[fade]]\nname = "{name}"\ninterface = "eth0"\nmac = "{FEBS[number]}"\nverify = "counter"\n{more}\n'


def words(path):
    return numpy.fromfile(path, dtype="<u8")


def is_counter(found):
    return (found == numpy.arange(found.size, dtype="<u8")).all()


def end(process):
    """Ends a run: its exit status and its messages."""
    process.signal(signal.SIGTERM)
    status, _, err = process.finish()
    return status, err


def fetch(bench, path, method="GET"):
    """What the HTTP server in the computer's namespace answers, also with a status of errors."""
    program = (
        "import sys, http.client; c = http.client.HTTPConnection('127.0.0.1', 9470); c.request(*sys.argv[1:]); print(c.getresponse().read().decode())"
    )
    return bench.run_in(bench.pc_ns, sys.executable, "-c", program, method, path)
