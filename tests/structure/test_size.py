"""A source has at most 500 lines, in every language: more than that is more than one subject, and more than one sitting."""

import subprocess
from pathlib import Path

import pytest
from support.paths import TOP

LIMIT = 500
# What people write by hand: no data, no locks of dependencies, no documents, no pictures, no lists that tools make.
SUFFIXES = set(".rs .c .h .sv .v .svh .py .pyi .cpp .hpp .sh .lua .js .ts .css .html .asm .rdl .tcl .def .vlt .sdc .xdc .lpf .cst".split())
NAMES = {"Makefile", "Kbuild", "Containerfile", "rules", "postinst", "postrm", "run"}
# What tools/registers.py says of its files, in their first lines: nobody reads what PeakRDL wrote.
GENERATED = "Written by tools/registers.py"
# Other files that are longer, with the reason.
EXCEPTIONS = {}


def is_source(path):
    """By its name; what has no suffix may be a script."""
    return path.suffix in SUFFIXES or path.name in NAMES or (not path.suffix and path.read_bytes()[:2] == b"#!")


def is_long(path):
    text = path.read_text()
    return text.count("\n") > LIMIT and GENERATED not in "\n".join(text.split("\n")[:5])


@pytest.fixture(scope="module")
def long_sources():
    """The files that the rule forbids, but for the exceptions."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True).stdout.split("\0")
    paths = [TOP / name for name in names if name]
    return {str(path.relative_to(TOP)) for path in paths if path.is_file() and is_source(path) and is_long(path)}


def test_no_source_is_too_long(long_sources):
    assert sorted(long_sources - set(EXCEPTIONS)) == [], f"more than {LIMIT} lines: one subject a file, shared parts in a file of their own"


def test_each_exception_is_one(long_sources):
    assert set(EXCEPTIONS) <= long_sources


@pytest.mark.parametrize("name", ["long.rs", "long.sv", "test_long.py", "long.c", "long.lua", "Makefile", "script"])
def test_a_long_source_is_found(tmp_path, name):
    path = tmp_path / name
    path.write_text("#!/bin/sh\n" + "x\n" * (LIMIT - 1))
    assert is_source(path) and not is_long(path)
    path.write_text("#!/bin/sh\n" + "x\n" * LIMIT)
    assert is_long(path)


def test_what_is_no_source_may_be_long(tmp_path):
    generated = tmp_path / "csr.sv"
    generated.write_text(f"// A licence.\n//\n// Registers. {GENERATED} from csr.rdl.\n" + "x\n" * LIMIT)
    assert not is_long(generated)
    # A file that only has something to do with the generator is not exempt.
    generated.write_text("x\n" * LIMIT + f"// {GENERATED}\n")
    assert is_long(generated)
    assert not any(is_source(Path(name)) for name in ("data.json", "Cargo.lock", "page.md", "picture.svg", "list.toml"))
