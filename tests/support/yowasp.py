#!/usr/bin/env python3
"""Yosys, nextpnr and ecppack of PyPI, which are WebAssembly: the way to call them.

Usage: yowasp.py TOOL [ARGUMENT ...]     for programs that are not Python: TOOL without `yowasp-`, in the folder of the caller

/tmp and /share are folders of their own to these tools, so a path that begins there is not found. Every path is given relative to the
folder in which the tool runs, which is found wherever that is.
"""

import os
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))


def relative(path, folder=TOP):
    """A path as it is from a folder."""
    return os.path.relpath(path, folder)


def command(tool, *words, folder=TOP):
    """The command line of a tool that runs in a folder; a word that begins with a slash is a path."""
    texts = [str(word) for word in words]
    return [os.path.join(TOP, ".venv/bin", f"yowasp-{tool}"), *(relative(text, folder) if text.startswith("/") else text for text in texts)]


def run(tool, *words, **options):
    """Runs a tool in the top folder of the project, as subprocess.run."""
    return subprocess.run(command(tool, *words), cwd=TOP, **options)


if __name__ == "__main__":
    found = command(*sys.argv[1:], folder=os.getcwd())
    os.execv(found[0], found)
