#!/usr/bin/env python3
"""Datasheets of the cores: docs/cores/NAME.md from the module's header and declaration, and the clocks and sizes in docs/timing.md.

Every parameter and port has a meaning (tests/support/interface.py says where it comes from); a core that leaves one out is an error.

Usage: tools/datasheets.py            writes docs/cores/*.md
       tools/datasheets.py --check    says which are not as they should be
"""

import re
import sys
from itertools import groupby

from file_lists import CORES
from support.interface import interface
from support.paths import TOP
from support.place import CORES as PLACED
from support.sources import modules

OUT = TOP / "docs/cores"
BOARDS = ("example_board", "kc705", "de2_115")


def comment_of(interface):
    """(paragraphs before the drawing, the drawing, paragraphs behind it) of a module's header."""
    blocks = interface.paragraphs()
    drawing = next((i for i, block in enumerate(blocks) if "+--" in block), None)
    if drawing is None:
        return blocks, "", []
    return blocks[:drawing], blocks[drawing], blocks[drawing + 1 :]


def paragraph(block):
    """A paragraph of Markdown; a table that is drawn with blanks stays as it is."""
    if any(line.startswith("  ") for line in block.splitlines()):
        return f"```text\n{block}\n```"
    return cell(" ".join(block.split())).replace("<", "&lt;")


def cell(text):
    return text.replace("|", "\\|")


def tables_of(interface):
    """The lines of the tables of parameters and ports, one for each group of ports; and the names that nothing is said of."""
    meanings, lines = interface.meanings(), []
    if interface.parameters:
        lines += ["| parameter | default | meaning |", "|---|---|---|"]
        lines += [f"| `{item.name}` | `{cell(item.value)}` | {cell(meanings[item.name])} |" for item in interface.parameters] + [""]
    for group, ports in groupby(interface.ports, lambda item: item.group):
        lines += [f"| {cell(f'port: {group}' if group else 'port')} | | width or type | meaning |", "|---|---|---|---|"]
        lines += [f"| `{item.name}` | {item.kind} | `{cell(shown(item.type))}` | {cell(meanings[item.name])} |" for item in ports] + [""]
    return lines, [name for name, meaning in meanings.items() if not meaning]


def shown(kind):
    """The type of a port without what says nothing."""
    return re.sub(r"^(logic|wire) ?", "", kind).replace(" ", "") or "1"


def rows_of(core):
    """The rows of docs/timing.md of a core: name, parameters, device, clock, needed, median, size."""
    names = [placed.name for placed in PLACED if placed.top == core]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in (TOP / "docs/timing.md").read_text().splitlines() if line.startswith("| ")
    ]
    return [row for row in rows if row[0] in names]


def datasheet(core, path):
    """The page of a core; an error if it would have a parameter or a port without a meaning."""
    described = interface(core)
    before, drawing, behind = comment_of(described)
    source = path.relative_to(TOP)
    lines = [f"# {core}", "", *sum(([paragraph(block), ""] for block in before), [])]
    if drawing:
        lines += ["```text", drawing, "```", ""]
    lines += sum(([paragraph(block), ""] for block in behind), [])
    files = source.with_suffix(".f")
    lines += [f"Source: [{source}](../../{source}), with the files of [{files}](../../{files}). FuseSoC: `fadelink:core:{core}`.", ""]
    tables, unknown = tables_of(described)
    if unknown:
        raise ValueError(f"{source}: no meaning of {', '.join(unknown)}: expected a comment behind it, or one of those in tests/support/interface.py")
    lines += tables
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
        first = re.split(r"(?<=\.)\s", paragraph(comment_of(interface(core))[0][0]))[0].rstrip(".")
        lines.append(f"| [{core}]({core}.md) | {first} |")
    found[OUT / "README.md"] = "\n".join(lines) + "\n"
    return found


def main():
    wrong = []
    OUT.mkdir(exist_ok=True)
    try:
        pages = made()
    except ValueError as error:
        sys.exit(f"tools/datasheets.py: {error}")
    for path, text in pages.items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(str(path.relative_to(TOP)))
    if wrong:
        print(f"not as tools/datasheets.py writes them: {', '.join(wrong)}", file=sys.stderr)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
