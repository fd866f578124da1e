#!/usr/bin/env python3
"""Writes docs/experiment.md, the fields of an experiment file, from the schema that `fadelink run --schema` prints.

Usage: tools/experiment.py            writes the document; `make host` builds the command
       tools/experiment.py --check    says whether it is as it should be
"""

import argparse
import json
import subprocess
import sys

from support.paths import FADELINK, TOP

DOCUMENT = TOP / "docs/experiment.md"
INTRO = """# The experiment file

Every field of the TOML file that `fadelink run` reads. [runs.md](runs.md) explains it with examples. `tools/experiment.py` writes this document
from the schema of the file (`fadelink run --schema`).

A field with a default may be left out. "none" is a default without a value: the meaning says what happens then.
"""


def named(schema, field):
    """The definition that a field, or an item of its list, refers to."""
    variants = [field, field.get("items", {}), *field.get("anyOf", [])]
    names = [variant["$ref"].rsplit("/", 1)[-1] for variant in variants if "$ref" in variant]
    return schema["$defs"][names[0]] if names else {}


def is_table(schema, field):
    return "properties" in named(schema, field)


def kind_of(schema, name, field):
    """Its type, and the range of a number."""
    if is_table(schema, field):
        return f"[{'tables' if field.get('type') == 'array' else 'table'}](#{name})"
    if field.get("format") == "date-time":
        return "date-time"
    kinds = field.get("type") or named(schema, field).get("type", "string")
    kind = next(kind for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind != "null")
    if kind == "array":
        return f"list of {field['items']['type']}s"
    return f"{kind}, {field['minimum']} to {field['maximum']}" if {"minimum", "maximum"} <= field.keys() else kind


def default_of(schema, field, required):
    if required:
        return "**required**"
    if is_table(schema, field) or field["default"] is None:
        return "none"
    return f"`{json.dumps(field['default'])}`"


def meaning_of(schema, field):
    """What it means; what each of its words means, if it is one of some."""
    words = [f"`{word['const']}`: {word['description']}" for word in named(schema, field).get("oneOf", [])]
    return ". ".join([" ".join(field["description"].split()).removesuffix("."), *words])


def section(schema, heading, text, table):
    required = table.get("required", [])
    lines = ["", f"## {heading}", "", text, "", "| field | type | default | meaning |", "|---|---|---|---|"]
    for name, field in sorted(table["properties"].items(), key=lambda item: item[0] not in required):
        cells = [f"`{name}`", kind_of(schema, name, field), default_of(schema, field, name in required), meaning_of(schema, field)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def document(schema):
    lines = section(schema, "The file", schema["description"], schema)
    for name, field in schema["properties"].items():
        if is_table(schema, field):
            table = named(schema, field)
            heading = f"`[[{name}]]`" if field.get("type") == "array" else f"`[{name}]`"
            lines += section(schema, heading, table["description"], table)
    return INTRO + "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 if the document is not current")
    args = parser.parse_args()
    schema = json.loads(subprocess.run([FADELINK, "run", "--schema"], capture_output=True, text=True, check=True).stdout)
    text = document(schema)
    if not args.check:
        DOCUMENT.write_text(text)
    elif DOCUMENT.read_text() != text:
        print(f"{DOCUMENT.relative_to(TOP)} is not current: run tools/experiment.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
