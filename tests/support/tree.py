"""Copies of the project's tree: what git knows, new files too, with the packages of this .venv; and programs in them."""

import os
import subprocess

from support import sandbox
from support.paths import TOP

# Folders that make, or WebAssembly tools, may take for others: below /tmp, with a space and a letter that is not ASCII.
STRANGE = "Zähler 1/fadelink"
# /tmp is a folder of the test, which is read-only but for the tree in it. The packages are in the tree, as a mount: what asks for its
# own real path finds that of the tree. Scripts of this .venv name the one where it is, also if that is below /tmp.
BELOW_TMP = """
mount --bind "$3" /srv
mount --bind "$1" /tmp
case $3 in /tmp/*) mkdir -p "$3"; mount --bind /srv "$3" ;; esac
mount --bind "/tmp/$2" "/tmp/$2"
mount -o remount,bind,ro /tmp
mount --bind /srv "/tmp/$2/.venv"
cd "/tmp/$2"
shift 3
exec "$@"
"""
SITE = "lib/python3*/site-packages"
# In the environment. Without the mark, the copy has sandboxes of its own.
OF_THIS_TREE = {"PYTHONPATH", "PYTHONPYCACHEPREFIX", "MAKEFLAGS", "MFLAGS", "VERILATOR_ROOT", sandbox.MARK}
# What `make setup` writes into .venv for a tree of its own.
PATH_FILE = "fadelink-tests.pth"


def git(*words, folder):
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def venv():
    """The packages of this tree."""
    return (TOP / ".venv").resolve()


def copy(folder):
    """Makes a copy in a folder, which must not be there."""
    folder.mkdir(parents=True)
    files = [name for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=TOP).split("\0") if (TOP / name).exists()]
    subprocess.run(["cp", "--parents", "-t", folder, *filter(None, files)], cwd=TOP, check=True)
    git("init", "-q", folder=folder)
    git("add", "--all", folder=folder)
    (site,) = venv().glob(SITE)
    for original in (venv(), venv() / "bin", site):
        own = folder / ".venv" / original.relative_to(venv())
        own.mkdir(parents=True)
        for path in original.iterdir():
            if path.is_file() or path.is_symlink() or original == site:
                if path.name != PATH_FILE:
                    (own / path.name).symlink_to(path)
    return folder


def run(folder, *words, **environment):
    """Runs a program in a copy, without what the environment says of this tree: its output, which must be that of a success."""
    return finish(words, folder, environment)


def run_below_tmp(folder, *words, **environment):
    """The same where the copy, `folder / STRANGE`, is below /tmp."""
    return finish(["unshare", "--mount", "bash", "-ec", BELOW_TMP, "bash", folder, STRANGE, venv(), *words], folder, environment)


def finish(words, folder, environment):
    inherited = {name: value for name, value in os.environ.items() if name not in OF_THIS_TREE}
    words = [str(word) for word in words]
    process = subprocess.run(words, cwd=folder, env=inherited | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)  # fmt: skip
    assert process.returncode == 0, f"{' '.join(words)}: exit status {process.returncode}\n{process.stdout[-6000:]}"
    return process.stdout
