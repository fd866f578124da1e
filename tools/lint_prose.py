#!/usr/bin/env python3
"""Lints the English of documents, help texts, messages and comments: proselint, and the rules of tools/prose.toml.

Usage: tools/lint_prose.py [FILE ...]     default: every file that git has

Documents (Markdown, and the help of the commands, if they are built) are held to proselint, to the rules and to the length of
sentences; comments and messages in sources to the rules.
"""

import re
import subprocess
import sys
from pathlib import Path

import tomllib
from proselint.checks import __register__ as proselint_checks
from proselint.config import DEFAULT
from proselint.registry import CheckRegistry
from proselint.tools import LintFile

TOP = Path(__file__).resolve().parents[1]
RULES = tomllib.loads((TOP / "tools/prose.toml").read_text())
# Words may be on two lines of a comment.
SPACE = r"[\s#/*!]+"
PATTERNS = [(re.compile(rf"\b(?:{rule['pattern'].replace(' ', SPACE)})", re.I), rule["write"]) for rule in RULES["rule"]]
# proselint takes the first that fits: the more exact names come first.
OFF = {name: False for name in sorted(RULES["off"], key=len, reverse=True)}
CHECKS = OFF | DEFAULT["checks"] | OFF
HELP = {TOP / "host/target/release/fadelink": ["", "discover", "receive", "build", "feed", "cmd", "register", "status", "top", "feb", "doctor", "dissect"],
        TOP / "build/sim/fadelink-sim": [""]}  # fmt: skip

CODE = re.compile(r"^```.*?^```|^(?:    |\t).*?$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.M | re.S)
# A comment of each kind of source, and a string of more than two words.
STRING = r'"(?:[^"\\\n]|\\.)*[a-z] (?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"'
PROSE = {
    ".rs": rf"//.*?$|{STRING}", ".sv": r"//.*?$", ".c": rf"/\*.*?\*/|//.*?$|{STRING}", ".h": rf"/\*.*?\*/|//.*?$|{STRING}",
    ".cpp": rf"//.*?$|{STRING}", ".hpp": rf"//.*?$|{STRING}", ".py": rf'#.*?$|""".*?"""|{STRING}', ".sh": r"#.*?$", ".toml": r"#.*?$",
    ".def": r"//.*?$",
}  # fmt: skip


def blank(text):
    """Spaces in place of everything but the ends of lines: positions stay as they are."""
    return re.sub(r"[^\n]", " ", text)


def keep(pattern, text):
    """The parts of a text that match; the rest is blank."""
    out, end = [], 0
    for match in re.finditer(pattern, text, re.M | re.S):
        out += [blank(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*out, blank(text[end:])])


def remove_code(text):
    return CODE.sub(lambda match: blank(match[0]), text)


def files(named):
    """The files to read: those named, or all that are in the repository."""
    if named:
        return [Path(name).resolve() for name in named]
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=TOP, capture_output=True, text=True, check=True)
    return [TOP / name for name in listed.stdout.split("\n") if name and (TOP / name).exists()]


def texts(named):
    """(name, text, whether it is a document) of everything to lint."""
    for path in files(named):
        name = str(path.relative_to(TOP))
        if path.suffix == ".md":
            yield name, remove_code(path.read_text()), True
        elif path.suffix in PROSE and path.name != "prose.toml":
            yield name, keep(PROSE[path.suffix], path.read_text()), False
    for program, subcommands in HELP.items():
        if not named and program.exists():
            for subcommand in subcommands:
                words = [str(program), *subcommand.split(), "--help"]
                text = subprocess.run(words, capture_output=True, text=True).stdout
                yield f"{program.name} {subcommand} --help".replace("  ", " "), text, True


def long_sentences(text):
    """(position, message) of sentences that are too long; tables have none. Lines of lists are sentences of their own."""
    for paragraph in re.finditer(r"(?:(?!\n\s*\n|\n\s*(?:[-*|]|\d+\.) |\n  \S+  |\n {2,6}-{1,2}\w).)+", text, re.S):
        if paragraph[0].lstrip().startswith("|"):
            continue
        for sentence in re.finditer(r"[^.:;!?]+(?:[.:;!?](?!\s)[^.:;!?]*)*", paragraph[0]):
            words = len(re.findall(r"\w[\w'/-]*", sentence[0]))
            if words > RULES["longest_sentence"]:
                begin = paragraph.start() + sentence.start() + len(sentence[0]) - len(sentence[0].lstrip())
                yield begin, f"a sentence of {words} words; make it {RULES['longest_sentence']} or less"


def findings(text, is_document):
    """(position, message) of everything that is wrong."""
    for pattern, write in PATTERNS:
        for match in pattern.finditer(text):
            yield match.start(), f"`{' '.join(match[0].split())}`: write {write}"
    if is_document:
        yield from long_sentences(text)
        # The text begins at position 1 there.
        for result, _ in LintFile("text", text).lint(DEFAULT | {"checks": CHECKS}):
            yield result.span[0] - 1, f"{result.message} ({result.check_path})"


def main():
    CheckRegistry().register_many(proselint_checks)
    count = 0
    for name, text, is_document in texts(sys.argv[1:]):
        for position, message in sorted(findings(text, is_document)):
            print(f"{name}:{text.count(chr(10), 0, position) + 1}: {message}")
            count += 1
    if count:
        print(f"{count} findings; the rules are in tools/prose.toml")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
