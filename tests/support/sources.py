"""The sources of a module of rtl/: their files, and a digest that changes with their code."""

import hashlib
import re
from functools import cache

from support.paths import RTL, TOP

COMMENT = re.compile(r"//.*")


def modules():
    """Name of each module and package of rtl/ to its file."""
    return {path.stem: path for path in sorted(RTL.rglob("*.sv"))}


def files_of(top, files):
    """Files that a module needs, of `files` by name, relative to the top: packages first, each behind what it uses."""
    found = []

    def visit(name):
        text = COMMENT.sub("", files[name].read_text())
        used = {word for word in re.findall(r"\b(\w+_pkg)::", text) if word in files}
        used |= {word for word in re.findall(r"^\s*(\w+)\s+(?:#\s*\(|\w+\s*\()", text, re.M) if word in files}
        for other in sorted(used - {name}):
            if other not in found:
                visit(other)
        if name not in found:
            found.append(name)

    visit(top)
    found.sort(key=lambda name: not name.endswith("_pkg"))
    return [str(files[name].relative_to(TOP)) for name in found]


@cache
def code_of(text):
    """The words of a source, one a line, without comments."""
    return "\n".join(re.findall(r"\w+|\S", COMMENT.sub("", text)))


def digest(files, *settings):
    """Eight digits of the code of some files and of the settings that it is used with; comments and white space do not count."""
    words = [word for file in files for word in (str(file), code_of((TOP / file).read_text()))]
    return hashlib.sha256("\n".join([*words, *map(str, settings)]).encode()).hexdigest()[:8]
