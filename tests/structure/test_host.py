"""Which Rust crates may depend on which: crates as docs/architecture.md says, and no circles between files."""

import re
import subprocess

import pytest
import tomllib
from support.paths import TOP

HOST = TOP / "host"
CRATES = sorted(path.parent.name for path in HOST.glob("*/Cargo.toml"))
PATH = re.compile(r"\b(crate|super|self)((?:::\w+)+(?!\w)|(?=::\{))(::\{)?")


def without_tests(text):
    """The code that is built: no comments, and nothing behind `#[cfg(test)]`, which stands last in a file."""
    return re.sub(r"//.*", "", text.split("#[cfg(test)]")[0])


def modules(crate):
    """{module path as a tuple: its file} of a crate: () is lib.rs or main.rs."""
    found = {}
    for file in sorted((HOST / crate / "src").rglob("*.rs")):
        parts = file.relative_to(HOST / crate / "src").with_suffix("").parts
        if parts[-1] in ("lib", "main", "mod"):
            parts = parts[:-1]
        found[parts] = file
    return found


def braces(text, start):
    """The names that stand first in each item of the braces which open before `start`."""
    depth, item, items = 1, "", []
    for char in text[start:]:
        depth += (char == "{") - (char == "}")
        if depth == 0:
            break
        if char == "," and depth == 1:
            items.append(item)
            item = ""
        else:
            item += char
    return [re.findall(r"\w+", part) for part in [*items, item] if part.strip()]


def uses(crate):
    """{module: the modules of the same crate that it names}; a parent that only declares its children does not."""
    known = modules(crate)
    graph = {}
    for module, file in known.items():
        text = without_tests(file.read_text())
        graph[module] = set()
        for match in PATH.finditer(text):
            names = [name for name in match[2].split("::") if name]
            base = {"crate": (), "super": module[:-1], "self": module}[match[1]]
            while names and names[0] == "super":
                base, names = base[:-1], names[1:]
            for tail in braces(text, match.end()) if match[3] else [[]]:
                path = (*base, *names, *tail)
                target = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in known)
                if target != module:
                    graph[module].add(target)
        # `use child::Item` in the file that declares the child.
        for name in re.findall(r"\b(?:use\s+|[(<\s&])(\w+)::", text):
            if (*module, name) in known and re.search(rf"\bmod {name};", text):
                graph[module].add((*module, name))
    return graph


def circles(graph):
    """Groups of modules that depend on each other (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted("::".join(module) or "the crate's root" for module in group))

    for node in graph:
        if node not in index:
            visit(node)
    return found


@pytest.mark.parametrize("crate", CRATES)
def test_no_circles_between_files(crate):
    assert circles(uses(crate)) == []


def test_a_circle_is_found():
    graph = {("a",): {("b",)}, ("b",): {("c",)}, ("c",): {("a",)}, (): {("a",)}}
    assert circles(graph) == [["a", "b", "c"]]


def test_the_small_command_needs_no_library_in_c():
    """`--no-default-features`: nothing that is built links to a library, or compiles one."""
    tree = ["cargo", "tree", "--offline", "--locked", "-p", "fadelink", "-e", "normal,build", "--prefix", "none", "-f", "{p}"]

    def in_c(*options):
        names = {
            line.split()[0]
            for line in subprocess.run([*tree, *options], cwd=HOST, capture_output=True, text=True, check=True).stdout.split("\n")
            if line
        }
        # linux-raw-sys has constants alone, netlink-sys the calls of a socket.
        return {name for name in names if name.endswith("-sys") or name in ("cc", "cmake", "bindgen", "pkg-config")} - {
            "linux-raw-sys",
            "netlink-sys",
        }

    # blake3 asks for cc, and compiles nothing with its feature `pure`.
    assert in_c("--no-default-features") <= {"cc"}
    tree[-1] = "{p} {f}"
    found = subprocess.run([*tree, "--no-default-features", "-i", "cc", "--depth", "1"], cwd=HOST, capture_output=True, text=True).stdout
    assert [line.split()[0] for line in found.splitlines()[1:] if line] == ["blake3"] and "pure" in found
    tree[-1] = "{p}"
    assert {"rdkafka-sys", "hdf5-metno-sys"} <= in_c() and "libbpf-sys" in in_c("--features", "xdp")


def test_crates_lean_on_what_the_architecture_says():
    text = (TOP / "docs/architecture.md").read_text()
    table = dict(re.findall(r"^\| `host/([\w-]+)` \|[^|]*\| ([^|]*) \|$", text, re.M))
    assert sorted(table) == CRATES
    for crate in CRATES:
        manifest = tomllib.loads((HOST / crate / "Cargo.toml").read_text())
        used = {name.removeprefix("fadelink-") for name in manifest.get("dependencies", {}) if name.startswith("fadelink-")}
        assert used == set(re.findall(r"`([\w-]+)`", table[crate])), crate
