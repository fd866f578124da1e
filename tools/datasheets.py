#!/usr/bin/env python3
"""Datasheets of the cores: docs/cores/NAME.md from the module's header, and the clocks and sizes in docs/timing.md.

Usage: tools/datasheets.py            writes docs/cores/*.md
       tools/datasheets.py --check    says which are not as they should be
"""

import re
import sys

from file_lists import CORES
from support.paths import TOP
from support.place import CORES as PLACED
from support.sources import modules

OUT = TOP / "docs/cores"
BOARDS = ("example_board", "kc705", "de2_115")
HEADER = re.compile(r"^(?://.*\n)+", re.M)
PARAMETER = re.compile(r"^\s*parameter (?:int|bit|logic(?: \[.*?\])?)(?: unsigned)? (\w+) = (.*?),?\s*(?://\s*(.*))?$", re.M)
PORT = re.compile(r"^\s*(input|output|inout)\s+(wire|logic|\w+::\w+)\s*((?:\[[^\]]*\]\s*)*)(\w+),?$")


def comment_of(text):
    """(paragraphs before the drawing, the drawing, paragraphs behind it) of a module's header."""
    lines = [line.removeprefix("//").removeprefix(" ") for line in HEADER.match(text)[0].splitlines()[2:]]
    blocks = [block for block in "\n".join(lines).strip("\n").split("\n\n") if block.strip()]
    drawing = next((i for i, block in enumerate(blocks) if "+--" in block), None)
    if drawing is None:
        return blocks, "", []
    return blocks[:drawing], blocks[drawing], blocks[drawing + 1 :]


def paragraph(block):
    """A paragraph of Markdown; a table that is drawn with blanks stays as it is."""
    if any(line.startswith("  ") for line in block.splitlines()):
        return f"```text\n{block}\n```"
    return " ".join(block.split()).replace("|", "\\|").replace("<", "&lt;")


def ports_of(text):
    """(direction, type and width, name, the line above if it is a comment) of each port."""
    body = text.split(") (", 1)[1] if ") (" in text else re.split(r"^module \w+ \(", text, maxsplit=1, flags=re.M)[1]
    found, about = [], ""
    for line in body.split("\n);", 1)[0].splitlines():
        if line.strip().startswith("//"):
            about = line.strip().removeprefix("//").strip()
            continue
        bare, _, remark = line.partition("//")
        if match := PORT.match(bare.rstrip()):
            direction, kind, width, name = match.groups()
            width = re.sub(r"\s+", "", width)
            shown = f"{'' if kind in ('logic', 'wire') else kind}{width}" or "1"
            found.append((direction, shown.replace("|", "\\|"), name, remark.strip() or about))
            about = ""
    return found


def rows_of(core):
    """The rows of docs/timing.md of a core: name, parameters, device, clock, needed, median, size."""
    names = [placed.name for placed in PLACED if placed.top == core]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (TOP / "docs/timing.md").read_text().splitlines() if line.startswith("| ")
    ]
    return [row for row in rows if row[0] in names]


def datasheet(core, path):
    text = path.read_text()
    before, drawing, behind = comment_of(text)
    source = path.relative_to(TOP)
    lines = [f"# {core}", "", *sum(([paragraph(block), ""] for block in before), [])]
    if drawing:
        lines += ["```text", drawing, "```", ""]
    lines += sum(([paragraph(block), ""] for block in behind), [])
    files = source.with_suffix(".f")
    lines += [f"Source: [{source}](../../{source}), with the files of [{files}](../../{files}). FuseSoC: `fadelink:core:{core}`.", ""]
    if parameters := PARAMETER.findall(text.split(");", 1)[0]):
        lines += ["| parameter | default | |", "|---|---|---|", *(f"| `{name}` | `{value}` | {about} |" for name, value, about in parameters), ""]
    lines += ["| port | | width or type | |", "|---|---|---|---|"]
    lines += [f"| `{name}` | {direction} | `{kind}` | {about} |" for direction, kind, name, about in ports_of(text)]
    lines.append("")
    if rows := rows_of(core):
        lines += ["Clocks in MHz and size in Lattice ECP5, placed and routed ([timing.md](../timing.md)):", ""]
        lines += ["| parameters | device | clock | needed | reached (median) | COMB, FF, RAM |", "|---|---|---|---|---|---|"]
        lines += [f"| {row[1]} | {row[2]} | {row[3]} | {row[4]} | {row[7]} | {row[8]} |" for row in rows]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def made():
    """{path: text} of everything."""
    files = modules()
    cores = [core for core in CORES if core not in BOARDS]
    found = {OUT / f"{core}.md": datasheet(core, files[core]) for core in cores}
    lines = ["# Cores", "", "A page for each core: what it does, its parameters and ports, the clocks it reaches and its size. `tools/datasheets.py` writes them", "from the sources and from [timing.md](../timing.md).", "", "| core | |", "|---|---|"]  # fmt: skip
    for core in cores:
        first = re.split(r"(?<=\.)\s", paragraph(comment_of(files[core].read_text())[0][0]))[0].rstrip(".")
        lines.append(f"| [{core}]({core}.md) | {first} |")
    found[OUT / "README.md"] = "\n".join(lines) + "\n"
    return found


def main():
    wrong = []
    OUT.mkdir(exist_ok=True)
    for path, text in made().items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(str(path.relative_to(TOP)))
    if wrong:
        print(f"not as tools/datasheets.py writes them: {', '.join(wrong)}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
